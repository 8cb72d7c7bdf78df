"""A column's softmax is solved: moments and shares are met up to the slack, and what no table has is moved."""

import numpy as np
import pytest
from scipy import optimize

from sfumato.maths.constants import FIT
from sfumato.methods.tables.features import number_features
from sfumato.methods.tables.softmax_fit import fit_softmax
from sfumato.methods.tables.softmax_objective import Moments, Objective, SimulatedRows
from sfumato.models.tables.softmax_chain import SoftmaxChain, SoftmaxColumn
from sfumato.models.tables.softmax_draws import probabilities

CLASSES, RUNS, INPUTS = 2, 7, 4


def rng(seed=0):
    return np.random.default_rng(seed)


def outcome(rows, values, weights, tilts):
    """The moments of the fitted softmax over the rows, and its shares in each class."""
    chances = probabilities(rows.features @ weights.T.astype(np.float32), values, tilts, rows.classes)
    moments = (chances @ values).T @ rows.features / len(chances)
    shares = np.array([chances[rows.classes == k].mean(axis=0) for k in range(len(tilts))])
    return moments, shares


def possible(n=6_000, seed=8):
    """Rows, and moments and shares of a softmax over them."""
    values = number_features(rng(1).dirichlet(np.full(RUNS, 5.0)), False, 2).values
    rows = SimulatedRows(rng(2).standard_normal((n, INPUTS)).astype(np.float32), rng(3).integers(0, CLASSES, n))
    weights = 0.5 * rng(seed).standard_normal((2, INPUTS))
    tilts = 0.5 * rng(seed + 1).standard_normal((CLASSES, RUNS))
    return rows, values, weights, *outcome(rows, values, weights, tilts)


EXACT = np.zeros((2, INPUTS)), np.zeros((2, INPUTS), dtype=int)


def test_without_slack_moments_and_shares_are_met():
    rows, values, truth, moments, shares = possible()
    fit = fit_softmax(rows, Moments(moments, *EXACT), values, shares, slack=0.0, tolerance=1e-7)
    weights, tilts = fit.weights, fit.tilts
    met = outcome(rows, values, weights, tilts)
    np.testing.assert_allclose(met[0], moments, atol=2e-3)
    np.testing.assert_allclose(met[1], shares, atol=2e-4)
    np.testing.assert_allclose(weights, truth, atol=0.02)


def test_shares_are_met_after_few_steps():
    rows, values, _, moments, shares = possible()
    fit = fit_softmax(rows, Moments(moments, *EXACT), values, shares, slack=0.0, tolerance=0.1)
    weights, tilts = fit.weights, fit.tilts
    np.testing.assert_allclose(outcome(rows, values, weights, tilts)[1], shares, atol=6e-3)


def test_noise_on_near_copies_is_no_worse_than_nothing():
    """A regression on two near-copies whose moments noise moved apart would explain more than there is."""
    n = 6_000
    values = number_features(rng(1).dirichlet(np.full(RUNS, 5.0)), False, 2).values
    one = rng(2).standard_normal(n)
    features = np.stack([one, one + 1e-3 * rng(3).standard_normal(n)], axis=1).astype(np.float32)
    rows = SimulatedRows(features, np.zeros(n, dtype=int))
    moments = np.array([[0.9, -0.9], [0.0, 0.0]])
    wanted = Moments(moments, np.full((2, 2), 1.0), np.zeros((2, 2), dtype=int))
    shares = np.full((1, RUNS), 1 / RUNS)
    options = {"slack": 0.5, "tolerance": 1e-5}
    assert fit_softmax(rows, wanted, values, shares, **options).value < np.log(RUNS) + 0.1


def test_weights_that_are_there_are_added_to():
    """What they explain already needs no others."""
    rows, values, truth, moments, shares = possible()
    options = {"slack": 0.0, "tolerance": 1e-7}
    weights = fit_softmax(rows, Moments(moments, *EXACT), values, shares, base=truth, **options).weights
    np.testing.assert_allclose(weights, 0.0, atol=0.02)
    half = fit_softmax(rows, Moments(moments, *EXACT), values, shares, base=truth / 2, **options).weights
    np.testing.assert_allclose(half, truth / 2, atol=0.02)


