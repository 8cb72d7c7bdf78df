"""Factor analysis from second moments, against dense linear algebra."""

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import ConfigError
from sfumato.maths.gaussian import noise_reach
from sfumato.models.mixtures.factors import CentredMoment, FactorModel, LowRankMoment, denoised_moment, fit_factors


def model_of(q=7, r=2, seed=0):
    rng = np.random.default_rng(seed)
    return FactorModel(rng.standard_normal(q), rng.standard_normal((q, r)), rng.uniform(0.1, 1.0, q))


def dense(model):
    return model.loadings @ model.loadings.T + np.diag(model.variances)


def test_log_densities_by_woodbury():
    model = model_of()
    points = np.random.default_rng(1).standard_normal((30, 7))
    expected = stats.multivariate_normal(model.mean, dense(model)).logpdf(points)
    np.testing.assert_allclose(model.log_densities(points), expected, rtol=1e-9)


def test_log_likelihood_of_a_moment_is_the_mean_log_density():
    model = model_of()
    points = model.sample(500, np.random.default_rng(2))
    centred = points - model.mean
    moment = CentredMoment(centred.T @ centred, 1 / 500, np.zeros(7))
    assert model.log_likelihood(moment) == pytest.approx(model.log_densities(points).mean())


def test_posterior_means():
    model = model_of()
    expected = model.loadings.T @ np.linalg.inv(dense(model))
    np.testing.assert_allclose(model.posterior[1], expected, rtol=1e-9)


def test_em_rises_and_finds_a_covariance_that_is_one():
    truth = model_of()
    moment = CentredMoment(dense(truth), 1.0, np.zeros(7))
    model, before = FactorModel(np.zeros(7), np.ones((7, 2)) + np.eye(7, 2), np.ones(7)), -np.inf
    for _ in range(50):
        model = model.step(moment, 1e-9)
        now = model.log_likelihood(moment)
        assert now >= before - 1e-12
        before = now
    found = fit_factors(np.zeros(7), moment, 2, least=1e-9, tolerance=1e-13, most_iterations=20_000)
    np.testing.assert_allclose(dense(found), dense(truth), atol=1e-3)


def test_moments_multiply_as_their_matrices_do():
    rng = np.random.default_rng(3)
    block, mean = rng.standard_normal((6, 2)), rng.standard_normal(6)
    matrix = rng.standard_normal((6, 6))
    matrix = matrix + matrix.T
    centred = CentredMoment(matrix, 0.5, mean)
    whole = 0.5 * matrix - np.outer(mean, mean)
    np.testing.assert_allclose(centred.times(block), whole @ block)
    np.testing.assert_allclose(centred.diagonal, np.diagonal(whole))
    vectors = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    low = LowRankMoment(vectors, np.array([2.0, 1.0]), np.full(6, 0.1))
    whole = vectors * [2.0, 1.0] @ vectors.T + 0.1 * np.eye(6)
    np.testing.assert_allclose(low.times(block), whole @ block)
    np.testing.assert_allclose(low.diagonal, np.diagonal(whole))


@pytest.mark.parametrize("q", [40, 300])
def test_noise_is_taken_out_of_the_spectrum(q):
    """At 300 dimensions eigenvalues are found by iteration. Pure noise leaves no factor; a strong one survives."""
    rng = np.random.default_rng(4)
    draws = rng.standard_normal((q, q))
    noise = 0.01 * (draws + draws.T) / 2
    edge = noise_reach(0.01, q)
    alone = denoised_moment(CentredMoment(noise, 1.0, np.zeros(q)), edge, 1e-3, 5)
    assert alone.values.size == 0
    direction = np.linalg.qr(rng.standard_normal((q, 1)))[0]
    signal = 2 * direction @ direction.T
    found = denoised_moment(CentredMoment(noise + signal, 1.0, np.zeros(q)), edge, 1e-3, 5)
    assert found.values == pytest.approx([2.0], rel=0.05)
    assert abs(float(found.vectors[:, 0] @ direction[:, 0])) > 0.95
    assert found.rest.min() >= 1e-3


def test_what_is_no_model_is_refused():
    with pytest.raises(ConfigError, match="above 0"):
        FactorModel(np.zeros(3), np.ones((3, 1)), np.zeros(3))
    with pytest.raises(ConfigError, match="every row"):
        FactorModel(np.zeros(2), np.ones((3, 1)), np.ones(3))
    with pytest.raises(ConfigError, match="finite"):
        FactorModel(np.zeros(3), np.full((3, 1), np.nan), np.ones(3))
