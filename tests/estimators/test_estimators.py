"""The estimators: scikit-learn's checks, its parameters without noise, certificates, and bad input."""

import subprocess
import sys
import tracemalloc
import warnings
from array import array
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture as ScikitMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato.errors import ConfigError, DataError, SfumatoError
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKMeans
from sfumato.estimators.records import open_rows
from sfumato.methods.mixtures.steps import MAP
from sfumato.models.mixtures.covariances import FORMS, DiagonalCovariance, FullCovariance
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.privacy.budget import NonPrivate

PUBLIC = {"n_public": 2000, "bounds": (-3.0, 3.0)}
ESTIMATORS = [DPGaussianMixture(2, **PUBLIC), DPFactorAnalysis(1, **PUBLIC), DPKMeans(2, **PUBLIC)]

CHECKED = [clone(e).set_params(epsilon=NonPrivate(), n_public=1000, bounds=(-200.0, 200.0), seed=0) for e in ESTIMATORS]
_LAW = "whether a fit raises may not depend on the records"
SKIPPED = {
    "check_estimators_nan_inf": f"no cell stops a fit: {_LAW}",
    "check_estimators_empty_data_messages": f"no record is fitted like many: {_LAW}",
    "check_all_zero_sample_weights_error": f"no weight stops a fit: {_LAW}",
    "check_dtype_object": "refused: numbers are read from numeric columns only",
    "check_estimator_sparse_tag": "sparse matrices are refused",
    "check_estimator_sparse_array": "sparse matrices are refused",
    "check_estimator_sparse_matrix": "sparse matrices are refused",
    "check_sample_weight_equivalence_on_sparse_data": "sparse matrices are refused",
    **dict.fromkeys(
        (
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weights_list",
            "check_sample_weights_not_an_array",
            "check_sample_weights_not_overwritten",
            "check_sample_weights_pandas_series",
            "check_sample_weights_shape",
        ),
        "weights have a public bound: tests/estimators/test_weighted_rows.py",
    ),
}


def skipped(estimator):
    own = {"check_parameters_default_constructible": "a choice is a type: FullCovariance() and MLE() are defaults"}
    return {**SKIPPED, **(own if isinstance(estimator, DPGaussianMixture) else {})}


@parametrize_with_checks(CHECKED, expected_failed_checks=skipped)
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def blobs(n=2000, q=2, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-2, 2, (k, q))[rng.integers(0, k, n)] + 0.3 * rng.standard_normal((n, q))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_mixture_without_noise_is_scikit_learns(form):
    rows = np.clip(blobs(), -3, 3)
    shape = form.shape(3, 2)
    covariances = np.array(np.broadcast_to(np.eye(2) if len(shape) > 1 and shape[-2:] == (2, 2) else 1.0, shape))
    start = GaussianMixture(np.array([0.2, 0.3, 0.5]), np.array([[-1.0, 0], [1, 1], [0, -1]]), covariances, form)
    ours = DPGaussianMixture(3, covariance=form, epsilon=NonPrivate(), start=start, iterations=8, **PUBLIC).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = ScikitMixture(
            3, covariance_type={"diagonal": "diag"}.get(form.name, form.name), tol=0, reg_covar=0, max_iter=8,
            weights_init=start.weights, means_init=start.means, precisions_init=covariances,
        ).fit(rows)  # fmt: skip
    np.testing.assert_allclose(ours.weights_, theirs.weights_, atol=2e-4)
    np.testing.assert_allclose(ours.means_, theirs.means_, atol=2e-4)
    np.testing.assert_allclose(ours.covariances_, theirs.covariances_, atol=2e-4)
    np.testing.assert_allclose(ours.score_samples(rows), theirs.score_samples(rows), atol=2e-3)
    np.testing.assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))


def test_k_means_without_noise_is_scikit_learns():
    rows = blobs()
    start = rows[:3]
    ours = DPKMeans(3, epsilon=NonPrivate(), start=start, iterations=6, n_public=2000, bounds=(-6.0, 6.0)).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = KMeans(3, init=start, n_init=1, max_iter=6, tol=0).fit(rows)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=2e-5)
    np.testing.assert_array_equal(ours.predict(rows), theirs.predict(rows))
    np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=5e-5)
    assert ours.score(rows) == pytest.approx(theirs.score(rows), rel=1e-6)


