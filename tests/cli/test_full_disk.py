"""A release that cannot be written: what was spent, what is kept, and what to do."""

import errno
import os
import subprocess
import sys

import pytest

from fixtures import tables
from sfumato import create_ledger, load, read_ledger
from sfumato.release import files


@pytest.fixture
def folder(tmp_path):
    tables.write_csv(tmp_path / "p.csv")
    (tmp_path / "s.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    create_ledger(tmp_path / "l", epsilon=1.0, delta=1e-6)
    return tmp_path


def command(folder, *more):
    fit = ("fit", folder / "p.csv", "--schema", folder / "s.yaml", "--epsilon", 1, "--delta", 1e-6)
    return (*fit, "--out", folder / "r", *more)


@pytest.fixture
def full(monkeypatch):
    def write(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "_write", write)
    return monkeypatch


def test_without_a_checkpoint_the_charge_is_spent_and_nothing_is_kept(call, folder, full):
    failed = call(*command(folder, "--ledger", folder / "l"))
    assert failed.code == 2
    assert f"Cannot write {folder / 'r'}: No space left on device." in failed.err
    assert (
        f"The ledger {folder / 'l'} says finished, and its charge stands; nothing of the release is kept." in failed.err
    )
    assert "With --checkpoint the same command would have written it, at no new charge." in failed.err
    assert [fit.status for fit in read_ledger(folder / "l").fits] == ["finished"]


def test_with_a_checkpoint_the_same_command_writes_it(call, folder, full):
    options = ("--ledger", folder / "l", "--checkpoint", folder / "c")
    failed = call(*command(folder, *options))
    assert "keeps what was drawn: the same command writes the release, at no new charge." in failed.err
    assert "nothing of the release is kept" not in failed.err
    full.undo()
    assert call(*command(folder, *options)).code == 0
    assert load(folder / "r").certificate.release == read_ledger(folder / "l").fits[0].release
    assert len(read_ledger(folder / "l").fits) == 1
    assert not (folder / "c").exists()


def test_without_a_ledger_the_budget_is_spent(call, folder, full):
    assert "Its budget is spent; nothing of the release is kept." in call(*command(folder)).err


def test_where_nothing_was_spent_nothing_is_said_of_it(call, folder, full):
    failed = call(*command(folder, "--seed", 1))
    assert "No space left" in failed.err
    assert "budget is spent" not in failed.err


def test_what_keeps_no_releases_is_not_said_to(call, folder, full):
    failed = call(*command(folder, "--method", "dpmix", "--ledger", folder / "l", "--set", "mixture_degree=4"))
    assert "nothing of the release is kept." in failed.err
    assert "--checkpoint" not in failed.err


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.skipif(os.name == "nt", reason="needs limits of the system")
def test_a_disk_that_really_ends(folder):
    """The ledger has room, the release has not."""
    script = (
        "import resource, signal, sys\n"
        "from sfumato.cli.app import run\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    call = [sys.executable, "-B", "-c", script, *map(str, command(folder, "--ledger", folder / "l"))]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "its charge stands; nothing of the release is kept." in " ".join(done.stderr.split())
    assert {path.name for path in folder.iterdir()} == {"p.csv", "s.yaml", "l", "l.lock"}
