"""Shares and counts of numbers and dates in a span: the table's own without noise, and spans that are none."""

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.errors import ConfigError, EstimateError

N = 3_000
COLUMNS = {
    "age": {"kind": "integer", "lower": 18, "upper": 80},
    "pay": {"kind": "continuous", "lower": 0, "upper": 1000, "nullable": True},
    "day": {"kind": "datetime", "lower": "2020-01-01", "upper": "2021-01-01"},
    "sex": {"kind": "categorical", "categories": ["f", "m"]},
}


def people(seed=0):
    rng = np.random.default_rng(seed)
    age, female = rng.integers(18, 81, N), rng.random(N) < 0.4
    pay = 37.0 * rng.integers(1, 28, N) - 30 * female  # in heaps, which no cell ends beside
    return pd.DataFrame(
        {
            "age": age, "pay": np.where(rng.random(N) < 0.2, np.nan, pay),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, N), "D"),
            "sex": np.where(female, "f", "m"),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def own():
    return people()


@pytest.fixture(scope="module")
def fine(own):
    schema = Schema.from_dict({"rows": N, "columns": COLUMNS})
    return MaxEntropy(epsilon=NonPrivate()).fit(own, schema=schema)


@pytest.fixture(scope="module")
def noisy(own):
    schema = Schema.from_dict({"rows": N, "columns": COLUMNS})
    return MaxEntropy(epsilon=1.0).fit(own, schema=schema, seed=2)


SPANS = [
    ({"age": (30, 40)}, lambda t: t.age.between(30, 40)),
    ({"age": (None, 40)}, lambda t: t.age <= 40),
    ({"age": "41.."}, lambda t: t.age > 40),
    ({"day": ("2020-03-01", pd.Timestamp("2020-04-30"))}, lambda t: t.day.between("2020-03-01", "2020-04-30")),
    ({"age": (30, 60), "sex": "f"}, lambda t: t.age.between(30, 60) & (t.sex == "f")),
    ({"pay": (200, 700)}, lambda t: t.pay.between(200, 700)),
]


@pytest.mark.parametrize(("condition", "holds"), SPANS)
def test_spans_are_the_tables_own(fine, noisy, own, condition, holds):
    wanted = holds(own).mean()
    found = fine.share(condition, target="table")
    assert found.parts["noise"] == 0
    assert abs(found.value - wanted) < 0.01 + 3 * found.std_error
    for ask, scale in ((noisy.share, 1), (noisy.count, N)):
        found = ask(condition, target="table")
        assert abs(found.value - scale * wanted) < 4 * found.std_error


def test_groups_have_spans(noisy, own):
    found = noisy.share({"age": (30, 60)}, by="sex", target="table")
    for label, estimate in found.items():
        assert abs(estimate.value - own.age[own.sex == label].between(30, 60).mean()) < 4 * estimate.std_error


def test_what_lies_within_the_cells_at_the_ends_is_allowed_for(fine, own):
    """All of a cell's rows may be one heap on one side of the end: no interval is surer than that."""
    edges = fine._questions.measured.column("pay").edges
    assert edges is not None
    for low in (185.0, 222.5, 258.5, 407.0):
        found = fine.share({"pay": (low, None)}, target="table")
        start, end = found.interval()
        assert start <= (own.pay >= low).mean() <= end, low
    inside = fine.share({"pay": (222.5, None)}, target="table")
    assert inside.std_error > 0.001
    assert "which part lies inside was not counted" in inside.rests_on
    whole = fine.share({"age": (30, 40)}, target="table")
    assert "which part" not in whole.rests_on, "each age is a cell"
    assert whole.std_error < 1e-6


def test_median_by_label(noisy, own):
    found = noisy.quantile("age", by="sex", target="table")
    for label, estimate in found.items():
        low, high = estimate.interval(0.9999)
        assert low <= own.age[own.sex == label].median() <= high
    upper = noisy.quantile("day", 0.9, by="sex")
    assert isinstance(upper["f"].value, pd.Timestamp)
    assert isinstance(upper.difference("f", "m").std_error, pd.Timedelta)


@pytest.mark.parametrize(
    "span",
    [(30,), (30, 40, 50), (None, None), (50, 40), (0, 40), (30, 99), ("x", 40), "30-40", "..", [30, 40], 99],
)
def test_what_is_no_span_is_refused(noisy, span):
    for ask in (noisy.share, noisy.count):
        with pytest.raises(ConfigError, match="age"):
            ask({"age": span})


@pytest.mark.parametrize("value", [40, "40"])
def test_a_value_is_a_span_of_one(noisy, value):
    assert noisy.count({"age": value}) == noisy.count({"age": (40, 40)})


def test_labels_have_no_spans(noisy):
    with pytest.raises(ConfigError, match="one label of 'sex'"):
        noisy.share({"sex": ("a", "f")})


def test_a_span_without_rows_is_refused(noisy):
    with pytest.raises(EstimateError, match="stand out of noise"):
        noisy.share({"pay": (999.999, None)})
