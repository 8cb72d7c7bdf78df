"""Where the facts of a schema come from, in the holder's words: `source: codebook`, or one word per fact.

    source: {rows: law}
    columns:
      sex: {kind: categorical, categories: [f, m], source: standard}
      age: {kind: integer, lower: 0, upper: 120, source: {lower: law, upper: codebook}}

A word changes nothing of a fit but `data`: what was read off the records is not covered by the guarantee. Beside the
facts of the table stands the holder's word on its rows, where a query or plan computes them: `rows_are_records: true`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from sfumato.columns.facts import shown
from sfumato.columns.kinds import ColumnKind
from sfumato.columns.open import Open
from sfumato.errors import SchemaError
from sfumato.schema.schema_facts import AnySchema, FactSource, SchemaFacts

SOURCES = ("law", "codebook", "standard", "discovered", "data")
"""Where a fact may come from; `discovered` was estimated with budget, `data` was read off the records."""

TABLE_FACTS = ("rows", "unit", "weight")
RECORDS = "rows_are_records"
"""Key of the word that each row is made of one record alone."""

DISCOVERED, DATA = "discovered", "data"
_HOLDER = "the holder's word"
_READ_OFF = "read off the records"
_ESTIMATED = "estimated by the fit"


def source_faults(source: object, facts: Iterable[str], what: str) -> list[str]:
    """Return the faults of the source of some facts."""
    known, facts = ", ".join(SOURCES), tuple(facts)
    if isinstance(source, str):
        return [] if source in SOURCES else [f"Expected source of {what} to be one of {known}, got {shown(source)}."]
    if not isinstance(source, Mapping) or not source:
        return [f"Expected source of {what} to be one of {known}, or one of them per fact, got {shown(source)}."]
    faults = []
    for fact, word in source.items():
        if fact not in facts:
            has = f"It has {', '.join(facts)}" if facts else "It has none"
            faults.append(f"Expected source to name facts of {what}, got {shown(fact)}. {has}.")
        if word not in SOURCES:
            faults.append(f"Expected source of {fact} of {what} to be one of {known}, got {shown(word)}.")
    return faults


def sources_faults(schema: SchemaFacts) -> list[str]:
    """Return the faults of the sources of a schema whose columns are sound."""
    if not isinstance(schema.sources, Mapping) or not isinstance(schema.table_source, Mapping):
        return ["Expected sources to map columns, and table_source to map rows and unit and weight, to their origin."]
    declared = [fact for fact in TABLE_FACTS if getattr(schema, fact) is not None]
    facts = {fact: word for fact, word in schema.table_source.items() if fact != RECORDS}
    faults = source_faults(facts, declared, "the table") if facts else []
    if not isinstance(word := schema.table_source.get(RECORDS, True), bool):
        faults.append(f"Expected {RECORDS} of the source of the table to be true or false, got {shown(word)}.")
    for name, source in schema.sources.items():
        if name not in schema.columns:
            faults.append(f"Expected sources of columns of the schema, got no column {shown(name)}.")
        else:
            kind = schema.columns[name]  # of an open column nothing is known but its kind: one word says all
            facts = () if isinstance(kind, Open) else tuple(fact.name for fact in dataclasses.fields(kind))  # type: ignore[arg-type]
            faults += source_faults(source, facts, f"column {name!r}")
    return faults


def frozen(sources: Mapping[str, FactSource]) -> Mapping[str, FactSource]:
    """Return a copy that nobody changes."""
    parts = {name: s if isinstance(s, str) else MappingProxyType(dict(s)) for name, s in sources.items()}
    return MappingProxyType(parts)


def thawed(sources: Mapping[str, FactSource]) -> dict[str, Any]:
    """Return plain values."""
    return {name: source if isinstance(source, str) else dict(source) for name, source in sources.items()}


def without_beside(
    entry: Mapping[Any, Any], beside: Mapping[str, dict[str, Any]], name: str, fields: Iterable[str] = ()
) -> Mapping[Any, Any]:
    """Return a column's entry without what any kind may have beside its facts, which joins `beside`.

    Args:
        entry: of a schema document.
        beside: of `source` and `missing` what the columns have; a kind's own fact of such a name stays.
        name: of the column.
        fields: of its kind.
    """
    keys = [key for key in beside if key in entry and key not in fields]
    for key in keys:
        beside[key][name] = entry[key]
    return {key: value for key, value in entry.items() if key not in keys}


def with_discovered(schema: AnySchema, names: Iterable[str]) -> AnySchema:
    """Return a schema of which the fit estimated the facts of some columns."""
    words = dict.fromkeys(names, DISCOVERED)
    return dataclasses.replace(schema, sources={**schema.sources, **words}) if words else schema


def without_rows(schema: AnySchema) -> AnySchema:
    """Return a schema that declares no number of rows, and none of units."""
    unit = None if schema.unit is None else dataclasses.replace(schema.unit, units=None)
    source = {fact: word for fact, word in schema.table_source.items() if fact != "rows"}
    return dataclasses.replace(schema, rows=None, unit=unit, table_source=source)


def read_off(schema: SchemaFacts) -> tuple[str, ...]:
    """Name the facts that were read off the records, which no guarantee covers; in a draft, all that are declared.

    Example:
        >>> from sfumato import Schema
        >>> from sfumato.columns import Integer
        >>> age = Integer(lower=17, upper=90)
        >>> read_off(Schema(columns={"age": age}, sources={"age": {"upper": "data"}}))
        ("'age' (upper)",)
    """
    return ("every fact that the draft declares",) if schema.draft else tuple(grouped(schema).get(DATA, ()))


def source_lines(schema: SchemaFacts) -> tuple[str, ...]:
    """Say where the facts come from, a line per source; nothing where no source is stated and nothing is drafted."""
    if not (schema.sources or schema.table_source.keys() - {RECORDS} or schema.draft):
        return ()
    rest = _READ_OFF if schema.draft else _HOLDER
    words = {DATA: _READ_OFF, DISCOVERED: _ESTIMATED, "": rest}
    lines: dict[str, list[str]] = {}
    for source, facts in grouped(schema).items():
        lines.setdefault(words.get(source, source), []).extend(facts)
    return tuple(f"{source}: {', '.join(facts)}" for source, facts in lines.items())


def grouped(schema: SchemaFacts) -> dict[str, list[str]]:
    """Return the facts of each source, that of no stated source under ""; columns in order, then those of the table.

    The column of weights is not released, but its bound decides what is.
    """
    groups: dict[str, list[str]] = {word: [] for word in (*SOURCES, "")}
    weighted = () if schema.weight is None else (schema.weight.column,)
    hidden = [name for name in weighted if _stated(schema.columns[name])]
    for name in (*schema.released, *hidden):
        kind = schema.columns[name]
        source = schema.sources.get(name, DISCOVERED if isinstance(kind, Open) else "")
        _group(groups, repr(name), source, _stated(kind))
    for fact, words in (("rows", "the number of rows"), ("unit", "the unit"), ("weight", "the weight")):
        if getattr(schema, fact) is not None:
            groups[str(schema.table_source.get(fact, ""))].append(words)
    return {source: facts for source, facts in groups.items() if facts}


def _group(groups: dict[str, list[str]], name: str, source: FactSource, stated: tuple[str, ...]) -> None:
    if isinstance(source, str):
        groups[source].append(name)
        return
    parts: dict[str, list[str]] = {}
    for fact in dict.fromkeys([*stated, *source]):
        parts.setdefault(source.get(fact, ""), []).append(fact)
    for word, facts in parts.items():
        groups[word].append(f"{name} ({', '.join(facts)})")


def _stated(kind: ColumnKind) -> tuple[str, ...]:
    return tuple(key for key in kind.to_dict() if key not in ("kind", "package"))


def accepted(schema: SchemaFacts, *, accept_draft: bool) -> None:
    """Refuse a schema with facts that were read off the records, unless the caller takes them as they are.

    Raises:
        SchemaError: says what to do.
    """
    facts = read_off(schema)
    if not facts or accept_draft:
        return
    if schema.draft:
        raise SchemaError(
            "Expected a schema of public facts, got a draft, whose facts were read off the records. Replace them by "
            "what is publicly known, then take out its line `draft: true` (draft=False); or pass --accept-draft "
            "(accept_draft=True): the guarantee does not cover them then."
        )
    raise SchemaError(
        f"Expected a schema of public facts, got `source: data`, read off the records, for {', '.join(facts)}. "
        "Replace them by what is publicly known; or pass --accept-draft (accept_draft=True): the guarantee does not "
        "cover them then."
    )
