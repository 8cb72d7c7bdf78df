"""The account of a data set: what it pays for, what it refuses, and what of it survives."""

import json
import os
import stat
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from fixtures import tables
from sfumato import DPMix, MaxEntropy, NonPrivate, create_ledger, load, read_ledger
from sfumato.data_ledger import data_ledger, ledger_file
from sfumato.data_ledger.data_ledger import charge, settled
from sfumato.data_ledger.journal import Journal, network_file_system
from sfumato.errors import BudgetExceededError, ConfigError, OutputError, PrivacyWarning
from sfumato.privacy.accounting import account, account_curve, account_of_fits, merged
from sfumato.privacy.plan import Neighbours, Plan, Stage, Subset

FULL_EFFORT = True  # costs are held to exact figures

DELTA = 1e-5
ONE = Plan([Stage(name="a", noise_multiplier=5.0, replace_distance=2**0.5)])
SAMPLED = Plan(
    [
        Stage(name="a", noise_multiplier=8.0, extra_delta=1e-7),
        Stage(name="b", noise_multiplier=1.5, sampling_probability=0.01, count=20),
    ]
)
SUBSET = Plan([Stage(name="a", noise_multiplier=3.0, subset=Subset(10, 1000))])


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "people.ledger"
    create_ledger(path, epsilon=2.0, delta=DELTA)
    return path


def pay(path, plan=ONE, **options):
    return charge(path, plan, **{"method": "m", "unit": "row"} | options)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_fits_together_cost_what_their_events_cost(neighbours):
    plans = [ONE, SAMPLED, ONE, SAMPLED]
    events = [event for plan in plans for event in plan.events(neighbours)]
    expected = account_curve(events, [DELTA - 2e-7], neighbours=neighbours)[0].epsilon
    found = account_of_fits(plans, DELTA, neighbours)
    assert found is not None
    assert expected <= found.epsilon + 2e-3
    assert found.epsilon <= expected + 1e-4
    assert merged(plans, neighbours).extra_delta == pytest.approx(2e-7)


def test_additive_parts_of_delta_add_up_beyond_any_epsilon():
    half = Plan([Stage(name="a", noise_multiplier=50.0, extra_delta=DELTA / 2)])
    assert account(half, DELTA).epsilon < 1
    assert account_of_fits([half, half], DELTA, Neighbours.ADD_REMOVE).epsilon == float("inf")


def test_subsets_join_the_rest_under_replace_one_only():
    found = account_of_fits([SUBSET, ONE], DELTA, Neighbours.REPLACE_ONE)
    alone = account_of_fits([ONE], DELTA, Neighbours.REPLACE_ONE)
    assert found.epsilon > alone.epsilon
    assert found.accountant == "PLDAccountant"


def test_pays_until_it_is_spent(ledger):
    payable = 0
    while account_of_fits([ONE] * (payable + 1), DELTA, Neighbours.ADD_REMOVE).epsilon <= 2:
        payable += 1
    for _ in range(payable):
        pay(ledger)
    before = ledger.read_bytes()
    with pytest.raises(BudgetExceededError, match="Nothing was read or charged"):
        pay(ledger)
    assert ledger.read_bytes() == before
    assert len(read_ledger(ledger).fits) == payable


def test_a_charge_is_on_the_disk_before_it_returns(ledger, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.readlink(f"/proc/self/fd/{handle}")))
    if os.path.isdir("/proc/self/fd"):
        pay(ledger)
        assert any(name.endswith(".partial") for name in synced)
        assert synced[-1] == str(ledger.parent)


def test_no_charge_when_the_disk_is_full(ledger, monkeypatch):
    before = ledger.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(OutputError, match="Nothing was charged"):
        pay(ledger)
    monkeypatch.undo()
    assert ledger.read_bytes() == before
    assert {path.name for path in ledger.parent.iterdir()} == {ledger.name, ledger.name + ".lock"}


