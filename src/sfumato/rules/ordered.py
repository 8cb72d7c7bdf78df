"""Rules of order: columns that do not go down, and a column between two others or public numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato.columns.bounded import NumericKind
from sfumato.columns.wall_clock import Resolution
from sfumato.rules.cells import Kinds, Table, coarsest, fitted, from_steps, in_steps, numbers, numeric
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
        return coarsest(numeric(self.kinds, name) for name in self.names)

    def broken(self, table: Table) -> np.ndarray:
        """Return which rows go down somewhere."""
        mask, highest, known = self._start(table)
        for name in self.names:
            column = numbers(table, name)
            values = in_steps(numeric(self.kinds, name), column.values, self.step)
            mask |= known & ~column.absent & (values < highest)
            highest = np.where(column.absent, highest, np.where(known, np.maximum(highest, values), values))
            known |= ~column.absent
        return mask

    def project(self, table: Table, frozen: Frozen) -> None:
        """Raise what is below the one before it; lower what is above one that is given."""
        self._move(table, frozen, up=True)
        if any(name in frozen for name in self.names):
            self._move(table, frozen, up=False)

    def _move(self, table: Table, frozen: Frozen, *, up: bool) -> None:
        """Raise values to the highest before them, or lower them to the lowest behind them."""
        beyond, outer = (np.less, np.maximum) if up else (np.greater, np.minimum)
        _, limit, known = self._start(table)
        for name in self.names if up else reversed(self.names):
            kind, column = numeric(self.kinds, name), numbers(table, name)
            values = in_steps(kind, column.values, self.step)
            wrong = known & ~column.absent & beyond(values, limit)
            if name not in frozen and wrong.any():
                column.values[wrong] = _nearest(kind, limit[wrong], self.step, up=up)
                values = in_steps(kind, column.values, self.step)
            limit = np.where(column.absent, limit, np.where(known, outer(limit, values), values))
            known |= ~column.absent

    def _start(self, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first = numbers(table, self.names[0])
        whole = all(numbers(table, name).values.dtype.kind == "i" for name in self.names)
        nothing = np.zeros(len(first), dtype=bool)
        return nothing.copy(), np.zeros(len(first), dtype=np.int64 if whole else np.float64), nothing


def _nearest(kind: NumericKind, values: np.ndarray, step: Resolution | None, *, up: bool) -> np.ndarray:
    """Return the smallest values of a column not below others, or the largest not above, where its bounds allow."""
    own = from_steps(kind, values, step)
    nearest = fitted(kind, own)
    wrong = nearest < own if up else nearest > own
    resolution = getattr(kind, "resolution", None)
    width = resolution if isinstance(resolution, float) else 1 if nearest.dtype.kind == "i" else 0
    if wrong.any() and width:
        nearest[wrong] = fitted(kind, nearest[wrong] + (width if up else -width))
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
        column = numbers(table, self.column)
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
        column = numbers(table, self.column)
        rows = np.flatnonzero(self.broken(table))
        if rows.size:
            clamped = np.clip(column.values[rows], self.lower, self.upper)
            column.values[rows] = fitted(numeric(self.kinds, self.column), clamped)
