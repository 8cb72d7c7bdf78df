"""Copies of a checkpoint: whatever is copied, killed and gone on with, one charge pays for one release."""

import contextlib
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from fixtures import tables
from fixtures.sampling import few_simulations
from sfumato import P3GM, EstimateCount, MaxEntropy, create_ledger, read_ledger
from sfumato.data_ledger import data_ledger
from sfumato.data_ledger.data_ledger import charge, settled
from sfumato.data_ledger.journal import Journal
from sfumato.data_ledger.ledger_check import check_releases
from sfumato.errors import ConfigError, OutputError, SfumatoError
from sfumato.fitting.driver import Driver
from sfumato.privacy.certificate_form import Bound
from sfumato.privacy.plan import Plan, Stage

__all__ = ["few_simulations"]


class Kill(BaseException):
    """Comes from nowhere, as a kill does."""


def killed(*_, **__):
    raise Kill


@pytest.fixture
def ledger(tmp_path):
    create_ledger(tmp_path / "people.ledger", epsilon=1.0, delta=1e-6)
    return tmp_path / "people.ledger"


def fit(ledger, checkpoint, **options):
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    return method.fit(tables.frame(), schema=tables.schema(), checkpoint=checkpoint, ledger=ledger, **options)


def stopped_in_the_second_stage(ledger, checkpoint):
    stages = []

    def progress(stage):
        stages.append(stage)
        if len(stages) == 2:
            raise Kill

    with pytest.raises(Kill):
        fit(ledger, checkpoint, progress=progress)


def killed_at(place, ledger, checkpoint):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*place, killed)
        with pytest.raises(Kill):
            fit(ledger, checkpoint)


BEFORE_THE_RELEASE = (Driver, "certificate")  # every stage is drawn and written; nothing leaves


@contextlib.contextmanager
def killed_between_the_files():
    """One of the two files knows of the run, whichever is written first; the other does not."""
    written = []

    def first_alone(write):
        def writing(*arguments, **options):
            if written:
                raise Kill
            written.append(write)
            return write(*arguments, **options)

        return writing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "begin", first_alone(Journal.begin))
        patch.setattr(data_ledger, "write_ledger_file", first_alone(data_ledger.write_ledger_file))
        with pytest.raises(Kill):
            yield


def released(ledger, checkpoint, path):
    """Go on with a checkpoint; return the path of the release, None if it is refused."""
    try:
        fit(ledger, checkpoint).save(path)
    except SfumatoError:
        return None
    return path


def standings(ledger, *releases):
    return [claim.standing for claim in check_releases(ledger, releases)]


@pytest.mark.parametrize("copy_first", [True, False])
def test_one_charge_pays_for_one_release(ledger, tmp_path, copy_first):
    """Finished from both, the second stage would have been drawn twice: one charge of ε = 1, a true cost of 1.289."""
    own, copy = tmp_path / "own", tmp_path / "copy"
    stopped_in_the_second_stage(ledger, own)
    shutil.copy(own, copy)
    killed_at(BEFORE_THE_RELEASE, ledger, own)
    order = [copy, own] if copy_first else [own, copy]
    found = [released(ledger, checkpoint, tmp_path / f"{checkpoint.name}.sfm") for checkpoint in order]
    assert [path is not None for path in found] == [checkpoint is own for checkpoint in order]
    (entry,) = read_ledger(ledger).fits
    assert (entry.status, entry.runs) == ("finished", 2 + 1)
    assert standings(ledger, tmp_path / "own.sfm") == ["known"]


def test_a_copy_made_before_the_ledger_counts_is_refused_after_it(ledger, tmp_path):
    """Killed between the two files, both can go on, for nothing was drawn; once one has, the other cannot."""
    own, copy = tmp_path / "own", tmp_path / "copy"
    stopped_in_the_second_stage(ledger, own)
    shutil.copy(own, copy)
    with killed_between_the_files():
        fit(ledger, own)
    assert read_ledger(ledger).fits[0].runs == 1
    killed_at(BEFORE_THE_RELEASE, ledger, copy)
    with pytest.raises(ConfigError, match="an older copy, beside which the fit went on"):
        fit(ledger, own)
    assert released(ledger, copy, tmp_path / "r")


@pytest.mark.parametrize("times", [1, 2])
def test_a_process_killed_between_the_files_goes_on(ledger, tmp_path, times):
    stopped_in_the_second_stage(ledger, tmp_path / "c")
    for _ in range(times):
        with killed_between_the_files():
            fit(ledger, tmp_path / "c")
    assert released(ledger, tmp_path / "c", tmp_path / "r")
    assert [entry.runs for entry in read_ledger(ledger).fits] == [2]