def test_threads_never_lose_a_charge(tmp_path):
    path = tmp_path / "l"
    create_ledger(path, epsilon=50, delta=DELTA)
    threads = [threading.Thread(target=pay, args=(path,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_ledger(path).fits) == 8


def test_how_a_fit_ended(ledger, tmp_path):
    with settled(pay(ledger)):
        assert read_ledger(ledger).fits[-1].status == "running"
    with pytest.raises(KeyboardInterrupt), settled(pay(ledger)):
        raise KeyboardInterrupt
    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            pay(ledger)
            os._exit(0)
        os.waitpid(child, 0)
        assert [fit.status for fit in read_ledger(ledger).fits] == ["finished", "failed", "killed"]
    elsewhere = replace(read_ledger(ledger).fits[0].process, host="elsewhere")
    assert replace(read_ledger(ledger).fits[0], entry="running", process=elsewhere).status == "unknown"


def test_a_release_is_not_lost_with_its_ledger(ledger):
    with pytest.warns(PrivacyWarning, match="not noted"), settled(pay(ledger)):
        ledger.unlink()


def test_a_symbolic_link_is_the_ledger_itself_and_a_hard_one_is_refused(ledger, tmp_path):
    (tmp_path / "link").symlink_to(ledger)
    pay(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert len(read_ledger(ledger).fits) == 1
    os.link(ledger, tmp_path / "hard")
    with pytest.raises(ConfigError, match="hard links"):
        pay(ledger)


def test_units_and_relations_do_not_mix(ledger, tmp_path):
    pay(ledger, unit="person")
    with pytest.raises(ConfigError, match="same unit"):
        pay(ledger)
    with pytest.raises(ConfigError, match="replace-one"):
        pay(ledger, SUBSET, unit="person")
    create_ledger(tmp_path / "r", epsilon=3, delta=DELTA, neighbours=Neighbours.REPLACE_ONE)
    pay(tmp_path / "r", SUBSET)
    pay(tmp_path / "r", ONE)


def _ledger_text(**changes):
    budget = {"epsilon": 1, "delta": 1e-6}
    whole = {
        "format": "sfumato ledger 4", "budget": budget, "neighbours": "add_remove", "fits": []
    }  # fmt: skip
    return json.dumps(whole | changes)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "null", '{"format": "sfumato ledger 4"}', "[" * 100_000, "\udcff",
     _ledger_text(budget={"epsilon": float("inf"), "delta": 1e-6}), _ledger_text(format="sfumato"),
     _ledger_text(fits=[{"chain": ""}]), _ledger_text(fits=[3]),
     _ledger_text(neighbours="none"), _ledger_text()[:-1] + ', "fits": []}'],
)  # fmt: skip
def test_what_is_no_ledger_is_refused(tmp_path, text):
    path = tmp_path / "l"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match="ledger of Sfumato"):
        pay(path)


@pytest.mark.parametrize("version", [1, 2, 3, 5])
def test_another_version_is_refused_in_a_sentence(tmp_path, version):
    path = tmp_path / "l"
    path.write_text(_ledger_text(format=f"sfumato ledger {version}"))
    with pytest.raises(ConfigError, match=r"made by another version\. What it was charged stays spent"):
        pay(path)


@pytest.mark.parametrize("multiplier", [1e300, 1e-300, 1e13])
def test_hardening_5_noise_of_no_fit_is_refused(ledger, multiplier):
    pay(ledger)
    content = json.loads(ledger.read_text())
    content["fits"][0]["events"][0]["noise_multiplier"] = multiplier
    ledger.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="ledger of Sfumato"):
        read_ledger(ledger).spent()


def _take_out_the_first(content):
    del content["fits"][0]


def _make_cheaper(content):
    content["fits"][1]["events"][0]["noise_multiplier"] *= 10


def _exchange(content):
    content["fits"].reverse()


def _raise_the_budget(content):
    content["budget"]["epsilon"] = 50.0


def _add_twice(content):
    content["fits"].append(content["fits"][0])


