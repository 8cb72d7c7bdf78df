"""The four statistics of images, against direct computation."""

import numpy as np
import pytest

from harness.cases import encoder_of, image_rows
from harness.privacy import FakeRecords, contribution, join
from sfumato.columns.kinds import Boolean, Image
from sfumato.mechanisms.contributions import SAFETY
from sfumato.methods.images.statistics import ClassMoments, ClassSums, PooledMoment, Profiles
from sfumato.models.images.coefficients import ImageEncoder, ImageLayout, Lit, area_bins, touches_border
from sfumato.models.images.warps import pose_limits, poses
from sfumato.records.engine import reduce
from sfumato.schema.schema import Schema

SHAPE = (12, 12)
ENCODER = encoder_of(*SHAPE, pose=True)
D = ENCODER.layout.dimension
RNG = np.random.default_rng(0)
ROWS = {"x": RNG.random((40, *SHAPE)) ** 3, "y": RNG.integers(0, 2, 40).astype(np.int32)}
PICTURES = ENCODER.layout.pictures(ROWS["x"])
VECTORS = ENCODER.encode(PICTURES)
MEANS = RNG.standard_normal((2, VECTORS.shape[1]))
FAR = 20.0  # no vector is so long, less its mean or not
OF_ROUNDING = 1e-5  # each entry is off by up to norm/2^19


def value(statistic, rows=ROWS):
    return reduce(statistic, FakeRecords([rows])).open_in_mechanism()


def clipped(vectors, norm):
    return vectors * np.minimum(1, norm / np.linalg.norm(vectors, axis=1))[:, None] * SAFETY


def test_profiles():
    statistic = Profiles(ENCODER.layout)
    by_bin, rest = statistic.split(value(statistic))
    lit = Lit.of(PICTURES)
    bins = area_bins(lit.area, D)
    np.testing.assert_allclose(by_bin[:, -1], statistic.constant * np.bincount(bins, minlength=len(by_bin)))
    for b in range(len(by_bin)):
        curves = -np.sort(-PICTURES[bins == b].reshape(-1, D).astype(float), axis=1) / lit.exposure[bins == b, None]
        # below the bound by the weight of the bin: nothing is clipped
        np.testing.assert_allclose(by_bin[b, :-1], SAFETY * statistic.weights[b] * curves.sum(axis=0), atol=1e-5)
    shares = (poses(PICTURES[:, 0]) / pose_limits(*SHAPE) + 1) / 2
    np.testing.assert_allclose(rest[:-1], SAFETY * statistic.constant / np.sqrt(5) * shares.sum(axis=0), rtol=1e-5)
    touching = touches_border(PICTURES, lit.exposure).sum()
    assert rest[-1] == pytest.approx(statistic.constant * touching)


def test_profiles_are_never_negative():
    statistic = Profiles(ENCODER.layout)
    assert min(contribution(statistic, row).min() for row in image_rows(20, SHAPE)) >= 0


@pytest.mark.parametrize("norm", [0.5, FAR])
def test_class_sums(norm):
    total = value(ClassSums(ENCODER, norm))
    for k in (0, 1):
        members = ROWS["y"] == k
        np.testing.assert_allclose(total[k, :-1], clipped(VECTORS, norm)[members].sum(axis=0), atol=3e-7 * norm)
        assert total[k, -1] == pytest.approx(0.1 * norm * members.sum())


@pytest.mark.parametrize("norm", [0.5, FAR])
def test_pooled_moment(norm):
    total = value(PooledMoment(ENCODER, MEANS, norm))
    residuals = clipped((VECTORS - MEANS[ROWS["y"]])[:, :D], norm)
    low = ENCODER.n_low
    assert low < D
    np.testing.assert_allclose(
        total[:low, :low], residuals[:, :low].T @ residuals[:, :low], rtol=2e-5, atol=OF_ROUNDING * norm**2
    )
    for i, frequency in enumerate(np.unique(ENCODER.frequency[low:])):
        energy = (residuals[:, ENCODER.frequency == frequency] ** 2).sum()
        assert total[low + i, low + i] == pytest.approx(energy, rel=2e-5, abs=OF_ROUNDING * norm**2)
    assert np.trace(total) == pytest.approx((residuals**2).sum(), rel=2e-5)
    assert not total[:low, low:].any()


@pytest.mark.parametrize("norm", [0.5, FAR])
def test_class_moments(norm):
    axes = np.linalg.qr(RNG.standard_normal((ENCODER.n_low, 4)))[0]
    total = value(ClassMoments(ENCODER, MEANS, axes, norm))
    residuals = VECTORS - MEANS[ROWS["y"]]
    along = clipped(np.hstack([residuals[:, : ENCODER.n_low] @ axes, residuals[:, D:]]), norm)
    for k in (0, 1):
        members = along[ROWS["y"] == k]
        np.testing.assert_allclose(total[k], members.T @ members, rtol=2e-5, atol=OF_ROUNDING * norm**2)


@pytest.mark.parametrize("shape", [(8, 8), (28, 28), (9, 9, 3)])
def test_no_image_changes_sides_with_its_place_among_others(shape):
    """Bins and borders are steps: a rounding that depends on the other rows could move many images across one."""
    encoder = encoder_of(*shape, pose=False)
    images = np.concatenate([join(image_rows(5, shape))["x"], np.random.default_rng(0).random((60, *shape)) ** 4])
    pictures = encoder.layout.pictures(images)
    whole = Lit.of(pictures)
    for start in (1, 2, 3, 17):
        part = Lit.of(encoder.layout.pictures(images[start:].copy()))
        np.testing.assert_array_equal(part.area, whole.area[start:])
        np.testing.assert_array_equal(part.exposure, whole.exposure[start:])
    alone = [Lit.of(encoder.layout.pictures(image[None])) for image in images]
    np.testing.assert_array_equal([lit.area[0] for lit in alone], whole.area)
    np.testing.assert_array_equal([lit.exposure[0] for lit in alone], whole.exposure)


def test_one_image_of_pixels_out_of_range_does_not_raise():
    # bounds further apart than the largest number once overflowed to NaN, and NaN has no bin
    kind = Image(shape=(8, 8), dtype="float64", lower=-1e308, upper=1e308)
    layout = ImageLayout.of(Schema(columns={"x": kind, "y": Boolean()}, rows=1))
    for pixel in (-1e308, 0.0, 1e308, np.inf, np.nan):
        row = {"x": np.full((1, 8, 8), pixel), "y": np.zeros(1, np.int32)}
        for statistic in (Profiles(layout), ClassSums(ImageEncoder(layout, np.zeros(5)), 2.0)):
            added = contribution(statistic, row)
            assert np.isfinite(added).all()
            assert np.linalg.norm(added) <= statistic.norm_bound
