"""`estimate`: every question, the three forms of output, and calls that are wrong; `sample --replicates`."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fixtures import tables
from sfumato.cli import app as cli_app
from sfumato.data_ledger.data_ledger import read_ledger
from sfumato.release_front import load


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    home = tmp_path_factory.mktemp("fitted")
    tables.write_csv(home / "people.csv")
    (home / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    fit = ("fit", home / "people.csv", "--schema", home / "schema.yaml", "--epsilon", 50, "--out", home / "r")
    assert cli_app.run([str(part) for part in (*fit, "--target", "income", "--set", "calibration_rows=1000")]) == 0
    return home / "r"


QUESTIONS = [
    ("mean", "age"), ("variance", "weight"), ("quantile", "age", 0.25), ("correlation", "age", "weight"),
    ("share", "sex=f"), ("share", "sex=f", "income=>50K"), ("count",), ("count", "member=true"),
    ("mean", "age", "--by", "income"), ("share", "sex=f", "--by", "income"), ("crosstab", "sex", "income"),
    ("share", "age=30..50"), ("count", "age=..50", "sex=f"), ("quantile", "age", 0.5, "--by", "sex"),
    ("mean", "age", "--by", "income", "--difference", "<=50K", ">50K"), ("correlations", "age", "weight"),
    ("crosstab", "sex", "income", "--simultaneous"), ("age ~ C(income)", "--at", "income=>50K"),
    ("age ~ weight", "--family", "poisson"), ("weight ~ age", "--family", "gamma", "--simultaneous"),
    ("age ~ C(income)",), ("age ~ weight", "--by", "income"), ("income ~ C(sex)", "--logit"),
]  # fmt: skip


@pytest.mark.parametrize(
    "question",
    [q if i % 2 else pytest.param(q, marks=pytest.mark.slow) for i, q in enumerate(QUESTIONS)],
    ids=lambda question: " ".join(map(str, question)),
)
def test_every_question_in_every_form(call, release, question):
    shown = call("estimate", release, *question, "--level", 0.9)
    assert shown.code == 0, shown.err
    assert "low" in shown.out
    assert "Measured" in shown.out
    plain = call("estimate", release, *question, "--json").json
    table = pd.read_csv(io.StringIO(call("estimate", release, *question, "--csv").out))
    assert {"low", "high", "std_error"} <= set(table.columns)
    assert (table["low"] <= table["high"]).all()
    if "groups" in plain:
        assert len(plain["groups"]) == (len(table) if "value" in table else table["group"].nunique())
    elif "terms" in plain:
        assert [term["term"] for term in plain["terms"]] == table["term"].tolist()
    else:
        assert plain["value"] == pytest.approx(table["value"].item())
        assert plain["level"] == 0.95
        assert plain["rests_on"]


@pytest.mark.parametrize("question", [("independence", "sex", "income"), ("anova", "age", "income")])
def test_tests_of_hypotheses_in_every_form(call, release, question):
    shown = call("estimate", release, *question)
    assert shown.code == 0, shown.err
    assert "Measured" in shown.out
    plain = call("estimate", release, *question, "--json").json
    table = pd.read_csv(io.StringIO(call("estimate", release, *question, "--csv").out))
    assert list(table.columns) == ["hypothesis", "statistic", "df", "p"]
    assert table["p"].item() == pytest.approx(plain["p"])
    assert plain["p"] == getattr(load(release), question[0])(*question[1:]).pvalue


def test_it_says_what_python_says(call, release):
    found = load(release)
    assert call("estimate", release, "mean", "age", "--json").json["value"] == found.mean("age").value
    told = call("estimate", release, "mean", "age", "--of", "table", "--json").json
    assert (told["target"], told["std_error"]) == ("table", found.mean("age", target="table").std_error)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (("medain", "age"), "Did you mean"),
        (("mean",), "Expected mean COL, got 'mean'"),
        (("quantile", "age", "0.5", "x"), "Expected quantile COL [Q]"),
        (("quantile", "age", "half"), "between 0 and 1"),
        (("share", "sex"), "COL=LABEL"),
        (("mean", "nothing"), "nothing"),
        (("mean", "age", "--logit"), "--logit"),
        (("correlation", "age", "weight", "--by", "sex"), "--by"),
        (("mean", "age", "--difference", "f", "m"), "--difference"),
        (("mean", "age", "--by", "sex", "--difference", "f", "x"), "'x'"),
        (("mean", "age", "--at", "age=3"), "--at"),
        (("age ~ C(sex)", "--at", "sex=f", "--at", "sex=m"), "twice"),
        (("age ~ C(sex)", "--at", "weight=3"), "right side"),
        (("mean", "age", "--simultaneous"), "--simultaneous"),
        (("independence", "sex", "income", "--simultaneous"), "--simultaneous"),
        (("mean", "age", "--family", "gamma"), "--family"),
        (("income ~ age", "--logit", "--family", "gamma"), "both"),
        (("share", "age=50..30"), "first end"),
        (("correlations",), "at least two"),
        (("mean", "age", "--level", 2), "level"),
        (("mean", "age", "--json", "--csv"), "both"),
    ],
)
def test_wrong_questions_are_one_sentence_and_2(call, release, question, said):
    result = call("estimate", release, *question)
    assert (result.code, result.out) == (2, "")
    assert said in result.err


def test_what_was_not_measured_ends_with_1(call, release):
    result = call("estimate", release, "age ~ C(sex) * weight")
    assert (result.code, result.out) == (1, "")
    assert "two columns go together" in " ".join(result.err.split())


def test_a_release_named_as_rows_is_refused_before_a_charge(call, release, tmp_path):
    ledger, home = tmp_path / "people.ledger", release.parent
    call("ledger", "create", ledger, "--epsilon", 1, "--delta", 1e-4)
    fit = ("--schema", home / "schema.yaml", "--epsilon", 1, "--ledger", ledger, "--out", tmp_path / "r.csv")
    for command, *more in (("fit",), ("tune", "--grid", "marginal_share=0.3,0.5")):
        result = call(command, home / "people.csv", *fit, *more)
        assert result.code == 2, result.err
        assert "a name of rows" in " ".join(result.err.split())
    assert read_ledger(ledger).fits == ()
    assert not (tmp_path / "r.csv").exists()


@pytest.mark.slow
def test_replicates_have_an_index(call, release, tmp_path):
    out = tmp_path / "rows.csv"
    assert call("sample", release, "--out", out, "-n", 30, "--replicates", 3, "--seed", 1).code == 0
    rows = pd.read_csv(out)
    assert rows.columns[0] == "replicate"
    assert rows["replicate"].value_counts().to_dict() == {1: 30, 2: 30, 3: 30}
    assert set(rows["sex"]) <= {"f", "m"}
    parquet = tmp_path / "rows.parquet"
    assert call("sample", release, "--out", parquet, "-n", 30, "--replicates", 3, "--seed", 1).code == 0
    assert pd.read_parquet(parquet)["replicate"].tolist() == rows["replicate"].tolist()


@pytest.mark.parametrize("beside", [("--given", "sex=f"), ("--class-count", "<=50K=3"), ("--workers", 2)])
def test_replicates_stand_alone(call, release, tmp_path, beside):
    result = call("sample", release, "--out", tmp_path / "rows.csv", "--replicates", 3, *beside)
    assert result.code == 2
    assert "--replicates" in result.err
    assert not (tmp_path / "rows.csv").exists()


class TestParity:
    """`evaluate --inference`: real coefficients beside the release's, or beside those of rows."""

    FORMULAS = ("--inference", "age ~ C(income)", "--inference", "income ~ C(sex)")

    def test_a_release_beside_real_rows(self, call, release):
        real = release.parent / "people.csv"
        compared = call("evaluate", "table", real, release, *self.FORMULAS, "--json").json["inference"]
        assert [(found["kind"], found["from"]) for found in compared] == [
            ("least squares", "release"), ("logistic", "release")
        ]  # fmt: skip
        estimate = {t["term"]: t for t in call("estimate", release, "age ~ C(income)", "--json").json["terms"]}
        for term in compared[0]["terms"]:
            assert term["synthetic"] == pytest.approx(estimate[term["term"]]["coef"])
            assert term["same_sign"] == (term["real"] * term["synthetic"] > 0)
            assert term["difference"] == pytest.approx((term["synthetic"] - term["real"]) / term["real_error"])

    def test_where_the_model_is_not_what_was_measured_all_say_so(self, call, release, tmp_path):
        real, sound = release.parent / "people.csv", load(release)
        arrays = {
            name: np.flip(array, -1).copy() for name, array in sound.parameters.items() if name.endswith(".table")
        }
        broken = tmp_path / "broken.sfm"
        replace(sound, parameters={**sound.parameters, **arrays}).save(broken)
        found = load(broken).disagreements()
        assert found
        one = {"columns": list(found[0].columns), "says": str(found[0])}
        assert call("evaluate", "table", real, broken, "--json").json["disagreements"][0] == one
        assert call("evaluate", "table", real, release, "--json").json["disagreements"] == []
        assert "disagreements" not in call("evaluate", "table", real, real, "--json").json
        finding = ("age ~ C(income)", "Intercept", "--epsilon", 1)
        for arguments in (("table", real, broken), ("finding", real, broken, *finding)):
            assert f"The model is not what was measured: {found[0]}" in call("evaluate", *arguments).out
        assert "not what was measured" not in call("evaluate", "table", real, release).out
        for options in ((), ("--real", real)):
            page = tmp_path / f"page{len(options)}.html"
            call("report", broken, "--out", page, *options)
            assert "not what was measured" in page.read_text(encoding="utf-8")

    def test_real_rows_beside_themselves(self, call, release):
        real = release.parent / "people.csv"
        schema = release.parent / "schema.yaml"
        shown = call("evaluate", "table", real, real, "--schema", schema, *self.FORMULAS)
        assert "NOT private" in shown.out
        compared = call("evaluate", "table", real, real, "--schema", schema, *self.FORMULAS, "--json").json["inference"]
        frame = pd.read_csv(real)
        means = frame.groupby("income")["age"].mean()
        terms = compared[0]["terms"]
        common, other = frame["income"].value_counts().index  # the commonest label is the reference
        assert terms[1]["term"] == f"C(income)[T.{other}]"
        assert terms[1]["real"] == pytest.approx(means[other] - means[common], rel=1e-6)
        assert all(t["same_sign"] and t["same_significance"] and t["difference"] == 0 for t in terms)

    def test_a_wrong_formula_is_2(self, call, release):
        result = call("evaluate", "table", release.parent / "people.csv", release, "--inference", "age ~ nothing")
        assert result.code == 2
        assert "nothing" in result.err


