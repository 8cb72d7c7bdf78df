"""MWEM of papers/dpgm: right where there is little noise, and cut by a rule that looks at one basket."""

import importlib.util
from pathlib import Path

import numpy as np
from scipy import sparse

PATH = Path(__file__).parents[2] / "papers" / "dpgm" / "mwem.py"
SPEC = importlib.util.spec_from_file_location("mwem", PATH)
assert SPEC is not None
assert SPEC.loader is not None
MWEM = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(MWEM)

RNG = np.random.default_rng(0)
MATRIX = sparse.csr_array((RNG.random((3000, 20)) < np.linspace(0.02, 0.5, 20)).astype(float))
QUERIES = sparse.csr_array((RNG.random((100, 20)) < 0.3).astype(float))


def test_it_answers_its_queries_where_there_is_little_noise():
    counts = np.asarray(MATRIX.sum(axis=0))
    estimate = MWEM.mwem(MATRIX, QUERIES, 1e6, np.random.default_rng(1), rounds=400, longest=20)
    uniform = np.full(20, counts.sum() / 20)
    np.testing.assert_allclose(estimate.sum(), counts.sum())
    wrong, before = (np.abs(QUERIES @ (x - counts)).max() for x in (estimate, uniform))
    assert wrong < 0.2 * before


def test_baskets_are_cut_to_random_items_of_their_own():
    short = MWEM.cut(MATRIX, 3, np.random.default_rng(0))
    lengths = np.diff(MATRIX.indptr)
    np.testing.assert_array_equal(np.diff(short.indptr), np.minimum(lengths, 3))
    assert ((MATRIX - short).toarray() >= 0).all()
    # which items stay is random: no place in the basket is preferred
    full = sparse.csr_array(np.ones((2000, 6)))
    assert np.abs(MWEM.cut(full, 3, np.random.default_rng(0)).sum(axis=0) - 1000).max() < 150


def test_much_noise_leaves_a_histogram_of_the_same_total():
    estimate = MWEM.mwem(MATRIX, QUERIES, 0.01, np.random.default_rng(2))
    assert np.isfinite(estimate).all()
    assert (estimate >= 0).all()
