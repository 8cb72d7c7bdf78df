"""Linked rows in their order: by the order, by content where that ties, by nothing in the file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.columns.kinds import Categorical, Identifier, Integer
from sfumato.errors import SchemaError
from sfumato.fitting.arguments import RowCount
from sfumato.io.sources import open_source
from sfumato.records import sequences
from sfumato.records.engine import reduce
from sfumato.records.linked import LinkedData
from sfumato.records.sequences import STEPS
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit

KINDS = {
    "who": Identifier(),
    "day": Integer(lower=0, upper=10, nullable=True),
    "home": Categorical(categories=("n", "s")),
    "what": Categorical(categories=("a", "b", "c")),
}


def schema(max_rows: int = 3, order: str | None = "day") -> Schema:
    return Schema(columns=KINDS, unit=Unit(column="who", max_rows=max_rows, order=order, constant=("home",), units=50))


def data(frame: pd.DataFrame, found: Schema | None = None, chunk_rows: int = 65_536) -> LinkedData:
    return LinkedData(open_source(frame, chunk_rows=chunk_rows), found or schema())


def people(frame: pd.DataFrame, found: Schema | None = None, chunk_rows: int = 65_536) -> list:
    """The rows of each unit as a fit reads them, in an order of their own."""
    sequences = data(frame, found, chunk_rows).sequences()
    codes = [sequences.codes[name] for name in ("day", "home", "what")]
    rows = [tuple(np.nan_to_num(c[i], nan=-1.0) for c in codes) for i in range(codes[0].size)]
    return sorted(tuple(rows[s : s + n]) for s, n in zip(sequences.starts, sequences.sizes, strict=True))


def visits(who: list[int], seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = rng.integers(0, 4, len(who)).astype(float)
    days[rng.random(len(who)) < 0.2] = np.nan
    return pd.DataFrame(
        {
            "who": [f"u{i}" for i in who],
            "day": days,
            "home": rng.choice(["n", "s"], len(who)),
            "what": rng.choice(list("abc"), len(who)),
        }
    )


@settings(deadline=None, max_examples=60)
@given(
    who=st.lists(st.integers(0, 3), max_size=25),
    seed=st.integers(0, 1000),
    max_rows=st.integers(1, 4),
    chunk_rows=st.integers(1, 8),
    order=st.sampled_from(["day", None]),
)
def test_order_of_the_file_and_chunks_change_nothing_and_units_do_not_meet(who, seed, max_rows, chunk_rows, order):
    frame, found = visits(who, seed), schema(max_rows, order)
    rows = people(frame, found)
    assert people(frame.sample(frac=1, random_state=seed), found, chunk_rows) == rows
    alone = [people(part, found) for _, part in frame.groupby("who")]
    assert sorted(unit for units in alone for unit in units) == rows
    assert [len(unit) for units in alone for unit in units] == frame.groupby("who").size().clip(upper=max_rows).tolist()


def test_many_chunks_are_sorted_as_one(monkeypatch):
    """Rows beyond max_rows are dropped on the way: what is kept is what one sort of all keeps."""
    frame = visits(list(np.random.default_rng(0).integers(0, 30, 3_000)), 1)
    whole = people(frame)
    started = sequences.RowOrder.__init__

    def small(self, *found):
        started(self, *found)
        self._counted = 20

    monkeypatch.setattr(sequences.RowOrder, "__init__", small)
    assert people(frame, chunk_rows=64) == whole


def test_contents_of_one_hash_are_told_apart(monkeypatch):
    """Whatever the hash is: the rows and their order are those of the unit, not of the file."""
    frame = visits(list(np.random.default_rng(0).integers(0, 20, 200)), 1)
    monkeypatch.setattr(sequences, "content_hashes", lambda rows, n: np.zeros(n, dtype=np.uint64))
    assert people(frame.sample(frac=1, random_state=1)) == people(frame)


def test_ties_are_the_same_in_every_order_of_the_file():
    rows = pd.DataFrame({"who": "u", "day": [1.0, 1, 1, 2, 2, 2], "home": list("nsnsns"), "what": list("abcabc")})
    first = people(rows)
    for seed in range(10):
        assert people(rows.sample(frac=1, random_state=seed)) == first


def test_rows_follow_by_the_order_missing_ones_last():
    frame = pd.DataFrame(
        {"who": ["u"] * 3, "day": [np.nan, 5.0, 2.0], "home": ["s", "n", "s"], "what": ["c", "b", "a"]}
    )
    sequences = data(frame).sequences()
    np.testing.assert_array_equal(sequences.codes["what"], [0, 1, 2])
    [units] = data(frame).coded()
    assert units["home"].tolist() == [1], "the constant is that of the first row, by order"
    assert units["number of rows of who"].tolist() == [1.0]


def test_the_first_rows_count_and_no_more():
    frame = pd.DataFrame({"who": ["u"] * 5, "day": [4.0, 3, 2, 1, 0], "home": ["n"] * 5, "what": list("abcba")})
    sequences = data(frame).sequences()
    assert sequences.sizes.tolist() == [3]
    np.testing.assert_allclose(sequences.codes["day"], [0, 0.1, 0.2])


def test_steps_hold_both_rows_the_gap_and_how_many_there_are():
    frame = pd.DataFrame(
        {
            "who": ["u", "v", "u", "w", "u", "w"],
            "day": [7.0, 1.0, 2.0, 3.0, 4.0, np.nan],
            "home": ["s", "n", "s", "n", "s", "n"],
            "what": ["c", "a", "a", "b", "b", "c"],
        }
    )
    [steps] = data(frame).steps.coded()
    assert steps[STEPS].tolist() == [2, 1], "a unit of one row has no step"
    assert steps["what before"].tolist()[0] == [0 * 4 + 3, 1 * 4 + 0], "with the label before it, or none"
    assert steps["what"].tolist()[0] == [1, 2]
    np.testing.assert_allclose(steps["day"][0], [0.2, 0.3], err_msg="of day, the distance from the row before")
    np.testing.assert_allclose(steps["day before"][0], [0.2, 0.4])
    assert np.isnan(steps["day"][1, 0])
    assert steps["home"].tolist() == [[1, 1], [0, 0]]
    np.testing.assert_allclose(steps["number of rows of who"][:, 0], [1.0, 0.0])
    np.testing.assert_allclose(steps["row of who"][0], [0.0, 1.0])


def test_equal_rows_without_an_order_are_all_there():
    frame = pd.DataFrame({"who": ["u"] * 4, "day": 1.0, "home": "n", "what": ["a", "a", "b", "a"]})
    assert data(frame, schema(4, None)).sequences().codes["what"].tolist().count(0) == 3


def test_without_an_order_every_row_is_as_likely_to_count():
    """Two of four rows, two of which are equal: each counts as often."""
    n = 3_000
    frame = pd.DataFrame({"who": np.repeat(np.arange(n), 4), "day": 1.0, "home": "n", "what": list("aabc") * n})
    codes = data(frame, schema(2, None)).sequences().codes["what"]
    shares = np.bincount(codes, minlength=3) / codes.size
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.03)


def test_the_record_is_the_unit():
    frame = visits([0, 0, 0, 1, 2, 2], 0)
    exact = reduce(RowCount(), data(frame))
    assert float(exact.open_in_mechanism()) == 3
    assert exact.norm_bound == 1


def test_rows_without_a_unit_and_empty_tables_are_read():
    frame = visits([0, 0, 1], 0)
    frame.loc[1, "who"] = None
    assert len(people(frame)) == 2
    assert people(frame[:0]) == []
    assert list(data(frame[:0]).steps.coded()) == []


def test_containers_give_the_same(tmp_path):
    frame = visits(list(np.random.default_rng(1).integers(0, 40, 200)), 1)
    frame.to_csv(tmp_path / "v.csv", index=False)
    frame.to_parquet(tmp_path / "v.parquet", index=False)
    found = people(frame)
    for path in ("v.csv", "v.parquet"):
        assert people(tmp_path / path) == found
    assert people(pa.table(frame)) == found


def test_its_repr_shows_names_alone():
    assert repr(data(visits([0], 0))) == "LinkedData(day, home, what)"


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(SchemaError, match="'what'"):
        data(visits([0], 0).drop(columns="what"))
    with pytest.raises(SchemaError, match=r"got no column 'who'\. "):
        data(visits([0], 0).drop(columns="who"))
