"""Predicted means, joint tests of terms and R-squared: statsmodels' own without noise, and what is refused."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from sfumato.errors import ConfigError

AT = [{"x": 1.0, "z": "b"}, {"x": -2.0, "z": "a"}]
FORMULAS = ["y ~ x + C(z)", "y ~ center(x) + C(z)", "y ~ bs(x, df=4) + C(z)"]


@pytest.mark.parametrize("formula", FORMULAS[:2])
def test_predicted_means_without_noise_are_the_tables(exact, table, formula):
    own = smf.ols(formula, table).fit(cov_type="HC1").get_prediction(pd.DataFrame(AT)).summary_frame()
    found = exact.ols(formula).predict(AT)
    np.testing.assert_allclose(found.to_frame()["value"], own["mean"], atol=0.02)
    np.testing.assert_allclose(found.to_frame()["std_error"], own["mean_se"], rtol=0.15)


@pytest.fixture(scope="module")
def fit(release):
    return release.ols("y ~ x + C(z)")


def test_predictions_are_one_or_several(fit):
    one, several, framed = fit.predict(AT[0]), fit.predict(AT), fit.predict(pd.DataFrame(AT, index=["p", "q"]))
    assert several[0] == one
    assert framed["p"].value == one.value
    assert one.value == pytest.approx(fit.params["Intercept"] + fit.params["x"] + fit.params["C(z)[T.b]"])
    between = several.difference(0, 1)
    assert between.value == pytest.approx(3 * fit.params["x"] + fit.params["C(z)[T.b]"])
    gradient = np.array([0.0, 3.0, 1.0])
    covariance = fit.covariance.loc[["Intercept", "x", "C(z)[T.b]"], ["Intercept", "x", "C(z)[T.b]"]]
    assert between.std_error == pytest.approx(np.sqrt(gradient @ covariance.to_numpy() @ gradient))
    assert "Measured" in one.rests_on
    json.dumps(fit.to_dict())


def test_chances_stay_between_0_and_1(release, table):
    found = release.logit("w ~ x + u").predict({"x": 5.5, "u": -5.5})
    low, high = found.interval(0.9999)
    assert 0 < low < found.value < high < 1
    middle = release.logit("w ~ x + u").predict({"x": 0.0, "u": 0.0})
    own = smf.logit("w ~ x + u", table.assign(w=(table.w == "yes") * 1.0)).fit(disp=0)
    assert abs(middle.value - own.predict(pd.DataFrame({"x": [0.0], "u": [0.0]})).item()) < 4 * middle.std_error


@pytest.mark.parametrize(
    "values",
    [
        {"x": 1.0},
        {"x": 1.0, "z": "b", "u": 0.0},
        {"x": 1.0, "z": "c"},
        {"x": 99.0, "z": "b"},
        {"x": None, "z": "b"},
        [],
    ],
)
def test_what_is_no_row_is_refused(fit, values):
    with pytest.raises(ConfigError):
        fit.predict(values)


def test_regressions_predict_after_a_pickle(release):
    fit = pickle.loads(pickle.dumps(release.ols("y ~ x")))
    assert fit.predict({"x": 1.0}).value == release.ols("y ~ x").predict({"x": 1.0}).value


def test_joint_tests_without_noise_are_statsmodels(exact, table):
    formula = "y ~ x * C(z) + C(w)"
    own = smf.ols(formula, table).fit(cov_type="HC1").wald_test_terms(scalar=True).summary_frame()
    found = exact.ols(formula).wald_test_terms()
    assert set(found.index) == set(own.index)
    np.testing.assert_allclose(found["chi2"], own["chi2"][found.index].astype(float), rtol=0.25, atol=1.0)
    assert (found["df"] == 1).all()


def test_factors_are_tested_together(release):
    fit = release.ols("y ~ x + u + C(z)")
    both = fit.wald_test(["x", "u"])
    b, covariance = fit.params[["x", "u"]], fit.covariance.loc[["x", "u"], ["x", "u"]]
    at_zero = (b / fit.tvalues[["x", "u"]]) / fit.bse[["x", "u"]]  # errors as they are if coefficients are 0
    assert both.statistic == pytest.approx(b @ np.linalg.inv(covariance * np.outer(at_zero, at_zero)) @ b)
    assert both.df == 2
    assert fit.wald_test("x").statistic == pytest.approx(fit.tvalues["x"] ** 2)
    assert fit.wald_test("C(z)[T.b]").pvalue == pytest.approx(fit.pvalues["C(z)[T.b]"])
    for wrong in ("nothing", []):
        with pytest.raises(ConfigError, match="term"):
            fit.wald_test(wrong)


@pytest.mark.parametrize("formula", ["y ~ x + u + C(z)", "x ~ u - 1", "y ~ C(z) - 1"])
def test_r_squared_without_noise_is_the_tables(exact, table, formula):
    found = exact.ols(formula).rsquared
    own = smf.ols(formula, table).fit()
    assert abs(float(found) - own.rsquared) < 0.005
    assert found.std_error > 0
    low, high = found.interval()
    assert 0 <= low < own.rsquared < high <= 1


def test_r_squared_of_nothing_may_be_0(release):
    found = release.ols("u ~ C(w)").rsquared
    assert found.interval(0.999999)[0] == 0
    assert np.isclose(sum(part**2 for part in found.parts.values()), found.std_error**2)
    assert release.logit("w ~ x").rsquared is None
    assert "R-squared" in release.ols("y ~ x").summary()


def test_matrices_of_correlations(release):
    names = ["x", "u", "y"]
    found = release.correlations(names)
    matrix = found.table()
    assert (matrix.to_numpy() == matrix.to_numpy().T).all()
    assert (np.diagonal(matrix) == 1).all()
    assert (np.diagonal(found.table("std_error")) == 0).all()
    assert found["x", "u"].value == release.correlation("x", "u").value == matrix.loc["u", "x"]
    assert "Measured: noisy counts and products of x, u, y" in repr(found)
    for wrong in (["x"], ["x", "x"], "xu", ["x", "z"]):
        with pytest.raises(ConfigError):
            release.correlations(wrong)
