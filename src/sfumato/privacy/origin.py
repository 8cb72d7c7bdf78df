"""Where a released value comes from: the stage that paid for its noise, its public bound, and the grid it lies on.

Whoever holds a release can compare it with the certificate, without our code: `noise_std ÷ norm_bound` is the stage's
noise multiplier, and every entry of the value is a whole multiple of the grid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

Grid: TypeAlias = float | np.ndarray
"""One step for all entries, or steps that broadcast to the value."""

_SAME = 1e-9  # of a multiplier: noise and bound may have been divided by one weight
_OFF = 1e-3  # of a grid step
_ROUNDING = 2.0**-50  # of a value: it was multiplied by its step, and divided by a weight


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The event that a measurement came from.

    Attributes:
        stage: the certificate's stage that was charged.
        norm_bound: the most that one unit, with all its rows, adds to everything that the stage's event released, as
            an ℓ2 norm, in the units of this measurement.
        grid: values are whole multiples of it; None of noise in floating point.
        off_diagonal_grid: the same off the diagonal of symmetric matrices; None of others.
    """

    stage: str
    norm_bound: float
    grid: Grid | None = None
    off_diagonal_grid: Grid | None = None

    def divided(self, weight: float) -> Origin:
        """Return the origin of a value that was divided by a weight."""
        return replace(
            self,
            norm_bound=self.norm_bound / weight,
            grid=None if self.grid is None else self.grid / weight,
            off_diagonal_grid=None if self.off_diagonal_grid is None else self.off_diagonal_grid / weight,
        )

    def contradiction(self, value: np.ndarray, noise_std: float, multiplier: float) -> str | None:
        """Return how a measurement contradicts its stage's noise multiplier, or its grid; or None."""
        if abs(noise_std / self.norm_bound / multiplier - 1) > _SAME:
            return "states other noise than its stage in the certificate has"
        return None if self._on_grid(value) else "has values off the grid of its noise"

    def _on_grid(self, value: np.ndarray) -> bool:
        if self.grid is None:
            return True
        if self.off_diagonal_grid is None:
            return _multiples(value, self.grid)
        diagonal = np.eye(value.shape[-1], dtype=bool)
        return _multiples(value, self.grid, where=diagonal) and _multiples(
            value, self.off_diagonal_grid, where=~diagonal
        )


def _multiples(value: np.ndarray, grid: Grid, where: np.ndarray | bool = True) -> bool:
    """Whether all entries are whole multiples, as far as a 64-bit float can tell."""
    with np.errstate(all="ignore"):  # a stranger's numbers
        steps = np.abs(value / grid)
    if not np.isfinite(steps).all():
        return False
    return bool((np.abs(steps - np.rint(steps)) <= _OFF + _ROUNDING * steps).all(where=where))


def simplest(grid: Grid) -> Grid:
    """Return one step where all are the same."""
    steps = np.asarray(grid, dtype=np.float64)
    return float(steps.flat[0]) if steps.size and (steps == steps.flat[0]).all() else steps
