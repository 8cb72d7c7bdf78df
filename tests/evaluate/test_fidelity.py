"""k-way total variation against pandas, on every kind of column and at every edge."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import ConfigError, DataError, SchemaError
from sfumato.evaluate import fidelity, total_variation
from sfumato.evaluate.fidelity import SAMPLED_SETS, column_sets
from sfumato.schema.schema import Schema

COLUMNS = {
    "age": {"kind": "integer", "lower": 10, "upper": 90},
    "pay": {"kind": "continuous", "lower": -2.0, "upper": 3.0, "nullable": True},
    "job": {"kind": "categorical", "categories": ["a", "b", "c"], "nullable": True},
    "grade": {"kind": "ordinal", "categories": ["lo", "mid", "hi"]},
    "flag": {"kind": "boolean"},
    "day": {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31"},
    "person": {"kind": "identifier"},
}
SCHEMA = Schema.from_dict({"columns": COLUMNS})


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    job = rng.choice(["a", "b", "c", None], n, p=[0.5, 0.2, 0.2, 0.1])
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, n), unit="D")
    return pd.DataFrame(
        {
            "age": np.clip(rng.normal(40 + seed, 15, n).round(), 10, 90).astype("int64"),
            "pay": np.where(rng.random(n) < 0.2, np.nan, np.clip(rng.normal(0, 2, n), -2, 3)),
            "job": pd.Series(job, dtype="str"),
            "grade": rng.choice(["lo", "mid", "hi"], n),
            "flag": rng.random(n) < 0.3,
            "day": days,
            "person": [f"p{i}" for i in range(n)],
        }
    )


def pandas_bins(frame: pd.DataFrame) -> pd.DataFrame:
    """Bins as text, by pandas: 20 equal widths, closed on the left, the last on both sides."""

    def cut(values, lower, upper):
        edges = np.linspace(lower, upper, 21)
        edges[-1] = np.inf
        return pd.cut(values, edges, right=False, labels=range(20)).astype("object").fillna("missing")

    binned = frame.drop(columns="person").astype({"flag": "str", "job": "object"})
    binned["age"] = cut(frame["age"], 10, 90)
    binned["pay"] = cut(frame["pay"], -2, 3)
    first = pd.Timestamp("2020-01-01")
    binned["day"] = cut((frame["day"] - first).dt.days, 0, 365)
    return binned.fillna("missing").astype("str")


def pandas_distance(real: pd.DataFrame, synthetic: pd.DataFrame, k: int) -> float:
    real, synthetic = pandas_bins(real), pandas_bins(synthetic)
    distances = []
    for columns in itertools.combinations(real.columns, k):
        p = real.value_counts(list(columns), normalize=True)
        q = synthetic.value_counts(list(columns), normalize=True)
        distances.append(p.subtract(q, fill_value=0).abs().sum() / 2)
    return float(np.mean(distances))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(400, 900), (30, 7), (1, 1)])
def test_against_pandas(k, sizes):
    # 30 and 7 rows have fewer rows than cells, so the sparse counts are compared as well
    real, synthetic = people(sizes[0], 1), people(sizes[1], 2)
    expected = pandas_distance(real, synthetic, k)
    assert total_variation(real, synthetic, schema=SCHEMA, k=k) == pytest.approx(expected, abs=1e-12)
    assert total_variation(synthetic, real, schema=SCHEMA, k=k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_counting_in_blocks_changes_nothing(monkeypatch, k):
    real, synthetic = people(300, 1), people(500, 2)
    whole = total_variation(real, synthetic, schema=SCHEMA, k=k)
    monkeypatch.setattr(fidelity, "_BLOCK_ROWS", 7)
    assert total_variation(real, synthetic, schema=SCHEMA, k=k) == whole


def test_identical_and_disjoint_tables():
    frame = people(200, 1)
    high = frame.assign(age=90, grade="lo")
    for k in (1, 2, 3):
        assert total_variation(frame, frame, schema=SCHEMA, k=k) == 0
    schema = Schema.from_dict({"columns": {name: COLUMNS[name] for name in ("age", "grade")}})
    low = frame.assign(age=10, grade="hi")
    assert total_variation(low, high, schema=schema, k=1) == 1
    assert total_variation(low, high, schema=schema, k=2) == 1


def test_by_hand():
    schema = Schema.from_dict({"columns": {"x": {"kind": "continuous", "lower": 0, "upper": 1, "nullable": True}}})
    real = pd.DataFrame({"x": [0.0, 0.049, 0.05, 1.0, np.nan]})
    synthetic = pd.DataFrame({"x": [0.01, 0.94, 0.95, 7.0, -7.0]})
    # bins: real 0: 2, 1: 1, 19: 1, missing: 1; synthetic 0: 2, 18: 1, 19: 2
    expected = (0 + 1 + 1 + 1 + 1) / 5 / 2
    assert total_variation(real, synthetic, schema=schema, k=1) == pytest.approx(expected)


def test_constant_and_all_missing_columns():
    real = people(50, 1).assign(age=10, pay=np.nan, job=pd.Series([None] * 50, dtype="str"))
    same = people(70, 2).assign(age=10, pay=np.nan, job=pd.Series([None] * 70, dtype="str"))
    schema = Schema.from_dict({"columns": {name: COLUMNS[name] for name in ("age", "pay", "job")}})
    for k in (1, 2, 3):
        assert total_variation(real, same, schema=schema, k=k) == 0
    filled = same.assign(pay=1.0)
    assert total_variation(real, filled, schema=schema, k=1) == pytest.approx(1 / 3)


def test_many_categories_stay_sparse():
    labels = [f"c{i}" for i in range(50_000)]
    kind = {"kind": "categorical", "categories": labels}
    schema = Schema.from_dict({"columns": {name: kind for name in "xyz"}})
    rng = np.random.default_rng(0)
    real, synthetic = (pd.DataFrame({name: rng.choice(labels[:n], 500) for name in "xyz"}) for n in (5, 50_000))
    expected = pd.concat([real.value_counts(), -synthetic.value_counts()]).groupby(level=[0, 1, 2])
    distance = total_variation(real, synthetic, schema=schema, k=3)  # 1.25e14 cells
    assert distance == pytest.approx(expected.sum().abs().sum() / 1000)


def test_files_and_frames_agree(tmp_path):
    real, synthetic = people(100, 1), people(80, 2)
    real.to_csv(tmp_path / "r.csv", index=False)
    synthetic.to_parquet(tmp_path / "s.parquet")
    from_files = total_variation(tmp_path / "r.csv", tmp_path / "s.parquet", schema=SCHEMA, k=2)
    assert from_files == total_variation(real, synthetic, schema=SCHEMA, k=2)


class TestSets:
    @pytest.mark.parametrize(("d", "k"), [(5, 1), (15, 2), (500, 2), (10, 3), (1500, 1)])
    def test_all_sets(self, d, k):
        assert list(column_sets(d, k)) == list(itertools.combinations(range(d), k))

    @pytest.mark.parametrize(("d", "k"), [(501, 2), (30, 3), (3000, 3), (2500, 1)])
    def test_a_fixed_sample(self, d, k):
        sets = list(column_sets(d, k))
        assert sets == list(column_sets(d, k))
        assert len(set(sets)) == len(sets) == SAMPLED_SETS
        assert all(list(s) == sorted(set(s)) and len(s) == k for s in sets)
        # every column is drawn about equally often: binomial, six deviations (about 1e-9 each)
        counts = np.bincount(np.concatenate(sets), minlength=d)
        mean = SAMPLED_SETS * k / d
        assert abs(counts - mean).max() < 6 * math.sqrt(mean) + 6


@pytest.mark.parametrize("k", [0, 4, -1, 1.5, None])
def test_k_outside_its_domain(k):
    with pytest.raises(ConfigError, match="k to be a whole number from 1 to 3"):
        total_variation(people(5, 1), people(5, 2), schema=SCHEMA, k=k)


def test_tables_that_cannot_be_compared():
    real = people(5, 1)
    with pytest.raises(DataError, match="rows to evaluate"):
        total_variation(real, real.iloc[:0], schema=SCHEMA, k=1)
    with pytest.raises(SchemaError, match="'grade'"):
        total_variation(real, real.drop(columns="grade"), schema=SCHEMA, k=1)
    images = Schema.from_dict({"columns": {"x": {"kind": "image", "shape": [2, 2]}}})
    with pytest.raises(ConfigError, match="images in column 'x'"):
        total_variation(np.zeros((3, 2, 2), np.uint8), np.zeros((3, 2, 2), np.uint8), schema=images, k=1)


def test_what_has_no_place_is_a_value_of_its_own():
    schema = Schema.from_dict({"columns": {"c": {"kind": "categorical", "categories": ["a", "b"]}}})
    real = pd.DataFrame({"c": ["a"] * 9 + ["b"]})
    for synthetic in (["zz"] * 10, [None] * 10):
        found = total_variation(real, pd.DataFrame({"c": pd.Series(synthetic, dtype="str")}), schema=schema, k=1)
        assert found == pytest.approx(1)
    some = pd.DataFrame({"c": ["a"] * 8 + ["b", "zz"]})
    assert total_variation(real, some, schema=schema, k=1) == pytest.approx(0.1)
