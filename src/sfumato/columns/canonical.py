"""The canonical text of values of any type: `1` for the integer 1 and the float 1.0, `true` for a boolean.

With it one list of labels describes a column however it is stored.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import is_text, read_text
from sfumato.columns.facts import float_text
from sfumato.columns.wall_clock import wall_clock_text


def has_canonical_text(storage: pa.DataType) -> bool:
    """Whether values of a type can be categories."""
    return (
        is_text(storage)
        or types.is_integer(storage)
        or types.is_boolean(storage)
        or types.is_floating(storage)
        or types.is_decimal(storage)
        or types.is_date(storage)
        or types.is_timestamp(storage)
        or types.is_time(storage)
    )


def canonical_text(values: pa.Array) -> pa.Array:
    """Return the canonical text of values of a type that has one; NaN has none.

    A float of 2^53 or more is written with an exponent: it may be another whole number, rounded, and no label of digits
    is meant by it.

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
    if types.is_time(storage):
        return pc.replace_substring_regex(values.cast(pa.string()), pattern=r"\.0+$", replacement="")
    return values.cast(pa.string())


def _each(values: pa.Array, text: Callable[..., str | None]) -> pa.Array:
    listed = values.to_pylist()
    return pa.array([None if value is None else text(value) for value in listed], pa.string())


def _float_text(values: pa.Array) -> pa.Array:
    """Return numbers as text by the digits of their own width: float32 0.1 is `0.1`."""
    widths = {pa.float16(): np.float16, pa.float32(): np.float32}
    width = widths.get(values.type, float)
    return _each(values, lambda number: None if number != number else float_text(float(str(width(number)))))
