"""Schemas with words beside numbers: what they say, and what is refused before any record is read."""

import pytest

from sfumato import Schema
from sfumato.columns import Boolean, Categorical, Continuous, DateTime, Integer
from sfumato.errors import SchemaError
from sfumato.lenses.chain import plain_schema
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.set_columns import itemised

ENTRY = {"kind": "integer", "lower": 0, "upper": 9, "atoms": ["<5", 3]}


def test_a_document_says_them(tmp_path):
    schema = Schema.from_dict({"columns": {"x": ENTRY, "b": "boolean"}})
    assert schema.columns["x"].words == ("<5",)
    assert schema.to_dict()["columns"]["x"] == ENTRY
    for name in ("s.yaml", "s.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name).columns == schema.columns
    assert schema.word_columns["x"].labels == Categorical(categories=("<5",), nullable=True)


def test_the_plain_table_has_labels_beside_numbers():
    days = {"lower": "2020-01-01", "upper": "2020-12-31"}
    columns = {"x": Integer(lower=0, upper=9, atoms=("<5", 3)), "b": Boolean()}
    columns |= {"d": DateTime(**days, atoms=("open",)), "e": DateTime(**days)}
    schema = Schema(columns=columns)
    plain = plain_schema(schema)
    assert list(plain.columns) == ["x", "x (word)", "b", "d", "d (word)", "e", "e: time since d"]
    assert plain.columns["x"] == Integer(lower=0, upper=9, atoms=(3,), nullable=True)
    assert plain.columns["d (word)"].labels == ("open",)
    assert not plain.word_columns
    assert list(itemised(schema)) == ["x", "x (word)", "b", "d", "d (word)", "e"]
    assert schema.released == ("x", "b", "d", "e")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"missing": ["<5", ""]}, "got '<5', which is among the texts for no value"),
        ({"columns": {"x": ENTRY | {"missing": ["<5"]}}}, "got '<5', which is among the texts for no value"),
        ({"columns": {"x": {**ENTRY, "atoms": ["NA"]}}}, "got 'NA', which is among the texts for no value"),
        ({"columns": {"x": ENTRY, "x (word)": "boolean"}}, "another column of that name"),
        ({"weight": "x", "columns": {"x": ENTRY, "b": "boolean"}}, "numbers alone in the weight's column"),
        (
            {"unit": {"column": "p", "max_rows": 2, "order": "x"}, "columns": {"x": ENTRY, "p": "identifier"}},
            "no words beside numbers beside linked rows",
        ),
    ],
)
def test_what_cannot_work_is_refused(more, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({"columns": {"x": ENTRY}} | more)


def test_rules_are_of_the_numbers():
    columns = {"x": Integer(lower=0, upper=9, atoms=("<5",), nullable=True), "y": Continuous(lower=0, upper=9)}
    schema = Schema(columns=columns, rules=({"order": ["x", "y"]},))
    assert schema.rule_plan.kinds["x"].nullable
    with pytest.raises(SchemaError, match="x \\(word\\)"):
        Schema(columns=columns, rules=({"never": {"x (word)": "<5"}},))


@pytest.mark.parametrize("rule", [{"order": ["x", "y"]}, {"null_if": {"x": {"c": "u"}}}], ids=str)
def test_rules_are_of_numbers_that_may_be_missing(rule):
    """To a rule a word is a missing cell, which a number that is never missing does not have."""
    columns = {"x": Integer(lower=0, upper=9, atoms=("<5",)), "y": Continuous(lower=0, upper=9)}
    with pytest.raises(SchemaError, match="Write nullable: true"):
        Schema(columns=columns | {"c": Categorical(categories=("u", "v"))}, rules=(rule,))


def test_open_columns_may_have_declared_words():
    entry = {"kind": "integer", "discover": True, "atoms": ["<5"]}
    schema = OpenSchema.from_dict({"columns": {"x": entry}})
    assert schema.to_dict()["columns"]["x"] == entry
    with pytest.raises(SchemaError, match="among the texts for no value"):
        OpenSchema.from_dict({"columns": {"x": entry}, "missing": ["<5"]})
