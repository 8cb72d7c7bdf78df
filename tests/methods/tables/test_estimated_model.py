"""A model of marginals that others measured: what was measured comes back, and what was not is not made up."""

import itertools
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato import Measurement, Schema, estimate_model, load, marginal
from sfumato.errors import ConfigError
from sfumato.measurements import Cells, MarginalQuery

N = 8_000
EXAMPLE = Path(__file__).parents[3] / "examples" / "marginals_of_others.py"
SCHEMA = Schema.from_dict({
    "rows": N,
    "columns": {
        "age": {"kind": "integer", "lower": 18, "upper": 90},
        "school": {"kind": "categorical", "categories": ["low", "mid", "high"]},
        "rich": {"kind": "boolean"},
        "pay": {"kind": "continuous", "lower": 0.0, "upper": 100.0, "nullable": True},
    },
})  # fmt: skip
EDGES = {"age": [18, 27, 36, 45, 54, 65, 90], "pay": [0, 10, 20, 40, 100]}
SIZES = {"age": 6, "school": 3, "rich": 2, "pay": 5}
PAIRS = list(itertools.combinations(SIZES, 2))


def people() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    z = rng.standard_normal(N)
    pay = np.where(rng.random(N) < 0.15, np.nan, np.clip(20 + 14 * z + 6 * rng.standard_normal(N), 0, 100))
    return pd.DataFrame({
        "age": np.clip(np.rint(45 + 14 * z), 18, 90).astype(int),
        "school": np.array(["low", "mid", "high"])[np.digitize(0.8 * z + rng.standard_normal(N), [-0.6, 0.7])],
        "rich": rng.random(N) < 1 / (1 + np.exp(1 - 1.5 * z)),
        "pay": pay,
    })  # fmt: skip


FRAME = people()


def cells(frame, name):
    if name == "school":
        return frame[name].map({"low": 0, "mid": 1, "high": 2}).to_numpy()
    if name == "rich":
        return frame[name].to_numpy().astype(int)
    places = np.searchsorted(EDGES[name], frame[name], side="right") - 1
    return np.where(frame[name].isna(), SIZES[name] - 1, np.clip(places, 0, len(EDGES[name]) - 2))


def table(frame, names):
    found = np.zeros([SIZES[name] for name in names])
    np.add.at(found, tuple(cells(frame, name) for name in names), 1)
    return found


def measured(names, noise_std=0.0, seed=0):
    noise = noise_std * np.random.default_rng([seed, *(list(SIZES).index(n) for n in names)]).standard_normal(
        [SIZES[name] for name in names]
    )
    edges = {name: EDGES[name] for name in names if name in EDGES}
    return marginal(SCHEMA, names, table(FRAME, names) + noise, noise_std=noise_std, edges=edges)


def distance(rows, pair):
    return np.abs(table(rows, pair) - table(FRAME, pair)).sum() / 2 / N


def test_booleans_are_counted_false_first():
    """As in the schema's order of labels: the tests above rest on it."""
    assert SCHEMA.columns["rich"].labels == ("false", "true")


def test_without_noise_tables_of_pairs_come_back():
    """Of every pair that was measured; 'age' of all rows in cells that are as fine as was measured."""
    rows = estimate_model(SCHEMA, [measured(pair) for pair in PAIRS]).sample(N, seed=1)
    assert max(distance(rows, pair) for pair in PAIRS) < 0.02


def test_as_noise_vanishes_what_was_measured_comes_back():
    errors = []
    for noise_std in (200.0, 40.0, 4.0):
        rows = estimate_model(SCHEMA, [measured(pair, noise_std) for pair in PAIRS]).sample(N, seed=1)
        errors.append(np.mean([distance(rows, pair) for pair in PAIRS]))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


def test_it_is_better_than_independent_columns_where_pairs_were_measured():
    alone = [measured([name], 30.0) for name in SIZES]
    pairs = [("age", "school"), ("age", "rich"), ("age", "pay")]
    rows = estimate_model(SCHEMA, [*alone, *(measured(pair, 30.0) for pair in pairs)]).sample(N, seed=1)
    apart = estimate_model(SCHEMA, alone).sample(N, seed=1)
    assert all(distance(rows, pair) < 0.5 * distance(apart, pair) for pair in pairs)
    # what was not measured follows from what was: school and rich both go with age
    assert distance(rows, ("school", "rich")) < distance(apart, ("school", "rich"))
    assert np.abs(apart["age"].corr(apart["rich"].astype(float))) < 0.03


