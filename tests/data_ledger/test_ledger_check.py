"""Releases against their ledger: a rollback, a fork, an uncharged fit and other events are found."""

import shutil

import numpy as np
import pytest

from fixtures.releases import SMALL, small_frame
from sfumato import MaxEntropy, create_ledger, load
from sfumato.cli.app import run
from sfumato.data_ledger.ledger_check import check_releases
from sfumato.estimators import DPGaussianMixture


@pytest.fixture
def ledger(tmp_path):
    create_ledger(tmp_path / "l", epsilon=10.0, delta=1e-4)
    return tmp_path / "l"


def fit(ledger, path, epsilon=1.0):
    MaxEntropy(epsilon=epsilon).fit(small_frame(), schema=SMALL, ledger=ledger).save(path)
    return path


def standings(ledger, *releases):
    return [claim.standing for claim in check_releases(ledger, releases)]


def test_a_release_states_its_charge_and_the_ledger_knows_it(ledger, tmp_path):
    releases = [fit(ledger, tmp_path / "1"), fit(ledger, tmp_path / "2")]
    said = [load(path).certificate.ledger for path in releases]
    assert [charge.charge for charge in said] == [1, 2]
    assert standings(ledger, *releases) == ["known", "known"]
    assert standings(ledger, *reversed(releases)) == ["known", "known"]
    assert standings(ledger, releases[0], releases[0]) == ["known", "known"]


def test_hardening_5_a_ledger_that_was_put_back_is_found(ledger, tmp_path):
    fit(ledger, tmp_path / "1")
    shutil.copy(ledger, tmp_path / "copy")
    second = fit(ledger, tmp_path / "2")
    shutil.copy(tmp_path / "copy", ledger)  # rewound
    assert standings(ledger, tmp_path / "1", second) == ["known", "unknown"]
    third = fit(ledger, tmp_path / "3")
    assert standings(ledger, second) == ["other chain"]
    assert standings(ledger, tmp_path / "1", second, third) == ["known", "fork", "known"]
    create_ledger(tmp_path / "another", epsilon=10.0, delta=1e-4)
    assert standings(tmp_path / "another", second, third) == ["fork", "fork"]
    assert run(["ledger", "verify", str(ledger), str(third)]) == 0
    assert run(["ledger", "verify", str(ledger), str(second), str(third)]) == 1


def test_a_fit_that_was_not_charged_is_found(ledger, tmp_path, capsys):
    assert standings(ledger, fit(None, tmp_path / "free")) == ["not charged"]
    assert run(["ledger", "verify", str(ledger), str(tmp_path / "free"), "--json"]) == 1
    assert '"standing": "not charged"' in capsys.readouterr().out


def test_other_events_than_were_charged_are_found(ledger, tmp_path, monkeypatch):
    from sfumato.fitting import driver
    from sfumato.privacy.certificate_form import LedgerCharge

    fit(ledger, tmp_path / "1", epsilon=0.1)
    said = load(tmp_path / "1").certificate.ledger
    monkeypatch.setattr(driver, "LedgerCharge", lambda **_: LedgerCharge(charge=said.charge, chain=said.chain))
    create_ledger(tmp_path / "another", epsilon=10.0, delta=1e-4)
    dearer = fit(tmp_path / "another", tmp_path / "2", epsilon=1.0)
    assert standings(ledger, tmp_path / "1", dearer) == ["known", "other events"]


def test_estimators_state_their_charge(ledger, tmp_path):
    rows = np.random.default_rng(0).standard_normal((200, 2))
    model = DPGaussianMixture(2, iterations=2, bounds=(-3.0, 3.0), n_public=200)
    model.fit(rows, ledger=ledger).release().save(tmp_path / "r")
    assert standings(ledger, tmp_path / "r") == ["known"]
