"""Named questions: answers that the release would refuse, samples that agree, and refusals before any charge."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sfumato import P3GM, MaxEntropy, NonPrivate, Schema, load
from sfumato.columns import Categorical, Continuous, Integer
from sfumato.errors import ConfigError, EstimateError, SchemaError
from sfumato.fitting.purposes import Facts
from sfumato.methods.tables.question_forecast import question_forecasts
from sfumato.methods.tables.question_stage import NAME, planned_parts
from sfumato.methods.tables.question_tilt import fit_tilts
from sfumato.privacy.ledger import Ledger

N = 8_000
COLUMNS = {
    "arm": Categorical(categories=("none", "new")),
    "sex": Categorical(categories=("f", "m")),
    "age": Integer(lower=18, upper=90),
    "cost": Continuous(lower=0, upper=1_000, resolution=0.1),
    "again": Categorical(categories=("no", "yes")),
}
SCHEMA = Schema(columns=COLUMNS, rows=N)
INTERACTION = "cost ~ age + C(arm) * C(sex)"
NAMED = ["ols: " + INTERACTION, "table: arm, sex, again", "mean: cost by arm, sex"]


def trial(n=N, seed=0) -> pd.DataFrame:
    """The new arm costs 60 more of women alone; they come again where the others do not."""
    rng = np.random.default_rng(seed)
    arm, sex = rng.choice(["none", "new"], n), rng.choice(["f", "m"], n, p=[0.45, 0.55])
    age = rng.integers(18, 91, n)
    both = (arm == "new") & (sex == "f")
    cost = np.clip(200 + 2 * age + 60 * both + rng.gamma(2, 40, n), 0, 1_000).round(1)
    again = np.where(rng.random(n) < np.where((arm == "new") == (sex == "f"), 0.7, 0.3), "yes", "no")
    return pd.DataFrame({"arm": arm, "sex": sex, "age": age, "cost": cost, "again": again})


@pytest.fixture(scope="module")
def release():
    return MaxEntropy(epsilon=2.0, delta=1e-6, calibration_rows=4_000).fit(
        trial(), schema=SCHEMA, questions=NAMED, seed=5
    )


@pytest.fixture(scope="module")
def plain():
    return MaxEntropy(epsilon=2.0, delta=1e-6, calibration_rows=4_000).fit(trial(), schema=SCHEMA, seed=5)


def test_an_interaction_is_answered(release, plain):
    fit = release.ols(INTERACTION)
    [term] = [name for name in fit.params.index if ":" in name]
    expected = 60 * (1 if (fit.references["arm"] == "none") == (fit.references["sex"] == "m") else -1)
    assert abs(fit.params[term] - expected) < 4 * fit.bse[term]
    assert abs(fit.params[term]) > 4 * fit.bse[term]
    assert fit.rests_on.startswith("Named before the fit")
    assert "Named" not in release.ols("cost ~ age").rests_on
    with pytest.raises(EstimateError, match="were not measured together"):
        plain.ols(INTERACTION)


def test_it_is_answered_as_it_is_written_otherwise(release):
    same = release.ols("cost ~ C(sex) * C(arm) + age")
    assert np.sort(same.params) == pytest.approx(np.sort(release.ols(INTERACTION).params), rel=1e-6)
    with pytest.raises(EstimateError, match="were not measured together"):
        release.ols("cost ~ np.log(age) + C(arm) * C(sex)")


def test_cells_of_three_labels_are_answered(release, plain):
    real = trial()
    cell = {"arm": "new", "sex": "f", "again": "yes"}
    share = release.share(cell)
    expected = (real[list(cell)] == pd.Series(cell)).all(axis=1).mean()
    assert abs(share.value - expected) < 4 * share.std_error < 0.04
    with pytest.raises(EstimateError, match="were not measured together"):
        plain.share(cell)


def test_means_of_groups_of_two_columns_are_answered(release, plain):
    real = trial().groupby(["arm", "sex"])["cost"].mean()
    means = release.mean("cost", by=["arm", "sex"])
    assert set(means) == set(real.index)
    for group, estimate in means.items():
        assert abs(estimate.value - real[group]) < 4.5 * estimate.std_error < 60
    with pytest.raises(EstimateError, match="were not measured together"):
        plain.mean("cost", by=["arm", "sex"])
    with pytest.raises(EstimateError, match="were not measured together"):
        release.mean("age", by=["arm", "sex"])


def test_samples_agree_with_what_was_measured(release, plain):
    def effect(frame):
        means = frame.groupby(["arm", "sex"])["cost"].mean()
        return means["new", "f"] - means["none", "f"] - means["new", "m"] + means["none", "m"]

    assert abs(effect(release.sample(60_000, seed=1)) - 60) < 15
    assert abs(effect(plain.sample(60_000, seed=1))) < 35
    counts = release.sample(60_000, seed=1).value_counts(["arm", "sex", "again"], normalize=True)
    real = trial().value_counts(["arm", "sex", "again"], normalize=True)
    assert (counts - real).abs().sum() / 2 < 0.03


def test_samples_given_values_agree_too(release):
    women = release.sample(20_000, seed=2, given={"sex": "f"})
    means = women.groupby("arm")["cost"].mean()
    assert set(women["sex"]) == {"f"}
    assert 40 < means["new"] - means["none"] < 80
    assert (women["again"] == "yes").groupby(women["arm"]).mean()["new"] > 0.6


def test_the_first_rows_do_not_depend_on_how_many(release):
    pd.testing.assert_frame_equal(release.sample(50, seed=3), release.sample(500, seed=3).head(50))


def test_a_file_holds_it_all(release, tmp_path):
    release.save(tmp_path / "named.sfm")
    again = load(tmp_path / "named.sfm")
    assert again.ols(INTERACTION).params.equals(release.ols(INTERACTION).params)
    pd.testing.assert_frame_equal(again.sample(200, seed=1), release.sample(200, seed=1))
    assert [question.words for question in again.schema.questions] == NAMED
    again.save(tmp_path / "twice.sfm")
    assert (tmp_path / "twice.sfm").stat().st_size < 1.1 * (tmp_path / "named.sfm").stat().st_size


def test_without_noise_the_answer_is_that_of_the_records():
    import statsmodels.formula.api as smf

    frame = trial()
    release = MaxEntropy(epsilon=NonPrivate()).fit(frame, schema=SCHEMA, questions=["ols: " + INTERACTION])
    fit = release.ols(INTERACTION)
    sexes, arms = fit.references["sex"], fit.references["arm"]
    real = smf.ols(f"cost ~ age + C(arm, Treatment('{arms}')) * C(sex, Treatment('{sexes}'))", frame).fit()
    np.testing.assert_allclose(np.sort(fit.params), np.sort(real.params), rtol=0.03, atol=1.0)


def test_its_part_of_the_budget_is_declared():
    method = MaxEntropy(epsilon=1.0, delta=1e-6, question_share=0.3)
    plan = method.plan(Schema(columns=COLUMNS, rows=N, questions=NAMED))
    shares = np.array([1 / stage.noise_multiplier**2 for stage in plan.stages])
    assert [stage.name for stage in plan.stages][-1] == NAME
    np.testing.assert_allclose(shares / shares.sum(), [0.7 * 0.3, 0.7 * 0.7, 0.3], rtol=1e-3)
    assert [stage.name for stage in method.plan(SCHEMA).stages] == ["marginals", "second moments"]


def test_a_plan_says_how_wide_answers_will_be():
    schema = Schema(columns=COLUMNS, rows=N, questions=[*NAMED, "logit: again ~ age"])
    method = MaxEntropy(epsilon=2.0, delta=1e-6)
    interaction, table, _, logit = question_forecasts(method.plan(schema), Facts(schema, None, N))
    assert 1 < interaction.width < 3
    assert np.isinf(interaction.unnamed)
    assert logit.width < logit.unnamed < 3
    assert table.cell == pytest.approx(method.plan(schema)[NAME].noise_multiplier * 2, rel=0.01)
    [*_, stage] = method.description(schema).stages
    assert "no answer unnamed" in stage.forecast


@pytest.mark.parametrize(
    ("question", "error"),
    [("ols: " + INTERACTION, 1.3), ("mean: cost by arm, sex", 1.05), ("table: arm, sex, again", 12.0)],
)
def test_the_budget_for_an_answer(question, error):
    schema, method = replace(SCHEMA, questions=NAMED), MaxEntropy(epsilon=0.1, delta=1e-6)
    epsilon = method.epsilon_for(schema, question=question, target_error=error)
    plan = replace(method, epsilon=epsilon).plan(schema)
    [got] = [f for f in question_forecasts(plan, Facts(schema, None, N)) if f.question == question]
    noise = (lambda width: width**2 - 1) if got.width else (lambda cell: cell**2)
    assert 0.96 * noise(error) < noise(got.width or got.cell) <= noise(error)


@pytest.mark.parametrize(
    ("question", "error", "words"),
    [
        ("ols: age ~ cost", 1.3, "one of the named questions"),
        ("mean: cost by arm, sex", 1.0, "above 1"),
        ("table: arm, sex, again", 1e-4, "more rows"),
        ("table: arm, sex, again", -1.0, "target_error"),
        ("nonsense", 1.2, "one of ols"),
        (3, 1.2, "named question"),
    ],
)
def test_no_budget_gives_such_an_answer(question, error, words):
    with pytest.raises((ConfigError, SchemaError), match=words):
        MaxEntropy(epsilon=1.0).epsilon_for(replace(SCHEMA, questions=NAMED), question=question, target_error=error)


def test_a_budget_for_answers_needs_a_method_that_measures_them():
    with pytest.raises(ConfigError, match="named questions"):
        P3GM(epsilon=1.0).epsilon_for(SCHEMA, question="ols: cost ~ age", target_error=1.2)


HARD = [
    "ols: cost ~ np.log(age + 1) + C(age > 60)",
    "ols: cost ~ C(age // 20)",
    "ols: cost ~ I(age == 44) + np.abs(age - 50)",
    "ols: cost ~ center(age) + scale(age):C(sex)",
    "poisson: cost ~ age",
    "ols: age ~ 0 + cost",
    "logit: again ~ 1",
]


@pytest.mark.parametrize("n", [5, 400])
def test_what_passes_the_check_is_measured(n, tmp_path):
    """Terms are functions of cells that the schema alone says, so that nothing is refused after the charge."""
    frame = trial(n).assign(cost=0.0) if n < 10 else trial(n)
    method = MaxEntropy(epsilon=0.5, delta=1e-6, calibration_rows=300)
    release = method.fit(frame, schema=Schema(columns=COLUMNS, rows=n), questions=[*HARD, *NAMED], seed=1)
    release.save(tmp_path / "hard.sfm")
    assert len(load(tmp_path / "hard.sfm").sample(20, seed=0)) == 20


def test_numbers_in_a_table_of_many_cells_have_wider_runs():
    """Two numbers of 33 and 35 runs are not refused: their table is of runs twice as wide, each of whole ones."""

    def ages(question: str, columns=COLUMNS) -> np.ndarray:
        ((_, part),) = planned_parts(Facts(Schema(columns=columns, questions=[question]), None, N))
        return part.query.tables[0][0].groups

    fine, coarse = ages("table: age, arm"), ages("table: age, cost")
    assert coarse.max() < fine.max() < 40
    assert all(len(np.unique(coarse[fine == run])) == 1 for run in range(fine.max() + 1))


def test_a_vector_has_the_share_of_all_its_questions():
    """Three regressions are one part, of as much of the budget as their weights say, beside a table's."""
    questions = [{"ols": "cost ~ age", "weight": 2}, "table: arm, sex", "logit: again ~ age", "ols: age ~ C(sex)"]
    parts = planned_parts(Facts(Schema(columns=COLUMNS, questions=questions), None, N))
    assert [[one.question.words for one in group] for group, _ in parts] == [
        ["ols: cost ~ age", "logit: again ~ age", "ols: age ~ C(sex)"],
        ["table: arm, sex"],
    ]
    assert [part.weight**2 for _, part in parts] == pytest.approx([0.8, 0.2], abs=1e-5)
    assert parts[0][1].query.shape == (6,)
    assert sum(part.weight**2 for _, part in parts) <= 1


