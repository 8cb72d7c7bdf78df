"""Whether a record batch from a file points only into its own buffers: else reading a cell would read other memory.

Arrow's readers take offsets and indices as they stand in a file. What a cell holds is not looked at: a text that is no
UTF-8 or a date that is none stands in one record, and stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.types as types


def sound_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass on batches whose offsets, lengths and indices are those of their buffers.

    Raises:
        pa.ArrowInvalid: others are not; the message may show cells.
    """
    for batch in batches:
        for column in batch.columns:
            _check(column)
        yield batch


def _check(array: pa.Array) -> None:
    array.validate()
    if isinstance(array, pa.ExtensionArray):
        _check(array.storage)
    elif isinstance(array, pa.DictionaryArray):
        places = pa.nulls(len(array.dictionary))
        pa.DictionaryArray.from_arrays(array.indices, places, safe=False).validate(full=True)
        _check(array.dictionary)
    elif not types.is_primitive(array.type):
        kind = _plain(array.type)
        (array if kind is None else array.view(kind)).validate(full=True)


@lru_cache(maxsize=1024)
def _plain(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of the same buffers in which any bytes are a value; None where Arrow cannot view it so."""
    for is_kind, plain in _LEAVES:
        if is_kind(kind):
            return plain
    if types.is_decimal(kind):
        return pa.binary(kind.bit_width // 8)
    for is_list, make in _LISTS:
        if is_list(kind):
            value = _plain(kind.value_type)
            return None if value is None else make(kind, kind.value_field.with_type(value))
    if types.is_struct(kind):
        fields = [(field, _plain(field.type)) for field in kind]
        if all(plain is not None for _, plain in fields):
            return pa.struct([field.with_type(plain) for field, plain in fields if plain is not None])
    nested = types.is_nested(kind) or types.is_dictionary(kind) or isinstance(kind, pa.BaseExtensionType)
    return None if nested else kind


_LEAVES: tuple[tuple[Callable[[pa.DataType], bool], pa.DataType], ...] = (
    (types.is_string, pa.binary()),
    (types.is_large_string, pa.large_binary()),
    (types.is_string_view, pa.binary_view()),
    (types.is_date32, pa.int32()),
    (types.is_time32, pa.int32()),
    (types.is_date64, pa.int64()),
    (types.is_time64, pa.int64()),
)
_LISTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType, pa.Field], pa.DataType]], ...] = (
    (types.is_list, lambda _, field: pa.list_(field)),
    (types.is_large_list, lambda _, field: pa.large_list(field)),
    (types.is_fixed_size_list, lambda kind, field: pa.list_(field, kind.list_size)),
)
