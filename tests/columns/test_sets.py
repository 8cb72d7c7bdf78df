"""Sets of items to codes and back: totally, locally, and by the stated rule."""

from __future__ import annotations

import dataclasses
import pickle
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.columns.sets import CodedSets, ItemSet
from sfumato.errors import SchemaError
from sfumato.schema.schema import MISSING_TOKENS, Schema

LISTED = ItemSet(items=("milk", "bread", "3", "NA"), max_length=2)
WITH_OTHER = ItemSet(items=("milk", "bread"), max_length=3, other="rest")
COUNTED = ItemSet(n_items=5, max_length=3)
COUNTED_OTHER = ItemSet(n_items=5, max_length=3, other="2")


def listed(sets: CodedSets) -> list[list[int]]:
    return [part.tolist() for part in np.split(sets.codes, sets.offsets[1:-1])]


def coded(kind: ItemSet, cells: pa.Array | pa.ChunkedArray) -> list[list[int]]:
    return listed(kind.code(cells, missing=MISSING_TOKENS))


def by_hand(kind: ItemSet, items: list[str | None] | None) -> list[int]:
    """The rule as the schema page states it, one item at a time."""
    labels = list(kind.items) if kind.items is not None else [str(i) for i in range(kind.size)]
    if kind.other is not None and kind.other not in labels:
        labels.append(kind.other)
    kept: list[int] = []
    for item in items or []:
        text = None if item is None else item.strip()
        if text is not None and kind.items is None:  # a number as programs write it beside a missing cell
            text = re.sub(r"^(0|-?[1-9][0-9]*)\.0*$", r"\1", text)
        if text is None or (text in MISSING_TOKENS and text not in labels):
            continue
        if text not in labels:
            if kind.other is None:
                continue
            text = kind.other
        if labels.index(text) not in kept:
            kept.append(labels.index(text))
    return sorted(kept[: kind.max_length])


WORDS = st.sampled_from(
    ["milk", "bread", " milk", "3", "NA", "", "rest", "0", "1", "2", "4", "5", "-1", "1.0", "01", "é"]
)
CELLS = st.lists(st.none() | st.lists(st.none() | WORDS | st.text(max_size=3), max_size=8), max_size=12)


PIECES = st.text(alphabet="abé 12;-", max_size=4) | WORDS


@pytest.mark.parametrize("kind", [LISTED, WITH_OTHER, COUNTED, COUNTED_OTHER])
@given(cells=st.lists(st.none() | st.lists(PIECES, max_size=6), max_size=10), separator=st.sampled_from([";", " | "]))
def test_items_of_text_with_a_separator_are_those_of_lists(kind, cells, separator):
    joined = [None if cell is None else separator.join(cell) for cell in cells]
    split = [None if text is None else text.split(separator.strip()) for text in joined]
    kind = dataclasses.replace(kind, separator=separator)
    expected = [by_hand(kind, cell) for cell in split]
    for column in (pa.array(joined, pa.string()), pa.array(joined, pa.large_binary()), pa.array(split, TEXTS)):
        assert coded(kind, column) == expected or not cells
    assert coded(kind, pa.array(joined, pa.string()).dictionary_encode()) == expected or not cells


TEXTS = pa.list_(pa.string())


