"""Times of day as a lens: a column more beside each column of moments, and moments at the times that are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.columns.kind import ColumnKind
from sfumato.lenses.lens import Sampler
from sfumato.schema.clocks import Clock, with_clocks


@dataclass(frozen=True, slots=True)
class ClocksLens:
    """Columns of moments.

    Attributes:
        clocks: the columns, with those of their times of day.
    """

    clocks: Mapping[str, Clock]

    def columns(self, columns: Mapping[str, ColumnKind]) -> dict[str, ColumnKind]:
        """Columns with times of day."""
        return {**columns} | {clock.column: clock.times for clock in self.clocks.values()}

    def code(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Records with times of day."""
        return with_clocks(rows, self.clocks)

    def rows(self, inner: Sampler) -> Sampler:
        """Rows whose moments have the times of day that are drawn beside them."""
        return ClockRows(self.clocks, inner)


class ClockRows:
    """Rows whose moments have the times of day that a sampler draws beside them.

    Args:
        clocks: the columns of moments.
        inner: a sampler of rows with times of day.
    """

    def __init__(self, clocks: Mapping[str, Clock], inner: Sampler) -> None:
        self._clocks, self._inner = clocks, inner
        self.width, self.class_column = inner.width + len(clocks), inner.class_column

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have."""
        return self._inner.possible

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded rows."""
        rows = dict(self._inner.rows(n, rng, classes))
        for name, clock in self._clocks.items():
            rows[name] = clock.set(rows[name], rows.pop(clock.column))
        return rows

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes."""
        given = {name: code for name, code in codes.items() if name in self._clocks}
        times = {self._clocks[name].column: self._clocks[name].read(np.array([code])) for name, code in given.items()}
        inner = self._inner.given({**codes, **{name: float(code[0]) for name, code in times.items()}})
        return ClockRows(self._clocks, inner)
