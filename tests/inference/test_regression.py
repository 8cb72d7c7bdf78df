"""Regressions: statsmodels' own without noise, within their errors with it, and formulas that are none."""

import json

import numpy as np
import pytest
import statsmodels.formula.api as smf

from fixtures.costly import slow_after
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.families import LOGISTIC

FORMULAS = ["y ~ x + u + C(z)", "y ~ x * C(z)", "y ~ C(w) + C(z)", "x ~ y - 1"]


def real(formula, table, *, logistic=False):
    own = table.assign(w=(table.w == "yes").astype(float)) if formula.startswith("w") else table
    return (smf.logit if logistic else smf.ols)(formula, own).fit(disp=0).params


@pytest.mark.parametrize("formula", slow_after(2, FORMULAS))
def test_least_squares_without_noise_is_the_tables(exact, table, formula):
    found, wanted = exact.ols(formula, target="table"), real(formula, table)
    assert set(found.params.index) == set(wanted.index)
    np.testing.assert_allclose(found.params[wanted.index], wanted, atol=0.02)
    assert (found.parts["noise"] == 0).all()


def test_logistic_regression_without_noise_is_the_tables(exact, table):
    found, wanted = exact.logit("w ~ x + u", target="table"), real("w ~ x + u", table, logistic=True)
    np.testing.assert_allclose(found.params[wanted.index], wanted, atol=0.04)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("target", ["table", "population"])
def test_coefficients_are_within_their_errors(release, table, formula, target):
    found, wanted = release.ols(formula, target=target), real(formula, table)
    assert (np.abs(found.params[wanted.index] - wanted) < 5 * found.bse[wanted.index]).all()
    assert np.allclose((found.parts**2).sum(axis=1), found.bse**2)


def test_logits_are_within_their_errors(release, table):
    found, wanted = release.logit("w ~ x + u"), real("w ~ x + u", table, logistic=True)
    assert (np.abs(found.params[wanted.index] - wanted) < 5 * found.bse[wanted.index]).all()


def test_sampling_errors_are_those_of_the_table(release, exact, table):
    """What sampling adds is statsmodels' standard error; more where noise leaves too little of negative weights."""
    formula = "y ~ x + u + C(z)"
    own = smf.ols(formula, table).fit(cov_type="HC1").bse
    np.testing.assert_allclose(exact.ols(formula).parts["sampling"][own.index], own, rtol=0.1)
    noisy = release.ols(formula).parts["sampling"][own.index] / own
    assert noisy.between(0.8, 1.6).all()


def test_two_labels_on_the_left_mean_the_second(exact):
    assert exact.logit("w ~ x").params["x"] == pytest.approx(-exact.logit("I(w == 'no') ~ x").params["x"], rel=1e-6)
    linear, share = exact.ols("w ~ 1").params["Intercept"], exact.share({"w": "yes"}).value
    assert linear == pytest.approx(share, abs=0.01)


def test_groups_of_the_class_are_regressions_of_their_own(release, table):
    found = release.ols("y ~ x", by="z")
    assert set(found) == {"a", "b"}
    for label, fitted in found.items():
        wanted = real("y ~ x", table[table.z == label])
        assert abs(fitted.params["x"] - wanted["x"]) < 5 * fitted.bse["x"]
    assert "a: y ~ x" in repr(found)


def test_results_look_like_statsmodels(release):
    found = release.ols("y ~ x")
    wide, narrow = found.conf_int(level=0.99), found.conf_int(level=0.5)
    assert list(wide.index) == ["Intercept", "x"]
    assert (wide["low"] < narrow["low"]).all()
    assert found.tvalues.to_numpy() == pytest.approx((found.params / found.bse).to_numpy(), rel=0.2)
    low, high = found.ratios.ends(abs(found.tvalues["x"]))  # intervals of this many deviations end at 0
    assert min(abs(found.params["x"] - low[1]), abs(found.params["x"] + high[1])) < 1e-6 * abs(found.params["x"])
    assert ((found.pvalues >= 0) & (found.pvalues <= 1)).all()
    assert np.allclose(np.diagonal(found.cov_params()), found.bse**2)
    assert "y ~ x" in found.summary()
    assert "<table" in found._repr_html_()
    json.dumps(found.to_dict())


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("y ~ nothing", "nothing"),
        ("y", "both sides"),
        ("y ~ (", "formula"),
        ("y ~ unknown_function(x)", "unknown_function"),
        ("x ~ __import__('os').getcwd()", "evaluated|formula"),
        (3, "formula"),
    ],
)
def test_what_is_no_formula_is_refused(release, formula, said):
    with pytest.raises(ConfigError, match=said):
        release.ols(formula)


def test_logits_want_two_values(release):
    with pytest.raises(ConfigError, match="two values"):
        release.logit("y ~ x")


def test_terms_that_are_sums_of_others_are_refused(release):
    from sfumato.errors import EstimateError

    with pytest.raises(EstimateError, match="sum of others"):
        release.ols("y ~ x + I(2 * x)")


def test_a_logistic_fit_that_runs_away_names_the_term() -> None:
    rng = np.random.default_rng(0)
    x, rare = rng.normal(size=2_000), np.arange(2_000) < 9
    left = np.where(rare, 1.0, rng.random(2_000) < 0.5)
    right = np.column_stack([np.ones(2_000), x, rare.astype(np.float64)])
    with pytest.raises(EstimateError, match=r"race\[T.rare\]"):
        LOGISTIC.solve(left, right, np.ones(2_000), "it", ("Intercept", "x", "race[T.rare]"))
