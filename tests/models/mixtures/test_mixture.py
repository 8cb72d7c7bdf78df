"""Mixtures against scipy's densities, and arrays that a stranger wrote."""

import numpy as np
import pytest
from scipy import stats

from fixtures.moments import weighted_seconds
from sfumato.errors import ConfigError, ReleaseError
from sfumato.maths.gaussian import smat, svec
from sfumato.models.mixtures.covariances import FORMS, DiagonalCovariance, FullCovariance
from sfumato.models.mixtures.mixture import GaussianMixture


def mixture_of(form, k=3, q=4, seed=0):
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((k, q, 2 * q)) * 0.2
    full = roots @ roots.transpose(0, 2, 1)
    full = (full + full.transpose(0, 2, 1)) / 2
    variances = np.einsum("kii->ki", full)
    stored = {"full": full, "diagonal": variances, "spherical": variances[:, 0], "tied": full[0]}[form.name]
    return GaussianMixture(rng.dirichlet(np.ones(k)), 0.3 * rng.standard_normal((k, q)), stored, form)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_densities_and_responsibilities(form):
    mixture = mixture_of(form)
    points = np.random.default_rng(1).standard_normal((50, 4))
    parts = np.stack([
        w * stats.multivariate_normal(m, c).pdf(points)
        for w, m, c in zip(mixture.weights, mixture.means, mixture.dense_covariances(), strict=True)
    ], axis=1)  # fmt: skip
    np.testing.assert_allclose(mixture.log_densities(points), np.log(parts.sum(axis=1)), rtol=1e-9)
    np.testing.assert_allclose(mixture.responsibilities(points), parts / parts.sum(axis=1, keepdims=True), atol=1e-12)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_responsibilities_lie_in_the_simplex_whatever_the_point(form):
    points = np.array([[np.nan] * 4, [np.inf, 0, 0, 0], [1e308] * 4, [-1e200, 1e200, 0, 0], [1e10] * 4, [0.0] * 4])
    shares = mixture_of(form).responsibilities(points)
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)


def test_a_component_of_weight_0_has_no_responsibility():
    base = mixture_of(FullCovariance())
    mixture = GaussianMixture(np.array([0.0, 0.4, 0.6]), base.means, base.covariances)
    assert not mixture.responsibilities(np.zeros((5, 4)))[:, 0].any()
    assert np.isfinite(mixture.log_densities(np.zeros((5, 4)))).all()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_rows_do_not_depend_on_their_neighbours(form):
    mixture = mixture_of(form)
    points = np.random.default_rng(1).standard_normal((3000, 4))
    together = mixture.responsibilities(points)
    np.testing.assert_allclose(together[1234:1240], mixture.responsibilities(points[1234:1240]), rtol=1e-10)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_samples_have_the_moments_of_the_mixture(form):
    mixture = mixture_of(form)
    n = 200_000
    points, components = mixture.sample(n, np.random.default_rng(3))
    # 5 standard errors
    np.testing.assert_allclose(np.bincount(components) / n, mixture.weights, atol=5 * 0.5 / np.sqrt(n))
    for k, covariance in enumerate(mixture.dense_covariances()):
        members = points[components == k]
        np.testing.assert_allclose(members.mean(axis=0), mixture.means[k], atol=0.02)
        np.testing.assert_allclose(np.cov(members, rowvar=False), covariance, atol=0.02)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_second_moments_are_no_longer_than_the_point_squared(form):
    points = np.random.default_rng(4).standard_normal((20, 4))
    for point in points:
        second = weighted_seconds(form, point[None], np.ones((1, 1)))
        assert np.linalg.norm(second) <= point @ point * (1 + 1e-12)
        if form.name == "full":
            assert np.linalg.norm(second) == pytest.approx(point @ point)
            np.testing.assert_allclose(smat(second[0]), np.outer(point, point))


def test_svec_is_an_isometry_and_smat_its_inverse():
    matrices = np.random.default_rng(5).standard_normal((2, 3, 5, 5))
    matrices = matrices + matrices.swapaxes(-1, -2)
    np.testing.assert_allclose(np.linalg.norm(svec(matrices), axis=-1), np.linalg.norm(matrices, axis=(-1, -2)))
    np.testing.assert_allclose(smat(svec(matrices)), matrices)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_arrays_there_and_back(form):
    mixture = mixture_of(form)
    again = GaussianMixture.from_arrays(mixture.to_arrays("prior_"), form, "prior_")
    np.testing.assert_allclose(again.weights, mixture.weights)
    np.testing.assert_array_equal(again.means, mixture.means)
    np.testing.assert_array_equal(again.covariances, mixture.covariances)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    "spoil", ["missing", "nan", "zero", "negative", "shape", "dtype", "asymmetric", "weights", "empty"]
)
def test_hostile_arrays_are_refused(form, spoil):
    arrays = {name: array.copy() for name, array in mixture_of(form).to_arrays().items()}
    covariances = arrays["covariances"]
    if spoil == "missing":
        del arrays["means"]
    elif spoil == "nan":
        covariances.flat[0] = np.nan
    elif spoil == "zero":
        covariances[:] = 0
    elif spoil == "negative":
        covariances.flat[0] = -1.0
    elif spoil == "shape":
        arrays["means"] = arrays["means"][:, :-1]
        arrays["weights"] = arrays["weights"][:-1] / arrays["weights"][:-1].sum()
    elif spoil == "dtype":
        arrays["means"] = arrays["means"].astype(np.float32)
    elif spoil == "asymmetric":
        if form.name not in ("full", "tied"):
            pytest.skip("no matrix")
        covariances[..., 0, 1] += 1e-3
    elif spoil == "weights":
        arrays["weights"] = arrays["weights"] * 2
    else:
        arrays = {name: array[:0] for name, array in arrays.items()}
    with pytest.raises(ReleaseError, match="well-formed"):
        GaussianMixture.from_arrays(arrays, form)


def test_parameters_that_are_no_mixture_are_refused():
    good = mixture_of(DiagonalCovariance())
    with pytest.raises(ConfigError, match="shapes"):
        GaussianMixture(good.weights, good.means, good.covariances, FullCovariance())
    with pytest.raises(ConfigError, match="sum to 1"):
        GaussianMixture(good.weights * 2, good.means, good.covariances, good.form)
    with pytest.raises(ConfigError, match="positive definite"):
        GaussianMixture(good.weights, good.means, -good.covariances, good.form)
    with pytest.raises(ConfigError, match="finite"):
        GaussianMixture(good.weights, good.means * np.inf, good.covariances, good.form)