@pytest.mark.parametrize("centred", [False, True])
def test_factor_analysis_without_noise_has_scikit_learns_likelihood(centred):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3000, 3)) @ rng.standard_normal((3, 12)) + rng.uniform(
        0.2, 1, 12
    ) * rng.standard_normal((3000, 12))
    rows -= rows.mean(axis=0)
    ours = DPFactorAnalysis(3, epsilon=NonPrivate(), n_public=3000, bounds=(-20.0, 20.0), centred=centred).fit(rows)
    theirs = FactorAnalysis(3, tol=1e-10, max_iter=10_000, svd_method="lapack").fit(rows)
    assert ours.score(rows) == pytest.approx(theirs.score(rows), abs=1e-4)
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=5e-3)
    spread = ours.components_ @ np.diag(1 / ours.noise_variance_) @ ours.components_.T + np.eye(3)
    expected = np.linalg.solve(spread, ours.components_ / ours.noise_variance_ @ (rows[:5] - ours.mean_).T).T
    np.testing.assert_allclose(ours.transform(rows[:5]), expected, atol=1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_certificate_says_what_a_fit_cost(estimator):
    fitted = clone(estimator).set_params(epsilon=0.7).fit(blobs())
    certificate = fitted.certificate
    assert certificate.private
    assert certificate.epsilon <= 0.7
    assert certificate.epsilon == pytest.approx(0.7, rel=1e-3)
    assert certificate.delta == 1e-5
    assert certificate.content["n_public"] == 2000
    certificate.verify()
    assert type(certificate).from_dict(certificate.to_dict()).epsilon == certificate.epsilon
    seeded = clone(estimator).set_params(seed=0).fit(blobs())
    assert not seeded.certificate.private
    assert "NOT PRIVATE" in repr(clone(estimator).set_params(epsilon=NonPrivate()).fit(blobs()).certificate)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_plan_and_certificate_do_not_depend_on_the_records(estimator):
    contents = [clone(estimator).fit(rows).certificate.content for rows in (blobs(), blobs()[:1], blobs()[:0])]
    for content in contents:  # which fit of the process it is
        content.pop("process_fit")
        content["assumptions"] = content["assumptions"][1:]
    assert contents[0] == contents[1] == contents[2]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_fitted_estimator_holds_no_record(estimator):
    rows = blobs()
    rows[7] = [2.718281828459045, -1.618033988749895]
    fitted = clone(estimator).fit(rows)
    held = [value for value in vars(fitted).values() if isinstance(value, np.ndarray)]
    assert all(len(value) < 100 for value in held)
    assert not any(np.isin(rows[7], value).any() for value in held if value.dtype.kind == "f")
    assert not hasattr(fitted, "labels_")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_cells_that_are_not_finite_do_not_stop_a_fit(estimator):
    rows = blobs()
    rows[0], rows[1, 0], rows[2, 1] = np.nan, np.inf, -1e308
    fitted = clone(estimator).set_params(seed=0).fit(rows)
    assert np.isfinite(fitted.releases_[0].value).all()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_arrays_frames_tables_files_and_maps_of_files_give_the_same_fit(estimator, tmp_path):
    rows = blobs()
    frame = pd.DataFrame(rows, columns=["a", "b"])
    table = pa.Table.from_pandas(frame)
    pq.write_table(table, tmp_path / "rows.parquet")
    np.save(tmp_path / "rows.npy", rows)
    expected = clone(estimator).set_params(seed=1).fit(rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for data in (frame, frame.rename_axis("patient"), table, tmp_path / "rows.parquet", mapped, rows.tolist()):
        found = clone(estimator).set_params(seed=1).fit(data)
        np.testing.assert_allclose(found.releases_[-1].value, expected.releases_[-1].value, rtol=1e-9, atol=1e-9)
    assert list(clone(estimator).fit(frame).feature_names_in_) == ["a", "b"]


SECRET = "31415.926"


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    ("change", "data", "match"),
    [
        ({"epsilon": 0}, None, "epsilon"),
        ({"epsilon": -1.0}, None, "epsilon"),
        ({"delta": 2}, None, "delta"),
        ({"n_public": None}, None, "n_public"),
        ({"n_public": 0}, None, "n_public"),
        ({"bounds": None}, None, "bounds"),
        ({"bounds": (1, 1)}, None, "bounds"),
        ({"bounds": (0, np.inf)}, None, "bounds"),
        ({"bounds": ([0, 0, 0], [1, 1, 1])}, None, "bounds"),
        ({"bounds": "wide"}, None, "bounds"),
        ({"clip_norm": 0}, None, "clip_norm"),
        ({"seed": -1}, None, "seed"),
        ({}, np.zeros(5), "2D"),
        ({}, np.zeros((5, 0)), "0 feature"),
        ({}, np.full((3, 2), float(SECRET)).astype(str), "numbers"),
        ({}, np.full((3, 2), float(SECRET), dtype=object), "numbers"),
        ({}, [[1.0, float(SECRET)], [2.0]], "rows of numbers"),
        ({}, pd.DataFrame({"a": [1.0], "name": [SECRET]}), "'name'"),
        ({}, "nowhere.parquet", "nowhere.parquet"),
        ({}, 3.5, "Expected"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_input_is_refused_without_a_cell(estimator, change, data, match):
    with pytest.raises((SfumatoError, ValueError), match=match) as caught:
        clone(estimator).set_params(**change).fit(blobs() if data is None else data)
    assert SECRET not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (DPGaussianMixture(0, **PUBLIC), "n_components"),
        (DPGaussianMixture(covariance="full", **PUBLIC), "covariance"),
        (DPGaussianMixture(estimate="map", **PUBLIC), "estimate"),
        (DPGaussianMixture(iterations=1, **PUBLIC), "iterations"),
        (DPGaussianMixture(start="records", **PUBLIC), "start"),
        (DPGaussianMixture(average_last=0, **PUBLIC), "average_last"),
        (DPFactorAnalysis(0, **PUBLIC), "latent_dim"),
        (DPFactorAnalysis(3, **PUBLIC), "latent_dim"),
        (DPFactorAnalysis(1, least_variance=0, **PUBLIC), "least_variance"),
        (DPKMeans(0, **PUBLIC), "n_clusters"),
        (DPKMeans(2, iterations=0, **PUBLIC), "iterations"),
        (DPKMeans(2, start="records", **PUBLIC), "start"),
        (DPKMeans(2, start=np.zeros((3, 2)), **PUBLIC), "start"),
    ],
)
def test_bad_settings_are_refused(estimator, match):
    with pytest.raises(ConfigError, match=match):
        estimator.fit(blobs())


def test_one_component_takes_one_release():
    model = DPGaussianMixture(1, **PUBLIC).fit(blobs())
    assert len(model.releases_) == 1
    assert model.certificate.content["events"][0]["count"] == 1


def test_a_start_of_another_form_is_refused():
    start = GaussianMixture(np.ones(1), np.zeros((1, 2)), np.ones((1, 2)), DiagonalCovariance())
    with pytest.raises(ConfigError, match="start"):
        DPGaussianMixture(1, covariance=FullCovariance(), start=start, **PUBLIC).fit(blobs())


def test_k_means_in_many_dimensions_has_no_grid_to_start_from():
    with pytest.raises(ConfigError, match="at most 3 columns"):
        DPKMeans(2, start="grid", n_public=2000, bounds=(-3, 3)).fit(blobs(q=4))
    assert DPKMeans(2, n_public=2000, bounds=(-3, 3)).fit(blobs(q=4)).cluster_centers_.shape == (2, 4)


def test_text_in_predict_is_scikit_learns_affair_and_unfitted_ones_say_so():
    for estimator in ESTIMATORS:
        with pytest.raises(NotFittedError):
            clone(estimator).score(blobs())
        with pytest.raises(NotFittedError):
            _ = clone(estimator).certificate


def test_images_in_an_npz_file_are_rows_of_numbers(tmp_path):
    np.savez(tmp_path / "images.npz", x=np.random.default_rng(0).integers(0, 256, (300, 4, 4)).astype(np.uint8))
    model = DPFactorAnalysis(2, n_public=300, bounds=(0, 255)).fit(tmp_path / "images.npz")
    assert model.components_.shape == (2, 16)


def test_csv_files_are_refused_by_name(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="data frame"):
        DPKMeans(2, **PUBLIC).fit(tmp_path / "rows.csv")


def test_noise_at_a_moderate_budget_keeps_most_of_a_mixtures_likelihood():
    rows = blobs(20_000)
    settings = {"n_public": 20_000, "bounds": (-4.0, 4.0), "seed": 1}
    single = DPGaussianMixture(1, epsilon=NonPrivate(), **settings).fit(rows).score(rows)
    exact = DPGaussianMixture(3, epsilon=NonPrivate(), **settings).fit(rows).score(rows)
    noisy = DPGaussianMixture(3, epsilon=1.0, **settings).fit(rows).score(rows)
    assert exact - noisy < 0.3 * (exact - single)


def test_a_prior_draws_estimates_towards_it():
    """MAP of one component against the textbook's formulas, in units of the ball (here the data's own)."""
    rows = 0.2 * np.random.default_rng(0).standard_normal((50, 2)) + 0.1
    prior = MAP(concentration=3.0, mean_strength=5.0, degrees=6.0, variance=0.4)
    start = GaussianMixture(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    ours = DPGaussianMixture(
        1, estimate=prior, epsilon=NonPrivate(), start=start, iterations=1, n_public=50, bounds=(-1, 1), clip_norm=1.0
    ).fit(rows)
    n, mean = 50, rows.mean(axis=0)
    scatter = (rows - mean).T @ (rows - mean)
    np.testing.assert_allclose(ours.means_[0], n * mean / (n + 5), atol=2e-6)
    expected = (0.4 * np.eye(2) + scatter + 5 * n / (5 + n) * np.outer(mean, mean)) / (n + 6 + 2 + 2)
    np.testing.assert_allclose(ours.covariances_[0], expected, atol=2e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS[:2], ids=lambda e: type(e).__name__)
def test_samples(estimator):
    model = clone(estimator).set_params(seed=0).fit(blobs())
    first, again = model.sample(100, seed=3), model.sample(100, seed=3)
    points = first[0] if isinstance(first, tuple) else first
    np.testing.assert_array_equal(points, again[0] if isinstance(again, tuple) else again)
    assert points.shape == (100, 2)


def test_many_columns_of_factor_analysis():
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((2, 400))
    rows = rng.standard_normal((4000, 2)) @ loadings + 0.3 * rng.standard_normal((4000, 400))
    model = DPFactorAnalysis(2, epsilon=4.0, n_public=4000, bounds=(-5.0, 5.0), clip_norm=6.0, seed=0).fit(rows)
    ours, theirs = np.linalg.qr(model.components_.T)[0], np.linalg.qr(loadings.T)[0]
    assert np.linalg.svd(ours.T @ theirs, compute_uv=False).min() > 0.98


def test_importing_sfumato_does_not_load_the_estimators():
    code = "import sys, sfumato; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_wide_numbers_that_overflow_are_clamped_in_silence():
    rows = (
        np.full((50, 2), np.longdouble("1e4000")) if np.finfo(np.longdouble).max > 1e308 else np.full((50, 2), np.inf)
    )
    DPKMeans(2, seed=0, **PUBLIC).fit(rows)


def test_bounds_whose_width_is_no_number_are_refused():
    with pytest.raises(ConfigError, match="beyond"):
        DPKMeans(2, n_public=10).fit(np.zeros((5, 2)), bounds=(-1e308, 1e308))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_fit_that_cannot_read_its_records_leaves_a_fitted_estimator_as_it_was(estimator):
    fitted = clone(estimator).fit(blobs())
    before = dict(vars(fitted))

    class Broken(np.ndarray):
        def __getitem__(self, index):
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fitted.fit(np.zeros((50, 3)).view(Broken))
    assert vars(fitted) == before
    # names of columns do not outlive the fit that had them
    fitted.fit(pd.DataFrame(blobs(), columns=["a", "b"])).fit(blobs())
    assert not hasattr(fitted, "feature_names_in_")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_memory_is_that_of_a_chunk_and_not_of_the_file(estimator, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.estimators.records._CHUNK_BYTES", 1 << 18)
    rows = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float64, shape=(1 << 20, 2))
    rows[::7] = 1.0
    estimator = clone(estimator)
    if "iterations" in estimator.get_params():
        estimator.set_params(iterations=2)
    estimator.fit(rows[:10])  # calibrated once, and untraced: tracing is slow
    peaks = []
    for n in (10, len(rows)):  # the account takes its own memory, of few records as of many
        tracemalloc.start()
        try:
            estimator.fit(rows[:n])
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + rows.nbytes / 8


def test_cells_that_are_no_numbers_stop_no_fit():
    """Of a list, and of a masked array, whose mask is what is missing; as NaN is in any other form."""
    rows = [[0.5], [-0.5]] * 20

    def centre(records):
        return DPKMeans(1, epsilon=1.0, n_public=41, bounds=(-1, 1), seed=0).fit(records).cluster_centers_

    masked = np.ma.masked_array(np.array([*rows, [0.9]]), mask=[*[[False]] * 40, [True]])
    known = centre(np.array([*rows, [np.nan]]))
    for records in ([*rows, ["n/a"]], [*rows, [None]], masked):
        np.testing.assert_array_equal(centre(records), known)
    np.testing.assert_array_equal(centre([*rows, [10**400]]), centre([*rows, [1.0]]))


class Odd:
    """A cell whose reading fails in a way of its own."""

    def __float__(self) -> float:
        raise RuntimeError("secret")


class Unordered:
    """A number that is too large, and compares with none."""

    def __float__(self) -> float:
        raise OverflowError("secret")


ODD = [
    *(5, 1.5, True, None, "7", " 8.5 ", "n/a", b"9", 10**400, -(10**400), 2j, np.complex128(3), np.ma.masked, pd.NA),
    *(np.datetime64("2020-01-01"), np.timedelta64(3, "D"), pd.Timestamp(2020, 1, 1), pd.NaT, np.float16(0.5), Odd()),
    *([1.0], Unordered(), np.longdouble("1e400"), float("-inf"), Decimal("sNaN"), Fraction(10**400), object()),
]


def test_a_cell_of_a_list_is_read_alike_whatever_is_beside_it():
    """One odd record that changed how numpy reads all others would move a sum by as much as there are records."""

    def read(cells):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            chunks = [chunk["x"] for chunk in open_rows([[cell] for cell in cells]).coded()]
        return np.concatenate(chunks)[:, 0]

    alone = np.concatenate([read([0.0, cell])[1:] for cell in ODD])
    np.testing.assert_array_equal(read([0.0, *ODD])[1:], alone)
    np.testing.assert_array_equal(read([0.0, *ODD[::-1]])[1:], alone[::-1])
    assert alone[:3].tolist() == [5, 1.5, 1]
    assert np.isnan(alone[[3, 6, 14, 15]]).all()


@pytest.mark.parametrize(
    "row",
    [[1.0, 2.0], (1.0, 2.0), range(1, 3), pd.Series([1.0, 2.0]), array("d", [1.0, 2.0]), np.array([1, 2])],
    ids=lambda row: type(row).__name__,
)
def test_rows_of_a_list_may_be_of_any_kind(row):
    odd = ["x", None]
    found = [chunk["x"] for chunk in open_rows([row, odd, pd.Series([3, "4"]), row]).coded()]
    np.testing.assert_array_equal(np.concatenate(found), [[1, 2], [np.nan, np.nan], [3, 4], [1, 2]])


def test_missing_images_are_missing_records():
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12, dtype=np.int16).reshape(3, 2, 2))
    values = pa.array([0, 1, None, 3, 4, 5, 6, 7, 8, 9, 10, 11], pa.int16())
    cells = pa.FixedSizeListArray.from_arrays(values, 4, mask=pa.array([False, True, False]))
    table = pa.table({"x": pa.ExtensionArray.from_storage(tensors.type, cells)})
    found = np.concatenate([chunk["x"] for chunk in open_rows(table).coded()])
    np.testing.assert_array_equal(found, [[0, 1, np.nan, 3], [np.nan] * 4, [8, 9, 10, 11]])


@pytest.mark.parametrize("rows", [[1.0, 2.0], [[[1.0]], [[2.0]]], []], ids=["one axis", "three axes", "none"])
def test_lists_of_another_form_are_refused(rows):
    with pytest.raises(ConfigError, match="2D array"):
        open_rows(rows)


def test_what_gives_an_array_is_read_by_its_type():
    class Wrapped:
        def __init__(self, array: np.ndarray) -> None:
            self._array = array

        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return self._array

    assert next(open_rows(Wrapped(np.ones((2, 1), dtype=np.int8))).coded())["x"].tolist() == [[1.0], [1.0]]
    for rows in (["1"], ["x"]):
        with pytest.raises(DataError, match="real numbers, got dtype object"):
            open_rows(Wrapped(np.array([rows], dtype=object)))


@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        (np.array([0.1234567, 0.7]), "Reshape"),
        ([["secret", "b"]], "convert"),
        ([[0.1234567, 2], [3]], "convert"),
        ([[np.nan, 0.1234567]], "contains NaN"),
        (np.array([[0.1234567]]), "X has 1 features"),
        (np.array([[0.1234567 + 1j, 2]]), "Convert|convert"),
        ([[10**400, 0.1234567]], "Convert"),
        ([[Odd(), 0.1]], "Convert"),
        (None, "Reshape"),
    ],
)
def test_methods_for_rows_of_ones_own_show_no_cell(rows, hint):
    model = DPKMeans(2, epsilon=1.0, n_public=2000, bounds=(0.0, 1.0)).fit(np.ones((9, 2)) / 2)
    with pytest.raises(DataError, match=hint) as caught:
        model.predict(rows)
    assert not any(cell in str(caught.value) for cell in ("0.12", "secret"))
    assert caught.value.__context__ is None
