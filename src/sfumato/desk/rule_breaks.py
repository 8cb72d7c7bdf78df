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
from sfumato.columns.kind import TabularKind, nullable_kind
from sfumato.io.chunks import Source
from sfumato.records.context import totals
from sfumato.records.database_records import DatabaseData
from sfumato.records.long_tables import as_records
from sfumato.records.table_sources import TableSources
from sfumato.rules import rule_text
from sfumato.rules.cells import Column, as_values, from_codes
from sfumato.rules.rule import Rule
from sfumato.schema.schema import Schema

_Entries: TypeAlias = Mapping[str, tuple[Rule, ...]]


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
    plan, tree = schema.rule_plan, schema.tree
    written = zip(schema.rules, () if plan is None else plan.entries, strict=True)
    entries = {rule_text(entry): rules for entry, rules in written if rules}
    sums = {} if tree is None else {total: rule_text({"total": {total: own}}) for total, own in tree.totals.items()}
    counts = dict.fromkeys([*entries, *sums.values()], 0)
    rows, n_rows, any_rule = dict(counts), 0, 0
    for broken in (
        _broken(source, schema, entries) if tree is None else _broken_in_tables(source, schema, entries, sums)
    ):
        for text, of_rule in broken.items():
            counts[text] += int(of_rule.sum())
            rows[text] += of_rule.size
        any_rule += int(np.logical_or.reduce([*broken.values()]).sum())
        n_rows += next(iter(broken.values())).size
    return RuleBreaks(n_rows=n_rows, counts=counts, any_rule=any_rule, rows=rows) if counts else None


def _broken(source: Source, schema: Schema, entries: _Entries) -> Iterator[dict[str, np.ndarray]]:
    """Yield which rows of a chunk break each rule, by its text."""
    rules, plan = [rule for some in entries.values() for rule in some], schema.rule_plan
    kinds = {} if plan is None else plan.kinds
    names = [name for name in kinds if any(name in rule.columns for rule in rules)]
    missing = {name: schema.missing_in(source, name) for name in names}
    source = as_records(source, schema).under(schema.columns)
    for chunk in source.chunks(names) if names else ():
        table = {name: values_of(kinds[name], chunk.columns[name], missing[name]) for name in names}
        yield {text: np.logical_or.reduce([rule.broken(table) for rule in some]) for text, some in entries.items()}


def _broken_in_tables(
    source: Source, schema: Schema, entries: _Entries, sums: Mapping[str, str]
) -> Iterator[dict[str, np.ndarray]]:
    """Yield which rows of a table break each of its rules, and which totals are none, by their texts."""
    assert isinstance(source, TableSources)
    data, kinds, homes = DatabaseData(source, schema, totals=True), schema.of_kind(TabularKind), dict[str, list[str]]()
    tree = source.database
    crossings = {rule_text(rule): tree.crossing(rule, schema.table_columns) for rule in schema.rules}
    for text, rules in entries.items():
        if (crossing := crossings[text]) is not None:
            pair = data.crossed(crossing).items()  # missing of a person without rows
            table = {name: from_codes(nullable_kind(kinds[name]), codes) for name, codes in pair}
            yield {text: np.logical_or.reduce([rule.broken(table) for rule in rules])}
            continue
        names = {name for rule in rules for name in rule.columns}
        homes.setdefault(tree.home(names, schema.table_columns), []).append(text)
    for home, texts in homes.items():
        table = {name: from_codes(kinds[name], codes) for name, codes in data.rows(home).items()}
        yield {text: np.logical_or.reduce([rule.broken(table) for rule in entries[text]]) for text in texts}
    numbers = schema.of_kind(NumericKind)
    for branch in tree.branches:
        above, level = data.level(branch.of), data.level(branch.name)
        for name, column in branch.totals:
            cells, own = as_values(numbers[name], above.codes[name]), as_values(numbers[column], level.codes[column])
            whole = totals(numbers[name], level.above, above.size, own)
            least = 1e-9 * max(float(numbers[name].bounds[1] - numbers[name].bounds[0]), 1.0)  # of sums of floats
            yield {sums[name]: cells.absent | (np.abs(cells.values - whole.values) > least)}


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
