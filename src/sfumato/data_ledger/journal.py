"""The releases of a long fit so far, in a file, so that a killed fit goes on without spending twice.

The file holds released values and functions of them: noisy statistics, and the weights and optimiser of a descent after
some step. It holds no record, and is as private as a release of the same plan; but of a fit of several holders, who
has the holder's keys too can read its sums. What a killed fit had drawn and not written was never released: its steps
are made again, with new noise, and are in the account once.

A copy that is gone on with beside the file would draw anew under the same charge. Under a ledger two cannot be: the
file carries the mark of the run that wrote it, the ledger that of the last run. Without one nothing tells them apart.

What a descent tells, and asks of, who runs it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, final
from urllib.parse import quote, unquote

import numpy as np
import psutil
import safetensors
import safetensors.numpy
from filelock import FileLock

from sfumato.errors import ConfigError, OutputError
from sfumato.io.atomic import SECRET, atomic_path, refuse_existing, write_or_refuse
from sfumato.mechanisms.noise import NoiseSource


@final
@dataclass(frozen=True, slots=True)
class ProcessMark:
    """A process, told from a later one of the same number.

    Attributes:
        host: the machine and, where it says so, which start of it and which container.
        number: the process's number.
        start: when it started, in the system's own words; empty if the system does not say.
    """

    host: str
    number: int
    start: str

    @classmethod
    def own(cls) -> ProcessMark:
        """Return the mark of this process."""
        return cls(_host(), os.getpid(), _start(os.getpid()) or "")

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> ProcessMark:
        """Read what `to_dict` wrote."""
        return cls(str(entry["host"]), int(entry["number"]), str(entry["start"]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def alive(self) -> bool | None:
        """Whether it still runs; None if it is on another machine, or in another container.

        A number in use whose start is not known counts as running: two processes that go on with one fit would draw
        its noise twice under one charge.
        """
        if self.host != _host():
            return None
        start = _start(self.number)
        return start is not None and (start == self.start or "" in (start, self.start))


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, alone among all processes and threads; it ends with the process that holds it.

    The lock is a file of its own, `path` + ".lock", that stays: the file itself is replaced while the lock is held.

    Raises:
        OutputError: the lock cannot be had on this file system.
    """
    beside = path.with_name(f"{path.name}.lock")
    # the system's lock or none: one that is held by a file's being there would outlive a killed process
    lock = FileLock(beside, mode=SECRET, fallback_to_soft=False, preserve_lock_file=True)
    reason = None
    try:
        os.stat(beside.parent)  # `acquire` would make a folder that is not there
        lock.acquire()
    except OSError as error:
        reason = error.strerror or "the system refused"
    if reason:
        raise OutputError(f"Cannot lock {beside}: {reason}.")
    try:
        yield
    finally:
        lock.release()


_NETWORK = ("nfs", "cifs", "smb", "afs", "sshfs", "s3fs", "gcsfuse", "rclone", "ceph", "lustre", "gluster")


def network_file_system(path: Path) -> str | None:
    """Return the name of the file system of a path if machines share such ones, where locks may not hold.

    None of other file systems, and where the system does not say.
    """
    try:
        real = path.resolve()
        mounts = {Path(part.mountpoint): part.fstype for part in psutil.disk_partitions(all=True)}
    except (psutil.Error, OSError, RuntimeError):
        return None
    holding = [folder for folder in mounts if real.is_relative_to(folder)]
    name = mounts[max(holding, key=lambda folder: len(folder.parts))] if holding else ""
    return name if any(word in name.lower() for word in _NETWORK) else None


def _host() -> str:
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _start(number: int) -> str | None:
    """Return when a process started, empty if the system does not say; None if it has ended, as a zombie has."""
    try:
        if not psutil.pid_exists(number) or (process := psutil.Process(number)).status() == psutil.STATUS_ZOMBIE:
            return None
        return _ticks(number) if sys.platform == "linux" else f"{process.create_time():.3f}"
    except (psutil.NoSuchProcess, OverflowError):
        return None
    except (psutil.Error, OSError, IndexError):
        return ""


def _ticks(number: int) -> str:
    """Return the 22nd field of /proc/N/stat, counted after the command's closing bracket: clock ticks since the boot.

    psutil gives seconds since 1970 by the clock of the moment: once the clock is set, a running fit would seem ended.
    """
    text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()[19]


