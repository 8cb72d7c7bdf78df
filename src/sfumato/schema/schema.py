"""Schemas: what is publicly known about a table before any record is read.

A schema file is YAML or JSON:

    rows: 45000                  # nominal size, publicly known
    unit: {column: person, max_rows: 5}
    columns:
      person: {kind: identifier}
      age: {kind: integer, lower: 0, upper: 120}
      sex: {kind: categorical, categories: [female, male], other: unknown, nullable: true}
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from sfumato.columns.facts import label_text, plain_value, shown
from sfumato.columns.kind import settle
from sfumato.columns.kinds import KINDS, ColumnKind, Identifier
from sfumato.columns.open import Open
from sfumato.columns.text_forms import MISSING_TOKENS
from sfumato.errors import ConfigError, SchemaError
from sfumato.rules import RulePlan
from sfumato.rules.rule_entries import numeric_columns
from sfumato.schema.accept import criteria_of
from sfumato.schema.code_lists import has_reference
from sfumato.schema.distances import Clock, Distance, clocks_of, distances_of
from sfumato.schema.documents import json_text, read_document, write_text, yaml_text
from sfumato.schema.faults import (
    column_faults,
    criteria_faults,
    draft_faults,
    refuse,
    require_free,
    rows_faults,
    table_faults,
    tokens,
    unknown_keys,
    word_faults,
)
from sfumato.schema.named_questions import question_faults, read_questions
from sfumato.schema.reader import Reader, read_reader
from sfumato.schema.references import read_kind, with_references
from sfumato.schema.ruled import plain_rules, rule_plan
from sfumato.schema.schema_facts import SchemaFacts, area_faults, read_areas, require_one_area, weight_of
from sfumato.schema.set_columns import SetColumn, set_columns
from sfumato.schema.sources import frozen, sources_faults, thawed
from sfumato.schema.tables import read_tables, unit_entry
from sfumato.schema.unit import Unit, read_unit
from sfumato.schema.word_columns import WordColumn, word_columns

_KEYS = (
    "draft", "rows", "unit", "tables", "weight", "missing", "reader", "source", "areas", "columns", "rules", "accept",
    "questions",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema(SchemaFacts):
    """The public description of a table: its columns in order, and its nominal size.

    Attributes:
        columns: the kind of each column, in the order in which columns are written.
        rows: the size that may be assumed publicly, or None if it is stated elsewhere.
        unit: whom the guarantee protects; None means the row.
        missing: text that stands for no value, in columns stored as text. Unless declared, the usual ones do so where
            a file has nothing else to say it, as CSV has not; a text `NA` of a frame is what it says. Samples in CSV
            have the first.
        missing_of: of some columns, the same in place of the table's.
        draft: whether the facts were read off the records, as `sfumato schema draft` does: fits refuse it.
        sources: of some columns, where their facts come from: law, codebook, standard, discovered or data, or one of
            these per fact. `data` is refused as a draft is.
        table_source: the same of `rows`, `unit` and `weight`; and under `rows_are_records` the holder's word that each
            row is made of one record alone, where a query or plan computes them.
        reader: how numbers are written as text, and the form of a CSV file.
        rules: what every row keeps, as a schema file has them: see `docs/rules.md`. Public, and kept in every sampled
            row.
        accept: what a release has to satisfy, judged on the records by `tune`.
        weight: the column of survey weights, or its name; None counts every row once.
        areas: columns of labels that everything else is counted by; of several, the others follow from one by rules.

        questions: that a fit measures with a part of its budget: as a schema file has them.

    Example:
        >>> from sfumato.columns import Boolean, Integer
        >>> schema = Schema(columns={"age": Integer(lower=0, upper=120), "member": Boolean()}, rows=10_000)
        >>> schema.released
        ('age', 'member')
        >>> schema.to_dict()["columns"]["age"]
        {'kind': 'integer', 'lower': 0, 'upper': 120}
    """

    def __post_init__(self) -> None:
        refuse(column_faults(self.columns))  # all else asks the kinds
        faults: list[str] = []
        settle(self, weight=weight_of(self.weight, faults))
        missing = tokens(self.missing, faults)
        missing_of = {name: tokens(own, faults, name) for name, own in self.missing_of.items() if name in self.columns}
        faults += word_faults(self.columns, {name: missing_of.get(name, missing) for name in self.columns})
        faults += draft_faults(self.draft)
        areas = read_areas(self.areas, faults)
        questions = read_questions(self.questions, faults)
        faults += table_faults(self)
        faults += [] if faults else sources_faults(self) + area_faults(self, areas) + question_faults(self, questions)
        if not isinstance(self.reader, Reader):
            faults.append(f"Expected reader to be a Reader, got {shown(self.reader)}.")
        accept = criteria_of(self.accept, faults)
        faults += [] if faults else criteria_faults(accept, self)
        refuse(faults)
        columns = {name: self.reader.resolved(kind, name) for name, kind in self.columns.items()}
        mappings = {"columns": columns, "missing_of": missing_of, "table_source": dict(self.table_source)}
        settle(self, **{name: MappingProxyType(own) for name, own in mappings.items()}, sources=frozen(self.sources))
        settle(self, accept=accept, missing=missing, areas=areas, questions=questions)
        settle(self, rows=plain_value(self.rows), rules=plain_rules(self.rules))
        plan = self.rule_plan  # faults of rules are told here
        if plan is not None:
            require_free(self, plan)
        require_one_area(self, {} if plan is None else plan.follows)

    def __reduce__(self) -> tuple[Any, ...]:
        facts = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain = {"columns": dict(self.columns), "sources": thawed(self.sources), "missing_of": dict(self.missing_of)}
        return partial(Schema, **{**facts, **plain, "table_source": dict(self.table_source)}), ()

    @property
    def rule_plan(self) -> RulePlan | None:
        """The rules, read against the columns; None without any."""
        return rule_plan(self)

    @property
    def set_columns(self) -> dict[str, SetColumn]:
        """The columns of sets beside others, with the columns of truth values that are modelled for them."""
        return set_columns(self)

    @property
    def word_columns(self) -> dict[str, WordColumn]:
        """The columns of numbers with words beside them, with the columns of labels that are modelled for these."""
        return word_columns(self)

    @property
    def clocks(self) -> dict[str, Clock]:
        """The columns of moments of which the time of day is modelled beside them."""
        return clocks_of(self, self.rule_plan)

    @property
    def distances(self) -> dict[str, Distance]:
        """The columns of dates of which the time since another one is modelled beside them."""
        return distances_of(self, self.rule_plan)

    def narrowest(self) -> Schema:
        """Return the schema with the least that can be found for its open columns."""
        kinds = {name: kind.narrowest for name, kind in self.of_kind(Open).items()}
        rules = tuple(rule for rule in self.rules if not kinds.keys() & set(numeric_columns(rule)))
        return dataclasses.replace(self, columns={**self.columns, **kinds}, rules=rules)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, base: str | Path | None = None) -> Schema:
        """Build a schema from plain values, as a schema file holds them.

        Args:
            document: the values.
            base: the folder that files of categories are relative to.

        Raises:
            SchemaError: names every fault that was found, with the column it is in.

        Example:
            >>> Schema.from_dict({"rows": 500, "columns": {"age": {"kind": "integer", "lower": 0, "upper": 120}}}).rows
            500
            >>> print(Schema.from_dict({"columns": {"age": (0, 120), "country": ["AT", "DE"], "returned": "boolean"}}))
            columns:
              age: {kind: integer, lower: 0, upper: 120}
              country:
                kind: categorical
                categories: [AT, DE]
              returned: {kind: boolean}
            <BLANKLINE>
        """
        schema = read_open(with_references(document, base))
        require_closed(schema)
        return schema

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values; what has its default is left out."""
        document: dict[str, Any] = {"draft": True} if self.draft else {}
        document |= {} if self.rows is None else {"rows": self.rows}
        if self.unit is not None:
            document |= unit_entry(self.unit)
        if self.weight is not None:
            document["weight"] = self.weight.to_entry()
        if self.missing != MISSING_TOKENS:
            document["missing"] = list(self.missing)
        if reader := self.reader.to_dict():
            document["reader"] = reader
        if self.table_source:
            document["source"] = dict(self.table_source)
        if self.areas:
            document["areas"] = list(self.areas)
        document["columns"] = {name: self.entry_of(name) for name in self.columns}
        for name, source in thawed(self.sources).items():
            document["columns"][name]["source"] = source
        if self.rules:
            document["rules"] = [dict(rule) for rule in self.rules]
        lists = {"accept": self.accept, "questions": self.questions}
        document |= {key: [entry.to_dict() for entry in entries] for key, entries in lists.items() if entries}
        return document

    def entry_of(self, name: str) -> dict[str, Any]:
        """Return the entry of a column in a schema document, without its source."""
        own = {"missing": list(self.missing_of[name])} if name in self.missing_of else {}
        return self.reader.entry_of(self.columns[name]) | own

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema from a YAML or JSON file.

        Raises:
            SchemaError: the file cannot be read, or holds faults; every one is named.
        """
        return cls.from_dict(read_document(path), base=Path(path).parent)

    def to_yaml(self) -> str:
        """Return the schema as a schema file holds it; `print(schema)` shows the same."""
        return yaml_text(self.to_dict())

    def __str__(self) -> str:
        return self.to_yaml()

    def _repr_html_(self) -> str:
        from sfumato.schema.card import schema_card

        return schema_card(self, self.to_dict()["columns"], self.to_yaml())

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the schema to a file: JSON if its name ends in `.json`, else YAML.

        Raises:
            OutputError: the file exists and may not be replaced, or cannot be written.
        """
        form = json_text if Path(path).suffix.lower() == ".json" else yaml_text
        write_text(path, form(self.to_dict()), overwrite=overwrite)


