"""The curvature of a softmax's objective is that of its value, by few rows, and has a root whatever it is."""

import numpy as np
import pytest

from sfumato.maths.constants import FIT
from sfumato.methods.tables.features import number_features
from sfumato.methods.tables.softmax_curvature import _factor, exact_curvature, rough_curvature
from sfumato.methods.tables.softmax_objective import Moments, Objective, SimulatedRows

RUNS, INPUTS = 7, 4


def rng(seed=0):
    return np.random.default_rng(seed)


def objective(n=400, *, slack=0.0, classes=2):
    """Any moments and shares, with blocks of two and of four entries."""
    shares = rng(1).dirichlet(np.full(RUNS, 5.0), classes)
    values = number_features(shares.mean(axis=0), False, 2).values
    features = rng(2).standard_normal((n, INPUTS)).astype(np.float32)
    features[:, 1] += features[:, 0]
    rows = SimulatedRows(features, np.arange(n) % classes)
    moments = Moments(
        0.1 * rng(4).standard_normal((2, INPUTS)),
        0.01 * rng(5).random((2, INPUTS)),
        np.array([[0, 0, 1, 1], [2, 2, 1, 1]]),
    )
    return Objective.of(rows, moments, values, shares, slack, None)


def anywhere(made, size=0.3):
    """Some weights and tilts."""
    tilts = np.log(made.shares) + size * rng(8).standard_normal(made.shares.shape)
    return size * rng(7).standard_normal(made.shape), tilts


def bends(made, weights, tilts, direction, step=0.02):
    """By how much the slope along a direction changes with a step."""
    q, m = made.shape
    by_weights, by_tilts = direction[: q * m].reshape(q, m), direction[q * m :].reshape(tilts.shape)
    slopes = []
    for side in (step, -step):
        there = made.evaluate(weights + side * by_weights, tilts + side * by_tilts)
        slopes.append((there.by_weights * by_weights).sum() + (there.by_tilts * by_tilts).sum())
    return (slopes[0] - slopes[1]) / (2 * step)


def of(curvature, direction):
    """The curvature along a direction."""
    total, start = 0.0, 0
    for factor in curvature.factors:
        part = direction[start : start + len(factor)] @ np.tril(factor)
        total, start = total + part @ part, start + len(factor)
    return total


@pytest.mark.parametrize("size", [0.3, 2.0])
@pytest.mark.parametrize("rows", [400, 40_000])
def test_the_curvature_is_that_of_the_value(rows, size):
    """Of many rows some are chosen, which stand for the others."""
    made = objective(rows)
    weights, tilts = anywhere(made, size)
    curvature = exact_curvature(made, weights, tilts, made.evaluate(weights, tilts))
    for seed in range(8):
        direction = rng(seed).standard_normal(weights.size + tilts.size)
        assert of(curvature, direction) == pytest.approx(bends(made, weights, tilts, direction), rel=0.12)


def test_a_penalty_bends_no_more_than_its_curvature():
    """Along a block less than across it."""
    made = objective(slack=0.5)
    weights, tilts = anywhere(made)
    curvature = exact_curvature(made, weights, tilts, made.evaluate(weights, tilts))
    ratios = []
    for seed in range(8):
        direction = rng(seed).standard_normal(weights.size + tilts.size)
        ratios.append(bends(made, weights, tilts, direction) / of(curvature, direction))
    assert min(ratios) > 0.5
    assert max(ratios) < 1.05


def test_rows_that_are_sure_of_their_run_leave_the_curvature_to_the_others():
    """One row in a hundred has nearly all of it, and few rows would miss it."""
    made = objective(40_000, classes=1)
    sure = np.arange(40_000) % 100 > 0
    made.features[sure] = 0
    made.features[sure, 3] = 1
    weights = np.zeros(made.shape)
    weights[0, 3] = 40.0
    tilts = np.log(made.shares)
    curvature = exact_curvature(made, weights, tilts, made.evaluate(weights, tilts))
    direction = np.zeros(weights.size + tilts.size)
    direction[[0, 1, 5]] = 1.0, -0.5, 0.7
    assert of(curvature, direction) == pytest.approx(bends(made, weights, tilts, direction, 0.1), rel=0.15)


def test_at_no_weights_the_rough_curvature_is_the_exact_one():
    made = objective(40_000, classes=1)
    weights, tilts = np.zeros(made.shape), np.log(made.shares)
    rough = rough_curvature(made, weights, tilts)
    for seed in range(8):
        direction = rng(seed).standard_normal(weights.size + tilts.size)
        direction[weights.size :] = 0
        direction[INPUTS : weights.size] = 0  # features of a column do not go together over all of its rows
        assert of(rough, direction) == pytest.approx(bends(made, weights, tilts, direction), rel=0.12)


@pytest.mark.parametrize("slack", [0.0, 0.5])
def test_products_solve_a_slope_as_factors_do(slack, monkeypatch):
    made = objective(slack=slack)
    weights, tilts = anywhere(made, 1.0)
    slope = rng(3).standard_normal(weights.size + tilts.size)
    slope[weights.size :] -= np.repeat(slope[weights.size :].reshape(2, -1).mean(axis=1), RUNS)  # tilts' mean: nothing
    solutions = []
    for most in (1_000, 0):
        monkeypatch.setitem(vars(FIT), "most_joint", most)
        solutions.append(exact_curvature(made, weights, tilts, made.evaluate(weights, tilts)).solved(slope))
    assert slope @ solutions[1] == pytest.approx(slope @ solutions[0], rel=0.03)
    np.testing.assert_allclose(solutions[1], solutions[0], atol=0.1 * np.abs(solutions[0]).max())


@pytest.mark.parametrize("odd", [np.nan, np.inf, -1e9])
def test_steps_end_in_the_diagonal(odd):
    """Rounding may leave no root of a curvature: there is no loop without an end, and no number that is none."""
    matrix = np.diag([4.0, 1.0, 9.0])
    matrix[0, 1] = matrix[1, 0] = odd
    factor = np.tril(_factor(matrix))
    assert np.isfinite(factor).all()
    assert factor.diagonal() == pytest.approx([2.0, 1.0, 3.0], rel=0.2)
