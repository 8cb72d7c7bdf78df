"""Schemas of five standards: what each says of a column, and what is refused."""

import json

import pytest

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Identifier, Integer
from sfumato.columns.open import Open
from sfumato.errors import SchemaError
from sfumato.schema.schema import Schema
from sfumato.standards.ddi import from_ddi
from sfumato.standards.variable_lists import _OMOP_HEADERS as OMOP_HEADERS
from sfumato.standards.variable_lists import from_frictionless, from_omop, from_sdv

HOSTILE = 'a "q", b\n<script>=1+1'

FRICTIONLESS = {
    "missingValues": ["", "-9"],
    "primaryKey": "id",
    "fields": [
        {"name": "id", "type": "integer"},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}},
        {"name": "pay", "type": "number", "constraints": {"minimum": 0, "maximum": 99.5}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        {"name": "edu", "type": "string", "categories": [{"value": "1", "label": "low"}, {"value": "2"}]},
        {"name": "day", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}},
        {"name": "own", "type": "boolean"},
        {"name": "size", "type": "number"},
        {"name": HOSTILE, "type": "string"},
    ],
}  # fmt: skip

DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5" version="2.5"><dataDscr>
<var ID="V1" name="AGE" intrvl="contin"><valrng><range min="0" max="120"/></valrng>
 <sumStat type="mean">38.4</sumStat><varFormat type="numeric"/></var>
<var ID="V2" name="SEX" intrvl="discrete"><invalrng><item VALUE="9"/></invalrng>
 <catgry><catValu>1</catValu><labl>male</labl><catStat type="freq">17</catStat></catgry>
 <catgry><catValu>2</catValu><labl>female</labl></catgry>
 <catgry missing="Y"><catValu>8</catValu></catgry><catgry><catValu>9</catValu></catgry>
 <varFormat type="numeric"/></var>
