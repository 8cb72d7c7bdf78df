"""Columns beside dates: the signed time from one date of a row to another, and the time of day of a moment.

Cells of a date that spans years are days and weeks wide, and what a model knows of two of them together is smooth: a
discharge some days after its admission would be drawn as often before it. So the distance is a whole number of its own,
of the same two cells: one column more of the same record, by which no norm, sensitivity or event is other than those of
a table with that column.

Of a column of moments that spans years, what happens between eight and eleven o'clock would be drawn at any hour. So
its time of day is a column more of the same cell, likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.columns.dates import DateTime
from sfumato.columns.numbers import Integer
from sfumato.columns.wall_clock import MICROSECONDS
from sfumato.rules import RulePlan
from sfumato.schema.schema_facts import SchemaFacts

_FEWEST_DAYS = 3  # of a span in which clocks tell more than the moments themselves
_FEWEST_STEPS = 24  # of a date that has a distance: of fewer, each is a cell of its own
_OVERLAP = 0.25  # of all that two bounds span, the part that both do
_COARSE, _FINE = 0.25, 16  # of a distance, by which a date may be off; and steps up to which it may not
_ROUNDS = 4  # times that another row's distance is tried where a row's own leads out of the bounds


@final
@dataclass(frozen=True, slots=True)
class Clock:
    """A column of moments, and the column of whole numbers that says their time of day.

    Attributes:
        name: of the column of moments.
        kind: of its moments, finer than a day.
        column: name of the column of times of day.
    """

    name: str
    kind: DateTime
    column: str

    @property
    def per_day(self) -> int:
        """Steps of a day."""
        return MICROSECONDS["day"] // self.kind.microseconds

    @property
    def width(self) -> int:
        """Steps of the moments that are one step of the clock: a minute, or a step where that is longer."""
        return max(MICROSECONDS["minute"] // self.kind.microseconds, 1)

    @property
    def beside(self) -> Integer:
        """The kind of the times of day, in steps of the clock since midnight."""
        return Integer(lower=0, upper=self.per_day // self.width - 1, nullable=self.kind.nullable)

    def of(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return `read` of coded rows."""
        return self.read(rows[self.name])

    def read(self, codes: np.ndarray) -> np.ndarray:
        """Return the codes of times of day of coded moments, shape (n,): each of its own alone, NaN where missing."""
        times = (_steps(self.kind, codes) % self.per_day) // self.width
        return np.where(np.isnan(codes), np.nan, times / self.beside.upper)

    def set(self, codes: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return coded moments of the same days at other times, within the bounds; without a time, as they are."""
        first, last = self.kind.bounds
        steps = _steps(self.kind, codes)
        clock = np.rint(np.nan_to_num(times) * self.beside.upper).astype(np.int64)
        moved = steps // self.per_day * self.per_day + clock * self.width + steps % self.width
        # days at the ends of the bounds may be no whole days
        moved = np.where((moved < first) | (moved > last) | np.isnan(times), steps, moved)
        return np.where(np.isnan(codes), np.nan, (moved - first) / (last - first))


def _free_dates(schema: SchemaFacts, plan: RulePlan | None) -> list[tuple[str, DateTime]]:
    """Released columns of dates that no rule computes or models otherwise; none of linked rows."""
    if schema.unit is not None and schema.unit.linked:
        return []
    dates = {name: kind.wordless for name, kind in schema.of_kind(DateTime).items()}
    own = [(name, kind) for name, kind in dates.items() if isinstance(kind, DateTime)]
    return [(n, k) for n, k in own if plan is None or (n not in plan.follows and plan.free.get(n, k) == k)]


def clocks_of(schema: SchemaFacts, plan: RulePlan | None) -> dict[str, Clock]:
    """Return the clocks of released columns of moments by name: those finer than a day, over several days.

    Linked rows have none, nor what rules compute or model by its distance from another column.
    """
    clocks: dict[str, Clock] = {}
    for name, kind in _free_dates(schema, plan):
        column = f"{name}: time of day"
        if kind.is_clock or kind.microseconds >= MICROSECONDS["day"] or column in schema.columns:
            continue
        clock = Clock(name, kind, column)
        first, last = kind.bounds
        if last - first >= _FEWEST_DAYS * clock.per_day:
            clocks[name] = clock
    return clocks


@final
@dataclass(frozen=True, slots=True)
class Distance:
    """Two columns of dates of one resolution, and the column of whole numbers that says how far apart they are.

    Attributes:
        earlier: the column that is listed first.
        later: the other one, which is no earlier a date in every row.
        column: name of the column of distances.
        kinds: of the two.
    """

    earlier: str
    later: str
    column: str
    kinds: tuple[DateTime, DateTime]

    @property
    def beside(self) -> Integer:
        """The kind of distances, in steps of the two dates' resolution, below 0 where the later date lies before."""
        (a, b), (c, d) = (kind.bounds for kind in self.kinds)
        return Integer(lower=c - b, upper=d - a, nullable=True)

    def of(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return `read` of coded rows."""
        return self.read(rows[self.earlier], rows[self.later])

    def read(self, earlier: np.ndarray, later: np.ndarray) -> np.ndarray:
        """Codes of the distances of coded dates, shape (n,): each of its own two alone, NaN where one is missing."""
        first, last = self.beside.bounds
        apart = _steps(self.kinds[1], later) - _steps(self.kinds[0], earlier)
        return np.where(np.isnan(earlier) | np.isnan(later), np.nan, (apart - first) / (last - first))

    def moved(
        self, start: np.ndarray, codes: np.ndarray, apart: np.ndarray, rng: np.random.Generator, *, back: bool = False
    ) -> np.ndarray:
        """Coded dates at their distances from others, shape (n,); missing ones are missing.

        A row with a distance that leads out of the bounds takes that of another row; so does one without, where most
        rows have one, and else its date stays. What a distance is too coarse to say is said by the date as it was
        drawn: which day within a cell of it, and at what time.

        Args:
            start: codes of the dates that distances start from, the earlier ones; with `back` the later ones.
            codes: of the others, as they were drawn.
            apart: codes of distances; NaN where there is none.
            rng: source of (public) randomness.
            back: whether the earlier dates are moved.
        """
        both = ~(np.isnan(start) | np.isnan(codes))
        has = both & ~np.isnan(apart)
        known = np.flatnonzero(has)
        if not known.size:
            return codes
        other, own = (self.kinds[1], self.kinds[0]) if back else self.kinds
        origin, way = _steps(other, start), -1 if back else 1
        least, most = self.beside.bounds
        gaps = way * np.rint(apart[known] * (most - least) + least).astype(np.int64)
        of_row = rng.integers(gaps.size, size=apart.size)
        of_row[known] = np.arange(known.size)
        first, last = own.bounds
        gap = gaps[of_row]
        for _ in range(_ROUNDS):
            out = np.flatnonzero((origin + gap < first) | (origin + gap > last))
            gap[out] = gaps[rng.integers(gaps.size, size=out.size)]
        steps = np.clip(_nearest(own, origin + gap, _steps(own, codes), np.abs(gap)), first, last)
        some = both if 2 * known.size > both.sum() else has
        return np.where(some, (steps - first) / (last - first), codes)


def _nearest(kind: DateTime, steps: np.ndarray, own: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Dates at distances, or their own where these are as coarse; of a day and more apart, at their own time of day."""
    steps = np.where((apart > _FINE) & (np.abs(steps - own) <= _COARSE * apart), own, steps)
    per_day = MICROSECONDS["day"] // kind.microseconds
    if per_day < 2 or kind.is_clock:
        return steps
    off = (own - steps) % per_day
    off = np.where(off > per_day // 2, off - per_day, off)
    return np.where(apart >= per_day, steps + off, steps)


def _steps(kind: DateTime, codes: np.ndarray) -> np.ndarray:
    first, last = kind.bounds
    return np.rint(np.nan_to_num(codes) * (last - first)).astype(np.int64) + first


def distances_of(schema: SchemaFacts, plan: RulePlan | None) -> dict[str, Distance]:
    """Distances of released columns of dates by the name of the later: each has that from one before it at most.

    Of those listed before it, it is the one of the same resolution whose bounds are most alike, and of these the last.
    Linked rows have none, nor what rules compute or model by its distance from another column.
    """
    distances: dict[str, Distance] = {}
    before: dict[str, DateTime] = {}
    for name, kind in _free_dates(schema, plan):
        first, last = kind.bounds
        if last - first + 1 < _FEWEST_STEPS:
            continue
        alike = [
            (_overlap(kind, other), place, of)
            for place, (of, other) in enumerate(before.items())
            if other.resolution == kind.resolution and other.is_clock == kind.is_clock
        ]
        before[name] = kind
        part, _, earlier = max(alike, default=(0.0, 0, ""))
        column = f"{name}: time since {earlier}"
        if part >= _OVERLAP and column not in schema.columns:
            distances[name] = Distance(earlier, name, column, (before[earlier], kind))
    return distances


def _overlap(one: DateTime, other: DateTime) -> float:
    (a, b), (c, d) = one.bounds, other.bounds
    return (min(b, d) - max(a, c) + 1) / (max(b, d) - min(a, c) + 1)
