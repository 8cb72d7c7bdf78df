"""Fitting one column's softmax to released cross moments: convex, noise-aware block by block, solved.

The objective (`sfumato.methods.tables.softmax_objective`) bends unevenly: by tens of thousands where a block says less
than its slack, hardly at all where rows leave no doubt. So it is minimised in coordinates in which its curvature is
about even, taken anew every few steps of L-BFGS, until steps gain less than a tolerance.

At the optimum the value is the entropy of the run given the rows, so it is at least 0 where some law has these moments.
A value below 0 proves that none has: ⟨W, M⟩ is more than any law's. Then M is moved to the nearest moments, in units of
their noise, that these weights do not refute, and fitted again (cutting planes: Kelley 1960).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from sfumato.maths.constants import FIT
from sfumato.methods.tables.softmax_objective import Curvature, Moments, Objective, SimulatedRows

_SMALL = 1e-8


@dataclass(frozen=True, slots=True)
class SoftmaxFit:
    """A fitted softmax, and whether it is one.

    Attributes:
        weights: W, shape (q, m).
        tilts: shape (k, r).
        value: of the objective, in nats: below 0 no law has the moments.
        gain: of the last steps together, in nats; at most three tolerances where the fit converged.
        steps: evaluations of the objective.
        cuts: how often the moments were moved to what laws can have.
    """

    weights: np.ndarray
    tilts: np.ndarray
    value: float
    gain: float
    steps: int
    cuts: int


@np.errstate(over="ignore", under="ignore", invalid="ignore")  # invalid: some libraries say so of finite numbers
def fit_softmax(
    rows: SimulatedRows,
    moments: Moments,
    values: np.ndarray,
    shares: np.ndarray,
    *,
    slack: float,
    tolerance: float,
    score: int | None,
    base: np.ndarray | None = None,
    tilts: np.ndarray | None = None,
) -> SoftmaxFit:
    """Return the softmax of a column.

    Args:
        rows: simulated.
        moments: released, shrunk.
        values: features of the column's runs, shape (r, q).
        shares: P(run | class), shape (k, r).
        slack: c, noise deviations that are left.
        tolerance: in nats; steps that gain less are the last.
        score: place of the normal score among the features, if there is one.
        base: weights that are already there, and are added to, shape (q, m).
        tilts: where tilts start, if not at the shares, shape (k, r).
    """
    objective = Objective.of(rows, moments, values, shares, slack, base)
    weights, tilts = _start(objective, score, tilts)
    if base is not None:
        tilts = objective.raked(weights, tilts, FIT.raking_rounds)
        slopes = objective.evaluate(weights, tilts)
        if objective.silent(slopes.by_weights):
            return SoftmaxFit(weights, tilts, slopes.value + objective.least, 0.0, 1, 0)
    if len(rows.features) >= FIT.thinned * FIT.thinned_rows:
        first = _minimised(objective.thinned(FIT.thinned), weights, tilts, tolerance)
        weights, tilts = first.weights, first.tilts
    cuts = steps = 0
    while True:
        solution = _minimised(objective, weights, tilts, tolerance)
        weights, tilts, steps = solution.weights, solution.tilts, steps + solution.steps
        value = solution.value + objective.least
        if value >= 0 or cuts == FIT.most_cuts:
            break
        _cut(objective, weights, FIT.least_entropy - value)
        weights, cuts = FIT.restart * weights, cuts + 1
    tilts = objective.raked(weights, tilts, FIT.raking_rounds)
    return SoftmaxFit(weights, tilts, value, solution.gain, steps, cuts)


def _start(objective: Objective, score: int | None, tilts: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return where to start: a normal variable's regression on the features, or their linear response.

    Noise on moments of near-copies may make the regression explain more than there is: far worse than nothing.
    """
    nothing = np.zeros(objective.shape), np.log(objective.shares) if tilts is None else tilts
    if objective.base is not None:
        return nothing
    start = _regressed(objective, score, nothing[1])
    worse = objective.evaluate(*start).value - objective.evaluate(*nothing).value
    return nothing if worse > FIT.worse_than_nothing else start


def _regressed(objective: Objective, score: int | None, tilts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weights = np.zeros(objective.shape)
    regression = objective.regression()
    if score is None:
        largest = np.abs(objective.values).max(axis=0, initial=0.0).astype(np.float64)
        return regression * np.minimum(1.0, FIT.reach / np.maximum(largest, _SMALL))[:, None], tilts
    explained = min(max(float(regression[score] @ objective.target[score]), 0.0), FIT.most_explained)
    weights[score] = regression[score] / (1 - explained)
    score_values = objective.values[:, score].astype(np.float64)
    return weights, tilts - score_values**2 / 2 * explained / (1 - explained)


def _minimised(objective: Objective, weights: np.ndarray, tilts: np.ndarray, tolerance: float) -> SoftmaxFit:
    """Minimise an objective from some weights and tilts; the value is its own, of whatever base."""
    value, gain, steps, left = objective.evaluate(weights, tilts).value, np.inf, 1, FIT.most_steps
    # moments that are refuted anyway need no exact refutation
    while left > 0 and gain > max(3 * tolerance, -FIT.refuted * (value + objective.least)):
        curvature = objective.curvature(weights, tilts)
        relative = tolerance / max(abs(value), 1.0)
        options = {"maxiter": min(FIT.steps, left), "maxcor": FIT.steps, "ftol": relative, "gtol": FIT.gradient}
        result = optimize.minimize(
            _slopes,
            np.zeros(weights.size + tilts.size),
            args=(objective, curvature, weights, tilts),
            jac=True,
            method="L-BFGS-B",
            options=options,
        )
        by_weights, by_tilts = curvature.moved(result.x)
        weights, tilts = weights + by_weights, tilts + by_tilts
        gain, value = value - float(result.fun), float(result.fun)
        steps, left = steps + result.nfev, left - max(result.nit, 1)
    return SoftmaxFit(weights, tilts, value, gain, steps, 0)


def _slopes(
    z: np.ndarray, objective: Objective, curvature: Curvature, weights: np.ndarray, tilts: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the value and its slopes by coordinates, at a step from weights and tilts."""
    by_weights, by_tilts = curvature.moved(z)
    gradient = objective.evaluate(weights + by_weights, tilts + by_tilts)
    return gradient.value, curvature.slope(gradient)


def _cut(objective: Objective, weights: np.ndarray, excess: float) -> None:
    """Move the moments to the nearest, in units of their noise, of which these weights say so much less."""
    direction = weights if objective.base is None else weights + objective.base
    toward = objective.ridge * direction
    moved = toward * excess / float((toward * direction).sum())
    objective.target = objective.target - moved
    if objective.base is not None:
        objective.least += float((objective.base * moved).sum())
