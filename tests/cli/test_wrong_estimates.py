"""`sfumato estimate` with wrong words of every kind: one sentence, never a traceback (`call` looks for one)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures.costly import slow_after

N = 500


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)), "sex": rng.choice(["f", "m"], N),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, N), "D"),
        }
    )  # fmt: skip
    columns = {
        "a": {"kind": "continuous", "lower": -5, "upper": 5, "nullable": True},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "day": {"kind": "datetime", "lower": "2020-01-01", "upper": "2021-01-01"},
    }
    place = tmp_path_factory.mktemp("release") / "r.sfm"
    sfumato.fit(frame, {"rows": N, "columns": columns}, epsilon=8.0, delta=1e-5).save(place)
    return place


WORDS = ["", " ", "a", "sex", "day", "nonsense", "sex=f", "sex=x", "a=1", "=", "a=", "0.5", "nan", "1e999", "-1", "`a"]
QUESTIONS = ["mean", "variance", "quantile", "correlation", "share", "missing", "count", "crosstab", "nonsense", "a ~"]


@pytest.mark.parametrize("question", slow_after(1, QUESTIONS))
def test_wrong_words_get_a_sentence(call, path, question) -> None:
    for words in ([], *([word] for word in WORDS), *(["a", word] for word in WORDS), ["a", "sex", "day"]):
        found = call("estimate", path, question, "--", *words)
        assert found.code in (0, 1, 2)


@pytest.mark.parametrize(
    "options",
    [
        ["--level", "2"], ["--level", "x"], ["--level", "nan"], ["--by", "a"], ["--by", "day"], ["--by", ""],
        ["--of", "x"], ["--json", "--csv"], ["--list"], ["--pairs", "3"], ["--units"], ["--logit"],
        ["--by", "nonsense"],
    ],
)  # fmt: skip
def test_wrong_options_get_a_sentence(call, path, options) -> None:
    assert call("estimate", path, "mean", "a", *options).code in (1, 2)


@pytest.mark.parametrize("formula", ["~ a", "a ~ zz", "a ~ b c", "sex ~ lag(a)", "a ~ (", "a ~ log(sex)", "a~0"])
@pytest.mark.parametrize("options", [[], ["--logit"]])
def test_wrong_formulas_get_a_sentence(call, path, formula, options) -> None:
    assert call("estimate", path, formula, *options).code in (1, 2)


def test_shares_of_missing_cells(call, path) -> None:
    found = call("estimate", path, "missing", "a", "--json").json
    assert found["low"] < 0.2 < found["high"]
    groups = call("estimate", path, "missing", "a", "--by", "sex", "--json").json["groups"]
    assert {entry["group"] for entry in groups} == {"f", "m"}
    assert call("estimate", path, "missing", "sex").code == 2


def test_questions_are_asked_as_the_list_names_them(call, path) -> None:
    names = {answer["kind"] for answer in call("estimate", path, "--list", "--json").json["answers"]}
    assert {"median", "rows"} <= names
    median = call("estimate", path, "median", "a", "--json").json
    assert median == call("estimate", path, "quantile", "a", "--json").json
    assert median == call("estimate", path, "quantile", "a", "0.5", "--json").json
    assert call("estimate", path, "rows", "--json").json == call("estimate", path, "count", "--json").json
    assert "Expected crosstab COL COL, got 'crosstab sex'" in call("estimate", path, "crosstab", "sex").err
