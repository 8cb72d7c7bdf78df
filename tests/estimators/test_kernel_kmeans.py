"""DPKernelKMeans: scikit-learn's checks, clusters that plain k-means cannot have, certificates, bad input."""

import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato.errors import ConfigError
from sfumato.estimators import DPKernelKMeans
from sfumato.privacy.budget import NonPrivate

PUBLIC = {"n_public": 2000, "bounds": (-3.0, 3.0)}
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
CHECKED = DPKernelKMeans(2, epsilon=NonPrivate(), n_public=1000, bounds=(-200.0, 200.0), n_features=20, seed=0)


@parametrize_with_checks([CHECKED], expected_failed_checks=lambda _: SKIPPED)
def test_scikit_learns_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def rows(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    return np.clip(np.array([[-2.0, -2.0], [2.0, 2.0]])[np.arange(n) % 2] + 0.3 * rng.standard_normal((n, 2)), -3, 3)


def test_it_finds_clusters_and_says_what_that_cost():
    fitted = DPKernelKMeans(2, epsilon=1.0, gamma=0.2, n_features=50, **PUBLIC).fit(rows())
    found = fitted.predict(rows())
    assert np.mean(found == np.arange(2000) % 2) in (pytest.approx(0, abs=0.05), pytest.approx(1, abs=0.05))
    assert fitted.certificate.private
    assert 0.99 < fitted.certificate.epsilon <= 1.0
    assert fitted.certificate.recompute() == pytest.approx(fitted.certificate.epsilon, abs=1e-6)
    assert fitted.sizes_.sum() == pytest.approx(2000, abs=600)
    assert len(fitted.releases_) == 8
    assert fitted.transform(rows(5)).shape == (5, 2)
    assert not hasattr(fitted, "labels_")


def test_public_records_may_start_it():
    start = np.array([[-2.0, -2.0], [2.0, 2.0]])
    fitted = DPKernelKMeans(2, epsilon=NonPrivate(), gamma=0.2, start=start, **PUBLIC).fit(rows())
    np.testing.assert_array_equal(fitted.predict(rows()), np.arange(2000) % 2)


def test_the_width_is_in_data_units():
    """Bounds ten times as wide, gamma the same: the same clusters."""
    one, two = (
        DPKernelKMeans(2, epsilon=NonPrivate(), gamma=0.2, n_public=2000, bounds=b, seed=1).fit(rows())
        for b in ((-3.0, 3.0), (-30.0, 30.0))
    )
    np.testing.assert_array_equal(one.predict(rows()), two.predict(rows()))
    np.testing.assert_allclose(one.transform(rows(9)), two.transform(rows(9)), atol=1e-9)


@pytest.mark.parametrize("cells", [np.nan, np.inf, 1e300])
def test_bad_cells_stop_nothing(cells):
    spoilt = rows()
    spoilt[::3] = cells
    assert np.isfinite(DPKernelKMeans(2, n_features=20, **PUBLIC).fit(spoilt).feature_centers_).all()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [({"n_clusters": 0}, "n_clusters"), ({"iterations": 0}, "iterations"), ({"n_features": 3}, "n_features"),
     ({"gamma": 0.0}, "gamma"), ({"start": "records"}, "start"), ({"start": np.zeros((3, 2))}, "start"),
     ({"n_public": None}, "n_public")],
)  # fmt: skip
def test_bad_settings_are_named(wrong, named):
    with pytest.raises(ConfigError, match=named):
        DPKernelKMeans(**{"n_clusters": 2, **PUBLIC, **wrong}).fit(rows())


def test_it_has_no_release_to_sample():
    fitted = DPKernelKMeans(2, gamma=0.2, n_features=20, iterations=2, **PUBLIC).fit(rows())
    with pytest.raises(ConfigError, match="draws rows"):
        fitted.release()
