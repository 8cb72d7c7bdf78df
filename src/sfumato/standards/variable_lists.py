"""Schemas from standards that others read: Frictionless Table Schema, SDV metadata, OMOP CDM field tables.

A kind that a file states without bounds or categories becomes `discover: true`: a fit estimates them, or the holder
declares them. Free text becomes an identifier, which is never released. DDI codebooks are read in `ddi.py`.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.columns.facts import shown
from sfumato.errors import SchemaError
from sfumato.schema.documents import read_document, read_text
from sfumato.schema.schema import Schema
from sfumato.standards.variables import Variable, schema_of

CODEBOOK, STANDARD = "codebook", "standard"
_FORMS = {
    "integer": "integer", "year": "integer", "number": "number", "boolean": "boolean", "date": "datetime",
    "datetime": "datetime", "string": "text",
}  # fmt: skip
_SDV_FORMS = {
    "numerical": "number", "integer": "integer", "float": "number", "categorical": "category", "boolean": "boolean",
    "datetime": "datetime", "id": "identifier",
}  # fmt: skip
_SDV_VERSIONS = ("SINGLE_TABLE_V1", "MULTI_TABLE_V1", "V1")
_OMOP_HEADERS = ("cdmTableName", "cdmFieldName", "isRequired", "cdmDatatype", "isPrimaryKey")
_MOST_FIELDS = 10_000  # of all tables of the OMOP CDM: version 5.4 has 448


def from_frictionless(path: str | Path, *, table: str | None = None) -> Schema:
    """Read a Frictionless Table Schema, or the one of a resource of a Data Package (1 and 2).

    Types, `constraints` (`required`, `enum`, `minimum`, `maximum`), `categories` and `missingValues` are used. A
    primary key of one field is an identifier.

    Args:
        path: a JSON or YAML file.
        table: the resource's name, where a package has several.

    Raises:
        SchemaError: the file cannot be read, or is none.
    """
    document = _mapping(read_document(path), path)
    if "resources" in document:
        resources = {str(r.get("name")): r for r in map(dict, _mappings(document["resources"], path))}
        document = _mapping(_one(resources, table, path).get("schema"), path)
    key = document.get("primaryKey")
    keys = [key] if isinstance(key, str) else key if isinstance(key, list) else []
    columns = [_frictionless(entry, keys, path) for entry in _mappings(document.get("fields"), path)]
    missing = [
        entry.get("value") if isinstance(entry, Mapping) else entry for entry in _list(document, "missingValues")
    ]
    return schema_of(columns, CODEBOOK, path, missing=[str(token) for token in missing])


def _frictionless(entry: Mapping[str, Any], keys: Sequence[object], path: object) -> Variable:
    name = _name(entry.get("name"), path)
    facts = entry.get("constraints", {})
    facts = facts if isinstance(facts, Mapping) else {}
    listed = entry.get("categories", facts.get("enum", []))
    listed = listed if isinstance(listed, list) else []
    categories = [item.get("value") if isinstance(item, Mapping) else item for item in listed]
    form = _FORMS.get(str(entry.get("type", "string")), "text")
    format_ = str(entry.get("format", "default"))
    return Variable(
        name,
        "identifier" if [name] == list(keys) else form,
        facts.get("minimum"),
        facts.get("maximum"),
        categories,
        facts.get("required") is not True,
        format_ if form == "datetime" and "%" in format_ else None,
    )


def from_sdv(path: str | Path, *, table: str | None = None) -> Schema:
    """Read the metadata of SDV, of the old form (`fields`) and of the new (`METADATA_SPEC_VERSION`).

    It states kinds and no bounds: columns come with `discover: true`. The primary key, other keys and what holds
    personal data (`pii`) are identifiers; so are kinds that Sfumato has no like of.

    Args:
        path: a JSON file.
        table: the table's name, where there are several.

    Raises:
        SchemaError: the file cannot be read, is none, or is of a version that is not known.
    """
    document = _mapping(read_document(path), path)
    version = document.get("METADATA_SPEC_VERSION")
    if version is not None and version not in _SDV_VERSIONS:
        known = ", ".join(_SDV_VERSIONS)
        raise SchemaError(f"Expected {path} to have METADATA_SPEC_VERSION of {known}, got {shown(version)}.")
    if "tables" in document:
        document = _mapping(_one(dict(_mapping(document["tables"], path)), table, path), path)
    entries = _mapping(document.get("columns", document.get("fields")), path)
    keys = [document.get("primary_key"), document.get("sequence_key"), *_list(document, "alternate_keys")]
    columns = [_sdv(_name(name, path), _mapping(entry, path), keys) for name, entry in entries.items()]
    return schema_of(columns, CODEBOOK, path)


def _sdv(name: str, entry: Mapping[str, Any], keys: Sequence[object]) -> Variable:
    sdtype = str(entry.get("sdtype", entry.get("type")))
    form = _SDV_FORMS.get(sdtype, "text")
    whole = ("Int", "UInt", "integer")
    if sdtype == "numerical" and str(entry.get("computer_representation", entry.get("subtype", ""))).startswith(whole):
        form = "integer"
    private = entry.get("pii") is True or name in keys or [name] in keys
    format_ = entry.get("datetime_format", entry.get("format")) if form == "datetime" else None
    return Variable(name, "identifier" if private else form, date_format=format_ if isinstance(format_, str) else None)


def from_omop(path: str | Path, *, table: str | None = None) -> Schema:
    """Read one table of the field-level CSV file of the OMOP Common Data Model (`OMOP_CDMv5.4_Field_Level.csv`).

    It states types and no bounds: numbers and dates come with `discover: true`. Concept ids (`..._concept_id`) are
    labels to discover; keys, source values and texts are identifiers. `person_id` is the
    unit where there is one.

    Args:
        path: the CSV file.
        table: the table's name, such as `person`; needed where the file has several.

    Raises:
        SchemaError: the file cannot be read, is none, or does not say which table.
    """
    rows = _csv_rows(path)
    tables: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        tables.setdefault(row["cdmTableName"].strip().lower(), []).append(row)
    chosen = _one(tables, None if table is None else table.lower(), path)
    columns = [_omop(row, path) for row in chosen]
    names = [column.name for column in columns]
    return schema_of(columns, STANDARD, path, unit="person_id" if "person_id" in names else None)


def _csv_rows(path: str | Path) -> list[Mapping[str, str]]:
    rows: list[Mapping[str, str]] | None = None
    text = read_text(Path(path))
    with contextlib.suppress(csv.Error):
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        if set(_OMOP_HEADERS) <= set(reader.fieldnames or ()):
            rows = list(itertools.islice(reader, _MOST_FIELDS + 1))
    if rows is None or len(rows) > _MOST_FIELDS or any(row[name] is None for row in rows for name in _OMOP_HEADERS):
        raise SchemaError(
            f"Expected {path} to be the field-level CSV file of the OMOP CDM, with the columns "
            f"{', '.join(_OMOP_HEADERS)}, got another. It is `OMOP_CDMv5.4_Field_Level.csv` in OHDSI's CommonDataModel."
        )
    return rows


def _omop(row: Mapping[str, str], path: object) -> Variable:
    name, type_ = _name(row["cdmFieldName"].strip().lower(), path), row["cdmDatatype"].strip().lower()
    nullable = row["isRequired"].strip().lower() != "yes"
    is_key = row["isPrimaryKey"].strip().lower() == "yes"
    form = "text"
    if name.endswith("_concept_id") and not is_key:
        form = "category"
    elif is_key or name.endswith("_id"):
        form = "identifier"
    elif type_ in ("integer", "bigint"):
        form = "integer"
    elif type_ in ("float", "numeric", "real"):
        form = "number"
    elif type_ in ("date", "datetime", "datetime2", "timestamp"):
        form = "datetime"
    return Variable(name, form, nullable=nullable)


def _mapping(document: object, path: object) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise SchemaError(f"Expected {path} to describe a table, got {shown(document)} in place of a mapping.")
    return document


def _mappings(entries: object, path: object) -> list[Mapping[str, Any]]:
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise SchemaError(f"Expected {path} to list columns or tables, a mapping each, got {shown(entries)}.")
    return entries


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    entries = document.get(key, [])
    return entries if isinstance(entries, list) else []


def _name(name: object, path: object) -> str:
    if not isinstance(name, str) or not name:
        raise SchemaError(f"Expected every column of {path} to have a name, got {shown(name)}.")
    return name


def _one(tables: Mapping[str, Any], table: str | None, path: object) -> Any:  # noqa: ANN401
    if table is None and len(tables) == 1:
        return next(iter(tables.values()))
    if table not in tables:
        names = ", ".join(map(repr, list(tables)[:50]))
        raise SchemaError(f"Expected table (--table) to be one of {names} in {path}, got {table!r}. Name one.")
    return tables[str(table)]
