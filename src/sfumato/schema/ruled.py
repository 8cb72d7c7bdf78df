"""Rules of a schema, read against its columns."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import math
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from sfumato.columns.bounded import NumericKind
from sfumato.columns.facts import plain_value, shown
from sfumato.columns.kind import ColumnKind, TabularKind
from sfumato.columns.open import Open
from sfumato.errors import SchemaError, SchemaWarning
from sfumato.rules import RulePlan, read_rules, rule_text
from sfumato.rules.forbidden import require_conditions
from sfumato.rules.repair import require_rows
from sfumato.rules.rule_entries import MOST_RULES, numeric_columns
from sfumato.schema.schema_facts import AnySchema, Keyed, SchemaFacts
from sfumato.schema.set_columns import itemised
from sfumato.schema.word_columns import word_columns

_DEEPEST = 8
_MOST_PARTS = 250_000  # values, keys and lists in all rules: a document may name one list many times
_LONGEST = 4_096  # characters of a text


def plain_rules(rules: object) -> tuple[Any, ...]:
    """Return rules as plain values with text for keys, as JSON has them.

    Raises:
        SchemaError: they are no list.
    """
    if not isinstance(rules, list | tuple):
        raise SchemaError(f"Expected rules to be a list, got {type(rules).__name__}.")
    if len(rules) > MOST_RULES:
        raise SchemaError(f"Expected at most {MOST_RULES} rules, got {len(rules)}.")
    left = itertools.count(_MOST_PARTS, -1)
    return tuple(_plain(rule, 0, left) for rule in rules)


def _plain(value: Any, depth: int, left: Iterator[int]) -> Any:  # noqa: ANN401
    if depth > _DEEPEST:
        raise SchemaError("Expected rules of a few levels, got deeper ones.")
    if not next(left):
        raise SchemaError(f"Expected rules of at most {_MOST_PARTS} values together, got more.")
    if isinstance(value, Mapping):
        return _plain_mapping(value, depth, left)
    if isinstance(value, list | tuple):
        return [_plain(part, depth + 1, left) for part in value]
    value = plain_value(value)
    if isinstance(value, str) and len(value) > _LONGEST:
        raise SchemaError(f"Expected rules of text of at most {_LONGEST} characters, got {shown(value)}.")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise SchemaError(f"Expected rules of text, numbers, dates, true, false and none, got {shown(value)}.")


def _plain_mapping(value: Mapping[Any, Any], depth: int, left: Iterator[int]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, part in value.items():
        plain = plain_value(key)
        text = "missing" if key is None else str(plain).lower() if isinstance(plain, bool) else str(plain)
        if text in content:  # such as `1` and "1", which JSON could not tell apart
            raise SchemaError(f"Expected rules that name each key once, got {shown(text)} twice.")
        content[text] = _plain(part, depth + 1, left)
    return content


def rule_plan(schema: SchemaFacts) -> RulePlan | None:
    """Return the rules of a schema, read against its columns; None without any.

    Raises:
        SchemaError: names the rules that are wrong, contradict each other, or leave no row.
    """
    if not schema.rules:
        return None
    if schema.images:
        raise SchemaError(
            f"Expected rules for a table of labels, numbers and dates, got images in column {schema.images[0]!r} "
            "beside them. Take the rules out."
        )
    kinds = {name: kind for name, kind in itemised(schema).items() if isinstance(kind, TabularKind | Open)}
    plain = tuple((name, kind) for name, kind in kinds.items() if not isinstance(kind, Open))
    items = frozenset(kinds) - frozenset(schema.columns)
    waiting, places = tuple(_waiting(schema).items()), tuple(_places(schema).items())
    plan = _planned(Keyed(schema.rules, repr(schema.rules)), plain, items, waiting, places)
    strict = {name for name, column in word_columns(schema).items() if not column.kind.nullable}
    for place, names in enumerate(plan.columns, 1):
        if wrong := sorted(strict & names):
            raise SchemaError(
                f"Expected rule {place} to name numbers that may be missing where words are beside them, got "
                f"{wrong[0]!r}: to a rule a word is a missing cell. Write nullable: true."
            )
    return plan


def _places(schema: SchemaFacts) -> dict[str, tuple[int, bool]]:
    """Return of linked rows how far below the unit each column lies, and whether rows follow each other by it."""
    unit, tree = schema.unit, schema.tree
    if unit is None or not unit.linked:
        return {}
    if tree is None:
        return {name: (int(name not in unit.constant), name == unit.order) for name in schema.columns}
    below = {name: (len(tree.path(of.name)), name == of.order) for of in tree.branches for name in of.columns}
    return dict.fromkeys(unit.constant, (0, False)) | below


def _waiting(schema: SchemaFacts) -> dict[str, TabularKind]:
    """Return the columns of numbers and dates whose bounds are estimated, with the narrowest they can have."""
    narrowest = {name: kind.narrowest for name, kind in schema.of_kind(Open).items()}
    return {name: kind for name, kind in narrowest.items() if isinstance(kind, NumericKind)}


def closed(schema: AnySchema, columns: Mapping[str, ColumnKind]) -> AnySchema:
    """Return a schema with what was estimated of its open columns; rules that these cannot keep are left out.

    Free: reads released values alone. A rule is left out where a column of it is, and where no row between the
    estimated bounds keeps it: the budget is spent, so it is a warning.
    """
    waiting = _waiting(schema)
    released = {name for name, kind in columns.items() if kind.is_released}
    waits = [any(name in waiting for name in numeric_columns(rule)) for rule in schema.rules]
    rules = tuple(
        rule
        for rule, late in zip(schema.rules, waits, strict=True)
        if not late or released.issuperset(numeric_columns(rule))
    )
    try:
        complete = dataclasses.replace(schema, columns=columns, rules=rules)
    except SchemaError:
        rules = tuple(rule for rule, late in zip(schema.rules, waits, strict=True) if not late)
        complete = dataclasses.replace(schema, columns=columns, rules=rules)
    left = [rule_text(rule) for rule in schema.rules if rule not in rules]
    if left:
        warnings.warn(
            f"Left out, since what was estimated of their columns has no room for them: {', '.join(left)}. Declare the "
            "bounds of these columns to keep the rules.",
            SchemaWarning,
            3,
        )
    return complete


@lru_cache(maxsize=64)
def _planned(
    rules: Keyed[tuple[Any, ...]],
    kinds: tuple[tuple[str, TabularKind], ...],
    items: frozenset[str],
    waiting: tuple[tuple[str, TabularKind], ...],
    places: tuple[tuple[str, tuple[int, bool]], ...],
) -> RulePlan:
    """Plan of rules over `kinds`, of which they name none of the `items`: of a long set some are left out."""
    named = {name: kind for name, kind in kinds if name not in items}
    plan = RulePlan(dict(kinds), read_rules(rules.value, named, dict(waiting)), dict(places))
    require_rows(plan)
    require_conditions(plan)
    return plan