@pytest.mark.parametrize("rho", [0.55, -0.55, 0.97])
def test_a_gaussian_pair_keeps_its_correlation(rho):
    """From the moment of two features to a fit and to draws."""
    runs, n = 48, 10_000
    shares = np.full(runs, 1 / runs)
    values = number_features(shares, False, 1).values
    z = rng().standard_normal((2, 400_000))
    z[1] = rho * z[0] + np.sqrt(1 - rho**2) * z[1]
    cells = [np.searchsorted(np.quantile(row, np.linspace(0, 1, runs + 1)[1:-1]), row) for row in z]
    moment = np.mean(values[cells[0], 0] * values[cells[1], 0])
    rows = SimulatedRows(values[np.arange(n) % runs].astype(np.float32), np.zeros(n, dtype=int))
    wanted = Moments(np.array([[moment]]), np.zeros((1, 1)), np.zeros((1, 1), dtype=int))
    fit = fit_softmax(rows, wanted, values, shares[None], slack=0.0, tolerance=1e-7)
    weights, tilts = fit.weights, fit.tilts
    column = SoftmaxColumn(shares, np.arange(runs), values, np.log(shares)[None], shares[None])
    chain = SoftmaxChain(
        np.ones(1),
        (column, SoftmaxColumn(shares, np.arange(runs), values, tilts, shares[None])),
        np.arange(2),
        np.array([[[0, 0], [weights[0, 0], 0]]]),
    )
    drawn = chain.sample(50_000, rng(1))[1]
    found = np.mean(values[drawn[:, 0], 0] * values[drawn[:, 1], 0])
    assert found == pytest.approx(moment, abs=0.01)
    assert np.corrcoef(values[drawn, 0].T)[0, 1] == pytest.approx(rho, abs=0.02)


def test_a_block_within_its_noise_stays_nothing():
    """Two blocks of moments: one of noise alone, one that stands out of it."""
    rows, values, _, _, shares = possible()
    std = 0.05
    target = std * rng(9).standard_normal((2, INPUTS))
    target *= 0.4 * std * np.sqrt(target.size) / np.linalg.norm(target)
    target[:, :2] = 0.0
    target[0, 0] = 0.4
    groups = np.array([[0, 0, 1, 1], [0, 0, 1, 1]])
    moments = Moments(target, np.full((2, INPUTS), std**2), groups)
    weights = fit_softmax(rows, moments, values, shares, slack=0.5, tolerance=1e-7).weights
    assert np.abs(weights[:, 2:]).max() < 0.01
    assert weights[0, 0] > 0.2
    free = fit_softmax(rows, moments, values, shares, slack=0.0, tolerance=1e-7).weights
    assert np.abs(free[:, 2:]).max() > 0.02


def test_the_slack_is_what_is_left_of_a_block():
    rows, values, _, _, shares = possible()
    std = 0.02
    target = np.zeros((2, INPUTS))
    target[0] = 0.3
    moments = Moments(target, np.full((2, INPUTS), std**2), np.zeros((2, INPUTS), dtype=int))
    fit = fit_softmax(rows, moments, values, shares, slack=0.5, tolerance=1e-7)
    weights, tilts = fit.weights, fit.tilts
    missed = np.linalg.norm(target - outcome(rows, values, weights, tilts)[0])
    assert missed == pytest.approx(0.5 * std * np.sqrt(target.size), rel=0.2)


def impossible(stated):
    """Two features of a column with such a correlation with each of two that have one of .2, and what was drawn."""
    rows, values, _, _, shares = possible()
    rows.features[:, 1] = 0.2 * rows.features[:, 0] + np.sqrt(1 - 0.2**2) * rng(11).standard_normal(len(rows.features))
    target = np.zeros((2, INPUTS))
    target[0, :2] = stated
    moments = Moments(target, np.full((2, INPUTS), 1e-4), np.zeros((2, INPUTS), dtype=int))
    fit = fit_softmax(rows, moments, values, shares, slack=0.5, tolerance=1e-7)
    return fit, outcome(rows, values, fit.weights, fit.tilts)[0]


def test_moments_of_no_table_are_moved_to_those_of_one():
    fit, met = impossible(0.7)
    assert fit.cuts > 0
    assert fit.value >= 0
    assert (met[0, :2] > 0.6).all()
    assert np.abs(met[:, 2:]).max() < 0.1


