"""Rows that keep all rules: of rows that nearly do, or, where a model has none, of public facts alone.

A row that breaks a rule is changed where one change is the obvious one; then the columns of the rules at hand are
those of another row that keeps them: of the same class, with the same conditions if there is one, and otherwise as
alike as can be. Given columns and given classes are never changed.

Mending moves shares: what breaks an implication moves one way only. Of more rows than are needed, those are taken whose
weights bring the shares back as far as rules allow: iterative proportional fitting (Deming and Stephan 1940), which is
the law nearest to that of the mended rows among those with these shares.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.errors import SchemaError
from sfumato.maths.streams import public_stream
from sfumato.rules.cells import Column, Kinds, Table, joined, put, size, taken, to_codes
from sfumato.rules.rule import Frozen, Implication, NullIf, Rule
from sfumato.rules.rule_plan import RulePlan
from sfumato.rules.terms import all_hold

_ROUNDS = 12
_BINS = 24
_CANDIDATES = 8  # rows of which the most alike is taken
_PASSES = 3

Reserve = Callable[[int], Iterator[Table]]
"""Yields more rows that keep the rules of a component, which is named by its number."""
_ROWS, _EXAMPLE_ROUNDS, _ENOUGH = 2048, 24, 256
_MOST_TRIED = 24  # rules of which a part that contradicts itself is looked for
_AT_POINTS, _MISSING = 0.5, 0.15  # shares of cells at numbers that rules name, and of missing ones
_NOTHING: Mapping[str, Column] = {}


def share_codes(before: Table, after: Table, names: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return per column the codes of its cells before and after: levels, or bins of numbers with one for missing."""
    codes = []
    for name in names:
        old, new = before[name], after[name]
        if isinstance(old, Values):
            known = old.values[~old.absent]
            edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1])) if known.size else np.zeros(0)
            codes.append((_binned(old, edges), _binned(new, edges)))
        else:
            assert isinstance(new, np.ndarray)
            codes.append((old, new))
    return codes


def _binned(column: Column, edges: np.ndarray) -> np.ndarray:
    assert isinstance(column, Values)
    return np.where(column.absent, edges.size + 1, np.searchsorted(edges, column.values, side="left"))


def raked(codes: Sequence[tuple[np.ndarray, np.ndarray]], first: np.ndarray, *, most: float) -> np.ndarray:
    """Return weights of n mended rows, mean 1, under which they have the shares of the rows before.

    Args:
        codes: per column, codes of the rows before and of the n mended ones.
        first: weights to begin with, shape (n,), above 0.
        most: what a weight may be at most: a row is taken once.
    """
    n = first.size
    weights = first * (n / first.sum())
    for _ in range(_ROUNDS):
        for before, after in codes:
            levels = int(max(before.max(initial=0), after.max(initial=0))) + 1
            target = np.bincount(before, minlength=levels) / max(before.size, 1)
            share = np.bincount(after, weights, minlength=levels) / weights.sum()
            scale = np.divide(target, share, out=np.ones(levels), where=share > 0)
            weights *= scale[after]
            total = weights.sum()
            weights = np.minimum(weights * (n / total), most) if total > 0 else first
    return weights * (n / weights.sum())


