"""Rules as a lens: what they leave free is the plain table, and rows that keep them are made of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.kind import ColumnKind, GivenValue, TabularKind
from sfumato.errors import ConfigError
from sfumato.lenses.lens import Sampler, UnitSampler
from sfumato.lenses.unit_rules import RuledUnits, implied_values, value_of
from sfumato.rules.cells import Column, Table, codes_of, from_codes, joined, size, taken
from sfumato.rules.repair import Keeper, chosen, examples, give, raked, share_codes
from sfumato.rules.rule_plan import RulePlan

_CANDIDATES = 16  # rows of which the nearest to a given value of what is not modelled is taken
_FEW_BROKEN = 0.002  # share of rows that may be mended without a look at shares
_MOST_RAKED = 200  # columns
_TIMES = 3  # rows drawn for one that is taken
_OF_MENDED = 0.3  # weight of a mended row beside one that kept all rules from the start
_MORE, _FEWEST = 4, 1024  # times that more rows are drawn, and how many at least


@dataclass(frozen=True, slots=True)
class RulesLens:
    """Rules of a schema.

    Attributes:
        plan: the rules.
    """

    plan: RulePlan

    def columns(self, columns: Mapping[str, ColumnKind]) -> dict[str, ColumnKind]:
        """Columns that rules leave free."""
        plan = self.plan
        return {name: plan.free.get(name, kind) for name, kind in columns.items() if name not in plan.follows}

    def code(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Records as what rules leave free of them."""
        return self.plan.to_free(codes_of(self.plan.kinds, rows))

    def rows(self, inner: Sampler) -> Sampler:
        """Rows, or units whose rows, keep the rules."""
        return RuledUnits(self.plan, inner) if isinstance(inner, UnitSampler) else RuledSampler(self.plan, inner)


