"""Rules of a stranger's schema: refused with a reason or read, in bounded time and memory, whatever they say."""

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from sfumato.errors import SchemaError
from sfumato.evaluate import rule_breaks
from sfumato.schema.schema import Schema

LABELS = {"kind": "categorical", "categories": ["x", "y"]}


def integer(lower: int = 0, upper: int = 100) -> dict:
    return {"kind": "integer", "lower": lower, "upper": upper}


def read(columns: dict, *rules: dict) -> Schema:
    return Schema.from_dict({"columns": columns, "rules": list(rules)})


@contextmanager
def within(seconds: float) -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds


@pytest.mark.parametrize("text", ["nan..5", "..nan", "inf..5", "..inf", "1e400..", "1_0..5x"])
@pytest.mark.parametrize("kind", [integer(), {"kind": "continuous", "lower": 0, "upper": 5}])
def test_spans_without_numbers(kind, text):
    with pytest.raises(SchemaError, match=r"rule 1 \(never\).* a "):
        read({"a": kind, "b": LABELS}, {"never": {"a": text, "b": "x"}})


@pytest.mark.parametrize("text", [" " * 3_000 + "x", "1 " * 1_500, "." * 4_000, " " * 100_000 + "x"])
def test_no_pattern_takes_long(text):
    with within(2), pytest.raises(SchemaError, match="rule"):
        read({"a": integer(), "b": LABELS}, {"never": {"a": text, "b": "x"}})


def test_ends_between_whole_numbers():
    frame = pd.DataFrame({"a": np.arange(-50, 51)})
    for span, n in {"17.5..": 33, "..17.5": 68, "..-3.5": 47, "-3.5..": 54}.items():
        schema = read({"a": integer(-50, 50)}, {"never": {"a": span}})
        assert rule_breaks(frame, schema=schema).any_rule == n, span


def test_a_date_of_its_own_format_is_no_span():
    column = {"kind": "datetime", "lower": "2020-01-01", "upper": "2024-12-31", "format": "%d-%m%Y"}
    schema = read({"a": column, "b": LABELS}, {"never": {"a": "01-022024", "b": "x"}})
    frame = pd.DataFrame({"a": ["01-022024", "02-022024"], "b": ["x", "x"]})
    assert rule_breaks(frame, schema=schema).any_rule == 1


def test_long_chains():
    """As deep as rules may be many, and each before the one that it needs."""
    names = [f"c{i}" for i in range(1_000)]
    pairs = list(itertools.pairwise(names))[::-1]
    derived = [{"derived": b, "from": a, "map": {"x": "x", "y": "y"}} for a, b in pairs]
    assert read(dict.fromkeys(names, LABELS), *derived).rule_plan.order == names[1:]
    gaps = read(dict.fromkeys(names, integer()), *({"order": [a, b]} for a, b in pairs)).rule_plan.gaps
    assert list(gaps.items()) == [(b, a) for a, b in pairs[::-1]]


def test_many_rules_apart():
    columns = {f"c{i}": LABELS for i in range(400)}
    with within(10):
        read(columns, *({"never": {f"c{2 * i}": "x", f"c{2 * i + 1}": "y"}} for i in range(200)))


def test_a_map_of_many_labels():
    labels = [f"v{i}" for i in range(20_000)]
    columns = {"a": {"kind": "categorical", "categories": labels}, "b": LABELS}
    with within(5):
        schema = read(columns, {"derived": "b", "from": "a", "map": dict.fromkeys(labels, "x")})
    assert rule_breaks(pd.DataFrame({"a": ["v3", "v3"], "b": ["x", "y"]}), schema=schema).any_rule == 1


def test_wrong_labels_of_maps_are_named():
    columns = {"a": {**LABELS, "nullable": True}, "b": {**LABELS, "nullable": True}}
    for mapping, message in (
        ({"x": "x", "y": "z"}, "'z'"), ({"x": "x", "w": "y"}, "'w'"), ({"x": ["x"], "y": "y"}, "got a list"),
    ):  # fmt: skip
        with pytest.raises(SchemaError, match=message):
            read(columns, {"derived": "b", "from": "a", "map": mapping})
    schema = read(columns, {"derived": "b", "from": "a", "map": {"x": None, "y": "x", "missing": "y"}})
    frame = pd.DataFrame({"a": ["x", "y", None, "x"], "b": [None, "x", "y", "y"]})
    assert rule_breaks(frame, schema=schema).any_rule == 1


def test_one_list_named_many_times():
    values = [[["x"] * 1_000] * 1_000] * 1_000
    with within(5), pytest.raises(SchemaError, match="values together"):
        read({"a": LABELS}, {"never": {"a": values}})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"never": {"a": [5] * 1_001}}, "at most 1000 values of 'a'"),
        ({"derived": "b", "from": "a", "map": {str(i): "x" for i in range(5_001)}}, "at most 5000 spans"),
        ({"never": {"b": "x" * 5_000}}, "at most 4096 characters"),
        ({"derived": "b", "from": "a", "map": {1: "x", "1": "y"}}, "'1' twice"),
        ({"never": {"a": [[[[[[[[[1]]]]]]]]]}}, "few levels"),
    ],
)  # fmt: skip
def test_too_much(rule, message):
    with pytest.raises(SchemaError, match=message):
        read({"a": integer(0, 10**6), "b": LABELS}, rule)


def test_names_are_told_as_they_are():
    with pytest.raises(SchemaError, match="'Out' are below all of 'In'"):
        read({"In": integer(50, 60), "Out": integer(0, 40)}, {"order": ["In", "Out"]})