class TestSeparator:
    KIND = ItemSet(items=("a", "b c", "d"), max_length=2, separator="; ")

    @pytest.mark.parametrize(
        "storage", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()), TEXTS]
    )
    def test_there_and_back(self, storage):
        assert self.KIND.storage_fault(storage) is None
        sets = self.KIND.code(pa.array(["b c; a", "", "d"]), missing=MISSING_TOKENS)
        back = self.KIND.decode(sets, storage)
        assert back.type == storage
        assert listed(self.KIND.code(back, missing=MISSING_TOKENS)) == listed(sets) == [[0, 1], [], [2]]

    def test_samples_are_text(self):
        assert self.KIND.sample_type == pa.string()
        found = self.KIND.decode(CodedSets(np.array([0, 2, 2]), np.array([0, 1])), pa.string())
        assert found.to_pylist() == ["a; b c", ""]
        counted = ItemSet(n_items=12, max_length=2, separator="|")
        assert counted.decode(CodedSets(np.array([0, 2]), np.array([3, 11])), pa.string()).to_pylist() == ["3|11"]

    def test_numbers_are_one_item(self):
        """A CSV file may have them, and another program store the column as numbers."""
        kind = ItemSet(items=("1", "22"), max_length=2, separator=";")
        for column in (pa.array([22, 1, 3]), pa.array([22.0, 1.0, None]), pa.array(["22", "1", "x"])):
            assert kind.reading_fault(column.type) is None
            assert coded(kind, column) == [[1], [0], []]

    def test_what_is_wrong_with_cells(self):
        found = {}
        column = pa.chunked_array([["a; x", None, "", "a; b c; d", "NA"]])
        for fault, cells in self.KIND.problems(column, MISSING_TOKENS):
            found[fault] = cells.to_pylist()
        assert found == {"missing": [None, "NA"], "unknown": ["x"], "clamped": ["a; b c; d"]}

    @pytest.mark.parametrize(
        ("facts", "words"),
        [({"separator": ""}, "1 to 8 signs"), ({"separator": 3}, "1 to 8 signs"),
         ({"separator": " b "}, "separator 'b'"), ({"separator": "-1-"}, "without digits"),
         ({"separator": ";", "id": "who"}, "either separator or id")],
    )  # fmt: skip
    def test_refused(self, facts, words):
        with pytest.raises(SchemaError, match=words):
            ItemSet(**{"items": ("ab", "c"), "max_length": 2, **facts})

    def test_a_schema_document_says_it(self):
        entry = {"kind": "set", "items": ["a", "b"], "max_length": 2, "separator": ";"}
        schema = Schema.from_dict({"columns": {"x": entry}, "rows": 10})
        assert Schema.from_dict(schema.to_dict()) == schema
        assert schema.columns["x"] == ItemSet(items=("a", "b"), max_length=2, separator=";")

    def test_without_one_text_is_refused_with_what_to_declare(self):
        assert "`separator:`" in str(LISTED.reading_fault(pa.string()))


@pytest.mark.parametrize("kind", [LISTED, WITH_OTHER, COUNTED, COUNTED_OTHER])
@given(cells=CELLS)
def test_text_items_are_coded_by_the_stated_rule(kind, cells):
    column = pa.array(cells, pa.list_(pa.string()))
    assert coded(kind, column) == [by_hand(kind, cell) for cell in cells] or not cells
    apart = pa.chunked_array([column.slice(0, 3), column.slice(3)])
    assert coded(kind, apart) == coded(kind, column)


@given(
    cells=st.lists(st.none() | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 7)), max_size=8)
)
def test_numbers_are_coded_as_their_text_is(cells):
    expected = [by_hand(COUNTED_OTHER, cell and [None if i is None else str(i) for i in cell]) for cell in cells]
    for storage in (pa.list_(pa.int64()), pa.large_list(pa.int64())):
        assert coded(COUNTED_OTHER, pa.array(cells, storage)) == expected or not cells


@pytest.mark.parametrize(
    "storage",
    [pa.float64(), pa.float32(), pa.uint64(), pa.int8(), pa.decimal128(22, 1), pa.dictionary(pa.int8(), pa.string())],
)
def test_items_of_any_type(storage):
    values = pa.array(["1", "3", "1", "7"]) if pa.types.is_dictionary(storage) else pa.array([1, 3, 1, 7])
    cells = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), values.cast(storage))
    assert coded(COUNTED, cells) == [[1, 3], [1]]


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([[float("nan"), float("inf"), -0.0, 2.5, None]]),
        pa.array([[[1], [2]]]),
        pa.array([[{"a": 1}]]),
        pa.array([["\ud800".encode("utf-8", "surrogatepass"), b"\xff", b"1"]]),
        pa.array([[True, False]]),
    ],
)
def test_garbage_among_the_items_raises_nothing(cells):
    for kind in (LISTED, WITH_OTHER, COUNTED, COUNTED_OTHER):
        assert len(coded(kind, cells)) == 1


@pytest.mark.parametrize("cells", [pa.array(["milk"]), pa.array([1.5, None]), pa.nulls(2), pa.array([{"a": 1}])])
def test_what_is_no_list_is_the_empty_set(cells):
    assert coded(LISTED, cells) == [[] for _ in range(len(cells))]


def test_sliced_and_null_lists():
    cells = pa.array([["bread"], None, ["milk", "milk"], [], ["3", "bread", "milk"]])
    assert coded(LISTED, cells.slice(1)) == [[], [0], [], [1, 2]]


