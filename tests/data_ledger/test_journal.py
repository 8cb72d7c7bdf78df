"""A fit that is stopped and goes on: one charge, and nothing of the records in between."""

import os
import signal
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import safetensors.numpy

pytest.importorskip("torch", reason="networks need the extra nets")

from fixtures import tables
from fixtures.methods import QUICK, SMALL
from fixtures.sampling import few_simulations
from harness.privacy import FakeRecords
from sfumato import P3GM, DPMix, EstimateCount, MaxEntropy, OpenSchema, create_ledger, load
from sfumato.data_ledger import journal
from sfumato.data_ledger.data_ledger import read_ledger
from sfumato.data_ledger.journal import Journal, written_out
from sfumato.errors import ConfigError, LedgerError
from sfumato.fitting.account import Account, arrays_of
from sfumato.fitting.arguments import RowCount
from sfumato.mechanisms.noise import NoNoise, SecureNoise
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.p3gm.settings import StandardNormal
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage

__all__ = ["few_simulations"]

SETTINGS = {**SMALL, "epochs": 40, "batch_size": 100}


class Stop(BaseException):
    """Comes from nowhere, as a kill does."""


def method(**settings):
    return P3GM(**{"epsilon": 1.0, **SETTINGS, **settings})


def fit(path, *, stop_after: int | None = None, **settings):
    done = []

    def progress(stage):
        done.append(stage)
        if stop_after is not None and len(done) > stop_after:
            raise Stop

    return method(**settings).fit(
        tables.frame(), schema=tables.schema(), target="income", checkpoint=path, progress=progress
    )


@pytest.fixture
def draws(monkeypatch):
    """Every noise vector that is drawn."""
    seen = []
    original = SecureNoise.gaussian

    def watched(self, shape, noise_std):
        seen.append(shape)
        return original(self, shape, noise_std)

    monkeypatch.setattr(SecureNoise, "gaussian", watched)
    return seen


class TestGoingOn:
    @pytest.mark.slow
    @pytest.mark.audit
    @pytest.mark.parametrize("stop_after", [0, 1, 2, 3, 4, 60, 80])
    def test_a_stopped_fit_is_charged_once(self, tmp_path, draws, monkeypatch, stop_after):
        path = tmp_path / "fit.checkpoint"
        with pytest.raises(Stop):
            fit(path, stop_after=stop_after)
        drawn = len(draws)
        ledgers = []
        close = Ledger.close
        monkeypatch.setattr(Ledger, "close", lambda self: (ledgers.append(self), close(self)))
        release = fit(path)
        (ledger,) = ledgers
        plan = method().plan(tables.schema(), target="income")
        assert ledger.charged == tuple((stage.name, stage.count) for stage in plan.stages)
        assert release.certificate.private
        assert release.certificate.epsilon <= 1.0
        assert len(release.sample(20)) == 20
        total = sum(stage.count for stage in plan.stages)
        # what was kept is not drawn again: at most the steps since the last time that something was kept
        assert len(draws) - drawn <= total - max(stop_after - 50, 0)

    def test_whole_stages_are_kept_to_the_last_bit(self, tmp_path):
        path = tmp_path / "fit.checkpoint"
        with pytest.raises(Stop):
            fit(path, stop_after=10)
        releases = [fit(path), fit(path)]
        for one, other in zip(*(r.measurements for r in releases), strict=True):
            np.testing.assert_array_equal(one.value, other.value)
        assert all(
            np.array_equal(releases[0].parameters[name], releases[1].parameters[name])
            for name in releases[0].parameters
        ), "a fit that has ended gives the same release again"

    @pytest.mark.slow
    @pytest.mark.audit
    def test_killed_for_good(self, tmp_path):
        """kill -9 in the middle of the steps; the same fit in another process then writes a release."""
        path, out = tmp_path / "fit.checkpoint", tmp_path / "out.sfm"
        script = textwrap.dedent(f"""
            import sys
            sys.path.insert(0, {os.path.dirname(os.path.dirname(__file__))!r})
            from fixtures import tables
            from fixtures.accounting import coarse
            from sfumato import P3GM
            with coarse():  # as here: another account is another plan
                release = P3GM(epsilon=1.0, **{SETTINGS!r}).fit(
                    tables.frame(), schema=tables.schema(), checkpoint={str(path)!r},
                    progress=lambda stage: print(stage, flush=True))
            release.save({str(out)!r}, overwrite=True)
        """)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
        run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
        assert run.stdout is not None
        steps = 0
        for line in run.stdout:
            steps += line.strip() == "decoder"
            if steps == 75:
                break
        run.send_signal(signal.SIGKILL)
        run.communicate()
        assert path.exists()
        assert not out.exists()
        method().fit(tables.frame(), schema=tables.schema(), checkpoint=path).save(out)
        assert load(out).certificate.recompute() <= 1.0


