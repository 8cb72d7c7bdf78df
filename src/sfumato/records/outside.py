"""Cells for which a schema has no place: what a fit would change.

Elementwise, as coding is: whether a cell is outside depends on that cell and on public facts alone.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import dictionary_indices, is_text, plain, read_text, total, valid_mask
from sfumato.columns.dates import read_microseconds
from sfumato.columns.kinds import MICROSECONDS, Continuous, Integer, LevelKind, NumericKind, tick_range
from sfumato.columns.levels import MISSING, UNKNOWN, find_levels
from sfumato.columns.numbers import read_floats, read_integers

_INT64_MAX = np.uint64(2**63 - 1)

INSIDE, CLAMPED, NOWHERE = 0, 1, 2
"""Marks of `outside_marks`."""

Fault: TypeAlias = Literal["missing", "unknown", "clamped", "unparseable"]


def fault_masks(kind: LevelKind | NumericKind, cells: pa.Array, missing: Sequence[str]) -> dict[Fault, np.ndarray]:
    """Return per fault which cells have it, shape (n,): no value; no label; outside the bounds; no number or date.

    Privacy: none (pure function).

    Args:
        kind: of the column.
        cells: of any Arrow type.
        missing: text that stands for no value.
    """
    cells = plain(cells)
    if isinstance(kind, LevelKind):
        found = find_levels(kind, cells, missing)
        return {"missing": found == MISSING, "unknown": found == UNKNOWN}
    absent = _missing_mask(cells, missing)
    beyond, valid = _beyond(kind, cells, missing)
    return {"missing": absent, "clamped": beyond & valid, "unparseable": ~valid & ~absent}


def outside_marks(
    kind: LevelKind | NumericKind, column: pa.Array | pa.ChunkedArray, missing: Sequence[str]
) -> np.ndarray:
    """Return per cell INSIDE, CLAMPED (a number or date beyond the bounds) or NOWHERE, int8 of shape (n,).

    Inside are a missing cell of a nullable column, and what goes to a declared `other`.

    Privacy: none (pure function).
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    marks = [total(lambda part: _marks(kind, part, missing), chunk, _nowhere) for chunk in chunks]
    return np.concatenate([np.zeros(0, dtype=np.int8), *marks])


def _marks(kind: LevelKind | NumericKind, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    marks = np.full(len(cells), INSIDE, dtype=np.int8)
    if getattr(kind, "other", None) is None:
        for fault, mask in fault_masks(kind, cells, missing).items():
            if not (fault == "missing" and kind.nullable):
                marks[mask] = CLAMPED if fault == "clamped" else NOWHERE
    return marks


def _nowhere(n: int) -> np.ndarray:
    return np.full(n, NOWHERE, dtype=np.int8)


def _beyond(kind: NumericKind, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of the cells outside the bounds, and of the cells that hold a value."""
    if isinstance(kind, Continuous):
        values = read_floats(cells, missing)
        slack = _slack(kind, cells.type)
        return (values < kind.lower - slack) | (values > kind.upper + slack), ~np.isnan(values)
    if isinstance(kind, Integer):
        values, valid = read_integers(cells, missing)
        beyond = (values < kind.lower) | (values > kind.upper)
        if types.is_uint64(cells.type):  # what int64 cannot hold is above any bound, and is read as its largest number
            beyond |= cells.fill_null(0).to_numpy(zero_copy_only=False) > _INT64_MAX
        return beyond, valid
    micros, valid = read_microseconds(cells, missing, kind.format)
    first, last = tick_range(kind)
    ticks = micros // MICROSECONDS[kind.resolution]
    return (ticks < first) | (ticks > last), valid


def _slack(kind: Continuous, storage: pa.DataType) -> float:
    """How far beyond a bound the bound itself may lie, as narrow floats store it."""
    narrow = {"halffloat": np.float16, "float": np.float32}.get(str(storage))
    return 0.0 if narrow is None else float(np.finfo(narrow).eps) * max(abs(kind.lower), abs(kind.upper))


def _missing_mask(cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return True where a cell is null, NaN, or a missing token in text."""
    if types.is_dictionary(cells.type):
        of_values = np.append(_missing_mask(plain(cells.dictionary), missing), True)
        return of_values[dictionary_indices(cells)]
    absent = ~valid_mask(cells)
    if types.is_floating(cells.type):
        absent |= np.isnan(read_floats(cells, ()))
    elif is_text(cells.type) and missing:
        text = read_text(cells)
        tokens = pa.array(list(missing), text.type)
        absent |= pc.is_in(text, value_set=tokens).to_numpy(zero_copy_only=False)
    return absent
