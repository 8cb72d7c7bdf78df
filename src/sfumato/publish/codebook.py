"""The codebook of a release: a row per column, a row per category, as tables; all of it is in its public schema."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from sfumato.columns.kinds import LevelKind
from sfumato.inference.column_lines import column_lines
from sfumato.release_front import Release
from sfumato.rules import rule_text
from sfumato.schema.schema import Schema

_SHOWN = ("lower", "upper", "resolution", "nullable", "other", "format")
_NOT_STATED = "the holder's word"


def columns_table(release: Release) -> pa.Table:
    """Return a row per released column: kind, bounds, number of categories, rules, origin of its facts, losses."""
    schema, lines = release.schema, {line.name: line for line in column_lines(release)}
    plan = schema.rule_plan
    rules = () if plan is None else zip(schema.rules, plan.rules, strict=True)
    named = [(rule_text(entry), set(rule.columns)) for entry, rule in rules]
    rows = []
    for place, name in enumerate(schema.released, 1):
        kind = schema.columns[name]
        facts = kind.to_dict()
        source = schema.sources.get(name, _NOT_STATED)
        rows.append(
            {
                "position": place,
                "table": next((table for table, own in schema.table_columns.items() if name in own), None),
                "column": name,
                "kind": str(facts.get("kind", kind.name)),
                **{fact: None if facts.get(fact) is None else str(facts[fact]) for fact in _SHOWN},
                "categories": len(kind.labels) if isinstance(kind, LevelKind) else None,
                "rules": "; ".join(text for text, columns in named if name in columns) or None,
                "source": source if isinstance(source, str) else "; ".join(f"{k}: {v}" for k, v in source.items()),
                "lost": lines[name].loss or None,
            }
        )
    texts = (*("table", "column", "kind"), *_SHOWN, "rules", "source", "lost")
    types = {**dict.fromkeys(texts, pa.string()), "position": pa.int64(), "categories": pa.int64()}
    order = ("column", "kind", *_SHOWN, "categories", "rules", "source", "lost")
    order = ("position", *(["table"] if schema.database else []), *order)
    return pa.table({name: pa.array([row[name] for row in rows], types[name]) for name in order})


def categories_table(schema: Schema) -> pa.Table:
    """Return a row per label of each released column of labels, in order."""
    labels = [(name, str(label)) for name, kind in schema.of_kind(LevelKind).items() for label in kind.labels]
    columns: Mapping[str, list[str]] = {"column": [c for c, _ in labels], "category": [v for _, v in labels]}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
