"""The reader profile of a schema: what it says of all columns, and how it is written in documents."""

from __future__ import annotations

import pickle

import pytest

from sfumato.columns import Continuous, Integer
from sfumato.columns.written import Written
from sfumato.errors import SchemaError
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

DOCUMENT = {
    "rows": 10,
    "reader": {"decimal": ",", "encoding": "latin-1", "delimiter": ";", "missing": ["", "?"]},
    "columns": {
        "weight": {"kind": "continuous", "lower": 0, "upper": 300},
        "rent": {"kind": "continuous", "lower": 0, "upper": 9000, "written": {"thousands": "."}},
        "price": {"kind": "integer", "lower": 0, "upper": 9, "written": {"decimal": ".", "currency": "$"}},
        "member": "boolean",
    },
}


def test_a_column_says_more_than_the_table_or_otherwise():
    schema = Schema.from_dict(DOCUMENT)
    found = {name: kind.written for name, kind in schema.columns.items() if isinstance(kind, Integer | Continuous)}
    assert found == {
        "weight": Written(decimal=","),
        "rent": Written(decimal=",", thousands="."),
        "price": Written(decimal=".", prefix="$"),
    }
    assert schema.missing == ("", "?")
    assert (schema.reader.csv.delimiter, schema.reader.csv.encoding) == (";", "iso8859-1")


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_documents_give_the_same_schema_back(tmp_path, suffix):
    schema = Schema.from_dict(DOCUMENT)
    schema.save(tmp_path / f"schema{suffix}")
    assert Schema.load(tmp_path / f"schema{suffix}") == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert "written" not in schema.to_dict()["columns"]["weight"]


def test_columns_to_discover_have_it_too():
    document = {"reader": {"decimal": ","}, "columns": {"a": {"kind": "integer", "discover": True}}}
    document["columns"]["b"] = {"kind": "unknown", "discover": True, "written": {"percent": True}}
    schema = OpenSchema.from_dict(document)
    assert schema.columns["b"].written == Written(decimal=",", suffix="%")
    assert OpenSchema.from_dict(schema.to_dict()) == schema
    document["columns"]["b"]["kind"] = "boolean"
    with pytest.raises(SchemaError, match=r"'b'.*written beside kinds of numbers"):
        OpenSchema.from_dict(document)


def test_a_schema_without_one_is_as_before():
    document = {"columns": {"age": {"kind": "integer", "lower": 0, "upper": 120}}}
    assert Schema.from_dict(document).to_dict() == document


@pytest.mark.parametrize(
    ("reader", "named"),
    [
        ({"decimal": ",", "thousands": ","}, "thousands other than decimal"),
        ({"thousands": "."}, "thousands other than decimal"),
        ({"decimals": ","}, "'decimals'"),
        ({"encoding": "idna"}, "encoding"),
        ({"encoding": 8}, "encoding"),
        ({"delimiter": "ab"}, "delimiter"),
        ({"delimiter": "3"}, "delimiter"),
        (",", "reader to be a mapping"),
    ],
)
def test_bad_profiles_are_refused(reader, named):
    with pytest.raises(SchemaError, match=named):
        Schema.from_dict({"reader": reader, "columns": {"age": "boolean"}})


def test_missing_stands_in_one_place():
    with pytest.raises(SchemaError, match="missing in reader or beside it"):
        Schema.from_dict({"missing": [""], "reader": {"missing": [""]}, "columns": {"age": "boolean"}})


def test_a_column_whose_groups_are_the_decimal_mark_is_named():
    columns = {"rent": {"kind": "integer", "lower": 0, "upper": 9, "written": {"thousands": "."}}}
    with pytest.raises(SchemaError, match=r"'rent'.*thousands other than decimal"):
        Schema.from_dict({"columns": columns})
