"""From any Arrow column to clean text or plain values: what all readers of cells share.

Everything here is elementwise: what a cell becomes never depends on the cells beside it.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.text_forms import without_point

_UUID = pa.uuid()


def total(read: Callable[[pa.Array], np.ndarray], cells: pa.Array, refused: Callable[[int], np.ndarray]) -> np.ndarray:
    """Return `read(cells)`; where Arrow refuses some, halve until they stand alone.

    Halving keeps an elementwise map elementwise: a refused cell does not change what is made of the cells beside it.

    Args:
        read: an elementwise map from n cells to shape (n,), which may raise.
        cells: of any Arrow type.
        refused: what n refused cells are, shape (n,).

    Raises:
        MemoryError: as `read` does.
    """
    try:
        return read(cells)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  whatever the text of the exception, it may hold a cell
        pass
    if len(cells) <= 1:
        return refused(len(cells))
    middle = len(cells) // 2
    return np.concatenate([total(read, half, refused) for half in (cells.slice(0, middle), cells.slice(middle))])


def plain(cells: pa.Array) -> pa.Array:
    """Return the same cells, their extension, run-end, view and small decimal types undone, within dictionaries too."""
    while True:
        kind = cells.type
        if kind.equals(_UUID):  # whose bytes are no text
            words = [None if cell is None else str(cell) for cell in cells.to_pylist()]
            cells = pa.array(words, pa.string())
        elif isinstance(cells, pa.ExtensionArray):
            cells = cells.storage
        elif types.is_run_end_encoded(kind):
            cells = pc.run_end_decode(cells)
        elif types.is_string_view(kind):
            cells = cells.cast(pa.large_string())
        elif types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
            cells = cells.cast(pa.large_binary())
        elif types.is_decimal(kind) and kind.bit_width < 128:
            # most kernels lack the small decimals
            cells = cells.cast(pa.decimal128(kind.precision, kind.scale))
        elif types.is_dictionary(kind) and (values := plain(cells.dictionary)).type != kind.value_type:
            cells = pa.DictionaryArray.from_arrays(cells.indices, values, ordered=kind.ordered)
        else:
            return cells


def joined(column: pa.ChunkedArray | np.ndarray) -> pa.Array:
    """Return a column as one array, dictionaries undone.

    Arrow's own joining of chunks keeps dictionaries, and fails where their values together are more than their indices
    can count: one more name would decide whether a fit succeeds.
    """
    if isinstance(column, np.ndarray):
        return pa.array(column)
    if not pa.types.is_dictionary(column.type) or not column.num_chunks:
        whole = column.combine_chunks()
        return whole if isinstance(whole, pa.Array) else pa.concat_arrays(whole.chunks)
    return pa.concat_arrays([plain(chunk).dictionary_decode() for chunk in column.chunks])


def valid_text(text: str) -> str:
    """Return a Python text as one that UTF-8 can hold: `?` for half a surrogate pair."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def is_text(storage: pa.DataType) -> bool:
    """Whether cells of this type are text, or bytes that stand for text of unknown encoding."""
    return (
        types.is_string(storage) or types.is_large_string(storage) or types.is_string_view(storage) or is_bytes(storage)
    )


def values_of(storage: pa.DataType) -> pa.DataType:
    """Return the type of the values themselves: dictionaries, run ends and extensions undone."""
    while True:
        if types.is_dictionary(storage) or types.is_run_end_encoded(storage):
            storage = storage.value_type
        elif isinstance(storage, pa.BaseExtensionType) and not isinstance(storage, pa.FixedShapeTensorType):
            storage = storage.storage_type
        else:
            return storage


def is_scalar(storage: pa.DataType) -> bool:
    """Whether cells are numbers, truth values or text, or none has a value: types that one cell turns into another."""
    values = values_of(storage)
    return (
        is_text(values)
        or types.is_null(values)
        or types.is_boolean(values)
        or types.is_integer(values)
        or types.is_floating(values)
        or types.is_decimal(values)
    )


def is_bytes(storage: pa.DataType) -> bool:
    """Whether cells of this type are bytes."""
    return (
        types.is_binary(storage)
        or types.is_large_binary(storage)
        or types.is_binary_view(storage)
        or types.is_fixed_size_binary(storage)
    )


def read_text(cells: pa.Array) -> pa.Array:
    """Return text or byte cells as valid Unicode text, stripped of surrounding white space.

    A cell that is not UTF-8 is read as Windows-1252, with U+FFFD where that fails too.
    """
    is_large = types.is_large_string(cells.type) or types.is_large_binary(cells.type)
    raw = cells.cast(pa.large_binary() if is_large else pa.binary())
    text_type = pa.large_string() if is_large else pa.string()
    try:
        text = raw.cast(text_type)  # the cast checks UTF-8, which a string column does not promise
    except pa.ArrowInvalid:
        text = None
    if text is None:
        coded = raw.dictionary_encode()
        words = pa.array([_decoded(word) for word in coded.dictionary.to_pylist()], text_type)
        text = words.take(coded.indices)
    return pc.utf8_trim_whitespace(text)


def without_tokens(text: pa.Array, missing: Sequence[str]) -> pa.Array:
    """Return text cells, null where one reads as a missing token; `-99.0` as `-99`: see `without_point`."""
    if not missing:
        return text
    tokens = without_point(pa.array(list(missing), text.type))
    shown = without_point(text) if any(map(str.isdigit, "".join(missing))) else text
    return pc.if_else(pc.is_in(shown, value_set=tokens), pa.scalar(None, text.type), text)


def valid_mask(cells: pa.Array) -> np.ndarray:
    """Return True where a cell is not null."""
    if cells.null_count == 0:
        return np.ones(len(cells), dtype=bool)
    return cells.is_valid().to_numpy(zero_copy_only=False)


def dictionary_indices(cells: pa.Array) -> np.ndarray:
    """Return each cell's place in a dictionary array; a null cell points one past the end."""
    end = len(cells.dictionary)
    if end == 0:
        return np.zeros(len(cells), dtype=np.int64)
    places = cells.indices.cast(pa.int64())
    return places.fill_null(end).to_numpy(zero_copy_only=False)


def _decoded(word: bytes | None) -> str | None:
    if word is None:
        return None
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return word.decode("cp1252", errors="replace")
