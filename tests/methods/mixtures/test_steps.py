"""The M-step on exact moments against direct formulas, and on moments that noise has spoilt."""

import numpy as np
import pytest

from fixtures.moments import weighted_seconds
from sfumato.errors import ConfigError
from sfumato.maths.gaussian import smat
from sfumato.methods.mixtures.steps import MAP, MixtureMoments, MomentStart, MStep, random_start
from sfumato.models.mixtures.covariances import FORMS

SILENT = (0.0, 0.0, 0.0)


def moments_of(form, points, shares, noise_stds=SILENT):
    seconds = weighted_seconds(form, points, shares) if form.per_component else points.T @ points
    return MixtureMoments(shares.sum(axis=0), shares.T @ points, seconds, noise_stds)


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    return 0.2 * rng.standard_normal((400, 3)) + 0.1, rng.dirichlet(np.ones(2), 400)


def start_of(form, k=2, q=3):
    return random_start(k, np.full(q, 0.3), form=form, rng=np.random.default_rng(1))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_map_is_the_mode_of_the_posterior(form, records):
    """Scatter about the own mean, the prior's scatter and the pull of its mean, as the textbook adds them up."""
    points, shares = records
    prior = MAP(concentration=3.0, mean_strength=5.0, degrees=6.0, variance=0.4)
    found = MStep(estimate=prior)(moments_of(form, points, shares), start_of(form))
    masses = shares.sum(axis=0)
    np.testing.assert_allclose(found.weights, (masses + 2) / (400 + 4))
    exact = shares.T @ points / masses[:, None]
    np.testing.assert_allclose(found.means, exact * (masses / (masses + 5))[:, None])
    scatters = np.stack([
        (shares[:, k, None] * (points - exact[k])).T @ (points - exact[k])
        + 5 * masses[k] / (5 + masses[k]) * np.outer(exact[k], exact[k])
        for k in range(2)
    ])  # fmt: skip
    prior_scatter, extra = 0.4 * np.eye(3), 6 + 3 + 2
    if form.name == "tied":
        expected = (prior_scatter + scatters.sum(axis=0)) / (400 + extra)
    else:
        full = (prior_scatter + scatters) / (masses + extra)[:, None, None]
        diagonal = np.einsum("kii->ki", full)
        expected = {"full": full, "diagonal": diagonal, "spherical": diagonal.mean(axis=1)}[form.name]
    np.testing.assert_allclose(found.covariances, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_negative_masses_and_indefinite_moments_give_a_mixture(form, records):
    points, shares = records
    noise = np.random.default_rng(2)
    exact = moments_of(form, points, shares)
    for scale in (1e2, 1e4, 1e8):
        seconds = exact.seconds + scale * noise.standard_normal(exact.seconds.shape)
        spoilt = MixtureMoments(
            exact.masses + scale * noise.standard_normal(2), exact.sums + scale * noise.standard_normal((2, 3)),
            seconds, (scale, scale, scale),
        )  # fmt: skip
        found = MStep()(spoilt, start_of(form))
        assert np.linalg.norm(found.means, axis=1).max() <= 1 + 1e-12
        values = np.linalg.eigvalsh(found.dense_covariances())
        assert values.min() > 0
        assert values.max() <= 1 + 1e-9


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_if_no_component_is_alive_all_stay(form, records):
    points, shares = records
    start = start_of(form)
    found = MStep()(moments_of(form, points, shares, (1e6, 0.0, 0.0)), start)
    np.testing.assert_array_equal(found.means, start.means)
    if form.per_component:
        np.testing.assert_array_equal(found.covariances, start.covariances)


def test_covariances_are_not_below_the_level_of_their_noise(records):
    points, shares = records
    form = FORMS["full"]
    noise = (1.0, 1.0, 4.0)
    found = MStep()(moments_of(form, 1e-3 * points, shares, noise), start_of(form))
    masses = shares.sum(axis=0)
    floors = 4.0 * np.sqrt(3) / masses
    np.testing.assert_allclose(np.linalg.eigvalsh(found.covariances).min(axis=1), floors)


def test_blending_averages_moments_and_their_noise():
    rng = np.random.default_rng(3)
    parts = [MixtureMoments(rng.random(2), rng.random((2, 3)), rng.random((2, 6)), (1.0, 2.0, 3.0)) for _ in range(4)]
    average = parts[0]
    for i, part in enumerate(parts[1:], start=1):
        average = average.blend(part, 1 / (i + 1))
    np.testing.assert_allclose(average.sums, np.mean([part.sums for part in parts], axis=0))
    assert average.noise_stds == pytest.approx((0.5, 1.0, 1.5))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_bought_start_lies_about_the_released_gaussian(form):
    rng = np.random.default_rng(4)
    points = 0.1 * rng.standard_normal((2000, 3)) + np.array([0.5, 0.0, -0.2])
    start = MomentStart(n_components=50, form=form, dimension=3, rng=rng)
    whole = MStep()(moments_of(form, points, np.ones((2000, 1))), start.single())
    mixture = start.spread(whole)
    np.testing.assert_allclose(mixture.means.mean(axis=0), [0.5, 0.0, -0.2], atol=0.01)
    np.testing.assert_allclose(mixture.means.std(axis=0), 0.1, atol=0.05)
    np.testing.assert_allclose(mixture.dense_covariances(), np.broadcast_to(0.01 * np.eye(3), (50, 3, 3)), atol=2e-3)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: MAP(concentration=0.5), "concentration"),
        (lambda: MAP(mean_strength=0), "mean_strength"),
        (lambda: MAP(variance=-1), "variance"),
        (lambda: MAP(degrees=0), "degrees"),
    ],
)
def test_settings_outside_their_domain_are_refused(make, match):
    with pytest.raises(ConfigError, match=match):
        make()


def test_smat_of_a_full_second_moment(records):
    points, _ = records
    found = smat(weighted_seconds(FORMS["full"], points, np.ones((400, 1))))[0]
    np.testing.assert_allclose(found, points.T @ points)
