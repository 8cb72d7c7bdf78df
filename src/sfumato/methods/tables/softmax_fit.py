"""Fitting one column's softmax to released cross moments: convex, noise-aware block by block, solved.

The objective (`sfumato.methods.tables.softmax_objective`) bends unevenly, so each step is Newton's, as far as a
curvature that is taken anew every few steps knows it, corrected by the steps since then (L-BFGS; Nocedal and Wright
2006, chapter 7). Steps end where the next one would gain less than a tolerance.

At the optimum the value is the entropy of the run given the rows, so it is at least 0 where some law has these moments.
A value below 0 proves that none has: ⟨W, M⟩ is more than any law's. Then M is moved to the nearest moments, in units of
their noise, that these weights do not refute, and fitted again (cutting planes: Kelley 1960).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.maths.constants import FIT
from sfumato.methods.tables.softmax_curvature import Curvature, ProductCurvature, exact_curvature, rough_curvature
from sfumato.methods.tables.softmax_objective import Gradient, Moments, Objective, SimulatedRows


@dataclass(frozen=True, slots=True)
class SoftmaxFit:
    """A fitted softmax, and whether it is one.

    Attributes:
        weights: W, shape (q, m).
        tilts: shape (k, r).
        value: of the objective, in nats: below 0 no law has the moments.
        gain: that the next step would have, in nats; at most the tolerance where the fit converged.
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
    rows: SimulatedRows, moments: Moments, values: np.ndarray, shares: np.ndarray, *, slack: float, tolerance: float,
    base: np.ndarray | None = None, tilts: np.ndarray | None = None,
) -> SoftmaxFit:  # fmt: skip
    """Return the softmax of a column.

    Args:
        rows: simulated.
        moments: released, shrunk.
        values: features of the column's runs, shape (r, q); with a base, whatever more of them it has weights of.
        shares: P(run | class), shape (k, r).
        slack: c, noise deviations that are left.
        tolerance: in nats; the step that would gain less is not taken.
        base: weights that are already there, and are added to, shape (q or more, m).
        tilts: where tilts start, if not at the shares, shape (k, r).
    """
    objective = Objective.of(rows, moments, values, shares, slack, base)
    weights, tilts = np.zeros(objective.shape), np.log(objective.shares) if tilts is None else tilts
    if base is not None:
        tilts = objective.raked(weights, tilts, FIT.raking_rounds)
        slopes = objective.evaluate(weights, tilts)
        if objective.silent(slopes.by_weights):
            return SoftmaxFit(weights, tilts, slopes.value + objective.least, 0.0, 1, 0)
    cuts = steps = 0
    while True:
        solution = _minimised(objective, weights, tilts, tolerance)
        weights, tilts, steps = solution.weights, solution.tilts, steps + solution.steps
        value = solution.value + objective.least
        if value >= 0 or cuts == FIT.most_cuts:
            break
        _cut(objective, weights, FIT.least_entropy - value)
        level = np.log(objective.shares)
        weights, tilts, cuts = FIT.restart * weights, level + FIT.restart * (tilts - level), cuts + 1
    tilts = objective.raked(weights, tilts, FIT.raking_rounds)
    return SoftmaxFit(weights, tilts, value, solution.gain, steps, cuts)


class _Descent:
    """Steps from some weights and tilts to the least value of an objective; the value is its own, of whatever base."""

    def __init__(self, objective: Objective, weights: np.ndarray, tilts: np.ndarray, tolerance: float) -> None:
        self.objective, self.weights, self.tilts, self.tolerance = objective, weights, tilts, tolerance
        self.here = objective.evaluate(weights, tilts)
        self.steps, self.gain = 1, np.inf

    @property
    def goal(self) -> float:
        """The gain in nats of a step that is not worth taking."""
        # moments that are refuted anyway need no exact refutation
        return max(self.tolerance, -FIT.refuted * (self.here.value + self.objective.least))

    def round(self, curvature: Curvature | ProductCurvature, *, exact: bool = True) -> bool:
        """Take steps with one curvature; return whether they end because there is nothing to gain."""
        slope, part, trusted = _flat(self.here), 1.0, True
        changes: list[tuple[np.ndarray, np.ndarray]] = []
        for step in range(FIT.steps):
            direction = -_solved(slope, curvature, changes)
            self.gain = -0.5 * float(slope @ direction)
            if self.gain <= self.goal:
                return trusted
            value = self.here.value
            part = self._move(direction, 2 * self.gain, min(1.0, 2 * part))
            if not part:
                return exact and not step  # not even this curvature knows a way down
            before, slope = slope, _flat(self.here)
            if float((slope - before) @ direction) > 0:  # rounding may hide how the value bends
                changes.append((part * direction, slope - before))
            trusted = part == 1.0 and 0.5 < (value - self.here.value) / self.gain < 2.0
            if self.steps >= FIT.most_steps:
                return True
        return False

    def _move(self, direction: np.ndarray, fall: float, part: float) -> float:
        """Go a part of the way in a direction along which the value falls so steeply; return the part, 0 of none."""
        q, m = self.objective.shape
        by_weights, by_tilts = direction[: q * m].reshape(q, m), direction[q * m :].reshape(self.tilts.shape)
        for _ in range(FIT.halvings):
            weights, tilts = self.weights + part * by_weights, self.tilts + part * by_tilts
            beyond = self.objective.evaluate(weights, tilts)
            self.steps += 1
            excess = beyond.value - self.here.value + part * fall
            if excess <= (1 - FIT.least_fall) * part * fall:
                self.weights, self.tilts, self.here = weights, tilts, beyond
                return part
            best = fall * part / (2 * excess) if np.isfinite(excess) else 0.0  # of a parabola
            part *= min(max(best, 0.1), 0.5)
        return 0.0


def _minimised(objective: Objective, weights: np.ndarray, tilts: np.ndarray, tolerance: float) -> SoftmaxFit:
    """Minimise an objective from some weights and tilts; the value is its own, of whatever base."""
    descent = _Descent(objective, weights, tilts, tolerance)
    ended = (
        not weights.any()
        and objective.base is None
        and descent.round(rough_curvature(objective, weights, tilts), exact=False)
    )
    while not ended:
        ended = descent.round(exact_curvature(objective, descent.weights, descent.tilts, descent.here))
    return SoftmaxFit(descent.weights, descent.tilts, descent.here.value, descent.gain, descent.steps, 0)


def _flat(gradient: Gradient) -> np.ndarray:
    return np.concatenate([gradient.by_weights.ravel(), gradient.by_tilts.ravel()])


def _solved(
    slope: np.ndarray, curvature: Curvature | ProductCurvature, changes: list[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Return the inverse curvature times a slope, where steps since have changed the slope by so much."""
    rest, parts = slope, []
    for step, change in reversed(changes):
        parts.append(float(step @ rest) / float(step @ change))
        rest = rest - parts[-1] * change
    solution = curvature.solved(rest)
    for (step, change), part in zip(changes, reversed(parts), strict=True):
        solution = solution + step * (part - float(change @ solution) / float(step @ change))
    return solution


def _cut(objective: Objective, weights: np.ndarray, excess: float) -> None:
    """Move the moments to the nearest, in units of their noise, of which these weights say so much less."""
    own = None if objective.base is None else objective.base[: len(weights)]
    direction = weights if own is None else weights + own
    toward = objective.ridge * direction
    moved = toward * excess / float((toward * direction).sum())
    objective.target = objective.target - moved
    if own is not None:
        objective.least += float((own * moved).sum())
