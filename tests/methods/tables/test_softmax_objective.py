"""The objective of a softmax: slopes are those of its value, and 0 is best where blocks say no more."""

import numpy as np
import pytest

from sfumato.methods.tables.features import number_features
from sfumato.methods.tables.softmax_objective import Moments, Objective, SimulatedRows

CLASSES, RUNS, INPUTS = 2, 7, 4


def rng(seed=0):
    return np.random.default_rng(seed)


def objective(*, slack=0.0, base=False, classes=CLASSES, n=400):
    """Any moments and shares, with blocks of two and of four entries."""
    shares = rng(1).dirichlet(np.full(RUNS, 5.0), classes)
    values = number_features(shares.mean(axis=0), False, 2).values
    features = rng(2).standard_normal((n, INPUTS)).astype(np.float32)
    features[:, 1] += features[:, 0]
    rows = SimulatedRows(features, rng(3).integers(0, classes, n))
    target = 0.1 * rng(4).standard_normal((2, INPUTS))
    moments = Moments(target, 0.01 * rng(5).random((2, INPUTS)), np.array([[0, 0, 1, 1], [2, 2, 1, 1]]))
    before = rng(6).standard_normal((2, INPUTS)) if base else None
    return Objective.of(rows, moments, values, shares, slack, before)


def anywhere(made, seed=7, size=0.3):
    """Some weights and tilts."""
    tilts = np.log(made.shares) + size * rng(seed + 1).standard_normal(made.shares.shape)
    return size * rng(seed).standard_normal(made.shape), tilts


def along(made, weights, tilts, direction):
    """The value and the slope by steps in a direction of weights and tilts."""
    by_weights, by_tilts = direction

    def at(step):
        return made.evaluate(weights + step * by_weights, tilts + step * by_tilts)

    return at, lambda g: float((g.by_weights * by_weights).sum() + (g.by_tilts * by_tilts).sum())


@pytest.mark.parametrize("slack", [0.0, 0.5])
@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("size", [0.3, 30.0])
def test_slopes_are_those_of_the_value(slack, base, classes, size):
    """Also where logits are so large that their exponentials are no 32-bit numbers."""
    made = objective(slack=slack, base=base, classes=classes)
    weights, tilts = anywhere(made, size=size)
    step = 1e-2  # logits are 32-bit numbers
    for seed in range(6):
        at, slope = along(made, weights, tilts, anywhere(made, seed, 1.0))
        numeric = (at(step).value - at(-step).value) / (2 * step)
        assert slope(at(0.0)) == pytest.approx(numeric, rel=2e-2, abs=2e-3 * size)


def test_the_objective_is_convex():
    made = objective(slack=0.5)
    for seed in range(20):
        (first, tilts), (second, others) = anywhere(made, seed, 1.0), anywhere(made, seed + 50, 1.0)
        ends = [made.evaluate(first, tilts).value, made.evaluate(second, others).value]
        assert made.evaluate((first + second) / 2, (tilts + others) / 2).value < np.mean(ends)


def test_nothing_is_best_where_no_block_says_more_than_its_slack():
    made = objective(slack=0.5)
    tilts = made.raked(np.zeros(made.shape), np.log(made.shares), 8)
    met = made.evaluate(np.zeros(made.shape), tilts).by_weights + made.target
    for part, silent in ((0.49, True), (0.51, False)):
        off = np.zeros(made.shape)
        off[0, :2] = part * np.sqrt(2) * made.deviations[0, :2] / np.sqrt(2)
        assert made.silent(-off) is silent
        made.target = met + off
        assert made.silent(made.evaluate(np.zeros(made.shape), tilts).by_weights) is silent


def test_raked_tilts_give_the_shares():
    made = objective()
    weights, tilts = anywhere(made)
    raked = made.raked(weights, tilts, 12)
    np.testing.assert_allclose(made.evaluate(weights, raked).by_tilts, 0.0, atol=1e-5)
