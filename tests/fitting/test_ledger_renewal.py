"""A ledger without a chain is carried over, never as proven: what was changed in it before stays to be found."""

import hashlib
import json

import pytest

from fixtures.releases import SMALL, small_frame
from sfumato import ConditionalGaussian, create_ledger, load, read_ledger
from sfumato.cli.app import run
from sfumato.errors import BudgetExceededError, ConfigError, OutputError
from sfumato.fitting import ledger_file
from sfumato.fitting.data_ledger import charge
from sfumato.fitting.journal import Journal
from sfumato.fitting.ledger_check import check_releases
from sfumato.fitting.ledger_renewal import renew_ledger
from sfumato.privacy.plan import Plan, Stage

PLAN = Plan([Stage(name="a", noise_multiplier=8.0)])


@pytest.fixture
def ledger(tmp_path):
    create_ledger(tmp_path / "l", epsilon=3.0, delta=1e-4)
    return tmp_path / "l"


def fit(ledger, path):
    ConditionalGaussian(epsilon=1.0).fit(small_frame(), schema=SMALL, ledger=ledger).save(path)
    return path


def standings(ledger, *releases):
    return [claim.standing for claim in check_releases(ledger, releases)]


def rewrite(path, *changes):
    """Write the ledger as somebody would who takes its chain out, and more."""
    content = json.loads(path.read_text())
    for entry in content["fits"]:
        del entry["chain"]
    for change in changes:
        change(content)
    path.write_text(json.dumps(content))


def as_before(content):
    """Make it a ledger of the version before, which kept no releases and no runs."""
    content["format"] = "sfumato ledger 1"
    del content["seal"], content["renewal"]
    for entry in content["fits"]:
        del entry["run"], entry["release"]


def take_out_the_second(content):
    del content["fits"][1]


def ten_times_the_noise(content):
    for event in content["fits"][1]["events"]:
        event["noise_multiplier"] *= 10


def ten_times_the_budget(content):
    content["budget"]["epsilon"] *= 10


@pytest.mark.parametrize("older", [True, False])
def test_what_was_charged_stays_charged_and_is_said_to_be_unproven(ledger, tmp_path, older):
    fit(ledger, tmp_path / "1")
    spent = read_ledger(ledger).spent()
    rewrite(ledger, *([as_before] if older else []))
    content = ledger.read_bytes()
    renewed = renew_ledger(ledger, tmp_path / "new")
    assert ledger.read_bytes() == content
    assert renewed == read_ledger(tmp_path / "new")
    assert renewed.carried == 1
    assert renewed.renewal.sha256 == hashlib.sha256(content).hexdigest()
    assert renewed.spent() == spent > 0.5
    later = fit(tmp_path / "new", tmp_path / "2")
    assert load(later).certificate.ledger.charge == 2
    assert load(later).certificate.ledger.carried == 1
    assert standings(tmp_path / "new", later) == ["known"]
    with pytest.raises(BudgetExceededError):
        ConditionalGaussian(epsilon=5.0).fit(small_frame(), schema=SMALL, ledger=tmp_path / "new")


@pytest.mark.parametrize("change", [take_out_the_second, ten_times_the_noise, ten_times_the_budget])
def test_hardening_b3_a_changed_ledger_is_not_laundered(ledger, tmp_path, change):
    """Whoever has the releases sees it: the hashes they state are not those of what was carried over."""
    releases = [fit(ledger, tmp_path / name) for name in "12"]
    rewrite(ledger, change)
    with pytest.raises(ConfigError, match="ledger renew"):
        fit(ledger, tmp_path / "3")
    renew_ledger(ledger, tmp_path / "new")
    later = fit(tmp_path / "new", tmp_path / "3")
    assert standings(tmp_path / "new", releases[1]) in (["other chain"], ["unknown"])
    assert standings(tmp_path / "new", *releases, later)[1] != "known"
    assert run(["ledger", "verify", str(tmp_path / "new"), *map(str, releases), str(later)]) == 1
    assert load(later).certificate.ledger.carried > 0


