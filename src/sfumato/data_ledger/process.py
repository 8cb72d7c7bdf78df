"""Which process fits, and a lock that ends with it."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import psutil
from filelock import FileLock

from sfumato.errors import OutputError
from sfumato.io.atomic import SECRET


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
