"""Rows that break the rules of a schema, counted: for the data holder's own screen, and for scores.

Values are compared as they are written; labels that the schema does not know count as a fit would read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.cells import plain, total
from sfumato.columns.kind import TabularKind
from sfumato.io.chunks import Source
from sfumato.records.long_tables import as_records
from sfumato.rules import rule_text
from sfumato.rules.cells import Column
from sfumato.schema.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBreaks:
    """How many rows break rules. NOT private.

    Attributes:
        n_rows: rows read.
        counts: per rule, as it is written in the schema, the rows that break it.
        any_rule: rows that break at least one.
    """

    n_rows: int
    counts: Mapping[str, int]
    any_rule: int

    @property
    def shares(self) -> dict[str, float]:
        """Per rule, the share of rows that break it; 0 of no rows."""
        return {text: count / max(1, self.n_rows) for text, count in self.counts.items()}

    @property
    def any_share(self) -> float:
        """The share of rows that break at least one."""
        return self.any_rule / max(1, self.n_rows)


def count_breaks(source: Source, schema: Schema) -> RuleBreaks | None:
    """Count the rows of a source that break each rule of a schema, in one pass; None where it has no rules.

    Rules of columns whose bounds are to be estimated are not counted: there is nothing to read their cells by.

    Privacy: none. The counts are exact, for the data holder's own eyes.

    Raises:
        SchemaError: a column that a rule names is not in the source.
        DataError: the source cannot be read.
    """
    plan = schema.rule_plan
    if plan is None or not plan.rules:
        return None
    source = as_records(source, schema).under(schema.columns)
    texts = [rule_text(entry) for entry, rules in zip(schema.rules, plan.entries, strict=True) if rules]
    counts, n_rows, any_rule = np.zeros(len(texts), dtype=np.int64), 0, 0
    names = [name for name in plan.kinds if any(name in rule.columns for rule in plan.rules)]
    for chunk in source.chunks(names):
        table = {name: values_of(plan.kinds[name], chunk.columns[name], schema.missing_in(source)) for name in names}
        rows = [np.logical_or.reduce([rule.broken(table) for rule in rules]) for rules in plan.entries if rules]
        broken = np.stack(rows)
        counts += broken.sum(axis=1)
        any_rule += int(broken.any(axis=0).sum())
        n_rows += chunk.n_rows
    return RuleBreaks(n_rows=n_rows, counts=dict(zip(texts, counts.tolist(), strict=True)), any_rule=any_rule)


def values_of(kind: TabularKind, column: pa.Array | pa.ChunkedArray, missing: tuple[str, ...]) -> Column:
    """Return cells as they are written; one that holds no number or date is missing."""
    if not isinstance(kind, NumericKind):
        return kind.code(column, missing=missing).astype(np.int64)
    dtype = type(kind.bounds[0])
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]

    def read(cells: pa.Array) -> np.ndarray:
        return np.stack(kind.read(plain(cells), missing), axis=1).astype(dtype)

    def refused(n: int) -> np.ndarray:
        return np.zeros((n, 2), dtype=dtype)

    cells = np.concatenate([refused(0), *(total(read, chunk, refused) for chunk in chunks)])
    valid = cells[:, 1] != 0
    return Values(np.where(valid, cells[:, 0], kind.bounds[0]).astype(dtype), ~valid)