class Progress:
    """Where to go on, and what to keep. Does nothing by itself."""

    def start(self) -> tuple[int, dict[str, np.ndarray]]:
        """Return the number of steps already done and charged, and the state after them."""
        return 0, {}

    def done(self, step: int, last: bool, state: Callable[[], dict[str, np.ndarray]]) -> None:
        """Note that so many steps are done; `state` gives all that is needed to go on: released values."""


_FORMAT = 2
_SAVE_EVERY = 50  # steps of a descent; a public constant
Arrays = dict[str, np.ndarray]


@final
class Journal:
    """Released values by stage, kept in a file if there is one.

    Args:
        path: the file, or None to keep nothing. An existing one is gone on with.
        identity: what makes a fit this fit: plan, schema, settings; all public.

    Attributes:
        charge: the charge in the account of the data under which the fit began; None of none.
        run: the mark of the run that wrote the file last; the account has it too.

    Raises:
        ConfigError: the file is of another fit, or is no checkpoint.
        OutputError: the file could not be written later.
    """

    def __init__(self, path: str | os.PathLike[str] | None, identity: Mapping[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self._identity = hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()
        self.charge: str | None = None
        self.run = ""
        self._before: str | None = None  # the mark that the run took over; None once something was kept in it
        self._stages: dict[tuple[str, int | None], Arrays] = {}
        self._descents: dict[str, tuple[int, Arrays]] = {}
        if self._path is None:
            return
        if os.path.lexists(self._path):
            self._read(self._path)
        else:
            refuse_existing(self._path, overwrite=False)

    def read(self, stage: str, event: int | None = None) -> Arrays | None:
        """Return the release of a stage, or of one of its events, if it is kept."""
        return self._stages.get((stage, event))

    def write(self, stage: str, event: int | None, arrays: Arrays) -> None:
        """Keep what a stage released, or one of its events."""
        if self.active:  # else nothing is held twice
            self._stages[stage, event] = {name: np.array(array) for name, array in arrays.items()}
            self._before = None
            self._write()

    def descent(self, stage: str) -> Progress:
        """Return the progress of a descent that is one stage."""
        return _Descent(self, stage)

    def progress(self, stage: str) -> tuple[int, Arrays]:
        """Return the steps of a descent that are done, and its state after them."""
        return self._descents.get(stage, (0, {}))

    def keep(self, stage: str, step: int, state: Arrays) -> None:
        """Keep a descent's state in place of the one before."""
        self._descents[stage] = (step, state)
        self._before = None
        self._write()

    def begin(self, charge: str, run: str, before: str) -> None:
        """Note the run that begins, before the account does: a process that is killed in between can go on.

        Args:
            charge: the charge in the account of the data.
            run: the run's mark, which the account is going to have.
            before: the mark that the account has; empty of a charge that it does not have yet.

        Raises:
            OutputError: the file cannot be written.
        """
        self.charge, self.run, self._before = charge, run, before
        self._write()

    def goes_on(self, run: str | None) -> bool:
        """Whether this is the state that may go on where the account has this mark; None of a charge it has not.

        Of a run that kept nothing, the account may still have the mark before it: nothing was drawn in between.
        """
        return self._before == "" if run is None else run != "" and run in (self.run, self._before)

    @property
    def active(self) -> bool:
        """Whether anything is kept."""
        return self._path is not None

    def _write(self) -> None:
        if self._path is None:
            return
        arrays = {f"stage/{_key(*s)}/{name}": a for s, state in self._stages.items() for name, a in state.items()}
        arrays |= {
            f"descent/{_key(s)}/{name}": a for s, (_, state) in self._descents.items() for name, a in state.items()
        }
        steps = json.dumps({s: step for s, (step, _) in self._descents.items()})
        header = {"format": f"sfumato checkpoint {_FORMAT}", "identity": self._identity, "steps": steps}
        if self.charge is not None:
            header |= {"charge": self.charge, "run": self.run}
        if self._before is not None:
            header["before"] = self._before
        packed = safetensors.numpy.save({n: np.asarray(a, order="C") for n, a in arrays.items()}, header)
        with atomic_path(self._path, overwrite=True, secret=True) as partial:
            output = f"the checkpoint {self._path}"
            write_or_refuse(output, lambda: partial.write_bytes(packed), "What it held before is whole.")

    def _read(self, path: Path) -> None:
        fault = None
        header: Mapping[str, str] = {}
        arrays: Arrays = {}
        try:
            with _open(path) as file:
                header = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, MemoryError, safetensors.SafetensorError) as error:
            fault = type(error).__name__
        if fault or header.get("format") != f"sfumato checkpoint {_FORMAT}":
            raise ConfigError(
                f"Expected {path} to be a checkpoint of Sfumato, got something else, or one of an older version. Name "
                "another file."
            )
        if header.get("identity") != self._identity:
            raise ConfigError(
                f"Expected {path} to be the checkpoint of this fit, got one of another schema, plan or settings. "
                "Repeat the call it was made with, or name another file."
            )
        self.charge, self.run, self._before = header.get("charge"), header.get("run", ""), header.get("before")
        sound = True
        try:
            steps = {str(stage): int(step) for stage, step in json.loads(header["steps"]).items()}
            self._descents = {stage: (step, {}) for stage, step in steps.items()}
            for name, array in arrays.items():
                kind, stage, key = name.split("/", 2)
                place = _place(stage)
                (self._stages.setdefault(place, {}) if kind == "stage" else self._descents[place[0]][1])[key] = array
            sound = all(step > 0 for step in steps.values())
        except (KeyError, ValueError, TypeError, AttributeError):
            sound = False
        if not sound:
            raise ConfigError(f"Expected {path} to be a whole checkpoint, got a damaged one. Name another file.")


@final
class NoMoreNoise(NoiseSource):
    """The noise of a fit that has finished: its checkpoint is told again, and whatever asks for noise is refused.

    An earlier state of the checkpoint would draw the rest anew: a second release, which nothing paid for.
    """

    def __init__(self, noise: NoiseSource) -> None:
        self.private, self.silent = noise.private, noise.silent

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ConfigError(
            "Expected the last state of the checkpoint of a fit that has finished, got an earlier one, which would "
            "draw new noise that nothing has paid for. Name another file: the fit then starts, and is charged, anew."
        )

    gaussian = rounded_gaussian = normals = bernoulli = poisson_samples = subsets = _refuse


class _Descent(Progress):
    """Keeps every fiftieth step in a journal, and the last."""

    def __init__(self, journal: Journal, stage: str) -> None:
        self._journal, self._stage = journal, stage

    def start(self) -> tuple[int, Arrays]:
        """Return the state that the journal holds."""
        return self._journal.progress(self._stage)

    def done(self, step: int, last: bool, state: Callable[[], Arrays]) -> None:
        """Keep the state now and then."""
        if self._journal.active and (last or step % _SAVE_EVERY == 0):
            self._journal.keep(self._stage, step, {name: array.copy() for name, array in state().items()})


def _open(path: Path) -> Any:  # noqa: ANN401 - of a library without types
    if not path.is_file():  # a pipe would wait for ever
        raise OSError
    return safetensors.safe_open(path, "numpy")


def remove(path: str | os.PathLike[str]) -> None:
    """Remove a checkpoint whose fit has ended.

    Raises:
        OutputError: the system refuses.
    """
    reason = None
    try:
        Path(path).unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror
    if reason:
        raise OutputError(f"Cannot remove the checkpoint {path}: {reason}.")


def charge_of(path: Path) -> str | None:
    """Return the charge that a checkpoint began under; None of none, or of no checkpoint."""
    with contextlib.suppress(OSError, safetensors.SafetensorError), _open(path) as file:
        return (file.metadata() or {}).get("charge")
    return None


def written_out(setting: object) -> str:
    """Return a public setting as text that tells it from any other; numpy abbreviates what it prints of an array."""
    if not isinstance(setting, np.ndarray):
        return repr(setting)
    content = hashlib.sha256(np.ascontiguousarray(setting).tobytes()).hexdigest()
    return f"array({setting.shape}, {setting.dtype.str}, sha256 {content})"


def _key(stage: str, event: int | None = None) -> str:
    """Return the name of a stage, or of one of its events, in the file: whatever it is called, without `/` and `#`."""
    return quote(stage, safe=" ,") + ("" if event is None else f"#{event}")


def _place(key: str) -> tuple[str, int | None]:
    stage, _, event = key.partition("#")
    return unquote(stage), int(event) if event else None
