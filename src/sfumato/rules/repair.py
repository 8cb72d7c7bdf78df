"""Rows that keep all rules, of rows that nearly do.

A row that breaks a rule is changed where one change is the obvious one; then the columns of the rules at hand are
those of another row that keeps them: of the same class, with the same conditions if there is one, and otherwise as
alike as can be. Given columns and given classes are never changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.columns.bounded import Values
from sfumato.rules.cells import Column, Table, put, size, taken
from sfumato.rules.rule import Frozen, Implication, NullIf, Rule
from sfumato.rules.rule_plan import RulePlan
from sfumato.rules.terms import all_hold

_CANDIDATES = 8  # rows of which the most alike is taken
_PASSES = 3

Reserve = Callable[[int], Iterator[Table]]
"""Yields more rows that keep the rules of a component, which is named by its number."""


@final
@dataclass(frozen=True)
class Keeper:
    """Mends rows.

    Attributes:
        plan: the rules.
        frozen: columns that are given.
        class_column: the column of the classes that rows are asked to have; None where they are not.
    """

    plan: RulePlan
    frozen: Frozen = ()
    class_column: str | None = None

    def broken(self, table: Table, rules: tuple[Rule, ...]) -> np.ndarray:
        """Return which rows break one of some rules, shape (n,)."""
        return np.logical_or.reduce([rule.broken(table) for rule in rules])

    def project(self, table: Table) -> None:
        """Change rows where one change is the obvious one, in place."""
        frozen = {*self.frozen, *([] if self.class_column is None else [self.class_column])}
        for _ in range(_PASSES):
            if not self.broken(table, self.plan.rules).any():
                return
            for rule in self.plan.rules:
                rule.project(table, frozen)
            self.plan.follow(table, frozen)

    def mend(self, table: Table, rng: np.random.Generator, reserve: Reserve) -> np.ndarray:
        """Let rows keep all rules, in place; return those that do not, for want of rows to take after.

        Args:
            table: rows.
            rng: chooses among rows.
            reserve: yields rows that keep the rules of a component, for where none at hand is fit.
        """
        self.project(table)
        left = np.zeros(size(table), dtype=bool)
        for number, (rules, columns) in enumerate(self.plan.components):
            bad = self.broken(table, rules)
            if not bad.any():
                continue
            rows = np.flatnonzero(bad)
            part = _Part(self, rules, columns)
            for donors in itertools.chain([taken(table, np.flatnonzero(~bad))], reserve(number)):
                rows = part.take_over(donors, table, rows, rng)
                if not rows.size:
                    break
            left[rows] = True
        return left


@dataclass(frozen=True)
class _Part:
    """Mends the columns of one component."""

    keeper: Keeper
    rules: tuple[Rule, ...]
    columns: tuple[str, ...]

    def take_over(self, donors: Table, table: Table, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Take columns over from rows that keep the rules; return the rows that found none."""
        if not rows.size or not size(donors):
            return rows
        keeper = self.keeper
        fixed = [name for name in self.columns if name in keeper.frozen or name == keeper.class_column]
        anchors = {name for rule in self.rules for name in rule.anchors if name in self.columns}
        rest = [name for name in self.columns if name not in anchors]
        if anchors and rest:
            before = taken(table, rows)
            missed = self._copy(donors, table, rows, rest, self._key(before, fixed), self._key(donors, fixed), rng)
            self._follow(table, rows)
            still = self.keeper.broken(taken(table, rows), self.rules)
            for name in table:  # what was not mended is as it was
                put(table, rows[still], name, before[name][still])
            del missed
            rows = rows[still]
        ours, theirs = (
            _only({name: some[name] for name in fixed}, size(some)) for some in (taken(table, rows), donors)
        )
        return self._copy(donors, table, rows, list(self.columns), ours, theirs, rng)

    def _key(self, table: Table, fixed: list[str]) -> list[np.ndarray]:
        """Return the columns that are the same where conditions are kept: labels, and which conditions hold."""
        names = {name for rule in self.rules for name in rule.anchors}
        labels = [name for name in table if name in names and isinstance(table[name], np.ndarray)]
        columns = _only({name: table[name] for name in dict.fromkeys([*fixed, *labels])}, size(table))
        conditions = [rule.conditions for rule in self.rules if isinstance(rule, Implication | NullIf)]
        return [*columns, *(all_hold(terms, table).astype(np.int64) for terms in conditions)]

    def _follow(self, table: Table, rows: np.ndarray) -> None:
        """Compute what follows from others anew, in some rows."""
        plan = self.keeper.plan
        some = taken(table, rows)
        plan.follow(some, self.keeper.frozen)
        for name in plan.order:
            put(table, rows, name, some[name])

    def _copy(
        self,
        donors: Table,
        table: Table,
        rows: np.ndarray,
        columns: list[str],
        ours: list[np.ndarray],
        theirs: list[np.ndarray],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Copy columns from donors of the same key, the most alike of a few; return the rows that have none."""
        mine, keys = _keys(ours, theirs, rows.size, size(donors))
        by_key = np.argsort(keys, kind="stable")
        first, last = (np.searchsorted(keys[by_key], mine, side) for side in ("left", "right"))
        has_donor = last > first
        some, first, last = rows[has_donor], first[has_donor], last[has_donor]
        if some.size:
            at = first[:, None] + (rng.random((some.size, _CANDIDATES)) * (last - first)[:, None]).astype(np.int64)
            at = by_key[np.minimum(at, last[:, None] - 1)]
            alike = np.zeros(at.shape, dtype=np.int64)
            for name in self.columns:
                alike += _alike(table[name], some, donors[name], at)
            chosen = at[np.arange(some.size), alike.argmax(axis=1)]
            for name in columns:
                put(table, some, name, donors[name][chosen])
        return rows[~has_donor]


def _only(table: Table, n: int) -> list[np.ndarray]:
    """Return columns as plain numbers, and one that is the same in all rows."""
    return [np.zeros(n), *(_plain(column) for column in table.values())]


def _keys(ours: list[np.ndarray], theirs: list[np.ndarray], n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return one number per row, equal where all of its numbers are; missing is equal to missing."""
    keys = np.zeros(n + m, dtype=np.int64)
    for mine, other in zip(ours, theirs, strict=True):
        _, codes = np.unique(np.concatenate([mine, other]), return_inverse=True)
        _, keys = np.unique(keys * (codes.max(initial=0) + 1) + codes, return_inverse=True)
    return keys[:n], keys[n:]


def _plain(column: Column) -> np.ndarray:
    if isinstance(column, Values):
        return np.where(column.absent, np.nan, column.values.astype(np.float64))
    return column


def _alike(column: Column, rows: np.ndarray, donors: Column, at: np.ndarray) -> np.ndarray:
    """Return which candidates have the same cell, shape (rows, candidates)."""
    if isinstance(column, Values):
        assert isinstance(donors, Values)
        same = column.values[rows][:, None] == donors.values[at]
        gone = column.absent[rows][:, None], donors.absent[at]
        return (same & ~gone[0] & ~gone[1]) | (gone[0] & gone[1])
    assert isinstance(donors, np.ndarray)
    return column[rows][:, None] == donors[at]
