"""Answers about columns whose bounds the fit estimated know what may lie beyond."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.columns.bounded import MIDDLE_YEAR, SIDE
from sfumato.errors import EstimateError
from sfumato.inference.associations import association
from sfumato.inference.estimated_bounds import estimated_bounds

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")
N = 20_000


def spending(seed, n=N):
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
    return pd.DataFrame(
        {
            "spent": np.where(rng.random(n) < 0.7, 0, 400 * rng.pareto(2.5, n)),
            "age": rng.uniform(18, 95, n),
            "day": days,
            "sex": rng.choice(["f", "m"], n),
        }
    )


@pytest.fixture(scope="module")
def frame():
    return spending(0)


@pytest.fixture(scope="module")
def release(frame):
    return sfumato.fit(frame, epsilon=1.0, delta=1e-6, seed=3)


@pytest.mark.parametrize("name", ["spent", "age", "day"])
def test_a_mean_is_covered_and_names_what_lies_beyond(release, frame, name):
    found = release.mean(name, target="table")
    low, high = found.interval(0.99)
    assert low <= frame[name].mean() <= high
    assert set(found.parts) == {"noise", "unmeasured", "beyond"}
    assert "beyond estimated bounds" in found.rests_on


def test_of_groups_it_widens_more(release):
    whole, groups = release.mean("spent", target="table"), release.mean("spent", by="sex", target="table")
    assert all(group.parts["beyond"] > 1.2 * whole.parts["beyond"] for group in groups.values())


AS_CLIPPED = "Of columns as they were clipped to bounds that the fit estimated"


def clipped(release, frame, name):
    kind = release.schema.columns[name]
    return frame[name].clip(kind.lower, kind.upper)


def test_quantiles_are_of_the_column_as_it_was_clipped(release):
    median, highest = release.quantile("age", 0.5), release.quantile("spent", 0.999)
    assert median.value == pytest.approx(56, abs=3)
    assert 0.5 < highest.high / release.schema.columns["spent"].upper <= 1
    assert highest.rests_on.startswith(f"{AS_CLIPPED}: 'spent' 0.0 to {release.schema.columns['spent'].upper}. ")
    assert AS_CLIPPED not in release.mean("spent").rests_on, "a mean is of the column itself"


def test_squares_are_of_the_column_as_it_was_clipped(release, frame):
    """The variance of this law is infinite at 2, and all but."""
    spent, age = (clipped(release, frame, name) for name in ("spent", "age"))
    variance = release.variance("spent", target="table")
    low, high = variance.interval(0.99)
    assert low <= spent.var() <= high
    assert set(variance.parts) == {"noise", "unmeasured"}
    assert high < frame["spent"].var(), "which is not the variance of the column itself"
    low, high = release.correlation("age", "spent", target="table").interval(0.99)
    assert low <= np.corrcoef(age, spent)[0, 1] <= high
    assert release.variance("age").value == pytest.approx(77**2 / 12, rel=0.1)


def test_every_form_of_a_regression_says_of_what_it_is(release, frame):
    regression = release.ols("spent ~ age + C(sex)", target="table")
    low, high = regression.conf_int(0.99).loc["age"]
    assert low <= np.polyfit(clipped(release, frame, "age"), clipped(release, frame, "spent"), 1)[0] <= high
    for words in (repr(regression), regression._repr_html_(), regression.to_dict()["rests_on"], regression.rests_on):
        assert AS_CLIPPED in words
    logit = release.logit("sex ~ age")
    assert AS_CLIPPED in logit.rests_on
    assert "'spent'" not in logit.rests_on


def test_one_value_alone_and_much_noise_are_refused():
    frame = spending(1, 600)[["age"]].assign(flat=0.0)
    for name, seed in product(("flat", "age"), range(4)):  # the last column is kept, whatever was found
        columns = {name: {"kind": "continuous", "discover": True}}
        release = sfumato.fit(frame[[name]], {"rows": 600, "columns": columns}, epsilon=0.05, delta=1e-6, seed=seed)
        for question in (release.mean, release.variance, partial(release.quantile, q=0.5)):
            with pytest.raises(EstimateError, match=r"stand out of the noise|all but one value"):
                question(name)


def test_declared_bounds_are_taken_at_their_word(frame):
    columns = {"age": {"kind": "continuous", "lower": 18, "upper": 95}}
    columns["sex"] = {"kind": "categorical", "categories": ["f", "m"]}
    release = sfumato.fit(frame[["age", "sex"]], {"rows": N, "columns": columns}, epsilon=1.0, delta=1e-6)
    assert "beyond" not in release.mean("age").parts
    assert AS_CLIPPED not in release.variance("age").rests_on
    assert AS_CLIPPED not in " ".join(release.answers()["why"])


@pytest.fixture(scope="module")
def stays():
    """The later of two ordered dates is modelled by its distance from the earlier one, and was counted by its years."""
    rng = np.random.default_rng(3)
    admitted = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 1_500, N), unit="D")
    frame = pd.DataFrame({"admitted": admitted, "left": admitted + pd.to_timedelta(rng.integers(0, 20, N), unit="D")})
    columns = {name: {"kind": "datetime", "discover": True} for name in frame}
    schema = {"rows": N, "columns": columns, "rules": [{"order": ["admitted", "left"]}]}
    return sfumato.fit(frame, schema, epsilon=1.0, delta=1e-6, seed=4)


def test_the_later_of_two_dates_is_read_by_its_years(stays):
    bounds = estimated_bounds(stays, "left")
    assert bounds is not None
    assert [cell + MIDDLE_YEAR - SIDE for cell in (bounds.first, bounds.last)] == [2015, 2019]
    assert max(share.value for share in bounds.shares) < 0.01
    with pytest.raises(EstimateError, match="declared bounds of what 'left' follows from"):
        stays.mean("left")


def test_the_list_of_answers_widens_groups_and_says_what_is_clipped(release):
    listed = release.answers()
    groups = listed[(listed["kind"] == "mean by") & (listed["first"] == "spent")]
    alone = release.mean("spent", by="sex")
    assert groups["std_error"].iloc[0] == pytest.approx(
        np.median([group.std_error for group in alone.values()]), rel=0.02
    )
    said = listed[listed["why"].str.contains(AS_CLIPPED)]
    assert set(said["kind"]) == {"median", "variance", "correlation", "ols", "logit"}
    assert (said["answered"] == "yes").all()
    assert "of what some are" in listed._repr_html_()
    assert AS_CLIPPED in association(release._questions, "spent", "sex", target="table").rests_on


@pytest.mark.slow
@pytest.mark.parametrize("n", [5_000, 20_000])
def test_coverage(n):
    covered = {"spent": 0, "age": 0, "day": 0}
    for seed in range(40):
        frame = spending(seed + 100, n)
        release = sfumato.fit(frame, epsilon=1.0, delta=1e-6, seed=seed)
        for name in covered:
            low, high = release.mean(name, target="table").interval()
            covered[name] += low <= frame[name].mean() <= high
    assert min(covered.values()) >= 35
