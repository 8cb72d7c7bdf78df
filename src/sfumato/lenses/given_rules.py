"""Given values as rules compare them, and all that follows from them."""

from __future__ import annotations

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.kind import GivenValue, TabularKind
from sfumato.errors import ConfigError
from sfumato.rules.cells import Column
from sfumato.rules.rule_plan import RulePlan


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
