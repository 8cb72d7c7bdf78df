"""Exact values show nothing, and chunking never changes a sum."""

import ast
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from harness.cases import STATISTICS
from harness.privacy import FakeRecords, join
from sfumato.errors import ConfigError
from sfumato.records.engine import Exact, reduce

SECRET = 987654321.125


def exact(**arguments):
    return Exact(np.array([SECRET]), **{"name": "thing", "norm_bound": 1.0, "replace_distance": 2.0, **arguments})


@pytest.mark.parametrize("look", [repr, str, lambda e: f"{e!r:>50}", lambda e: repr([e]), lambda e: repr({"k": e})])
def test_exact_prints_nothing(look):
    assert "987654321" not in look(exact())


@pytest.mark.parametrize("leak", [pickle.dumps, copy.copy, copy.deepcopy, np.array, np.asarray, float, list, vars])
def test_exact_cannot_be_copied_or_converted(leak):
    with pytest.raises(TypeError) as caught:
        leak(exact())
    assert "987654321" not in str(caught.value)


@pytest.mark.parametrize(
    "bad", [{"norm_bound": 0}, {"norm_bound": -1}, {"replace_distance": 2.5}, {"replace_distance": 0}]
)
def test_impossible_bounds_are_refused(bad):
    with pytest.raises(ConfigError):
        exact(**bad)


def test_only_mechanisms_open_exact_values():
    """The exit of exact values is called in the audited zone alone."""
    root = Path(sfumato.__file__).parent
    doors = {"open_in_mechanism", "whole_in_mechanism", "_Sealed__value"}
    callers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in doors
        and not (path.name == "engine.py" and isinstance(node.value, ast.Name) and node.value.id == "self")
    }
    audited = ("misplaced", "mixing", "noise_shares", "queries", "unlisted_words")
    assert callers == {f"mechanisms/{name}.py" for name in audited}


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.sampled_from(sorted(STATISTICS)))
def test_chunking_never_changes_a_sum(sizes, name):
    case = STATISTICS[name]
    rows = [case.pool[i % len(case.pool)] for i in range(sum(sizes))]
    ends = np.cumsum(sizes)
    chunks = [join(rows[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    whole = reduce(case.statistic, FakeRecords([join(rows)])).open_in_mechanism()
    parts = reduce(case.statistic, FakeRecords(chunks)).open_in_mechanism()
    if case.statistic.step is None:  # floats
        np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(parts, whole)
