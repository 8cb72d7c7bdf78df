"""Estimators of weighted rows: each counts by its own weight ÷ a public bound, at the noise of rows that count once."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks

import sfumato
from sfumato import NonPrivate, Schema, create_ledger, read_ledger
from sfumato.errors import SfumatoError
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKernelKMeans, DPKMeans
from sfumato.estimators.records import MOST_WEIGHED_ROWS, WEIGHT, SchemaRecords, open_rows
from sfumato.estimators.row_columns import of_weights
from sfumato.io.sources import open_source
from sfumato.models.mixtures.covariances import DiagonalCovariance, TiedCovariance
from sfumato.privacy.certificate import WEIGHED
from sfumato.records.private import PrivateData

N = 600
PUBLIC = {"n_public": N, "bounds": (-4.0, 4.0), "seed": 1}
RNG = np.random.default_rng(0)
ROWS = np.clip(RNG.choice([-2.0, 2.0], (N, 1)) + 0.5 * RNG.standard_normal((N, 2)), -4, 4)
WEIGHTS = RNG.integers(0, 5, N)
UNITS = np.arange(N) // 3
ESTIMATORS = {
    "mixture": DPGaussianMixture(2, **PUBLIC),
    "diagonal mixture": DPGaussianMixture(2, covariance=DiagonalCovariance(), start="random", **PUBLIC),
    "tied mixture": DPGaussianMixture(2, covariance=TiedCovariance(), **PUBLIC),
    "factors": DPFactorAnalysis(1, **PUBLIC),
    "k-means": DPKMeans(2, **PUBLIC),
    "kernel k-means": DPKernelKMeans(2, n_features=20, **PUBLIC),
}
each = pytest.mark.parametrize("name", ESTIMATORS)


def fitted(name, rows=ROWS, epsilon=2.0, **options):
    return clone(ESTIMATORS[name]).set_params(epsilon=epsilon).fit(rows, **options)


def values(model):
    return [noisy.value for noisy in model.releases_]


def check_alike(model, other, upper):
    """Both released the same, and so fitted the same, but for the grid. Moments of mixtures have a margin for it."""
    for one, two in zip(values(model), values(other), strict=True):
        np.testing.assert_allclose(upper * one, two, rtol=5e-3, atol=1.0)
    for attribute in ("weights_", "means_", "covariances_", "mean_", "cluster_centers_", "feature_centers_"):
        if hasattr(model, attribute):
            np.testing.assert_allclose(getattr(model, attribute), getattr(other, attribute), atol=0.01)


@each
@pytest.mark.parametrize("upper", [4.0, 5.0])
def test_whole_weights_are_repeated_rows(name, upper):
    """Up to the grid: weights are whole numbers of 2^-12 of the bound, and so are vectors beside them."""
    again = fitted(name, np.repeat(ROWS, WEIGHTS, axis=0), NonPrivate())
    check_alike(fitted(name, epsilon=NonPrivate(), sample_weight=WEIGHTS, weight_upper=upper), again, upper)


@each
def test_weights_of_the_bound_are_no_weights(name):
    plain = fitted(name)
    weighted = fitted(name, sample_weight=np.full(N, 30.0), weight_upper=30.0)
    check_alike(weighted, plain, 1.0)
    assert [noisy.noise_std for noisy in weighted.releases_] == [noisy.noise_std for noisy in plain.releases_]
    assert weighted.certificate.epsilon == plain.certificate.epsilon
    assert weighted.certificate.events == plain.certificate.events


@each
def test_events_and_noise_are_those_of_rows_that_count_once(name):
    plain = fitted(name)
    noise = [noisy.noise_std for noisy in plain.releases_]
    cost = plain.certificate
    assert (cost.weight, WEIGHED in cost.assumptions) == (None, False)
    for weights in (np.zeros(N), WEIGHTS, np.full(N, 1e9)):
        weighted = fitted(name, sample_weight=weights, weight_upper=2.0)
        assert [noisy.noise_std for noisy in weighted.releases_] == pytest.approx(noise, rel=1e-12)
        assert (weighted.certificate.events, weighted.certificate.epsilon) == (cost.events, cost.epsilon)
        assert weighted.certificate.weight.upper == 2.0
        assert WEIGHED in weighted.certificate.assumptions


def test_what_is_fitted_is_of_the_population():
    """Rows of one cluster stand for three times as many members: sizes, shares and means are theirs."""
    weights = np.where(ROWS[:, 0] > 0, 3.0, 1.0)
    options = {"epsilon": 20.0, "sample_weight": weights, "weight_upper": 4.0}
    sizes = fitted("k-means", **options).sizes_
    assert sizes.sum() == pytest.approx(weights.sum(), rel=0.05)
    assert sizes.max() / sizes.sum() == pytest.approx(0.75, abs=0.05)
    assert fitted("mixture", **options).weights_.max() == pytest.approx(0.75, abs=0.05)
    assert fitted("factors", **options).mean_[0] == pytest.approx(np.average(ROWS[:, 0], weights=weights), abs=0.1)


CELLS = [5.0, None, np.nan, np.inf, -np.inf, -3.0, 1e300, 0.0, -0.0, 10, 11, "2.5", "x", "", "-1", "inf", "1e300",
         True, b"4", 2**70, [1.0], (), np.float32(2.5), np.datetime64("2020-01-01")]  # fmt: skip


def parts(cells, upper=10.0):
    records = of_weights(open_rows(np.zeros((len(cells), 1))), cells, cells, upper)
    return np.concatenate([np.zeros(0), *(rows[WEIGHT] for rows in records.coded())])


def test_a_cell_counts_by_itself():
    alone = [parts([cell]).item() for cell in CELLS]
    np.testing.assert_array_equal(parts(CELLS), alone)
    np.testing.assert_array_equal(parts(CELLS[::-1]), alone[::-1])
    assert alone[:13] == [0.5, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 0.25, 0]
    assert parts([]).size == 0


def test_a_cell_counts_as_a_schemas_weight_does():
    cells = ["1", "10", "5.5", "11", "1e300", "inf", "0", "-1", "-inf", "-0", "nan", "", "x", "0x5", None]
    document = {"weight": {"column": "w", "upper": 10}, "columns": {"w": "identifier", "x": "boolean"}}
    for column in (cells, [float(cell) if cell and cell[0] in "1i-" else None for cell in cells]):
        table = pa.table({"w": column, "x": [True] * len(cells)})
        [rows] = PrivateData(open_source(table), Schema.from_dict(document)).coded()
        np.testing.assert_array_equal(parts(pa.array(column)), rows["w"])


@pytest.mark.parametrize(
    "weights",
    [
        [2, 5.0, None], pd.Series([2, 5, np.nan]), pd.Series([2, 5, None], dtype=object), pa.array([2, 5, None]),
        pa.chunked_array([[2], [5, None]]), pl.Series([2.0, 5.0, None]), np.array([2, 5, np.nan], dtype=np.float32),
        np.ma.array([2, 5, 7], mask=[0, 0, 1]), np.array([2, 5, None], dtype=object),
    ],
    ids=lambda weights: type(weights).__module__.split(".")[0] + type(weights).__name__,
)  # fmt: skip
def test_forms_of_weights(weights):
    np.testing.assert_array_equal(parts(weights, 4.0), [0.5, 1.0, 0.0])


def test_chunks_keep_rows_and_weights_together(monkeypatch):
    whole = values(fitted("k-means", sample_weight=WEIGHTS, weight_upper=4.0))
    monkeypatch.setattr("sfumato.estimators.records._CHUNK_BYTES", 16 * 37)
    for rows in (ROWS, pd.DataFrame(ROWS, columns=["a", "b"])):
        found = values(fitted("k-means", rows, sample_weight=WEIGHTS, weight_upper=4.0))
        for one, other in zip(found, whole, strict=True):
            np.testing.assert_array_equal(one, other)


@each
def test_units_of_weighted_rows(name):
    """Noise for all rows of one; and every row counts where units have no more of them than may."""
    options = {"sample_weight": WEIGHTS, "weight_upper": 4.0}
    alone = fitted(name, **options)
    noise = np.array([noisy.noise_std for noisy in alone.releases_])
    together = fitted(name, units=UNITS, max_rows=3, **options)
    np.testing.assert_allclose([noisy.noise_std for noisy in together.releases_], 3 * noise)
    assert together.certificate.weight == alone.certificate.weight
    assert together.certificate.unit.max_rows == 3
    silent = [
        values(fitted(name, epsilon=NonPrivate(), **options, **more)) for more in ({}, {"units": UNITS, "max_rows": 3})
    ]
    for one, other in zip(*silent, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_order_of_rows_changes_which_rows_of_a_unit_count():
    """Rows that are alike but for their weights are told apart by these."""
    rows = np.repeat(ROWS[: N // 3], 3, axis=0)
    order = np.random.default_rng(1).permutation(N)

    def sums(at):
        options = {"sample_weight": WEIGHTS[at], "weight_upper": 4.0, "units": UNITS[at], "max_rows": 2}
        return values(fitted("k-means", rows[at], NonPrivate(), **options))

    for one, other in zip(sums(np.arange(N)), sums(order), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_schema_names_the_weights():
    number = {"kind": "continuous", "lower": -4, "upper": 4}
    frame = pd.DataFrame({"who": UNITS, "a": ROWS[:, 0], "b": ROWS[:, 1], "survey": WEIGHTS})
    document = {
        "rows": N, "unit": {"column": "who", "max_rows": 3}, "weight": {"column": "survey", "upper": 4},
        "columns": {"who": "identifier", "survey": "identifier", "a": number, "b": number},
    }  # fmt: skip
    records = SchemaRecords(open_source(frame), Schema.from_dict(document))
    model = DPKMeans(2, **PUBLIC).fit(records, bounds=records.bounds)
    given = {"sample_weight": frame["survey"], "weight_upper": 4, "units": frame["who"], "max_rows": 3}
    other = DPKMeans(2, **PUBLIC).fit(frame[["a", "b"]], **given)
    assert model.certificate.weight == other.certificate.weight
    assert model.certificate.weight.column == "survey"
    for one, two in zip(values(model), values(other), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)


@pytest.mark.parametrize("name", ["mixture", "tied mixture", "factors", "k-means"])
def test_a_release_says_how_rows_counted(name, tmp_path):
    frame = pd.DataFrame(ROWS, columns=["weight", "b"])
    options = {"sample_weight": WEIGHTS, "weight_upper": 4.0, "units": UNITS, "max_rows": 3}
    release = fitted(name, frame, **options).release()
    release.check()
    release.save(tmp_path / "r.sfm")
    loaded = sfumato.load(tmp_path / "r.sfm")
    loaded.check()
    assert loaded.certificate.weight.column == loaded.schema.weight.column == "weight'"
    assert loaded.schema.weight.upper == 4.0
    samples = loaded.sample(50, seed=1)
    assert list(samples) == ["weight", "b"]
    assert samples.to_numpy().std() > 0.5
    stored = {noisy.origin.norm_bound for noisy in loaded.measurements}
    assert stored == {noisy.origin.norm_bound for noisy in fitted(name, frame, units=UNITS, max_rows=3).releases_}


REFUSED = {
    "weight_upper beside sample_weight": {"sample_weight": WEIGHTS},
    "sample_weight beside weight_upper": {"weight_upper": 4.0},
    "as many sample_weight as rows": {"sample_weight": WEIGHTS[:-1], "weight_upper": 4.0},
    "sample_weight to be numbers": {"sample_weight": np.ones((N, 2)), "weight_upper": 4.0},
    "sample_weight to be numbers, one of each row": {"sample_weight": 1.0, "weight_upper": 4.0},
    "upper of weight to be a number above 0": {"sample_weight": WEIGHTS, "weight_upper": 0.0},
    "upper of weight to be": {"sample_weight": WEIGHTS, "weight_upper": np.inf},
    "upper of weight": {"sample_weight": WEIGHTS, "weight_upper": "4 people"},
    "upper of weight between": {"sample_weight": WEIGHTS, "weight_upper": 1e40},
    "'b' among them": {"sample_weight": pd.Series(WEIGHTS, name="b"), "weight_upper": 4.0},
    "'w' among them": {
        "sample_weight": pd.Series(WEIGHTS, name="w"), "weight_upper": 4.0,
        "units": pd.Series(UNITS, name="w"), "max_rows": 3,
    },
    "'when'": {"sample_weight": pd.Series(np.full(N, np.datetime64("2020-01-01")), name="when"), "weight_upper": 4.0},
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_before_anything_is_charged(reason, tmp_path):
    path = tmp_path / "rows.ledger"
    create_ledger(path, epsilon=9.0, delta=1e-3)
    model = DPKMeans(2, **(PUBLIC | {"seed": None}))
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    with pytest.raises(SfumatoError, match=reason):
        model.fit(frame, ledger=path, **REFUSED[reason])
    assert read_ledger(path).fits == ()
    assert not hasattr(model, "certificate_")


def test_what_needs_a_public_total_is_refused(tmp_path):
    path = tmp_path / "rows.ledger"
    create_ledger(path, epsilon=9.0, delta=1e-3)
    options = {"sample_weight": WEIGHTS, "weight_upper": 4.0, "ledger": path}
    with pytest.raises(SfumatoError, match="centred=False beside weights"):
        DPFactorAnalysis(1, centred=True, n_public=N, bounds=(-4.0, 4.0)).fit(ROWS, **options)
    with pytest.raises(SfumatoError, match="n_public of at most"):
        DPKMeans(2, n_public=MOST_WEIGHED_ROWS + 1, bounds=(-4.0, 4.0)).fit(ROWS, **options)
    assert read_ledger(path).fits == ()


def test_a_file_has_its_weights_in_a_schema(tmp_path):
    pd.DataFrame(ROWS, columns=["a", "b"]).to_parquet(tmp_path / "rows.parquet")
    for path in (tmp_path / "rows.parquet", str(tmp_path / "rows.parquet")):
        with pytest.raises(SfumatoError, match="in a schema"):
            fitted("k-means", path, sample_weight=WEIGHTS, weight_upper=4.0)


def test_weights_are_the_third_argument():
    third = DPKMeans(2, epsilon=1.0, **PUBLIC).fit(ROWS, None, WEIGHTS, weight_upper=4.0)
    named = DPKMeans(2, epsilon=1.0, **PUBLIC).fit(ROWS, sample_weight=WEIGHTS, weight_upper=4.0)
    for one, other in zip(values(third), values(named), strict=True):
        np.testing.assert_array_equal(one, other)


# but that of repeated rows, which is finer than the grid
CHECKS = [
    estimator_checks.check_sample_weights_list,
    estimator_checks.check_sample_weights_not_overwritten,
    estimator_checks.check_sample_weights_shape,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("base", [DPGaussianMixture, DPFactorAnalysis, DPKMeans, DPKernelKMeans])
def test_scikit_learns_checks(base, check, monkeypatch):
    """They know no bound of weights: here it is one that is above theirs."""
    original = base.fit

    def fit(self, X, y=None, sample_weight=None):
        return original(self, X, y, sample_weight, weight_upper=None if sample_weight is None else 8.0)

    monkeypatch.setattr(base, "fit", fit)
    components = 1 if base is DPFactorAnalysis else 2
    check("estimator", base(components, epsilon=NonPrivate(), n_public=1000, bounds=(-200.0, 200.0), seed=0))
