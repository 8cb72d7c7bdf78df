"""Random Fourier features: norm 1, the kernel, and the same row wherever it lies."""

import numpy as np
import pytest
from scipy import sparse

from sfumato.errors import ConfigError
from sfumato.maths.fourier import FourierFeatures, fixed_product

RNG = np.random.default_rng(0)
BINARY = (RNG.random((1200, 40)) < 0.2).astype(np.float32)


def test_norms_are_one_whatever_the_vector():
    vectors = np.concatenate([BINARY, 1e6 * RNG.standard_normal((50, 40)), np.zeros((1, 40))])
    norms = np.linalg.norm(FourierFeatures.of(40, n_features=50, gamma=0.1, seed=1).encode(vectors), axis=1)
    np.testing.assert_allclose(norms, 1, atol=1e-12)


def test_what_is_not_finite_has_features_zero():
    vectors = np.array([[np.nan, 0.0], [np.inf, 1.0], [1e308, 1e308], [1.0, 1.0]])
    features = FourierFeatures.of(2, n_features=4, gamma=50.0, seed=1).encode(vectors)
    assert not features[:3].any()
    assert np.linalg.norm(features[3]) == pytest.approx(1)


def test_inner_products_approximate_the_kernel():
    gamma, vectors = 1 / 15, BINARY[:40].astype(np.float64)
    features = FourierFeatures.of(40, n_features=20_000, gamma=gamma, seed=2).encode(vectors)
    squared = ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2)
    # a mean of 10,000 cosines has a standard error below 0.01
    np.testing.assert_allclose(features @ features.T, np.exp(-gamma * squared), atol=0.05)


def test_dense_and_sparse_vectors_have_the_same_features():
    features = FourierFeatures.of(40, n_features=20, gamma=0.1, seed=3)
    np.testing.assert_allclose(features.encode(sparse.csr_array(BINARY)), features.encode(BINARY), atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_a_row_is_the_same_to_the_last_bit_wherever_it_lies(make):
    features = FourierFeatures.of(40, n_features=30, gamma=0.3, seed=4)
    whole = features.encode(make(BINARY))
    for rows in (slice(1, None), slice(3, 700), slice(515, 530), slice(7, 8)):
        np.testing.assert_array_equal(features.encode(make(BINARY[rows])), whole[rows])


@pytest.mark.parametrize(("m", "k"), [(1, 1), (50, 10), (784, 33), (200, 3)])
def test_products_are_the_same_to_the_last_bit_wherever_a_row_lies(m, k):
    vectors, matrix = RNG.standard_normal((1100, m)), RNG.standard_normal((m, k))
    whole = fixed_product(vectors, matrix)
    np.testing.assert_allclose(whole, vectors @ matrix, atol=1e-9)
    for start in (1, 2, 5, 511, 513, 1099):
        np.testing.assert_array_equal(fixed_product(vectors[start:], matrix), whole[start:])


def test_wrong_settings_are_refused():
    with pytest.raises(ConfigError, match="even"):
        FourierFeatures.of(3, n_features=5, gamma=1.0, seed=0)
    with pytest.raises(ConfigError, match="gamma"):
        FourierFeatures.of(3, n_features=4, gamma=0.0, seed=0)
    with pytest.raises(ConfigError, match=r"shape \(n, 3\)"):
        FourierFeatures.of(3, n_features=4, gamma=1.0, seed=0).encode(np.zeros((2, 2)))


def test_the_seed_says_the_frequencies():
    one, same, other = (FourierFeatures.of(3, n_features=4, gamma=1.0, seed=seed).frequencies for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()