def test_columns_to_discover_are_refused():
    from sfumato.schema.open_schema import OpenSchema

    document = {**SCHEMA.to_dict(), "questions": ["ols: cost ~ age"]}
    document["columns"] = {**document["columns"], "age": {"kind": "integer", "discover": True}}
    with pytest.raises(SchemaError, match="declared columns in the question 'ols: cost ~ age', got 'age'"):
        OpenSchema.from_dict(document)


WRONG = {
    "cost ~ nowhere": "got 'nowhere'",
    "cost ~ np.log(age + cost)": r"products of functions of one column each .*got np.log\(age \+ cost\)",
    "np.log(cost) ~ age": "infinite values, as a logarithm of 0",
    "cost ~ bs(age, df=4)": r"functions of single values .*got bs\(\)",
    "cost ~ I(sex == 'x')": "is always 0",
    "arm + cost ~ age": "numbers",
}


@pytest.mark.parametrize("formula", WRONG)
def test_wrong_questions_are_refused_before_anything_is_charged(monkeypatch, formula):
    charged = []
    monkeypatch.setattr(Ledger, "charge", lambda *_: charged.append(1))
    with pytest.raises((ConfigError, SchemaError), match=WRONG[formula]):
        MaxEntropy(epsilon=1.0).fit(trial(50), schema=SCHEMA, questions=["ols: " + formula])
    assert not charged