def test_a_first_run_killed_between_the_files_is_charged_once(ledger, tmp_path):
    with killed_between_the_files():
        fit(ledger, tmp_path / "c")
    assert released(ledger, tmp_path / "c", tmp_path / "r")
    assert [entry.runs for entry in read_ledger(ledger).fits] == [1]


def test_a_first_run_killed_before_its_first_draw_is_charged_once(ledger, tmp_path):
    killed_at((Driver, "silenced"), ledger, tmp_path / "c")
    assert released(ledger, tmp_path / "c", tmp_path / "r")
    assert [entry.runs for entry in read_ledger(ledger).fits] == [2]


def test_a_process_that_read_the_checkpoint_before_another_went_on_is_refused(ledger, tmp_path):
    """Two processes: what one read is older than what the other has written since."""
    path, stage = tmp_path / "c", {"value": np.zeros(1)}
    with pytest.raises(Kill):
        run(ledger, path, stop="a")
    slow = Journal(path, {})
    with pytest.raises(Kill):
        run(ledger, path, stop="b")
    with pytest.raises(ConfigError, match="older copy"):
        charge(ledger, PLAN, method="m", unit="row", checkpoint=slow)
    assert set(Journal(path, {}).read("b")) == set(stage)


def test_a_run_that_another_took_over_gives_nothing_out(ledger, tmp_path):
    """Where a process that runs seems to have ended, on another machine or in a container, two may run at once."""
    journal = Journal(tmp_path / "c", {})
    with pytest.raises(ConfigError, match="Nothing leaves this run"):  # noqa: SIM117
        with settled(charge(ledger, PLAN, method="m", unit="row", checkpoint=journal), has_checkpoint=True):
            charge_of_another = charge_after_an_end(ledger, tmp_path / "c")
    assert charge_of_another.number == 1


def charge_after_an_end(ledger, path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_ledger.ChargedFit, "status", "unknown")
        return charge(ledger, PLAN, method="m", unit="row", checkpoint=Journal(path, {}))


def test_ledger_and_checkpoint_copied_together_are_found_by_their_releases(ledger, tmp_path):
    """Nothing on the disk can tell: of each pair of files a fit goes on. Whoever has both releases sees it."""
    stopped_in_the_second_stage(ledger, tmp_path / "own")
    shutil.copy(tmp_path / "own", tmp_path / "copy")
    shutil.copy(ledger, tmp_path / "copy.ledger")
    assert released(ledger, tmp_path / "own", tmp_path / "a")
    assert released(tmp_path / "copy.ledger", tmp_path / "copy", tmp_path / "b")
    assert standings(ledger, tmp_path / "a", tmp_path / "b") == ["known", "other release"]
    assert standings(tmp_path / "copy.ledger", tmp_path / "a", tmp_path / "b") == ["other release", "known"]


def test_without_a_ledger_nothing_counts(tmp_path):
    """What the documentation says of it: copies go on, each to a release of its own."""
    stopped_in_the_second_stage(None, tmp_path / "own")
    shutil.copy(tmp_path / "own", tmp_path / "copy")
    first, second = fit(None, tmp_path / "own"), fit(None, tmp_path / "copy")
    assert first.hashes != second.hashes


def test_a_checkpoint_that_began_without_a_ledger_is_charged_whole_in_one(ledger, tmp_path):
    stopped_in_the_second_stage(None, tmp_path / "c")
    fit(ledger, tmp_path / "c")
    assert read_ledger(ledger).spent() > 0.99


def test_a_release_that_the_ledger_could_not_note_does_not_leave(ledger, tmp_path, monkeypatch):
    """Else an older copy of the checkpoint, which the ledger knows nothing against, would make a second one."""
    full = partial(_full_disk_at_the_end, data_ledger.write_ledger_file)
    with monkeypatch.context() as patch:
        patch.setattr(data_ledger, "write_ledger_file", full)
        with pytest.raises(OutputError, match="the same call makes it again from the checkpoint"):
            fit(ledger, tmp_path / "c")
    assert released(ledger, tmp_path / "c", tmp_path / "r")
    assert standings(ledger, tmp_path / "r") == ["known"]
    assert len(read_ledger(ledger).fits) == 1


def _full_disk_at_the_end(write, path, state, **options):
    if state.fits[-1].entry != "running":
        raise OutputError(f"Cannot write the ledger {path}: No space left on device.")
    write(path, state, **options)


