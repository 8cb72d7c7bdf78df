"""Samples with times of day: moments at the times that a sampler draws for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.release.samplers import Sampler
from sfumato.schema.clocks import Clock, with_clocks


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


class CodedClocks:
    """Rows with the times of day of their moments: as records are coded for a fit."""

    def __init__(self, clocks: Mapping[str, Clock], inner: Sampler) -> None:
        self._clocks, self._inner = clocks, inner
        self.width, self.class_column = inner.width + len(clocks), inner.class_column

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have."""
        return self._inner.possible

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded rows."""
        return with_clocks(dict(self._inner.rows(n, rng, classes)), self._clocks)

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes."""
        return self._inner.given(codes)
