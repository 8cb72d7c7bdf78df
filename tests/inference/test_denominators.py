"""Coefficients whose denominators noise hides: intervals of ratios, their coverage, and what is said of them."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns import Integer
from sfumato.inference.denominators import UNKNOWN, Denominators, Ratios
from sfumato.inference.families import LINEAR
from sfumato.inference.formulas import read_formula

Z = 1.959964
FORMULA = "calls ~ returns + orders"
COLUMNS = {
    "orders": Integer(lower=0, upper=8), "returns": Integer(lower=0, upper=16), "calls": Integer(lower=0, upper=5),
    "age": Integer(lower=18, upper=90),
}  # fmt: skip


def rows(n, seed):
    """Returns are 0 or 1 of nearly all, in bounds of 0 to 16."""
    rng = np.random.default_rng(seed)
    orders = np.minimum(rng.negative_binomial(1.2, 0.45, n), 8)
    returns = rng.binomial(orders, 0.06)
    calls = np.minimum(rng.poisson(0.2 + 0.1 * orders + 0.5 * returns), 5)
    return pd.DataFrame({"orders": orders, "returns": returns, "calls": calls, "age": rng.integers(18, 91, n)})


def schema(n, *questions):
    return Schema(columns=COLUMNS, rows=n, questions=questions)


@pytest.mark.parametrize("deviations", [0.5, 1.5, 3.0, 6.0])
@pytest.mark.parametrize("ratio", [0.0, 0.5, -2.0])
def test_intervals_of_ratios_cover(deviations, ratio):
    """Of a ratio whose denominator stands some deviations above its noise; a straight line's cover less."""
    rng = np.random.default_rng(1)
    below = 1 + rng.standard_normal(40_000) / deviations
    above = ratio + 0.2 * rng.standard_normal(40_000)
    value, above_noise = (part[below > 0.05] for part in (above / below, np.full(below.size, 0.2)))
    below = below[below > 0.05]  # others have no solution
    spread = (1 / deviations / below) ** 2
    errors = np.sqrt((above_noise / below) ** 2 + value**2 * spread)
    found = Ratios(errors, value * spread, spread)
    low, high = found.ends(Z)
    covered = np.mean((value - low <= ratio) & (ratio <= value + high))
    assert covered > 0.945
    straight = np.mean(np.abs(value - ratio) < Z * errors)
    if ratio and deviations < 2:
        assert straight < 0.9 < covered


def test_the_sign_may_be_known_where_the_size_is_not():
    [low], [high] = Ratios(np.array([0.3]), np.array([0.3]), np.array([0.32])).ends(Z)
    assert low < 1.0
    assert high == pytest.approx(UNKNOWN * Z * 0.3)
    assert Ratios(np.array([0.3]), np.array([0.3]), np.array([0.32])).statistics(np.ones(1))[0] > Z


