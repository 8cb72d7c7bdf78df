"""Features are orthonormal under the shares, and Gaussian copulas' moments follow from their Hermite coefficients."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats

from sfumato.maths.constants import VECTORS
from sfumato.maths.gaussian import normal_scores
from sfumato.methods.tables.features import (
    LABEL,
    MARK,
    SCORE,
    SHAPE,
    Features,
    hermite_coefficients,
    level_features,
    number_features,
)


def dirichlet(cells, seed=0, spread=3.0):
    return np.random.default_rng(seed).dirichlet(np.full(cells, spread))


def heavy(cells=30, mass=0.4):
    shares = (1 - mass) * dirichlet(cells)
    shares[7] += mass
    return shares


def with_zeros(cells=20):
    shares = dirichlet(cells)
    shares[[0, 3, 4, -1]] = 0
    return shares / shares.sum()


NUMBERS = {
    "plain": (dirichlet(40), False, 6),
    "one order": (dirichlet(40), False, 1),
    "missing": (dirichlet(40, 1), True, 6),
    "rarely missing": (np.append(dirichlet(20) * (1 - 1e-5), 1e-5), True, 3),
    "mostly missing": (np.append(dirichlet(20) * 0.02, 0.98), True, 3),
    "never missing": (np.append(dirichlet(20), 0.0), True, 3),
    "heavy": (heavy(), False, 6),
    "heavy and missing": (np.append(0.8 * heavy(), 0.2), True, 6),
    "zeros": (with_zeros(), False, 6),
    "two": (np.array([0.3, 0.7]), False, 6),
    "two and missing": (np.array([0.3, 0.5, 0.2]), True, 3),
    "one": (np.ones(1), False, 6),
    "one and missing": (np.array([0.6, 0.4]), True, 6),
    "constant among many": (np.eye(9)[4], False, 6),
    "all missing": (np.eye(9)[8], True, 6),
}
LABELS = {
    "few": dirichlet(3),
    "many": dirichlet(60, 1, 0.3),
    "zeros": with_zeros(),
    "one": np.ones(1),
    "constant": np.eye(5)[2],
}


def assert_orthonormal(features: Features, shares):
    assert features.values.shape == (shares.size, features.size)
    assert features.weights.shape == features.kinds.shape == (features.size,)
    assert (features.weights > 0).all()
    assert np.isfinite(features.values).all()
    # a share of 0 is taken as 1e-7
    np.testing.assert_allclose(shares @ features.values, 0.0, atol=2e-3)
    mass = np.maximum(shares, 1e-7)
    mass = mass / mass.sum()
    np.testing.assert_allclose(mass @ features.values, 0.0, atol=1e-7)
    gram = features.values.T @ (mass[:, None] * features.values)
    np.testing.assert_allclose(gram, np.eye(features.size), atol=1e-7)


@pytest.mark.parametrize("case", NUMBERS.values(), ids=NUMBERS)
def test_features_of_numbers_are_orthonormal(case):
    assert_orthonormal(number_features(*case), case[0])


@pytest.mark.parametrize("shares", LABELS.values(), ids=LABELS)
def test_features_of_labels_are_orthonormal(shares):
    features = level_features(shares)
    assert_orthonormal(features, shares)
    assert features.size == shares.size - 1
    assert (features.kinds == LABEL).all()


def test_labels_are_told_apart():
    """No function of the label is lost: the features and the constant span them all."""
    shares = dirichlet(12, 3)
    basis = np.column_stack([np.ones(12), level_features(shares).values])
    assert np.linalg.matrix_rank(basis) == 12


def test_the_score_is_the_normal_score():
    shares = dirichlet(40)
    features = number_features(shares, False, 6)
    scores = normal_scores(shares)
    assert features.kinds.tolist() == [SCORE] + [SHAPE] * 5
    expected = (scores - shares @ scores) / np.sqrt(shares @ scores**2 - (shares @ scores) ** 2)
    np.testing.assert_allclose(features.values[:, 0], expected, atol=1e-9)


def test_missing_and_frequent_numbers_have_a_mark():
    kinds = number_features(np.append(0.8 * heavy(), 0.2), True, 6).kinds
    assert kinds.tolist().count(MARK) == 2
    assert kinds[0] == MARK
    assert number_features(heavy(), False, 6).kinds.tolist().count(MARK) == 1
    assert MARK not in number_features(dirichlet(40), False, 6).kinds
    assert MARK not in number_features(heavy(), False, 1).kinds


def test_features_do_not_say_more_than_they_are_asked():
    assert number_features(dirichlet(40), False, 1).size == 1
    assert number_features(np.array([0.3, 0.7]), False, 6).size == 1
    assert number_features(np.ones(1), False, 6).size == 0
    assert level_features(np.ones(1)).size == 0


def test_a_columns_weight_is_that_of_its_features():
    for make in (
        lambda w: number_features(heavy(), False, 6, w),
        lambda w: level_features(dirichlet(5), w),
    ):
        np.testing.assert_allclose(make(2.0).weights, 2 * make(1.0).weights)
    assert number_features(dirichlet(40), False, 1).weights.tolist() == [1.0]


def hermite(t, z):
    """The orthonormal polynomial, from its definition."""
    return special.eval_hermitenorm(t, z) / np.sqrt(special.factorial(t))


@pytest.mark.parametrize("missing", [False, True])
def test_hermite_coefficients_are_integrals(missing):
    shares = np.append(0.8 * heavy(12), 0.2) if missing else dirichlet(12, 2, 3.0)
    values = number_features(shares, missing, 3).values
    present = shares[:-1] if missing else shares
    edges = stats.norm.ppf(np.concatenate([[0], np.cumsum(present) / present.sum()]).clip(0, 1)).clip(-9, 9)
    found = hermite_coefficients(shares, values, missing)
    assert found.shape == (values.shape[1], VECTORS.hermite_terms)
    for t in (1, 2, 3, 7):
        parts = [integrate.quad(lambda z, t=t: hermite(t, z) * stats.norm.pdf(z), a, b)[0] for a, b in pairwise(edges)]
        expected = values[: present.size].T @ parts * present.sum()
        np.testing.assert_allclose(found[:, t - 1], expected, atol=1e-8)


@pytest.mark.parametrize("rho", [0.5, -0.9])
def test_moments_of_a_copula_are_those_of_its_rows(rho):
    rng, n = np.random.default_rng(0), 400_000
    first, second = dirichlet(25, 4, 2.0), heavy(18, 0.3)
    z = rng.standard_normal((2, n))
    z[1] = rho * z[0] + np.sqrt(1 - rho**2) * z[1]
    features, coefficients, rows = [], [], []
    for shares, numbers in zip((first, second), z, strict=True):
        found = number_features(shares, False, 3)
        cells = np.searchsorted(np.cumsum(shares)[:-1], special.ndtr(numbers))
        features.append(found)
        coefficients.append(hermite_coefficients(shares, found.values, False))
        rows.append(found.values[cells])
    powers = rho ** np.arange(1, VECTORS.hermite_terms + 1)
    said = (coefficients[0] * powers) @ coefficients[1].T
    products = rows[0].T @ rows[1] / n
    errors = np.sqrt((rows[0] ** 2).T @ (rows[1] ** 2) / n) / np.sqrt(n)
    assert (np.abs(said - products) < 5 * errors).all()
    assert np.abs(said[1:]).max() > 0.05, "nothing but scores"


@pytest.mark.parametrize("case", NUMBERS.values(), ids=NUMBERS)
def test_hermite_coefficients_are_numbers(case):
    shares, missing, orders = case
    features = number_features(shares, missing, orders)
    found = hermite_coefficients(shares, features.values, missing)
    assert np.isfinite(found).all()
    # Bessel: no feature of variance 1 has more
    assert ((found**2).sum(axis=1) < 1 + 1e-3).all()