def test_columns_that_follow_by_a_rule_are_refused():
    columns = {**COLUMNS, "group": Categorical(categories=("young", "old"))}
    rules = ({"derived": "again", "from": "arm", "map": {"none": "no", "new": "yes"}},)
    schema = Schema(columns=columns, rows=N, rules=rules, questions=["table: again, sex"])
    with pytest.raises(SchemaError, match="'again', which follows from others by a rule"):
        MaxEntropy(epsilon=1.0).plan(schema)


def test_the_weight_and_distances_are_no_columns_to_name():
    weighted = Schema(columns={**COLUMNS, "w": Continuous(lower=0, upper=2)}, rows=N, weight="w")
    ordered = Schema(
        columns={**COLUMNS, "end": Integer(lower=18, upper=99)}, rows=N, rules=({"order": ["age", "end"]},)
    )
    for schema, name in ((weighted, "w"), (ordered, "end")):
        with pytest.raises(ConfigError, match=f"got '{name}'"):
            MaxEntropy(epsilon=1.0).plan(replace(schema, questions=(f"ols: cost ~ {name}",)))
        with pytest.raises(SchemaError, match=f"'{name}'"):
            MaxEntropy(epsilon=1.0).plan(replace(schema, questions=(f"mean: {name}",)))


def test_more_than_samples_can_agree_with_is_refused_before_the_charge(monkeypatch, tmp_path):
    """The same bounds hold where a release is read, so that none is paid for that nobody can load."""
    labels = Categorical(categories=tuple(map(str, range(60))))
    columns = {**COLUMNS, "group": labels}
    many = [f"ols: cost ~ C(group) + I(age > {age})" for age in range(20, 90, 2)]
    with pytest.raises(SchemaError, match="too many together"):
        MaxEntropy(epsilon=1.0).plan(Schema(columns=columns, rows=N, questions=many))
    few = [*many[:2], *(f"mean: cost by {by}" for by in ("arm", "sex", "again"))]
    frame = trial(300).assign(group="1")
    method = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=300)
    method.fit(frame, schema=Schema(columns=columns, rows=300), questions=few, seed=1).save(tmp_path / "few.sfm")
    assert len(load(tmp_path / "few.sfm").sample(10, seed=0)) == 10
    with pytest.raises(SchemaError, match="a table of at most"):
        MaxEntropy(epsilon=1.0).plan(Schema(columns=columns, rows=N, questions=["table: group, age, cost"]))


