"""The list of what a release answers: the numbers of the questions themselves, and every reason why not."""

import dataclasses
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from fixtures.ruled import hospital, hospital_schema
from sfumato import MaxEntropy, Schema
from sfumato.columns import Categorical, Continuous
from sfumato.errors import ConfigError, EstimateError
from sfumato.inference.answers import answers
from sfumato.inference.noisy_totals import LEAST_SEEN, MOST_APART
from sfumato.inference.question_table import BY_KIND
from sfumato.report.estimates import answer_rows


@pytest.fixture(scope="module")
def found(release):
    return release.answers()


def line(found, kind, *columns):
    of = [found["kind"] == kind, *(found[at] == name for at, name in zip(("first", "second"), columns, strict=False))]
    (row,) = found[pd.concat(of, axis=1).all(axis=1)].to_dict(orient="records")
    return row


def pair_line(found, kind, columns):
    (row,) = [r for r in found[found["kind"] == kind].to_dict(orient="records") if {r["first"], r["second"]} == columns]
    return row


def test_numbers_are_those_of_the_questions(release, found):
    alone = {
        "mean": release.mean("x"), "median": release.quantile("x"), "variance": release.variance("x"),
    }  # fmt: skip
    for kind, estimate in alone.items():
        row = line(found, kind, "x")
        assert (row["value"], row["std_error"]) == (estimate.value, estimate.std_error), kind
        assert (row["low"], row["high"]) == estimate.interval(), kind
    row = pair_line(found, "correlation", {"x", "u"})
    assert row["value"] == pytest.approx(release.correlation("x", "u").value, rel=1e-8)
    assert line(found, "rows")["value"] == release.count(target="population").value


def test_typical_errors_are_medians_of_the_questions_errors(release, found):
    assert line(found, "share", "w")["std_error"] == pytest.approx(release.share({"w": "yes"}).std_error, rel=1e-6)
    by = release.mean("x", by="w").to_frame()["std_error"].median()
    assert line(found, "mean by", "x", "w")["std_error"] == pytest.approx(by, rel=1e-6)
    cells = release.crosstab("z", "w", normalize=True, target="population").to_frame()["std_error"].median()
    row = pair_line(found, "crosstab", {"z", "w"})
    assert row["std_error"] == pytest.approx(cells, rel=1e-6)
    assert (row["answered"], row["numbers"]) == ("yes", 4)


def test_regressions_of_pairs_are_the_formulas_own(release, found):
    for kind, ask in (("ols", release.ols), ("logit", release.logit)):
        row = found[found["kind"] == kind].iloc[0]
        fitted = ask(f"{row['first']} ~ {row['second']}")
        assert row["value"] == pytest.approx(fitted.params.iloc[1], rel=1e-6)
        assert row["std_error"] == pytest.approx(fitted.bse.iloc[1], rel=1e-6)
    row = found[found["kind"] == "ols by class"].iloc[0]
    groups = release.ols(f"{row['first']} ~ {row['second']}", by="z")
    assert row["numbers"] == len(groups) == 2
    assert row["std_error"] == pytest.approx(sum(g.bse.iloc[1] for g in groups.values()) / 2, rel=1e-6)


def test_every_line_has_words_on_the_page(found):
    assert {"ols", "ols by class"} <= set(found["kind"]) <= set(BY_KIND)
    assert len(answer_rows(found)) == (found["first"] != "").sum()


def test_what_cannot_be_answered_says_why(release, found):
    for kind in ("three columns", "single records"):
        assert line(found, kind)["answered"] == "no"
        assert line(found, kind)["why"]
    few = release.answers(most_pairs=1)
    left = line(few, "other pairs")
    assert (left["answered"], left["numbers"]) == ("not asked", 9)
    assert not (found["kind"] == "other pairs").any()  # 10 pairs, all of them listed
    assert (release.answers(most_pairs=0)["kind"] == "correlation").sum() == 0


