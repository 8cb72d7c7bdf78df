"""The weight of a schema: read, written, refused."""

import pickle

import pytest

from sfumato import Schema, Unit, Weight
from sfumato.columns import Boolean, Categorical, Continuous, Identifier, Integer
from sfumato.errors import SchemaError
from sfumato.lenses.chain import plain_schema
from sfumato.schema.schema import read_open
from sfumato.schema.schema_facts import weight_bound, weight_kind
from sfumato.schema.sources import accepted, read_off, source_lines

COLUMNS = {"w": Continuous(lower=1, upper=20), "member": Boolean()}
FORMS = {
    "the column": "w",
    "a mapping": {"column": "w"},
    "its own bound": {"column": "w", "upper": 7.5},
    "a total": {"column": "w", "upper": 5, "total": 10**6},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_schema_comes_back(form):
    document = {
        "rows": 10,
        "weight": FORMS[form],
        "columns": {"w": {"kind": "integer", "lower": 0, "upper": 9}, "m": "boolean"},
    }
    schema = Schema.from_dict(document)
    assert schema.released == ("m",)
    again = Schema.from_dict(schema.to_dict())
    assert again == schema == pickle.loads(pickle.dumps(schema))
    assert again.to_dict() == schema.to_dict()
    expected = FORMS[form] if isinstance(FORMS[form], dict) and len(FORMS[form]) > 1 else "w"
    assert schema.to_dict()["weight"] == expected
    assert weight_bound(schema) == {"its own bound": 7.5, "a total": 5.0}.get(form, 9.0)


def test_a_name_is_a_weight():
    assert Schema(columns=COLUMNS, weight="w") == Schema(columns=COLUMNS, weight=Weight(column="w"))


def test_an_identifier_may_be_the_weight_if_its_bound_is_said():
    columns = {"w": Identifier(), "member": Boolean()}
    assert weight_bound(Schema(columns=columns, weight=Weight(column="w", upper=3))) == 3
    with pytest.raises(SchemaError, match="public bound for the weight 'w'"):
        Schema(columns=columns, weight="w")


def test_the_weight_is_modelled_as_a_column_from_0_and_not_released():
    schema = Schema(columns=COLUMNS, weight="w", rows=5)
    assert plain_schema(schema).released == ("w", "member")
    assert plain_schema(schema).columns["w"] == Continuous(lower=0, upper=20)
    assert plain_schema(schema).weight is None
    assert plain_schema(schema).rows == 5


def test_weights_are_written_as_the_columns_numbers_are():
    document = {
        "reader": {"decimal": ","},
        "weight": {"column": "w", "upper": 2},
        "columns": {"w": "identifier", "m": "boolean"},
    }
    assert weight_kind(Schema.from_dict(document)).written.decimal == ","


def test_rules_beside_a_weight():
    columns = {"w": Continuous(lower=0, upper=2), "a": Integer(lower=0, upper=9), "b": Integer(lower=0, upper=9)}
    schema = Schema(columns=columns, weight="w", rules=({"order": ["a", "b"]},))
    assert "w" in plain_schema(schema).released
    with pytest.raises(SchemaError, match="w"):
        Schema(columns=columns, weight="w", rules=({"order": ["a", "w"]},))


@pytest.mark.parametrize(
    ("weight", "columns", "message"),
    [
        (5, COLUMNS, "to name a column"),
        ({"upper": 5}, COLUMNS, "to name a column"),
        ({"column": "w", "most": 5}, COLUMNS, "to name a column"),
        ({"column": "w", "upper": 0}, COLUMNS, "upper of weight to be a number above 0"),
        ({"column": "w", "upper": float("inf")}, COLUMNS, "upper of weight to be a number above 0"),
        ({"column": "w", "upper": "many"}, COLUMNS, "upper of weight to be a number above 0"),
        ({"column": "w", "upper": True}, COLUMNS, "upper of weight to be a number above 0"),
        ({"column": "w", "total": -1}, COLUMNS, "total of weight to be a number above 0"),
        ("v", COLUMNS, "among the columns, got 'v'"),
        ("member", COLUMNS, "declared column of numbers, got boolean"),
        ("w", {**COLUMNS, "w": Continuous(lower=-2, upper=0)}, "upper bound above 0"),
    ],
)
def test_what_is_no_weight_is_refused(weight, columns, message):
    with pytest.raises(SchemaError, match=message):
        Schema(columns=columns, weight=weight)


def test_an_open_weight_is_refused():
    with pytest.raises(SchemaError, match="declared column of numbers"):
        read_open({"weight": "w", "columns": {"w": {"kind": "continuous", "discover": True}, "m": "boolean"}})


def test_units():
    columns = {"p": Identifier(), "t": Integer(lower=0, upper=9), **COLUMNS}
    assert Schema(columns=columns, weight="w", unit=Unit(column="p", max_rows=3)).released == ("t", "member")
    with pytest.raises(SchemaError, match="two columns"):
        Schema(columns=columns, weight=Weight(column="p", upper=2), unit=Unit(column="p", max_rows=3))
    with pytest.raises(SchemaError, match="outside constant of unit"):
        Schema(columns=columns, weight="w", unit=Unit(column="p", max_rows=3, order="t"))


def test_images_and_sets_are_refused():
    from sfumato.columns import Image

    columns = {"w": Continuous(lower=0, upper=2), "x": Image(shape=(4, 4), dtype="uint8")}
    with pytest.raises(SchemaError, match="images, or sets alone"):
        Schema(columns=columns, weight="w")


def test_a_weight_alone_is_no_table():
    with pytest.raises(SchemaError, match="at least one column to release"):
        Schema(columns={"w": Continuous(lower=0, upper=2)}, weight="w")


def test_sources_of_a_weight():
    schema = Schema(
        columns={**COLUMNS, "c": Categorical(categories=("a",))}, weight="w", table_source={"weight": "codebook"}
    )
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize("value", [1e-31, 5e-324, 1e31, 1e308])
@pytest.mark.parametrize("name", ["upper", "total"])
def test_bounds_that_no_file_of_a_release_could_hold_are_refused(name, value):
    with pytest.raises(SchemaError, match=f"{name} of weight between 1e-30 and 1e\\+30"):
        Weight(column="w", **{name: value})


@pytest.mark.parametrize("upper", [1e-31, 1e301])
def test_so_are_those_of_the_column(upper):
    columns = {"w": Continuous(lower=0, upper=upper), "member": Boolean()}
    with pytest.raises(SchemaError, match="upper bound between 1e-30 and 1e\\+30 for the weight 'w'"):
        Schema(columns=columns, weight="w")
    assert weight_bound(Schema(columns=columns, weight=Weight(column="w", upper=3))) == 3


def test_a_bound_that_was_read_off_the_records_is_told():
    """The column is hidden, but its bound decides the noise and is in the certificate."""
    schema = Schema(columns=COLUMNS, weight="w", sources={"w": {"upper": "data"}, "member": "law"})
    assert read_off(schema) == ("'w' (upper)",)
    assert any("holder's word" in line and "'w' (lower)" in line for line in source_lines(schema))
    with pytest.raises(SchemaError, match="'w'"):
        accepted(schema, accept_draft=False)
    hidden = Schema(columns={"w": Identifier(), "member": Boolean()}, weight=Weight(column="w", upper=3))
    assert read_off(hidden) == ()
