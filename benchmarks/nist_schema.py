"""Schemas that NIST publishes beside the tables of its Collaborative Research Cycle (`sdnist_*2019.schema.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato import Schema
from sfumato.columns.kinds import Categorical, ColumnKind, Continuous, Integer
from sfumato.columns.text_forms import MISSING_TOKENS


def published_schema(path: Path) -> Schema:
    """Read `{"schema": {column: {dtype, values | min, max, has_null, null_value}}}`; null_value is one of no value."""
    entries = json.loads(path.read_text(encoding="utf-8"))["schema"]
    tokens = {name: str(facts["null_value"]) for name, facts in entries.items() if "null_value" in facts}
    columns = {name: _kind(facts) for name, facts in entries.items()}
    return Schema(columns=columns, missing_of={name: (token, *MISSING_TOKENS) for name, token in tokens.items()})


def _kind(facts: Mapping[str, Any]) -> ColumnKind:
    nullable = facts.get("has_null", False)
    if "values" in facts:
        labels = [label for label in facts["values"] if label != facts.get("null_value")]
        return Categorical.of_text(labels, nullable=nullable)
    lower, upper = facts["min"], facts["max"]
    is_whole = isinstance(lower, int) and isinstance(upper, int) and "float" not in facts["dtype"]
    return (Integer if is_whole else Continuous)(lower=lower, upper=upper, nullable=nullable)
