"""Schemas from the files of other tools: SmartNoise, private-pgm, and NIST's data dictionaries.

What such a file does not say about a column (the categories of a text column, the bounds of a
number) cannot be guessed without reading records, so that column becomes an identifier, which is
never released, and a warning names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from sfumato.columns.facts import shown
from sfumato.columns.kinds import (
    Boolean,
    Categorical,
    ColumnKind,
    Continuous,
    DateTime,
    Identifier,
    Integer,
)
from sfumato.columns.text_forms import MISSING_TOKENS
from sfumato.errors import SchemaError
from sfumato.schema.documents import read_document
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit
from sfumato.standards.variables import NOT_RELEASED, warn_unfixed

_MOST_CODES = 10**6

T = TypeVar("T")


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
        kinds[str(name)] = _named(str(name), _smartnoise_kind, entry)
    return Schema(columns=_columns(kinds), rows=entries.get("rows"), unit=unit)


def from_nist_dictionary(path: str | Path) -> Schema:
    """Read a schema or a data dictionary of NIST's Collaborative Research Cycle.

    Both forms are known: `{"schema": {column: {dtype, values | min, max, has_null, null_value}}}`,
    and `{column: {description, values: {code: meaning} and/or {min, max}}}`. The code for no value
    (`N`) becomes a missing token.

    Raises:
        SchemaError: the file cannot be read, or is neither form.
    """
    document = read_document(path)
    entries = document.get("schema", document) if isinstance(document, Mapping) else None
    if not isinstance(entries, Mapping) or not all(isinstance(e, Mapping) for e in entries.values()):
        raise SchemaError(f"Expected {path} to map column names to their descriptions, got {_form(document)}.")
    kinds: dict[str, ColumnKind | None] = {}
    tokens: dict[str, None] = dict.fromkeys(MISSING_TOKENS)
    for name, entry in entries.items():
        facts = entry if "dtype" in entry else _named(str(name), _nist_dictionary_facts, entry)
        if "null_value" in facts:
            tokens[str(facts["null_value"])] = None
        kinds[str(name)] = _named(str(name), _nist_kind, facts)
    return Schema(columns=_columns(kinds), missing=tuple(tokens))


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


def _nist_dictionary_facts(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a data dictionary's entry in the form of a NIST schema's entry."""
    values = entry.get("values")
    if not isinstance(values, Mapping):
        return {}
    facts: dict[str, Any] = {}
    codes = {code: meaning for code, meaning in values.items() if code not in ("min", "max")}
    for code, meaning in list(codes.items()):
        if str(meaning).startswith("N/A"):
            facts |= {"has_null": True, "null_value": code}
            del codes[code]
    if "min" not in values or "max" not in values:
        return facts | {"values": list(codes)}
    # codes beside a range lie at its ends, as 0 for "none" or 501 for "500 and more"
    numbers = [int(code) for code in codes if str(code).lstrip("-").isdigit()]
    facts["min"] = min([values["min"], *numbers])
    facts["max"] = max([values["max"], *numbers])
    return facts


def _nist_kind(facts: Mapping[str, Any]) -> ColumnKind | None:
    """Return the kind of a NIST column, or None if the file does not fix its domain."""
    nullable = facts.get("has_null", False)
    if isinstance(facts.get("values"), list) and facts["values"]:
        labels = [label for label in facts["values"] if label != facts.get("null_value")]
        return Categorical.of_text(labels, nullable=nullable)
    if "min" not in facts or "max" not in facts:
        return None
    bounds = (facts["min"], facts["max"])
    is_whole = all(isinstance(bound, int) for bound in bounds)
    kind = Integer if is_whole and "float" not in str(facts.get("dtype")) else Continuous
    return kind(lower=bounds[0], upper=bounds[1], nullable=nullable)


def _named(name: str, read: Callable[[Mapping[str, Any]], T], entry: Mapping[str, Any]) -> T:
    """Read an entry; a fault in it names the column."""
    try:
        return read(entry)
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
