"""Named questions of linked rows: answers about units and features of all their rows, and refusals before a charge."""

from dataclasses import replace

import numpy as np
import pytest

from fixtures import linked, linked_rules, two_tables
from sfumato import MaxEntropy, NonPrivate, Schema, load
from sfumato.errors import ConfigError, EstimateError, SchemaError
from sfumato.fitting.purposes import Facts
from sfumato.methods.tables.question_forecast import question_forecasts
from sfumato.methods.tables.question_stage import NAME

N = 1_500
QUESTIONS = [
    "mean: mean of score by sex", "mean: change of score by sex", "share: ever of state=d by sex",
    "correlation: lag 2 of score", "ols: `change of score` ~ born + C(sex)", "quantile: last of score",
    "mean: number of rows of patient by sex",
]  # fmt: skip
SCHEMA = replace(linked.schema(units=N), questions=QUESTIONS)


@pytest.fixture(scope="module")
def frame():
    return linked.in_order(linked.visits(N, 3))


@pytest.fixture(scope="module")
def silent(frame):
    return MaxEntropy(epsilon=NonPrivate(), calibration_rows=2_000).fit(frame, schema=SCHEMA, seed=1)


@pytest.fixture(scope="module")
def noisy(frame):
    return MaxEntropy(epsilon=4.0, delta=1e-6, calibration_rows=2_000).fit(frame, schema=SCHEMA, seed=1)


def persons(frame):
    groups, scores = frame.groupby("patient"), frame.groupby("patient")["score"]
    table = groups.agg(sex=("sex", "first"), born=("born", "first"), rows=("score", "size"), last=("score", "last"))
    table["mean"], change = scores.mean(), scores.last() - scores.first()
    table["change"] = change.where(table["rows"] > 1)
    table["ever"] = (frame["state"] == "d").groupby(frame["patient"]).any()
    return table


def of_pairs(frame, lag):
    earlier = frame.groupby("patient")["score"].shift(lag)
    return np.corrcoef(earlier[earlier.notna()], frame["score"][earlier.notna()])[0, 1]


def test_without_noise_they_are_those_of_the_records(frame, silent):
    real, units = persons(frame), silent.units
    for name, column in (("mean of score", "mean"), ("change of score", "change")):
        means = units.mean(name, by="sex")
        for sex, value in real.groupby("sex")[column].mean().items():
            assert means[sex].value == pytest.approx(value, abs=0.05 * real[column].std())
    ever = units.share({"ever of state=d": True}, by="sex")
    for sex, value in real.groupby("sex")["ever"].mean().items():
        assert ever[sex].value == pytest.approx(value, abs=1e-6)
    assert units.correlation("score", "lag 2 of score").value == pytest.approx(of_pairs(frame, 2), abs=0.01)
    known = real[real["rows"] > 1]
    design = np.column_stack([np.ones(len(known)), known["born"], known["sex"] == "m"])
    slope = np.linalg.lstsq(design, known["change"], rcond=None)[0][1]
    assert units.ols("`change of score` ~ born + C(sex)").params["born"] == pytest.approx(slope, abs=0.01)
    assert units.quantile("last of score", 0.5).value == pytest.approx(real["last"].median(), abs=2.0)


def test_sampling_errors_are_those_of_units(frame, silent):
    real, n = persons(frame), len(frame["patient"].unique())
    women = real[real["sex"] == "f"]
    error = silent.units.mean("mean of score", by="sex")["f"].parts["sampling"]
    assert error == pytest.approx(women["mean"].std() / np.sqrt(len(women)), rel=0.1)
    of_rows = (1 - of_pairs(frame, 2) ** 2) / np.sqrt(n)
    assert 0.5 * of_rows < silent.units.correlation("score", "lag 2 of score").parts["sampling"] < 2 * of_rows


def test_with_noise_intervals_hold(frame, noisy):
    real, units = persons(frame), noisy.units
    for name, column in (("mean of score", "mean"), ("change of score", "change")):
        means = units.mean(name, by="sex", target="table")
        for sex, value in real.groupby("sex")[column].mean().items():
            assert abs(means[sex].value - value) < 4.5 * means[sex].std_error
            assert means[sex].rests_on.startswith("Named before the fit")
    lag = units.correlation("lag 2 of score", "score", target="table")
    assert abs(lag.value - of_pairs(frame, 2)) < 4.5 * lag.std_error < 0.5


def test_what_was_not_named_is_refused(noisy):
    units = noisy.units
    with pytest.raises(EstimateError, match="was named before"):
        units.correlation("score", "lag 3 of score")
    with pytest.raises(ConfigError, match="lag"):
        units.correlation("score", "lag 9 of score")
    with pytest.raises(EstimateError):
        units.mean("change of score", by="state")
    with pytest.raises(ConfigError, match="one of the columns"):
        units.mean("first of score")
    assert "change of score" in units.columns
    assert not any("pairs of" in name for name in units.columns)


