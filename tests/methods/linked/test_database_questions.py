"""Named questions of databases: about persons, of the rows of one table or of two, and refusals before a charge."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fixtures.database import document, hospital, schema
from sfumato import MaxEntropy, Schema, load
from sfumato.errors import ConfigError, EstimateError, SchemaError
from sfumato.fitting.purposes import Facts
from sfumato.methods.max_entropy import answer_forecasts
from sfumato.schema.branch_schemas import branch_views

N = 1_500
QUESTIONS = [
    "mean: mean of score by sex", "mean: change of score", "correlation: lag 2 of score", "ols: `last of score` ~ age",
    "ols: `number of drugs` ~ `number of visits`", "share: ever of drug=c by ever of state=dead",
    {"ols": "`number of drugs` ~ sex + `mean of value`", "weight": 2},
]  # fmt: skip
SCHEMA = replace(schema(N), questions=QUESTIONS)


@pytest.fixture(scope="module")
def tables():
    return hospital(N, 3)


@pytest.fixture(scope="module")
def silent(tables):
    """With hardly any noise."""
    return MaxEntropy(epsilon=100.0, delta=1e-6, calibration_rows=600).fit(tables, schema=SCHEMA, seed=1)


@pytest.fixture(scope="module")
def noisy(tables):
    # rows two before are 4 of their errors, from which on they are answered: of two seeds in six
    return MaxEntropy(epsilon=9.0, delta=1e-6, calibration_rows=2_000).fit(tables, schema=SCHEMA, seed=2)


def persons(tables):
    frame = tables["persons"].set_index("person")
    visits = tables["visits"].sort_values("start", kind="stable")
    scores, drugs = visits.groupby("person")["score"], tables["drugs"].groupby("person")["drug"]
    frame["mean"], frame["last"] = scores.mean(), scores.last()
    frame["change"] = (scores.last() - scores.first()).where(scores.size() > 1)
    frame["visits"] = scores.size().reindex(frame.index, fill_value=0)
    frame["drugs"] = drugs.size().reindex(frame.index, fill_value=0)
    dead = (visits["state"] == "dead").groupby(visits["person"]).any()
    frame["dead"] = dead.reindex(frame.index, fill_value=False)
    ever = (tables["drugs"]["drug"] == "c").groupby(tables["drugs"]["person"]).any()
    frame["c"] = ever.reindex(frame.index, fill_value=False)
    values = tables["measurements"].merge(visits[["visit", "person"]], on="visit").groupby("person")["value"]
    frame["value"] = values.mean()
    earlier = scores.shift(2)
    known = earlier.notna()
    return frame, float(np.corrcoef(earlier[known], visits["score"][known])[0, 1])


def slopes(frame, left, *right):
    known = frame.dropna(subset=[left, *right])
    design = np.column_stack([np.ones(len(known)), *(known[name].astype(float) for name in right)])
    return np.linalg.lstsq(design, known[left].astype(float), rcond=None)[0]


def test_each_is_of_the_first_table_whose_units_have_its_columns():
    views = branch_views(SCHEMA)
    assert [len(view.schema.questions) for view in views.values()] == [4, 0, 3]
    of_persons = replace(schema(N), questions=["ols: age ~ sex", "table: sex, state"])
    assert [len(view.schema.questions) for view in branch_views(of_persons).values()] == [2, 0, 0]


def test_with_hardly_any_noise_they_are_those_of_the_records(tables, silent):
    real, lagged = persons(tables)
    visits, drugs = silent.table("visits").units, silent.table("drugs").units
    means = visits.mean("mean of score", by="sex")
    for sex, value in real.groupby("sex")["mean"].mean().items():
        assert means[sex].value == pytest.approx(value, abs=0.05 * real["mean"].std())
    assert visits.mean("change of score").value == pytest.approx(real["change"].mean(), abs=0.05 * real["change"].std())
    assert visits.correlation("score", "lag 2 of score").value == pytest.approx(lagged, abs=0.03)
    assert visits.ols("`last of score` ~ age").params["age"] == pytest.approx(slopes(real, "last", "age")[1], abs=0.02)
    fit = drugs.ols("`number of drugs` ~ `number of visits`")
    assert fit.params["number of visits"] == pytest.approx(slopes(real, "drugs", "visits")[1], abs=0.01)
    fit = drugs.ols("`number of drugs` ~ sex + `mean of value`")
    assert fit.params["mean of value"] == pytest.approx(
        slopes(real.assign(woman=real["sex"] == "f"), "drugs", "woman", "value")[2], abs=0.01
    )
    shares = drugs.share({"ever of drug=c": True}, by="ever of state=dead")
    for dead, value in real.groupby("dead")["c"].mean().items():
        assert shares[str(dead).lower()].value == pytest.approx(value, abs=0.01)


def test_with_noise_intervals_hold(tables, noisy):
    real, lagged = persons(tables)
    visits, drugs = noisy.table("visits").units, noisy.table("drugs").units
    women = visits.mean("mean of score", by="sex", target="table")["f"]
    answers = [
        (women.value, women.std_error, real.loc[real["sex"] == "f", "mean"].mean()),
        (*_of(visits.correlation("score", "lag 2 of score", target="table")), lagged),
    ]
    fit = drugs.ols("`number of drugs` ~ `number of visits`", target="table")
    slope = slopes(real, "drugs", "visits")[1]
    answers.append((fit.params["number of visits"], fit.bse["number of visits"], slope))
    for value, error, true in answers:
        assert abs(value - true) < 4.5 * error
        assert error < 0.1 * max(abs(true), 1.0)


def _of(estimate):
    return estimate.value, estimate.std_error


def test_a_file_keeps_them(tmp_path, noisy):
    noisy.save(tmp_path / "r.sfm")
    again = load(tmp_path / "r.sfm")
    assert again.schema.questions == SCHEMA.questions
    for table, left in (("visits", "mean of score"), ("drugs", "number of drugs")):
        assert again.table(table).units.mean(left) == noisy.table(table).units.mean(left)
    assert {name for name in again.table("drugs").units.columns if name.startswith("ever of drug")} == {
        "ever of drug=c"
    }


def test_features_that_were_not_named_together_are_refused(noisy):
    with pytest.raises(EstimateError, match="named together before the fit"):
        noisy.table("visits").units.ols("`change of score` ~ age")
    with pytest.raises(ConfigError, match=r"Expected one of the columns|named"):
        noisy.table("visits").units.mean("first of score")


def test_tables_without_questions_answer_as_before(tables):
    # of one fit in nine the model of whole units is too far from its measurements to answer
    noisy = MaxEntropy(epsilon=9.0, delta=1e-6, calibration_rows=2_000).fit(tables, schema=SCHEMA, seed=2)
    assert noisy.table("measurements").units.mean("number of measurements").std_error > 0


def test_the_budget_is_that_of_the_plan_and_is_forecast():
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    plan = method.plan(SCHEMA)
    named = {stage.name: stage for stage in plan.stages if "questions" in stage.name}
    assert set(named) == {"visits, named questions", "drugs, named questions"}
    noise = [named[f"{table}, named questions"].noise_multiplier for table in ("visits", "drugs")]
    assert noise[0] == pytest.approx(noise[1], rel=1e-6), "weights of 4 on either side"
    without = method.plan(schema(N))
    whole = sum(1 / stage.noise_multiplier**2 for stage in without.stages)
    assert sum(1 / stage.noise_multiplier**2 for stage in plan.stages) == pytest.approx(whole, rel=1e-3)
    assert 1 / noise[0] ** 2 == pytest.approx(whole * 0.25 / 2, rel=1e-3)
    forecasts = answer_forecasts(plan, Facts(SCHEMA, None, N))
    assert {forecast.question for forecast in forecasts} == {question.words for question in SCHEMA.questions}
    assert "intervals" in method.forecast(plan, Facts(SCHEMA, None, N))["drugs, named questions"]
    wanted = next(forecast for forecast in forecasts if "number of visits" in forecast.question)
    facts = Facts(SCHEMA, None, N)
    assert method.noise_for_answer(plan, facts, wanted.question, wanted.width) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("mean: value", "right below"),
        ("ols: value ~ score", "right below"),
        ("mean: mean of drug", "a column of numbers in 'mean of drug'"),
        ("share: ever of state=gone", "a label of a column"),
        ("correlation: lag 9 of score", "a lag from 1 to 4"),
        ("correlation: score", "pairs of rows"),
        ("ols: `number of visits` ~ wealth", "wealth"),
        ("mean: mean of wealth", "right below"),
        ("mean: mean of end", "measured themselves"),
        ("correlation: lag 1 of end", "of which the distance is"),
        ("ols: `ever of drug=c` ~ at", "right below"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_a_charge(question, message):
    with pytest.raises((SchemaError, ConfigError), match=message):
        MaxEntropy(epsilon=1.0, delta=1e-6).plan(replace(schema(N), questions=[question]))


def test_a_column_of_the_name_of_a_count_is_itself():
    """Columns of users come first: `number of visits` of theirs is no count of rows."""
    found = document(N)
    found["columns"] = {**found["columns"], "number of visits": {"kind": "integer", "lower": 0, "upper": 9}}
    found["tables"]["persons"]["columns"] = [*found["tables"]["persons"]["columns"], "number of visits"]
    known = Schema.from_dict({**found, "questions": ["ols: `number of drugs` ~ `number of visits`"]})
    tables = hospital(N, 3)
    tables["persons"]["number of visits"] = pd.Series(np.arange(N) % 10)
    release = MaxEntropy(epsilon=20.0, delta=1e-6, calibration_rows=500).fit(tables, schema=known, seed=1)
    [question] = branch_views(known)["visits"].schema.questions or branch_views(known)["drugs"].schema.questions
    units = release.table("drugs").units
    assert units.mean("number of visits").value == pytest.approx(4.5, abs=0.2)
    assert abs(units.ols(question.formula).params["number of visits"]) < 0.1
