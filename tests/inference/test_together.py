"""What three columns hold together is refused unless it was measured, however much of it pairs say."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato import MaxEntropy, NonPrivate, Schema, Unit
from sfumato.columns import Categorical, Continuous, Identifier
from sfumato.errors import EstimateError
from sfumato.inference.estimate import Estimate
from sfumato.inference.regression_results import Regression

N = 2_000


def three(n=N):
    """Labels that are pairwise independent, and c goes with whether a is b; a number beside them."""
    rng = np.random.default_rng(0)
    a, b = rng.random(n) < 0.5, rng.random(n) < 0.5
    c = rng.random(n) < np.where(a == b, 0.75, 0.25)
    labels = {name: np.where(value, "1", "0") for name, value in {"a": a, "b": b, "c": c}.items()}
    return pd.DataFrame(labels | {"x": rng.normal(size=n).clip(-4, 4)})


def schema(n=N):
    labels = {name: Categorical(categories=("0", "1")) for name in "abc"}
    return Schema(columns=labels | {"x": Continuous(lower=-4, upper=4)}, rows=n)


def fitted(target):
    return MaxEntropy(epsilon=NonPrivate()).fit(three(), schema=schema(), target=target)


@pytest.fixture(scope="module")
def of_pairs():
    return fitted(None)


@pytest.fixture(scope="module")
def by_class():
    return fitted("c")


ALL = {"a": "1", "b": "1", "c": "1"}
TOGETHER = {
    "share": lambda r: r.share(ALL),
    "share by": lambda r: r.share({"b": "1", "c": "1"}, by="a"),
    "count": lambda r: r.count(ALL),
    "product": lambda r: r.ols("x ~ a * c"),
    "product in a function": lambda r: r.ols("x ~ I((a == '1') * (c == '1') * 1.0)"),
    "by": lambda r: r.ols("x ~ a", by="c"),
    "logit": lambda r: r.logit("b ~ a * c"),
    "gamma": lambda r: r.gamma("I(x + 4) ~ a + c"),
    "span": lambda r: r.share({"x": (0, 2), "c": "1"}, by="a"),
}


@pytest.mark.parametrize("ask", TOGETHER.values(), ids=TOGETHER)
def test_three_columns_are_refused_unless_measured_together(of_pairs, by_class, ask):
    with pytest.raises(EstimateError, match="not measured together"):
        ask(of_pairs)
    ask(by_class)  # the class was measured with every two others


def test_four_columns_are_refused_with_a_class_too():
    frame = three().assign(d=np.random.default_rng(2).choice(["0", "1"], N))
    columns = {**schema().columns, "d": Categorical(categories=("0", "1"))}
    release = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=Schema(columns=columns, rows=N), target="c")
    with pytest.raises(EstimateError, match="not measured together"):
        release.share({**ALL, "d": "1"})
    assert isinstance(release.ols("x ~ a + b + c + d"), Regression)  # sums of products of pairs


def test_the_measured_cell_is_the_tables(by_class):
    rows = three()
    real = ((rows["a"] == "1") & (rows["b"] == "1") & (rows["c"] == "1")).mean()
    assert by_class.share(ALL).value == pytest.approx(real, abs=0.01)


def test_rows_of_a_unit_widen_the_error_of_sampling():
    """The same rows, four of a unit that are alike: the variance is four times that of independent rows."""
    rng = np.random.default_rng(1)
    x = np.repeat(rng.normal(size=500).clip(-4, 4), 4)
    frame = pd.DataFrame({"who": np.repeat(np.arange(500), 4), "x": x})
    columns = {"who": Identifier(), "x": Continuous(lower=-4, upper=4)}
    of_units = Schema(columns=columns, rows=N, unit=Unit(column="who", max_rows=4))
    several = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=of_units)
    found = several.mean("x")
    assert isinstance(found, Estimate)
    assert found.parts["sampling"] == pytest.approx(x.std() / 500**0.5, rel=0.05)
    assert "4 rows of a unit" in found.rests_on
    assert "rows of a unit" not in several.mean("x", target="table").rests_on


def test_two_columns_that_were_counted_apart_are_no_pair():
    """Marginals explain most of a cell of two labels under any model, and say nothing of how these go together."""
    real = three()
    counts = {name: [float((real[name] == label).sum()) for label in "01"] for name in "abc"}
    own = Schema(columns={name: Categorical(categories=("0", "1")) for name in "abc"}, rows=N)
    parts = [sfumato.marginal(own, name, counts[name], noise_std=5.0) for name in "abc"]
    apart = sfumato.estimate_model(own, parts)
    assert apart.share({"a": "1"}, target="table").value == pytest.approx(counts["a"][1] / N, abs=0.01)
    for ask in (
        lambda: apart.crosstab("a", "c"),
        lambda: apart.share({"a": "1", "c": "1"}),
        lambda: apart.independence("a", "c"),
    ):
        with pytest.raises(EstimateError, match="not measured together"):
            ask()
    assert "crosstab" not in set(apart.answers().query("answered != 'no'")["kind"])
