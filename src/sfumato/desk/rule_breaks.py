"""Rows that break the rules of a schema, counted: for the data holder's own screen, and for scores.

Values are compared as they are written; labels that the schema does not know count as a fit would read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.cells import plain, total
from sfumato.columns.kind import TabularKind
from sfumato.io.chunks import Source
from sfumato.records.database_records import DatabaseData
from sfumato.records.long_tables import as_records
from sfumato.records.table_sources import TableSources
from sfumato.rules import RulePlan, rule_text
from sfumato.rules.cells import Column, Table, from_codes
from sfumato.rules.rule import Rule
from sfumato.schema.schema import Schema

_Entries: TypeAlias = Mapping[str, tuple[Rule, ...]]
_Rows: TypeAlias = tuple[list[str], int, Table]
"""Rules by their texts, how many rows, and these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBreaks:
    """How many rows break rules. NOT private.

    Attributes:
        n_rows: rows read; of several tables, of those that have rules.
        counts: per rule, as it is written in the schema, the rows that break it.
        any_rule: rows that break at least one.
        rows: per rule, the rows of its table.
    """

    n_rows: int
    counts: Mapping[str, int]
    any_rule: int
    rows: Mapping[str, int]

    @property
    def shares(self) -> dict[str, float]:
        """Per rule, the share of rows that break it; 0 of no rows."""
        return {text: count / max(1, self.rows[text]) for text, count in self.counts.items()}

    @property
    def any_share(self) -> float:
        """The share of rows that break at least one."""
        return self.any_rule / max(1, self.n_rows)


def count_breaks(source: Source, schema: Schema) -> RuleBreaks | None:
    """Count the rows of a source that break each rule of a schema, in one pass; None where it has no rules.

    Rules of columns whose bounds are to be estimated are not counted: there is nothing to read their cells by. Of a
    tree of tables those rows count that a fit uses, as it reads them.

    Privacy: none. The counts are exact, for the data holder's own eyes.

    Raises:
        SchemaError: a column that a rule names is not in the source.
        DataError: the source cannot be read.
    """
    plan = schema.rule_plan
    if plan is None or not plan.rules:
        return None
    entries = {rule_text(entry): rules for entry, rules in zip(schema.rules, plan.entries, strict=True) if rules}
    counts, rows = dict.fromkeys(entries, 0), dict.fromkeys(entries, 0)
    n_rows = any_rule = 0
    for texts, n, table in (_rows if schema.tree is None else _rows_of_tables)(source, schema, plan, entries):
        broken = [np.logical_or.reduce([rule.broken(table) for rule in entries[text]]) for text in texts]
        for text, of_rule in zip(texts, broken, strict=True):
            counts[text] += int(of_rule.sum())
            rows[text] += n
        any_rule += int(np.logical_or.reduce(broken).sum())
        n_rows += n
    return RuleBreaks(n_rows=n_rows, counts=counts, any_rule=any_rule, rows=rows)


def _rows(source: Source, schema: Schema, plan: RulePlan, entries: _Entries) -> Iterator[_Rows]:
    """Yield chunks of rows that all rules are of."""
    source = as_records(source, schema).under(schema.columns)
    names = [name for name in plan.kinds if any(name in rule.columns for rule in plan.rules)]
    for chunk in source.chunks(names):
        table = {name: values_of(plan.kinds[name], chunk.columns[name], schema.missing_in(source)) for name in names}
        yield list(entries), chunk.n_rows, table


def _rows_of_tables(source: Source, schema: Schema, plan: RulePlan, entries: _Entries) -> Iterator[_Rows]:
    """Yield each table that rules are of, with the columns of the rows above."""
    assert isinstance(source, TableSources)
    data, homes = DatabaseData(source, schema), dict[str, list[str]]()
    for text, rules in entries.items():
        names = {name for rule in rules for name in rule.columns}
        homes.setdefault(source.database.home(names, schema.table_columns), []).append(text)
    for home, texts in homes.items():
        rows = data.rows(home)
        yield texts, data.level(home).size, {name: from_codes(plan.kinds[name], rows[name]) for name in rows}


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
