"""Drafts, and where facts come from: read, kept, grouped, and refused where they were read off the records."""

import copy
import pickle
from dataclasses import replace

import pytest

from sfumato.columns.kinds import Categorical, Identifier, Integer
from sfumato.columns.open import Open
from sfumato.errors import SchemaError
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema
from sfumato.schema.sources import accepted, read_off, source_lines, with_discovered, without_rows
from sfumato.schema.unit import Unit

DOCUMENT = {
    "rows": 500,
    "unit": {"column": "id", "max_rows": 2},
    "source": {"rows": "law", "unit": "codebook"},
    "columns": {
        "id": "identifier",
        "age": {"kind": "integer", "lower": 0, "upper": 120, "source": {"lower": "law", "upper": "codebook"}},
        "sex": {"kind": "categorical", "categories": ["f", "m"], "source": "standard"},
        "weight": {"kind": "continuous", "lower": 0, "upper": 300, "source": {"upper": "codebook"}},
        "member": "boolean",
    },
}


def changed(**entries):
    return {**copy.deepcopy(DOCUMENT), **entries}


def of_column(source, **facts):
    entry = {"kind": "integer", "lower": 0, "upper": 9, **facts, "source": source}
    return {"columns": {"n": entry}}


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_sources_and_draft_are_kept(tmp_path, suffix):
    schema = Schema.from_dict(changed(draft=True))
    assert schema.draft
    assert schema.table_source == {"rows": "law", "unit": "codebook"}
    assert schema.sources == {
        "age": {"lower": "law", "upper": "codebook"}, "sex": "standard", "weight": {"upper": "codebook"},
    }  # fmt: skip
    assert next(iter(schema.to_dict())) == "draft"
    path = tmp_path / f"schema.{suffix}"
    schema.save(path)
    assert Schema.load(path) == schema == pickle.loads(pickle.dumps(schema)) == copy.deepcopy(schema)
    assert Schema.load(path).to_dict() == schema.to_dict()
    assert replace(schema, draft=False) != schema


def test_an_older_file_is_no_draft():
    schema = Schema.from_dict({"columns": {"member": "boolean"}})
    assert (schema.draft, schema.sources, schema.table_source) == (False, {}, {})
    assert schema.to_dict() == {"columns": {"member": {"kind": "boolean"}}}
    assert source_lines(schema) == ()


def test_false_is_written_by_leaving_it_out():
    assert "draft" not in Schema.from_dict(changed(draft=False)).to_dict()


@pytest.mark.parametrize("draft", ["yes", 1, 0, None, "true", [True]])
def test_a_draft_is_true_or_false(draft):
    with pytest.raises(SchemaError, match="draft to be true or false"):
        Schema.from_dict(changed(draft=draft))
    with pytest.raises(SchemaError, match="draft to be true or false"):
        Schema(columns={"n": Integer(lower=0, upper=9)}, draft=draft)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (of_column("guess"), "source of column 'n' to be one of law, codebook, standard, discovered, data"),
        (of_column(["law"]), "one of them per fact"),
        (of_column({}), "one of them per fact"),
        (of_column({"lower": "guess"}), "source of lower of column 'n'"),
        (of_column({"categories": "law"}), "It has lower, upper"),
        (changed(source={"size": "law"}), "It has rows, unit"),
        (changed(source="law"), "table_source to map rows and unit"),
        ({"source": {"rows": "law"}, "columns": {"member": "boolean"}}, "It has none"),
        ({"columns": {"n": {"kind": "integer", "discover": True, "source": {"kind": "law"}}}}, "It has none"),
    ],
)
def test_other_sources_are_refused(document, said):
    with pytest.raises(SchemaError, match="Expected") as error:
        OpenSchema.from_dict(document)
    assert said in str(error.value)


def test_sources_of_no_column():
    with pytest.raises(SchemaError, match="no column 'm'"):
        Schema(columns={"n": Integer(lower=0, upper=9)}, sources={"m": "law"})


def test_they_are_told_in_groups():
    assert source_lines(Schema.from_dict(DOCUMENT)) == (
        "law: 'age' (lower), the number of rows",
        "codebook: 'age' (upper), 'weight' (upper), the unit",
        "standard: 'sex'",
        "the holder's word: 'weight' (lower), 'member'",
    )


def test_a_draft_tells_what_was_read_off():
    columns = {"age": Open(kind="integer"), "sex": Categorical(categories=("f", "m")), "id": Identifier()}
    schema = Schema(columns=columns, draft=True)
    assert source_lines(schema) == ("estimated by the fit: 'age'", "read off the records: 'sex'")


def test_a_draft_is_refused():
    schema = Schema.from_dict(changed(draft=True))
    with pytest.raises(SchemaError, match="take out its line `draft: true`") as error:
        accepted(schema, accept_draft=False)
    assert "\n" not in str(error.value)
    accepted(schema, accept_draft=True)
    accepted(Schema.from_dict(DOCUMENT), accept_draft=False)


@pytest.mark.parametrize(
    ("document", "facts"),
    [
        (of_column("data"), "'n'"),
        (of_column({"upper": "data", "lower": "law"}), "'n' (upper)"),
        (changed(source={"rows": "data"}), "the number of rows"),
        (changed(source={"unit": "data"}), "the unit"),
    ],
)
def test_facts_of_the_data_are_refused(document, facts):
    schema = Schema.from_dict(document)
    assert read_off(schema) == (facts,)
    with pytest.raises(SchemaError) as error:
        accepted(schema, accept_draft=False)
    assert f"for {facts}. " in str(error.value)
    accepted(schema, accept_draft=True)


def test_what_a_fit_buys_is_marked():
    columns = {"age": Open(kind="integer"), "n": Integer(lower=0, upper=9)}
    schema = with_discovered(Schema(columns=columns, sources={"n": "law"}), ["age"])
    assert schema.sources == {"n": "law", "age": "discovered"}
    assert with_discovered(schema, []) is schema


def test_rows_that_are_bought_have_no_source():
    columns = {"id": Identifier(), "n": Integer(lower=0, upper=9)}
    unit = Unit(column="id", max_rows=2)
    schema = Schema(columns=columns, rows=5, unit=unit, table_source={"rows": "data", "unit": "law"})
    found = without_rows(schema)
    assert (found.rows, found.table_source, read_off(found)) == (None, {"unit": "law"}, ())


def test_an_open_schema_keeps_the_rest():
    nominal = Schema.from_dict(changed(draft=True))
    found = OpenSchema(nominal, {"age": "integer"})
    assert found.draft
    assert set(found.sources) == {"sex", "weight"}
    assert found.table_source == nominal.table_source