def test_of_an_interaction_r_squared_is_not_known(release, plain):
    """It is a function of products of three columns, which scores are not."""
    assert release.ols(INTERACTION).rsquared is None
    assert release.ols("cost ~ age").rsquared is not None
    assert plain.ols("cost ~ age").rsquared is not None


def test_replicates_have_the_noise_of_named_questions(release):
    """Combined, an interaction is as unsure as the release says; scores that do not move would leave sampling alone."""
    import statsmodels.formula.api as smf

    fit = release.ols(INTERACTION)
    arms, sexes = fit.references["arm"], fit.references["sex"]
    formula = f"cost ~ age + C(arm, Treatment('{arms}')) * C(sex, Treatment('{sexes}'))"
    values, stated = [], fit.bse[next(name for name in fit.params.index if ":" in name)]
    for frame in release.replicates(12, n=40_000, seed=1):
        params = smf.ols(formula, frame).fit().params
        values.append(float(params[next(name for name in params.index if ":" in name)]))
    assert 0.55 * stated < np.std(values, ddof=1) < 1.6 * stated
    assert abs(abs(np.mean(values)) - 60) < 4 * stated


def test_other_methods_refuse_them():
    from sfumato import P3GM

    with pytest.raises(ConfigError, match="without named questions for the method p3gm"):
        P3GM(epsilon=1.0).plan(Schema(columns=COLUMNS, rows=N, questions=NAMED))