def test_moments_far_from_any_table_are_moved_towards_one(monkeypatch):
    """Until some table has them; each time lessens the weights, and what is drawn hardly differs after four."""
    fit, met = impossible(0.98)
    assert fit.value >= 0
    assert (met[0, :2] > 0.6).all()
    assert np.abs(met[:, 2:]).max() < 0.1
    monkeypatch.setitem(vars(FIT), "most_cuts", 0)
    unmoved, _ = impossible(0.98)
    assert unmoved.value < -1
    assert np.abs(fit.weights).max() < np.abs(unmoved.weights).max() / 5
    monkeypatch.setitem(vars(FIT), "most_cuts", 4)
    few, moved = impossible(0.98)
    assert unmoved.value < 50 * few.value < 0
    np.testing.assert_allclose(met, moved, atol=0.015)  # .011 on some processors


def test_moments_of_a_table_are_not_moved():
    rows, values, _, moments, shares = possible()
    fit = fit_softmax(rows, Moments(moments, *EXACT), values, shares, slack=0.0, tolerance=1e-7)
    assert fit.cuts == 0
    assert 0 < fit.value < np.log(RUNS)
    assert fit.gain < 3e-7


def test_moments_of_no_table_give_finite_weights():
    rows, values, _, _, shares = possible()
    target = np.full((2, INPUTS), 3.0)
    fit = fit_softmax(rows, Moments(target, *EXACT), values, shares, slack=0.0, tolerance=1e-7)
    weights, tilts = fit.weights, fit.tilts
    assert np.isfinite(weights).all()
    assert np.isfinite(tilts).all()


def test_the_objective_is_solved_where_plain_steps_are_not():
    """Moments of many small blocks, most of them noise: the objective bends by thousands more in some directions."""
    inputs, n, noise = 24, 3_000, 0.1
    shares = rng(1).dirichlet(np.full(RUNS, 5.0), CLASSES)
    values = number_features(shares.mean(axis=0), False, 2).values
    features = rng(2).standard_normal((n, inputs)).astype(np.float32)
    features[:, 1::2] += 2 * features[:, ::2]
    rows = SimulatedRows(features, rng(3).integers(0, CLASSES, n))
    truth = np.where(np.arange(inputs) < 3, 0.5, 0.0) * rng(4).standard_normal((2, inputs))
    target, _ = outcome(rows, values, truth, np.log(shares))
    target = target + noise * rng(5).standard_normal(target.shape)
    groups = np.tile(np.repeat(np.arange(inputs // 2), 2), (2, 1))
    moments = Moments(target, np.full(target.shape, noise**2), groups)
    fit = fit_softmax(rows, moments, values, shares, slack=0.5, tolerance=1e-6)
    objective = Objective.of(rows, moments, values, shares, 0.5, None)

    def slopes(x):
        found = objective.evaluate(x[: target.size].reshape(target.shape), x[target.size :].reshape(shares.shape))
        return found.value, np.concatenate([found.by_weights.ravel(), found.by_tilts.ravel()])

    start = np.concatenate([np.zeros(target.size), np.log(shares).ravel()])
    options = {"maxiter": fit.steps, "maxcor": 15, "ftol": 1e-12, "gtol": 1e-9}
    plain = optimize.minimize(slopes, start, jac=True, method="L-BFGS-B", options=options)
    assert fit.cuts == 0
    assert fit.steps < 80
    assert fit.gain < 3e-6
    assert fit.value < plain.fun - 1e-4
    longer = optimize.minimize(
        slopes, plain.x, jac=True, method="L-BFGS-B", options={**options, "maxiter": 20_000, "maxfun": 40_000}
    )
    assert fit.value < longer.fun + 2e-5


def test_classes_that_are_never_simulated_and_runs_without_mass():
    rows, values, _, moments, shares = possible()
    shares = np.concatenate([shares, shares[:1]])
    shares[:, 2] = 0
    shares /= shares.sum(axis=1, keepdims=True)
    fit = fit_softmax(rows, Moments(moments, *EXACT), values, shares, slack=0.0, tolerance=1e-7)
    weights, tilts = fit.weights, fit.tilts
    assert tilts.shape == (3, RUNS)
    assert np.isfinite(weights).all()
    assert np.isfinite(tilts).all()
    assert outcome(rows, values, weights, tilts[:2])[1][:, 2].max() < 1e-6
