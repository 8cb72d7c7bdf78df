"""Values in the type of their column, and whether that type can hold them; the text of any type.

With it one list of labels describes a column however it is stored.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.cells import is_bytes, is_text, plain, read_text
from sfumato.columns.facts import float_text
from sfumato.columns.wall_clock import wall_clock_text

_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[str], object]], ...] = (
    (is_bytes, str.encode), (is_text, str), (types.is_integer, int), (types.is_float16, np.float16),
    (types.is_floating, float), (types.is_boolean, lambda text: {"true": True, "false": False}[text.lower()]),
    (types.is_decimal, Decimal), (types.is_date, dt.date.fromisoformat), (types.is_time, dt.time.fromisoformat),
    (types.is_timestamp, dt.datetime.fromisoformat),
)  # fmt: skip
"""Types, the narrower first, and the map from a label to a value of each."""


def has_text(storage: pa.DataType) -> bool:
    """Whether values of a type can be categories."""
    numbers = (types.is_integer, types.is_boolean, types.is_floating, types.is_decimal)
    return any(is_one(storage) for is_one in (is_text, *numbers, types.is_date, types.is_timestamp, types.is_time))


def text_of(values: pa.Array) -> pa.Array:
    """Return the text of values of a type that has one; NaN has none.

    A float of 2^53 or more is written with an exponent: it may be another whole number, rounded.

    Most types are turned into text value by value: pass distinct values.
    """
    storage = values.type
    if is_text(storage):
        return read_text(values)
    if types.is_floating(storage):
        return _float_text(values)
    if types.is_decimal(storage):
        return _each(values, lambda number: format(number.normalize() + 0, "f"))
    if types.is_date64(storage) or types.is_timestamp(storage):
        return wall_clock_text(values)
    return values.cast(pa.string())


def values_of_texts(texts: Sequence[str], storage: pa.DataType) -> pa.Array | None:
    """Return texts as values of a type, or None if one of them is no such value."""
    read = next((read for is_one, read in _READERS if is_one(storage)), None)
    try:
        return None if read is None else pa.array([read(text) for text in texts], storage)
    except (ValueError, TypeError, LookupError, ArithmeticError, pa.ArrowException):
        return None


def _each(values: pa.Array, text: Callable[..., str | None]) -> pa.Array:
    listed = values.to_pylist()
    return pa.array([None if value is None else text(value) for value in listed], pa.string())


def _float_text(values: pa.Array) -> pa.Array:
    """Return numbers as text by the digits of their own width: float32 0.1 is `0.1`."""
    widths = {pa.float16(): np.float16, pa.float32(): np.float32}
    width = widths.get(values.type, float)

    def text(number: float) -> str | None:
        if number != number:
            return None
        return float_text(number if number.is_integer() else float(str(width(number))))

    return _each(values, text)


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
    if types.is_boolean(storage):
        lowest, highest = 0, 1
    elif types.is_integer(storage):
        limits = np.iinfo(storage.to_pandas_dtype())
        lowest, highest = limits.min, limits.max
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
            f"Expected numbers or text for kind {name}, got {type_words(storage)}. "
            "Declare the kind that fits the column, or store it as text."
        )
    if lowest <= lower and upper <= highest:
        return None
    return (
        f"Expected bounds that type {storage} can hold, got lower={lower!r}, "
        f"upper={upper!r}. Narrow the bounds, or store the column in a wider type."
    )


def type_words(storage: pa.DataType) -> str:
    """Return what cells of a type are, in words that do not tell how wide they are: one cell may decide that."""
    families = {
        types.is_integer: "numbers", types.is_floating: "numbers", types.is_boolean: "truth values",
        types.is_date: "dates", types.is_timestamp: "timestamps", types.is_time: "times of day",
        types.is_duration: "durations", types.is_list: "lists", types.is_large_list: "lists",
        types.is_struct: "mappings",
    }  # fmt: skip
    return next((words for is_one, words in families.items() if is_one(storage)), f"type {storage}")


def unmodelled(storage: pa.DataType) -> str:
    """Return that cells of a type are no values that a column of a table has, and what to do."""
    if types.is_duration(storage):
        return (
            "Expected numbers, dates, truth values or text, got durations. Turn them into numbers, "
            "as `frame[name].dt.total_seconds() / 3600` does in pandas, and name the unit in the column's name."
        )
    return (
        f"Expected numbers, dates, truth values or text, got {type_words(storage)}. Store the column as one of these, "
        "or leave it out."
    )


def from_text(text: pa.Array, storage: pa.DataType) -> pa.Array:
    """Return text in a storage type of text, bytes or decimals."""
    return text.cast(pa.binary()).cast(storage) if is_bytes(storage) else text.cast(storage)


def as_dictionary(values: pa.Array, storage: pa.DictionaryType) -> pa.Array:
    """Return values in a dictionary type of them."""
    coded = plain(values).dictionary_encode()
    indices = coded.indices.cast(storage.index_type)
    labels = coded.dictionary.cast(storage.value_type)
    return pa.DictionaryArray.from_arrays(indices, labels, ordered=storage.ordered)
