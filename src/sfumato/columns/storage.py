"""Numbers and dates as arrays of the type of their column, and whether that type can hold them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.cells import is_bytes, is_text, plain


def store_integer(
    values: np.ndarray, absent: np.ndarray, storage: pa.DataType, written: Callable[[int], str] | None = None
) -> pa.Array:
    """Return int64 values as an array of a storage type without a dictionary, null where absent.

    Args:
        values: shape (n,).
        absent: mask of shape (n,).
        storage: any type of numbers or text.
        written: how a value is written where text is stored; None for its digits.
    """
    whole = pa.array(values, mask=absent)
    if is_text(storage) and written is not None:
        return from_text(pa.array([written(v) for v in values.tolist()], pa.string(), mask=absent), storage)
    if is_text(storage) or types.is_decimal(storage):
        return from_text(whole.cast(pa.string()), storage)
    if types.is_float16(storage):
        return pa.array(values.astype(np.float16), mask=absent)
    return whole.cast(storage, safe=False)


def store_float(
    values: np.ndarray, absent: np.ndarray, storage: pa.DataType, written: Callable[[float], str]
) -> pa.Array:
    """Return float64 values as an array of a storage type without a dictionary, null where absent.

    Args:
        values: shape (n,).
        absent: mask of shape (n,).
        storage: any type of numbers or text.
        written: how a value is written where text is stored.
    """
    if types.is_integer(storage) or types.is_boolean(storage):
        return store_integer(np.rint(values).astype(np.int64), absent, storage)
    if is_text(storage):
        return from_text(pa.array([written(v) for v in values.tolist()], pa.string(), mask=absent), storage)
    if types.is_decimal(storage):
        words = [f"{value:.{max(0, storage.scale)}f}" for value in values.tolist()]
        return from_text(pa.array(words, pa.string(), mask=absent), storage)
    if types.is_float16(storage):
        return pa.array(values.astype(np.float16), mask=absent)
    return pa.array(values, mask=absent).cast(storage, safe=False)


def number_fault(name: str, lower: float, upper: float, storage: pa.DataType) -> str | None:
    """Return why numbers between two bounds cannot be stored in a type that is not text, or None if they can."""
    if types.is_integer(storage) or types.is_boolean(storage):
        lowest, highest = _whole_range(storage)
    elif types.is_floating(storage):
        highest = float(np.finfo(storage.to_pandas_dtype()).max)
        lowest = -highest
    elif types.is_decimal(storage) and storage.scale >= 0:
        highest = 10 ** (storage.precision - storage.scale) - 1
        lowest = -highest
    elif types.is_duration(storage):
        return unmodelled(storage)
    else:
        return (
            f"Expected numbers or text for kind {name}, got type {storage}. "
            "Declare the kind that fits the column, or store it as text."
        )
    if lowest <= lower and upper <= highest:
        return None
    return (
        f"Expected bounds that type {storage} can hold, got lower={lower!r}, "
        f"upper={upper!r}. Narrow the bounds, or store the column in a wider type."
    )


def unmodelled(storage: pa.DataType) -> str:
    """Return that cells of a type are no values that a column of a table has, and what to do."""
    if types.is_duration(storage):
        return (
            f"Expected numbers, dates, truth values or text, got durations, of type {storage}. Turn them into numbers, "
            "as `frame[name].dt.total_seconds() / 3600` does in pandas, and name the unit in the column's name."
        )
    return (
        f"Expected numbers, dates, truth values or text, got type {storage}. Store the column as one of these, or "
        "leave it out."
    )


def _whole_range(storage: pa.DataType) -> tuple[int, int]:
    if types.is_boolean(storage):
        return 0, 1
    bits = storage.bit_width
    if types.is_unsigned_integer(storage):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def from_text(text: pa.Array, storage: pa.DataType) -> pa.Array:
    """Return text in a storage type of text, bytes or decimals."""
    return text.cast(pa.binary()).cast(storage) if is_bytes(storage) else text.cast(storage)


def as_dictionary(values: pa.Array, storage: pa.DictionaryType) -> pa.Array:
    """Return values in a dictionary type of them."""
    coded = plain(values).dictionary_encode()
    indices = coded.indices.cast(storage.index_type)
    labels = coded.dictionary.cast(storage.value_type)
    return pa.DictionaryArray.from_arrays(indices, labels, ordered=storage.ordered)
