"""Ranges of columns in schema documents: one entry for many alike."""

import pytest

from sfumato.columns.kinds import Boolean
from sfumato.errors import SchemaError
from sfumato.lenses.chain import plain_schema
from sfumato.schema import references
from sfumato.schema.schema import Schema, release_schema


def _columns(*keys):
    return Schema.from_dict({"columns": dict.fromkeys(keys, "boolean")}).columns


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("drug_1..drug_3", ["drug_1", "drug_2", "drug_3"]),
        ("drug_8..drug_11", ["drug_8", "drug_9", "drug_10", "drug_11"]),
        ("q08..q11", ["q08", "q09", "q10", "q11"]),
        ("1..3", ["1", "2", "3"]),
        ("v2 q0..v2 q1", ["v2 q0", "v2 q1"]),
    ],
)
def test_a_range_stands_for_its_columns_in_its_place(key, names):
    columns = _columns("before", key, "after")
    assert list(columns) == ["before", *names, "after"]
    assert columns[names[0]] == Boolean()


@pytest.mark.parametrize("key", ["a..b", "drug_1..pill_3", "1..", "drug_1...drug_3", "drug_1-drug_3", "drug_*"])
def test_other_names_are_names(key):
    assert list(_columns(key)) == [key]


@pytest.mark.parametrize("key", ["q3..q1", "q2..q2", "q01..q9", "q1..q09", "q1..q99999"])
def test_ranges_of_nothing_or_too_much_are_refused(key):
    with pytest.raises(SchemaError, match="Expected a range"):
        _columns(key)


def test_the_largest_range(monkeypatch):
    monkeypatch.setattr(references, "MOST_COLUMNS", 3)
    assert len(_columns("q1..q3")) == 3
    with pytest.raises(SchemaError, match="at most 3"):
        _columns("q1..q4")


@pytest.mark.parametrize("keys", [("q1..q3", "q2"), ("q2", "q1..q3"), ("q1..q3", "q3..q5")])
def test_a_column_has_one_entry(keys):
    with pytest.raises(SchemaError, match=r"Column 'q[23]': expected one entry, got also the range"):
        _columns(*keys)


def test_sources_and_facts_hold_of_every_column():
    entry = {"kind": "integer", "lower": 0, "upper": 3, "source": "codebook"}
    schema = Schema.from_dict({"columns": {"q1..q2": entry}})
    assert schema.sources == {"q1": "codebook", "q2": "codebook"}
    assert Schema.from_dict(schema.to_dict()) == schema


def test_in_a_release_every_name_is_a_name():
    assert list(release_schema({"columns": {"q1..q3": {"kind": "boolean"}}}).columns) == ["q1..q3"]


RULED = {
    "columns": {
        "code": {"kind": "categorical", "categories": ["A1", "A2", "B1"]},
        "chapter": {"kind": "categorical", "categories": ["A", "B"]},
    },
    "rules": [{"derived": "chapter", "from": "code", "map": "codes.csv"}],
}


def test_a_map_of_a_rule_from_a_file(tmp_path):
    (tmp_path / "codes.csv").write_text("code,text,chapter\nA1,x,A\nA2,y,A\nB1,z,B\n")
    schema = Schema.from_dict(RULED, base=tmp_path)
    assert schema.rules[0]["map"] == {"A1": "A", "A2": "A", "B1": "B"}
    assert list(plain_schema(schema).columns) == ["code"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("code,chapter\nA1,A\nA1,B\n", "Rule 1: Expected each value once in codes.csv, got one again in line 3"),
        ("code,group\nA1,A\n", "Rule 1: Expected codes.csv to begin with a line of column names"),
        ("code,chapter\nA1,\n", "Rule 1: Expected a label in every line"),
        ("code,chapter\nA1,A\n", "map every label of 'code'"),
    ],
)
def test_unfit_maps(tmp_path, text, message):
    (tmp_path / "codes.csv").write_text(text)
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(RULED, base=tmp_path)


def test_maps_of_releases_are_never_read():
    with pytest.raises(SchemaError, match="to have a map"):
        release_schema(RULED)
    with pytest.raises(SchemaError, match="no folder"):
        Schema.from_dict(RULED)


def test_all_ranges_and_lists_together_have_a_bound(monkeypatch):
    monkeypatch.setattr(references, "MOST_WRITTEN", 10)
    entry = {"kind": "categorical", "categories": ["u", "v"]}
    assert len(Schema.from_dict({"columns": {"q1..q3": entry}}).columns) == 3
    with pytest.raises(SchemaError, match=r"with 10 labels, .* up to column 'r1\.\.r2'"):
        Schema.from_dict({"columns": {"q1..q3": entry, "r1..r2": "boolean"}})
    monkeypatch.setattr(references, "MOST_COLUMNS", 4)
    with pytest.raises(SchemaError, match=r"at most 4 columns, .* up to column 'b'"):
        Schema.from_dict({"columns": {"q1..q3": "boolean", "a": "boolean", "b": "boolean"}})
