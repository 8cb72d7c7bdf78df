"""Counting queries against counting by hand."""

import json
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from sfumato.errors import ConfigError, DataError
from sfumato.evaluate import counting_query_errors
from sfumato.evaluate.counting_queries import (
    KINDS,
    Queries,
    answers,
    combination_counts,
    independent_answers,
    random_queries,
    relative_errors,
)
from sfumato.schema.schema import Schema

RNG = np.random.default_rng(0)
DENSE = (RNG.random((5000, 12)) < np.linspace(0.02, 0.6, 12)).astype(np.float32)
MATRIX = sparse.csr_array(DENSE)
SETS = [(0,), (3, 11), (1, 2, 3), tuple(range(12)), (10, 11)]
QUERIES = Queries.of(SETS, 12)
SCHEMA = Schema.from_dict({"columns": {"items": {"kind": "set", "n_items": 12, "max_length": 12}}})


def table(dense):
    return pa.table({"items": pa.array([np.flatnonzero(row).tolist() for row in dense], pa.list_(pa.int64()))})


@pytest.mark.parametrize("kind", KINDS)
def test_answers(kind):
    by_hand = {"all": lambda x: x.all(axis=1).sum(), "any": lambda x: x.any(axis=1).sum(), "sum": lambda x: x.sum()}
    expected = [by_hand[kind](DENSE[:, list(items)]) for items in SETS]
    np.testing.assert_allclose(answers(MATRIX, QUERIES, kind), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_independent_items_are_answered_without_drawing_them(kind):
    # the columns above are independent: 6 standard errors of a share
    expected = answers(MATRIX, QUERIES, kind) / 5000
    np.testing.assert_allclose(independent_answers(DENSE.mean(axis=0), QUERIES, kind), expected, atol=0.05)


def test_items_that_are_always_or_never_there():
    queries = Queries.of([(0,), (1,), (0, 1), (0, 2), (1, 2)], 3)
    shares = np.array([0.0, 1.0, 0.5])
    np.testing.assert_allclose(independent_answers(shares, queries, "all"), [0, 1, 0, 0, 0.5])
    np.testing.assert_allclose(independent_answers(shares, queries, "any"), [0, 1, 1, 0.5, 1])
    np.testing.assert_allclose(independent_answers(shares, queries, "sum"), [0, 1, 1, 0.5, 1.5])


def test_random_queries():
    queries = random_queries(30, 21, np.random.default_rng(1))
    assert queries.items.shape == (1000, 30)
    np.testing.assert_array_equal(queries.items.sum(axis=1), queries.lengths)
    longest = [queries.lengths[queries.groups == group].max() for group in range(5)]
    shortest = [queries.lengths[queries.groups == group].min() for group in range(5)]
    assert longest == [4, 8, 12, 16, 21]
    assert set(shortest) == {1}
    assert random_queries(3, 50, np.random.default_rng(1)).lengths.max() == 3


def test_errors_have_a_floor():
    np.testing.assert_allclose(relative_errors(np.array([2.0, 90.0]), np.array([0.0, 100.0]), 1000), [2.0, 0.1])


@pytest.mark.parametrize("size", [2, 3])
def test_combinations(size):
    items = np.array([1, 4, 5, 9, 11])
    expected = [DENSE[:, list(places)].all(axis=1).sum() for places in combinations(items, size)]
    np.testing.assert_array_equal(combination_counts(MATRIX, items, size), expected)


def test_a_copy_has_no_error_and_zero_has_its_own():
    scores = counting_query_errors(table(DENSE), table(DENSE), schema=SCHEMA, n_frequent=5)
    assert scores["private"] is False
    assert scores["rows"] == {"real": 5000, "synthetic": 5000}
    json.dumps(scores)
    for kind in KINDS:
        assert scores["random"][kind]["synthetic"] == pytest.approx([0.0] * 5, abs=1e-12)
        assert len(scores["random"][kind]["zero"]) == 5
    assert scores["random"]["any"]["zero"] == pytest.approx([1.0] * 5)
    assert scores["frequent"]["triples"]["synthetic"] == pytest.approx(0, abs=1e-12)
    # independent columns: the independent items' own error is small
    assert max(scores["random"]["any"]["independent"]) < 0.03
    assert max(scores["random"]["sum"]["independent"]) < 1e-6


def test_a_schema_may_be_a_path(tmp_path):
    SCHEMA.save(tmp_path / "schema.yaml")
    some = table(DENSE[:500])
    first, second = (
        counting_query_errors(some, some, schema=schema) for schema in (SCHEMA, str(tmp_path / "schema.yaml"))
    )
    assert first == second


def test_what_goes_together_is_seen():
    twins = DENSE.copy()
    twins[:, 10] = twins[:, 11]
    shuffled = np.stack([RNG.permutation(column) for column in twins.T], axis=1)
    scores = counting_query_errors(table(twins), table(shuffled[:2500]), schema=SCHEMA, n_frequent=3)
    assert scores["frequent"]["pairs"]["synthetic"] > 0.05
    assert scores["frequent"]["pairs"]["synthetic"] == pytest.approx(
        scores["frequent"]["pairs"]["independent"], abs=0.03
    )


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(ConfigError, match="kind to be one of"):
        answers(MATRIX, QUERIES, "none")
    with pytest.raises(ConfigError, match="one share"):
        independent_answers(np.full(12, 2.0), QUERIES, "all")
    with pytest.raises(DataError, match="got none"):
        counting_query_errors(table(DENSE[:0]), table(DENSE), schema=SCHEMA)
    with pytest.raises(ConfigError, match="one column of kind set"):
        counting_query_errors(table(DENSE), table(DENSE), schema=Schema.from_dict({"columns": {"a": "boolean"}}))
