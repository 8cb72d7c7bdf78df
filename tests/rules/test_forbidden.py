"""Values that rules forbid together are named; whatever some row can have is not."""

import itertools
import time

import pytest

from fixtures.ruled import random_case
from sfumato.errors import SchemaError
from sfumato.rules.forbidden import _conditions, _is_possible
from sfumato.rules.repair import examples
from sfumato.schema import ruled
from sfumato.schema.schema import Schema

LABELS = {"kind": "categorical", "categories": ["x", "y", "z"]}
OTHERS = {"kind": "categorical", "categories": ["p", "q"]}
NUMBERS = {"kind": "integer", "lower": 0, "upper": 10}
NULLABLE = {**NUMBERS, "nullable": True}
COLUMNS = {"a": LABELS, "b": OTHERS, "u": NUMBERS, "v": NUMBERS, "w": NUMBERS, "n": NULLABLE}


def schema(*rules):
    return Schema.from_dict({"rows": 1_000, "columns": COLUMNS, "rules": list(rules)}).rule_plan


FORBIDDEN = {
    "two conclusions": [{"if": {"a": "x"}, "then": {"b": "p"}}, {"if": {"a": "x"}, "then": {"b": "q"}}],
    "a chain": [
        {"if": {"a": "x"}, "then": {"b": "p"}},
        {"if": {"b": "p"}, "then": {"u": "5-10"}},
        {"if": {"u": "5-10"}, "then": {"v": "0-2"}},
        {"if": {"a": "x"}, "then": {"v": "3-10"}},
    ],
    "missing and not": [{"null_if": {"n": {"a": "x"}}}, {"null_if": {"n": {"a": "y"}}}],
    "an order that turns round": [
        {"order": ["u", "v"]},
        {"if": {"a": "x"}, "then": {"u": "6-10", "v": "0-5"}},
    ],
    "what is never so": [{"if": {"a": "x"}, "then": {"b": "p"}}, {"never": {"a": "x", "b": "p"}}],
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_rules_forbid_together_is_named(name):
    with pytest.raises(SchemaError, match=r"'a' '[xy]'.*rule \d \(\w+\), rule \d \(\w+\).*forbid them together"):
        schema(*FORBIDDEN[name])


def test_a_span_is_named_by_its_rule():
    with pytest.raises(SchemaError, match=r"rows with 'u' as rule \d \(if\) has it"):
        schema(
            {"if": {"u": "5-10"}, "then": {"b": "p"}},
            {"if": {"b": "p"}, "then": {"v": "0-2"}},
            {"if": {"u": "4-"}, "then": {"v": "3-"}},
        )


ALLOWED = {
    "said outright": [{"if": {"a": "x"}, "then": {"b": "p"}}, {"never": {"a": "x"}}],
    "a part of a span": [{"order": ["u", "v"]}, {"if": {"u": "3-"}, "then": {"v": "0-5"}}],
    "two that agree": [{"if": {"a": "x"}, "then": {"b": "p"}}, {"if": {"b": "p"}, "then": {"a": "x"}}],
    "missing passes an order": [{"order": ["u", "n"]}, {"if": {"a": "x"}, "then": {"n": None}}],
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_some_row_can_have_is_not_named(name):
    schema(*ALLOWED[name])


def test_large_whole_numbers_are_not_rounded_away():
    large = {"kind": "integer", "lower": 0, "upper": 2**60 + 1}
    rules = [{"if": {"u": 2**60 + 1}, "then": {"b": "p"}}, {"if": {"a": "x"}, "then": {"u": 2**60 + 1}}]
    Schema.from_dict({"rows": 1_000, "columns": {**COLUMNS, "u": large}, "rules": rules})


def named_wrongly(seed, monkeypatch):
    """Return values of a random schema that are named though a row has them, and how many are named."""
    monkeypatch.setattr(ruled, "require_conditions", lambda _: None)
    ruled._planned.cache_clear()
    try:
        plan = Schema.from_dict(random_case(seed)[0]).rule_plan
    except SchemaError:
        return [], 0
    finally:
        ruled._planned.cache_clear()
    wrong, named = [], 0
    for number, (rules, names) in enumerate(plan.components if plan is not None else ()):
        rows = None
        for term, text in _conditions(rules):
            if not _is_possible(plan.kinds, rules, names, term, itertools.count(10**6, -1)):
                named += 1
                rows = examples(plan, number) if rows is None else rows
                wrong += [text] if term.holds(rows).any() else []
    return wrong, named


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 2_000), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_nothing_is_named_that_a_row_has(seeds, monkeypatch):
    results = [named_wrongly(seed, monkeypatch) for seed in seeds]
    assert [wrong for wrong, _ in results if wrong] == []
    assert sum(named for _, named in results) > 0, "some random rules forbid a value"


def test_a_thousand_rules_in_a_chain_take_seconds():
    columns = {f"c{i}": ["a", "b"] for i in range(1000)}
    rules = [{"if": {f"c{i}": "a"}, "then": {f"c{i + 1}": "a"}} for i in range(999)]
    start = time.process_time()
    Schema.from_dict({"columns": columns, "rows": 9, "rules": rules})
    assert time.process_time() - start < 20
