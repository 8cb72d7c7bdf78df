"""Words beside numbers and dates: which word a cell is, how it is written, and what is no list of words."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.columns import Continuous, DateTime, Integer
from sfumato.columns.bounded import Values
from sfumato.columns.open import Open
from sfumato.columns.words_beside import FIRST_WORD, MOST_ATOMS
from sfumato.columns.written import Written
from sfumato.errors import ConfigError, SchemaError

COUNT = Integer(lower=0, upper=100, atoms=("<5 ", "not asked", 99), nullable=True)
CELLS = ["<5", "12", "  not asked", "x", None, "99.0", "NA", "<5"]
CODES = [2.0, 0.12, 3.0, np.nan, np.nan, 0.99, np.nan, 2.0]
KINDS = {
    "integer": (COUNT, ["<5", "12", "not asked", "other", None, "250"]),
    "continuous": (Continuous(lower=0, upper=1, resolution=0.1, atoms=["<0.1"]), ["<0.1", "0.3", "x", None]),
    "written": (
        Continuous(lower=0, upper=9, atoms=["<1,5"], written=Written(decimal=","), nullable=True),
        ["<1,5", "1,5", "7", "<1.5"],
    ),
    "date": (DateTime(lower="2020-01-01", upper="2020-12-31", atoms=["pending"]), ["pending", "2020-02-01", "x", None]),
}
STORAGES = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.binary_view(),
    pa.dictionary(pa.int32(), pa.string()),
)


def test_facts():
    assert COUNT.atoms == ("<5", "not asked", 99)
    assert (COUNT.words, COUNT.single_values) == (("<5", "not asked"), (99,))
    assert COUNT.wordless == Integer(lower=0, upper=100, atoms=(99,), nullable=True)
    plain = Integer(lower=0, upper=9, atoms=(3,))
    assert plain.wordless is plain
    assert Continuous(lower=0, upper=1, resolution=0.1, atoms=["<0.1", 0.3]).single_values == (0.3,)
    for kind, _ in KINDS.values():
        assert type(kind)(**{key: value for key, value in kind.to_dict().items() if key != "kind"}) == kind
        assert kind.sample_type == pa.string()
        assert kind.storage_fault(pa.string()) is None
        assert "text for words" in kind.storage_fault(pa.float64())


@pytest.mark.parametrize("storage", STORAGES, ids=str)
def test_words_are_read_and_written_in_any_text(storage):
    cells = pa.array(CELLS).cast(pa.binary()).cast(storage) if "binary" in str(storage) else pa.array(CELLS)
    codes = COUNT.code(cells.cast(storage), missing=("NA",))
    np.testing.assert_array_equal(codes, CODES)
    back = COUNT.decode(codes, storage)
    assert back.type == storage
    texts = ["<5", "12", "not asked", None, None, "99", None, "<5"]
    expected = [text and (text.encode() if "binary" in str(storage) else text) for text in texts]
    assert back.to_pylist() == expected
    np.testing.assert_array_equal(COUNT.code(back, missing=()), CODES)


@pytest.mark.parametrize("name", KINDS)
def test_a_cell_is_read_alone(name):
    kind, cells = KINDS[name]
    together = kind.code(pa.array(cells * 3), missing=())
    assert (together[: len(cells)] >= FIRST_WORD).sum() == len(kind.words)
    for i, cell in enumerate(cells * 3):
        np.testing.assert_array_equal(kind.code(pa.array([cell], pa.string()), missing=()), together[i : i + 1])


@pytest.mark.parametrize("name", KINDS)
def test_a_word_is_no_fault(name):
    kind, cells = KINDS[name]
    masks = kind.faults(pa.array(cells), ())
    assert not any(mask[0] or mask[1] for mask in masks.values())
    assert any(mask.any() for mask in masks.values())


def test_values_are_written_as_they_are():
    values = Values(np.array([7, 0, 0]), np.array([False, True, True]), np.array([-1, 1, -1]))
    assert COUNT.decode(values, pa.string()).to_pylist() == ["7", "not asked", None]
    assert COUNT.decode(values[[1]], pa.string()).to_pylist() == ["not asked"]
    text = COUNT.as_text(pa.chunked_array([pa.array(["7", "not asked", None])]))
    assert text.to_pylist() == ["7", "not asked", None]


def test_a_word_may_be_given():
    given = COUNT.given("cases", " <5", pa.string())
    assert (given.code, given.stored.to_pylist()) == (2.0, ["<5"])
    assert COUNT.given("cases", 12, pa.string()).stored.to_pylist() == ["12"]
    with pytest.raises(ConfigError, match="whole number"):
        COUNT.given("cases", "<6", pa.string())


@pytest.mark.parametrize(
    ("atoms", "message"),
    [
        ("<5", "to be a list of words"),
        ({"<5"}, "to be a list of words"),
        ([""], "empty text"),
        (["a", "a"], "got one twice"),
        (["a 1.0", "2.0 x", "1e3", "x"], "length of time, got '1e3'"),
        (["2021-01-01"], "read as no number, date"),
        (["08:15:00"], "read as no number, date"),
        (["2 days"], "read as no number, date"),
        (["true"], "length of time, got 'true'"),
        (["2.50", "x"], "read as no number"),
        ([101], "<= 100"),
        ([1.5], "whole number"),
        ([None], "whole number"),
        ([3, 3.0], "got one twice"),
        ([f"w{i}" for i in range(MOST_ATOMS + 1)], "at most 100 atoms"),
    ],
)
def test_what_is_no_list_of_atoms(atoms, message):
    with pytest.raises(SchemaError, match=message):
        Integer(lower=0, upper=100, atoms=atoms)


def test_words_of_other_kinds():
    with pytest.raises(SchemaError, match="multiple of"):
        Continuous(lower=0, upper=1, resolution=0.1, atoms=[0.25])
    with pytest.raises(SchemaError, match="read as no number"):
        Continuous(lower=0, upper=9, written=Written(decimal=","), atoms=["1,5"])
    with pytest.raises(SchemaError, match="read as no number"):
        DateTime(lower="2020-01-01", upper="2020-12-31", atoms=["2021-01-01"])
    assert Open(kind="integer", atoms=["<5"]).to_dict()["atoms"] == ["<5"]
    for kind, atoms in (("unknown", ["<5"]), ("integer", ["7"]), ("integer", [7])):
        with pytest.raises(SchemaError, match="atoms"):
            Open(kind=kind, atoms=atoms)
