"""Image moments, against direct computation."""

import numpy as np
import pytest

from harness.cases import IMAGES, image_rows
from harness.privacy import FakeRecords, join
from sfumato.data.engine import reduce
from sfumato.data.kinds import Boolean, Image, Integer
from sfumato.data.schema import Schema
from sfumato.errors import ConfigError
from sfumato.learners.images import ClassCounts, ClassSums, ImageLayout, ImageMoments, ResidualMoments
from sfumato.mechanisms.queries import Noisy

LAYOUT = ImageLayout.of(IMAGES)


def value(statistic, rows):
    return reduce(statistic, FakeRecords([rows])).open_in_mechanism()


def test_sums_and_counts():
    rows = join(image_rows(30)[:40])
    assert value(ClassCounts(LAYOUT), rows).tolist() == np.bincount(rows["y"], minlength=2).tolist()
    flat = rows["x"].reshape(40, -1)
    norms = np.linalg.norm(flat, axis=1)
    clipped = flat * np.minimum(1, LAYOUT.clip_norm / norms)[:, None] * (1 - 1e-6)
    expected = np.stack([clipped[rows["y"] == k].sum(axis=0) for k in (0, 1)])
    np.testing.assert_allclose(value(ClassSums(LAYOUT), rows), expected, rtol=1e-9)


def test_residual_moments_pool_or_part_the_classes():
    rows = join(image_rows(30)[:40])
    means = np.random.default_rng(0).random((2, 16))
    whole = value(ResidualMoments(LAYOUT, means), rows)
    parted = value(ResidualMoments(LAYOUT, means, np.eye(16)), rows)
    assert whole.shape == (1, 16, 16)
    np.testing.assert_allclose(parted.sum(axis=0), whole[0], rtol=1e-9)


@pytest.mark.parametrize(
    "columns",
    [
        {"x": Image(shape=(4, 4)), "z": Image(shape=(4, 4))},
        {"x": Image(shape=(4, 4)), "y": Boolean(), "w": Boolean()},
        {"x": Image(shape=(4, 4)), "y": Integer(lower=0, upper=9)},
        {"y": Boolean()},
        {"x": Image(shape=(200, 200))},
    ],
)
def test_what_is_no_stack_of_images_is_refused(columns):
    with pytest.raises(ConfigError, match=r"image"):
        ImageLayout.of(Schema(columns=columns, rows=1))


def test_axes_are_those_above_the_noise():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((30, 30)))[0]
    spectrum = np.r_[[900.0, 500.0, 300.0], np.zeros(27)]
    noise = rng.standard_normal((30, 30)) * 10
    pooled = Noisy(((basis * spectrum) @ basis.T + (noise + noise.T) / 2)[None], 10.0, symmetric=True)
    moments = ImageMoments(np.array([100.0]), np.zeros((1, 30)))
    axes = moments.axes(pooled, most=10)
    assert axes.shape == (30, 3)
    assert np.linalg.norm(axes.T @ basis[:, :3]) ** 2 == pytest.approx(3, abs=0.1)
    assert moments.axes(Noisy(np.zeros((1, 30, 30)), 10.0), most=10).shape == (30, 1)


def test_counts_below_the_noise_are_floored():
    moments = ImageMoments.of(Noisy(np.array([-5.0, 100.0]), 8.0), Noisy(np.ones((2, 16)), 1.0))
    assert moments.counts.tolist() == [8.0, 100.0]
    assert (moments.means >= 0).all()
    assert (moments.means <= 1).all()
