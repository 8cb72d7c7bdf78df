"""Poisson and gamma regression: statsmodels' own without noise, within their errors with it, and refusals."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.genmod.families import Gamma, Poisson
from statsmodels.genmod.families.links import Log

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.families import FAMILIES

N = 4_000
LAWS = {"poisson": Poisson(), "gamma": Gamma(Log())}


def visits(seed=0):
    rng = np.random.default_rng(seed)
    x, second = rng.normal(size=N).clip(-4, 4), rng.random(N) < 0.4
    mean = np.exp(0.4 + 0.3 * x + 0.5 * second)
    return pd.DataFrame(
        {
            "x": x, "g": np.where(second, "b", "a"), "n": rng.poisson(mean).clip(0, 15),
            "c": rng.gamma(2.0, mean / 2).clip(0.001, 30),
        }
    )  # fmt: skip


def fitted(epsilon, **options):
    columns = {
        "x": {"kind": "continuous", "lower": -4, "upper": 4},
        "g": {"kind": "categorical", "categories": ["a", "b"]},
        "n": {"kind": "integer", "lower": 0, "upper": 15},
        "c": {"kind": "continuous", "lower": 0, "upper": 30},
    }
    return MaxEntropy(epsilon=epsilon).fit(
        visits(), schema=Schema.from_dict({"rows": N, "columns": columns}), **options
    )


@pytest.fixture(scope="module")
def fine():
    return fitted(NonPrivate())


@pytest.fixture(scope="module")
def noisy():
    return fitted(1.0, seed=2)


QUESTIONS = [("poisson", "n ~ x + C(g)"), ("gamma", "c ~ x"), ("gamma", "c ~ C(g)"), ("poisson", "c ~ x")]


@pytest.mark.parametrize(("family", "formula"), QUESTIONS)
def test_coefficients_are_those_of_statsmodels(fine, noisy, family, formula):
    wanted = smf.glm(formula, visits(), family=LAWS[family]).fit(cov_type="HC0")
    found = getattr(fine, family)(formula)
    assert set(found.params.index) == set(wanted.params.index)
    np.testing.assert_allclose(found.params[wanted.params.index], wanted.params, atol=0.02)
    np.testing.assert_allclose(found.parts["sampling"][wanted.bse.index], wanted.bse, rtol=0.2)
    unsure = getattr(noisy, family)(formula, target="table")
    assert (np.abs(unsure.params[wanted.params.index] - wanted.params) < 4 * unsure.bse[wanted.bse.index]).all()
    assert (unsure.bse > found.parts["unmeasured"]).all()


def test_families_solve_their_scores_on_weighted_rows():
    """The same solution as statsmodels with frequency weights, and influences that add up to 0."""
    table = visits()
    weights = np.random.default_rng(1).random(N) + 0.5
    right = np.column_stack([np.ones(N), table.x])
    for family, left in (("poisson", table.n), ("gamma", table.c)):
        fit = FAMILIES[family].solve(left.to_numpy(), right, weights, "it", ("Intercept", "x"))
        wanted = smf.glm("y ~ x", table.assign(y=left), family=LAWS[family], freq_weights=weights).fit().params
        np.testing.assert_allclose(fit.params, wanted, atol=1e-6)
        np.testing.assert_allclose(weights @ fit.influence, 0, atol=1e-6)
        assert not fit.doubt.any()


@pytest.mark.parametrize("family", ["ols", "logit", "poisson", "gamma"])
def test_weights_below_zero_leave_a_solution(family):
    """Where nothing but noise's weights tells two terms apart, those above 0 do; influences are derivatives."""
    rng = np.random.default_rng(3)
    x, n = rng.normal(size=(400, 2)), 400
    right = np.column_stack([np.ones(n), x[:, 0], x[:, 0] + 0.3 * x[:, 1]])
    eta = right @ [0.2, 0.5, -0.3]
    left = {
        "ols": eta + rng.normal(size=n), "logit": (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1.0,
        "poisson": rng.poisson(np.exp(eta)) * 1.0, "gamma": np.exp(eta) * rng.gamma(2.0, 0.5, n),
    }[family]  # fmt: skip
    weights = np.where(np.abs(x[:, 1]) > 1.2, -1.0, 1.0)
    assert np.linalg.eigvalsh((right * weights[:, None]).T @ right)[0] < 0

    def solved(weights):
        return FAMILIES[family].solve(left, right, weights, "it", ("Intercept", "x", "z"))

    fit = solved(weights)
    assert fit.doubt.any()
    for row in np.flatnonzero(weights > 0)[:3].tolist() + np.flatnonzero(weights < 0)[:3].tolist():
        step = 1e-5 * np.eye(n)[row]
        slope = (solved(weights + step).params - solved(weights - step).params) / 2e-5
        np.testing.assert_allclose(fit.influence[row], slope, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("family", ["ols", "logit"])
def test_a_few_weights_below_zero_change_nothing(family):
    """As noise vanishes the solution is that of all weights, to the last digit."""
    rng = np.random.default_rng(4)
    right = np.column_stack([np.ones(500), rng.normal(size=500)])
    left = (right[:, 1] + rng.normal(size=500) > 0) * 1.0
    weights = np.where(np.arange(500) < 5, -0.1, 1.0)
    fit = FAMILIES[family].solve(left, right, weights, "it", ("Intercept", "x"))
    mean = right @ fit.params if family == "ols" else 1 / (1 + np.exp(-right @ fit.params))
    np.testing.assert_allclose(right.T @ (weights * (left - mean)), 0, atol=1e-8)
    assert not fit.doubt.any()


def test_large_means_are_reached():
    left, right = np.full(50, 4_000.0), np.ones((50, 1))
    for family in ("poisson", "gamma"):
        params = FAMILIES[family].solve(left, right, np.ones(50), "it", ("Intercept",)).params
        assert params[0] == pytest.approx(np.log(4_000))


def test_groups_have_regressions_of_their_own(noisy):
    found = noisy.gamma("c ~ 1", by="g")
    assert set(found) == {"a", "b"}
    assert found["b"].params.iloc[0] > found["a"].params.iloc[0]


def test_gamma_of_three_columns_is_refused_and_says_why(noisy):
    with pytest.raises(EstimateError, match="those of poisson are of two"):
        noisy.gamma("c ~ x + C(g)")
    assert noisy.poisson("c ~ x + C(g)").kind == "Poisson"


def test_gamma_of_three_columns_one_of_them_the_target():
    found = fitted(NonPrivate(), target="g").gamma("c ~ x + C(g)")
    wanted = smf.glm("c ~ x + C(g)", visits(), family=LAWS["gamma"]).fit().params
    np.testing.assert_allclose(found.params[wanted.index], wanted, atol=0.03)


@pytest.mark.parametrize("family", ["poisson", "gamma"])
def test_a_left_side_below_0_is_refused(noisy, family):
    with pytest.raises(ConfigError, match="never below 0"):
        getattr(noisy, family)("x ~ n")
