"""Estimators charge the account of a data set: all of it before a record is read, and whatever becomes of the fit."""

import numpy as np
import pytest

from sfumato import create_ledger, read_ledger
from sfumato.errors import BudgetExceededError, ConfigError
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKMeans

ROWS = np.random.default_rng(0).uniform(-1, 1, (300, 2))
PUBLIC = {"n_public": 300, "bounds": (-1.0, 1.0)}
MAKERS = {
    "kmeans": lambda **options: DPKMeans(2, iterations=2, **PUBLIC, **options),
    "mixture": lambda **options: DPGaussianMixture(2, iterations=2, **PUBLIC, **options),
    "factors": lambda **options: DPFactorAnalysis(1, **PUBLIC, **options),
}


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "rows.ledger"
    create_ledger(path, epsilon=1.5, delta=1e-5)
    return path


@pytest.mark.parametrize("name", MAKERS)
def test_a_fit_is_charged_once_and_a_second_is_refused(name, ledger):
    model = MAKERS[name](epsilon=1.0, delta=1e-6).fit(ROWS, ledger=ledger)
    (entry,) = read_ledger(ledger).fits
    assert entry.status == "finished"
    assert entry.method == model.certificate.content["method"]
    assert read_ledger(ledger).spent() <= 1.0 + 1e-6
    before = model.releases_
    with pytest.raises(BudgetExceededError):
        model.set_params(epsilon=1.4).fit(ROWS, ledger=ledger)
    assert model.releases_ is before
    assert len(read_ledger(ledger).fits) == 1


def test_a_fit_that_fails_stays_charged(ledger, monkeypatch):
    model = DPKMeans(2, iterations=2, epsilon=1.0, delta=1e-6, **PUBLIC)

    def failing(session):
        raise KeyError

    monkeypatch.setattr(model, "_run", failing)
    with pytest.raises(KeyError):
        model.fit(ROWS, ledger=ledger)
    (entry,) = read_ledger(ledger).fits
    assert entry.status == "failed"


def test_noise_that_can_be_predicted_is_paid_by_no_ledger(ledger):
    with pytest.raises(ConfigError, match="a seed"):
        DPKMeans(2, epsilon=1.0, delta=1e-6, seed=1, **PUBLIC).fit(ROWS, ledger=ledger)
    assert read_ledger(ledger).fits == ()
