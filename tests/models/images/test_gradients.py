"""Histograms of oriented gradients."""

import numpy as np
import pytest

from harness.cases import encoder_of
from sfumato.models.images.gradients import gradient_features, n_features


@pytest.mark.parametrize("shape", [(28, 28), (8, 8), (9, 13), (16, 16, 3), (2, 3), (5,)])
def test_any_pictures_have_finite_features_each_of_its_own(shape):
    encoder = encoder_of(*shape, pose=False)
    channels, height, width = encoder.layout.picture
    pictures = np.random.default_rng(0).random((30, channels, height, width), dtype=np.float32)
    features = gradient_features(pictures, encoder)
    assert features.shape == (30, n_features(encoder))
    assert np.isfinite(features).all()
    assert (features >= 0).all()
    np.testing.assert_allclose(features[[7]], gradient_features(pictures[[7]], encoder), atol=1e-5)
    assert gradient_features(pictures[:0], encoder).shape == (0, features.shape[1])


def test_turning_a_picture_moves_its_orientations():
    encoder = encoder_of(28, 28, pose=False)
    assert n_features(encoder) == 833
    picture = np.zeros((1, 1, 28, 28), dtype=np.float32)
    picture[..., 6:22, 12:16] = 1
    low = 49

    def by_orientation(pixels):
        return (gradient_features(pixels, encoder)[0, low : low + 8 * 49] ** 2).reshape(8, 49).sum(axis=1)

    upright, across = by_orientation(picture), by_orientation(picture.transpose(0, 1, 3, 2).copy())
    assert upright.argmax() == 0
    assert across.argmax() == 4
    np.testing.assert_allclose(np.roll(upright, 4), across, rtol=0.2, atol=0.05)


def test_brightness_does_not_matter():
    encoder = encoder_of(12, 12, pose=False)
    pictures = np.random.default_rng(0).random((5, 1, 12, 12), dtype=np.float32)
    np.testing.assert_allclose(
        gradient_features(pictures, encoder), gradient_features(0.5 * pictures, encoder), rtol=1e-4, atol=1e-5
    )
