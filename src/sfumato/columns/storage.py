"""Numbers and dates as arrays of the type of their column, and whether that type can hold them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.cells import is_bytes, is_text, plain
from sfumato.columns.dates import default_format, format_dates, store_dates
from sfumato.columns.kinds import MICROSECONDS, Continuous, DateTime, Integer, NumericKind, kind_name, tick_range
from sfumato.columns.numbers import number_text


def store_integer(values: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
    """Return int64 values as an array of the storage type, null where absent."""
    if types.is_dictionary(storage):
        return _as_dictionary(store_integer(values, absent, storage.value_type), storage)
    whole = pa.array(values, mask=absent)
    if is_text(storage) or types.is_decimal(storage):
        return _from_text(whole.cast(pa.string()), storage)
    if types.is_float16(storage):
        return pa.array(values.astype(np.float16), mask=absent)
    return whole.cast(storage, safe=False)


def store_continuous(kind: Continuous, values: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
    """Return float64 values as an array of the storage type, null where absent."""
    if types.is_dictionary(storage):
        return _as_dictionary(store_continuous(kind, values, absent, storage.value_type), storage)
    if types.is_integer(storage) or types.is_boolean(storage):
        return store_integer(np.rint(values).astype(np.int64), absent, storage)
    if is_text(storage):
        return _from_text(pa.array(number_text(kind, values), pa.string(), mask=absent), storage)
    if types.is_decimal(storage):
        words = [f"{value:.{max(0, storage.scale)}f}" for value in values.tolist()]
        return _from_text(pa.array(words, pa.string(), mask=absent), storage)
    if types.is_float16(storage):
        return pa.array(values.astype(np.float16), mask=absent)
    return pa.array(values, mask=absent).cast(storage, safe=False)


def store_datetime(kind: DateTime, micros: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
    """Return wall-clock microseconds as an array of the storage type, null where absent."""
    if types.is_dictionary(storage):
        return _as_dictionary(store_datetime(kind, micros, absent, storage.value_type), storage)
    if is_text(storage):
        return _from_text(format_dates(micros, absent, kind.format or default_format(kind)), storage)
    return store_dates(micros, absent, storage)


def numeric_storage_fault(kind: NumericKind, storage: pa.DataType) -> str | None:
    """Return why the values of a kind cannot be stored in a type, or None if they can."""
    values = storage
    if types.is_dictionary(storage):
        values = storage.value_type
        if storage.index_type.bit_width < 32:
            return f"Expected a plain column, got type {storage}. Store it without a dictionary."
    if is_text(values) and not types.is_fixed_size_binary(values):
        return None
    if isinstance(kind, DateTime):
        return _date_fault(kind, values)
    if types.is_integer(values) or types.is_boolean(values):
        return _bounds_fault(kind, values, *_whole_range(values))
    if types.is_floating(values):
        largest = float(np.finfo(values.to_pandas_dtype()).max)
        return _bounds_fault(kind, values, -largest, largest)
    if types.is_decimal(values) and values.scale >= 0:
        largest = 10 ** (values.precision - values.scale) - 1
        return _bounds_fault(kind, values, -largest, largest)
    return (
        f"Expected numbers or text for kind {kind_name(kind)}, got type {values}. "
        "Declare the kind that fits the column, or store it as text."
    )


def _bounds_fault(kind: Integer | Continuous, storage: pa.DataType, lowest: float, highest: float) -> str | None:
    if lowest <= kind.lower and kind.upper <= highest:
        return None
    return (
        f"Expected bounds that type {storage} can hold, got lower={kind.lower!r}, "
        f"upper={kind.upper!r}. Narrow the bounds, or store the column in a wider type."
    )


def _date_fault(kind: DateTime, storage: pa.DataType) -> str | None:
    if types.is_date(storage):
        return None
    if not types.is_timestamp(storage):
        return (
            f"Expected dates, times or text for kind datetime, got a column of type {storage}. "
            "Declare integer or continuous, or store the column as timestamps."
        )
    step = MICROSECONDS[kind.resolution]
    limit = 2**63 // 1000 - 2 * MICROSECONDS["day"]  # leaves room for the offset of any zone
    if storage.unit == "ns" and any(abs(tick) * step > limit for tick in tick_range(kind)):
        return (
            f"Expected bounds within the years 1678 to 2261 for type {storage}, "
            f"got lower={kind.lower}, upper={kind.upper}. Store the column in microseconds."
        )
    return None


def _whole_range(storage: pa.DataType) -> tuple[int, int]:
    if types.is_boolean(storage):
        return 0, 1
    bits = storage.bit_width
    if types.is_unsigned_integer(storage):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _from_text(text: pa.Array, storage: pa.DataType) -> pa.Array:
    return text.cast(pa.binary()).cast(storage) if is_bytes(storage) else text.cast(storage)


def _as_dictionary(values: pa.Array, storage: pa.DataType) -> pa.Array:
    coded = plain(values).dictionary_encode()
    indices = coded.indices.cast(storage.index_type)
    labels = coded.dictionary.cast(storage.value_type)
    return pa.DictionaryArray.from_arrays(indices, labels, ordered=storage.ordered)


__all__ = [
    "numeric_storage_fault",
    "store_continuous",
    "store_datetime",
    "store_integer",
]
