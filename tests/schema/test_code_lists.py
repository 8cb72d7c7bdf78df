"""Labels from files and named lists: what is written short becomes the labels themselves."""

import json

import pyarrow as pa
import pytest

from sfumato.errors import SchemaError
from sfumato.schema import code_lists
from sfumato.schema.code_lists import NAMED_LISTS, named_list
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema, release_schema

ICD = "code,title,chapter\nA00,Cholera,A\nA01,Typhoid,A\nI10,Hypertension,I\n"
ENTRY = {"kind": "categorical", "categories": {"file": "icd.csv", "column": "code"}}


def _document(entry):
    return {"columns": {"diagnosis": entry}}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "icd.csv").write_text(ICD, encoding="utf-8")
    return tmp_path


def test_a_schema_file_reads_labels_beside_it(folder, monkeypatch):
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")  # paths are relative to the schema, not to where one stands
    (folder / "schema.json").write_text(json.dumps(_document(ENTRY)), encoding="utf-8")
    for schema in (Schema.load("../schema.json"), OpenSchema.load("../schema.json")):
        assert schema.columns["diagnosis"].categories == ("A00", "A01", "I10")
        assert "icd.csv" not in json.dumps(schema.to_dict())
        assert release_schema(schema.to_dict()) == schema


def test_from_a_document_a_folder_is_named(folder):
    schema = Schema.from_dict(_document(ENTRY), base=folder)
    assert schema == OpenSchema.from_dict(_document(ENTRY), base=str(folder))
    with pytest.raises(SchemaError, match=r"'diagnosis'.*base="):
        Schema.from_dict(_document(ENTRY))


def test_releases_name_no_files(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for entry in (ENTRY, {"kind": "categorical", "categories": {"list": "days"}}):
        with pytest.raises(SchemaError, match="'diagnosis': expected the labels themselves"):
            release_schema(_document(entry))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_files_as_people_have_them(tmp_path, delimiter, mark):
    text = mark + ICD.replace(",", delimiter).replace("\n", "\r\n") + "\r\n"
    (tmp_path / "icd.csv").write_bytes(text.encode())
    assert Schema.from_dict(_document(ENTRY), base=tmp_path).columns["diagnosis"].labels == ("A00", "A01", "I10")


def test_sets_and_ordinals_take_lists_too(folder):
    entry = {"kind": "set", "items": ENTRY["categories"], "max_length": 2}
    assert Schema.from_dict(_document(entry), base=folder).columns["diagnosis"].items == ("A00", "A01", "I10")
    entry = {"kind": "ordinal", "categories": {"list": "months"}}
    assert Schema.from_dict(_document(entry)).columns["diagnosis"].labels[11] == "December"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, "readable text file"),
        ("name\nA00\n", "'code' once among them"),
        ("code,code\nA,B\n", "'code' once among them"),
        ("", "'code' once among them"),
        ("code\nSECRET\nB\nSECRET\n", "again in line 4"),
        ("code,x\nA,1\n,2\n", "got none in line 3"),
        ("code\n", "got none"),
        ("code\n" + "\n".join(map(str, range(6))), "got more"),
        ('code,x\nSECRET,"1\n', "well-formed CSV"),
        (b"code\n\xff\n", "not UTF-8"),
    ],
)
def test_unfit_files_are_refused_and_not_quoted(tmp_path, monkeypatch, text, fault):
    monkeypatch.setattr(code_lists, "MOST_LABELS", 5)
    if text is not None:
        (tmp_path / "icd.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SchemaError, match=f"(?s)'diagnosis'.*icd.csv.*{fault}") as error:
        Schema.from_dict(_document(ENTRY), base=tmp_path)
    assert "SECRET" not in str(error.value)


@pytest.mark.parametrize(
    "categories",
    [{"file": "icd.csv"}, {"file": 1, "column": "code"}, {"list": "days", "file": "icd.csv"}, {"list": "weeks"}],
)
def test_malformed_references_are_refused(folder, categories):
    with pytest.raises(SchemaError, match="Column 'diagnosis': Expected"):
        Schema.from_dict(_document({"kind": "categorical", "categories": categories}), base=folder)


def test_every_fault_is_named(folder):
    document = {"columns": {"a": {**ENTRY, "categories": {"list": "x"}}, "b": ENTRY | {"categories": {"list": "y"}}}}
    with pytest.raises(SchemaError, match=r"(?s)'a'.*'b'"):
        Schema.from_dict(document)


@pytest.mark.parametrize(
    ("name", "size", "some"),
    [
        ("iso-3166-1-alpha-2", 249, {"NA", "NO", "DE"}),
        ("iso-3166-1-alpha-3", 249, {"NAM", "NOR", "DEU"}),
        ("iso-3166-1-names", 249, {"Namibia", "Norway", "Germany"}),
        ("iso-4217", 178, {"EUR", "USD", "XXX"}),
        ("days", 7, {"Monday", "Sunday"}),
        ("months", 12, {"January", "December"}),
    ],
)
def test_named_lists(name, size, some):
    labels = named_list(name)
    assert len(labels) == size
    assert some <= set(labels)
    assert all(label.isascii() for label in labels) or name == "iso-3166-1-names"


def test_all_named_lists_are_tested_and_shipped_with_their_sources():
    files = {file for file, _ in NAMED_LISTS.values()}
    folder = code_lists._FOLDER
    assert {path.name for path in folder.iterdir()} == {*files, "README.md"}
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"`{file}`" in page for file in files)
    assert "MIT" in page


def test_namibia_is_no_missing_value():
    schema = Schema.from_dict({"columns": {"c": {"kind": "categorical", "categories": {"list": "iso-3166-1-alpha-2"}}}})
    kind = schema.columns["c"]
    (code,) = kind.code(pa.array(["NA"]), missing=schema.missing)
    assert kind.labels[code] == "NA"
