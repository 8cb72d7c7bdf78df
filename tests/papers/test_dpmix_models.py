"""The models of papers/dpmix find single images' classes in the moments of noisy mixtures."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

DEGREE, SIGMA, SIDE = 16, 0.1, 8


@pytest.fixture(scope="module")
def models():
    sys.path.insert(0, str(Path(__file__).parents[2] / "papers" / "dpmix"))
    try:
        return import_module("discriminant"), import_module("drawn")
    finally:
        sys.path.pop(0)


def pictures(n, seed):
    """Bright on the left, above or in the middle."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=n)
    images = 0.3 * rng.random((n, SIDE, SIDE))
    for k, place in enumerate((np.s_[:, :, :3], np.s_[:, :3, :], np.s_[:, 3:5, 3:5])):
        images[place] += 0.4 * (classes == k)[:, None, None]
    return images, classes


def mixtures(poisson):
    x, y = pictures(2000, 0)
    rng = np.random.default_rng(1)
    sizes = rng.poisson(DEGREE, 20_000) if poisson else np.full(20_000, DEGREE)
    members = np.repeat(np.arange(20_000), sizes)
    chosen = rng.integers(2000, size=len(members))
    made, labels = np.zeros((20_000, SIDE, SIDE)), np.zeros((20_000, 3))
    np.add.at(made, members, x[chosen] / DEGREE)
    np.add.at(labels, members, np.eye(3)[y[chosen]] / DEGREE)
    noisy = (made + SIGMA * rng.standard_normal(made.shape)).astype(np.float32)
    return noisy, (labels + SIGMA * rng.standard_normal(labels.shape)).astype(np.float32)


@pytest.mark.parametrize("poisson", [True, False])
def test_single_images_are_classified(models, poisson):
    discriminant, drawn = models
    x, y = mixtures(poisson)
    images, classes = pictures(500, 2)
    model = discriminant.Discriminant(x, y, SIGMA, DEGREE, poisson=poisson)
    assert (model.predict(images) == classes).mean() > 0.95
    source = drawn.ImageModel(x, y, SIGMA, DEGREE, poisson=poisson)
    made, labels = source.draw(600, 3)
    mapped = source.images(images)
    for k in range(3):  # drawn images have the classes' means
        apart = made[labels[:, k] == 1].mean(0) - mapped[classes == k].mean(0)
        assert np.abs(apart).max() < 0.12


@pytest.mark.parametrize("poisson", [True, False])
def test_the_moments_are_those_of_single_images(models, poisson):
    discriminant, _ = models
    x, y = mixtures(poisson)
    images, classes = pictures(2000, 0)
    _, inner, cross = discriminant.moments(x, y, SIGMA, DEGREE, poisson=poisson)
    rows = images.reshape(2000, -1)
    np.testing.assert_allclose(DEGREE * inner, np.cov(rows.T), atol=0.03)
    np.testing.assert_allclose(
        DEGREE * cross, (rows - rows.mean(0)).T @ (np.eye(3)[classes] - np.eye(3)[classes].mean(0)) / 2000, atol=0.03
    )
