"""Codes that are read as their parents: by public facts alone, and cell by cell."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from sfumato import MaxEntropy
from sfumato.columns.kinds import Categorical, Integer
from sfumato.errors import SchemaError
from sfumato.schema.schema import Schema, release_schema

CODES = ("A00", "A01", "I10", "I11")
PARENTS = ("A", "A", "I", "I")


def _kind(**facts):
    return Categorical(**{"categories": CODES, "parents": PARENTS, **facts})


def _labels(kind, cells):
    codes = kind.code(cells, missing=("", "NA"))
    assert codes.dtype == np.int32
    return [None if code == len(kind.labels) else kind.labels[code] for code in codes]


@pytest.mark.parametrize(
    ("facts", "labels"),
    [
        ({}, ("A", "I")),
        ({"keep": 1}, ("A00", "A", "I")),
        ({"keep": 2}, ("A00", "A01", "I")),
        ({"keep": 4}, CODES),
        ({"keep": ["I11", "A00"]}, ("A00", "I11", "A", "I")),
        ({"other": "rest"}, ("A", "I", "rest")),
        ({"other": "I"}, ("A", "I")),
        ({"keep": 1, "other": "A00", "nullable": True}, ("A00", "A", "I")),
    ],
)
def test_levels_are_the_kept_codes_then_the_parents(facts, labels):
    kind = _kind(**facts)
    assert kind.labels == labels
    assert kind.width == len(labels) + kind.nullable
    assert kind.n_levels == kind.width + kind.hides_blank
    assert kind.n_categories == len([label for label in labels if label != "rest"])


def test_a_code_that_is_not_kept_is_read_as_its_parent():
    kind = _kind(keep=["I10"], other="rest", nullable=True)
    cells = pa.array(["A01", "I10", "I11", " A00 ", "A", "Z99", None, "NA", "i10"])
    assert _labels(kind, cells) == ["A", "I10", "I", "A", "A", "rest", None, None, "rest"]
    assert _labels(kind, cells.dictionary_encode()) == _labels(kind, cells)
    found = kind.faults(cells, ("NA",))
    assert np.flatnonzero(found["unknown"]).tolist() == [5, 8]


def test_a_cell_is_read_alone():
    kind = _kind(keep=1)
    cells = [*CODES, "A", "x", None] * 5
    alone = [_labels(kind, pa.array([cell], pa.string()))[0] for cell in cells]
    assert _labels(kind, pa.array(cells)) == alone


def test_samples_hold_levels_and_read_back():
    kind = _kind(keep=1, nullable=True)
    codes = np.arange(kind.n_levels, dtype=np.int32)
    samples = kind.decode(codes, pa.string())
    assert samples.to_pylist() == ["A00", "A", "I", None]
    assert kind.code(samples, missing=()).tolist() == codes.tolist()


def test_numbers_are_read_as_named_parents():
    kind = Categorical(categories=(250, 401), parents=("endocrine", "circulation"))
    assert kind.reading_fault(pa.int64()) is None
    assert _labels(kind, pa.array([401, 250])) == ["circulation", "endocrine"]
    assert kind.sample_type == pa.string()
    assert Categorical(categories=(250, 401), parents=(1, 2)).sample_type == pa.int64()
    assert _kind().reading_fault(pa.int64()) is None, "one cell of text makes the column text"
    assert _kind().label_fault(pa.int64()) is not None


def test_a_missing_token_that_is_a_code_is_the_code():
    kind = Categorical(categories=("NA", "DE"), parents=("Africa", "Europe"), nullable=True)
    assert _labels(kind, pa.array(["NA", "DE", ""])) == ["Africa", "Europe", None]
    assert kind.text_or_missing("NA", ("NA",)) == "NA"
    assert kind.text_or_missing("", ("NA", "")) is None


@pytest.mark.parametrize("keep", [0, 2, ["I10"]])
def test_documents_hold_all_and_read_back(keep):
    entry = {"kind": "categorical", "categories": list(CODES), "parents": dict(zip(CODES, PARENTS, strict=True))}
    schema = Schema.from_dict({"columns": {"c": entry | {"keep": keep}}})
    assert schema.columns["c"] == _kind(keep=keep)
    assert release_schema(schema.to_dict()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_kept_codes_need_no_parent():
    kind = Categorical(categories=CODES, parents={"A00": "A", "A01": "A", "I11": "I"}, keep=["I10"])
    assert kind.labels == ("I10", "A", "I")
    assert release_schema({"columns": {"c": kind.to_dict()}}).columns["c"] == kind


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ({"parents": ("A",)}, "one parent per category"),
        ({"parents": {"A00": "A"}}, "none of 'A01'"),
        ({"parents": {"B99": "B"}}, "got one of 'B99'"),
        ({"parents": "A"}, "map each code"),
        ({"parents": ("A", "A", "I", "A00")}, "no codes themselves, got 'A00'"),
        ({"parents": ("A", "A", "I", ["I"])}, "a parent to be text"),
        ({"keep": 5}, "at most the number of categories"),
        ({"keep": -1}, "at most the number of categories"),
        ({"keep": True}, "keep to be a list"),
        ({"keep": ["Z99"]}, "got 'Z99'"),
        ({"keep": ["A00", "A00"]}, "'A00' twice"),
        ({"other": "A00"}, "other to be a level"),
        ({"parents": (), "keep": 2}, "parents beside keep"),
    ],
)
def test_unsound_hierarchies_are_refused(facts, fault):
    with pytest.raises(SchemaError, match=fault):
        _kind(**facts)


def test_parents_stand_in_a_column_of_the_same_file(tmp_path):
    (tmp_path / "icd.csv").write_text("code,chapter\nA00,A\nA01,A\nI10,I\nI11,I\n", encoding="utf-8")
    entry = {"kind": "categorical", "categories": {"file": "icd.csv", "column": "code"}, "keep": 1}
    for parent in ({"column": "chapter"}, {"file": "icd.csv", "column": "chapter"}):
        schema = Schema.from_dict({"columns": {"c": entry | {"parent": parent}}}, base=tmp_path)
        assert schema.columns["c"] == _kind(keep=1)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"categories": ["A00"], "parent": {"column": "chapter"}}, "categories from a file"),
        ({"parent": {"column": "chapter"}, "parents": {"A00": "A"}}, "either parent or parents"),
        ({"parent": {"file": "other.csv", "column": "chapter"}}, "a column of the same file"),
        ({"parent": "chapter"}, "a column of the same file"),
        ({"parent": {"column": "place"}}, "'place' once among them"),
    ],
)
def test_parents_from_elsewhere_are_refused(tmp_path, entry, fault):
    (tmp_path / "icd.csv").write_text("code,chapter\nA00,A\n", encoding="utf-8")
    start = {"kind": "categorical", "categories": {"file": "icd.csv", "column": "code"}}
    with pytest.raises(SchemaError, match=f"Column 'c'.*{fault}"):
        Schema.from_dict({"columns": {"c": start | entry}}, base=tmp_path)


def test_a_release_holds_levels_only():
    rows = pa.table({"c": [*CODES, "A", "x"] * 100, "n": list(range(600))})
    columns = {"c": _kind(keep=["I10"], other="rest"), "n": Integer(lower=0, upper=600)}
    release = MaxEntropy(epsilon=5, delta=1e-6).fit(rows, schema=Schema(columns=columns, rows=600), seed=1)
    assert set(release.sample(500, seed=1)["c"].to_pylist()) == {"I10", "A", "I", "rest"}
