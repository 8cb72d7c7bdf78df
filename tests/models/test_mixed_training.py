"""Classifiers trained on mixtures classify single records."""

import numpy as np
import pytest

from sfumato.errors import ConfigError
from sfumato.models.mixed_training import MixtureTraining, train_on_mixtures

QUICK = MixtureTraining(network="fc", epochs=8, batch_size=32, learning_rate=3e-3)


def blobs(n, seed=0, d=6):
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=n)
    return np.eye(3, d)[classes] + 0.2 * rng.standard_normal((n, d)), classes


def mixed(n, degree, seed=0):
    x, y = blobs(4 * n, seed)
    members = np.random.default_rng(seed + 1).integers(4 * n, size=(n, degree))
    noise = np.random.default_rng(seed + 2).standard_normal((n, 3)) * 0.05
    return x[members].mean(axis=1), np.eye(3)[y][members].mean(axis=1) + noise


def test_vectors():
    x, y = blobs(500, seed=9)
    seen = []
    classifier = train_on_mixtures(
        *mixed(1500, 4), training=QUICK, progress=lambda epoch, so_far: seen.append((epoch, so_far.predict(x).shape))
    )
    assert (classifier.predict(x) == y).mean() > 0.95
    assert seen == [(epoch, (500,)) for epoch in range(1, 9)]
    assert classifier.predict(x[:0]).shape == (0,)


@pytest.mark.parametrize("shape", [(28, 28), (3, 16, 32)])
def test_images(shape):
    rng = np.random.default_rng(0)
    classes = rng.integers(2, size=256)
    images = rng.random((256, *shape)).astype(np.float32) * 0.1
    images[classes == 1, ..., :8] += 1
    training = MixtureTraining(epochs=3, batch_size=16, learning_rate=1e-3)
    classifier = train_on_mixtures(images, np.eye(2)[classes], training=training)
    assert (classifier.predict(images) == classes).mean() > 0.95


def test_the_seed():
    x = blobs(100)[0]
    data = mixed(200, 2)
    one, two = (train_on_mixtures(*data, training=QUICK, seed=seed).predict(x) for seed in (1, 1))
    assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("features", "labels", "named"),
    [
        (np.zeros((4, 8, 8)), np.zeros((4, 2)), "16 to 32 pixels"),
        (np.zeros((4, 5)), np.zeros((4, 2)), "images"),
        (np.full((4, 28, 28), np.nan), np.zeros((4, 2)), "finite features"),
        (np.zeros((4, 28, 28)), np.zeros((3, 2)), "labels"),
        (np.zeros((4, 28, 28)), np.zeros(4), "labels"),
    ],
)
def test_wrong_data(features, labels, named):
    with pytest.raises(ConfigError, match=named):
        train_on_mixtures(features, labels)


@pytest.mark.parametrize(
    "bad", [{"network": "rnn"}, {"epochs": 0}, {"batch_size": 0}, {"learning_rate": -1.0}, {"halve_every": 0}]
)
def test_wrong_settings(bad):
    with pytest.raises(ConfigError):
        MixtureTraining(**bad)
