"""Which records of a unit count: as many as allowed, each as likely as the next, whatever order they come in."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.columns.kinds import Boolean, Categorical, Identifier, Integer
from sfumato.columns.sets import CodedSets
from sfumato.fitting.arguments import RowCount
from sfumato.io.sources import open_source
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.records.engine import reduce
from sfumato.records.private import OpenData, PrivateData
from sfumato.records.units import content_hashes
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit

KINDS = {"who": Identifier(), "what": Categorical(categories=("a", "b", "c", "d")), "yes": Boolean()}


def schema(max_rows: int) -> Schema:
    return Schema(columns=KINDS, rows=1000, unit=Unit(column="who", max_rows=max_rows))


def kept(frame: pd.DataFrame, max_rows: int, chunk_rows: int = 65_536) -> Counter[tuple[int, ...]]:
    """The coded records that count, as a bag."""
    data = PrivateData(open_source(frame, chunk_rows=chunk_rows), schema(max_rows))
    return Counter(
        row for rows in data.coded() for row in zip(*(map(int, column) for column in rows.values()), strict=True)
    )


def visits(n: int, units: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "who": [f"u{i}" for i in rng.integers(0, units, n)],
            "what": rng.choice(list("abcd"), n),
            "yes": rng.integers(0, 2, n).astype(bool),
        }
    )


@pytest.mark.slow
@pytest.mark.audit
@settings(deadline=None, max_examples=60)
@given(
    who=st.lists(st.integers(0, 3), min_size=1, max_size=25),
    seed=st.integers(0, 1000),
    max_rows=st.integers(1, 4),
    chunk_rows=st.integers(1, 8),
)
def test_order_and_chunks_change_nothing_and_no_unit_has_more(who, seed, max_rows, chunk_rows):
    frame = visits(len(who), 1, seed).assign(who=[f"u{i}" for i in who])
    found = kept(frame, max_rows)
    shuffled = frame.sample(frac=1, random_state=seed)
    assert kept(shuffled, max_rows, chunk_rows) == found
    sizes = frame.groupby("who").size().clip(upper=max_rows)
    assert sum(found.values()) == sizes.sum()
    for one, rows in frame.groupby("who"):
        alone = kept(rows, max_rows)
        rest = kept(frame[frame["who"] != one], max_rows) if len(rows) < len(frame) else Counter()
        assert found == alone + rest, "a unit changes its own rows alone"


def test_the_rows_of_other_containers_are_chosen_alike(tmp_path):
    frame = visits(400, 40)
    frame.to_csv(tmp_path / "v.csv", index=False)
    frame.to_parquet(tmp_path / "v.parquet", index=False)
    found = kept(frame, 3)
    for path in ("v.csv", "v.parquet"):
        data = PrivateData(open_source(tmp_path / path), schema(3))
        rows = Counter(row for r in data.coded() for row in zip(*(map(int, c) for c in r.values()), strict=True))
        assert rows == found


def test_numbered_units_are_those_of_text():
    frame = visits(300, 20)
    numbers = frame.assign(who=frame["who"].str[1:].astype(int))
    texts = frame.assign(who=frame["who"].str[1:])
    assert kept(numbers, 2) == kept(texts, 2)


@pytest.mark.parametrize("max_rows", [1, 3])
def test_every_row_is_as_likely_to_be_kept(max_rows):
    """3,000 units of nine rows `a` and one row `b`: b is kept by a share of max_rows/10 of them."""
    n = 3000
    frame = pd.DataFrame(
        {"who": np.repeat([f"u{i}" for i in range(n)], 10), "what": list("aaaaaaaaab") * n, "yes": True}
    )
    found = kept(frame, max_rows)
    assert sum(found.values()) == n * max_rows
    share = found[(1, 1)] / n
    expected = max_rows / 10
    assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / n)


def test_equal_rows_of_one_unit_are_kept_as_often_as_allowed():
    frame = pd.DataFrame({"who": ["u"] * 50, "what": ["a"] * 50, "yes": [True] * 50})
    assert kept(frame, 7, chunk_rows=4) == {(0, 1): 7}


def test_records_before_their_schema_is_known_are_chosen_too():
    frame = visits(500, 50)
    opened = Schema(columns={**KINDS}, rows=500, unit=Unit(column="who", max_rows=2))
    data = [OpenData(open_source(f, chunk_rows=70), opened) for f in (frame, frame.sample(frac=1, random_state=1))]
    assert len({int(reduce(RowCount(), some).whole_in_mechanism()) for some in data}) == 1


def test_a_release_of_units_is_that_of_shuffled_rows():
    frame = visits(600, 80).assign(age=np.random.default_rng(1).integers(0, 90, 600))
    known = Schema(columns={**KINDS, "age": Integer(lower=0, upper=90)}, rows=600, unit=Unit(column="who", max_rows=3))
    fits = [
        MaxEntropy(epsilon=2.0).fit(some, schema=known, seed=1)
        for some in (frame, frame.sample(frac=1, random_state=3))
    ]
    for name, array in fits[0].parameters.items():
        assert np.array_equal(array, fits[1].parameters[name])


def test_contents_are_told_apart():
    sets = CodedSets(np.array([0, 2, 2, 3]), np.array([1, 2, 3]))
    rows = {
        "number": np.array([0.5, np.nan, 0.5]),
        "level": np.array([1, 1, 1]),
        "text": np.array(["a", None, "b"], dtype=object),
        "image": np.arange(12).reshape(3, 2, 2),
        "set": sets,
    }
    for name, column in rows.items():
        found = content_hashes({name: column}, 3)
        same = {"number": [(0, 2)], "level": [(0, 1), (0, 2), (1, 2)]}.get(name, [])
        for i, j in ((0, 1), (0, 2), (1, 2)):
            assert (found[i] == found[j]) == ((i, j) in same), (name, i, j)
    zeros = content_hashes({"x": np.array([0.0, -0.0])}, 2)
    assert zeros[0] == zeros[1]
    swapped = [content_hashes({"a": np.array([i]), "b": np.array([1 - i])}, 1)[0] for i in (0, 1)]
    assert swapped[0] != swapped[1]