<var ID="V3" name="NOTE"><varFormat type="character"/></var>
</dataDscr></codeBook>"""

OMOP = """cdmTableName,cdmFieldName,isRequired,cdmDatatype,userGuidance,isPrimaryKey
person,person_id,Yes,integer,"unique, ""each"" one",Yes
person,gender_concept_id,Yes,integer,,No
person,year_of_birth,Yes,integer,,No
person,birth_datetime,No,datetime,,No
person,gender_source_value,No,varchar(50),,No
death,person_id,Yes,integer,,No
death,death_date,Yes,date,,No
"""


def _write(tmp_path, content, name):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("package", [False, True])
def test_frictionless(tmp_path, package):
    content = {"resources": [{"name": "t", "schema": FRICTIONLESS}]} if package else FRICTIONLESS
    path = _write(tmp_path, content, "t.json")
    with pytest.warns(UserWarning, match="does not fix the domain") as told:
        schema = from_frictionless(path)
    assert [len(str(note.message)) > 0 for note in told] == [True, True]
    assert dict(schema.columns) == {
        "id": Identifier(),
        "age": Integer(lower=0, upper=120),
        "pay": Continuous(lower=0.0, upper=99.5, nullable=True),
        "sex": Categorical(categories=("f", "m")),
        "edu": Categorical(categories=("1", "2"), nullable=True),
        "day": DateTime(lower="2020-01-01", upper="2020-12-31", nullable=True),
        "own": Boolean(nullable=True),
        "size": Open(kind="continuous"),
        HOSTILE: Identifier(),
    }
    assert "-9" in schema.missing
    assert dict(schema.sources) == dict.fromkeys(("age", "pay", "sex", "edu", "day", "own"), "codebook")


def test_ddi_reads_codes_and_no_statistic(tmp_path):
    with pytest.warns(UserWarning, match="'NOTE'"):
        schema = from_ddi(_write(tmp_path, DDI, "c.xml"))
    assert dict(schema.columns) == {
        "AGE": Integer(lower=0, upper=120, nullable=True),
        "SEX": Categorical(categories=("1", "2"), nullable=True),
        "NOTE": Identifier(),
    }
    assert {name: set(texts) - set(schema.missing) for name, texts in schema.missing_of.items()} == {"SEX": {"8", "9"}}
    assert "17" not in json.dumps(schema.to_dict())
    assert "38.4" not in json.dumps(schema.to_dict())


def test_ddi_bounds_of_any_size(tmp_path):
    facts = "<valrng><range min='0' max='1e50'/></valrng><varFormat type='numeric'/>"
    text = f"<codeBook><var name='a'>{facts}</var></codeBook>"
    with pytest.raises(SchemaError, match="Column 'a'"):
        from_ddi(_write(tmp_path, text, "c.xml"))


ENTITY = '<!DOCTYPE c [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;">]>'
OUTSIDE = '<!DOCTYPE c [<!ENTITY a SYSTEM "file:///etc/hostname">]>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ENTITY + "<codeBook><var name='&b;'/></codeBook>", "document type"),
        (OUTSIDE + "<codeBook>&a;</codeBook>", "document type"),
        ("<!DOCTYPE codeBook SYSTEM 'http://localhost/x.dtd'><codeBook/>", "document type"),
        ("<codeBook>&a;</codeBook>", "a mistake at line 1"),
        ("<codeBook>", "a mistake at line 1"),
        ("<a>" * 200 + "</a>" * 200, "nesting too deep"),
        ("<codeBook>" + "<b c='d'/>" * 2_000_001 + "</codeBook>", "more than 4,000,000 elements"),
        ("<codeBook/>", "variables"),
        ("<codeBook><var/></codeBook>", "to have a name"),
        ("<codeBook><var name='a'><valrng><range min='x' max='2'/></valrng></var></codeBook>", "bounds"),
    ],
)
def test_hostile_xml_is_refused(tmp_path, text, words):
    with pytest.raises(SchemaError) as caught:
        from_ddi(_write(tmp_path, text, "c.xml"))
    assert words in str(caught.value)


COLUMNS = {
    "id": {"sdtype": "id"},
    "age": {"sdtype": "numerical", "computer_representation": "Int64"},
    "pay": {"sdtype": "numerical"},
    "sex": {"sdtype": "categorical"},
    "day": {"sdtype": "datetime", "datetime_format": "%d/%m/%Y"},
    "own": {"sdtype": "boolean"},
    "mail": {"sdtype": "email", "pii": True},
}
OLD = {
    "id": {"type": "id", "subtype": "integer"},
    "age": {"type": "numerical", "subtype": "integer"},
    "pay": {"type": "numerical", "subtype": "float"},
    "sex": {"type": "categorical"},
    "day": {"type": "datetime", "format": "%d/%m/%Y"},
    "own": {"type": "boolean"},
    "mail": {"type": "categorical", "pii": True},
}


@pytest.mark.parametrize(
    "content",
    [
        {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", "primary_key": "id", "columns": COLUMNS},
        {
            "METADATA_SPEC_VERSION": "V1",
            "tables": {"t": {"primary_key": "id", "columns": COLUMNS}},
            "relationships": [],
        },
        {"fields": OLD, "primary_key": "id"},
        {"tables": {"t": {"fields": OLD, "primary_key": "id"}}},
    ],
)
def test_sdv_states_kinds_and_no_domain(tmp_path, content):
    with pytest.warns(UserWarning, match="left open"):
        schema = from_sdv(_write(tmp_path, content, "m.json"))
    assert dict(schema.columns) == {
        "id": Identifier(),
        "age": Open(kind="integer"),
        "pay": Open(kind="continuous"),
        "sex": Open(kind="categorical"),
        "day": Open(kind="datetime", format="%d/%m/%Y"),
        "own": Boolean(nullable=True),
        "mail": Identifier(),
    }


def test_omop(tmp_path):
    path = _write(tmp_path, OMOP, "f.csv")
    with pytest.warns(UserWarning, match="does not fix the domain"):
        schema = from_omop(path, table="PERSON")
    assert schema.unit.column == "person_id"
    assert dict(schema.columns) == {
        "person_id": Identifier(),
        "gender_concept_id": Open(kind="categorical"),
        "year_of_birth": Open(kind="integer"),
        "birth_datetime": Open(kind="datetime"),
        "gender_source_value": Identifier(),
    }
    with pytest.raises(SchemaError, match="'person', 'death'"):
        from_omop(path)


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (from_frictionless, "[]", "in place of a mapping"),
        (from_frictionless, '{"fields": [1]}', "a mapping each"),
        (from_frictionless, '{"fields": [{"type": "string"}]}', "to have a name"),
        (from_frictionless, '{"fields": []}', "at least one column"),
        (from_frictionless, '{"fields": [{"name": "a"}, {"name": "a"}]}', "each column once"),
        (
            from_frictionless,
            '{"fields": [{"name": "a", "type": "integer", "constraints": {"minimum": 5, "maximum": 1}}]}',
            "Column 'a'",
        ),
        (
            from_frictionless,
            '{"fields": [{"name": "a", "type": "integer", "constraints": {"minimum": 1, "maximum": "1e999"}}]}',
            "Column 'a'",
        ),
        (from_frictionless, '{"fields": [{"name": "a", "constraints": {"enum": [[1]]}}]}', "Column 'a'"),
        (from_sdv, '{"METADATA_SPEC_VERSION": "V9", "columns": {}}', "METADATA_SPEC_VERSION"),
        (from_sdv, '{"columns": {"a": 1}}', "in place of a mapping"),
        (from_omop, "a,b\n1,2\n", "field-level CSV"),
        (from_omop, ",".join(OMOP_HEADERS) + "\nperson,a,Yes,integer,No" * 10_001, "field-level CSV"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, read, text, words):
    with pytest.raises(SchemaError) as caught:
        read(_write(tmp_path, text, "f.csv" if read is from_omop else "f.json"))
    assert words in str(caught.value)


@pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")
def test_what_is_imported_saves_and_loads(tmp_path):
    from sfumato.schema.open_schema import OpenSchema

    schema = from_frictionless(_write(tmp_path, FRICTIONLESS, "t.json"))
    schema.save(tmp_path / "s.yaml")
    assert isinstance(schema, Schema)
    assert OpenSchema.load(tmp_path / "s.yaml") == schema
