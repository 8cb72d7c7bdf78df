"""Correlations, clusters, neighbours, runs and images, each against a computation that shares no code with it."""

import functools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fixtures import tables
from sfumato.errors import ConfigError
from sfumato.evaluate import (
    classifier_scores,
    correlation_differences,
    evaluate,
    image_scores,
    log_likelihood,
    nearest_rows,
    over_runs,
    total_variation,
)
from sfumato.schema.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "columns": {
            "a": {"kind": "continuous", "lower": -4, "upper": 4, "nullable": True},
            "b": {"kind": "continuous", "lower": -4, "upper": 4},
            "constant": {"kind": "continuous", "lower": 0, "upper": 1},
            "c": {"kind": "categorical", "categories": ["x", "y", "z"], "nullable": True},
            "d": {"kind": "boolean"},
        }
    }
)


def people(n, seed, strength):
    rng = np.random.default_rng(seed)
    a = np.clip(rng.normal(size=n), -4, 4)
    b = np.clip(strength * a + rng.normal(size=n), -4, 4)
    d = a > 0
    c = np.where(rng.random(n) < strength, np.where(d, "x", "y"), "z").astype(object)
    c[rng.random(n) < 0.1] = None
    return pd.DataFrame({"a": np.where(rng.random(n) < 0.1, np.nan, a), "b": b, "constant": 0.1, "c": c, "d": d})


REAL, SYNTHETIC, TEST = people(300, 1, 0.8), people(250, 2, 0.3), people(200, 3, 0.8)


def cramers_v(first, second):
    counts = pd.crosstab(first.fillna("none"), second).to_numpy(float)
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    chi2 = ((counts - expected) ** 2 / expected).sum()
    return math.sqrt(chi2 / counts.sum() / (min(counts.shape) - 1))


SCORES = [
    correlation_differences,
    functools.partial(evaluate, target="d", test=TEST),
    functools.partial(classifier_scores, target="d"),
    functools.partial(log_likelihood, components=2),
    nearest_rows,
    functools.partial(total_variation, k=2),
]


@pytest.mark.parametrize("score", SCORES)
def test_a_schema_may_be_a_path(score, tmp_path):
    SCHEMA.save(tmp_path / "schema.yaml")
    assert score(REAL, SYNTHETIC, schema=tmp_path / "schema.yaml") == score(REAL, SYNTHETIC, schema=SCHEMA)
    assert score(REAL, SYNTHETIC, schema=SCHEMA.to_dict()) == score(REAL, SYNTHETIC, schema=SCHEMA)
    with pytest.raises(ConfigError, match="path of a schema file, got int"):
        score(REAL, SYNTHETIC, schema=3)


def test_correlations():
    found = correlation_differences(REAL, SYNTHETIC, schema=SCHEMA)
    pearson = []
    for frame in (REAL, SYNTHETIC):
        known = frame.dropna(subset="a")
        pearson.append(stats.pearsonr(known["a"], known["b"]).statistic)
    difference = abs(pearson[0] - pearson[1])
    assert found["pearson"]["largest"] == pytest.approx(difference, abs=1e-9)
    assert found["pearson"]["mean"] == pytest.approx(difference / 3)  # pairs with the constant count as 0
    assert found["pearson"]["worst"] == ["a", "b"]
    expected = abs(cramers_v(REAL["c"], REAL["d"]) - cramers_v(SYNTHETIC["c"], SYNTHETIC["d"]))
    assert found["cramers_v"] == {
        "mean": pytest.approx(expected),
        "largest": pytest.approx(expected),
        "worst": ["c", "d"],
    }
    assert correlation_differences(REAL, REAL, schema=SCHEMA)["pearson"]["largest"] == 0


def test_correlations_of_too_few_columns():
    schema = Schema.from_dict({"columns": {"a": {"kind": "boolean"}}})
    frame = pd.DataFrame({"a": [True, False]})
    assert correlation_differences(frame, frame, schema=schema) == {"pearson": None, "cramers_v": None}


def features(frame):
    known = REAL["a"].dropna()
    return np.column_stack(
        [
            ((frame["a"] - known.mean()) / known.std(ddof=0)).fillna(0),
            frame["a"].isna(),
            (frame["b"] - REAL["b"].mean()) / REAL["b"].std(ddof=0),
            np.zeros(len(frame)),
            *((frame["c"] == label) for label in "xyz"),
            frame["c"].isna(),
            ~frame["d"],
            frame["d"],
        ]
    ).astype(float)


