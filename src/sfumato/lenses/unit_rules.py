"""Linked rows that keep the rules of a schema, each row by itself; no row follows one that ends its unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.kind import GivenValue, TabularKind
from sfumato.errors import ConfigError
from sfumato.lenses.lens import Units, UnitSampler, UnitsAround
from sfumato.rules.cells import Column, Table, joined, numbers, taken
from sfumato.rules.ordered import Order
from sfumato.rules.repair import Keeper, examples, give
from sfumato.rules.rule_plan import RulePlan

_RESERVE = 1024  # units of whose rows some are taken over
_EXAMPLE_ROUNDS, _FEWEST = 50, 256  # times that units are drawn in place of others, and how many at least
_FRUITLESS = 3  # times, one after the other, without any unit that keeps the rules; the last is moved


def implied_values(plan: RulePlan, known: dict[str, Column]) -> dict[str, Column]:
    """Return values with all that follows from them.

    Raises:
        ConfigError: they break a rule.
    """
    while True:
        before = len(known)
        for rule in plan.rules:
            for name, value in rule.implied(known).items():
                known.setdefault(name, value)
            if all(name in known for name in rule.columns) and rule.broken(dict(known))[0]:
                raise ConfigError(f"Expected given values that keep the rules, got some that break {rule.place}.")
        if len(known) == before:
            return known


def value_of(kind: TabularKind, value: GivenValue) -> Column:
    """Return a given value as rules compare it, shape (1,)."""
    if isinstance(kind, NumericKind):
        values, valid = kind.read(value.stored, ())
        dtype = type(kind.bounds[0])
        return Values(np.where(valid, values, kind.bounds[0]).astype(dtype), ~valid)
    return np.array([int(value.code)])


class RuledUnits(UnitsAround):
    """Units whose rows keep rules: rows are mended, but for constants and order; a unit that cannot be is drawn anew.

    Where rules bound the column of order by constants, as an account's opening does its transactions, and no drawing
    finds a unit, all its rows are moved, in their order.

    Args:
        plan: the rules.
        inner: a sampler of what they leave free.
        given: constants that all units have, shape (1,) each.
    """

    def __init__(self, plan: RulePlan, inner: UnitSampler, given: Mapping[str, Column] | None = None) -> None:
        super().__init__(inner, 2 * len(plan.kinds))
        self._plan, self._given = plan, dict(given or {})
        self._keeper = Keeper(plan, inner.fixed)
        bounds = [rule for rule in plan.rules if isinstance(rule, Order) and inner.order in rule.names]
        self._bounds = [replace(rule, names=tuple(filter(inner.fixed.__contains__, rule.names))) for rule in bounds]

    def given(self, codes: Mapping[str, float]) -> RuledUnits:
        """Return the sampler given the codes of constants: see its own sampler."""
        return RuledUnits(self._plan, self._inner.given(codes))

    def given_values(self, values: Mapping[str, GivenValue]) -> RuledUnits:
        """Return the sampler given these constants, which rules are judged on as they are.

        Raises:
            ConfigError: they break a rule, or as its own sampler refuses them.
        """
        inner = self._inner.given({name: value.code for name, value in values.items()})
        stored = {name: value_of(self._plan.kinds[name], value) for name, value in values.items()}
        implied_values(self._plan, dict(stored))  # refuses those that break a rule by themselves
        return RuledUnits(self._plan, inner, stored)

    def units(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Units:
        """Return n units, numbered from 0, and rows that keep all rules; one of a class takes the place of its like.

        Raises:
            ConfigError: no units like some of them were found.
        """

        def draw(of: np.ndarray) -> Units:
            return self._inner.units(of.size, rng, None if classes is None else of)

        return self._whole(np.zeros(n, dtype=np.int64) if classes is None else classes, draw, rng)

    def below(self, context: Mapping[str, np.ndarray], rng: np.random.Generator) -> Units:
        """Return units that have these coded constants, in their order, and rows that keep all rules, or none."""

        def draw(of: np.ndarray) -> Units:
            return self._inner.below({name: codes[of] for name, codes in context.items()}, rng)

        return self._whole(np.arange(next(iter(context.values())).size), draw, rng, lacks=True)

    def _whole(
        self, alike: np.ndarray, draw: Callable[[np.ndarray], Units], rng: np.random.Generator, *, lacks: bool = False
    ) -> Units:
        """Return a unit of each of these likes, in their order, all of whose rows keep the rules, or if so, without."""
        n = alike.size
        wanted, parts, fruitless = np.arange(n), list[Units](), 0
        while wanted.size or not parts:
            of = np.resize(alike[wanted], max(wanted.size, min(n, _FEWEST)))
            (whose, table, empty), good = self._mended(draw(of), rng, move=len(parts) >= _FRUITLESS - 1, lacks=lacks)
            place = np.full(of.size + 1, -1)
            ours, theirs = (_turns(likes, of.size) for likes in (of[good], alike[wanted]))
            _, mine, others = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
            place[good[mine]] = wanted[others]
            rows = np.flatnonzero(place[whose] >= 0)
            parts.append(Units(place[whose][rows], taken(table, rows), empty[rows]))
            wanted = np.setdiff1d(wanted, place)
            fruitless = 0 if good.size else fruitless + 1
            if fruitless == _FRUITLESS or len(parts) == _EXAMPLE_ROUNDS:
                break
        if wanted.size and lacks:
            units = draw(alike[wanted])
            first = np.searchsorted(units.owners, np.arange(wanted.size))
            parts.append(Units(wanted, taken(self._table(units.rows), first), np.ones(wanted.size, dtype=bool)))
        elif wanted.size:
            raise ConfigError(
                "Expected units whose rows can keep the rules, found none. Give fewer constants or other values."
            )
        return together(parts)

    def _mended(self, units: Units, rng: np.random.Generator, *, move: bool, lacks: bool) -> tuple[Units, np.ndarray]:
        """Return units with their rows, and the units all of whose rows keep all rules, in order."""
        owners, table, without = units.owners, self._table(units.rows), units.without
        if move and self._bounds:
            self._move(owners, table)

        def reserve(component: int) -> Iterator[Table]:
            rules, columns = self._plan.components[component]
            more = self._table(self._inner.units(_RESERVE, rng).rows)
            self._keeper.project(more)
            yield taken({name: more[name] for name in columns}, np.flatnonzero(~self._keeper.broken(more, rules)))
            yield examples(self._plan, component)

        bad = self._keeper.mend(table, rng, reserve) | self._keeper.broken(table, self._plan.rules)
        bad[without] &= not lacks  # constants are given then: there is nothing to keep
        for name, codes in self.ends.items():
            labels: Any = table[name]
            bad |= np.isin(labels, codes) & (np.diff(owners, append=-1) == 0)
        whole = np.ones(owners.max(initial=-1) + 1, dtype=bool)
        whole[owners[bad]] = False
        return Units(owners, table, without), np.flatnonzero(whole)

    def _move(self, owners: np.ndarray, table: Table) -> None:
        """Move rows along their order to where constants allow them, all of a unit as far as its first, in place."""
        assert self.order is not None
        column, frozen = numbers(table, self.order), [name for name in self._inner.fixed if name != self.order]
        values, _, most = column.values, *self._plan.kinds[self.order].bounds  # type: ignore[attr-defined] - numeric
        own, first = values.copy(), np.searchsorted(owners, owners)
        for rule in self._bounds:
            rule.project(table, frozen)
        values[:] = np.minimum(own + np.maximum(values - own, 0)[first], most)
        for rule in self._bounds:
            rule.project(table, frozen)

    def _table(self, codes: Mapping[str, Any]) -> Table:
        """Return rows as rules compare them, with what is given and what follows."""
        table = self._plan.assembled(codes)
        give(self._plan, table, self._given)
        return table


def together(parts: Sequence[Units]) -> Units:
    """Return units of several draws in order."""
    owners, absent = (np.concatenate(arrays) for arrays in ([u.owners for u in parts], [u.without for u in parts]))
    order = np.argsort(owners, kind="stable")
    return Units(owners[order], taken(joined([dict(u.rows) for u in parts]), order), absent[order])


def _turns(likes: np.ndarray, most: int) -> np.ndarray:
    """Return of each its like and how many of these come before it, fewer than `most`, as one number, shape (n,)."""
    order = np.argsort(likes, kind="stable")
    of = likes[order]
    turns = np.empty(likes.size, dtype=np.int64)
    turns[order] = np.arange(likes.size) - np.searchsorted(of, of)
    return likes.astype(np.int64) * most + turns
