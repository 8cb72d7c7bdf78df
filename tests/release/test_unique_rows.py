"""Samples without unique rows: what is kept, in which order, and what is refused."""

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import ConfigError, SampleWarning
from sfumato.release.unique_rows import METADATA_KEY, digests, kept_records


def slowly(keys, n):
    """The rows to keep, one at a time: a pair needs room for two."""
    kept, once = [], {}
    held = Counter()
    for place, key in enumerate(keys):
        if len(kept) == n:
            break
        if held[key]:
            kept.append(place)
            held[key] += 1
        elif key in once and len(kept) + 2 <= n:
            kept += [once.pop(key), place]
            held[key] = 2
        elif key not in once:
            once[key] = place
    return sorted(kept)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 20, 55, 200])
def test_as_many_as_asked_for_and_none_alone(n):
    rng = np.random.default_rng(n)
    for _ in range(50):
        keys = rng.zipf(1.5, size=100).astype(np.uint64)
        kept = np.flatnonzero(kept_records(np.arange(keys.size), keys, n)).tolist()
        assert 1 not in Counter(keys[kept].tolist()).values()
        assert kept == slowly(keys.tolist(), n)


def largest(units):
    """The largest set of units each of whose rows another one has, by all sets of them."""
    found = set()
    for size in range(len(units) + 1):
        for some in combinations(range(len(units)), size):
            rows = Counter(key for place in some for key in set(units[place]))
            if 1 not in rows.values():
                found |= set(some)
    return found


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 20])
def test_as_many_units_as_asked_for_and_no_row_of_one_alone(n):
    rng = np.random.default_rng(n)
    full = 0
    for _ in range(40):
        units = [rng.zipf(1.6, rng.integers(1, 4)).tolist() for _ in range(9)]
        owners = np.repeat(np.arange(9), [len(rows) for rows in units])
        keep = kept_records(owners, np.concatenate(units).astype(np.uint64), n)
        kept = np.flatnonzero(keep).tolist()
        assert 1 not in Counter(key for place in kept for key in set(units[place])).values()
        assert len(kept) <= n
        assert keep.size == max(kept, default=-1) + 1
        first = max(m for m in range(10) if len(largest(units[:m])) <= n)
        whole = largest(units[:first])
        rows = {key for place in whole for key in units[place]}
        later = [place for place in range(first, 9) if set(units[place]) <= rows][: n - len(whole)]
        assert kept == sorted([*whole, *later])
        full += len(kept) == n
    assert full > 5 or n in (1, 8, 20)


def test_a_row_that_a_unit_has_twice_is_alone():
    owners, digest = np.array([0, 0, 1, 1, 2, 2]), np.array([5, 5, 7, 8, 7, 8], dtype=np.uint64)
    assert kept_records(owners, digest, 3).tolist() == [False, True, True]


def test_a_row_is_told_from_all_others():
    values = [None, "", "a", "None", 0, -1, 2**53, 2**53 + 1]
    text = pa.table({"x": pa.array([str(v) if v is not None else None for v in values])})
    assert len(set(digests(text, ["x"]).tolist())) == len(values)
    whole = pa.table({"x": pa.array([None, 0, -1, 2**53, 2**53 + 1])})
    assert len(set(digests(whole, ["x"]).tolist())) == 5
    again = pa.table({"x": pa.chunked_array([[2**53 + 1], [0, 0]])})
    assert set(digests(again, ["x"]).tolist()) <= set(digests(whole, ["x"]).tolist())
    two = pa.table({"x": ["a", "b", "a"], "y": ["b", "a", "b"]})
    first, second, third = digests(two, ["x", "y"])
    assert first == third != second


@pytest.mark.parametrize("given", [None, {"grade": "a"}, {"age": 4}])
def test_no_row_of_a_sample_is_alone(small, given):
    plain = small.sample(150, seed=1, given=given)
    assert not plain.duplicated(keep=False).all(), "the test needs rows that are alone"
    frame = small.sample(150, seed=1, given=given, unique_rows="drop")
    assert len(frame) == 150
    assert frame.duplicated(keep=False).all()
    assert frame.dtypes.equals(plain.dtypes)
    pd.testing.assert_frame_equal(frame, small.sample(150, seed=1, given=given, unique_rows="drop"))


def test_rows_repeat_on_some_columns(small):
    frame = small.sample(60, seed=1, unique_rows="drop", unique_columns=["age", "weight"])
    assert len(frame) == 60
    assert frame.duplicated(["age", "weight"], keep=False).all()
    assert not frame.duplicated(keep=False).all()


@pytest.mark.slow
def test_blocks_and_workers_draw_the_same(small, monkeypatch):
    whole = small.sample(20_000, seed=2, unique_rows="drop")
    assert len(whole) == 20_000
    two = pa.concat_tables(small.batches(20_000, seed=2, unique_rows="drop", workers=2))
    pd.testing.assert_frame_equal(two.to_pandas(), pa.table(whole).to_pandas(), check_dtype=False)


def test_too_few_are_told_before_a_row_is_yielded(people):
    with pytest.warns(SampleWarning, match=r"Expected 500 rows without unique ones, got \d+: too few of"):
        frame = people.sample(500, seed=0, unique_rows="drop")
    assert len(frame) < 500
    assert tuple(frame.columns) == people.schema.released
    assert len(people.sample(0, unique_rows="drop")) == 0
    with pytest.warns(SampleWarning, match="got 0"):
        assert len(people.sample(1, unique_rows="drop")) == 0


def test_a_file_says_what_was_done(small, tmp_path):
    small.write_sample(tmp_path / "rows.parquet", 100, seed=1, unique_rows="drop")
    assert b"NOT part of the guarantee" in pq.read_schema(tmp_path / "rows.parquet").metadata[METADATA_KEY]
    small.write_sample(tmp_path / "plain.parquet", 100, seed=1)
    assert METADATA_KEY not in (pq.read_schema(tmp_path / "plain.parquet").metadata or {})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"unique_rows": "hide"}, "'keep' or 'drop'"),
        ({"unique_columns": ["age"]}, "unique_rows='drop' only"),
        ({"unique_rows": "drop", "unique_columns": ["ages"]}, "of the release, got 'ages'"),
        ({"unique_rows": "drop", "unique_columns": "age"}, "list of column names"),
        ({"unique_rows": "drop", "unique_columns": []}, "list of column names"),
        ({"unique_rows": "drop", "class_counts": {"no": 5}}, "class_counts"),
    ],
)
def test_what_does_not_go_together_is_refused(small, tmp_path, options, said):
    with pytest.raises(ConfigError, match=said):
        small.write_sample(tmp_path / "rows.csv", **options)
    assert not (tmp_path / "rows.csv").exists()


def test_images_and_data_sets_are_refused(pictures):
    with pytest.raises(ConfigError, match="Expected a table to drop unique rows of, got images in column 'x'"):
        pictures.batches(5, unique_rows="drop")