def distances(first, second):
    return np.linalg.norm(first[:, None] - second[None], axis=2)


def test_neighbours():
    synthetic = pd.concat([SYNTHETIC, REAL.iloc[:5]])
    found = nearest_rows(REAL, synthetic, schema=SCHEMA, k=3)
    x, y = features(REAL), features(synthetic)
    nearest = distances(y, x).min(axis=1)
    among = np.sort(distances(x, x), axis=1)
    assert found["median_distance"] == pytest.approx(np.median(nearest))
    assert found["tenth_distance"] == pytest.approx(np.quantile(nearest, 0.1))
    assert found["real_median_distance"] == pytest.approx(np.median(among[:, 1]))
    assert found["coverage"] == pytest.approx(np.mean(distances(x, y).min(axis=1) <= among[:, 3]))
    assert found["identical"] == pytest.approx(5 / len(synthetic))
    assert found["nearer_to_real"] is None
    assert "prove nothing" in found["caveat"]


def test_nearer_to_real():
    copied = nearest_rows(REAL, REAL, schema=SCHEMA, test=TEST)
    assert copied["nearer_to_real"] > 0.6  # 200 of the 300 rows are compared with
    other = nearest_rows(REAL, people(500, 9, 0.8), schema=SCHEMA, test=TEST)
    assert abs(other["nearer_to_real"] - 0.5) < 6 * 0.5 / math.sqrt(200)


def test_few_rows_have_no_balls():
    found = nearest_rows(REAL.iloc[:4], SYNTHETIC, schema=SCHEMA, k=5)
    assert found["coverage"] is None
    assert nearest_rows(REAL.iloc[:1], SYNTHETIC, schema=SCHEMA)["real_median_distance"] is None


def test_runs():
    def score(seed):
        return {"private": False, "fidelity": {"x": float(seed), "none": None}, "utility": None, "rows": {"real": 3}}

    found = over_runs(score, runs=4)
    low, high = stats.t.interval(0.95, 3, loc=1.5, scale=stats.sem([0, 1, 2, 3]))
    values = [0.0, 1.0, 2.0, 3.0]
    expected = {"mean": 1.5, "low": pytest.approx(low), "high": pytest.approx(high), "values": values}
    assert found["fidelity"] == {"x": expected, "none": None}
    assert (found["rows"], found["utility"], found["runs"]) == ({"real": 3}, None, 4)
    with pytest.raises(ConfigError):
        over_runs(score, runs=1)


def test_all_scores_of_a_table():
    found = evaluate(REAL, SYNTHETIC, schema=SCHEMA, test=TEST, target="d")
    assert found["fidelity"]["tvd_3way"] == total_variation(REAL, SYNTHETIC, schema=SCHEMA, k=3)
    # NIST's formula, from the sum of absolute differences, which is at most 2
    l1 = 2 * total_variation(REAL, SYNTHETIC, schema=SCHEMA, k=2)
    assert found["fidelity"]["k_marginal"] == pytest.approx((2 - l1) * 500)
    assert 0.5 <= found["utility"]["clustering"]["real"] <= 1


class TestImages:
    SCHEMA = tables.image_schema()

    def test_distances(self):
        real, made = tables.images(200, 0), tables.images(100, 1)
        found = evaluate(real, made, schema=self.SCHEMA)
        shares = [np.bincount(y, minlength=3) / len(y) for _, y in (real, made)]
        assert found["fidelity"]["classes"] == pytest.approx(0.5 * np.abs(shares[0] - shares[1]).sum())
        gap = real[0].mean(axis=0) / 255 - made[0].mean(axis=0) / 255
        assert found["fidelity"]["mean_image"] == pytest.approx(math.sqrt(np.mean(gap**2)), rel=1e-4)
        assert (found["utility"], found["private"]) == (None, False)
        assert found["rows"] == {"real": 200, "synthetic": 100}

    def test_a_network_learns_what_there_is_to_learn(self):
        pytest.importorskip("torch", reason="networks need the extra nets")
        noise = np.random.default_rng(0).integers(0, 256, (200, 4, 4)).astype(np.uint8)
        made = noise, np.random.default_rng(1).integers(0, 3, 200)
        found = evaluate(tables.images(200, 0), made, schema=self.SCHEMA, test=tables.images(150, 2), target="y")
        assert found["utility"]["real"]["accuracy"] > 0.7
        assert found["utility"]["accuracy"] < 0.65
        assert found["utility"]["scored_on"] == "test"

    def test_without_torch_it_says_so(self, monkeypatch):
        monkeypatch.setattr(image_scores, "has_torch", lambda: False)
        found = evaluate(tables.images(50, 0), tables.images(50, 1), schema=self.SCHEMA, target="y")
        assert found["utility"]["accuracy"] is None
        assert "sfumato[nets]" in found["utility"]["missing"]

    def test_the_global_stream_of_torch_is_left_alone(self):
        torch = pytest.importorskip("torch", reason="networks need the extra nets")
        before = torch.random.get_rng_state()
        x, y = np.zeros((4, 4, 4, 1), np.float32), np.array([0, 1, 0, 1])
        accuracies = {image_scores.cnn_accuracy((x, y), (x, y), classes=2, seed=0, epochs=1) for _ in range(2)}
        assert len(accuracies) == 1
        assert torch.equal(before, torch.random.get_rng_state())

    def test_another_target(self):
        with pytest.raises(ConfigError, match="'y', got target='x'"):
            evaluate(tables.images(5), tables.images(5), schema=self.SCHEMA, target="x")


