"""Features are orthonormal under the shares, waves where nothing is tied; and Hermite coefficients of copulas."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats

from sfumato.maths.constants import VECTORS
from sfumato.methods.tables.features import (
    Features,
    Waves,
    clip_norm_of,
    hermite_coefficients,
    level_features,
    mean_square,
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


def waves(most):
    return Waves(most, 0.83)


NUMBERS = {
    "plain": (dirichlet(40), False, waves(16)),
    "one wave": (dirichlet(40), False, waves(1)),
    "as many as there can be": (dirichlet(8), False, waves(22)),
    "missing": (dirichlet(40, 1), True, waves(16)),
    "rarely missing": (np.append(dirichlet(20) * (1 - 1e-5), 1e-5), True, waves(3)),
    "mostly missing": (np.append(dirichlet(20) * 0.02, 0.98), True, waves(3)),
    "never missing": (np.append(dirichlet(20), 0.0), True, waves(3)),
    "heavy": (heavy(), False, waves(12)),
    "heavy and missing": (np.append(0.8 * heavy(), 0.2), True, waves(12)),
    "zeros": (with_zeros(), False, waves(12)),
    "two": (np.array([0.3, 0.7]), False, waves(6)),
    "two and missing": (np.array([0.3, 0.5, 0.2]), True, waves(3)),
    "three": (np.array([0.3, 0.5, 0.2]), False, waves(16)),
    "one": (np.ones(1), False, waves(6)),
    "one and missing": (np.array([0.6, 0.4]), True, waves(6)),
    "constant among many": (np.eye(9)[4], False, waves(6)),
    "all missing": (np.eye(9)[8], True, waves(6)),
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
    assert features.weights.shape == (features.size,)
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


def test_labels_are_told_apart():
    """No function of the label is lost: the features and the constant span them all."""
    shares = dirichlet(12, 3)
    basis = np.column_stack([np.ones(12), level_features(shares).values])
    assert np.linalg.matrix_rank(basis) == 12


@pytest.mark.parametrize("case", NUMBERS.values(), ids=NUMBERS)
def test_the_heaviest_feature_of_a_number_comes_first(case):
    weights = number_features(*case).weights
    if case[0].size - case[1] > 2:
        assert (np.diff(weights) <= 1e-12).all()


def test_of_even_shares_features_are_the_waves():
    """√2 cos(πku) of middles of ranks are orthonormal under even shares: nothing is left for the kernel to turn."""
    shares, ranks = np.full(40, 1 / 40), (np.arange(40) + 0.5) / 40
    features = number_features(shares, False, waves(16))
    assert features.size == 16
    expected = np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(1, 17)))
    signs = np.sign((features.values * expected).sum(axis=0))
    np.testing.assert_allclose(features.values * signs, expected, atol=1e-8)
    np.testing.assert_allclose(features.weights, 0.83 ** np.arange(16) / (0.83 ** np.arange(16)).sum(), rtol=1e-9)


@pytest.mark.parametrize("case", NUMBERS.values(), ids=NUMBERS)
def test_features_are_the_eigenvectors_of_the_kernel_of_waves(case):
    """Σ weight φ(a) φ(b) is what waves and an indicator of missing make, less their means."""
    shares, missing, how = case
    ordered = shares.size - missing
    if ordered <= 2:
        return
    features = number_features(*case)
    mass = np.maximum(shares, VECTORS.least_mass)
    mass = mass / mass.sum()
    inside = mass[:ordered] / mass[:ordered].sum()
    ranks = np.cumsum(inside) - inside / 2
    falling = how.decay ** np.arange(min(how.most, ordered - 1))
    kernel, weights = np.zeros((shares.size, shares.size)), falling / falling.sum()
    for k, weight in enumerate(weights, start=1):
        wave = np.zeros(shares.size)
        wave[:ordered] = np.sqrt(2) * np.cos(np.pi * k * ranks)
        wave[:ordered] -= inside @ wave[:ordered]
        kernel += weight * np.outer(wave, wave)
    if missing:
        mark = np.eye(shares.size)[-1] - mass[-1]
        kernel += np.outer(mark, mark)
    found = (features.values * features.weights) @ features.values.T
    root = np.sqrt(mass)  # as far apart as records are
    assert np.abs(root[:, None] * (found - kernel) * root).max() <= 2 * VECTORS.least_length * features.weights.max()


def test_missing_is_told_and_its_feature_is_of_no_wave():
    shares = np.append(0.8 * dirichlet(30), 0.2)
    features = number_features(shares, True, waves(12))
    basis = np.column_stack([np.ones(31), features.values])
    mark = np.eye(31)[-1]
    assert np.linalg.norm(mark - basis @ np.linalg.lstsq(basis, mark, rcond=None)[0]) < 1e-6
    told = np.abs(features.values[-1] * np.sqrt(shares[-1])) > 1e-6
    assert told.sum() == 1
    value = features.values[:-1, told].ravel()
    np.testing.assert_allclose(value, value[0], atol=1e-6)  # it tells no other run from another
    assert features.weights[told] == pytest.approx(0.2 * 0.8)


def test_tied_ranks_weigh_little_and_their_rare_records_are_no_longer_than_others():
    """Of a nearly constant number next to nothing is to be told; brought to variance 1, one record would be as long
    as a hundred of others."""
    nearly = np.full(9, 1e-4)
    nearly[4] = 1 - 8e-4
    features, plain = number_features(nearly, False, waves(12)), number_features(dirichlet(40), False, waves(12))
    assert features.weights.sum() < 0.01
    assert plain.weights.sum() > 0.8
    longest = [float((f.values**2 @ f.weights).max()) for f in (features, plain)]
    assert longest[0] <= 2 * 2 + 1e-9  # waves are bounded by √2, and so are their means
    assert longest[1] <= 2 * 2 + 1e-9


def test_features_do_not_say_more_than_they_are_asked():
    assert number_features(dirichlet(40), False, waves(1)).size == 1
    assert number_features(np.append(0.9 * dirichlet(40), 0.1), True, waves(1)).size == 2
    assert number_features(np.array([0.3, 0.7]), False, waves(6)).size == 1
    assert number_features(np.ones(1), False, waves(6)).size == 0
    assert level_features(np.ones(1)).size == 0


def test_a_columns_weight_is_that_of_its_features():
    for make in (
        lambda w: number_features(heavy(), False, waves(6), w),
        lambda w: number_features(np.append(0.8 * heavy(), 0.2), True, waves(6), w),
        lambda w: level_features(dirichlet(5), w),
    ):
        np.testing.assert_allclose(make(2.0).weights, 2 * make(1.0).weights)
    assert number_features(np.full(40, 1 / 40), False, waves(1)).weights == pytest.approx([1.0])


def hermite(t, z):
    """The orthonormal polynomial, from its definition."""
    return special.eval_hermitenorm(t, z) / np.sqrt(special.factorial(t))


@pytest.mark.parametrize("missing", [False, True])
def test_hermite_coefficients_are_integrals(missing):
    shares = np.append(0.8 * heavy(12), 0.2) if missing else dirichlet(12, 2, 3.0)
    values = number_features(shares, missing, waves(3)).values
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
        found = number_features(shares, False, waves(3))
        cells = np.searchsorted(np.cumsum(shares)[:-1], special.ndtr(numbers))
        features.append(found)
        coefficients.append(hermite_coefficients(shares, found.values, False))
        rows.append(found.values[cells])
    powers = rho ** np.arange(1, VECTORS.hermite_terms + 1)
    said = (coefficients[0] * powers) @ coefficients[1].T
    products = rows[0].T @ rows[1] / n
    errors = np.sqrt((rows[0] ** 2).T @ (rows[1] ** 2) / n) / np.sqrt(n)
    assert (np.abs(said - products) < 5 * errors).all()
    assert np.abs(said[1:]).max() > 0.05, "nothing but the first wave"


@pytest.mark.parametrize("case", NUMBERS.values(), ids=NUMBERS)
def test_hermite_coefficients_are_numbers(case):
    shares, missing, how = case
    features = number_features(shares, missing, how)
    found = hermite_coefficients(shares, features.values, missing)
    assert np.isfinite(found).all()
    # Bessel: no feature of variance 1 has more
    assert ((found**2).sum(axis=1) < 1 + 1e-3).all()


# --- clip norms: for rows as the released shares make them, whatever single simulated ones are


def column(shares):
    features = number_features(np.asarray(shares), missing=False, waves=Waves(3, 0.83))
    return features.values * np.sqrt(features.weights), np.asarray(shares)


def at_variance_1(shares):
    """Features of single runs as long as those of other columns: a record of a rare one is a hundred times as long."""
    features = level_features(np.asarray(shares))
    return features.values * np.sqrt(0.4), np.asarray(shares)


ORDINARY = [column(np.full(40, 1 / 40)) for _ in range(6)]
NEARLY_CONSTANT = at_variance_1([0.5e-4, 1 - 1e-4, 0.5e-4])


def with_nearly_constant(place):
    columns = [*ORDINARY[:place], NEARLY_CONSTANT, *ORDINARY[place:]]
    return [entries for entries, _ in columns], [shares for _, shares in columns]


def test_the_mean_square_is_that_of_drawn_rows():
    vectors, shares = ([part[i] for part in ORDINARY] for i in range(2))
    rng = np.random.default_rng(0)
    rows = [entries[rng.choice(share.size, 4_000, p=share)] for entries, share in zip(vectors, shares, strict=True)]
    squares = sum((own**2).sum(axis=1) for own in rows)
    assert mean_square(vectors, shares) == pytest.approx(squares.mean(), rel=0.03)
    # orthonormal features: every column adds its weights
    assert mean_square(vectors, [3 * share for share in shares]) == pytest.approx(6, rel=1e-6)


def test_a_cell_that_hardly_a_row_has_moves_no_norm():
    """Its row is far longer than others."""
    longest = np.sqrt((NEARLY_CONSTANT[0] ** 2).sum(axis=1).max())
    assert longest > 50
    cases = [with_nearly_constant(place) for place in range(7)]
    cases += [(vectors, [share[::-1] for share in shares]) for vectors, shares in cases]
    norms = [clip_norm_of(*case, noisy=True) for case in cases]
    assert max(norms) < (1 + 1e-9) * min(norms)


def test_with_noise_the_norm_is_that_of_a_record_of_mean_length():
    vectors, shares = ([part[i] for part in ORDINARY] for i in range(2))
    assert clip_norm_of(vectors, shares, noisy=True) == pytest.approx(np.sqrt(6))
    assert clip_norm_of([0 * part for part in vectors], shares, noisy=True) == VECTORS.least_norm
    assert clip_norm_of([np.zeros((2, 0))], [np.ones(2)], noisy=False) == VECTORS.least_norm


def test_without_noise_nothing_is_clipped():
    vectors, shares = with_nearly_constant(0)
    longest = sum(float((entries**2).sum(axis=1).max()) for entries in vectors)
    assert clip_norm_of(vectors, shares, noisy=False) == pytest.approx(np.sqrt(longest))
    assert longest > 50**2