@pytest.mark.parametrize("change", [_take_out_the_first, _make_cheaper, _exchange, _raise_the_budget, _add_twice])
def test_a_ledger_that_was_changed_by_hand_is_refused(tmp_path, change):
    path = tmp_path / "l"
    create_ledger(path, epsilon=10, delta=DELTA)
    for _ in range(3):
        pay(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=r"charge [12], or one before it, was changed|damaged one"):
        pay(path)


@pytest.mark.parametrize("key", ["entry", "ended", "run", "release", "process"])
def test_how_a_fit_ended_is_not_changed_by_hand_either(ledger, key):
    with settled(pay(ledger)):
        pass
    content = json.loads(ledger.read_text())
    other = {"entry": "failed", "ended": None, "run": "1 of-a-copy", "release": {"arrays": "a", "content": "b"}}
    content["fits"][0][key] = other.get(key, {"host": "elsewhere", "number": 1, "start": ""})
    ledger.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="was changed how a fit ended, or what it released"):
        pay(ledger)


@pytest.mark.parametrize("some", [slice(None), slice(1, 2)])
def test_a_ledger_without_its_chain_was_changed_by_hand(ledger, some):
    """Also where the hash of the whole file was made anew."""
    for _ in range(3):
        pay(ledger)
    content = json.loads(ledger.read_text())
    for fit in content["fits"][some]:
        del fit["chain"]
    ledger.write_text(json.dumps({**content, "seal": ledger_file._seal(content)}))
    before = ledger.read_bytes()
    with pytest.raises(ConfigError, match=r"whose charge [12], or one before it, was changed"):
        pay(ledger)
    assert ledger.read_bytes() == before


def test_the_chain_does_not_change_when_a_fit_ends(ledger):
    charged = pay(ledger)
    before = read_ledger(ledger).chain
    charged.stop("failed")
    assert read_ledger(ledger).chain == before == (charged.chain,)
    assert charged.number == 1


def test_a_charge_keeps_the_hashes_of_its_release(ledger, tmp_path):
    release = MaxEntropy(epsilon=1).fit(tables.frame(), schema=tables.schema(), ledger=ledger)
    release.save(tmp_path / "r")
    (entry,) = read_ledger(ledger).fits
    assert entry.release == release.hashes == load(tmp_path / "r").certificate.release
    assert entry.release is not None


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps to the folder's rights")
def test_hardening_4_nobody_else_may_read_a_ledger(tmp_path):
    path = tmp_path / "l"
    create_ledger(path, epsilon=10, delta=DELTA)
    pay(path)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (path, tmp_path / "l.lock")] == [0o600, 0o600]


def test_no_ledger_is_made_up_or_replaced(ledger, tmp_path):
    with pytest.raises(ConfigError, match="ledger create"):
        pay(tmp_path / "absent")
    with pytest.raises(OutputError, match="exists"):
        create_ledger(ledger, epsilon=1, delta=DELTA)
    with pytest.raises(ConfigError, match="epsilon"):
        create_ledger(tmp_path / "l", epsilon=0, delta=DELTA)


def test_a_fit_is_charged_before_it_reads_and_refused_before_it_reads(ledger, monkeypatch):
    frame, schema = tables.frame(), tables.schema()
    release = MaxEntropy(epsilon=1).fit(frame, schema=schema, ledger=ledger)
    (entry,) = read_ledger(ledger).fits
    assert (entry.method, entry.unit, entry.status) == ("max-entropy", "row", "finished")
    assert [data_ledger.event_to_dict(s) for s in entry.plan.stages] == release.certificate.content["events"]
    assert read_ledger(ledger).spent() <= 1 + 1e-9
    assert str(ledger.name) not in json.dumps(release.certificate.to_dict())

    seen = []
    refusing = MaxEntropy(epsilon=1.9)
    monkeypatch.setattr("sfumato.records.private.PrivateData.coded", lambda self: seen.append(1))
    with pytest.raises(BudgetExceededError):
        refusing.fit(frame, schema=schema, ledger=ledger)
    assert not seen
    monkeypatch.setattr("sfumato.records.private.PrivateData.coded", _gone)
    with pytest.raises(OSError, match="gone"):
        MaxEntropy(epsilon=0.1).fit(frame, schema=schema, ledger=ledger)
    assert [fit.status for fit in read_ledger(ledger).fits] == ["finished", "failed"]