@pytest.mark.slow
def test_the_list_in_every_form(call, release):
    shown = call("estimate", release, "--list", "--pairs", 4)
    assert shown.code == 0, shown.err
    for needed in ("mean", "share", "single records", "were not measured", "Of the population"):
        assert needed in shown.out
    plain = call("estimate", release, "--list", "--pairs", 4, "--json").json
    table = pd.read_csv(io.StringIO(call("estimate", release, "--list", "--pairs", 4, "--csv").out))
    assert [a["kind"] for a in plain["answers"]] == table["kind"].tolist()
    own = load(release).answers(most_pairs=4)
    of_dates = own["std_error"].map(lambda error: isinstance(error, pd.Timedelta))
    assert of_dates.any()
    assert table["std_error"][of_dates].tolist() == own["std_error"][of_dates].map(pd.Timedelta.isoformat).tolist()
    numbers = table["std_error"][~of_dates].dropna().astype(float).tolist()
    assert numbers == pytest.approx(own["std_error"][~of_dates].dropna().tolist())
    told = call("estimate", release, "--list", "--pairs", 0, "--of", "table", "--json").json
    assert told["target"] == "table"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--list"),
        (("--pairs", 3, "mean", "age"), "--list beside --pairs"),
        (("--list", "mean", "age"), "no question"),
        (("--list", "--by", "sex"), "no question"),
        (("--list", "--at", "age=3"), "no question"),
        (("--list", "--pairs", -1), "at least 0"),
        (("--list", "--json", "--csv"), "both"),
    ],
)
def test_wrong_lists_are_refused(call, release, arguments, said):
    found = call("estimate", release, *arguments)
    assert found.code != 0
    assert said in found.err
    assert not found.out
