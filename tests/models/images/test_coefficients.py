"""Images as coefficients and columns, and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cases import encoder_of, image_rows, image_schema
from harness.privacy import join
from sfumato.columns.kinds import Boolean, Image, Integer
from sfumato.errors import ConfigError
from sfumato.models.images.coefficients import AREA_BINS, ImageEncoder, ImageLayout, Lit, area_bins, touches_border
from sfumato.schema.schema import Schema

SHAPES = [(5,), (4, 4), (8, 9), (8, 8, 3)]


def encoders():
    return [encoder_of(*shape, pose=False) for shape in SHAPES] + [encoder_of(12, 10, pose=True)]


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


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float64"])
@pytest.mark.parametrize("bounds", [(0, 255), (-7.5, 3), (-1e308, 1e308), (0, 5e-324), (1e16, 1e16 + 2)])
@pytest.mark.parametrize("shape", [(5,), (4, 4), (2, 3, 3)])
def test_any_pixels_are_scaled_into_the_unit_interval(dtype, bounds, shape):
    kind = Image(shape=shape, dtype=dtype, lower=bounds[0], upper=bounds[1])
    layout = ImageLayout.of(Schema(columns={"x": kind}, rows=1))
    values = [0, 1, 100]
    if dtype.startswith("float"):
        values += [np.nan, np.inf, -np.inf, float(np.finfo(dtype).max), float(np.finfo(dtype).min), *bounds]
    with np.errstate(all="ignore"):
        pixels = np.stack([np.full(shape, value).astype(dtype) for value in values])
    pictures = layout.pictures(pixels)
    assert np.isfinite(pictures).all()
    assert pictures.min() >= 0
    assert pictures.max() <= 1
    assert pictures.shape == (len(values), *layout.picture)


@pytest.mark.parametrize("shape", SHAPES)
def test_pixels_come_back_in_their_shape(shape):
    layout = ImageLayout.of(image_schema(*shape))
    pixels = np.random.default_rng(0).random((6, *shape))
    pictures = layout.pictures(pixels)
    assert pictures.dtype == np.float32
    np.testing.assert_allclose(layout.pixels(pictures), pixels, atol=1e-6)
    assert layout.pixels(pictures).flags.c_contiguous


class TestLit:
    def test_by_their_definitions(self):
        pictures = np.random.default_rng(0).random((7, 1, 4, 5)) ** 2
        lit = Lit.of(pictures)
        for i, x in enumerate(pictures):
            assert lit.exposure[i] == pytest.approx((x**2).sum() / x.sum())
            assert lit.area[i] == pytest.approx(x.sum() ** 2 / (x**2).sum())
            assert lit.area[i] == pytest.approx(((x / lit.exposure[i]) ** 2).sum())

    def test_of_two_tones_it_is_the_number_of_lit_pixels(self):
        pictures = np.zeros((1, 1, 4, 4))
        pictures[0, 0, :2, :3] = 0.4
        lit = Lit.of(pictures)
        assert lit.exposure[0] == pytest.approx(0.4)
        assert lit.area[0] == pytest.approx(6)

    def test_an_empty_picture_and_a_dim_one(self):
        lit = Lit.of(np.stack([np.zeros((1, 3, 3)), np.full((1, 3, 3), 1e-30)]).astype(np.float32))
        assert lit.area.tolist() == pytest.approx([0, 9])
        assert lit.exposure[0] == 1
        assert 0 < lit.exposure[1] < 0.2

    def test_bins_cover_all_areas(self):
        d = 50
        bins = area_bins(np.array([0, 1e-9, d / 4, d]), d)
        assert bins.tolist() == [0, 0, AREA_BINS // 2, AREA_BINS - 1]
        assert (np.diff(area_bins(np.linspace(0, d, 999), d)) >= 0).all()


class TestEncoder:
    def test_norms_are_at_most_the_root_of_the_area(self):
        for encoder in encoders()[:-1]:
            rows = join(image_rows(20, encoder.layout.kind.shape)) if len(encoder.layout.kind.shape) > 1 else None
            pixels = np.random.default_rng(0).random((30, 5)) if rows is None else rows["x"]
            pictures = encoder.layout.pictures(pixels)
            coefficients = encoder.encode(pictures)[:, : encoder.layout.dimension]
            assert (np.linalg.norm(coefficients, axis=1) <= np.sqrt(Lit.of(pictures).area) * (1 + 1e-6)).all()

    @pytest.mark.parametrize("shape", SHAPES)
    def test_coefficients_are_an_isometry_and_come_back(self, shape):
        encoder = encoder_of(*shape, pose=False)
        pictures = encoder.layout.pictures(np.random.default_rng(0).random((9, *shape)))
        encoded = encoder.encode(pictures)
        d = encoder.layout.dimension
        assert encoded.shape == (9, d + encoder.n_columns)
        _, exposure, area = encoder.columns(encoded[:, d:])
        lit = Lit.of(pictures)
        np.testing.assert_allclose(exposure, lit.exposure, rtol=1e-6)
        np.testing.assert_allclose(area, lit.area, rtol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(encoded[:, :d], axis=1) ** 2, area, rtol=1e-5)
        canonical = encoder.canonical(encoded[:, :d])
        np.testing.assert_allclose(canonical * exposure[:, None, None, None], pictures, atol=1e-5)

    def test_posed_pictures_come_back(self):
        encoder = encoder_of(28, 28, pose=True)
        y, x = np.mgrid[:28, :28] - 13.5
        blobs = [np.exp(-(((x - a) / 4) ** 2 + ((y - b - 0.2 * x) / 5) ** 2)) for a, b in ((0, 0), (2, -1), (-1, 3))]
        pictures = encoder.layout.pictures(np.stack(blobs))
        encoded = encoder.encode(pictures)
        pose, exposure, _ = encoder.columns(encoded[:, 28 * 28 :])
        back = encoder.posed(encoder.canonical(encoded[:, : 28 * 28]), pose, outside=0.0)
        np.testing.assert_allclose(back * exposure[:, None, None, None], pictures, atol=0.06)

    def test_where_a_picture_does_not_reach_it_is_outside(self):
        encoder = encoder_of(8, 8, pose=True)
        moved = encoder.posed(np.ones((1, 1, 8, 8), np.float32), np.array([[3.0, 0, 0, 0, 0]]), outside=-4.0)
        assert (moved[0, 0, :, :2] == -4).all()
        np.testing.assert_allclose(moved[0, 0, :, 4:], 1, atol=1e-6)

    def test_low_frequencies_come_first(self):
        for encoder in encoders():
            assert encoder.frequency.shape == (encoder.layout.dimension,)
            assert (np.diff(encoder.frequency) >= 0).all()
            assert 1 <= encoder.n_low <= encoder.layout.dimension
        encoder = encoder_of(12, 10, pose=False)
        # a wave of frequency 11 down the picture ends in the last coefficients
        wave = np.cos(np.pi * 11 * (np.arange(12) + 0.5) / 12)[:, None] * np.ones(10) / 4 + 0.5
        encoded = encoder.encode(encoder.layout.pictures(wave[None]))[0, :120]
        far = np.flatnonzero(np.abs(encoded) > 0.1)
        assert encoder.frequency[far].tolist() == [0, 11]

    def test_columns_weigh_in_proportion_to_the_picture(self):
        small, large = encoder_of(8, 8, pose=True), encoder_of(16, 16, pose=True)
        assert small.column_weights.shape == (small.n_columns,) == (7,)
        assert (small.column_weights > 0).all()
        # shifts by a share of the side; root areas by a share of the root of d
        np.testing.assert_allclose(large.column_weights[:2], small.column_weights[:2])
        np.testing.assert_allclose(large.column_weights[2:-1], 2 * small.column_weights[2:-1])
        np.testing.assert_allclose(large.column_weights[-1], small.column_weights[-1])

    @given(seed=st.integers(0, 10**6), size=st.sampled_from([1.0, 1e6, 1e300, np.inf, np.nan]))
    @settings(max_examples=30, deadline=None)
    def test_any_columns_are_brought_into_range(self, seed, size):
        encoder = encoder_of(8, 8, pose=True)
        with np.errstate(all="ignore"):
            pose, exposure, area = encoder.columns(np.random.default_rng(seed).standard_normal((5, 7)) * size)
        assert np.isfinite(pose).all()
        assert ((exposure > 0) & (exposure <= 1)).all()
        assert ((area >= 0) & (area <= 64 * (1 + 1e-9))).all()

    @pytest.mark.parametrize("shape", [(4, 4), (8, 8), (8, 8, 3)])
    def test_the_worst_images_are_encoded(self, shape):
        encoder = encoder_of(*shape, pose=min(shape[:2]) >= 8)
        assert np.isfinite(encoder.encode(encoder.layout.pictures(join(image_rows(3, shape))["x"]))).all()


def test_only_large_pictures_have_a_pose():
    can = {shape: ImageLayout.of(image_schema(*shape)).can_be_posed for shape in [(64,), (4, 40), (8, 8), (9, 8, 3)]}
    assert list(can.values()) == [False, False, True, True]
    assert ImageEncoder(ImageLayout.of(image_schema(8, 8))).n_columns == 2


def test_borders():
    pictures = np.zeros((4, 1, 8, 8))
    pictures[1:, 0, 3:5, 3:5] = 1.0
    pictures[2, 0, 7, 2] = 0.9
    pictures[3, 0, 4, 0] = 0.3
    assert touches_border(pictures, Lit.of(pictures).exposure).tolist() == [False, False, True, False]
