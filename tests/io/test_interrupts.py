"""Ctrl-C is held back, comes afterwards, and is nobody's business outside the main thread."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import sfumato
from sfumato.io import atomic
from sfumato.io.atomic import undisturbed


@pytest.fixture(autouse=True)
def as_usual():
    """Who starts the tests may have Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_it_comes_when_the_block_has_ended():
    done = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            with undisturbed():
                signal.raise_signal(signal.SIGINT)
            done.append("block")
        done.append("beyond")
    assert done == ["block"]


def test_it_comes_when_the_block_has_failed():
    with pytest.raises(KeyboardInterrupt), undisturbed():  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        raise ValueError
    with pytest.raises(ValueError, match=r"^$"), undisturbed():
        raise ValueError


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_the_callers_own_handler_stays(handler):
    signal.signal(signal.SIGINT, handler)
    with undisturbed():
        signal.raise_signal(signal.SIGINT)
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is handler


def test_in_other_threads_nothing_is_changed(tmp_path):
    seen = []

    def write():
        with atomic.atomic_path(tmp_path / "a", overwrite=False) as partial, undisturbed():
            partial.touch()
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
    assert (tmp_path / "a").exists()


def test_a_folder_that_takes_anothers_place(tmp_path, monkeypatch):
    """Between the two renamings neither is in its place: what interrupts there waits."""
    (tmp_path / "out").mkdir()
    rename = Path.rename

    def interrupted(*paths):
        result = rename(*paths)
        signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(Path, "rename", interrupted)
    told = []
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), atomic.telling(out, lambda: told.append(True)):  # noqa: PT012, SIM117
        with atomic.atomic_path(tmp_path / "out", overwrite=True) as partial:
            partial.mkdir()
            (partial / "new").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "new"]
    assert told == [True]


def test_a_file_on_the_way_is_not_the_output(tmp_path):
    """Files inside a folder, and another output before it, are in place first: of neither the call ends well."""
    out, told = tmp_path / "out", []
    with atomic.telling(out, lambda: told.append(sorted(path.name for path in tmp_path.iterdir()))):
        with atomic.atomic_path(tmp_path / "before", overwrite=False) as partial:
            partial.touch()
        with atomic.atomic_path(out, overwrite=False) as folder:
            folder.mkdir()
            with atomic.atomic_path(folder / "inside", overwrite=False) as partial:
                partial.touch()
            assert told == []
    assert told == [["before", "out"]]


def test_importing_sets_no_handler():
    script = (
        "import signal; before = signal.getsignal(signal.SIGINT); import sfumato, sfumato.cli\n"
        "assert signal.getsignal(signal.SIGINT) is before; print(sfumato.__file__)"
    )
    environment = {"PYTHONPATH": str(Path(sfumato.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).samefile(sfumato.__file__)
