"""Cells of several columns as values that rules compare: codes of labels, and numbers or dates with a mask.

Rules are judged on what is written, not on codes: a code is a rounded position between two bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.dates import MICROSECONDS, DateTime
from sfumato.columns.kind import TabularKind
from sfumato.columns.levels import LevelKind

Column: TypeAlias = np.ndarray | Values
Table: TypeAlias = dict[str, Column]
"""Columns of some rows, all of one length: codes of labels, int64, or `Values`."""

Kinds: TypeAlias = Mapping[str, TabularKind]


def from_codes(kind: TabularKind, codes: np.ndarray) -> Column:
    """Return the values of codes, as they are written."""
    if isinstance(kind, NumericKind):
        return Values(*kind.decoded(np.asarray(codes, dtype=np.float64)))
    return np.asarray(codes).astype(np.int64)


def to_codes(kind: NumericKind, column: Values) -> np.ndarray:
    """Return the codes of numbers or dates; those outside the bounds are clamped."""
    lower, upper = kind.bounds
    span = max(float(upper - lower), np.finfo(float).tiny) if upper > lower else 1.0
    codes = np.clip((column.values - lower) / span, 0.0, 1.0)
    return np.where(column.absent, np.nan if kind.nullable else 0.5, codes)


def absent(kind: TabularKind, column: Column) -> np.ndarray:
    """Return which cells hold no value, shape (n,)."""
    if isinstance(column, Values):
        return column.absent
    assert isinstance(kind, LevelKind)
    return column == kind.n_levels - 1 if kind.nullable else np.zeros(column.size, dtype=bool)


def size(table: Mapping[str, Column]) -> int:
    """Return the number of rows."""
    return len(next(iter(table.values()))) if table else 0


def taken(table: Mapping[str, Column], rows: np.ndarray) -> Table:
    """Return some rows."""
    return {name: column[rows] for name, column in table.items()}


def put(table: Table, rows: np.ndarray, name: str, column: Column) -> None:
    """Write a column of some rows into a table, in place."""
    held = table[name]
    if isinstance(held, Values):
        assert isinstance(column, Values)
        held.values[rows], held.absent[rows] = column.values, column.absent
    else:
        assert isinstance(column, np.ndarray)
        held[rows] = column


def joined(tables: list[Table]) -> Table:
    """Return the rows of several tables, one after the other."""
    first, found = tables[0], {}
    for name, column in first.items():
        parts = [table[name] for table in tables]
        if isinstance(column, Values):
            numbers = [part for part in parts if isinstance(part, Values)]
            found[name] = Values(
                *(np.concatenate(p) for p in zip(*((n.values, n.absent) for n in numbers), strict=True))
            )
        else:
            found[name] = np.concatenate([part for part in parts if isinstance(part, np.ndarray)])
    return found


def step_of(kind: NumericKind) -> int:
    """Return the microseconds of a step of dates; 1 of numbers."""
    return MICROSECONDS[kind.resolution] if isinstance(kind, DateTime) else 1


def in_steps(kind: NumericKind, values: np.ndarray, step: int) -> np.ndarray:
    """Return numbers as they are, and dates as whole numbers of steps of so many microseconds."""
    return values * step_of(kind) // step if isinstance(kind, DateTime) else values


def from_steps(kind: NumericKind, values: np.ndarray, step: int) -> np.ndarray:
    """Return what `in_steps` gave; dates in their own steps, the first within a longer one."""
    return -(-(values * step) // step_of(kind)) if isinstance(kind, DateTime) else values


def fitted(kind: NumericKind, values: np.ndarray) -> np.ndarray:
    """Return the nearest values that a column can have."""
    lower, upper = kind.bounds
    snapped = getattr(kind, "snapped", None)
    if snapped is not None:
        return snapped(np.nan_to_num(np.asarray(values, dtype=np.float64)))
    if values.dtype.kind == "f":  # clamped before it is cast: an integer of 64 bits holds no more
        values = np.rint(np.clip(np.nan_to_num(values), lower, upper)).astype(np.int64)
    return np.clip(values, lower, upper)
