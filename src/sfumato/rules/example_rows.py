"""Rows that keep rules, of public facts alone: they show that rules leave rows, and mend where a model has none."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.errors import SchemaError
from sfumato.maths.streams import public_stream
from sfumato.rules.cells import Column, Kinds, Table, joined, put, size, taken, to_codes
from sfumato.rules.repair import Keeper
from sfumato.rules.rule import Rule
from sfumato.rules.rule_plan import RulePlan

_ROWS, _ROUNDS, _ENOUGH = 2048, 24, 256
_MOST_TRIED = 24  # rules of which a part that contradicts itself is looked for
_AT_POINTS, _MISSING = 0.5, 0.15  # shares of cells at numbers that rules name, and of missing ones
_NOTHING: Mapping[str, Column] = {}


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
    for _ in range(_ROUNDS):
        table = _random_rows(plan, points, rng)
        for name, value in given.items():
            put(table, np.arange(_ROWS), name, value[np.zeros(_ROWS, dtype=np.int64)])
        plan.follow(table, tuple(given))
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
            codes[name] = rng.integers(0, kind.n_levels, _ROWS)
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