def test_pairs_at_several_resolutions_and_columns_in_any_order():
    coarse = marginal(
        SCHEMA, ["rich", "age"], table(FRAME, ["rich", "age"]).reshape(2, 3, 2).sum(axis=2), noise_std=0.0,
        edges={"age": [18, 36, 54, 90]},
    )  # fmt: skip
    rows = estimate_model(SCHEMA, [*(measured([name]) for name in SIZES), coarse]).sample(N, seed=1)
    found, true = (table(frame, ["rich", "age"]).reshape(2, 3, 2).sum(axis=2) for frame in (rows, FRAME))
    assert np.abs(found - true).sum() / 2 / N < 0.02


def test_it_is_a_release_that_promises_nothing(tmp_path):
    release = estimate_model(SCHEMA, [measured(pair, 20.0) for pair in PAIRS])
    assert not release.certificate.private
    assert release.certificate.epsilon is None
    assert "its noise was drawn elsewhere" in repr(release.certificate)
    release.save(tmp_path / "r.sfm")
    again = load(tmp_path / "r.sfm")
    assert again.sample(100, seed=3).equals(release.sample(100, seed=3))
    assert again.certificate.measured_elsewhere
    assert "Nobody, by Sfumato" in again.certificate._repr_html_()
    assert "others drew the noise" in again.certificate._repr_html_()
    share = again.share({"rich": True}, target="table")
    assert abs(share.value - FRAME["rich"].mean()) < 4 * share.std_error
    assert share.std_error < 0.02
    assert again.sample(5, seed=0, given={"school": "mid"})["school"].tolist() == ["mid"] * 5


def test_the_number_of_rows_is_what_counts_add_up_to():
    open_rows = {**SCHEMA.to_dict()}
    del open_rows["rows"]
    release = estimate_model(open_rows, [measured(pair, 5.0) for pair in PAIRS])
    assert abs(release.certificate.n_public - N) < 100


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"columns": "agee"}, "got 'agee'. Known: 'age', 'school', 'rich', 'pay'"),
        ({"columns": ["school", "school"]}, "several different ones"),
        ({"counts": [[1, 2], [3, 4]]}, r"shape \(3,\), the cells 3 of 'school', got shape \(2, 2\)"),
        ({"counts": [1, 2]}, r"shape \(3,\)"),
        ({"counts": [1, 2, float("nan")]}, "counts of 'school' to be an array of finite numbers"),
        ({"counts": "many"}, "array of numbers, got str"),
        ({"noise_std": -1.0}, r"noise_std of counts of 'school' to be a number from 0 to 1e\+100, got noise_std=-1"),
        ({"noise_std": float("inf")}, "noise_std of counts of 'school'"),
        ({"noise_std": 1e200}, "noise_std of counts of 'school'"),
        ({"noise_std": 10**400}, "noise_std of counts of 'school'"),
        ({"noise_std": "1"}, r"number from 0 to 1e\+100, got noise_std='1'"),
        ({"noise_std": None}, r"number from 0 to 1e\+100, got noise_std=None"),
        ({"noise_std": True}, r"number from 0 to 1e\+100, got noise_std=True"),
        ({"counts": [1, 2, 1e200]}, "counts of 'school' to be an array of finite numbers"),
        ({"columns": 3}, "columns to be the name of a column, or several, got a int"),
        ({"columns": None}, "columns to be the name of a column, or several, got a NoneType"),
        ({"columns": [["school"]]}, "name one column or several different ones"),
        ({"edges": ["school"]}, "edges to be a mapping of columns to where their cells begin, got a list"),
        ({"edges": 0}, "edges to be a mapping of columns to where their cells begin, got a int"),
        ({"columns": "age", "edges": {"age": 5}}, "edges of 'age' to be a list of values, got a int"),
        ({"columns": "age", "edges": {"age": "18"}}, "edges of 'age' to be a list of values, got a str"),
        ({"columns": "age", "edges": {"age": [18, object(), 90]}}, "edges of 'age' that it may have as values"),
        ({"edges": {"school": [0, 1]}}, "edges of numbers or dates, got some of 'school'"),
        ({"edges": {"age": [18, 90]}}, "edges of columns of this marginal, got some of 'age'"),
        ({"columns": "pay"}, "edges of 'pay', which has too many values"),
        ({"columns": "age", "edges": {"age": [18, 50]}}, "from its lower bound 18 to its upper bound 90, got"),
        ({"columns": "age", "edges": {"age": [18, 50, 40, 90]}}, "edges of 'age' that rise"),
        ({"columns": "age", "edges": {"age": [18, "x", 90]}}, "edges of 'age' that it may have as values"),
        ({"columns": "pay", "edges": {"pay": [0.0, None, 100.0]}}, "edges of 'pay' that are values, got missing"),
    ],
)
def test_a_marginal_that_is_wrong_is_refused(arguments, problem):
    given = {"columns": "school", "counts": [1.0, 2.0, 3.0], "noise_std": 1.0, **arguments}
    with pytest.raises(ConfigError, match=problem):
        marginal(SCHEMA, **given)