def test_errors_of_the_table_have_no_sampling(release, found):
    own = release.answers(target="table", level=0.5, most_pairs=0)
    assert line(own, "mean", "x")["std_error"] == release.mean("x", target="table").std_error
    assert line(own, "mean", "x")["std_error"] < line(found, "mean", "x")["std_error"]
    assert line(own, "mean", "x")["high"] == release.mean("x", target="table").interval(0.5)[1]


@pytest.mark.slow
@pytest.mark.audit
def test_columns_that_follow_are_named():
    release = MaxEntropy(epsilon=3.0, delta=1e-5).fit(hospital(3_000), schema=hospital_schema(rows=3_000), seed=0)
    found = release.answers(most_pairs=3)
    named = found[found["kind"] == "column"]
    assert set(named["first"]) >= {"total", "stay", "discharged"}
    assert not (set(named["first"]) & {"age", "sex"})
    assert named["why"].str.contains("follows from others").all()
    assert "no target" in line(found, "ols by class")["why"]


def test_wrong_calls_are_refused(release):
    with pytest.raises(ConfigError, match="target"):
        release.answers(target="all")
    with pytest.raises(ConfigError, match="level"):
        release.answers(level=2.0)
    with pytest.raises(ConfigError, match="pairs"):
        release.answers(most_pairs=-1)
    with pytest.raises(EstimateError, match="measured how many rows"):
        dataclasses.replace(release, measurements=()).answers()


@pytest.fixture(scope="module")
def many_labels():
    """Two columns of 300 labels, of which most are rare, and a number."""
    rng, n, labels = np.random.default_rng(5), 6_000, [f"l{i:03d}" for i in range(300)]
    x = rng.random(n)
    codes = [np.floor(300 * (0.7 * x + 0.3 * rng.random(n)) ** 4).astype(int) for _ in range(2)]
    table = pd.DataFrame({"one": np.array(labels)[codes[0]], "two": np.array(labels)[codes[1]], "x": x})
    columns = {
        "one": Categorical(categories=labels),
        "two": Categorical(categories=labels),
        "x": Continuous(lower=0, upper=1),
    }
    return MaxEntropy(epsilon=1.0).fit(table, schema=Schema(columns=columns, rows=n), seed=1)


def test_memory_does_not_grow_with_pairs_of_labels(many_labels):
    """A table of rows × labels × labels would take 12 GB."""
    tracemalloc.start()
    try:
        found = many_labels.answers()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 400e6
    row = pair_line(found, "crosstab", {"one", "two"})
    assert 0 < row["numbers"] <= 400
    shares = line(found, "share", "one")
    assert (shares["answered"], shares["numbers"]) == ("some", 300)


def test_labels_that_stand_out_are_told_apart(many_labels):
    measured = many_labels._questions.measured
    apart, counts = measured.apart("one"), measured.counts("one")
    assert 1 < apart.size <= MOST_APART
    assert (counts.cells[apart] > LEAST_SEEN * counts.cell_variance**0.5).all()
    assert many_labels.share({"one": "l000"}).std_error > 0
    assert measured.apart("x").size == measured.column("x").n_cells


def test_the_list_ends_where_its_work_does(release):
    """What is asked is as in the whole list; what is not is counted."""
    questions, whole = release._questions, release.answers(most_pairs=None)
    few = answers(questions, most_work=1_000_000)
    left = {row["kind"]: row["numbers"] for row in few[few["answered"] == "not asked"].to_dict(orient="records")}
    assert 0 < left["other pairs"] < 10
    own = few[~few["kind"].isin({"other pairs", "other columns"}) & (few["second"] == "")]
    assert len(own) == len(whole[whole["second"] == ""])
    both = few.merge(whole, on=["kind", "first", "second"])
    pd.testing.assert_series_equal(both["std_error_x"], both["std_error_y"], check_names=False)
    none = answers(questions, most_work=0)
    assert line(none, "other columns")["numbers"] == 5
    assert line(none, "other pairs")["numbers"] == 10
