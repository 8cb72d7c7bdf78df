"""Errors of several estimates together: differences, intervals that hold at once, Wald's statistic."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from sfumato.errors import ConfigError, UnknownGroupError
from sfumato.inference.estimate import Estimate, Estimates
from sfumato.inference.joint_errors import HypothesisTest, JointErrors, any_law, deviations, each_level


def correlated(k, rho):
    return np.full((k, k), rho) + (1 - rho) * np.eye(k)


def test_scaled_errors_have_the_stated_sizes_and_go_together_as_before():
    sizes = {"noise": np.array([1.0, 2.0, 0.0]), "beyond": np.array([0.5, 0.5, 0.5])}
    found = JointErrors.scaled({"noise": 9 * correlated(3, 0.5)}, sizes)
    assert np.allclose(np.diagonal(found.by_cause["noise"]), sizes["noise"] ** 2)
    assert found.by_cause["noise"][0, 1] == pytest.approx(0.5 * 1.0 * 2.0)
    assert np.allclose(found.by_cause["beyond"], 0.25 * np.eye(3)), "independent where nothing is known"
    along = found.along(np.array([1.0, -1.0, 0.0]))
    assert along["noise"] == pytest.approx(np.sqrt(1 + 4 - 2))


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95])
def test_intervals_at_once_hold_at_once(rho):
    covariance = correlated(6, rho) * 4.0
    z = JointErrors({"noise": covariance}).deviations(0.9)
    drawn = np.random.default_rng(5).multivariate_normal(np.zeros(6), covariance, 50_000)
    held = (np.abs(drawn) <= z * 2.0).all(axis=1).mean()
    assert held == pytest.approx(0.9, abs=0.01)
    assert deviations(0.9) < z <= any_law(0.9, 6)


def test_the_bound_for_any_law_is_that_of_independent_ones():
    assert each_level(0.95, 3) ** 3 == pytest.approx(0.95)
    assert any_law(0.95, 1) == deviations(0.95) == pytest.approx(1.96, abs=0.001)
    with pytest.raises(ConfigError, match="level"):
        any_law(1.5, 3)


def wald(values, covariance):
    test = HypothesisTest.of_zeros(values, covariance, "", "table", "")
    return test.statistic, test.df


def test_walds_statistic_is_chi_square():
    rng = np.random.default_rng(0)
    covariance = correlated(4, 0.3) * np.outer([1, 10, 0.1, 2], [1, 10, 0.1, 2])
    drawn = rng.multivariate_normal(np.zeros(4), covariance, 4_000)
    chances = stats.chi2.sf([wald(one, covariance)[0] for one in drawn], 4)
    assert stats.kstest(chances, "uniform").pvalue > 0.001
    assert wald(drawn[0], covariance)[1] == 4
    assert wald(np.array([1.0, 1.0]), np.ones((2, 2))) == (pytest.approx(1.0), 1), "a sum of one and the same"


def test_differences_have_the_error_of_both(release, table):
    means = release.mean("y", by="z", target="table")
    found = means.difference("b", "a")
    own = table.y.groupby(table.z).mean()
    assert abs(found.value - (own["b"] - own["a"])) < 4 * found.std_error
    assert found.value == means["b"].value - means["a"].value
    back = means.difference("a", "b")
    assert (back.value, back.std_error) == (-found.value, pytest.approx(found.std_error))
    shares = release.share({"w": "yes"}, by="z")
    assert abs(shares.difference("b", "a").interval()[0]) < 1


def test_two_shares_of_one_column_go_against_each_other(release):
    """The joint law is used: two shares add up to 1, so that the error of their difference is that of twice one."""
    cells = release.crosstab("z", "w", normalize=True)
    rows = {label: release.share({"w": label}) for label in ("no", "yes")}
    one, other = rows["no"], rows["yes"]
    joined = Estimates(rows, ("w",), {}, release._questions.estimator(("w",), "population").joint)
    assert joined.difference("no", "yes").std_error == pytest.approx(2 * one.std_error, rel=0.02)
    assert one.std_error == pytest.approx(other.std_error, rel=0.02)
    assert cells.difference(("a", "no"), ("a", "yes")).std_error > 0


def test_without_a_joint_law_errors_of_a_difference_add_up():
    two = {name: Estimate(value, 0.3, "table", "x. Its variance") for name, value in {"a": 1.0, "b": 3.0}.items()}
    found = Estimates(two, ("g",), {}).difference("b", "a")
    assert (found.value, found.std_error) == (2.0, pytest.approx(0.6))


def test_differences_of_what_is_no_group_are_refused(release):
    means = release.mean("y", by="z")
    with pytest.raises(UnknownGroupError, match="'c'"):
        means.difference("a", "c")
    with pytest.raises(ConfigError, match="twice"):
        means.difference("a", "a")
    with pytest.raises(ConfigError, match="two groups"):
        release.crosstab("z", "w").homogeneity()


def test_intervals_at_once_are_wider(release):
    for answer in (release.mean("y", by="z"), release.crosstab("z", "w"), release.ols("y ~ x + u")):
        each, at_once = answer.conf_int(0.9), answer.conf_int(0.9, simultaneous=True)
        assert (at_once["low"] <= each["low"]).all()
        assert (at_once["high"] > each["high"]).all()
    groups = release.ols("y ~ x", by="z").to_frame(simultaneous=True)
    assert (groups["low"] < release.ols("y ~ x", by="z").to_frame()["low"]).all()
    plain = release.mean("y", by="z").to_dict(0.9, simultaneous=True)["groups"]
    assert plain[0]["low"] == release.mean("y", by="z").conf_int(0.9, simultaneous=True)["low"].iloc[0]


def test_the_list_of_answers_at_once(release):
    each, at_once = (release.answers(most_pairs=1, simultaneous=several) for several in (False, True))
    assert (at_once["value"].dropna() == each["value"].dropna()).all()
    n = each["low"].notna().sum()
    row = each["kind"].eq("mean").idxmax()
    half = at_once.loc[row, "high"] - at_once.loc[row, "value"]
    assert half == pytest.approx(any_law(0.95, n) * each.loc[row, "std_error"])


def test_effective_rows_are_those_of_a_simple_sample(release, exact):
    """Without noise as many as there are; with noise so many that the error of a mean of them is the stated one."""
    assert exact.mean("x").effective_rows == pytest.approx(5_000, rel=0.02)
    assert exact.share({"w": "yes"}).effective_rows == pytest.approx(5_000, rel=0.02)
    found = release.mean("x")
    assert found.effective_rows == pytest.approx(release.variance("x").value / found.std_error**2, rel=0.05)
    assert found.to_dict()["effective_rows"] == found.effective_rows < 5_000
    assert Estimate(1.0, 0.1, "table", "x").to_dict()["effective_rows"] is None
    assert isinstance(release.mean("x", by="z").to_frame(), pd.DataFrame)


def test_estimates_are_numbers(release):
    found = release.mean("x")
    assert float(found) == found.value
    assert f"{found:.3f}" == f"{found.value:.3f}"
    assert f"{found}" == str(found)