SOME = np.array([-1, 0, -1, -1])


def test_measurements_that_make_no_model_are_refused():
    alone = [measured([name], 5.0) for name in SIZES]
    crossing = marginal(SCHEMA, "age", [N / 2, N / 2], noise_std=5.0, edges={"age": [18, 40, 90]})
    other = marginal({"columns": {"x": {"kind": "boolean"}}}, "x", [1, 2], noise_std=1.0)
    some = Measurement("some", np.ones(1), 1.0, query=MarginalQuery(((Cells("school", 4, groups=SOME),),)))
    bare = Measurement("a sum", np.array([1.0]), 1.0)
    textual = Measurement("counts", np.array(["1"] * 4), 1.0, query=MarginalQuery(((Cells("school", 4),),)))
    negative = Measurement("counts", np.zeros(4), -1.0, query=MarginalQuery(((Cells("school", 4),),)))
    shares = marginal(SCHEMA, "school", [0.2, 0.3, 0.5], noise_std=0.01)
    for given, problem in (
        ([*alone[:2], alone[3]], "with the column 'rich', got none"),
        ([], "with the column 'age', got none"),
        ([*alone, crossing], "cells of 'age' in all marginals"),
        ([*alone, other], "number 5 asks of 'x'"),
        ([*alone, bare], "got a sum as number 5"),
        ([*alone, some], "got some as number 5"),
        ([*alone, negative], "noise_std of counts"),
        ([*alone, 3], "got int as number 5"),
        ([*alone, textual], "Expected counts to be an array of finite numbers"),
        (3, "measurements to be a list of what sfumato.marginal makes, got a int"),
        (alone[0], "measurements to be a list of what sfumato.marginal makes, got a Measurement"),
        ([shares, *alone[:1], *alone[2:]], "Give counts, no shares"),
    ):
        with pytest.raises(ConfigError, match=problem):
            estimate_model(SCHEMA, given)
    weighted = {**SCHEMA.to_dict(), "weight": {"column": "pay", "upper": 100.0}}
    weighted["columns"]["pay"] = {"kind": "continuous", "lower": 0.0, "upper": 100.0}
    with pytest.raises(ConfigError, match="without weight for a model of measurements"):
        estimate_model(weighted, alone)


@pytest.mark.parametrize("rows", [N, None], ids=["declared", "not declared"])
@pytest.mark.parametrize("times", [0.5, 1.5, 1 / N], ids=["half", "more", "shares"])
def test_tables_of_other_rows_are_refused(rows, times):
    """Whatever the other tables say together: here with so little noise that one table more hardly moves their sum."""
    document = {key: value for key, value in SCHEMA.to_dict().items() if key != "rows"}
    document |= {} if rows is None else {"rows": rows}
    alone = [measured([name], 1.0) for name in SIZES]
    wrong = marginal(SCHEMA, "school", times * table(FRAME, ["school"]), noise_std=30.0)
    with pytest.raises(ConfigError, match="counts of the same rows in all measurements, got counts of 'school' that"):
        estimate_model(document, [*alone, wrong])
    noisy = marginal(SCHEMA, "school", table(FRAME, ["school"]) + 100, noise_std=300.0)
    assert estimate_model(document, [*alone, noisy]).certificate.n_public == pytest.approx(N, abs=20)


def test_the_example_makes_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(tmp_path / "people.csv")])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    rows = pd.read_csv(tmp_path / "people.csv", keep_default_na=False)
    assert len(rows) == 12_000
    old = rows[rows["age"] >= 65]
    assert (old["work"] == "none").mean() > 0.8
    assert "age" in capsys.readouterr().out


@pytest.mark.parametrize("resolution", ["day", "hour"])
def test_dates_have_neither_distances_nor_times_that_nobody_measured(resolution):
    last = "2020-12-31" if resolution == "day" else "2020-12-31 23:00"
    date = {"kind": "datetime", "lower": "2020-01-01", "upper": last, "resolution": resolution}
    edges = ["2020-01-01", "2020-04-01", "2020-09-01", last]
    counts = [[300, 100, 0], [0, 300, 100], [0, 0, 200]]
    schema = {"columns": {"a": date, "b": date}, "rows": 1_000}
    table = marginal(schema, ["a", "b"], counts, noise_std=1.0, edges={"a": edges, "b": edges})
    release = estimate_model(schema, [table])
    rows = release.sample(2_000, seed=0)
    assert list(rows.columns) == ["a", "b"]
    assert (rows["a"] < "2020-04-01").mean() == pytest.approx(0.4, abs=0.03)
    assert (rows["b"] < "2020-04-01").mean() == pytest.approx(0.3, abs=0.03)
    assert len(release.sample(20, given={"a": "2020-02-05", "b": "2020-02-09"}, seed=1)) == 20
