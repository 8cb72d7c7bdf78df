"""Sources for tests of workers: one that kills the worker that reads it, one that speaks of a record."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from sfumato.io.chunks import Chunk, Source

SECRET = "Mrs Smith of 12 Elm Street"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DeadlySource(Source):
    """A source whose worker is killed while it reads, once for every time that a file is armed.

    Attributes:
        inner: what is read.
        arm: the file; who removes it is killed.
        driver: the process that is never killed.
        victim: `process`, or `executor` for the Java process above it.
        always: whether it need not be armed.
    """

    inner: Source
    arm: Path
    driver: int
    victim: str = "process"
    always: bool = False

    @property
    def in_files(self) -> bool:
        return True

    def pieces(self) -> Sequence[Source]:
        return [replace(self, inner=piece) for piece in self.inner.pieces()]

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        for chunk in self.inner.chunks(columns):
            if os.getpid() != self.driver and (self.always or self._armed()):
                kill(self.victim)
            yield chunk

    def _armed(self) -> bool:
        try:
            self.arm.unlink()
        except FileNotFoundError:
            return False
        return True


def deadly(inner: Source, arm: Path, victim: str = "process", *, always: bool = False) -> DeadlySource:
    """Wrap a source; the file is armed."""
    arm.touch()
    return DeadlySource(
        label=inner.label,
        container=inner.container,
        storage=inner.storage,
        chunk_rows=inner.chunk_rows,
        inner=inner,
        arm=arm,
        driver=os.getpid(),
        victim=victim,
        always=always,
    )


def kill(victim: str = "process") -> None:
    """Kill this process, or the Java process that it works for."""
    above = next((up for up in psutil.Process().parents() if "java" in up.name()), None)
    os.kill(above.pid if victim == "executor" and above else os.getpid(), signal.SIGKILL)
    time.sleep(30)  # until it is gone


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TalkativeSource(Source):
    """A source whose reader fails on a worker, with a record in its message; it warns and prints of it too."""

    inner: Source
    driver: int

    @property
    def in_files(self) -> bool:
        return True

    def pieces(self) -> Sequence[Source]:
        return [replace(self, inner=piece) for piece in self.inner.pieces()]

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        if os.getpid() != self.driver:
            raise ValueError(f"could not convert {SECRET!r}")
        yield from self.inner.chunks(columns)


def talkative(inner: Source) -> TalkativeSource:
    """Wrap a source."""
    return TalkativeSource(
        label=inner.label,
        container=inner.container,
        storage=inner.storage,
        chunk_rows=inner.chunk_rows,
        inner=inner,
        driver=os.getpid(),
    )
