"""Words beside numbers as a lens: a total map of each record by itself, and rows of values or words back."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato import Schema
from sfumato.columns import Boolean, Continuous, Integer
from sfumato.columns.bounded import Values
from sfumato.io.sources import open_source
from sfumato.lenses.chain import lenses_of, plain_schema
from sfumato.lenses.lens import Around
from sfumato.lenses.word_rows import WordRows
from sfumato.records.private import PrivateData

CELLS = ["<5", "12", "no", None, "x", "250", "-7", "<5 ", "", "1e400", "nan", "<5.0", "\x00", "é", "NA", "0"]


def schema(nullable=True, **more):
    kind = Integer(lower=0, upper=100, atoms=("<5", "no", 12), nullable=nullable)
    return Schema(columns={"x": kind, "b": Boolean(nullable=True)}, **more)


def coded(cells, own):
    table = pa.table({"x": pa.array(cells, pa.string()), "b": pa.array([True] * len(cells))})
    [rows] = PrivateData(open_source(table), own).coded()
    return rows


@pytest.mark.parametrize("nullable", [True, False])
def test_it_is_total_and_maps_each_record_by_itself(nullable):
    own = schema(nullable)
    kinds, rows = plain_schema(own).columns, coded(CELLS, own)
    assert rows.keys() == kinds.keys()
    assert set(rows["x (word)"]) <= {0, 1, 2}
    number = rows["x"][~np.isnan(rows["x"])]
    assert ((number >= 0) & (number <= 1)).all()
    assert not (~np.isnan(rows["x"]) & (rows["x (word)"] < 2)).any(), "a cell is a number or a word"
    assert nullable or not (np.isnan(rows["x"]) & (rows["x (word)"] == 2)).any()
    rng = np.random.default_rng(0)
    for _ in range(20):
        places = rng.integers(len(CELLS), size=rng.integers(1, 6))
        some = coded([CELLS[i] for i in places], own)
        for name, codes in some.items():
            np.testing.assert_array_equal(codes, rows[name][places])


@pytest.mark.parametrize("exact", [False, True])
def test_cells_come_back(exact):
    [column] = schema().word_columns.values()
    codes = column.kind.code(pa.array(CELLS), missing=("NA",))
    cells = codes
    if exact:
        words = np.where(codes >= 2, codes - 2, -1)
        cells = Values(*column.kind.decoded(np.where(words >= 0, np.nan, codes)), words)
    split = column.split(cells)
    back, neither = column.joined(split["x"], split["x (word)"])
    assert neither.tolist() == np.isnan(codes).tolist()
    text = column.kind.decode(codes, pa.string())
    assert column.kind.decode(back, pa.string()).equals(text)
    assert text.to_pylist()[:8] == ["<5", "12", "no", None, None, "100", "0", "<5"]


class Rows(Around):
    """A sampler of what it was made with."""

    width, class_column = 1, None

    def __init__(self, rows):
        self._rows, self.told = rows, None

    def rows(self, n, rng, classes=None):
        return {name: column[:n] for name, column in self._rows.items()}

    def given(self, codes):
        self.told = codes
        return self


def test_a_number_counts_before_a_word_and_neither_is_dealt_anew_where_no_cell_is_missing():
    numbers, words = np.array([0.5, 0.25, np.nan, np.nan]), np.array([0, 2, 1, 2])
    for nullable, last in ((True, {np.nan}), (False, {0.5, 0.25, 3.0})):
        inner = Rows({"x": numbers, "x (word)": words, "b": np.zeros(4)})
        rows = WordRows(schema(nullable).word_columns, inner).rows(4, np.random.default_rng(0))
        assert rows.keys() == {"x", "b"}
        np.testing.assert_array_equal(rows["x"][:3], [0.5, 0.25, 3.0])
        assert rows["x"][3] in last or (nullable and np.isnan(rows["x"][3]))


def test_a_row_with_neither_is_another_row_of_its_class_whole():
    """So what rules keep in every row stays."""
    rng = np.random.default_rng(1)
    label, numbers = rng.integers(0, 2, 500), rng.random(500)
    number = np.where(rng.random(500) < 0.2, np.nan, numbers)
    beside = {"x": number, "x (word)": np.full(500, 2), "b": label, "later": np.where(np.isnan(number), 0, number + 1)}
    rows = WordRows(schema(False).word_columns, Rows(beside)).rows(500, rng, label)
    np.testing.assert_array_equal(rows["b"], label)
    assert not np.isnan(rows["x"]).any()
    np.testing.assert_array_equal(rows["later"], rows["x"] + 1)
    lacking = {**beside, "x": np.full(500, np.nan)}
    rows = WordRows(schema(False).word_columns, Rows(lacking)).rows(500, rng)
    assert np.isnan(rows["x"]).all(), "where no row has anything, nothing is dealt"


def test_what_is_given_of_the_two_columns():
    own = schema().word_columns
    for code, told in (
        (0.5, {"x": 0.5}),
        (3.0, {"x": np.nan, "x (word)": 1.0}),
        (np.nan, {"x": np.nan, "x (word)": 2}),
    ):
        inner = Rows({})
        WordRows(own, inner).given({"x": code, "b": 1.0})
        assert inner.told.keys() == {*told, "b"}
        np.testing.assert_array_equal([inner.told[name] for name in told], list(told.values()))


def test_the_order_of_the_chain():
    columns = {"x": Integer(lower=0, upper=9, atoms=("<5",), nullable=True), "y": Continuous(lower=0, upper=9)}
    own = Schema(columns=columns, rules=({"order": ["x", "y"]},))
    assert [type(lens).__name__ for lens in lenses_of(own)] == ["WordsLens", "RulesLens"]
    table = pa.table({"x": ["<5", "3"], "y": [4.0, 7.0]})
    [rows] = PrivateData(open_source(table), own).coded()
    np.testing.assert_array_equal(np.isnan(rows["x"]), [True, False])
