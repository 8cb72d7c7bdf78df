"""Classifiers that learn from a sample of the rows: which rows, what is said of it, and that all remain possible."""

import inspect

import numpy as np
import pandas as pd
import pytest

from fixtures import tables
from fixtures.command_line import call
from sfumato.cli import quality_commands
from sfumato.errors import ConfigError
from sfumato.evaluate import classifier_scores, evaluate, over_runs
from sfumato.evaluate.utility import TRAIN_ROWS
from sfumato.release_front import Release
from sfumato.report import write_report
from sfumato.schema.schema import Schema

__all__ = ["call"]

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "x": {"kind": "continuous", "lower": -5, "upper": 5},
            "t": {"kind": "categorical", "categories": ["no", "yes"]},
        }
    }
)


def rows(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).clip(-5, 5)
    return pd.DataFrame({"x": x, "t": np.where(x + rng.normal(size=n) > 0, "yes", "no")})


REAL, SYNTHETIC, TEST = rows(2_000, 1), rows(400, 2), rows(3_000, 3)


def scores(**settings):
    return evaluate(REAL, SYNTHETIC, schema=SCHEMA, test=TEST, target="t", **settings)["utility"]


@pytest.mark.slow
def test_only_the_larger_table_is_sampled_and_all_rows_remain_possible():
    every, sampled = scores(), scores(train_rows=400)
    assert every["sample"] is None
    assert scores(train_rows=2_000) == every
    assert sampled["per_classifier"] == every["per_classifier"]  # 400 synthetic rows are all
    assert sampled["real"] != every["real"]
    assert (sampled["sample"]["rows"], sampled["sample"]["of"]) == (400, {"real": 2_000})
    assert scores(train_rows=400) == sampled
    assert scores(train_rows=400, seed=1)["real"] != sampled["real"]


def test_a_sample_is_drawn_at_random_and_scored_on_all_test_rows():
    """In order, the first rows would hold one class alone."""
    sorted_rows = REAL.sort_values("t")
    found = evaluate(sorted_rows, sorted_rows, schema=SCHEMA, test=TEST, target="t", train_rows=200)["utility"]
    assert found["auroc"] > 0.75
    assert found["accuracy"] * len(TEST) * 4 == pytest.approx(round(found["accuracy"] * len(TEST) * 4))
    assert found["real"]["auroc"] == found["auroc"]  # the same rows of equal tables


@pytest.mark.slow
def test_the_stated_error_is_of_the_size_of_what_a_sample_changes():
    """Over draws, the mean stated error is no less than half the mean change from all rows."""
    every = classifier_scores(REAL, TEST, schema=SCHEMA, target="t")
    stated, true = [], []
    for seed in range(6):
        found = evaluate(REAL, SYNTHETIC, schema=SCHEMA, test=TEST, target="t", train_rows=200, seed=seed)["utility"]
        stated.append(found["sample"]["error"]["real"]["auroc"])
        true.append(abs(found["real"]["auroc"] - every["auroc"]))
    assert 0.5 * np.mean(true) < np.mean(stated) < 8 * np.mean(true)


@pytest.mark.slow
def test_over_runs_and_bad_numbers():
    found = over_runs(lambda seed: evaluate(
        REAL, SYNTHETIC, schema=SCHEMA, test=TEST, target="t", train_rows=300, seed=seed
    ), runs=2)["utility"]["sample"]  # fmt: skip
    assert found["rows"] == 300
    assert set(found["error"]["real"]["auroc"]) == {"mean", "low", "high", "values"}
    for bad in (3, 0, -3, 4.5):
        with pytest.raises(ConfigError, match="train_rows"):
            scores(train_rows=bad)


def test_the_default_is_one_number_everywhere():
    of_release = inspect.signature(Release.evaluate).parameters["train_rows"].default
    of_page = inspect.signature(write_report).parameters["train_rows"].default
    assert quality_commands._TRAIN_ROWS == of_release == of_page == TRAIN_ROWS
    assert inspect.signature(evaluate).parameters["train_rows"].default is None


@pytest.mark.slow
def test_the_command_and_the_page_say_the_error(tmp_path, call, monkeypatch):
    from sfumato import MaxEntropy

    monkeypatch.chdir(tmp_path)
    frame = tables.frame()
    release = MaxEntropy(epsilon=1.0).fit(frame, schema=tables.schema(), target="income")
    release.save("r")
    tables.write_csv(tmp_path / "people.csv")
    found = call("evaluate", "table", "people.csv", "r", "--target", "income", "--train-rows", 60)
    assert found.code == 0
    assert "Classifiers learned from 60 of 240 synthetic and 240 real rows" in found.out
    assert (
        "learned from" not in call("evaluate", "table", "people.csv", "r", "--target", "income", "--train-rows", 0).out
    )
    assert call("evaluate", "table", "people.csv", "r", "--train-rows", -1).code == 2
    assert call("report", "r", "--out", "p.html", "--real", "people.csv", "--train-rows", 60).code == 0
    text = " ".join((tmp_path / "p.html").read_text(encoding="utf-8").split())
    assert "They learned from 60 rows of each larger table (synthetic: of 240, real: of 240), drawn at random." in text


def test_clusters_learn_from_the_rows_that_classifiers_do(monkeypatch):
    from sklearn.cluster import KMeans

    seen = []
    fit = KMeans.fit
    monkeypatch.setattr(
        KMeans, "fit", lambda self, x, *rest, **more: seen.append(x.shape[0]) or fit(self, x, *rest, **more)
    )
    evaluate(REAL, SYNTHETIC, schema=SCHEMA, test=TEST, target="t", train_rows=300)
    assert seen[-2:] == [300, 300]  # before them, the starts of mixtures of log-likelihoods