@pytest.mark.parametrize("older", [True, False])
def test_what_was_not_changed_is_known_by_the_releases_of_before(ledger, tmp_path, older, monkeypatch):
    if older:
        monkeypatch.setattr("sfumato.fitting.ledger_state.LEDGER_FORMAT", "sfumato ledger 1")
    releases = [fit(ledger, tmp_path / name) for name in "12"]
    monkeypatch.undo()
    rewrite(ledger, *([as_before] if older else []))
    renew_ledger(ledger, tmp_path / "new")
    assert standings(tmp_path / "new", *releases) == ["carried" if older else "known"] * 2
    assert run(["ledger", "verify", str(tmp_path / "new"), *map(str, releases)]) == 0


def test_two_releases_for_a_charge_whose_release_was_not_noted_are_found(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.fitting.ledger_state.LEDGER_FORMAT", "sfumato ledger 1")
    first = fit(ledger, tmp_path / "1")
    charge_of_first = load(first).certificate.ledger
    create_ledger(tmp_path / "another", epsilon=3.0, delta=1e-4)
    monkeypatch.setattr("sfumato.fitting.driver.LedgerCharge", lambda **_: charge_of_first)
    second = fit(tmp_path / "another", tmp_path / "2")
    monkeypatch.undo()
    rewrite(ledger, as_before)
    renew_ledger(ledger, tmp_path / "new")
    assert standings(tmp_path / "new", first, first) == ["carried", "carried"]
    assert standings(tmp_path / "new", first, second) == ["other release", "other release"]


def test_that_it_was_renewed_is_not_taken_out_without_the_chain(ledger, tmp_path):
    charge(ledger, PLAN, method="m", unit="row").finish()
    rewrite(ledger)
    renew_ledger(ledger, tmp_path / "new")
    content = json.loads((tmp_path / "new").read_text())
    content["renewal"] = None
    (tmp_path / "new").write_text(json.dumps({**content, "seal": ledger_file._seal(content)}))
    with pytest.raises(ConfigError, match="charge 1, or one before it, was changed"):
        read_ledger(tmp_path / "new")


def test_nothing_goes_on_under_a_charge_that_was_carried_over(ledger, tmp_path):
    journal = Journal(tmp_path / "c", {})
    charge(ledger, PLAN, method="m", unit="row", checkpoint=journal).fail()
    rewrite(ledger)
    renew_ledger(ledger, tmp_path / "new")
    with pytest.raises(ConfigError, match="one of before it was renewed"):
        charge(tmp_path / "new", PLAN, method="m", unit="row", checkpoint=Journal(tmp_path / "c", {}))


def test_what_cannot_be_renewed(ledger, tmp_path):
    with pytest.raises(ConfigError, match="nothing to renew"):
        renew_ledger(ledger, tmp_path / "new")  # an empty one has its seal
    charged = charge(ledger, PLAN, method="m", unit="row")
    with pytest.raises(ConfigError, match="nothing to renew"):
        renew_ledger(ledger, tmp_path / "new")
    rewrite(ledger)
    with pytest.raises(ConfigError, match="one of which runs"):
        renew_ledger(ledger, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert charged.number == 1


def test_a_part_of_a_chain_is_not_renewed(ledger, tmp_path):
    for _ in range(3):
        charge(ledger, PLAN, method="m", unit="row").finish()
    content = json.loads(ledger.read_text())
    del content["fits"][1]["chain"]
    ledger.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="charge 2, or one before it, was changed"):
        renew_ledger(ledger, tmp_path / "new")


def test_the_new_ledger_replaces_nothing(ledger, tmp_path):
    charge(ledger, PLAN, method="m", unit="row").finish()
    rewrite(ledger)
    (tmp_path / "new").write_text("mine")
    with pytest.raises(OutputError, match="exists"):
        renew_ledger(ledger, tmp_path / "new")
    with pytest.raises(OutputError, match="exists"):
        renew_ledger(ledger, ledger)
    assert (tmp_path / "new").read_text() == "mine"
