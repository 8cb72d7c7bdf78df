"""Schemas of linked rows: what may be declared, and the two tables that follow."""

import pickle

import pytest

from sfumato.errors import SchemaError
from sfumato.lenses.chain import plain_schema
from sfumato.schema.linked import linked_tables
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

UNIT = {"column": "who", "max_rows": 4, "order": "day", "constant": ["home"], "units": 500}
COLUMNS = {
    "who": {"kind": "identifier"},
    "day": {"kind": "integer", "lower": 0, "upper": 10},
    "home": {"kind": "categorical", "categories": ["n", "s"]},
    "what": {"kind": "categorical", "categories": ["a", "b"]},
}
DOCUMENT = {"unit": UNIT, "columns": COLUMNS}


def test_a_document_comes_back():
    schema = Schema.from_dict(DOCUMENT)
    assert schema.linked
    assert schema.n_records == 500
    assert schema.to_dict()["unit"] == UNIT
    assert Schema.from_dict(schema.to_dict()) == schema == pickle.loads(pickle.dumps(schema))
    assert schema.written == ("who", "day", "home", "what")
    assert schema.protects == {"name": "who", "max_rows": 4}


def test_units_of_before_are_written_as_before():
    plain = Schema.from_dict({"rows": 9, "unit": {"column": "who", "max_rows": 4}, "columns": COLUMNS})
    assert not plain.linked
    assert plain.to_dict()["unit"] == {"column": "who", "max_rows": 4}
    assert plain.written == plain.released
    assert plain.n_records == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": "who"}, "order of unit to name released columns, got 'who'"),
        ({"order": "what"}, "a column of numbers or dates, got 'what'"),
        ({"order": 3}, "order of unit to name a column"),
        ({"constant": ["nobody"]}, "constant of unit to name released columns, got 'nobody'"),
        ({"constant": "home"}, "constant of unit to be a list"),
        ({"constant": ["home", "home"]}, "each column once"),
        ({"constant": ["day"]}, "order of unit to vary, got 'day'"),
        ({"order": None, "constant": ["day", "home", "what"]}, "a column that is not constant"),
        ({"order": None, "constant": []}, "units of unit beside order or constant"),
        ({"units": 0}, "units of unit to be a whole number"),
        ({"max_rows": 100_000}, "max_rows of at most 1000"),
        ({"sort": "day"}, "got 'sort'"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({**DOCUMENT, "unit": {**UNIT, **change}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 100}, "`units` in the unit"),
        ({"columns": {**COLUMNS, "face": {"kind": "image", "height": 4, "width": 4}}}, "'face'"),
    ],
)
def test_what_is_not_there_yet_is_refused_by_name(change, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({**DOCUMENT, **change})


def test_open_columns_are_refused():
    with pytest.raises(SchemaError, match="no open columns beside linked rows, got 'what'"):
        OpenSchema.from_dict({**DOCUMENT, "columns": {**COLUMNS, "what": {"kind": "categorical", "discover": True}}})


def test_the_tables_have_one_record_a_unit():
    tables = linked_tables(Schema.from_dict(DOCUMENT))
    assert tables.units.released == ("home", "number of rows of who", "day", "what")
    assert tables.steps is not None
    fixed = ("home", "number of rows of who", "row of who", "day before", "what before")
    assert tables.steps.released == (*fixed, "day", "what")
    assert tables.n_fixed == len(fixed)
    assert tables.units.unit is None
    assert tables.steps.unit is None
    assert plain_schema(tables.steps).columns["day"].bounds == (0, 10), "a distance of days"
    assert linked_tables(Schema.from_dict(DOCUMENT)) is tables


def test_units_of_one_row_have_no_steps():
    tables = linked_tables(Schema.from_dict({**DOCUMENT, "unit": {**UNIT, "max_rows": 1}}))
    assert tables.steps is None
    assert tables.units.released == ("day", "home", "what")


def test_names_that_are_taken_are_not_taken_twice():
    columns = {**COLUMNS, "what before": COLUMNS["what"]}
    tables = linked_tables(Schema.from_dict({**DOCUMENT, "columns": columns}))
    assert tables.before == {"day": "day before", "what": "what before'", "what before": "what before before"}
