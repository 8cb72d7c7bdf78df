"""From any Arrow column to clean text, numbers or plain values: what all readers of cells share.

Everything here is elementwise: what a cell becomes never depends on the cells beside it. What a missing token reads as
is missing, however it is stored: one cell of text makes a pandas column of numbers one of objects.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.canonical import canonical, may_be_written_otherwise
from sfumato.columns.text_forms import each_word, floats, integers, is_truth, rounded_to_int64
from sfumato.columns.written import Written

_UUID = pa.uuid()
_INT64_MAX = 2**63 - 1


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
    kinds = (types.is_string, types.is_large_string, types.is_string_view, is_bytes)
    return any(is_one(storage) for is_one in kinds)


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
    kinds = (is_text, types.is_null, types.is_boolean, types.is_integer, types.is_floating, types.is_decimal)
    return any(is_one(values_of(storage)) for is_one in kinds)


def is_bytes(storage: pa.DataType) -> bool:
    """Whether cells of this type are bytes."""
    kinds = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    return any(is_one(storage) for is_one in kinds)


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
        text = each_word(raw, text_type, _decoded)
    return pc.utf8_trim_whitespace(text)


def without_tokens(text: pa.Array, missing: Sequence[str], *, exact: bool = False) -> pa.Array:
    """Return text cells, null where one reads as a missing token, by its canonical text: `-99.0` as `-99`."""
    return pc.if_else(are_tokens(text, missing, exact=exact), pa.scalar(None, text.type), text) if missing else text


def are_tokens(text: pa.Array, missing: Sequence[str], *, exact: bool = False) -> pa.Array:
    """Return which text cells are missing tokens, as they are written or by their canonical text."""
    tokens = pa.array(list(missing), text.type)
    alike = pc.is_in(text, value_set=tokens, skip_nulls=True)
    if exact or not any(map(may_be_written_otherwise, missing)):
        return alike
    texts, meant = canonical(text), canonical(tokens)
    alike = pc.or_(alike, pc.is_in(texts, value_set=meant, skip_nulls=True))
    if meant.null_count == 0:
        return alike
    return pc.or_(alike, pc.and_(text.is_valid(), texts.is_null()))  # no number of 2^53 or more is told from another


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


def looked_up(values: np.ndarray, cells: pa.Array, absent: float) -> np.ndarray:
    """Return for each cell of a dictionary array what its value became, by the values' places; `absent` of a null."""
    return np.append(values, np.array([absent], values.dtype))[dictionary_indices(cells)]


def _decoded(word: bytes) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return word.decode("cp1252", errors="replace")


def read_floats(cells: pa.Array, missing: Sequence[str], written: Written | None = None) -> np.ndarray:
    """Return cells of any type as float64; NaN where a cell is missing or not a number; text as it is `written`."""
    cells = plain(cells)
    storage = cells.type
    if types.is_dictionary(storage):
        return looked_up(read_floats(cells.dictionary, missing, written), cells, np.nan)
    if is_text(storage) or types.is_boolean(storage):
        numbers = floats(_plain_numbers(cells, missing, written))
    elif types.is_decimal(storage):
        numbers = floats(cells.cast(pa.string()))
    elif types.is_integer(storage) or types.is_floating(storage):
        numbers = cells.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    else:
        return np.full(len(cells), np.nan)
    tokens = _token_values(tuple(missing), written)
    return np.where(np.isin(numbers, tokens), np.nan, numbers) if tokens else numbers


def read_integers(
    cells: pa.Array, missing: Sequence[str], written: Written | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return cells of any type as int64, and a mask of the cells that are numbers; text as it is `written`."""
    cells = plain(cells)
    storage = cells.type
    if types.is_dictionary(storage):
        values, valid = read_integers(cells.dictionary, missing, written)
        return looked_up(values, cells, 0), looked_up(valid, cells, False)
    if is_text(storage) or types.is_boolean(storage):
        whole, valid = integers(_plain_numbers(cells, missing, written))
    elif types.is_decimal(storage):
        whole, valid = integers(cells.cast(pa.string()))
    elif types.is_integer(storage):
        small = pc.min_element_wise(cells, pa.scalar(_INT64_MAX, storage)) if types.is_uint64(storage) else cells
        whole, valid = small.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), valid_mask(cells)
    else:
        return rounded_to_int64(read_floats(cells, missing, written))
    if _token_values(tuple(missing), written):
        valid = valid & ~np.isnan(read_floats(cells, missing, written))
    return whole, valid


def read_parsed(
    cells: pa.Array, missing: Sequence[str], parse: Callable[[str], int | None]
) -> tuple[np.ndarray, np.ndarray]:
    """Return cells as int64, and a mask of those that are values: text by a function of one text, numbers as they are.

    Args:
        cells: of any type.
        missing: text that stands for no value.
        parse: the value of a text, None if it has none; called once for each distinct text.
    """
    cells = plain(cells)
    if types.is_dictionary(cells.type):
        values, valid = read_parsed(cells.dictionary, missing, parse)
        return looked_up(values, cells, 0), looked_up(valid, cells, False)
    if not is_text(cells.type):
        return read_integers(cells, missing)
    coded = without_tokens(read_text(cells), missing).dictionary_encode()
    numbers = [parse(text) for text in coded.dictionary.to_pylist()]
    bounded = [0 if value is None else max(-_INT64_MAX, min(value, _INT64_MAX)) for value in numbers]
    valid = np.array([value is not None for value in numbers], dtype=bool)
    return looked_up(np.array(bounded, dtype=np.int64), coded, 0), looked_up(valid, coded, False)


def missing_mask(cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return True where a cell is null, NaN, or text of a missing token."""
    if types.is_dictionary(cells.type):
        return looked_up(missing_mask(plain(cells.dictionary), missing), cells, True)
    absent = ~valid_mask(cells)
    if types.is_floating(cells.type):
        absent |= np.isnan(read_floats(cells, ()))
    elif is_text(cells.type) and missing:
        absent |= are_tokens(read_text(cells), missing, exact=True).to_numpy(zero_copy_only=False)
    return absent


@lru_cache(maxsize=256)
def _token_values(missing: tuple[str, ...], written: Written | None) -> tuple[float, ...]:
    """Return the numbers that missing tokens read as; a word for a truth value stands for itself alone."""
    tokens = pa.array(missing, pa.string()).filter(pa.array(~is_truth(pa.array(missing, pa.string()))))
    numbers = floats(tokens if written is None else written.plain(tokens))
    return tuple(numbers[~np.isnan(numbers)].tolist())


def _plain_numbers(cells: pa.Array, missing: Sequence[str], written: Written | None) -> pa.Array:
    """Return text cells, or truth values, as plain numbers, null where one is a missing token."""
    text = cells.cast(pa.string()) if types.is_boolean(cells.type) else read_text(cells)
    text = without_tokens(text, missing, exact=True)  # `1.000` for `1` may be a thousand
    return text if written is None else written.plain(text)
