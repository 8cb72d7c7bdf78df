"""How rows of several tables follow each other, as their dates and labels show. Not private: for the holder's screen.

    order     the first date of a table, if rows above have several rows of it; else a whole number that is called one,
              or counts them
    within    the order's dates lie between two of the row above
    ends      a label that, wherever it stands, is the last row's
    rules     of a table with a row a unit at most: no row of others is behind its date

A proposal needs records that keep it, and would not if rows were dealt to others at random.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.columns.bounded import NumericKind
from sfumato.columns.dates import DateTime
from sfumato.columns.levels import LevelKind
from sfumato.columns.numbers import Integer
from sfumato.columns.roles import words_of
from sfumato.columns.wall_clock import moments_of
from sfumato.records.context import Level
from sfumato.records.database_records import DatabaseData
from sfumato.rules.cells import as_values
from sfumato.schema.database import Branch

_NEARLY_ALL = 0.995
_BY_CHANCE = 0.9  # of rows that are dealt at random
_FEWEST = 20  # rows that speak for a proposal
_LEAST_LIKELY = 1e-4  # that all rows of a label are the last ones by chance
_MOST_LABELS = 50
_TIME = re.compile(
    r"(?:.*(?:seq|dy|day|date|time|year|month|week|hour|wave|step)|t|sequence|round|tag|datum|zeit|jahr|monat|woche|welle|"
    r"jour|annee|mois|dia|fecha|ano|mes)"
)
_PLACE = re.compile(r".*(?:num|nr|number|nummer)|no|numero|lfd")
_BIRTH = {"birth", "dob", "born", "geburt", "geburtsdatum", "naissance", "nacimiento", "nascita", "birthdate"}


@dataclass(frozen=True, slots=True)
class RowOrdering:
    """What is proposed of a table.

    Attributes:
        order: the column by which its rows follow each other; None without.
        within: two columns of rows above between which it lies.
        ends: per column of labels, those after which there is no row.
    """

    order: str | None = None
    within: tuple[str, str] | None = None
    ends: tuple[tuple[str, tuple[str, ...]], ...] = ()


class TableOrders:
    """Proposals of orders from records that are read as a fit reads them.

    Args:
        data: of a database, without orders yet.
    """

    def __init__(self, data: DatabaseData) -> None:
        assert data.schema.tree is not None
        self._data, self._tree, self._kinds = data, data.schema.tree, data.schema.columns
        self.of = {branch.name: self._order(branch) for branch in self._tree.branches}
        self.of = {name: self._whole(self._tree.branch(name), order) for name, order in self.of.items()}

    def rules(self) -> Iterator[dict[str, Any]]:
        """Yield orders of columns of different tables: no row is behind the one row of another table."""
        for last in self._tree.branches:
            level = self._data.level(last.name)
            dates = [name for name in last.columns if self._is_date(name)]
            if last.of != self._tree.units or not dates or np.bincount(level.owners).max(initial=0) > 1:
                continue
            until = np.full(self._data.level(self._tree.units).size, np.nan)
            until[level.owners] = self._values(level, dates[0])
            for branch in self._tree.branches:
                order = self.of[branch.name].order
                if branch is not last and order is not None and self._is_date(order):
                    own = self._data.level(branch.name)
                    if self._keeps(self._values(own, order), until[own.owners]):
                        yield {"order": [order, dates[0]]}

    def _order(self, branch: Branch) -> RowOrdering:
        level = self._data.level(branch.name)
        if level.size < _FEWEST or np.bincount(level.above).max() < 2:
            return RowOrdering()
        dates = [name for name in branch.columns if self._is_date(name) and self._varies(level, name)]
        if dates:
            return RowOrdering(min(dates, key=lambda name: (self._n_before(level, name, dates), dates.index(name))))
        whole = [name for name in branch.columns if isinstance(self._kinds[name], Integer)]
        times = [name for name in whole if says_time(name) and self._varies(level, name)]
        counting = times or [name for name in whole if self._counts(level, name)]
        return RowOrdering(counting[0]) if counting else RowOrdering()

    def _whole(self, branch: Branch, order: RowOrdering) -> RowOrdering:
        """Return an order with the span in which it lies, and labels that end it."""
        if order.order is None:
            return order
        level = self._data.level(branch.name)
        return RowOrdering(
            order.order, self._within(branch, level, order.order), tuple(self._ends(branch, level, order.order))
        )

    def _is_date(self, name: str) -> bool:
        kind = self._kinds[name]
        return isinstance(kind, DateTime) and not kind.is_clock and not _BIRTH.intersection(words_of(name))

    def _values(self, level: Level, name: str) -> np.ndarray:
        """Return numbers, of dates their microseconds; NaN where missing."""
        kind = self._kinds[name]
        assert isinstance(kind, NumericKind)
        cells = as_values(kind, level.codes[name])
        values = np.asarray(cells.values, dtype=np.float64)
        if isinstance(kind, DateTime):
            values = moments_of(np.where(cells.absent, 0, values).astype(np.int64), kind.resolution).astype(np.float64)
        return np.where(cells.absent, np.nan, values)

    def _varies(self, level: Level, name: str) -> bool:
        """Whether rows of one row above have different dates, mostly."""
        values, again = self._values(level, name), np.diff(level.above) == 0
        return bool(np.mean(np.diff(values)[again] != 0) > 1 - _BY_CHANCE) if again.any() else False

    def _n_before(self, level: Level, name: str, dates: list[str]) -> int:
        """Return how many other dates of a row are before this one."""
        return sum(
            self._keeps(self._values(level, other), self._values(level, name)) for other in dates if other != name
        )

    def _counts(self, level: Level, name: str) -> bool:
        """Whether a column has whole numbers that differ among rows of one row above, and lie beside each other."""
        values = self._values(level, name)
        ranks = np.lexsort((values, level.above))
        steps, again = np.diff(values[ranks]), np.diff(level.above[ranks]) == 0
        return bool(again.any()) and bool(
            np.mean(steps[again] > 0) > _NEARLY_ALL and np.mean(steps[again] == 1) > _BY_CHANCE
        )

    def _keeps(self, first: np.ndarray, second: np.ndarray) -> bool:
        """Whether one number is not behind another in nearly all rows, which is no chance."""
        both = np.isfinite(first) & np.isfinite(second)
        first, second = first[both], second[both]
        if first.size < _FEWEST or np.mean(first <= second) < _NEARLY_ALL:
            return False
        return bool(np.mean(first <= np.roll(second, second.size // 2 + 1)) < _BY_CHANCE)

    def _within(self, branch: Branch, level: Level, order: str) -> tuple[str, str] | None:
        """Return two dates of the row above between which the order lies."""
        if branch.of == self._tree.units or not self._is_date(order):
            return None
        above = self._data.level(branch.of)
        dates = [name for name in self._tree.branch(branch.of).columns if self._is_date(name)]
        values = self._values(level, order)
        for start in dates:
            for end in dates:
                first, last = self._values(above, start), self._values(above, end)
                complete = not any(np.isnan(column).any() for column in (values, first, last))
                if start != end and complete and np.all(first <= last):
                    inside = (first[level.above] <= values) & (values <= last[level.above])
                    dealt = np.roll(level.above, level.size // 2 + 1)
                    chance = np.mean((first[dealt] <= values) & (values <= last[dealt]))
                    if inside.all() and chance < _BY_CHANCE:
                        return start, end
        return None

    def _ends(self, branch: Branch, level: Level, order: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield columns with the labels that are the last rows' alone."""
        values = np.nan_to_num(self._values(level, order), nan=-np.inf)
        latest = np.full(int(level.above.max()) + 1, -np.inf)
        np.maximum.at(latest, level.above, values)
        last = values == latest[level.above]
        counted = np.bincount(level.above)[level.above] < branch.max_rows  # of others rows may be missing
        for name in branch.columns:
            kind = self._kinds[name]
            if not isinstance(kind, LevelKind) or len(kind.labels) > _MOST_LABELS:
                continue
            codes, ends = np.asarray(level.codes[name]), []
            for code, label in enumerate(kind.labels):
                own = (codes == code) & counted
                rest = counted & ~own
                chance = np.mean(last[rest]) ** own.sum() if rest.any() else 1.0
                if own.any() and np.mean(last[own]) >= _NEARLY_ALL and chance < _LEAST_LIKELY:
                    ends.append(label)
            if ends and len(ends) < len(kind.labels):
                yield name, tuple(ends)


def says_time(name: str) -> bool:
    """Whether a column's name says that its numbers are times: a day, a year, a wave.

    Example:
        >>> says_time("day"), says_time("AESTDY"), says_time("school year"), says_time("days")
        (True, True, True, False)
    """
    return any(_TIME.fullmatch(word) for word in words_of(name))


def says_place(name: str) -> bool:
    """Whether a column's name says that its whole numbers are places in time, or count rows.

    Example:
        >>> says_place("wave"), says_place("VISITNUM"), says_place("school_id")
        (True, True, False)
    """
    return says_time(name) or any(_PLACE.fullmatch(word) for word in words_of(name))


def most_rows(counts: np.ndarray) -> int:
    """Return a round number of rows that nearly all rows above have at most, of the number of each, shape (n,)."""
    most = float(np.quantile(counts, 0.99)) if counts.size else 1.0
    rounds = (*range(1, 7), 8, 10, 12, 15, 20, 25, *range(30, 70, 10), 80, 100, 200, 250, *range(300, 700, 100), 800)
    return next((number for number in rounds if number >= most), 1_000)
