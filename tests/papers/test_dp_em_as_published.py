"""The printed forms of DP-EM: what they add noise to, how much of it, and that they say they are not private."""

import math

import numpy as np
import pytest

from harness.papers import script
from sfumato.models.mixtures.covariances import DiagonalCovariance
from sfumato.models.mixtures.mixture import GaussianMixture

as_published = script("dp_em", "as_published")
PROBLEM = as_published.LIFE_SCIENCES


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    found = rng.standard_normal((4_000, 3)) * 0.1 + np.where(rng.random(4_000) < 0.4, -0.3, 0.3)[:, None]
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1)


def _start(diagonal):
    means, weights = np.array([[-0.2] * 3, [0.2] * 3]), np.array([0.5, 0.5])
    if diagonal:
        return GaussianMixture(weights, means, np.full((2, 3), 0.1), DiagonalCovariance())
    return GaussianMixture(weights, means, np.tile(0.1 * np.eye(3), (2, 1, 1)))


@pytest.mark.parametrize("name", as_published.FORMS)
def test_without_noise_every_form_finds_the_two_clusters(points, name):
    form = as_published.FORMS[name]
    found = form.fit(
        points, _start(form.diagonal), iterations=20, multiplier=0.0, epsilon_i=1e12, rng=np.random.default_rng(0)
    )
    assert found.means[:, 0] == pytest.approx([-0.3, 0.3], abs=0.02)
    assert found.weights == pytest.approx([0.4, 0.6], abs=0.03)
    variances = found.covariances if form.diagonal else np.einsum("kii->ki", found.covariances)
    assert variances == pytest.approx(0.01, abs=0.003)


def test_maximum_likelihood_has_no_prior_and_map_pulls_to_it(points):
    few = points[:40]
    free, pulled = (
        as_published.Printed(prior=prior).fit(
            few, _start(diagonal=False), iterations=1, multiplier=0.0, rng=np.random.default_rng(0)
        )
        for prior in (None, as_published.Prior(mean=1e6))
    )
    assert np.abs(pulled.means).max() < 1e-3 < np.abs(free.means).min()


@pytest.mark.parametrize("scenario", ["GGG", "LLG"])
def test_noise_of_means_has_the_printed_scale(points, scenario):
    """Standard deviation c·2/Ñ, or √2·2√d/(Ñ·ε) of Laplace, of one component that holds all."""
    start = GaussianMixture(np.ones(1), np.zeros((1, 3)), 0.1 * np.eye(3)[None])
    drawn = [
        as_published.Printed(scenario)
        .fit(points, start, iterations=1, multiplier=40.0, epsilon_i=0.5, rng=np.random.default_rng(seed))
        .means[0]
        for seed in range(400)
    ]
    wanted = 40 * 2 / 4_000 if scenario == "GGG" else math.sqrt(2) * 2 * math.sqrt(3) / (4_000 * 0.5)
    assert np.std(drawn, axis=0).mean() == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize("composition", as_published.PUBLISHED)
def test_the_same_noise_on_sums_would_cost_less_than_printed(composition):
    for scenario in ("GGG", "LLG"):
        epsilon_i = as_published.epsilon_i_of(PROBLEM, as_published.Printed(scenario), composition, 1.0)
        assert 0 < as_published.on_sums(PROBLEM, scenario, epsilon_i) < 1.0


def test_on_sums_is_the_gaussian_s_own():
    """Thirty Gaussians of twice the multiplier: one of multiplier 2c/√30."""
    from dp_accounting import gaussian_mechanism

    multiplier = as_published.gaussian_multiplier(0.1, PROBLEM.delta_i)
    wanted = gaussian_mechanism.get_epsilon_gaussian(2 * multiplier / math.sqrt(30), PROBLEM.delta)
    assert as_published.on_sums(PROBLEM, "GGG", 0.1) == pytest.approx(wanted)


def test_factor_analysis_costs_less_than_printed_and_more_to_replace():
    std, added, replaced = as_published.factor_noise(0.3, 400)
    assert std == pytest.approx(math.sqrt(2 * math.log(1.25e4)) / 0.3 / 400)
    assert added < 0.3
    assert added < replaced


def test_loadings_without_noise_are_found():
    rng = np.random.default_rng(1)
    truth = np.linalg.qr(rng.standard_normal((30, as_published.FACTORS)))[0]
    points = rng.standard_normal((5_000, as_published.FACTORS)) @ truth.T + 0.1 * rng.standard_normal((5_000, 30))
    found = np.linalg.qr(as_published.factors(points, 0.0, 0))[0]
    assert np.sum((found.T @ truth) ** 2) / as_published.FACTORS > 0.99


def test_it_says_that_it_is_not_private():
    assert as_published.NOT_PRIVATE.startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in as_published.__doc__