@pytest.mark.parametrize("stretch", [1.0, 3.0])
def test_weights_move_the_noise(stretch):
    questions = ["ols: cost ~ age", {"table": ["arm", "sex"], "weight": stretch}]
    frame = trial(500)
    release = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=500).fit(
        frame, schema=Schema(columns=COLUMNS, rows=500), questions=questions, seed=1
    )
    scores, table = release.measurements[-2:]
    assert scores.noise_std / table.noise_std == pytest.approx(np.sqrt(stretch), rel=1e-5)


def test_weighted_records_are_asked():
    rng = np.random.default_rng(0)
    frame = trial().assign(w=rng.uniform(0.2, 2.0, N).round(3))
    columns = {**COLUMNS, "w": Continuous(lower=0, upper=2)}
    schema = Schema(columns=columns, rows=N, weight="w")
    release = MaxEntropy(epsilon=4.0, delta=1e-6, calibration_rows=4_000).fit(
        frame, schema=schema, questions=NAMED, seed=3
    )
    fit = release.ols(INTERACTION)
    [term] = [name for name in fit.params.index if ":" in name]
    assert abs(abs(fit.params[term]) - 60) < 4 * fit.bse[term] < 60


def test_samples_have_the_means_that_rows_are_calibrated_to():
    """Fitted to samples that are tilted already, multipliers are those of noise that contradicts itself.

    Of the tables of this seed it hardly does; of one seed in three they are as large as before.
    """
    method = MaxEntropy(epsilon=2.0, delta=1e-6, calibration_rows=4_000)
    release = method.fit(trial(), schema=SCHEMA, questions=NAMED, seed=8)
    measured = release._questions.measured
    queries = [m.query for m in release.measurements[2:] if m.origin.stage == NAME]
    tilts = fit_tilts(measured, queries)
    stored = [release.parameters[f"tilt.{i}"] for i in range(len(tilts))]
    assert max(np.abs(first).max() for first in stored) < 10
    before, after = (sum(float(multipliers @ multipliers) for multipliers in those) for those in (
        stored, [again.multipliers for again in tilts]
    ))  # fmt: skip
    assert after < 0.2 * before
