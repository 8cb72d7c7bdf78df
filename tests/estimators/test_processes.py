"""Fits of estimators are counted in their process, and certificates say what is not in them."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sfumato import create_ledger
from sfumato.errors import ConfigError, RepeatedFitWarning
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKernelKMeans, DPKMeans
from sfumato.privacy.certificate import Certificate
from sfumato.release_front import load

PUBLIC = {"n_public": 400, "bounds": (-3.0, 3.0)}
SAID = "of this process; what prepared the input is not in here"
PROGRAM = """
import json, warnings
import numpy as np
from sklearn.model_selection import GridSearchCV
from sfumato.estimators import DPGaussianMixture
rows = np.random.default_rng(0).standard_normal((400, 2))
search = GridSearchCV(DPGaussianMixture(n_public=400, bounds=(-3.0, 3.0)), {"n_components": [1, 2]}, cv=5)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    search.fit(rows)
print(json.dumps([search.best_estimator_.certificate.process_fit, sorted({w.category.__name__ for w in told})]))
"""


def rows(n=400):
    return np.random.default_rng(0).standard_normal((n, 2))


def test_a_search_counts_each_of_its_fits():
    """Two settings in five folds, and the best of them on all rows; told while it runs."""
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == [11, ["RepeatedFitWarning"]]


@pytest.mark.parametrize(
    "estimator",
    [
        DPGaussianMixture(2, **PUBLIC),
        DPFactorAnalysis(1, **PUBLIC),
        DPKMeans(2, **PUBLIC),
        DPKernelKMeans(2, n_public=400, bounds=(-3.0, 3.0)),
    ],
    ids=lambda e: type(e).__name__,
)
def test_a_certificate_says_it_in_each_form(estimator):
    first = estimator.fit(rows()).certificate
    again = estimator.fit(rows()).certificate
    assert again.process_fit == first.process_fit + 1
    said = f"Fit {again.process_fit} {SAID}"
    assert said in repr(again)
    assert said in again._repr_html_()
    assert said in again.assumptions[0]
    content = json.loads(json.dumps(again.to_dict()))
    assert content["process_fit"] == again.process_fit
    assert said in content["assumptions"][0]
    assert Certificate.from_dict(content) == again


def test_what_a_pipeline_read_is_named(tmp_path):
    model = make_pipeline(StandardScaler(), DPGaussianMixture(2, **PUBLIC)).fit(rows())[-1]
    model.release().save(tmp_path / "r.sfm")
    text = repr(load(tmp_path / "r.sfm").certificate)
    assert SAID in text
    assert "a scaler" in model.certificate.assumptions[0]


def test_the_second_fit_warns_before_it_is_paid_unless_a_ledger_adds_up(tmp_path):
    create_ledger(tmp_path / "l", epsilon=5, delta=1e-4)
    model = DPKMeans(2, **PUBLIC).fit(rows())
    with pytest.warns(RepeatedFitWarning, match="costs its own epsilon"):
        model.fit(rows())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(rows(), ledger=tmp_path / "l")
        model.set_params(seed=0).fit(rows())


def test_a_fit_that_is_refused_leaves_the_certificate(tmp_path):
    model = DPKMeans(2, **PUBLIC).fit(rows())
    number = model.certificate.process_fit
    with pytest.raises(ConfigError):
        model.set_params(n_clusters=0).fit(rows())
    assert model.certificate.process_fit == number


def test_a_search_in_this_process():
    search = GridSearchCV(DPGaussianMixture(**PUBLIC), {"n_components": [1, 2]}, cv=2).fit(rows())
    before = DPKMeans(2, **PUBLIC).fit(rows()).certificate.process_fit
    assert search.best_estimator_.certificate.process_fit == before - 1
