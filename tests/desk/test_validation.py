import numpy as np
import pyarrow as pa

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Identifier, Image, Integer, Ordinal
from sfumato.columns.sets import ItemSet
from sfumato.desk.validation import declared_columns, validate
from sfumato.io.sources import open_source
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit


def _found(data, columns, **options):
    findings = validate(open_source(data, chunk_rows=2), Schema(columns=columns, **options))
    return {(f.column, f.problem): f for f in findings}


def test_cells_of_a_column_are_counted_with_examples():
    found = _found(
        pa.table({"a": ["1", "5", "", "-3", "99", "x", None, "y", "x"]}),
        {"a": Integer(lower=0, upper=10, nullable=True)},
    )
    assert {key[1]: f.count for key, f in found.items()} == {
        "missing": 2,
        "clamped": 2,
        "unparseable": 3,
    }
    assert found["a", "clamped"].examples == ["'-3'", "'99'"]
    assert found["a", "clamped"].becomes == "the nearest bound"
    assert found["a", "unparseable"].examples == ["'x'", "'y'"]
    assert found["a", "unparseable"].becomes == "missing"
    assert found["a", "missing"].examples == []


def test_unknown_labels_and_what_becomes_of_them():
    table, none = pa.table({"a": ["x", "y", "?", None]}), "no label: it counts for none"
    for kind, missing, unknown in (
        (Categorical(categories=("x", "y")), none, none),
        (Ordinal(categories=("x", "y", "z")), none, none),
        (Categorical(categories=("x", "y"), other="z"), "the label 'z'", "the label 'z'"),
        (Categorical(categories=("x", "y"), nullable=True), "missing", "missing"),
    ):
        found = _found(table, {"a": kind})
        assert found["a", "missing"].becomes == missing
        assert found["a", "unknown"].becomes == unknown
        assert found["a", "unknown"].examples == ["'?'"]


def test_other_storages():
    table = pa.table(
        {
            "f": [0.5, np.nan, np.inf, 7.0],
            "i": pa.array([1, 2**64 - 1, None, 3], pa.uint64()),
            "d": pa.array(["2020-01-01", "1999-01-01", "no date", ""]).dictionary_encode(),
            "b": [True, False, None, True],
            "t": pa.array([1.5, 1.0, None, 2.0]),
        }
    )
    found = _found(
        table,
        {
            "f": Continuous(lower=0, upper=1),
            "i": Integer(lower=0, upper=10),
            "d": DateTime(lower="2020-01-01", upper="2020-12-31"),
            "b": Boolean(),
            "t": Categorical(categories=(1, 2)),
        },
    )
    assert {key: f.count for key, f in found.items()} == {
        ("f", "missing"): 1,
        ("f", "clamped"): 2,
        ("i", "missing"): 1,
        ("i", "clamped"): 1,
        ("d", "missing"): 1,
        ("d", "clamped"): 1,
        ("d", "unparseable"): 1,
        ("b", "missing"): 1,
        ("t", "missing"): 1,
        ("t", "unknown"): 1,
    }
    assert found["i", "clamped"].examples == [str(2**64 - 1)]
    assert found["f", "missing"].becomes == "the midpoint of the bounds"


def test_columns_that_do_not_fit():
    found = _found(
        pa.table({"a": [1], "extra": ["x"], "name": ["Smith"]}),
        {
            "a": DateTime(lower="2024-01-01", upper="2024-12-31"),
            "gone": Boolean(),
            "name": Identifier(),
        },
    )
    assert set(found) == {("a", "storage"), ("a", "unparseable"), ("gone", "absent"), ("extra", "undeclared")}
    assert "dates" in found["a", "storage"].becomes


def test_an_identifier_that_is_not_there_is_not_missed():
    """A fit asks for what it reads: released columns, the unit, the weight."""
    columns = {"a": Integer(lower=0, upper=9), "note": Identifier(), "who": Identifier()}
    schema = Schema(columns=columns, unit=Unit(column="who", max_rows=2))
    found = {(f.column, f.problem) for f in validate(open_source(pa.table({"a": [1, 2]})), schema)}
    assert found == {("who", "absent")}