class RuledSampler:
    """Rows that keep rules.

    Args:
        plan: the rules.
        inner: a sampler of what they leave free.
        given: values that all rows have, shape (1,) each; what the sampler could be given, it was.
    """

    def __init__(self, plan: RulePlan, inner: Sampler, given: Mapping[str, Column] | None = None) -> None:
        self._plan, self._inner, self._given = plan, inner, dict(given or {})
        free = [name for name in self._given if name in plan.gaps or name in plan.follows]
        self._targets = [name for name in free if not plan.is_fixed(name, self._given)]
        self._examples: dict[int, Table] = {}
        self.width = inner.width * (_CANDIDATES if self._targets else 1) + 2 * len(plan.kinds)
        self.class_column = inner.class_column

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes: see `given_values`."""
        table = {name: from_codes(self._plan.kinds[name], np.array([code])) for name, code in codes.items()}
        return self._with(table)

    def given_values(self, values: Mapping[str, GivenValue]) -> Sampler:
        """Return the sampler given these values, and what follows from them.

        Raises:
            ConfigError: no row that keeps the rules has them, or the release gives such rows probability 0.
        """
        return self._with({name: value_of(self._plan.kinds[name], value) for name, value in values.items()})

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return n rows that keep all rules: codes of labels, and numbers and dates as they are written.

        Where many rows of the model break rules, three times as many are drawn and mended, and n of them taken so that
        the shares of single columns are those of the model.

        Raises:
            ConfigError: no row like some of them was found.
        """
        keeper = Keeper(self._plan, tuple(self._given), None if classes is None else self.class_column)
        table = self._draw(n, rng, classes)
        if self._targets or keeper.broken(table, self._plan.rules).sum() <= _FEW_BROKEN * n:
            return self._mended(table, keeper, rng, classes)
        more = [self._draw(n, rng, classes) for _ in range(_TIMES - 1)]
        table = joined([table, *more])
        of = None if classes is None else np.tile(classes, _TIMES)
        names = list(self._plan.free)[:_MOST_RAKED]
        before = taken({name: table[name] for name in names}, np.arange(_TIMES * n))
        first = np.where(keeper.broken(table, self._plan.rules), _OF_MENDED, 1.0)
        mended = self._mended(table, keeper, rng, of)
        weights = raked(share_codes(before, mended, names), first, most=_TIMES)
        if of is None:
            return taken(mended, chosen(weights, n, rng))
        places = np.zeros(n, dtype=np.int64)
        for k in np.unique(of):
            of_class = np.flatnonzero(of == k)
            places[classes == k] = of_class[chosen(weights[of_class], of_class.size // _TIMES, rng)]
        return taken(mended, places)

    def _mended(self, table: Table, keeper: Keeper, rng: np.random.Generator, classes: np.ndarray | None) -> Table:
        """Return the rows, each of which keeps all rules; in place."""
        keeper.project(table)

        def reserve(component: int) -> Iterator[Table]:
            rules, columns = self._plan.components[component]
            wanted = keeper.broken(table, rules)
            for _ in range(_MORE):
                of = None if classes is None else rng.choice(classes[wanted], max(_FEWEST, int(wanted.sum())))
                more = self._draw(max(_FEWEST, int(wanted.sum())), rng, of)
                keeper.project(more)
                yield taken({name: more[name] for name in columns}, np.flatnonzero(~keeper.broken(more, rules)))
            yield self._example(component, classes)

        left = keeper.mend(table, rng, reserve)
        if left.any() or keeper.broken(table, self._plan.rules).any():
            raise ConfigError(
                "Expected given values and classes that rows which keep the rules can have, found no such row. Give "
                "fewer columns or other values."
            )
        return table

    def _with(self, values: Mapping[str, Column]) -> Sampler:
        known = implied_values(self._plan, dict(values))
        plan, codes = self._plan, {}
        for name, kind in plan.free.items():
            others = {column: value for column, value in known.items() if column != name}
            if any(rule.implied(others) for rule in plan.nulls.get(name, ())):
                continue  # of conditions alone: the model may give no row of them a missing cell
            if name in plan.gaps:
                code = plan.known_gap(name, known)
            else:
                code = _code(kind, known[name]) if name in known else None
            if code is not None:
                codes[name] = code
        inner = self._inner.given(codes) if codes else self._inner
        sampler = RuledSampler(plan, inner, known)
        for number, (rules, columns) in enumerate(plan.components):
            if any(name in known for name in columns) and not size(sampler._example(number, None)):
                places = ", ".join(dict.fromkeys(rule.place for rule in rules))
                raise ConfigError(
                    f"Expected given values that keep the rules, found no row with them that keeps {places}."
                    f"{_hint(plan, known)}"
                )
        return sampler

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have: those of the model, where the rules leave rows of them."""
        return self._possible

    @cached_property
    def _possible(self) -> np.ndarray:
        possible, name = self._inner.possible, self.class_column
        if name is None or name in self._given:
            return possible
        number = next((i for i, (_, columns) in enumerate(self._plan.components) if name in columns), None)
        if number is None:
            return possible
        labels = self._example(number, None)[name]
        assert isinstance(labels, np.ndarray)
        of_class = np.isin(np.arange(possible.size), labels)
        for k in np.flatnonzero(possible & ~of_class):
            of_class[k] = size(examples(self._plan, number, {**self._given, name: np.array([k])})) > 0
        return possible & of_class

    def _example(self, component: int, classes: np.ndarray | None) -> Table:
        """Return rows made of public facts that keep a component's rules; of each class, where classes are asked."""
        name = self.class_column
        if classes is None or name is None or name in self._given:
            if component not in self._examples:
                self._examples[component] = examples(self._plan, component, self._given)
            return self._examples[component]
        parts = [
            examples(self._plan, component, {**self._given, name: np.array([k])}) for k in np.unique(classes).tolist()
        ]
        return joined(parts)

    def _draw(self, n: int, rng: np.random.Generator, classes: np.ndarray | None) -> Table:
        """Return rows of the model with what is given; of several each, the nearest to values that it cannot fix."""
        times = _CANDIDATES if self._targets else 1
        of = None if classes is None else np.repeat(classes, times)
        table = self._plan.assembled(self._inner.rows(n * times, rng, of))
        if times > 1:
            away = np.zeros(n * times)
            for name in self._targets:
                away += _distance(self._plan.kinds[name], table[name], self._given[name])
            nearest = np.arange(n) * times + away.reshape(n, times).argmin(axis=1)
            table = taken(table, nearest)
        give(self._plan, table, self._given)
        return table


def _hint(plan: RulePlan, known: Mapping[str, Column]) -> str:
    """Return advice on columns that follow from others, to give these: rows of them are searched for, and may exist."""
    names = [name for name in known if name in plan.follows and not plan.is_fixed(name, known)]
    return "".join(
        f" {name!r} follows from others, and the search may miss rows of it: give "
        f"{', '.join(map(repr, plan.follows[name].sources))} instead."
        for name in names
    )


def _code(kind: TabularKind, column: Column) -> float:
    if isinstance(kind, NumericKind):
        assert isinstance(column, Values)
        lower, upper = kind.bounds
        return float("nan") if column.absent[0] else (float(column.values[0]) - lower) / (max(upper - lower, 0) or 1)
    assert isinstance(column, np.ndarray)
    return float(column[0])


def _distance(kind: TabularKind, column: Column, value: Column) -> np.ndarray:
    """Return how far cells are from a value, in spans of the bounds; labels are 0 or 1 apart."""
    if isinstance(column, Values):
        assert isinstance(kind, NumericKind)
        assert isinstance(value, Values)
        lower, upper = kind.bounds
        span = float(upper - lower) or 1.0
        apart = np.abs(column.values - value.values[0]) / span
        return np.where(column.absent | value.absent[0], column.absent != value.absent[0], apart)
    return (column != value).astype(np.float64)
