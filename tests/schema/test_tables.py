"""Schemas of two tables with a key: what may be declared, and what is refused by name."""

import pickle
from dataclasses import replace

import pytest

from fixtures.two_tables import DOCUMENT, schema
from sfumato.errors import SchemaError
from sfumato.schema.database import Branch, Database
from sfumato.schema.linked import linked_tables
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit

PERSONS, VISITS = DOCUMENT["tables"]["persons"], DOCUMENT["tables"]["visits"]


def test_a_document_comes_back():
    found = schema()
    assert found.to_dict()["tables"] == DOCUMENT["tables"]
    assert "unit" not in found.to_dict()
    assert Schema.from_dict(found.to_dict()) == found == pickle.loads(pickle.dumps(found))
    assert found.linked
    assert found.n_records == 20_000
    assert found.protects == {"name": "patient", "max_rows": 6}
    assert found.database == Database(
        units="persons", branches=(Branch(name="visits", of="persons", max_rows=6, by="patient", order="day"),)
    )
    assert found.tree is None
    assert OpenSchema.from_dict(DOCUMENT) == found


def test_a_key_of_another_name_comes_back():
    found = schema(by="person_id")
    assert found.database is not None
    assert found.database.branches[0].by == "person_id"
    assert found.to_dict()["tables"]["visits"]["by"] == "person_id"
    assert schema(by="patient") == schema(), "the same name need not be said"


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "tables to map names"),
        ({"persons": PERSONS}, "one table of units and others with `of`, got 1 without `of` of 1"),
        ({"persons": PERSONS, "others": PERSONS}, "one table of units and others with `of`, got 2 without `of` of 2"),
        ({"persons": PERSONS, "visits": {**VISITS, "of": "people"}}, "to be of another table, got of='people'"),
        ({"persons": {**PERSONS, "unit": 3}, "visits": VISITS}, "in the table 'persons', got 'unit'"),
        ({"persons": {"columns": ["sex"]}, "visits": VISITS}, "key in the table 'persons', got none"),
        ({"persons": PERSONS, "visits": {"of": "persons"}}, "max_rows in the table 'visits', got none"),
        ({"persons": {**PERSONS, "columns": ["day"]}, "visits": VISITS}, "order of unit to vary, got 'day'"),
        (
            {"persons": PERSONS, "visits": {**VISITS, "by": "state"}},
            "'state' of .*, which names rows, to be no released",
        ),
        ({"persons": PERSONS, "visits": {**VISITS, "by": 3}}, "by of the table 'visits' to name a column"),
        ({"a/b": PERSONS, "visits": {**VISITS, "of": "a/b"}}, "to be one of a file, got 'a/b'"),
        ({"..": PERSONS, "visits": {**VISITS, "of": ".."}}, "to be one of a file, got '..'"),
        ({"Visits": PERSONS, "visits": {**VISITS, "of": "Visits"}}, "different names"),
    ],
)
def test_what_is_wrong_is_named(tables, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({**DOCUMENT, "tables": tables})


def test_a_single_table_may_list_its_columns():
    assert schema(columns=["day", "score", "state"]) == schema()
    assert schema(columns=["day", "score", "state"], weight=2).tree is None
    for columns, name in ((["day", "score"], "state"), (["day", "score", "state", "sex"], "sex")):
        with pytest.raises(SchemaError, match=f"every released column in one table, got '{name}'"):
            schema(columns=columns)
    keyed = schema(columns=["day", "score", "state"], key="visit")
    assert keyed.tree == keyed.database
    with pytest.raises(SchemaError, match="columns in the table 'visits', got none"):
        schema(key="visit")


def test_what_follows_from_tables_is_not_said_of_the_unit():
    visits = Branch(name="visits", of="persons", max_rows=6, by="patient", order="day", ends=(("state", ("d",)),))
    unit = Unit(column="patient", tables=Database(units="persons", branches=(visits,)))
    assert (unit.max_rows, unit.order, unit.ends) == (6, "day", (("state", ("d",)),))
    assert replace(unit, constant=("sex",)).order == "day"
    with pytest.raises(SchemaError, match="max_rows of unit to follow from its tables"):
        replace(unit, max_rows=5)
    with pytest.raises(SchemaError, match="no columns of 'visits', the only table below 'persons'"):
        Database(units="persons", branches=(replace(visits, columns=("day",)),))


def test_what_does_not_go_beside_two_tables_is_refused():
    with pytest.raises(SchemaError, match="either tables or unit"):
        Schema.from_dict({**DOCUMENT, "unit": {"column": "patient", "max_rows": 3}})
    with pytest.raises(SchemaError, match="`rows` in the table 'persons'"):
        Schema.from_dict({**DOCUMENT, "rows": 500})
    with pytest.raises(SchemaError, match="tables of unit to be a Database, got str"):
        Schema(columns=schema().columns, unit=Unit(column="patient", max_rows=3, tables="persons"))  # type: ignore[arg-type]


def test_units_without_rows_have_a_number_of_rows_and_no_first_row():
    found = linked_tables(schema())
    assert found.units.columns[found.count].to_dict() == {"kind": "integer", "lower": 0, "upper": 6}
    nullable = [name for name, kind in found.units.columns.items() if getattr(kind, "nullable", False)]
    assert nullable == ["level of score", "trend of score", "day", "score", "state"]
    assert list(found.units.columns)[: found.n_first] == ["sex", "born", found.count]
    assert found.steps is not None
    assert found.steps.columns[found.count].to_dict()["lower"] == 2
    one = linked_tables(schema(max_rows=1))
    assert one.steps is None
    assert one.units.columns[one.count].to_dict()["upper"] == 1


def test_persons_may_have_no_column_beside_the_key():
    tables = {"persons": {"key": "patient", "columns": []}, "visits": VISITS}
    found = linked_tables(Schema.from_dict({**DOCUMENT, "tables": tables}))
    assert found.constants == ()
    assert found.n_first == 1