def _gone(self):
    raise OSError("gone")


def test_no_budget_pays_for_a_seed(ledger):
    for method, options in (
        (MaxEntropy(epsilon=1), {"seed": 1}),
        (MaxEntropy(epsilon=NonPrivate()), {}),
    ):
        with pytest.raises(ConfigError, match="nobody can predict"):
            method.fit(tables.frame(), schema=tables.schema(), ledger=ledger, **options)
    assert not read_ledger(ledger).fits


def test_a_checkpoint_is_charged_once(ledger, tmp_path):
    path = tmp_path / "fit.checkpoint"
    journal = Journal(path, {"a": 1})
    charged = pay(ledger, checkpoint=journal)
    journal.keep("a", 1, {"w": np.zeros(2)})
    again = Journal(path, {"a": 1})
    assert again.charge == charged.id
    with pytest.raises(ConfigError, match="running"):  # by this very process
        pay(ledger, checkpoint=again)
    charged.stop("failed")
    resumed = pay(ledger, checkpoint=again)
    assert [(fit.id, fit.runs) for fit in read_ledger(ledger).fits] == [(charged.id, 2)]
    resumed.finish()
    told = pay(ledger, checkpoint=again)
    assert told.complete
    assert not charged.complete
    with pytest.raises(ConfigError, match="no fit"):
        pay(ledger, SAMPLED, checkpoint=again)


def test_every_method_takes_a_ledger():
    assert DPMix.fit is MaxEntropy.fit


class TestHardening5ClocksAndFileSystems:
    """Finding 5 of the review: a ledger where the clock is set, and where locks may not hold."""

    def test_no_account_follows_the_clock(self, ledger, monkeypatch):
        times = iter(["2030-01-01T00:00:00+00:00", "1970-01-01T00:00:00+00:00", "1999-01-01T00:00:00+00:00"] * 3)
        monkeypatch.setattr(data_ledger, "_now", lambda: next(times))
        charges = [pay(ledger) for _ in range(3)]
        for made in charges:
            made.finish()
        state = read_ledger(ledger)
        assert [fit.id for fit in state.fits] == [made.id for made in charges]
        assert [made.chain for made in charges] == list(state.chain)
        assert state.spent() == pytest.approx(account_of_fits([ONE] * 3, DELTA, Neighbours.ADD_REMOVE).epsilon)
        assert [fit.status for fit in state.fits] == ["finished"] * 3

    @pytest.mark.parametrize("system", ["nfs4", "cifs", "fuse.sshfs", "smb3"])
    def test_network_file_systems_are_refused_by_name(self, ledger, tmp_path, monkeypatch, system):
        here = SimpleNamespace(mountpoint=str(tmp_path), fstype=system)
        mounts = [SimpleNamespace(mountpoint="/", fstype="ext4"), here]
        monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounts)
        with pytest.raises(ConfigError, match=f"the file system {system}: locks may not hold"):
            create_ledger(tmp_path / "shared.ledger", epsilon=1, delta=1e-6)
        assert not (tmp_path / "shared.ledger").exists()
        with pytest.warns(PrivacyWarning, match=f"the file system {system}"):
            pay(ledger)

    def test_other_file_systems_are_not(self, tmp_path, monkeypatch):
        for system in ("ext4", "overlay", "tmpfs", "apfs", "NTFS", "zfs"):
            monkeypatch.setattr(
                psutil, "disk_partitions", lambda all, system=system: [SimpleNamespace(mountpoint="/", fstype=system)]
            )
            assert network_file_system(tmp_path) is None
        monkeypatch.setattr(psutil, "disk_partitions", lambda all: [])
        assert network_file_system(tmp_path) is None
