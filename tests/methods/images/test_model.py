"""What released statistics of images become: the truth without noise, valid arrays with nothing but noise."""

import numpy as np
import pytest

from harness.cases import encoder_of, image_schema
from harness.privacy import FakeRecords
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.images.model import (
    ClassMeans,
    Intensities,
    Spread,
    class_factors,
    sampler_arrays,
    sums_clip_norm,
)
from sfumato.methods.images.statistics import ClassMoments, ClassSums, PooledMoment, Profiles
from sfumato.models.images.coefficients import AREA_BINS, Lit, area_bins
from sfumato.models.images.warps import pose_limits
from sfumato.records.engine import reduce
from sfumato.release.samplers import build_sampler

SHAPE = (12, 12)
ENCODER = encoder_of(*SHAPE, pose=True)
D = ENCODER.layout.dimension


def rows_of(n, seed=0):
    """Blobs above or below the middle, by class, that differ in height and brightness."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n).astype(np.int32)
    y, x = np.mgrid[:12, :12] - 5.5
    middle = rng.normal(size=(n, 2)) * 0.5 + np.stack([np.zeros(n), 3 * labels - 1.5], axis=1)
    sizes = rng.uniform(1.5, 2.5, (2, n, 1, 1))
    across, down = x - middle[:, 0, None, None], y - middle[:, 1, None, None]
    blobs = np.exp(-((across / sizes[0]) ** 2 + (down / sizes[1]) ** 2) / 2)
    return {"x": blobs * rng.uniform(0.5, 1, (n, 1, 1)), "y": labels}


ROWS = rows_of(1500)


def exact(statistic, rows=ROWS, noise_std=1e-9):
    return Noisy(reduce(statistic, FakeRecords([rows])).open_in_mechanism(), noise_std, symmetric=True)


def fitted(rows=ROWS, noise=lambda statistic: exact(statistic)):
    """The four steps, without budget."""
    profiles = Profiles(ENCODER.layout)
    intensities = Intensities.of(profiles, noise(profiles))
    sums = ClassSums(ENCODER, sums_clip_norm(intensities, ENCODER) * 3)
    known = ClassMeans.of(sums, noise(sums), intensities.area)
    pooled = PooledMoment(ENCODER, known.means, known.clip_norm * 5)
    spread = Spread.of(pooled, noise(pooled), float(known.counts.sum()))
    moments = ClassMoments(ENCODER, known.means, spread.axes, spread.clip_norm * 5)
    return intensities, known, spread, class_factors(noise(moments), known.counts)


@pytest.fixture(scope="module")
def truth():
    return fitted()


class TestWithoutNoise:
    def test_intensities(self, truth):
        lit = Lit.of(ENCODER.layout.pictures(ROWS["x"]))
        intensities = truth[0]
        assert intensities.area == pytest.approx(lit.area.mean(), rel=0.1)
        assert intensities.bordered < 0.5
        assert intensities.curves.shape == (AREA_BINS, D)
        assert (np.diff(intensities.curves, axis=1) <= 1e-12).all()
        # a curve ÷ exposure has the area of its bin
        common = np.bincount(area_bins(lit.area, D)).argmax()
        area = intensities.curves[common].sum()
        assert area == pytest.approx(lit.area[area_bins(lit.area, D) == common].mean(), rel=0.15)

    def test_shares_and_means(self, truth):
        known = truth[1]
        counts = np.bincount(ROWS["y"])
        np.testing.assert_allclose(known.counts, counts, rtol=1e-5)
        vectors = ENCODER.encode(ENCODER.layout.pictures(ROWS["x"]))
        for k in (0, 1):
            np.testing.assert_allclose(known.means[k], vectors[ROWS["y"] == k].mean(axis=0), atol=0.05)

    def test_residuals_are_what_means_do_not_explain(self):
        # posing changes norms, and with them what is left of the area
        encoder = encoder_of(*SHAPE, pose=False)
        vectors = encoder.encode(encoder.layout.pictures(ROWS["x"]))
        statistic = ClassSums(encoder, 1e3)
        area = Lit.of(encoder.layout.pictures(ROWS["x"])).area.mean()
        known = ClassMeans.of(statistic, exact(statistic), area)
        residuals = (vectors - known.means[ROWS["y"]])[:, :D]
        assert known.residual == pytest.approx((residuals**2).sum(axis=1).mean(), rel=0.02)

    def test_variances_along_and_beside_the_axes_add_up(self, truth):
        known, spread = truth[1], truth[2]
        vectors = ENCODER.encode(ENCODER.layout.pictures(ROWS["x"]))
        residuals = (vectors - known.means[ROWS["y"]])[:, :D]
        q = spread.axes.shape[1]
        np.testing.assert_allclose(spread.axes.T @ spread.axes, np.eye(q), atol=1e-9)
        along = ((residuals[:, : ENCODER.n_low] @ spread.axes) ** 2).sum(axis=1).mean()
        beside = (spread.residual_std**2).sum()
        assert along + beside == pytest.approx((residuals**2).sum(axis=1).mean(), rel=0.05)
        assert along > 10 * beside

    def test_covariances_of_each_class(self, truth):
        _, known, spread, factors = truth
        vectors = ENCODER.encode(ENCODER.layout.pictures(ROWS["x"]))
        residuals = vectors - known.means[ROWS["y"]]
        along = np.hstack([residuals[:, : ENCODER.n_low] @ spread.axes, residuals[:, D:]])
        for k in (0, 1):
            members = along[ROWS["y"] == k]
            largest = np.linalg.norm(members.T @ members / len(members), 2)
            difference = factors[k] @ factors[k].T - members.T @ members / len(members)
            assert np.linalg.norm(difference, 2) < 0.1 * largest


def with_noise(size, seed, rows):
    rng = np.random.default_rng(seed)

    def noisy(statistic):
        value = reduce(statistic, FakeRecords([rows])).open_in_mechanism()
        std = size * statistic.norm_bound
        draws = rng.standard_normal(value.shape) * std
        if isinstance(statistic, PooledMoment | ClassMoments):
            draws = (draws + np.swapaxes(draws, -1, -2)) / 2
        return Noisy(value + draws, std, symmetric=True)

    return noisy


@pytest.mark.parametrize("size", [1.0, 1e3, 1e8])
@pytest.mark.parametrize("rows", [ROWS, rows_of(1), {"x": np.zeros((0, *SHAPE)), "y": np.zeros(0, np.int32)}])
@pytest.mark.parametrize("seed", range(2))
def test_whatever_the_noise_arrays_are_those_of_a_sampler(size, rows, seed):
    intensities, known, spread, factors = fitted(rows, with_noise(size, seed, rows))
    assert known.residual > 0
    assert spread.clip_norm > 0
    assert (known.counts > 0).all()
    assert 0 <= intensities.bordered <= 1
    assert 0 < intensities.area <= D
    assert (np.abs(intensities.pose) <= pose_limits(*SHAPE)).all()
    assert ((intensities.curves >= 0) & (intensities.curves <= 20)).all()
    assert intensities.curves.any(axis=1).all()
    schema_arrays = sampler_arrays(intensities, known, spread, factors, ENCODER)
    schema = image_schema(*SHAPE)
    sampler = build_sampler(schema, {"name": "image_portrait", "image": "x", "label": "y"}, schema_arrays)
    x = sampler.rows(20, np.random.default_rng(0))["x"]
    assert ((x >= 0) & (x <= 1)).all()


@pytest.mark.parametrize("seed", range(4))
def test_images_have_their_light_where_counts_of_bins_are_below_their_noise(seed):
    statistic = Profiles(ENCODER.layout)
    intensities = Intensities.of(statistic, with_noise(10, seed, ROWS)(statistic))
    lit = Lit.of(ENCODER.layout.pictures(ROWS["x"]))
    light = intensities.curves[area_bins(lit.area, D)].sum(axis=1) / lit.area
    assert np.abs(light - 1).mean() < 0.08
    assert light.min() > 0.7


def test_a_class_without_images_takes_after_the_others():
    pooled = np.diag([4.0, 3.0, 2.0, 1.0])
    factors = class_factors(Noisy(np.stack([1000 * pooled, np.zeros((4, 4))]), 5.0), np.array([1000.0, 1.0]))
    np.testing.assert_allclose(factors[1] @ factors[1].T, pooled, rtol=0.01)
    np.testing.assert_allclose(factors[0] @ factors[0].T, pooled, rtol=0.01)


def test_means_are_shrunk_to_nothing_where_there_is_nothing_but_noise():
    statistic = ClassSums(ENCODER, 1.0)
    value = np.random.default_rng(0).standard_normal(statistic.zero().shape)
    value[:, -1] = 1000 * statistic.constant
    noisy = Noisy(value, 1.0)
    raw = np.linalg.norm(value[:, :D] / 1000)
    assert np.linalg.norm(ClassMeans.of(statistic, noisy, 10.0).means[:, :D]) < 0.5 * raw


def test_axes_are_those_above_the_noise():
    rng = np.random.default_rng(0)
    statistic = PooledMoment(ENCODER, np.zeros((2, D + ENCODER.n_columns)), 1.0)
    low, size = ENCODER.n_low, len(statistic.zero())
    basis = np.linalg.qr(rng.standard_normal((low, low)))[0]
    noise = rng.standard_normal((size, size)) * 10
    value = (noise + noise.T) / 2
    value[:low, :low] += (basis * np.r_[[1900.0, 1500.0, 1300.0], np.zeros(low - 3)]) @ basis.T
    spread = Spread.of(statistic, Noisy(value, 10.0, symmetric=True), 100.0)
    assert 3 <= spread.axes.shape[1] <= 4  # the edge is where the largest eigenvalue of noise lies on average
    assert np.linalg.norm(spread.axes[:, :3].T @ basis[:, :3]) ** 2 == pytest.approx(3, abs=0.2)
    nothing = Spread.of(statistic, Noisy(np.zeros((size, size)), 10.0, symmetric=True), 100.0)
    assert nothing.axes.shape == (low, 1)
    assert np.isfinite(nothing.residual_std).all()
