"""Cells of any type as numbers: what is no number is missing, and what a missing token reads as, however it is stored.

One cell of text makes a pandas column of numbers one of objects, and must not move what is missing in it.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import dictionary_indices, is_text, plain, read_text, valid_mask, without_tokens
from sfumato.columns.text_forms import floats, integers, is_truth, rounded_to_int64
from sfumato.columns.written import Written

_INT64_MAX = 2**63 - 1


def read_floats(cells: pa.Array, missing: Sequence[str], written: Written | None = None) -> np.ndarray:
    """Return cells of any type as float64; NaN where a cell is missing or not a number; text as it is `written`."""
    cells = plain(cells)
    storage = cells.type
    if types.is_dictionary(storage):
        values = np.append(read_floats(cells.dictionary, missing, written), np.nan)
        return values[dictionary_indices(cells)]
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
        places = dictionary_indices(cells)
        return np.append(values, 0)[places], np.append(valid, False)[places]
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
        places = dictionary_indices(cells)
        return np.append(values, 0)[places], np.append(valid, False)[places]
    if not is_text(cells.type):
        return read_integers(cells, missing)
    coded = without_tokens(read_text(cells), missing).dictionary_encode()
    numbers = [parse(text) for text in coded.dictionary.to_pylist()]
    bounded = [0 if value is None else max(-_INT64_MAX, min(value, _INT64_MAX)) for value in numbers]
    places = dictionary_indices(coded)
    return np.array([*bounded, 0], dtype=np.int64)[places], np.array([*(v is not None for v in numbers), False])[places]


def missing_mask(cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return True where a cell is null, NaN, or text of a missing token."""
    if types.is_dictionary(cells.type):
        of_values = np.append(missing_mask(plain(cells.dictionary), missing), True)
        return of_values[dictionary_indices(cells)]
    absent = ~valid_mask(cells)
    if types.is_floating(cells.type):
        absent |= np.isnan(read_floats(cells, ()))
    elif is_text(cells.type) and missing:
        absent |= _is_token(read_text(cells), missing).to_numpy(zero_copy_only=False)
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
    text = pc.if_else(_is_token(text, missing), pa.scalar(None, text.type), text) if missing else text
    return text if written is None else written.plain(text)


def _is_token(text: pa.Array, missing: Sequence[str]) -> pa.Array:
    """Return which text cells are missing tokens, letter by letter: `1.000` for `1` may be a thousand."""
    return pc.is_in(text, value_set=pa.array(list(missing), text.type))
