"""Which process fits, and a lock that ends with it."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from sfumato.errors import OutputError

_PATIENCE = 0.05


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
        return cls(_host(), os.getpid(), _start(os.getpid()))

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> ProcessMark:
        """Read what `to_dict` wrote."""
        return cls(str(entry["host"]), int(entry["number"]), str(entry["start"]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def alive(self) -> bool | None:
        """Whether it still runs; None if it is on another machine, or in another container."""
        if self.host != _host():
            return None
        return _exists(self.number) and _start(self.number) == self.start


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, alone among all processes and threads; it ends with the process that holds it.

    The lock is a file of its own, `path` + ".lock", that stays: the file itself is replaced while the lock is held.

    Raises:
        OutputError: the lock cannot be had on this file system.
    """
    beside = path.with_name(f"{path.name}.lock")
    handle = -1
    reason = None
    try:
        handle = _locked(beside)
    except OSError as error:
        reason = error.strerror or "the system refused"
    if reason:
        raise OutputError(f"Cannot lock {beside}: {reason}.")
    try:
        yield
    finally:
        _release(handle)


def _locked(path: Path) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _wait_for(handle)
            # somebody may have removed the lock file in between: what is locked then guards nothing
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _wait_for(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        while True:
            with contextlib.suppress(OSError):
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
                return
            time.sleep(_PATIENCE)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX)


def _release(handle: int) -> None:
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_UN)  # a child forked meanwhile has a copy of the handle: closing is not enough
    os.close(handle)


def _exists(number: int) -> bool:
    if sys.platform == "win32":  # there `kill` ends a process
        return False
    try:
        os.kill(number, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _host() -> str:
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _start(number: int) -> str:
    """Return the 22nd field of /proc/N/stat, counted after the command's closing bracket; a zombie has ended."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    return ""