class TestRefusals:
    @pytest.mark.parametrize("make", [method, lambda: P3GM(epsilon=1.0, prior=StandardNormal(), **SETTINGS)])
    def test_a_finished_fit_is_told_again_and_never_made_again(self, tmp_path, make):
        """As when the release could not be saved; and an old copy of the checkpoint makes no second release."""
        ledger, path = tmp_path / "a.ledger", tmp_path / "fit.checkpoint"
        create_ledger(ledger, epsilon=1.5, delta=1e-3)
        copies = []

        def progress(stage):
            if path.exists():
                copies.append(path.read_bytes())

        def again():
            options = {"schema": tables.schema(), "target": "income", "checkpoint": path, "ledger": ledger}
            return make().fit(tables.frame(), progress=progress, **options)

        first, whole = again(), path.read_bytes()
        second = again()
        assert all(np.array_equal(first.parameters[name], second.parameters[name]) for name in first.parameters)
        assert [entry.status for entry in read_ledger(ledger).fits] == ["finished"]
        path.write_bytes(next(copy for copy in copies if copy != whole))
        with pytest.raises(ConfigError, match="new noise"):
            again()
        assert [entry.status for entry in read_ledger(ledger).fits] == ["finished"]

    @pytest.mark.slow
    @pytest.mark.audit
    def test_another_fit(self, tmp_path):
        path = tmp_path / "fit.checkpoint"
        with pytest.raises(Stop):
            fit(path, stop_after=3)
        before = path.read_bytes()
        for settings in ({"hidden": 9}, {"epsilon": 2.0}, {"epochs": 39}):
            with pytest.raises(ConfigError, match="another schema, plan or settings"):
                fit(path, **settings)
        with pytest.raises(ConfigError, match="another"):
            method().fit(tables.frame(), schema=tables.schema(), target="grade", checkpoint=path)
        with pytest.raises(ConfigError, match="another"):
            method().fit(tables.frame(), schema=tables.schema(), target="income", checkpoint=path, seed=1)
        assert path.read_bytes() == before

    def test_settings_that_are_printed_alike(self):
        large = np.zeros((100, 100))
        other = large.copy()
        other[50, 50] = 1e-9
        assert repr(large) == repr(other)
        assert written_out(large) != written_out(other)
        assert written_out(large) != written_out(large.astype(np.float32))
        assert written_out(large) == written_out(np.asfortranarray(large))

    @pytest.mark.parametrize("content", [b"", b"PK", b"\x10" + bytes(7) + b"{}", b"x" * 1000])
    def test_no_checkpoint(self, tmp_path, content):
        path = tmp_path / "notes.txt"
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="checkpoint of Sfumato"):
            fit(path)
        assert path.read_bytes() == content

    @pytest.mark.parametrize("steps", ["", "[]", "3", '{"decoder": -1}', '{"decoder": null}', "{}"])
    def test_a_damaged_checkpoint(self, tmp_path, steps):
        path = tmp_path / "fit.checkpoint"
        with pytest.raises(Stop):
            fit(path, stop_after=60)
        with safetensors.safe_open(path, "numpy") as file:
            header = {**file.metadata(), "steps": steps}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        path.write_bytes(safetensors.numpy.save(arrays, header))
        with pytest.raises(ConfigError, match="damaged"):
            fit(path)

    def test_a_cut_checkpoint(self, tmp_path):
        path = tmp_path / "fit.checkpoint"
        with pytest.raises(Stop):
            fit(path, stop_after=60)
        path.write_bytes(path.read_bytes()[:-10])
        with pytest.raises(ConfigError, match="checkpoint of Sfumato"):
            fit(path)

    @pytest.mark.slow
    @pytest.mark.audit
    def test_a_method_that_releases_all_at_once(self, tmp_path):
        with pytest.raises(ConfigError, match="keeps no releases"):
            DPMix(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), checkpoint=tmp_path / "fit.checkpoint")

    def test_columns_to_discover(self, tmp_path):
        with pytest.raises(ConfigError, match="columns to discover"):
            MaxEntropy(epsilon=1.0, delta=1e-6).fit(
                tables.frame(), schema=OpenSchema.of(tables.frame()), n_public=1000, checkpoint=tmp_path / "c"
            )


