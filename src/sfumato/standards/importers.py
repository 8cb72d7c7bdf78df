"""Schemas from the files of other tools: SmartNoise and private-pgm.

What such a file does not say about a column (the categories of a text column, the bounds of a
number) cannot be guessed without reading records, so that column becomes an identifier, which is
never released, and a warning names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.columns.facts import shown
from sfumato.columns.kinds import Boolean, Categorical, ColumnKind, Continuous, DateTime, Identifier, Integer
from sfumato.errors import SchemaError
from sfumato.schema.documents import read_document
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit
from sfumato.standards.variables import NOT_RELEASED, warn_unfixed

_MOST_CODES = 10**6


def from_domain_json(path: str | Path) -> Schema:
    """Read a `domain.json` of private-pgm: column names and their numbers of codes.

    Each column is categorical with the codes `0`, `1`, ... that such tables hold.

    Raises:
        SchemaError: the file cannot be read, or is no such domain.
    """
    document = read_document(path)
    if not isinstance(document, Mapping) or not document:
        raise SchemaError(f"Expected {path} to map column names to numbers of codes, got {_form(document)}.")
    columns: dict[str, ColumnKind] = {}
    for name, size in document.items():
        is_count = isinstance(size, int) and not isinstance(size, bool)
        if not is_count or not 1 <= size <= _MOST_CODES:
            raise SchemaError(
                f"Column {name!r}: expected a number of codes from 1 to {_MOST_CODES}, "
                f"got {shown(size)}. Correct {path}."
            )
        columns[str(name)] = Categorical(categories=tuple(map(str, range(size))))
    return Schema(columns=columns)


def from_smartnoise_yaml(path: str | Path, *, table: str | None = None) -> Schema:
    """Read the metadata file of SmartNoise SQL.

    The column marked `private_id` becomes the unit, with `max_ids` rows, unless `row_privacy` is
    set. A `categories` list on a text column, which SmartNoise ignores, is used where present.

    Args:
        path: the YAML file: collection, schema, table, and under it columns and options.
        table: the table to read, where the file describes more than one.

    Raises:
        SchemaError: the file cannot be read, is no such metadata, or does not say which table.
    """
    entries = _smartnoise_table(read_document(path), str(path), table)
    kinds: dict[str, ColumnKind | None] = {}
    unit = None
    for name, entry in entries.items():
        if not isinstance(entry, Mapping):
            continue  # an option of the table
        if entry.get("private_id") is True:
            kinds[str(name)] = Identifier()
            if entries.get("row_privacy") is not True:
                unit = Unit(column=str(name), max_rows=entries.get("max_ids", 1))
            continue
        kinds[str(name)] = _named(str(name), entry)
    return Schema(columns=_columns(kinds), rows=entries.get("rows"), unit=unit)


def _smartnoise_table(document: Any, path: str, table: str | None) -> Mapping[Any, Any]:  # noqa: ANN401
    """Return the columns and options of one table, three levels down."""
    tables: dict[str, Mapping[Any, Any]] = {}
    for schemas in _mappings(document):
        for named_tables in _mappings(schemas):
            if isinstance(named_tables, Mapping):
                tables |= {str(k): v for k, v in named_tables.items() if isinstance(v, Mapping)}
    if not tables:
        raise SchemaError(f"Expected {path} to hold collection, schema, table and columns, got {_form(document)}.")
    if table is None and len(tables) == 1:
        return next(iter(tables.values()))
    if table not in tables:
        raise SchemaError(f"Expected table to be one of {', '.join(map(repr, tables))}, got {table!r}. Name one.")
    return tables[table]


def _mappings(document: Any) -> list[Any]:  # noqa: ANN401
    return list(document.values()) if isinstance(document, Mapping) else []


def _smartnoise_kind(entry: Mapping[str, Any]) -> ColumnKind | None:
    """Return the kind of a SmartNoise column, or None if the file does not fix its domain."""
    nullable = entry.get("nullable", True)
    kind = {"int": Integer, "float": Continuous, "datetime": DateTime}.get(entry.get("type", ""))
    if entry.get("type") == "boolean":
        return Boolean(nullable=nullable)
    if entry.get("type") == "string" and entry.get("categories"):
        return Categorical.of_text(entry["categories"], nullable=nullable)
    if kind is None or "lower" not in entry or "upper" not in entry:
        return None
    return kind(lower=entry["lower"], upper=entry["upper"], nullable=nullable)


def _named(name: str, entry: Mapping[str, Any]) -> ColumnKind | None:
    """Return the kind of a SmartNoise column; a fault in its entry names it."""
    try:
        return _smartnoise_kind(entry)
    except SchemaError as error:
        fault = str(error)
    except TypeError:
        fault = "Expected plain facts, got nested ones."
    raise SchemaError(f"Column {name!r}: {fault}")


def _columns(kinds: Mapping[str, ColumnKind | None]) -> dict[str, ColumnKind]:
    """Return the columns, those of no kind as identifiers; a warning names these."""
    warn_unfixed([name for name, kind in kinds.items() if kind is None], NOT_RELEASED)
    return {name: kind or Identifier() for name, kind in kinds.items()}


def _form(document: object) -> str:
    return f"a {type(document).__name__}"