@pytest.mark.parametrize(
    "options",
    [{"target": "income"}, {"n_public": EstimateCount()}],
)
def test_what_is_told_again_is_the_same_release(ledger, tmp_path, options):
    """To the last bit, by its hashes: else it would be refused as a second one."""
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    options = {"schema": tables.schema(), "checkpoint": tmp_path / "c", "ledger": ledger, **options}
    releases = [method.fit(tables.frame(), **options) for _ in range(3)]
    assert len({release.hashes for release in releases}) == 1


def test_another_release_is_not_told_again(ledger, tmp_path, monkeypatch):
    fit(ledger, tmp_path / "c")
    found = Driver.final

    def changed(self, release):
        found(self, release)
        for made in self.charges:
            made.release = Bound(arrays="0" * 64, content="0" * 64)
        return release

    monkeypatch.setattr(Driver, "final", changed)
    with pytest.raises(ConfigError, match="a second release for one charge"):
        fit(ledger, tmp_path / "c")


# The rules of the two files alone, with draws that cost nothing: every sequence of copies, kills and runs.

PLAN = Plan([Stage(name=name, noise_multiplier=8.0) for name in ("a", "b")])
STOPS = ("between", "before a", "a", "b", None)


def run(ledger, path, stop=None):
    """Run a fit of two draws, killed at a place; return its release: what it drew."""
    journal, options = Journal(path, {}), {"method": "m", "unit": "row"}
    if stop == "between" and not any(fit.entry == "finished" for fit in read_ledger(ledger).fits):
        with killed_between_the_files():
            charge(ledger, PLAN, checkpoint=journal, **options)
        raise Kill
    charged = charge(ledger, PLAN, checkpoint=journal, **options)
    with settled(charged, has_checkpoint=True):
        if stop == "before a":
            raise Kill
        drawn = []
        for stage in ("a", "b"):
            kept = journal.read(stage)
            if kept is None:
                if charged.complete:
                    raise ConfigError("noise that nothing paid for")
                kept = {"value": np.random.default_rng().random(1)}
                journal.write(stage, None, kept)
            drawn.append(float(kept["value"][0]))
            if stop == stage:
                raise Kill
        charged.release = Bound(arrays=repr(drawn), content="")
    return tuple(drawn)


@pytest.mark.parametrize("seed", range(40))
def test_any_sequence_of_copies_kills_and_runs_ends_in_one_release(tmp_path, seed):
    rng = np.random.default_rng(seed)
    create_ledger(tmp_path / "l", epsilon=50.0, delta=1e-6)
    files, found = [tmp_path / name for name in "pqr"], set()
    newest = files[0]
    with pytest.raises(Kill):
        run(tmp_path / "l", newest, stop=STOPS[1 + seed % 3])
    for _ in range(8):
        one, other = (files[i] for i in rng.choice(3, 2, replace=False))
        if rng.random() < 0.4 and one.exists() and other != newest:
            shutil.copy(one, other)
        elif one.exists():
            runs = read_ledger(tmp_path / "l").fits[0].runs
            with contextlib.suppress(Kill, ConfigError):
                found.add(run(tmp_path / "l", one, stop=STOPS[rng.integers(len(STOPS))]))
            newest = one if read_ledger(tmp_path / "l").fits[0].runs > runs else newest
    if seed % 2:
        found.add(run(tmp_path / "l", newest))  # what the last run left can always go on
    for path in filter(Path.exists, files):
        with contextlib.suppress(ConfigError):
            found.add(run(tmp_path / "l", path))
    assert len(found) == len(read_ledger(tmp_path / "l").fits) == 1


@pytest.mark.slow
@pytest.mark.audit
def test_networks_go_on_under_the_same_rules(ledger, tmp_path):
    pytest.importorskip("torch", reason="networks need the extra nets")
    from fixtures.methods import SMALL

    method = P3GM(epsilon=1.0, delta=1e-6, **{**SMALL, "epochs": 40, "batch_size": 100})
    options = {"schema": tables.schema(), "target": "income", "checkpoint": tmp_path / "own", "ledger": ledger}
    steps = []

    def progress(stage):
        steps.append(stage)
        if steps.count("decoder") == 60:
            raise Kill

    with pytest.raises(Kill):
        method.fit(tables.frame(), progress=progress, **options)
    shutil.copy(tmp_path / "own", tmp_path / "copy")
    assert len({method.fit(tables.frame(), **options).hashes for _ in range(2)}) == 1
    with pytest.raises(ConfigError, match="older copy"):
        method.fit(tables.frame(), **{**options, "checkpoint": tmp_path / "copy"})
