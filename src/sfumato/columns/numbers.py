"""Numeric cells to codes in [0, 1] and back, for integers and continuous values.

A code is (value − lower) / (upper − lower). It is NaN for a missing cell of a nullable column.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import (
    dictionary_indices,
    is_text,
    plain,
    read_text,
    valid_mask,
    without_tokens,
)
from sfumato.columns.facts import as_fraction, decimals_of
from sfumato.columns.kinds import Continuous, Integer

_WHOLE = r"^-?[0-9]{1,18}$"  # 18 digits always fit int64
_NUMBER = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$|^-?(?i:inf|infinity)$"
_ROUNDING = 2.0**-50
_INT64_MAX = 2**63 - 1
_LARGEST_FLOAT_IN_INT64 = float(2**63 - 1024)


def read_floats(cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return cells of any type as float64; NaN where a cell is missing or not a number."""
    cells = plain(cells)
    storage = cells.type
    if types.is_dictionary(storage):
        values = np.append(read_floats(cells.dictionary, missing), np.nan)
        return values[dictionary_indices(cells)]
    if is_text(storage):
        return _parse_floats(without_tokens(read_text(cells), missing))
    if types.is_decimal(storage):
        return _parse_floats(cells.cast(pa.string()))
    if types.is_boolean(storage) or types.is_integer(storage) or types.is_floating(storage):
        if types.is_boolean(storage):
            cells = cells.cast(pa.int8())
        floats = cells.cast(pa.float64(), safe=False)
        return floats.fill_null(np.nan).to_numpy(zero_copy_only=False)
    return np.full(len(cells), np.nan)


def read_integers(cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return cells of any type as int64, and a mask of the cells that are numbers."""
    cells = plain(cells)
    storage = cells.type
    if types.is_dictionary(storage):
        values, valid = read_integers(cells.dictionary, missing)
        places = dictionary_indices(cells)
        return np.append(values, 0)[places], np.append(valid, False)[places]
    if is_text(storage):
        return _parse_integers(without_tokens(read_text(cells), missing))
    if types.is_decimal(storage):
        return _parse_integers(cells.cast(pa.string()))
    if types.is_boolean(storage) or types.is_integer(storage):
        valid = valid_mask(cells)
        if types.is_uint64(storage):
            cells = pc.min_element_wise(cells, pa.scalar(_INT64_MAX, pa.uint64()))
        whole = cells.cast(pa.int64()).fill_null(0)
        return whole.to_numpy(zero_copy_only=False), valid
    return rounded_to_int64(read_floats(cells, missing))


def rounded_to_int64(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest int64 of each float, and a mask of those that are numbers."""
    valid = ~np.isnan(values)
    bounded = np.clip(values, -float(2**63), _LARGEST_FLOAT_IN_INT64)
    return np.rint(np.where(valid, bounded, 0.0)).astype(np.int64), valid


def code_whole(values: np.ndarray, valid: np.ndarray, *, lower: int, upper: int, nullable: bool) -> np.ndarray:
    """Return codes of int64 values; the subtraction is exact before anything becomes a float."""
    span = upper - lower
    steps = np.clip(values, lower, upper) - lower
    codes = steps / float(max(span, 1))
    codes[~valid] = np.nan if nullable else (span // 2) / max(span, 1)
    return codes


def decode_whole(codes: np.ndarray, *, lower: int, upper: int, nullable: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return int64 values of codes, and a mask of the missing ones."""
    span = upper - lower
    absent = np.isnan(codes)
    steps = np.rint(np.clip(np.where(absent, 0.0, codes), 0.0, 1.0) * float(span)).astype(np.int64)
    steps[absent] = span // 2
    values = np.minimum(steps, span) + lower
    return values, absent if nullable else np.zeros(len(codes), dtype=bool)


def code_integer(kind: Integer, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return codes of an integer column stored in any type."""
    values, valid = read_integers(cells, missing)
    bounds = {"lower": kind.lower, "upper": kind.upper}
    return code_whole(values, valid, **bounds, nullable=kind.nullable)


def code_continuous(kind: Continuous, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return codes of a continuous column stored in any type."""
    values = read_floats(cells, missing)
    absent = np.isnan(values)
    if kind.lower == kind.upper:
        codes = np.zeros(len(values))
    else:
        codes = (snapped(kind, values) - kind.lower) / (kind.upper - kind.lower)
    codes[absent] = np.nan if kind.nullable else _midpoint_code(kind)
    return codes


def decode_continuous(kind: Continuous, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return float64 values of codes, and a mask of the missing ones."""
    absent = np.isnan(codes)
    shares = np.clip(np.where(absent, _midpoint_code(kind), codes), 0.0, 1.0)
    span = kind.upper - kind.lower
    values = kind.lower + shares * span
    # the code of 0 comes back as the rounding error of its product: amounts are often exactly 0
    values[np.abs(values) <= span * _ROUNDING] = 0.0
    values = snapped(kind, values)
    return values, absent if kind.nullable else np.zeros(len(codes), dtype=bool)


def snapped(kind: Continuous, values: np.ndarray) -> np.ndarray:
    """Return values clamped to the bounds and rounded to the resolution, as the nearest float64.

    The resolution is taken as the decimal that was written, p / q, so 3 steps of 0.1 give 0.3
    and not 0.30000000000000004.
    """
    clamped = np.clip(values, kind.lower, kind.upper)
    if kind.resolution is None:
        return clamped
    first, last, numerator, denominator = _grid(kind)
    steps = np.clip(np.rint(clamped / kind.resolution), first, last)
    return steps * numerator / denominator + 0.0  # + 0.0 turns −0.0 into 0.0


def number_text(kind: Continuous, values: np.ndarray) -> list[str]:
    """Return values as text: with the decimals of the resolution, else the shortest form."""
    if kind.resolution is None:
        return [repr(value) for value in values.tolist()]
    decimals = decimals_of(kind.resolution)
    return [f"{value:.{decimals}f}" for value in values.tolist()]


@lru_cache(maxsize=1024)
def _grid(kind: Continuous) -> tuple[float, float, float, float]:
    assert kind.resolution is not None
    step = as_fraction(kind.resolution)
    first = math.ceil(as_fraction(kind.lower) / step)
    last = math.floor(as_fraction(kind.upper) / step)
    return float(first), float(last), float(step.numerator), float(step.denominator)


def _midpoint_code(kind: Continuous) -> float:
    if kind.lower == kind.upper:
        return 0.0
    half = (kind.upper - kind.lower) / 2
    middle = float(snapped(kind, np.array([kind.lower + half]))[0])
    return (middle - kind.lower) / (kind.upper - kind.lower)


def _parse_floats(text: pa.Array) -> np.ndarray:
    text = pc.replace_substring_regex(text, pattern=r"^\+([0-9.iI])", replacement=r"\1")
    is_number = pc.match_substring_regex(text, _NUMBER)
    floats = pc.if_else(is_number, text, pa.scalar(None, text.type)).cast(pa.float64())
    return floats.fill_null(np.nan).to_numpy(zero_copy_only=False)


def _parse_integers(text: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    is_whole = pc.match_substring_regex(text, _WHOLE)
    nothing = pa.scalar(None, text.type)
    whole = pc.if_else(is_whole, text, nothing).cast(pa.int64())
    valid = valid_mask(whole)
    values = whole.fill_null(0).to_numpy(zero_copy_only=False)
    if not valid.all():  # 19 digits and more, decimals and exponents
        others, also = rounded_to_int64(_parse_floats(pc.if_else(is_whole, nothing, text)))
        values, valid = np.where(valid, values, others), valid | also
    return values, valid
