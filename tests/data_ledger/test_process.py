"""The lock of a ledger ends with its process, and a running process is told from one that is gone."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace

import filelock
import psutil
import pytest

from sfumato.data_ledger import journal
from sfumato.data_ledger.journal import ProcessMark, file_lock
from sfumato.errors import OutputError

HOLDING = """
import sys, time
from pathlib import Path
from sfumato.data_ledger.journal import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def held_elsewhere(path):
    """Return whether somebody holds the lock, without waiting for it."""
    probe = filelock.FileLock(path.with_name(path.name + ".lock"), timeout=0)
    try:
        with probe:
            return False
    except filelock.Timeout:
        return True


def test_the_lock_ends_with_a_killed_process(tmp_path):
    path = tmp_path / "l"
    holder = subprocess.Popen([sys.executable, "-c", HOLDING, path], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        assert held_elsewhere(path)
    finally:
        holder.kill()
        holder.communicate()
    with file_lock(path):
        assert held_elsewhere(path)
    assert not held_elsewhere(path)
    assert [p.name for p in tmp_path.iterdir()] == ["l.lock"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_meanwhile_does_not_keep_the_lock(tmp_path):
    path = tmp_path / "l"
    with file_lock(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest's workers have threads
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        assert not held_elsewhere(path)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_one_thread_at_a_time(tmp_path):
    inside, most = [], []

    def work():
        with file_lock(tmp_path / "l"):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 6


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_no_lock_that_would_outlive_its_process(tmp_path, monkeypatch, code):
    """A file system without locks is refused: a marker file in their place would stay when its process is killed."""
    fcntl = pytest.importorskip("fcntl")

    def refused(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(OutputError, match=r"^Cannot lock .*l\.lock: "), file_lock(tmp_path / "l"):
        pass


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(OutputError, match="Cannot lock"), file_lock(tmp_path / "absent" / "l"):
        pass
    assert not any(tmp_path.iterdir())


def test_this_process_runs_and_one_of_its_number_before_it_does_not():
    own = ProcessMark.own()
    assert own.alive() is True
    assert replace(own, start=own.start + "0").alive() is False
    assert ProcessMark.from_dict(own.to_dict()) == own
    assert replace(own, host="elsewhere").alive() is None
    assert replace(own, number=2**40).alive() is False


def test_without_a_start_a_number_in_use_counts_as_running(monkeypatch):
    own = ProcessMark.own()
    assert replace(own, start="").alive() is True

    def denied(_):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "Process", denied)
    assert own.alive() is True


@pytest.mark.skipif(sys.platform != "linux", reason="the clock moves no start elsewhere")
def test_setting_the_clock_ends_no_process(monkeypatch):
    own = ProcessMark.own()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: 0.0)
    assert psutil.Process().create_time() < 1e9  # psutil's own start has moved
    assert own.alive() is True


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says")
def test_marks_of_before_still_name_this_process():
    """The start in a ledger is the field of /proc that versions before psutil wrote."""
    with open(f"/proc/{os.getpid()}/stat") as file:
        assert ProcessMark.own().start == file.read().rpartition(")")[2].split()[19]


def test_a_process_that_ended_is_gone_before_it_is_waited_for():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mark = ProcessMark(ProcessMark.own().host, child.pid, journal._start(child.pid))
    assert mark.alive() is True
    child.stdin.close()
    deadline = time.monotonic() + 30
    while mark.alive() and time.monotonic() < deadline:  # as a zombie, where the system has them
        time.sleep(0.01)
    assert mark.alive() is False
    child.wait()
