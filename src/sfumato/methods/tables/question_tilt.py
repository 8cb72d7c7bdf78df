"""Multipliers by which a table's samples are tilted to what named questions measured.

    min over λ   log E exp(λ·g) − λ·m + λᵀ V λ / 2

with E over the chain's rows, m what is known of the means of g, from all measurements of these columns, and V a part of
the standard deviations of their noise: of all laws with such means, nearly, the one nearest to the chain's. A
multiplier of 1 misses its mean by V, so that questions whose noise contradicts each other do not have multipliers of
any size. As noise vanishes the means are m.

Free: uses released values only.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.table_measurements import TableMeasurements
from sfumato.maths.constants import QUESTIONS
from sfumato.maths.streams import public_stream
from sfumato.measurements.cells import BaseCells, joint_cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.measurements.score_query import ONE, ScoreQuery
from sfumato.release.tilted_table import LARGEST_MULTIPLIER, Tilt, TiltQuery


def fit_tilts(measured: TableMeasurements, queries: Sequence[TiltQuery]) -> list[Tilt]:
    """Return the tilts of queries, of which the measurements hold noisy values."""
    names = sorted({cells.column for query in queries for cells in query.cells})
    goals = [_goal(measured, query, names) for query in queries]
    rows = dict(measured.simulated(QUESTIONS.simulated, public_stream(QUESTIONS.seed)))
    known = measured.labelled(rows, names)
    functions = [_Functions(query, BaseCells({name: rows[name][known] for name in names})) for query in queries]
    sizes = [goal[0].size for goal in goals]
    ends = np.cumsum([0, *sizes])
    means, slacks = (np.concatenate([goal[i] for goal in goals]) for i in (0, 1))

    def objective(multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        parts = [multipliers[a:b] for a, b in itertools.pairwise(ends)]
        exponents = sum(f.times(part) for f, part in zip(functions, parts, strict=True))
        top = float(np.max(exponents))
        chances = np.exp(exponents - top)
        whole = float(chances.sum())
        own = np.concatenate([f.mean(chances / whole) for f in functions])
        value = top + np.log(whole / chances.size) - multipliers @ means + slacks @ multipliers**2 / 2
        return float(value), own - means + slacks * multipliers

    limit = LARGEST_MULTIPLIER
    solution = optimize.minimize(
        objective, np.zeros(means.size), jac=True, method="L-BFGS-B", bounds=[(-limit, limit)] * means.size,
        options={"maxiter": QUESTIONS.steps, "ftol": 1e-12, "gtol": 1e-7},
    )  # fmt: skip
    return [Tilt(query, solution.x[a:b]) for query, (a, b) in zip(queries, itertools.pairwise(ends), strict=True)]


def _goal(measured: TableMeasurements, query: TiltQuery, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """What is known of the means of a query's functions, of rows with a label in the columns names, and V, (p,)."""
    columns = [cells.column for cells in query.cells]
    calibration = measured.calibration(measured_functions(measured, cell_functions(measured, columns)))
    weights = calibration.weights * measured.labelled(measured.free_codes, names)
    means = _Functions(query, measured.base).mean(weights / weights.sum())
    noise = next(m.noise_std for m in measured.release.measurements if m.query is query)
    if isinstance(query, MarginalQuery):
        means = np.maximum(means, 0.0)
    return means, np.full(means.size, QUESTIONS.ridge * noise / measured.size)


class _Functions:
    """Functions of a query on rows."""

    def __init__(self, query: TiltQuery, base: BaseCells) -> None:
        self._size = query.shape[-1]
        self._scores: np.ndarray | None = None
        if isinstance(query, ScoreQuery):
            self._scores = query.scores(base) / ONE
        else:
            (axes,) = query.tables
            self._places = joint_cells(axes, [base.of(axis) for axis in axes])

    def times(self, multipliers: np.ndarray) -> np.ndarray:
        """λ·g of rows, shape (n,)."""
        return multipliers[self._places] if self._scores is None else self._scores @ multipliers

    def mean(self, weights: np.ndarray) -> np.ndarray:
        """Means of g under weights of sum 1, shape (p,)."""
        if self._scores is not None:
            return weights @ self._scores
        return np.bincount(self._places, weights, self._size)