OPEN = Schema.from_dict(
    {
        "columns": {
            "n": {"kind": "integer", "lower": 0, "upper": 4},
            "c": {"kind": "categorical", "categories": ["a", "b"]},
            "y": {"kind": "boolean"},
        }
    }
)


def test_cells_outside_the_schema_are_told():
    """A release that has nothing in common with the real rows does not look perfect."""
    rng = np.random.default_rng(0)
    real = pd.DataFrame(
        {"n": rng.integers(100, 999, 60), "c": rng.choice(["x", "y", "z"], 60), "y": rng.random(60) < 0.5}
    )
    synthetic = pd.DataFrame({"n": [4] * 60, "c": ["a"] * 60, "y": real["y"]})
    found = evaluate(real, synthetic, schema=OPEN, test=synthetic[:10], target="y")
    assert found["outside"] == {"real": {"n": 1.0, "c": 1.0}, "synthetic": {}, "test": {}}
    assert found["neighbours"]["identical"] == 0
    assert found["fidelity"]["tvd_1way"] == pytest.approx((0 + 1 + 0) / 3)
    within = evaluate(synthetic, synthetic, schema=OPEN)
    assert within["outside"] == {"real": {}, "synthetic": {}}
    assert within["neighbours"]["identical"] == 1


def test_unknown_labels_teach_nothing():
    rows = pd.DataFrame({"n": [0, 1, 2, 3] * 5, "c": ["a", "b", "zz", "zz"] * 5, "y": [True, False] * 10})
    found = evaluate(rows, rows, schema=OPEN, target="c")
    known = rows[rows["c"] != "zz"]
    assert found["utility"] == evaluate(known, known, schema=OPEN, target="c")["utility"]


def test_deviations_far_below_the_bounds():
    schema = Schema.from_dict(
        {"columns": {"x": {"kind": "continuous", "lower": 0, "upper": 1e308}, "y": {"kind": "boolean"}}}
    )
    frame = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40) % 2 == 0})
    found = evaluate(frame, frame, schema=schema, target="y")
    assert np.isfinite(found["neighbours"]["median_distance"])


def test_counts_are_not_summed_up_over_runs():
    def score(seed):
        near = {"coverage": seed / 2, "caveat": "none"}
        return {"private": False, "fidelity": {"columns": 5, "x": 0.5 * seed}, "neighbours": near}

    found = over_runs(score, runs=2)
    assert found["fidelity"]["columns"] == 5
    assert found["neighbours"]["coverage"]["mean"] == 0.25
    assert found["neighbours"]["caveat"] == "none"


@pytest.mark.parametrize("k", [0, 4, 1.0, True + 3, "1"])
def test_sets_of_columns_are_whole_numbers(k: object) -> None:
    frame = pd.DataFrame({"a": [True], "b": [True], "c": [True]})
    schema = Schema.from_dict({"rows": 1, "columns": dict.fromkeys(frame.columns, "boolean")})
    with pytest.raises(ConfigError, match="whole number from 1 to 3"):
        total_variation(frame, frame, schema=schema, k=k)  # type: ignore[arg-type]


def test_scores_come_from_a_function() -> None:
    with pytest.raises(ConfigError, match="score to be a function"):
        over_runs(3, runs=2)  # type: ignore[arg-type]