@given(cells=st.lists(st.sets(st.integers(0, 4), max_size=3), max_size=10))
def test_codes_come_back_in_the_storage_type(cells):
    sets = COUNTED.code(pa.array([sorted(cell) for cell in cells], pa.list_(pa.int16())), missing=())
    for storage in (pa.list_(pa.int16()), pa.large_list(pa.string()), pa.list_(pa.dictionary(pa.int32(), pa.string()))):
        back = COUNTED.decode(sets, storage)
        assert back.type == storage
        assert [sorted(map(int, cell)) for cell in back.to_pylist()] == [sorted(cell) for cell in cells]


def test_coded_sets_are_sliced_masked_and_joined():
    sets = COUNTED.code(pa.array([[1, 2], [], [4], [0, 3]]), missing=())
    assert listed(sets[1:3]) == [[], [4]]
    assert listed(sets[np.array([True, False, False, True])]) == [[1, 2], [0, 3]]
    assert listed(sets[np.array([3, 0])]) == [[0, 3], [1, 2]]
    assert len(sets[:0]) == 0
    assert listed(CodedSets.concatenate([sets[:1], sets[3:]])) == [[1, 2], [0, 3]]


def test_coded_sets_show_nothing():
    sets = COUNTED.code(pa.array([[1, 2]]), missing=())
    assert repr(sets) == "CodedSets()"
    with pytest.raises(TypeError, match="holds records"):
        pickle.dumps(sets)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"max_length": 3}, "either items or n_items, got neither"),
        ({"max_length": 3, "items": ["a"], "n_items": 1}, "got both"),
        ({"items": ["a"]}, "max_length"),
        ({"max_length": 0, "n_items": 3}, "max_length of at least 1"),
        ({"max_length": 3, "n_items": 0}, "n_items between 1"),
        ({"max_length": 3, "n_items": 2**25}, "n_items between 1"),
        ({"max_length": 3, "items": "abc"}, "items to be a list"),
        ({"max_length": 3, "items": ["a", "a"]}, "each item once"),
        ({"max_length": 3, "n_items": 3, "other": "x"}, "other to be one of the items"),
        ({"max_length": 3, "n_items": 3, "other": "02"}, "plain whole number"),
        ({"max_length": 3, "n_items": 3, "id": 7}, "id to name a column"),
        ({"max_length": 3, "n_items": 3, "id": "who"}, "column of kind identifier"),
    ],
)
def test_a_schema_with_faults_is_refused(facts, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({"columns": {"x": {"kind": "set", **facts}}})


def test_a_long_table_has_no_other_column_and_no_unit():
    columns = {"who": "identifier", "x": {"kind": "set", "n_items": 3, "max_length": 2, "id": "who"}}
    assert Schema.from_dict({"columns": columns}).written == ("who", "x")
    with pytest.raises(SchemaError, match="no other column"):
        Schema.from_dict({"columns": {**columns, "age": {"kind": "integer", "lower": 0, "upper": 9}}})
    with pytest.raises(SchemaError, match="no unit beside id"):
        Schema.from_dict({"columns": columns, "unit": {"column": "who", "max_rows": 2}})


def test_a_schema_comes_back():
    document = {"columns": {"x": {"kind": "set", "items": ["a", "b"], "max_length": 2, "other": "c"}}}
    assert Schema.from_dict(document).to_dict() == document


@pytest.mark.parametrize(
    ("kind", "storage", "message"),
    [
        (LISTED, pa.string(), "one row per item"),
        (LISTED, pa.list_(pa.int64()), "milk"),
        (COUNTED, pa.list_(pa.bool_()), "can hold"),
        (ItemSet(n_items=300, max_length=2), pa.list_(pa.int8()), "can hold"),
        (COUNTED, pa.list_(pa.date32()), "numbers or text"),
    ],
)
def test_storage_that_cannot_hold_the_items(kind, storage, message):
    assert message in (kind.storage_fault(storage) or "")


def test_a_set_is_cut_by_its_own_order_alone():
    cells = pa.array([[4, 3, 2, 1], [1, 2, 3, 4], [4, 4, 4, 9, 3, 9, 0, 1]])
    assert coded(COUNTED, cells) == [[2, 3, 4], [1, 2, 3], [0, 3, 4]]
