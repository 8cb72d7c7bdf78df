"""Cells that lie in several types are read in one, each by itself."""

import pyarrow as pa
import pytest

from sfumato.io.joined import of_one_type

WITHOUT_TEXT = {
    "lists": pa.array([[1], None]),
    "lists of lists": pa.array([[[1]], [[]]]),
    "mappings": pa.array([{"a": 1}, None]),
}


@pytest.mark.parametrize("name", WITHOUT_TEXT)
def test_cells_without_text_are_missing_beside_others(name):
    text, odd, numbers = of_one_type([pa.array(["x", None]), WITHOUT_TEXT[name], pa.array([1, 2])])
    assert text.to_pylist() == ["x", None]
    assert odd.to_pylist() == [None, None]
    assert numbers.to_pylist() == ["1", "2"]


def test_sets_keep_their_items_beside_sets_of_text():
    numbers, texts = of_one_type([pa.array([[1, 2], None, []]), pa.array([["a"]])])
    assert numbers.to_pylist() == [["1", "2"], None, []]
    assert texts.to_pylist() == [["a"]]
