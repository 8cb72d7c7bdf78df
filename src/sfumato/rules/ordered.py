"""Rules of order: columns that do not go down, and a column between two others or public numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.resolutions import Resolution
from sfumato.rules.cells import Kinds, Table, coarsest, fitted, from_steps, in_steps
from sfumato.rules.rule import Frozen, Rule


@final
@dataclass(frozen=True, slots=True, eq=False)
class Order(Rule):
    """Columns that do not go down from one to the next; a missing cell is passed over.

    Dates are compared in whole steps of the coarser resolution.

    Attributes:
        names: the columns, in order.
        kinds: the kinds of all columns.
    """

    place: str
    names: tuple[str, ...]
    kinds: Kinds

    @property
    def columns(self) -> tuple[str, ...]:
        """Those in order."""
        return self.names

    @property
    def step(self) -> Resolution | None:
        """The coarsest resolution of dates; None of numbers."""
        return coarsest(self._kind(name) for name in self.names)

    def broken(self, table: Table) -> np.ndarray:
        """Return which rows go down somewhere."""
        mask, highest, known = self._start(table)
        for name in self.names:
            column = _numbers(table, name)
            values = in_steps(self._kind(name), column.values, self.step)
            mask |= known & ~column.absent & (values < highest)
            highest = np.where(column.absent, highest, np.where(known, np.maximum(highest, values), values))
            known |= ~column.absent
        return mask

    def project(self, table: Table, frozen: Frozen) -> None:
        """Raise what is below the one before it; lower what is above one that is given."""
        self._raise(table, frozen)
        if any(name in frozen for name in self.names):
            self._lower(table, frozen)

    def _raise(self, table: Table, frozen: Frozen) -> None:
        _, highest, known = self._start(table)
        for name in self.names:
            kind, column = self._kind(name), _numbers(table, name)
            values = in_steps(kind, column.values, self.step)
            low = known & ~column.absent & (values < highest)
            if name not in frozen and low.any():
                column.values[low] = _at_least(kind, highest[low], self.step)
                values = in_steps(kind, column.values, self.step)
            highest = np.where(column.absent, highest, np.where(known, np.maximum(highest, values), values))
            known |= ~column.absent

    def _lower(self, table: Table, frozen: Frozen) -> None:
        _, lowest, known = self._start(table)
        for name in reversed(self.names):
            kind, column = self._kind(name), _numbers(table, name)
            values = in_steps(kind, column.values, self.step)
            high = known & ~column.absent & (values > lowest)
            if name not in frozen and high.any():
                column.values[high] = _at_most(kind, lowest[high], self.step)
                values = in_steps(kind, column.values, self.step)
            lowest = np.where(column.absent, lowest, np.where(known, np.minimum(lowest, values), values))
            known |= ~column.absent

    def _start(self, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first = _numbers(table, self.names[0])
        whole = all(_numbers(table, name).values.dtype.kind == "i" for name in self.names)
        nothing = np.zeros(len(first), dtype=bool)
        return nothing.copy(), np.zeros(len(first), dtype=np.int64 if whole else np.float64), nothing

    def _kind(self, name: str) -> NumericKind:
        kind = self.kinds[name]
        assert isinstance(kind, NumericKind)
        return kind


def _numbers(table: Table, name: str) -> Values:
    column = table[name]
    assert isinstance(column, Values)
    return column


def _at_least(kind: NumericKind, values: np.ndarray, step: Resolution | None) -> np.ndarray:
    """Return the smallest values of a column that are not below others, where its bounds allow."""
    own = from_steps(kind, values, step)
    nearest = fitted(kind, own)
    below = nearest < own
    resolution = getattr(kind, "resolution", None)
    if below.any() and isinstance(resolution, float):
        nearest[below] = fitted(kind, nearest[below] + resolution)
    elif below.any() and nearest.dtype.kind == "i":
        nearest[below] = fitted(kind, nearest[below] + 1)
    return nearest


def _at_most(kind: NumericKind, values: np.ndarray, step: Resolution | None) -> np.ndarray:
    """Return the largest values of a column that are not above others, where its bounds allow."""
    own = from_steps(kind, values, step)
    nearest = fitted(kind, own)
    above = nearest > own
    resolution = getattr(kind, "resolution", None)
    if above.any() and isinstance(resolution, float):
        nearest[above] = fitted(kind, nearest[above] - resolution)
    elif above.any() and nearest.dtype.kind == "i":
        nearest[above] = fitted(kind, nearest[above] - 1)
    return nearest


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bound(Rule):
    """A column is not below, or not above, a public number or date; a missing cell keeps it.

    Attributes:
        column: the column.
        kinds: the kinds of all columns.
        lower: the smallest value, in the column's own units; None for none.
        upper: the largest.
    """

    place: str
    column: str
    kinds: Kinds
    lower: Any
    upper: Any

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    @property
    def points(self) -> dict[str, list[float]]:
        """The bounds."""
        return {self.column: [bound for bound in (self.lower, self.upper) if bound is not None]}

    def broken(self, table: Table) -> np.ndarray:
        """Return which rows are outside."""
        column = _numbers(table, self.column)
        mask = np.zeros(len(column), dtype=bool)
        if self.lower is not None:
            mask |= column.values < self.lower
        if self.upper is not None:
            mask |= column.values > self.upper
        return mask & ~column.absent

    def project(self, table: Table, frozen: Frozen) -> None:
        """Clamp."""
        if self.column in frozen:
            return
        column = _numbers(table, self.column)
        rows = np.flatnonzero(self.broken(table))
        if rows.size:
            kind = self.kinds[self.column]
            assert isinstance(kind, NumericKind)
            clamped = np.clip(column.values[rows], self.lower, self.upper)
            column.values[rows] = fitted(kind, clamped)