def test_ends_are_where_the_test_has_its_level():
    """At an end the statistic of a coefficient that is that far off is z."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        error, spread = rng.uniform(0.1, 2), rng.uniform(0, 0.2)
        lean = rng.uniform(-1, 1) * error * np.sqrt(spread)
        of = Ratios(np.array([error]), np.array([lean]), np.array([spread]))
        [low], [high] = of.ends(Z)

        def missed(delta, error=error, lean=lean, spread=spread):
            return delta**2 - Z**2 * (error**2 + 2 * lean * delta + spread * delta**2)

        assert missed(high) == pytest.approx(0.0, abs=1e-6 * max(high, 1.0) ** 2)
        assert missed(-low) == pytest.approx(0.0, abs=1e-6 * max(low, 1.0) ** 2)
        level = optimize.brentq(lambda z, of=of, high=high: of.ends(z)[1][0] - high, 0.1, 5)
        assert level == pytest.approx(Z)
        assert abs(of.statistics(np.array([low]))[0]) == pytest.approx(Z)


def test_without_error_nothing_is_wider():
    of = Ratios(np.array([0.1, 0.0]), np.zeros(2), np.zeros(2))
    assert of.factors() == pytest.approx(np.ones(2))
    assert np.stack(of.ends(2.0)) == pytest.approx(np.array([[0.2, 0.0], [0.2, 0.0]]))


def test_others_move_with_a_coefficient_that_is_farther_off():
    of = Denominators(np.zeros(2), np.zeros(2), np.array([[1.0, -0.5], [0.25, 1.0]]))
    assert of.others(np.array([2.0, 1.0]), np.array([0.1, 0.1])) == pytest.approx(np.diag([0.0, 3 * 0.05**2]))
    assert of.others(np.ones(2), np.ones(2)) == pytest.approx(np.zeros((2, 2)))


def test_a_term_that_noise_hides_is_said_to_be_unknown():
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=2_000)
    found = method.fit(rows(4_000, 2), schema=schema(4_000, f"ols: {FORMULA}"), seed=2).ols(FORMULA)
    assert "differ in returns: its coefficient may be of any size" in found.rests_on
    assert found.conf_int().loc["returns", "high"] > 3
    assert found.bse["returns"] > 10 * abs(found.params["returns"])
    assert found.bse["orders"] < 0.2


def test_lean_and_spread_are_those_of_noise_drawn_again():
    """Coefficients and denominators under 600 draws of the noise about what was measured."""
    method = MaxEntropy(epsilon=3.0, delta=1e-6, calibration_rows=2_000)
    questions = method.fit(rows(4_000, 3), schema=schema(4_000), seed=3)._questions
    calibration, frame = questions.estimator(("returns", "orders"), "table").calibration, questions.measured.frame
    design = read_formula("returns ~ orders", list(frame.columns)).design(frame, calibration.weights, logistic=False)
    solution = LINEAR.solve(design.left, design.right, calibration.weights, "it", design.terms)
    found = Denominators.of(calibration, LINEAR, design, solution, design.present)
    centred = design.right @ found.along[1]  # the term less its mean
    rng, drawn = np.random.default_rng(4), []
    for _ in range(600):
        weights = calibration.redraw(rng)
        params = LINEAR.solve(design.left, design.right, weights, "it", design.terms).params
        drawn.append([params[1], weights @ centred**2])
    covariance, size = np.cov(np.transpose(drawn)), calibration.weights @ centred**2
    assert found.spread[1] == pytest.approx(covariance[1, 1] / size**2, rel=0.2)
    apart = np.sqrt(covariance[0, 0] * covariance[1, 1]) / size
    assert found.lean[1] == pytest.approx(-covariance[0, 1] / size, abs=0.15 * apart)


def test_without_noise_all_is_known():
    release = MaxEntropy(epsilon=NonPrivate(), calibration_rows=800).fit(rows(2_000, 3), schema=schema(2_000), seed=3)
    found = release.ols(FORMULA)
    assert "of any size" not in found.rests_on
    assert found.bse["returns"] < 0.1
    straight = found.params / found.bse
    assert found.tvalues.to_numpy() == pytest.approx(straight.to_numpy(), rel=0.05)


@pytest.mark.slow
def test_intervals_of_counts_in_wide_bounds_cover():
    """40 fits, ε = 1: of a count of 0 and 1 in bounds to 16, where a straight line's intervals covered 20 of 40."""
    from statsmodels.formula.api import ols

    truth, n = ols(FORMULA, rows(400_000, 1)).fit().params, 4_000
    method, covered = MaxEntropy(epsilon=1.0, delta=1e-6), {"returns": 0, "orders": 0}
    for seed in range(40):
        found = method.fit(rows(n, 10 + seed), schema=schema(n, f"ols: {FORMULA}"), seed=seed).ols(FORMULA)
        ends = found.conf_int()
        for term in covered:
            covered[term] += ends.loc[term, "low"] <= truth[term] <= ends.loc[term, "high"]
    assert min(covered.values()) >= 34, covered
