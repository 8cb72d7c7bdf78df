"""Sets as binary vectors and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.cases import BASKETS, coded_sets, set_rows
from harness.privacy import join
from sfumato.columns.sets import ItemSet
from sfumato.errors import ConfigError
from sfumato.models.sets import SetEncoder
from sfumato.schema.schema import Schema

ROWS = join(set_rows(30))


def test_sets_come_back_from_their_vectors():
    vectors = BASKETS.encode(ROWS)
    assert vectors.dtype == np.float32
    assert set(np.unique(vectors)) == {0.0, 1.0}
    back = BASKETS.decode(vectors)["basket"]
    np.testing.assert_array_equal(back.offsets, ROWS["basket"].offsets)
    np.testing.assert_array_equal(back.codes, ROWS["basket"].codes)


def test_dense_and_sparse_are_the_same():
    np.testing.assert_array_equal(BASKETS.encode_sparse(ROWS).toarray(), BASKETS.encode(ROWS))


@pytest.mark.parametrize(("n_items", "max_length", "squared"), [(12, 4, 4), (3, 4, 3)])
def test_the_norm_bound_is_reached(n_items, max_length, squared):
    encoder = SetEncoder("basket", ItemSet(n_items=n_items, max_length=max_length))
    assert encoder.norm_bound == pytest.approx(np.sqrt(squared))
    full = encoder.encode({"basket": coded_sets(tuple(range(squared)))})
    assert np.linalg.norm(full) == pytest.approx(encoder.norm_bound)


@given(hnp.arrays(np.float64, st.tuples(st.integers(0, 5), st.just(12)), elements=st.floats(width=64)))
def test_any_vector_decodes_to_a_set_of_the_domain(vectors):
    sets = BASKETS.decode(vectors)["basket"]
    assert len(sets) == len(vectors)
    assert (sets.lengths <= 4).all()
    for i, vector in enumerate(vectors):
        items = sets[i : i + 1].codes
        assert (np.diff(items) > 0).all()
        above = np.flatnonzero(vector > 0.5)
        largest = above[np.argsort(-vector[above], kind="stable")][:4]
        assert items.tolist() == sorted(largest.tolist())


def test_wrong_shapes_and_columns_are_refused():
    with pytest.raises(ConfigError, match=r"shape \(n, 12\)"):
        BASKETS.decode(np.zeros((2, 3)))
    with pytest.raises(ConfigError, match="coded sets"):
        BASKETS.encode({"basket": np.zeros(3)})
    two = {"a": {"kind": "set", "n_items": 3, "max_length": 2}, "b": "boolean"}
    with pytest.raises(ConfigError, match="one column of kind set"):
        SetEncoder.of(Schema.from_dict({"columns": two}))
    assert SetEncoder.of(Schema.from_dict({"columns": {**two, "b": "identifier"}})).dimension == 3
