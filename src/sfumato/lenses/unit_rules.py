"""Linked rows that keep the rules of a schema, each row by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sfumato.columns.kind import GivenValue
from sfumato.errors import ConfigError
from sfumato.lenses.given_rules import implied_values, value_of
from sfumato.lenses.lens import Units, UnitSampler
from sfumato.rules.cells import Column, Table, joined, put, size, taken
from sfumato.rules.example_rows import examples
from sfumato.rules.repair import Keeper
from sfumato.rules.rule_plan import RulePlan

_RESERVE = 1024  # units of whose rows some are taken over
_ROUNDS, _FEWEST = 50, 256  # times that units are drawn in place of others, and how many at least
_FRUITLESS = 3  # times, one after the other, without any unit that keeps the rules


class RuledUnits(UnitSampler):
    """Units whose rows keep rules: rows are mended, but for constants and order; a unit that cannot be is drawn anew.

    Args:
        plan: the rules.
        inner: a sampler of what they leave free.
        given: constants that all units have, shape (1,) each.
    """

    def __init__(self, plan: RulePlan, inner: UnitSampler, given: Mapping[str, Column] | None = None) -> None:
        self._plan, self._inner, self._given = plan, inner, dict(given or {})
        self._keeper = Keeper(plan, inner.fixed)
        self.width, self.possible = inner.width + 2 * len(plan.kinds), inner.possible
        self.class_column = inner.class_column

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

    @property
    def fixed(self) -> tuple[str, ...]:
        """The columns that no row may have otherwise once a unit is drawn."""
        return self._inner.fixed

    def units(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Units:
        """Return n units, numbered from 0, and rows that keep all rules; one of a class takes the place of its like.

        Raises:
            ConfigError: no units like some of them were found.
        """
        wanted, owners, tables, without, fruitless = np.arange(n), [], [], [], 0
        alike = np.zeros(n, dtype=np.int64) if classes is None else classes
        for _ in range(_ROUNDS):
            of = np.resize(alike[wanted], max(wanted.size, min(n, _FEWEST)))
            (whose, table, empty), good = self._mended(of.size, rng, None if classes is None else of)
            place = np.full(whose.max(initial=-1) + 1, -1)
            for k in np.unique(of):
                units, places = good[of[good] == k], wanted[alike[wanted] == k]
                place[units[: places.size]] = places[: units.size]
            rows = np.flatnonzero(place[whose] >= 0)
            owners.append(place[whose][rows])
            tables.append(taken(dict(table), rows))
            without.append(empty[rows])
            wanted = np.setdiff1d(wanted, place)
            fruitless = 0 if good.size else fruitless + 1
            if not wanted.size or fruitless == _FRUITLESS:
                break
        if wanted.size:
            raise ConfigError(
                "Expected units whose rows can keep the rules, found none. Give fewer constants or other values."
            )
        numbers = np.concatenate(owners)
        order = np.argsort(numbers, kind="stable")
        return Units(numbers[order], taken(joined(tables), order), np.concatenate(without)[order])

    def _mended(self, n: int, rng: np.random.Generator, classes: np.ndarray | None) -> tuple[Units, np.ndarray]:
        """Return units with their rows, and the units all of whose rows keep all rules, in order."""
        owners, table, without = self._draw(n, rng, classes)

        def reserve(component: int) -> Iterator[Table]:
            rules, columns = self._plan.components[component]
            more = self._draw(_RESERVE, rng)[1]
            self._keeper.project(more)
            yield taken({name: more[name] for name in columns}, np.flatnonzero(~self._keeper.broken(more, rules)))
            yield examples(self._plan, component)

        bad = self._keeper.mend(table, rng, reserve) | self._keeper.broken(table, self._plan.rules)
        whole = np.ones(n, dtype=bool)
        whole[owners[bad]] = False
        return Units(owners, table, without), np.flatnonzero(whole)

    def _draw(
        self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, Table, np.ndarray]:
        owners, codes, without = self._inner.units(n, rng, classes)
        table = self._plan.assembled(codes)
        for name, value in self._given.items():
            put(table, np.arange(size(table)), name, value[np.zeros(size(table), dtype=np.int64)])
        self._plan.follow(table, tuple(self._given))
        return owners, table, without
