"""How many rows keep the rules of a schema: synthetic ones beside the real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.desk.rule_breaks import RuleBreaks, count_breaks
from sfumato.errors import ConfigError
from sfumato.io.sources import open_source
from sfumato.schema.schema import SchemaLike, read_schema


def rule_breaks(rows: object, *, schema: SchemaLike) -> RuleBreaks:
    """Count the rows that break each rule of a schema.

    Privacy: none. Counts of real rows are exact; do not publish them.

    Args:
        rows: real or synthetic rows, anything `open_source` reads.
        schema: a `Schema` with rules, or the path of one.

    Raises:
        ConfigError: the schema has no rules.
        SchemaError: a column that a rule names is not there.
        DataError: the rows cannot be read.

    Example:
        >>> import pandas as pd
        >>> from sfumato import Schema
        >>> from sfumato.columns import Integer
        >>> columns = {name: Integer(lower=0, upper=9) for name in ("start", "end")}
        >>> schema = Schema(columns=columns, rules=({"order": ["start", "end"]},))
        >>> rule_breaks(pd.DataFrame({"start": [1, 5], "end": [2, 3]}), schema=schema).shares
        {'{order: [start, end]}': 0.5}
    """
    schema = read_schema(schema)
    breaks = count_breaks(open_source(rows, csv=schema.reader.csv), schema)
    if breaks is None:
        raise ConfigError("Expected a schema with rules, got none. Add them under `rules:`.")
    return breaks


def rule_scores(breaks: Mapping[str, RuleBreaks | None]) -> dict[str, Any] | None:
    """Return the shares of rows that break rules, by table; None without rules.

    Returns:
        `broken`: table to the share of its rows that break at least one rule. `by_rule`: rule to the same of it alone.
    """
    tables = {name: some for name, some in breaks.items() if some is not None}
    if not tables:
        return None
    texts = next(iter(tables.values())).counts
    return {
        "broken": {name: some.any_share for name, some in tables.items()},
        "by_rule": {text: {name: some.shares[text] for name, some in tables.items()} for text in texts},
    }