def test_all_rows_first_rows_and_replicates_are_answered_as_before(noisy):
    assert noisy.mean("score").std_error > 0
    assert noisy.units.mean("born").std_error > 0
    assert len(next(iter(noisy.units.replicates(2, n=50, seed=0)))) == 50
    assert len(noisy.sample(20, seed=1)["patient"].unique()) == 20


def test_a_file_holds_it_all(noisy, tmp_path):
    noisy.save(tmp_path / "units.sfm")
    again = load(tmp_path / "units.sfm")
    first, second = (r.units.correlation("score", "lag 2 of score") for r in (noisy, again))
    assert (first.value, first.std_error) == (second.value, second.std_error)


def test_its_part_of_the_budget_is_declared_and_does_not_grow_with_rows():
    method = MaxEntropy(epsilon=1.0, delta=1e-6, question_share=0.3)
    plan = method.plan(SCHEMA)
    shares = np.array([1 / stage.noise_multiplier**2 for stage in plan.stages])
    assert plan.stages[-1].name == NAME
    assert shares[-1] / shares.sum() == pytest.approx(0.3, rel=1e-3)
    assert method.plan(replace(SCHEMA, unit=replace(SCHEMA.unit, max_rows=60)))[NAME] == plan[NAME]
    assert len(method.plan(linked.schema()).stages) == len(plan.stages) - 1


def test_a_plan_says_how_wide_answers_will_be():
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    forecasts = question_forecasts(method.plan(SCHEMA), Facts(SCHEMA, None, N))
    assert [forecast.question for forecast in forecasts] == QUESTIONS
    assert all(1 < f.width < 12 and np.isinf(f.unnamed) for f in forecasts if not f.cell)
    epsilon = method.epsilon_for(SCHEMA, question="correlation: lag 2 of score", target_error=2.0)
    assert epsilon > 0.01


def test_two_tables_have_units_without_rows():
    schema = replace(two_tables.schema(N), questions=["mean: mean of score", "share: ever of state=a"])
    release = MaxEntropy(epsilon=NonPrivate(), calibration_rows=2_000).fit(
        two_tables.tables(N, 1), schema=schema, seed=1
    )
    rows = two_tables.joined(two_tables.tables(N, 1))
    real = rows.groupby("patient")["score"].mean().mean()
    assert release.units.mean("mean of score").value == pytest.approx(real, abs=0.5)
    ever = (rows["state"] == "a").groupby(rows["patient"]).any().sum() / N
    assert release.units.share({"ever of state=a": True}).value == pytest.approx(ever, abs=1e-3)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("ols: `mean of score` ~ log(`mean of score` + born)", "products of functions"),
        ("ols: `last of score` ~ nothing", "nothing"),
        ("ols: `last of score` ~ patient", "patient"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_a_record_is_read(question, words):
    with pytest.raises((SchemaError, ConfigError), match=words):
        MaxEntropy(epsilon=1.0).plan(replace(SCHEMA, questions=[question]))


def test_weighted_units_take_none():
    document = {**linked.DOCUMENT, "weight": {"column": "w", "upper": 4.0}, "questions": ["mean: mean of score"]}
    document["unit"] = {**document["unit"], "constant": ["sex", "born", "w"]}
    document["columns"] = {**document["columns"], "w": "identifier"}
    with pytest.raises(SchemaError, match="weights of linked rows"):
        linked.Schema.from_dict(document)


def test_a_feature_is_asked_with_what_it_was_named_with(noisy):
    """Of all units it is a sum of groups; beside another column it was not measured."""
    alone = noisy.units.mean("mean of score")
    by = noisy.units.mean("mean of score", by="sex")
    assert alone.parts["unmeasured"] < alone.parts["sampling"]
    assert min(by["f"].value, by["m"].value) < alone.value < max(by["f"].value, by["m"].value)
    with pytest.raises(EstimateError, match="not measured together"):
        noisy.units.mean("mean of score", by="state")
    with pytest.raises(EstimateError, match="named together"):
        noisy.units.correlation("mean of score", "day")


@pytest.mark.parametrize(
    "question", ["mean: mean of discharged", "correlation: lag 1 of discharged", "mean: discharged"]
)
def test_what_rules_put_after_another_column_has_no_features(question):
    """Its distance was measured: the mean of that would be taken for one of dates."""
    schema = Schema.from_dict({**linked_rules.DOCUMENT, "questions": [question]})
    with pytest.raises(SchemaError, match=r"measured (themselves|itself)"):
        MaxEntropy(epsilon=1.0, delta=1e-6).plan(schema)