def test_two_releases_without_a_descent_are_kept_too(tmp_path, monkeypatch):
    """Stopped before its second release, a table's fit draws that one alone; after it, none."""
    path, charged, draws = tmp_path / "fit.checkpoint", [], []
    drawn_before = SecureNoise.rounded_gaussian
    monkeypatch.setattr(
        SecureNoise, "rounded_gaussian", lambda self, *a, **k: (draws.append(1), drawn_before(self, *a, **k))[1]
    )

    def stop(stage):
        charged.append(stage)
        if len(charged) == 2:
            raise Stop

    def go(**options):
        return MaxEntropy(epsilon=1.0).fit(
            tables.frame(), schema=tables.schema(), target="income", checkpoint=path, **options
        )

    with pytest.raises(Stop):
        go(progress=stop)
    drawn = len(draws)
    released = go()
    assert len(draws) - drawn > 0
    drawn = len(draws)
    again = go()
    assert len(draws) == drawn
    for one, other in zip(released.measurements, again.measurements, strict=True):
        np.testing.assert_array_equal(one.value, other.value)
    for name, array in released.parameters.items():
        np.testing.assert_array_equal(array, again.parameters[name])


def test_what_stands_after_a_new_release_is_never_told_from_the_file(tmp_path):
    """Else an early release that was not kept would be drawn twice."""
    kept = Journal(tmp_path / "checkpoint", {})
    kept.write("second", None, arrays_of(Noisy(np.zeros(()), 1.0)))
    plan = Plan([Stage(name=n, noise_multiplier=1.0, replace_distance=1.0) for n in ("first", "second")])
    account = Account(Ledger(plan, None), NoNoise(), kept)
    account.measure("first", RowCount(), FakeRecords([{"x": np.zeros(3)}]))
    with pytest.raises(LedgerError, match="in the checkpoint, too"):
        account.measure("second", RowCount(), FakeRecords([{"x": np.zeros(3)}]))


def test_a_bought_number_of_rows_is_kept_as_well(tmp_path):
    path, charged = tmp_path / "fit.checkpoint", []

    def stop(stage):
        charged.append(stage)
        if len(charged) == 3:
            raise Stop

    def go(**options):
        return MaxEntropy(epsilon=1.0, delta=1e-6).fit(
            tables.frame(), schema=tables.schema(), n_public=EstimateCount(), checkpoint=path, **options
        )

    with pytest.raises(Stop):
        go(progress=stop)
    released, again = go(), go()
    assert len(released.measurements) == 4
    for one, other in zip(released.measurements, again.measurements, strict=True):
        np.testing.assert_array_equal(one.value, other.value)
    assert released.certificate.content["n_public"] == again.certificate.content["n_public"]


def test_a_checkpoint_that_began_under_a_ledger_goes_on_under_it(tmp_path):
    """Without it the ledger would never know that the fit has ended, and older copies of the file could go on."""
    ledger, path = tmp_path / "data.ledger", tmp_path / "fit.checkpoint"
    create_ledger(ledger, epsilon=1.0, delta=1e-5)
    method = MaxEntropy(epsilon=1.0, delta=1e-6)
    method.fit(tables.frame(), schema=tables.schema(), checkpoint=path, ledger=ledger)
    with pytest.raises(ConfigError, match="the ledger under which the checkpoint began"):
        method.fit(tables.frame(), schema=tables.schema(), checkpoint=path)
    assert len(read_ledger(ledger).fits) == 1


