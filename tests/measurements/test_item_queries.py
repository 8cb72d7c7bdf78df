"""Queries of items: sums over sets by hand, there and back, and documents and arrays of strangers."""

import dataclasses
import json
from itertools import combinations

import numpy as np
import pytest

from sfumato.columns.sets import CodedSets, ItemSet
from sfumato.errors import ReleaseError
from sfumato.measurements import ItemPairQuery, ItemQuery, Measurement, SetsOf
from sfumato.measurements.query_form import QueryArrays, read_query, write_query
from sfumato.privacy.reading import Place

M, LONGEST = 6, 4
KINDS = {"b": ItemSet(n_items=M, max_length=LONGEST)}
SETS = SetsOf.of("b", KINDS["b"])
WATCHED = np.array([0, 2, 3])
ITEMS = ItemQuery(SETS)
PAIRS = ItemPairQuery(SETS, WATCHED, np.array([0, 1, 2]), np.array([0, 1, 2, 3]), np.array([64, 64, 64, 40]), 100)


def sets(n=300, seed=0):
    rng = np.random.default_rng(seed)
    held = rng.random((n, M)) < 0.35
    held &= np.cumsum(held, axis=1) <= LONGEST
    owners, codes = np.nonzero(held)
    return held, CodedSets.of(owners, codes, n)


def test_items_are_counted():
    held, coded = sets()
    total = np.zeros(ITEMS.shape)
    ITEMS.add(total, coded)
    assert (total == held.sum(axis=0)).all()


def test_pairs_are_counted_with_the_weights_of_their_sets():
    held, coded = sets()
    total = np.zeros(PAIRS.shape)
    PAIRS.add(total, coded)
    few, pairs, by_size, sizes = PAIRS.split(total)
    size, watched = held.sum(axis=1), held[:, WATCHED].sum(axis=1)
    assert (PAIRS.watched_of(coded) == watched).all()
    assert few[0] == 100 * (size == 0).sum()
    assert (few[1:] == [100 * ((size == 1) & held[:, j]).sum() for j in range(M)]).all()
    weight = np.where(size > 1, PAIRS.weights[watched], 0)
    for i, j in combinations(range(3), 2):
        both = held[:, WATCHED[i]] & held[:, WATCHED[j]]
        assert pairs[PAIRS.pair_of(i, j)] == weight[both].sum()
    rest = np.minimum(size - watched, 2)
    for i, b in np.ndindex(3, 3):
        assert by_size[i, b] == weight[held[:, WATCHED[i]] & (rest == b)].sum()
    assert all(sizes[b, s] == weight[(rest == b) & (watched == s)].sum() for b, s in np.ndindex(3, 4))


def stored(query):
    arrays = {}
    return json.loads(json.dumps(write_query(query, arrays))), arrays


@pytest.mark.parametrize("query", [ITEMS, PAIRS])
def test_there_and_back(query):
    document, arrays = stored(query)
    again = read_query(document, Place("manifest"), QueryArrays(arrays))
    assert type(again) is type(query)
    for field in dataclasses.fields(query):
        assert np.array_equal(getattr(again, field.name), getattr(query, field.name))


def test_documents_of_strangers_are_read_with_suspicion():
    document, arrays = stored(PAIRS)
    for change in (
        {"sets": None},
        {"sets": {"column": "b"}},
        {"watched": None},
        {"bins": "queries.9"},
        {"few_weight": 0},
    ):
        with pytest.raises(ReleaseError, match="well-formed manifest"):
            read_query({**document, **change}, Place("manifest"), QueryArrays(arrays))
    for wrong in (WATCHED.astype(float), WATCHED[:, None]):
        with pytest.raises(ReleaseError, match="well-formed manifest"):
            read_query(document, Place("manifest"), QueryArrays({**arrays, document["watched"]: wrong}))


@pytest.mark.parametrize(
    "change",
    [
        {"watched": np.array([0, 3, 2])}, {"watched": np.array([0, 2, 6])}, {"watched": np.array([-1, 2, 3])},
        {"watched": np.zeros(0, dtype=np.int64)}, {"bins": np.array([1, 2])}, {"bins": np.array([0, 9])},
        {"held_bins": np.array([0, 2, 7])}, {"held_bins": np.array([0, 2, 2])}, {"weights": np.array([64, 64, 64])},
        {"weights": np.array([64, 64, 64, 0])}, {"weights": np.array([64, 64, 64, 65])},
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_each_other_are_a_fault(change):
    query = dataclasses.replace(PAIRS, **change)
    assert "asks of pairs of items of 'b' in no order" in Measurement("m", np.zeros(3), 1.0, query=query).fault(KINDS)


def test_other_sets_than_those_of_the_schema_are_a_fault():
    def fault(query, kinds=KINDS, value=None):
        return Measurement("m", np.zeros(query.shape) if value is None else value, 1.0, query=query).fault(kinds)

    for query in (ITEMS, PAIRS):
        assert fault(query) is None
        assert "which is no column of sets" in fault(query, {"c": KINDS["b"]})
        assert "other items of 'b'" in fault(query, {"b": ItemSet(n_items=M + 1, max_length=LONGEST)})
        assert "other items of 'b'" in fault(query, {"b": ItemSet(n_items=M, max_length=LONGEST - 1)})
        assert "shape" in fault(query, value=np.zeros(2))
