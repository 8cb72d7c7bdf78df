"""Cells of several columns as values that rules compare: codes of labels, and numbers or dates with a mask.

Rules are judged on what is written, not on codes: a code is a rounded position between two bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.dates import DateTime
from sfumato.columns.kind import TabularKind
from sfumato.columns.levels import LevelKind
from sfumato.columns.wall_clock import MICROSECONDS, Resolution, moments_of, steps_of

Column: TypeAlias = np.ndarray | Values
Table: TypeAlias = dict[str, Column]
"""Columns of some rows, all of one length: codes of labels, int64, or `Values`."""

Kinds: TypeAlias = Mapping[str, TabularKind]


def from_codes(kind: TabularKind, codes: np.ndarray) -> Column:
    """Return the values of codes, as they are written."""
    if isinstance(kind, NumericKind):
        return Values(*kind.decoded(np.asarray(codes, dtype=np.float64)))
    return np.asarray(codes).astype(np.int64)


def as_values(kind: NumericKind, column: Column) -> Values:
    """Return numbers or dates as they are written, of codes or of these."""
    return column if isinstance(column, Values) else Values(*kind.decoded(np.asarray(column, dtype=np.float64)))


def to_codes(kind: NumericKind, column: Values) -> np.ndarray:
    """Return the codes of numbers or dates; those outside the bounds are clamped."""
    lower, upper = kind.bounds
    span = max(float(upper - lower), np.finfo(float).tiny) if upper > lower else 1.0
    codes = np.clip((column.values - lower) / span, 0.0, 1.0)
    return np.where(column.absent, np.nan if kind.nullable else 0.5, codes)


def numeric(kinds: Kinds, name: str) -> NumericKind:
    """Return the kind of a column of numbers or dates."""
    kind = kinds[name]
    assert isinstance(kind, NumericKind)
    return kind


def numbers(table: Mapping[str, Column], name: str) -> Values:
    """Return a column of numbers or dates."""
    column = table[name]
    assert isinstance(column, Values)
    return column


def codes_of(kinds: Kinds, rows: Mapping[str, Column]) -> dict[str, np.ndarray]:
    """Return the codes of columns, of which some may be codes already."""
    return {
        name: to_codes(kinds[name], column) if isinstance(column, Values) else column  # type: ignore[arg-type]
        for name, column in rows.items()
    }


def absent(kind: TabularKind, column: Column) -> np.ndarray:
    """Return which cells hold no value, shape (n,)."""
    if isinstance(column, Values):
        return column.absent
    assert isinstance(kind, LevelKind)
    return column >= len(kind.labels)


def size(table: Mapping[str, Column]) -> int:
    """Return the number of rows."""
    return len(next(iter(table.values()))) if table else 0


def taken(table: Mapping[str, Column], rows: np.ndarray) -> Table:
    """Return some rows."""
    return {name: column[rows] for name, column in table.items()}


def put(table: Table, rows: np.ndarray, name: str, column: Column) -> None:
    """Write a column of some rows into a table, in place."""
    target = table[name]
    if isinstance(target, Values):
        assert isinstance(column, Values)
        target.values[rows], target.absent[rows] = column.values, column.absent
    else:
        assert isinstance(column, np.ndarray)
        target[rows] = column


def joined(tables: list[Table]) -> Table:
    """Return the rows of several tables, one after the other."""
    first, columns = tables[0], {}
    for name, column in first.items():
        parts = [table[name] for table in tables]
        if isinstance(column, Values):
            numbers = [part for part in parts if isinstance(part, Values)]
            columns[name] = Values(
                *(np.concatenate(p) for p in zip(*((n.values, n.absent) for n in numbers), strict=True))
            )
        else:
            columns[name] = np.concatenate([part for part in parts if isinstance(part, np.ndarray)])
    return columns


def resolution_of(kind: NumericKind) -> Resolution | None:
    """Return the step that values of dates count; None of numbers."""
    return kind.resolution if isinstance(kind, DateTime) else None


def coarsest(kinds: Iterable[NumericKind]) -> Resolution | None:
    """Return the longest step of some columns of dates; None of numbers."""
    resolutions: list[Resolution] = [kind.resolution for kind in kinds if isinstance(kind, DateTime)]
    return max(resolutions, key=MICROSECONDS.__getitem__, default=None)


def in_steps(kind: NumericKind, values: np.ndarray, resolution: Resolution | None) -> np.ndarray:
    """Return numbers as they are, and dates as whole numbers of other steps."""
    if not isinstance(kind, DateTime) or resolution in (None, kind.resolution):
        return values
    return steps_of(moments_of(values, kind.resolution), resolution)


def from_steps(kind: NumericKind, values: np.ndarray, resolution: Resolution | None) -> np.ndarray:
    """Invert `in_steps`; dates in their own steps, the first that begins within a longer one."""
    if not isinstance(kind, DateTime) or resolution in (None, kind.resolution):
        return values
    moments = moments_of(values, resolution)
    own = steps_of(moments, kind.resolution)
    return own + (moments_of(own, kind.resolution) < moments)


def fitted(kind: NumericKind, values: np.ndarray) -> np.ndarray:
    """Return the nearest values that a column can have."""
    lower, upper = kind.bounds
    snapped = getattr(kind, "snapped", None)
    if snapped is not None:
        return snapped(np.nan_to_num(np.asarray(values, dtype=np.float64)))
    if values.dtype.kind == "f":  # clamped before it is cast: an integer of 64 bits holds no more
        values = np.rint(np.clip(np.nan_to_num(values), lower, upper)).astype(np.int64)
    return np.clip(values, lower, upper)