@pytest.mark.parametrize("name", ["counts", "counts/by class", "a#2", "50 %", "é"])
def test_any_name_of_a_stage_is_found_again(tmp_path, name):
    """One that was not found would be drawn a second time, at one charge."""
    plan = Plan([Stage(name=name, noise_multiplier=1.0, replace_distance=1.0, count=2)])
    records = FakeRecords([{"x": np.zeros(3)}])

    def measured():
        account = Account(Ledger(plan, None), SecureNoise(), Journal(tmp_path / "checkpoint", {}))
        return [float(account.measure(name, RowCount(), records).value) for _ in range(2)]

    first = measured()
    assert first[0] != first[1]
    assert measured() == first


def test_a_stage_of_samples_is_not_measured_on_all_records():
    plan = Plan([Stage(name="s", noise_multiplier=1.0, replace_distance=1.0, sampling_probability=0.01)])
    with pytest.raises(LedgerError, match="stage of all records"):
        Account(Ledger(plan, None), NoNoise()).measure("s", RowCount(), FakeRecords([{"x": np.zeros(3)}]))


def test_it_holds_no_record(tmp_path, monkeypatch):
    """Random words in the records are nowhere in the file."""
    table = tables.frame()
    words = np.random.default_rng(7).bytes(8 * len(table))
    table["weight"] = np.abs(np.frombuffer(words, dtype="<i8") % 10**6) / 1e4 + 0.123456789
    path = tmp_path / "fit.checkpoint"
    QUICK["p3gm"](epsilon=1.0).fit(table, schema=tables.schema(), checkpoint=path)
    content = path.read_bytes()
    for value in table["weight"]:
        for dtype in ("<f8", "<f4"):
            assert np.array(value, dtype=dtype).tobytes() not in content
        assert repr(float(value)).encode() not in content
    journal.remove(path)
    assert not path.exists()


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps to the folder's rights")
def test_hardening_4_nobody_else_may_read_a_checkpoint(tmp_path):
    path = tmp_path / "fit.checkpoint"
    MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), checkpoint=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_checkpoint_of_a_version_before_is_refused(tmp_path):
    Journal(tmp_path / "c", {}).write("count", None, {"value": np.ones(1)})
    with safetensors.safe_open(tmp_path / "c", "numpy") as file:
        header = {**file.metadata(), "format": "sfumato checkpoint 1"}
    (tmp_path / "c").write_bytes(safetensors.numpy.save({}, header))
    with pytest.raises(ConfigError, match="or one of an older version"):
        Journal(tmp_path / "c", {})


class TestRuns:
    """Which state of a checkpoint goes on where the account has which mark."""

    def begun(self, path, *marks):
        journal = Journal(path, {})
        journal.begin("charge", *marks)
        return journal

    def test_the_mark_of_the_account_or_the_one_that_follows_it(self, tmp_path):
        self.begun(tmp_path / "c", "2 b", "1 a")
        read = Journal(tmp_path / "c", {})
        assert (read.charge, read.run) == ("charge", "2 b")
        assert [read.goes_on(mark) for mark in ("1 a", "2 b", "2 c", "", None)] == [True, True, False, False, False]

    def test_what_kept_something_in_its_run_has_no_other(self, tmp_path):
        self.begun(tmp_path / "c", "2 b", "1 a").write("count", None, {"value": np.ones(1)})
        read = Journal(tmp_path / "c", {})
        assert [read.goes_on(mark) for mark in ("1 a", "2 b", None)] == [False, True, False]

    def test_a_first_run_may_not_have_been_charged(self, tmp_path):
        self.begun(tmp_path / "c", "1 a", "")
        read = Journal(tmp_path / "c", {})
        assert [read.goes_on(mark) for mark in ("1 a", None, "", "2 b")] == [True, True, False, False]
