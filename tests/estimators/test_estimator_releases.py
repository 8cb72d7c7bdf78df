"""Releases of the estimators: saved, loaded, sampled; without a record; and never built from damaged arrays."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sfumato
from sfumato.errors import ConfigError, ReleaseError
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKMeans
from sfumato.models.mixtures.covariances import FORMS
from sfumato.release.samplers import build_sampler

PUBLIC = {"n_public": 2000, "bounds": (-3.0, 3.0), "seed": 0}
ESTIMATORS = [
    *(DPGaussianMixture(2, covariance=form, iterations=3, **PUBLIC) for form in FORMS.values()),
    DPFactorAnalysis(1, **PUBLIC),
    DPKMeans(2, **PUBLIC),
]
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: f"{type(e).__name__}")


def rows(n=2000):
    rng = np.random.default_rng(0)
    return rng.choice([-1.0, 1.5], (n, 1)) + 0.3 * rng.standard_normal((n, 2))


@each
@pytest.mark.parametrize("name", ["r", "r.sfm"])
def test_what_is_loaded_samples_as_what_was_fitted(estimator, name, tmp_path):
    fitted = clone(estimator).fit(rows())
    release = fitted.release()
    release.save(tmp_path / name)
    loaded = sfumato.load(tmp_path / name)
    drawn = loaded.sample(500, seed=1)
    pd.testing.assert_frame_equal(drawn, release.sample(500, seed=1))
    assert list(drawn.columns) == ["x0", "x1"]
    assert drawn.to_numpy().min() >= -3
    assert drawn.to_numpy().max() <= 3
    said = loaded.certificate.to_dict()
    assert said.pop("release")  # what it belongs to, once it is saved
    assert said == fitted.certificate.to_dict()
    assert len(loaded.measurements) == len(fitted.releases_)
    for ours, theirs in zip(loaded.measurements, fitted.releases_, strict=True):
        np.testing.assert_array_equal(ours.value, theirs.value)
    assert len(loaded.sample(seed=0)) == 2000  # the public number


@each
def test_samples_have_the_models_law(estimator):
    fitted = clone(estimator).fit(rows())
    drawn = fitted.release().sample(20_000, seed=2).to_numpy()
    if isinstance(fitted, DPKMeans):
        distances = np.abs(drawn[:, None] - fitted.cluster_centers_).max(axis=2).min(axis=1)
        assert distances.max() < 1e-9
        return
    own = fitted.sample(20_000, seed=3)
    own = np.clip(own[0] if isinstance(own, tuple) else own, -3, 3)
    np.testing.assert_allclose(drawn.mean(axis=0), own.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(own.T), atol=0.1)


@each
def test_a_release_holds_no_record(estimator, tmp_path):
    data = rows()
    data[7] = 1.2345678901, -2.3456789012
    clone(estimator).fit(data).release().save(tmp_path / "r")
    stored = b"".join(path.read_bytes() for path in (tmp_path / "r").iterdir())
    assert data[7].tobytes() not in stored
    assert data[7, :1].tobytes() not in stored
    assert b"1.23456" not in stored


@each
def test_columns_keep_their_names(estimator):
    frame = pd.DataFrame(rows(), columns=["height", "weight"])
    assert list(clone(estimator).fit(frame).release().sample(3).columns) == ["height", "weight"]


@each
def test_what_a_release_cannot_do_is_said(estimator):
    with pytest.raises(NotFittedError):
        clone(estimator).release()
    with pytest.raises(ConfigError, match="cannot fix columns"):
        clone(estimator).fit(rows()).release().sample(3, given={"x0": 1.0})


@each
def test_damaged_arrays_are_refused_or_sample_in_the_bounds(estimator):
    release = clone(estimator).fit(rows()).release()
    for name, array in release.parameters.items():
        others = [
            None,
            array[:0],
            array[..., None],
            array.astype(np.float32),
            array * np.nan,
            array * -1,
            array * 1e300,
        ]
        for other in others:
            parameters = {k: v for k, v in {**release.parameters, name: other}.items() if v is not None}
            try:
                sampler = build_sampler(release.schema, release.sampler, parameters)
            except ReleaseError:
                continue
            coded = sampler.rows(20, np.random.default_rng(0))
            assert all(((c >= 0) & (c <= 1)).all() for c in coded.values())


def test_an_unknown_form_is_refused():
    release = DPGaussianMixture(2, iterations=2, **PUBLIC).fit(rows()).release()
    with pytest.raises(ReleaseError, match="covariance"):
        build_sampler(release.schema, {"name": "gaussian_mixture", "covariance": "x"}, release.parameters)