def chosen(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return n different places, going up, each as likely as its weight says where that is at most 1.

    Systematic sampling; of fewer rows with a weight than are needed, others are taken too.
    """
    if n >= weights.size:
        return np.arange(weights.size)
    weights = np.maximum(weights, 1e-9)
    likely = weights * (n / weights.sum())
    while (likely > 1).any():  # what is taken for sure leaves its part to the others
        sure = likely >= 1
        rest = weights[~sure].sum()
        likely = np.where(sure, 1.0, weights * ((n - sure.sum()) / rest))
    steps = np.floor(np.cumsum(likely) + rng.random())
    places = np.flatnonzero(np.diff(np.concatenate([[0.0], steps])) > 0)
    # rounding of the sum may leave one too many or too few
    if places.size > n:
        return places[:n]
    if places.size < n:
        others = np.setdiff1d(np.arange(weights.size), places)
        places = np.sort(np.concatenate([places, others[: n - places.size]]))
    return places


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
            self._copy(donors, table, rows, rest, self._key(before, fixed), self._key(donors, fixed), rng)
            plan, some = keeper.plan, taken(table, rows)
            plan.follow(some, keeper.frozen)
            for name in plan.order:
                put(table, rows, name, some[name])
            still = self.keeper.broken(taken(table, rows), self.rules)
            for name in table:  # what was not mended is as it was
                put(table, rows[still], name, before[name][still])
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


def give(plan: RulePlan, table: Table, given: Mapping[str, Column]) -> None:
    """Write values that all rows have, shape (1,) each, and what follows from them, in place."""
    for name, value in given.items():
        put(table, np.arange(size(table)), name, value[np.zeros(size(table), dtype=np.int64)])
    plan.follow(table, tuple(given))


def examples(plan: RulePlan, component: int, given: Mapping[str, Column] = _NOTHING) -> Table:
    """Return rows that keep the rules of a component; none if none was found.

    Args:
        plan: the rules.
        component: its number.
        given: values that all rows have, shape (1,) each.
    """
    rules, columns = plan.components[component]
    plan, given = plan.parts[component], {name: value for name, value in given.items() if name in columns}
    keeper, rng = Keeper(plan, frozen=tuple(given)), public_stream(component)
    points: dict[str, list[float]] = {}
    for rule in rules:
        for name, numbers in rule.points.items():
            points.setdefault(name, []).extend(numbers)
    tables: list[Table] = []
    for _ in range(_EXAMPLE_ROUNDS):
        table = _random_rows(plan, points, rng)
        give(plan, table, given)
        keeper.project(table)
        good = np.flatnonzero(~keeper.broken(table, rules))
        tables.append(taken({name: table[name] for name in columns}, good))
        if sum(size(part) for part in tables) >= _ENOUGH:
            break
    return joined(tables)


def require_rows(plan: RulePlan) -> None:
    """Refuse rules that leave no row.

    Raises:
        SchemaError: names the rules that cannot be kept together.
    """
    for number, (rules, _) in enumerate(plan.components):
        if not size(examples(plan, number)):
            places = ", ".join(dict.fromkeys(rule.place for rule in _contradictory(plan.kinds, rules)))
            raise SchemaError(f"Expected rules that some row keeps, found none that keeps {places}. Take one out.")


def _contradictory(kinds: Kinds, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return some of the rules of which still no row keeps all, and of no fewer; all where they are very many."""
    for rule in rules if len(rules) <= _MOST_TRIED else ():
        fewer = tuple(other for other in rules if other.place != rule.place)
        plan = RulePlan(kinds, (fewer,))
        if fewer and any(not size(examples(plan, number)) for number in range(len(plan.components))):
            return _contradictory(kinds, fewer)
    return rules


def _random_rows(plan: RulePlan, points: Mapping[str, list[float]], rng: np.random.Generator) -> Table:
    codes: dict[str, np.ndarray] = {}
    for name, kind in plan.free.items():
        if isinstance(kind, NumericKind):
            codes[name] = _random_numbers(kind, [] if name in plan.gaps else points.get(name, []), rng)
        else:
            codes[name] = rng.integers(0, kind.width, _ROWS)
    return plan.assembled(codes)


def _random_numbers(kind: NumericKind, points: list[float], rng: np.random.Generator) -> np.ndarray:
    lower, upper = kind.bounds
    named = np.array([lower, upper, *points], dtype=np.int64 if isinstance(lower, int) else np.float64)
    if isinstance(lower, int):
        named = np.unique(np.concatenate([named - 1, named, named + 1]))
    else:
        named = np.unique(np.concatenate([named, np.nextafter(named, -np.inf), np.nextafter(named, np.inf)]))
    at = to_codes(kind, Values(named, np.zeros(named.size, dtype=bool)))
    codes = np.where(rng.random(_ROWS) < _AT_POINTS, rng.choice(at, _ROWS), rng.random(_ROWS))
    if kind.nullable:
        codes[rng.random(_ROWS) < _MISSING] = np.nan
    return codes