def read_open(document: Mapping[str, Any]) -> Schema:
    """Build a schema from plain values, in which columns may be left open.

    Raises:
        SchemaError: names every fault that was found, with the column it is in.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("columns"), Mapping):
        raise SchemaError(
            "Expected a schema: a mapping with `columns`, from column names to their kinds, such as {'columns': "
            "{'age': (0, 120)}, 'rows': 10_000}. `sfumato schema draft` writes a first one."
        )
    faults = unknown_keys(document, _KEYS, "the schema")
    reader, document = read_reader(document, faults)
    columns: dict[str, ColumnKind] = {}
    beside: dict[str, dict[str, Any]] = {"source": {}, "missing": {}}
    for key, entry in document["columns"].items():
        name = label_text("a column name", key, faults) if not isinstance(key, str) else key
        kind = read_kind(name, entry, faults, beside)
        if name in columns:
            faults.append(f"Expected each column once, got {name!r} twice.")
        if kind is not None:
            columns[name] = kind
    unit = _unit(document, [name for name, kind in columns.items() if kind.is_released], faults)
    if unit is not None and getattr(columns.get(unit.column), "name", None) == Open.name:
        columns[unit.column] = Identifier()  # nothing of it is released, hence nothing is estimated
    rest = {"rows": document.get("rows"), "missing": document.get("missing", MISSING_TOKENS)}
    rest |= {"draft": document.get("draft", False), "table_source": document.get("source", {})}
    rest |= {"rules": document.get("rules", ()), "areas": document.get("areas", ())}
    rest["questions"] = document.get("questions", ())
    rest["accept"] = criteria_of(document.get("accept", ()), faults)
    rest["weight"] = weight_of(document.get("weight"), faults)
    if faults:  # faults of the table as a whole are worth telling in the same breath
        rest["missing"] = tokens(rest["missing"], faults)
        faults += [*rows_faults(rest["rows"]), *draft_faults(rest["draft"])]
    refuse(faults)
    rest |= {"sources": beside["source"], "missing_of": beside["missing"]}
    return Schema(columns=columns, unit=unit, reader=reader, **rest)


def _unit(document: Mapping[str, Any], released: list[str], faults: list[str]) -> Unit | None:
    if document.get("tables") is None:
        return read_unit(document.get("unit"), faults)
    if document.get("unit") is not None:
        faults.append("Expected either tables or unit, got both. Of several tables, leave unit out.")
    return read_tables(document["tables"], released, faults)


def require_closed(schema: Schema) -> None:
    """Refuse a schema that leaves a column open.

    Raises:
        SchemaError: names the column.
    """
    if schema.open:
        raise SchemaError(
            f"Expected a schema that declares every column, got `discover` for {shown(next(iter(schema.open)))}. Fits "
            "estimate what is left open; here it has to be declared."
        )


def release_schema(document: Mapping[str, Any]) -> Schema:
    """Build a schema from a release, which names the package of every kind that is not ours: no other is imported.

    Raises:
        SchemaError: names every fault that was found, with the column it is in.
    """
    columns = document.get("columns") if isinstance(document, Mapping) else None
    for name, entry in columns.items() if isinstance(columns, Mapping) else ():
        if has_reference(entry):  # to one of our own files
            raise SchemaError(f"Column {name!r}: expected the labels themselves in a release, got a reference.")
        label = entry.get("kind") if isinstance(entry, Mapping) else entry
        if label not in KINDS and not (isinstance(entry, Mapping) and isinstance(entry.get("package"), str)):
            raise SchemaError(
                f"Column {name!r}: expected one of the kinds {', '.join(KINDS)}, or the package of another, got "
                f"kind={shown(label)}. The release may be of a newer version: upgrade Sfumato."
            )
    schema = read_open(document)
    require_closed(schema)
    return schema


SchemaLike: TypeAlias = Schema | Mapping[str, Any] | str | os.PathLike[str]
"""A schema, plain values as its file holds them, or the path of that file."""


def read_schema(schema: SchemaLike) -> Schema:
    """Return a schema itself, or read it from plain values or from its file.

    Raises:
        ConfigError: it is none of these.
        SchemaError: the file cannot be read, or holds faults.
    """
    if isinstance(schema, Schema):
        require_closed(schema)
        return schema
    if isinstance(schema, Mapping):
        return Schema.from_dict(schema)
    if not isinstance(schema, str | os.PathLike):
        raise ConfigError(
            f"Expected schema to be a Schema, a mapping with `columns`, or the path of a schema file, got "
            f"{type(schema).__name__}. sfumato.describe makes a first one of a table's column names."
        )
    return Schema.load(Path(schema))
