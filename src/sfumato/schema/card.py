"""A schema as a card: what is taken as public of each column, what a fit estimates, and the file to edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.cards.html import Html, banner, card, code, facts, fold, listing, paragraph, shown, table
from sfumato.columns.facts import grouped
from sfumato.columns.levels import LevelKind
from sfumato.columns.open import Open
from sfumato.rules import rule_text
from sfumato.schema.schema_facts import SchemaFacts
from sfumato.schema.sources import read_off, source_lines

_MOST_COLUMNS = 200
_MOST_LABELS = 6
_LONGEST_FILE = 100_000
_EXAMPLE = '{"age": {"kind": "integer", "lower": 0, "upper": 120}}'
_ESTIMATED = "bounds or labels are estimated by the fit"
_READ_OFF = "Facts of it were read off the records: replace them by what is publicly known. A fit refuses it so."
_UNKNOWN = "kind, bounds or labels are estimated by the fit"


def schema_card(schema: SchemaFacts, entries: Mapping[str, Any], text: str) -> str:
    """Return the card of a schema, whose file has these entries of columns and this text."""
    names = list(schema.columns)
    rows = [(shown(name), *_column_facts(schema, name, entries[name])) for name in names[:_MOST_COLUMNS]]
    more = len(names) - len(rows)
    opened = len(schema.open)
    return card(
        f"Schema: {len(names)} columns, {len(schema.released)} released",
        *([banner(_READ_OFF, alarm=True)] if schema.draft or read_off(schema) else []),
        facts(_of_table(schema)),
        table(["column", "kind", "taken as public"], rows),
        *([paragraph(f"And {more} more columns.")] if more > 0 else []),
        *([] if opened == 0 else [paragraph(f"Of {opened} columns a fit estimates the rest with part of the budget.")]),
        *_rules(schema),
        *_file(text),
        paragraph(
            "Edit: ", code('schema.save("schema.yaml")'), ", change the file, and pass its path to a fit; or say what "
            "is public in Python: ", code(f"sfumato.describe(data, {_EXAMPLE})"),
            ". What a schema says is public: it is printed in the release.", quiet=True,
        ),
    )  # fmt: skip


def _of_table(schema: SchemaFacts) -> list[tuple[str, str]]:
    n = schema.n_records
    what = "Units" if schema.linked else "Rows"
    unit = schema.unit
    protected = "each row" if unit is None else f"each {shown(unit.column)}, at most {unit.max_rows} rows of it"
    known = "not declared: a fit estimates it with noise, or takes n_public" if n is None else f"{grouped(n)}, public"
    rows = [(what, known), ("Protected", protected)]
    origins = source_lines(schema)
    return [*rows, ("Sources", "; ".join(map(shown, origins)))] if origins else rows


def _column_facts(schema: SchemaFacts, name: str, entry: Mapping[str, Any]) -> tuple[str, str]:
    kind = schema.columns[name]
    if isinstance(kind, Open):
        return ("to find out", _UNKNOWN) if kind.kind == "unknown" else (kind.kind, _ESTIMATED)
    prefix = "" if name in schema.released else "not released. "
    more = ["anything else counts for no label"] if isinstance(kind, LevelKind) and kind.hides_blank else []
    return kind.name, prefix + "; ".join([*_facts(entry), *more])


def _facts(entry: Mapping[str, Any]) -> list[str]:
    """Return the facts of an entry of a schema file, in short."""
    rest = {key: value for key, value in entry.items() if key not in ("kind", "source", "discover")}
    texts = []
    if "lower" in rest and "upper" in rest:
        texts.append(f"{shown(rest.pop('lower'))} to {shown(rest.pop('upper'))}")
    if isinstance(labels := rest.get("categories"), Sequence) and not isinstance(labels, str):
        del rest["categories"]
        more = f" and {len(labels) - _MOST_LABELS} more" if len(labels) > _MOST_LABELS else ""
        texts.append(", ".join(shown(label, 30) for label in labels[:_MOST_LABELS]) + more)
    for key, value in rest.items():
        texts.append(key if value is True else f"{key}: {shown(value)}")
    return texts


def _rules(schema: SchemaFacts) -> list[Html]:
    if not schema.rules:
        return []
    lines = [(place, shown(rule_text(rule), 300)) for place, rule in enumerate(schema.rules, 1)]
    return [table(["", "rule, kept in every sampled row"], lines)]


def _file(text: str) -> list[Html]:
    if len(text) > _LONGEST_FILE:
        return [paragraph("Too long to show as a file here: ", code("print(schema)"), " does.")]
    return [fold("The same as a schema file, to copy and edit", listing(text))]
