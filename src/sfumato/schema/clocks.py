"""Times of day beside dates: the clock of a column of moments, which is measured and modelled as one column more.

Cells of a column of moments that spans years are days and weeks wide: what happens between eight and eleven o'clock
would be drawn at any hour. So its time of day is a whole number of its own, of the same cell: one column more of the
same record, by which no norm, sensitivity or event is other than those of a table with that column.
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
    def times(self) -> Integer:
        """The kind of the times of day, in steps of the clock since midnight."""
        return Integer(lower=0, upper=self.per_day // self.width - 1, nullable=self.kind.nullable)

    def read(self, codes: np.ndarray) -> np.ndarray:
        """Return the codes of times of day of coded moments, shape (n,): each of its own alone, NaN where missing."""
        times = (self._steps(codes) % self.per_day) // self.width
        return np.where(np.isnan(codes), np.nan, times / self.times.upper)

    def set(self, codes: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return coded moments of the same days at other times, within the bounds; without a time, as they are."""
        first, last = self.kind.bounds
        steps = self._steps(codes)
        clock = np.rint(np.nan_to_num(times) * self.times.upper).astype(np.int64)
        moved = steps // self.per_day * self.per_day + clock * self.width + steps % self.width
        # days at the ends of the bounds may be no whole days
        moved = np.where((moved < first) | (moved > last) | np.isnan(times), steps, moved)
        return np.where(np.isnan(codes), np.nan, (moved - first) / (last - first))

    def _steps(self, codes: np.ndarray) -> np.ndarray:
        first, last = self.kind.bounds
        return np.rint(np.nan_to_num(codes) * (last - first)).astype(np.int64) + first


def clocks_of(schema: SchemaFacts, plan: RulePlan | None) -> dict[str, Clock]:
    """Return the clocks of released columns of moments by name: those finer than a day, over several days.

    Linked rows have none, nor what rules compute or model by its distance from another column.
    """
    if schema.unit is not None and schema.unit.linked:
        return {}
    clocks: dict[str, Clock] = {}
    for name, kind in schema.of_kind(DateTime).items():
        column = f"{name}: time of day"
        free = plan is None or (name not in plan.follows and plan.free.get(name, kind) == kind)
        if kind.is_clock or kind.microseconds >= MICROSECONDS["day"] or column in schema.columns or not free:
            continue
        clock = Clock(name, kind, column)
        first, last = kind.bounds
        if last - first >= _FEWEST_DAYS * clock.per_day:
            clocks[name] = clock
    return clocks


def with_clocks(codes: dict[str, np.ndarray], clocks: Mapping[str, Clock]) -> dict[str, np.ndarray]:
    """Return coded rows with the columns of times of day."""
    return codes | {clock.column: clock.read(codes[name]) for name, clock in clocks.items()}
