"""Replicates differ as much as the errors of estimates say, and results of them are combined."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures.ruled import hospital, hospital_schema
from sfumato import MaxEntropy, Schema, combine
from sfumato.columns import Continuous
from sfumato.desk.rule_breaks import count_breaks
from sfumato.errors import ConfigError, EstimateError
from sfumato.io.sources import open_source


@pytest.fixture(scope="module")
def replicates(release):
    return release.replicates(10, n=20_000, seed=3)


@pytest.mark.slow
def test_replicates_look_like_the_table(replicates, table):
    assert len(replicates) == 10
    for one in replicates:
        assert one.shape == (20_000, 5)
        assert (one.dtypes.astype(str) == replicates[0].dtypes.astype(str)).all()
        assert set(one.z) == {"a", "b"}
        assert abs(one.x.mean() - table.x.mean()) < 0.2


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.slow
def test_replicates_differ_as_much_as_estimates_are_unsure(replicates, release):
    for values, estimate in (
        ([one.x.mean() for one in replicates], release.mean("x")),
        ([one.x.corr(one.y) for one in replicates], release.correlation("x", "y")),
        ([(one.w == "yes").mean() for one in replicates], release.share({"w": "yes"})),
    ):
        found = combine([(value, 0.0) for value in values])
        assert 0.4 < found.bse.iloc[0] / estimate.std_error < 2.0
        assert abs(found.params.iloc[0] - estimate.value) < 3 * estimate.std_error


@pytest.mark.slow
@pytest.mark.audit
def test_a_seed_gives_the_same_tables(release):
    first, again = (release.replicates(2, n=500, seed=4) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        pd.testing.assert_frame_equal(one, other)
    assert not first[0].equals(first[1])


@pytest.mark.parametrize("bad", [{"m": 1}, {"m": 2, "n": 0}, {"m": 2, "seed": -1}, {"m": 2, "target": "all"}])
def test_bad_arguments_are_refused(release, bad):
    with pytest.raises(ConfigError):
        release.replicates(**bad)


@pytest.mark.slow
@pytest.mark.audit
def test_batches_have_an_index(release):
    found = list(release.replicate_batches(2, n=5, seed=1))
    assert [one.column_names[0] for one in found] == ["replicate", "replicate"]
    assert [one["replicate"].to_pylist() for one in found] == [[1] * 5, [2] * 5]


@pytest.mark.slow
@pytest.mark.audit
def test_replicates_keep_rules():
    """Each row of each, and what was measured is in them as estimates say."""
    frame = hospital(3_000)
    release = MaxEntropy(epsilon=3.0, delta=1e-5).fit(frame, schema=hospital_schema(rows=3_000), target="back", seed=0)
    tables = release.replicates(3, n=4_000, seed=1)
    for one in tables:
        assert list(one.columns) == list(release.sample(1, seed=0).columns)
        assert count_breaks(open_source(one), release.schema).any_rule == 0
    age = release.mean("age")
    assert abs(np.mean([one.age.mean() for one in tables]) - age.value) < 5 * age.std_error
    assert abs(np.mean([one.total.mean() for one in tables]) / frame.total.mean() - 1) < 0.2


def test_the_rule_of_large_synthetic_tables():
    with pytest.warns(UserWarning, match="Degrees of freedom"):
        found = combine([(1.0, 0.1), (2.0, 0.1), (3.0, 0.1)])
    assert found.params.iloc[0] == 2
    assert found.bse.iloc[0] ** 2 == pytest.approx((1 + 1 / 3) * 1 - 0.01)
    low, high = found.conf_int().iloc[0]
    assert low < 2 < high
    assert "3 replicates" in found.summary()


def test_coverage_of_the_rule():
    """Replicates' parameters are drawn about an estimate of the truth: as often in the interval as it says."""
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        estimate = rng.normal()
        drawn = estimate + rng.normal(size=20)
        results = [(value + 0.3 * rng.normal(), 0.3) for value in drawn]
        low, high = combine(results).conf_int().iloc[0]
        covered += low <= 0 <= high
    assert 0.92 < covered / 400 < 0.98


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.slow
def test_results_are_those_of_fitted_models(replicates):
    import statsmodels.formula.api as smf

    found = combine([smf.ols("y ~ x", one).fit() for one in replicates])
    assert list(found.params.index) == ["Intercept", "x"]
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([(1.0, 0.1)], "at least 2"),
        ([1.0, 2.0], "params and bse"),
        (
            [(pd.Series({"a": 1.0}), pd.Series({"a": 1.0})), (pd.Series({"b": 1.0}), pd.Series({"b": 1.0}))],
            "same terms",
        ),
    ],
)
def test_other_results_are_refused(results, said):
    with pytest.raises(ConfigError, match=said):
        combine(results)


def many_columns(columns, rows, epsilon):
    rng = np.random.default_rng(5)
    shared = rng.standard_normal((rows, 3)) @ rng.normal(0, 0.6, (3, columns))
    numbers = np.clip(50 + 12 * (shared + rng.standard_normal((rows, columns))), 0, 100)
    frame = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(columns)])
    schema = Schema(columns={name: Continuous(lower=0, upper=100) for name in frame}, rows=rows)
    return sfumato.fit(frame, schema, epsilon=epsilon, delta=1e-6, seed=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Degrees of freedom")
def test_noise_that_no_rows_can_follow_is_refused():
    """More totals than rows of the model that count."""
    noisy = many_columns(36, 3_000, 1.0)
    with pytest.raises(EstimateError, match="36 columns with so much"):
        next(iter(noisy.replicates(2, n=100, seed=0)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Degrees of freedom")
def test_of_many_columns_replicates_spread_as_noise_does():
    """Thirty columns of 100,000 rows."""
    release = many_columns(30, 100_000, 1.0)
    pairs = [(f"x{j}", f"x{j + 7}") for j in range(20)]
    stated = [release.correlation(*pair).std_error for pair in pairs]
    tables = [[table[list(pair)].corr().iloc[0, 1] for pair in pairs] for table in release.replicates(12, seed=1)]
    spread = np.std(tables, axis=0, ddof=1) / stated
    assert 0.8 < np.sqrt(np.mean(spread**2)) < 1.15
