"""The objective of a softmax: slopes and curvature are those of its value, and 0 is best where blocks say no more."""

import numpy as np
import pytest

from sfumato.maths.constants import FIT
from sfumato.methods.tables.features import number_features
from sfumato.methods.tables.softmax_objective import Moments, Objective, SimulatedRows, _inverse_root

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


@pytest.mark.parametrize("joint", [True, False])
def test_the_curvature_is_that_of_the_value(joint, monkeypatch):
    """In its coordinates a step bends the value by 1 where they are joint, and by as much as any where they are not."""
    if not joint:
        monkeypatch.setitem(vars(FIT), "most_joint", 0)
    made = objective(slack=0.5)
    weights, tilts = anywhere(made)
    curvature = made.curvature(weights, tilts)
    step, bends = 0.02, []
    for seed in range(12):
        direction = rng(seed).standard_normal(weights.size + tilts.size)
        direction[weights.size :] *= 0.1  # the mean of a class's tilts changes nothing
        at, slope = along(made, weights, tilts, curvature.moved(direction))
        bent = (slope(at(step)) - slope(at(-step))) / (2 * step)
        bends.append(bent / (direction[: weights.size] ** 2).sum())
    # blocks' penalties bend less along a block than across it, and are taken as across
    assert 0.3 < np.median(bends) < 1.5
    assert max(bends) / min(bends) < (4 if joint else 8)


def test_coordinates_move_as_slopes_say():
    made = objective(slack=0.5)
    weights, tilts = anywhere(made)
    curvature = made.curvature(weights, tilts)
    z = rng(3).standard_normal(weights.size + tilts.size)
    gradient = made.evaluate(weights, tilts)
    by_weights, by_tilts = curvature.moved(z)
    direct = float((gradient.by_weights * by_weights).sum() + (gradient.by_tilts * by_tilts).sum())
    assert float(curvature.slope(gradient) @ z) == pytest.approx(direct, rel=1e-6)


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


@pytest.mark.parametrize("odd", [np.nan, np.inf, -1e9])
def test_coordinates_end_in_the_diagonal(odd):
    """Rounding may leave no root of a curvature: there is no loop without an end, and no number that is none."""
    matrices = np.tile(np.diag([4.0, 1.0, 9.0]), (2, 1, 1))
    matrices[0, 0, 1] = matrices[0, 1, 0] = odd
    roots = _inverse_root(matrices)
    assert np.isfinite(roots).all()
    assert roots[0].diagonal() == pytest.approx([1 / 2, 1.0, 1 / 3], rel=0.2)
