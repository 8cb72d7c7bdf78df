"""Tests of hypotheses: scipy's own without noise, laws under the hypothesis, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.oneway import anova_oneway

from sfumato import MaxEntropy
from sfumato.errors import ConfigError
from sfumato.inference.joint_errors import HypothesisTest


def of_squares(values, covariance):
    return HypothesisTest.of_squares(values, covariance, "zero", "table", "x")


def test_a_sum_of_squares_has_its_law():
    rng = np.random.default_rng(1)
    spread = np.diag([4.0, 1.0, 1.0, 0.5, 0.1])
    drawn = rng.multivariate_normal(np.zeros(5), spread, 4_000)
    chances = np.array([of_squares(one, spread).pvalue for one in drawn])
    for level in (0.01, 0.05, 0.2):
        assert (chances < level).mean() == pytest.approx(level, abs=0.4 * level)
    even = of_squares(np.array([1.0, 2.0]), np.eye(2))
    assert (even.statistic, even.df) == (pytest.approx(5.0), pytest.approx(2.0)), "of equal ones it is chi-square"


def test_independence_without_noise_is_scipys(exact, table):
    found = exact.independence("z", "w")
    wanted = stats.chi2_contingency(pd.crosstab(table.z, table.w), correction=False)
    assert found.statistic == pytest.approx(wanted.statistic, rel=0.05)
    assert found.df == pytest.approx(wanted.dof, abs=0.05)


def test_analysis_of_variance_without_noise_is_welchs(exact, table):
    found = exact.anova("y", "z")
    wanted = anova_oneway(table.y, table.z, use_var="unequal")
    # of five tables of this law it is 1 to 6 % less: cells, clipping, and few calibration rows
    assert found.statistic == pytest.approx(wanted.statistic, rel=0.08)
    assert found.df == 1
    assert found.statistic == exact.mean("y", by="z").homogeneity().statistic


def test_noise_makes_tests_less_sure(exact, table):
    """In the mean: noise moves an estimate either way, and adds to its variance always."""
    method = MaxEntropy(epsilon=1.0, calibration_rows=2_000)
    noisy = [method.fit(table, schema=exact.schema, target="z", seed=seed) for seed in range(4)]
    for ask in (lambda r: r.independence("z", "w"), lambda r: r.anova("y", "z")):
        assert np.mean([ask(release).statistic for release in noisy]) < ask(exact).statistic
        assert all(ask(release).pvalue < 0.01 for release in noisy), "the law has it, and by far"


def test_tests_show_themselves(release):
    found = release.independence("z", "w")
    assert "independent" in repr(found)
    assert "Measured: noisy counts" in found.summary()
    assert "<table" in found._repr_html_()
    assert list(found.to_frame().columns) == ["statistic", "df", "p"]
    json.dumps(found.to_dict())


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda r: r.independence("z", "z"), "twice"),
        (lambda r: r.independence("z", "x"), "column of labels"),
        (lambda r: r.independence("z", "nothing"), "nothing"),
        (lambda r: r.anova("z", "w"), "column of numbers"),
        (lambda r: r.anova("x", "y"), "column of labels"),
        (lambda r: r.independence("z", "w", target="all"), "target"),
    ],
)
def test_wrong_tests_are_refused(release, ask, said):
    with pytest.raises(ConfigError, match=said):
        ask(release)
