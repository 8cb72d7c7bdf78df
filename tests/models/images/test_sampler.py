"""Pictures drawn from a release: of its parameters, and within bounds whatever they are."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from harness.cases import POSE, encoder_of
from sfumato.columns.kinds import Boolean, Image
from sfumato.errors import ReleaseError
from sfumato.models.images.coefficients import AREA_BINS, ImageEncoder, ImageLayout, Lit
from sfumato.models.images.gradients import gradient_features, n_features
from sfumato.models.images.sampler import ImagePortrait
from sfumato.release import SourceForm
from sfumato.release.samplers import build_sampler
from sfumato.release_front import Release
from sfumato.schema.schema import Schema

SETTINGS = {"name": ImagePortrait.name, "image": "x", "label": "y"}


def schema_of(shape=(8, 8), dtype="float64", lower=0.0, upper=1.0):
    return Schema(columns={"x": Image(shape=shape, dtype=dtype, lower=lower, upper=upper), "y": Boolean()}, rows=10)


def parameters_of(schema, rng, size=1.0, *, pose=True, axes=3):
    layout = ImageLayout.of(schema)
    encoder = ImageEncoder(layout, POSE if pose else None)
    k, d, wide = layout.n_classes, layout.dimension, axes + encoder.n_columns
    arrays = {
        "class_shares": np.full(k, 1 / k),
        "means": rng.uniform(-1, 1, (k, d + encoder.n_columns)) * size,
        "axes": rng.uniform(-1, 1, (encoder.n_low, axes)) * size,
        "factors": rng.uniform(-1, 1, (k, wide, wide)) * size,
        "residual_std": rng.uniform(-1, 1, d) * size,
        "profiles": rng.uniform(-1, 1, (AREA_BINS, d)) * size,
    }
    return arrays | {"reference": POSE * size} if pose else arrays


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("bounds", [(0, 1), (-7.5, 300), (-1e308, 1e308)])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e30, 1e308])
def test_pixels_of_any_parameters_stay_in_the_bounds(dtype, bounds, size):
    lower, upper = bounds
    rng = np.random.default_rng(0)
    for shape, pose in (((2, 3), False), ((8, 8), True)):
        schema = schema_of(shape, dtype, lower, upper)
        for extra in ({}, {"spread": 4, "elastic": 4.0, "jitter": 4}):
            sampler = build_sampler(schema, SETTINGS | extra, parameters_of(schema, rng, size, pose=pose))
            x = sampler.rows(50, rng)["x"]
            assert x.shape == (50, *shape)
            assert x.dtype == dtype
            assert np.isfinite(x).all()
            limits = np.iinfo(dtype) if x.dtype.kind in "iu" else np.finfo(dtype)
            least, most = max(lower, float(limits.min)), min(upper, float(limits.max))
            assert (x.astype(float) >= np.floor(least)).all()
            assert (x.astype(float) <= np.ceil(most)).all()


@pytest.mark.parametrize("name", ["class_shares", "means", "axes", "factors", "residual_std", "profiles", "reference"])
@pytest.mark.parametrize("harm", ["shape", "longer", "dtype", "nan", "missing"])
def test_malformed_arrays_are_refused(name, harm):
    schema = schema_of()
    parameters = parameters_of(schema, np.random.default_rng(0))
    array = parameters.pop(name)
    if harm == "missing":
        if name == "reference":
            return  # an unposed release has fewer columns
    else:
        spoilt = array.copy()
        spoilt.flat[0] = np.nan
        parameters[name] = {
            "shape": array[None],
            "longer": np.concatenate([array, array]),
            "dtype": array.astype(np.float32),
            "nan": spoilt,
        }[harm]
    with pytest.raises(ReleaseError):
        build_sampler(schema, SETTINGS, parameters)


def test_a_pose_belongs_to_pictures_and_its_columns():
    posed = parameters_of(schema_of(), np.random.default_rng(0))
    with pytest.raises(ReleaseError):
        build_sampler(schema_of(), SETTINGS, {name: a for name, a in posed.items() if name != "reference"})
    tiny = parameters_of(schema_of((4, 4)), np.random.default_rng(0), pose=False)
    with pytest.raises(ReleaseError, match="pose"):
        build_sampler(schema_of((4, 4)), SETTINGS, tiny | {"reference": POSE})


@pytest.mark.parametrize("name", ["spread", "elastic", "jitter"])
@pytest.mark.parametrize("value", [-0.1, 4.1, float("nan"), float("inf"), "1", True, None, [1], 10**400])
def test_malformed_settings_are_refused(name, value):
    with pytest.raises(ReleaseError, match=name):
        build_sampler(schema_of(), SETTINGS | {name: value}, parameters_of(schema_of(), np.random.default_rng(0)))


@pytest.mark.parametrize(
    "names", [{"image": "y", "label": "x"}, {"label": None}, {"image": None}, {"image": ["x"]}, {"label": 3}]
)
def test_settings_that_name_other_columns_are_refused(names):
    with pytest.raises(ReleaseError):
        build_sampler(schema_of(), SETTINGS | names, parameters_of(schema_of(), np.random.default_rng(0)))


def test_a_given_class():
    sampler = build_sampler(schema_of(), SETTINGS, parameters_of(schema_of(), np.random.default_rng(0)))
    rng = np.random.default_rng(0)
    assert (sampler.given({"y": 1.0}).rows(50, rng)["y"] == 1).all()
    assert len(np.unique(sampler.given({}).rows(50, rng)["y"])) == 2
    assert len(np.unique(sampler.rows(50, rng)["y"])) == 2


def model(shape=(8, 8)):
    """A release of pictures without pose whose coefficients, exposures and areas are known."""
    rng = np.random.default_rng(1)
    encoder = encoder_of(*shape, pose=False)
    d, m = encoder.layout.dimension, encoder.n_columns
    blobs = np.exp(-((np.mgrid[: shape[0], : shape[1]] - 3.0) ** 2).sum(axis=0) / 6)[None]
    means = encoder.encode(encoder.layout.pictures(np.concatenate([blobs, blobs[:, ::-1, ::-1]])))
    means[:, d:] = np.array([np.log(0.5), np.sqrt(d / 4)]) * encoder.column_weights
    rank = np.arange(d)
    # a curve per bin whose area is the bin's
    areas = d * ((np.arange(AREA_BINS) + 0.5) / AREA_BINS) ** 2
    parameters = {
        "class_shares": np.array([0.3, 0.7]),
        "means": means,
        "axes": np.linalg.qr(rng.standard_normal((encoder.n_low, 2)))[0],
        "factors": np.tile(np.diag([0.1, 0.1] + [0.02] * m), (2, 1, 1)),
        "residual_std": np.full(d, 0.01),
        "profiles": np.clip(areas[:, None] - rank, 0, 1),
    }
    return encoder, parameters


def test_samples_have_the_released_shares_exposure_and_area():
    encoder, parameters = model()
    sampler = build_sampler(schema_of(), SETTINGS, parameters)
    rows = sampler.rows(2000, np.random.default_rng(0))
    assert rows["y"].mean() == pytest.approx(0.7, abs=0.05)
    lit = Lit.of(encoder.layout.pictures(rows["x"]))
    assert lit.exposure.mean() == pytest.approx(0.5, rel=0.05)
    # the middle of the bins around a quarter lit
    assert np.sqrt(lit.area).mean() == pytest.approx(np.sqrt(64 / 4), rel=0.05)


def test_samples_show_their_class_and_the_order_of_its_mean():
    encoder, parameters = model()
    rows = build_sampler(schema_of(), SETTINGS, parameters).rows(1000, np.random.default_rng(0))
    for k in (0, 1):
        expected = encoder.canonical(parameters["means"][k : k + 1, :64])[0, 0]
        shown = rows["x"][rows["y"] == k].mean(axis=0)
        assert np.corrcoef(shown.ravel(), expected.ravel())[0, 1] > 0.8


def test_values_are_those_of_the_profile_of_the_area():
    _, parameters = model()
    parameters["factors"] = np.zeros_like(parameters["factors"])
    x = build_sampler(schema_of(), SETTINGS, parameters).rows(20, np.random.default_rng(0))["x"]
    # a quarter lit is the lower edge of bin 16; rounding may lead to the one below
    ordered = -np.sort(-x.reshape(20, -1), axis=1)
    either = parameters["profiles"][15:17] * 0.5
    assert (np.abs(ordered[:, None] - either).max(axis=2).min(axis=1) < 1e-6).all()


def test_spread_varies_samples_more():
    _, parameters = model()
    areas = []
    for spread in (0.0, 1.0, 3.0):
        x = build_sampler(schema_of(), SETTINGS | {"spread": spread}, parameters).rows(500, np.random.default_rng(0))
        areas.append(x["x"].sum(axis=(1, 2)).std())
    assert areas[0] < areas[1] < areas[2]


@pytest.mark.parametrize("settings", [{"elastic": 2.0}, {"jitter": 1.0}])
def test_distortions_change_pictures_and_not_labels(settings):
    schema = schema_of()
    parameters = parameters_of(schema, np.random.default_rng(0))
    plain, other = (
        build_sampler(schema, SETTINGS | extra, parameters).rows(20, np.random.default_rng(1))
        for extra in ({}, settings)
    )
    np.testing.assert_array_equal(plain["y"], other["y"])
    assert not np.array_equal(plain["x"], other["x"])


@pytest.mark.slow
def test_wide_rows_are_drawn_fewer_at_a_time(pictures):
    d = 4096
    schema = Schema(columns={"x": Image(shape=(d,), dtype="float32", lower=0, upper=1)}, rows=10)
    wide = Release(
        schema,
        pictures.certificate,
        {"name": ImagePortrait.name, "image": "x", "label": None},
        parameters_of(schema, np.random.default_rng(0), pose=False, axes=1),
        (),
        SourceForm("npz", {"x": pa.fixed_shape_tensor(pa.float32(), [d])}),
    )
    tracemalloc.start()
    batch = next(wide.batches(10, seed=0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6
    assert batch.num_rows == 10
    assert pa.concat_tables(wide.batches(3000, seed=0)).slice(0, 10).equals(batch)


def test_no_pictures(pictures):
    assert pictures.sample(0, seed=0)["x"].shape == (0, 4, 4)


def test_samples_agree_with_the_teacher_where_they_can():
    schema = schema_of()
    rng = np.random.default_rng(0)
    parameters = parameters_of(schema, rng, 0.5)
    encoder = ImageEncoder(ImageLayout.of(schema), POSE)
    plain = build_sampler(schema, SETTINGS, parameters)
    coefficients = rng.standard_normal((n_features(encoder), 2))

    def scores(rows):
        return gradient_features(encoder.layout.pictures(rows["x"]), encoder) @ coefficients

    drawn = plain.rows(400, np.random.default_rng(1))
    offsets = -np.median(scores(drawn), axis=0)  # each label is as likely as the other
    taught = parameters | {"teacher_coefficients": coefficients, "teacher_offsets": offsets}
    kept = build_sampler(schema, SETTINGS, taught).rows(400, np.random.default_rng(1))
    before, after = (((scores(rows) + offsets).argmax(axis=1) == rows["y"]).mean() for rows in (drawn, kept))
    assert after > before + 0.15
    never = taught | {"teacher_offsets": np.array([1e9, 0.0])}  # a teacher that knows one label only
    labels = build_sampler(schema, SETTINGS, never).rows(400, np.random.default_rng(1))["y"]
    assert 100 < labels.sum() < 300


@pytest.mark.parametrize("harm", [np.zeros((3, 2)), np.full((1, 1), np.nan)])
def test_a_malformed_teacher_is_refused(harm):
    schema = schema_of()
    parameters = parameters_of(schema, np.random.default_rng(0))
    with pytest.raises(ReleaseError):
        build_sampler(schema, SETTINGS, parameters | {"teacher_coefficients": harm, "teacher_offsets": np.zeros(2)})
