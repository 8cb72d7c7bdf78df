"""The areas of a schema: read, written, refused; of several, one is left where rules are."""

import pickle

import pytest

from sfumato import Schema
from sfumato.errors import SchemaError
from sfumato.fitting.purposes import Facts
from sfumato.lenses.chain import plain_schema
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema_facts import with_areas

MAP = {"a": "north", "b": "north", "c": "south"}
DOCUMENT = {
    "areas": ["region", "county"],
    "columns": {
        "county": {"kind": "categorical", "categories": list(MAP)},
        "region": {"kind": "categorical", "categories": ["north", "south"]},
        "clinic": "boolean",
        "age": {"kind": "integer", "lower": 0, "upper": 120},
    },
    "rules": [{"derived": "region", "from": "county", "map": MAP}],
}


def document(**changes):
    return {**DOCUMENT, **changes}


def test_a_schema_comes_back():
    schema = Schema.from_dict(DOCUMENT)
    assert schema.areas == ("region", "county")
    assert Schema.from_dict(schema.to_dict()) == schema == pickle.loads(pickle.dumps(schema))
    assert Schema.from_dict(schema.to_dict()).to_dict() == schema.to_dict()
    assert "areas" not in Schema.from_dict(document(areas=[])).to_dict()


def test_the_column_that_follows_from_no_rule_is_what_others_are_counted_by():
    schema = Schema.from_dict(DOCUMENT)
    assert plain_schema(schema).areas == ("county",)
    assert Facts(schema, "clinic", 100).class_column == "county"
    assert Facts(Schema.from_dict(document(areas=["clinic"])), None, 100).class_column == "clinic"
    assert Facts(Schema.from_dict(document(areas=[])), "clinic", 100).class_column == "clinic"


def test_those_of_a_call_stand_in_place_of_the_schemas():
    schema = Schema.from_dict(DOCUMENT)
    assert with_areas(schema, None) is schema
    assert with_areas(schema, ["clinic"]).areas == ("clinic",)
    assert with_areas(schema, []).areas == ()


@pytest.mark.parametrize(
    ("areas", "message"),
    [
        ("county", r"areas to be a list of column names, such as \[county\], got 'county'"),
        ([3], "areas to be a list of column names"),
        (["county", "county"], "each column of areas once"),
        (["age"], "columns of declared labels, got 'age'"),
        (["absent"], "columns of declared labels, got 'absent'"),
        (["clinic", "county"], "got 'clinic' and 'county' apart. Add a rule"),
        (["region"], "got 'region', which does. Name the column that it follows from"),
    ],
)
def test_faults_are_told(areas, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(document(areas=areas))


def test_a_column_to_discover_is_refused():
    columns = {"place": {"kind": "categorical", "discover": True}, "age": {"kind": "integer", "lower": 0, "upper": 9}}
    with pytest.raises(SchemaError, match="columns of declared labels, got 'place'"):
        OpenSchema.from_dict({"areas": ["place"], "columns": columns})