def test_images():
    data = {"x": np.array([[[0, 300], [5, np.nan]]], np.float32), "y": np.array([3])}
    columns = {"x": Image(shape=(2, 2), dtype="float32"), "y": Categorical(categories=(3,))}
    found = _found(data, columns)
    assert found["x", "clamped"].count == 1
    assert found["x", "unparseable"].count == 1
    assert ("x", "storage") in _found(data, columns | {"x": Image(shape=(3, 3))})
    assert ("x", "storage") in _found(data, columns | {"x": Integer(lower=0, upper=1)})
    assert ("y", "storage") in _found(data, columns | {"y": Image(shape=(2, 2))})


def test_examples_are_few_short_and_distinct():
    words = ["long" * 50] + ["a"] * 1000 + [str(i) for i in range(100)]
    found = _found(pa.table({"a": words}), {"a": Categorical(categories=("x",))})
    finding = found["a", "unknown"]
    assert finding.count == len(words)
    assert len(finding.examples) == len(set(finding.examples)) == 5
    assert max(map(len, finding.examples)) <= 40


def test_data_that_fit_give_no_findings():
    assert _found(pa.table({"a": [1, 2]}), {"a": Integer(lower=1, upper=2)}) == {}
    assert _found(pa.table({"a": [1], "b": [2]}), {"a": Integer(lower=1, upper=2), "b": Identifier()}) == {}


def test_records_that_are_not_read_are_said(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("a;b\n" + "1;2;3\n" * 7)
    columns = {"a": Integer(lower=0, upper=9), "b": Integer(lower=0, upper=9)}
    findings = validate(open_source(path), Schema(columns=columns))
    assert [(f.column, f.problem, f.count) for f in findings] == [("", "skipped", 7), ("", "no_records", 0)]
    assert findings[0].examples[:2] == ["record 1: 3 cells", "record 2: 3 cells"]
    assert len(findings[0].examples) == 5
    path.write_text("a;b\n" + "1;2;\n" * 7 + "3;4\n5\n")
    assert [(f.problem, f.count) for f in validate(open_source(path), Schema(columns=columns))] == [
        ("skipped", 1), ("shortened", 7)
    ]  # fmt: skip
    two = validate(open_source([path, path]), Schema(columns=columns))
    assert two[0].examples == ["people.csv, record 9: 1 cells"] * 2
    assert [(f.problem, f.count) for f in two] == [("skipped", 2), ("shortened", 14)]
    assert ("", "no_records") in _found(pa.table({"a": pa.array([], pa.int8())}), {"a": Integer(lower=1, upper=2)})


def test_a_schema_that_declares_nothing_is_not_praised():
    columns = {"a": {"kind": "integer", "discover": True}, "name": "identifier"}
    findings = validate(open_source(pa.table({"a": [1], "name": ["x"]})), OpenSchema.from_dict({"columns": columns}))
    assert [(f.column, f.problem) for f in findings] == [("", "nothing_declared")]
    assert declared_columns(OpenSchema.from_dict({"columns": columns | {"b": "boolean"}})) == ["b"]


def test_text_that_is_not_utf8():
    """A text column does not promise UTF-8: its bytes are read as Windows-1252, and shown so."""
    words = [b"abc", b"f\xda7", b"abc"]
    ends = np.cumsum([0, *map(len, words)]).astype(np.int32)
    text = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(words))])
    found = _found(pa.table({"a": text}), {"a": Categorical(categories=("abc", "x"))})
    assert found["a", "unknown"].examples == ["'f\xda7'"]
    sets = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), text)
    found = _found(pa.table({"a": sets}), {"a": ItemSet(items=("abc", "x"), max_length=2)})
    assert found["a", "unknown"].examples == ["'f\xda7'"]
