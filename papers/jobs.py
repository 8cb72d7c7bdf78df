"""Tables as jobs: each cell in a process of its own within limits, and on disk once it has ended.

A run that was stopped goes on where it stopped: of a table of 100 cells stopped at 60 the 61st comes next. A cell that
does not finish within its limits says so, and counts as complete; one that raised is tried again by the next run.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

FINISHED, NOT_FINISHED, FAILED = "finished", "not finished", "failed"
_POLL_SECONDS = 0.2
_TOO_LARGE = ("MemoryError", "larger than the maximum possible size", "maximum supported dimension for an ndarray")


@dataclass(frozen=True)
class Limits:
    """What a cell may use, its children included: CPU seconds, which other work does not shorten, and resident GiB.

    Twice the seconds on the clock end it too, lest one that waits for ever holds up a table.
    """

    seconds: float = 30 * 60
    gib: float = 8


class Results:
    """Figures by key, one JSON line each; what is there is not computed again."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path

    @property
    def found(self) -> dict[str, Any]:
        """All of them; of a key that is there twice the later one."""
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        return {entry["key"]: entry["value"] for entry in map(_entry, lines) if entry}

    def put(self, key: str, value: Any) -> None:
        """Add one, so that runs side by side and killed runs lose nothing."""
        with FileLock(f"{self._path}.lock", fallback_to_soft=False), self._path.open("a+b") as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                cut = file.read(1) != b"\n"  # a run was killed as it wrote
                file.write(b"\n" * cut)
            file.write(json.dumps({"key": key, "value": value}).encode() + b"\n")

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return the figure, computing it here if it is not on disk."""
        found = self.found
        if key not in found:
            self.put(key, compute())
            return self.found[key]
        return found[key]

    def note(self, name: str, table: object) -> None:
        """Print a table, and write it beside the results."""
        text = json.dumps({name: table}, indent=1)
        sys.stdout.write(text + "\n")
        safe = "".join(c if c.isalnum() else "_" for c in name)
        (self._path.parent / f"{self._path.stem}_{safe}.json").write_text(text + "\n", encoding="utf-8")


def _entry(line: str) -> dict[str, Any] | None:
    try:
        return json.loads(line)
    except json.JSONDecodeError:  # a run was killed as it wrote
        return None


@dataclass(frozen=True)
class Cell:
    """A function of a module, or of the script itself, and what it is given; it returns a dict of figures."""

    function: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...] = ()
    limits: Limits = Limits()


def is_complete(value: Any) -> bool:
    """Whether a cell is not to be run again."""
    return isinstance(value, dict) and value.get("status") in (FINISHED, NOT_FINISHED)


def run_cells(results: Results, cells: Mapping[str, Cell]) -> dict[str, Any]:
    """Run the cells that are not complete, one after the other, and return all of them by key."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a cell ends with its table
    console = Console(stderr=True)
    bars = SpinnerColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*bars, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(cells))
        for key, cell in cells.items():
            progress.update(task, description=key)
            if not is_complete(results.found.get(key)):
                value = run_cell(cell)
                results.put(key, value)
                if not console.is_terminal:
                    console.print(f"{key}: {value['status']}, {value['seconds']:.0f} s", highlight=False)
            progress.advance(task)
    found = results.found
    return {key: found[key] for key in cells}


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run one cell within its limits; its figures, with how it ended, seconds and the most memory."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, cell.function, cell.arguments))
    process.start()
    theirs.close()
    assert process.pid is not None
    watch = _Watch(process.pid, cell.limits)
    answer: dict[str, Any] | None = None
    try:
        while answer is None and not watch.broken:
            if ours.poll(_POLL_SECONDS):
                try:
                    answer = ours.recv()
                except EOFError:  # it died: of a signal, or for want of memory
                    answer = {"status": FAILED, "error": "its process died"}
            watch.look()
    finally:
        _end(process.pid)
        process.join()
        ours.close()
    return {**(answer or watch.verdict()), **watch.used()}


def run_command(command: list[str], limits: Limits, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a command within limits; how it ended, seconds and the most memory."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    watch = _Watch(process.pid, limits)
    error = b""
    try:
        while not watch.broken:
            try:
                error = process.communicate(timeout=_POLL_SECONDS)[1]
                break
            except subprocess.TimeoutExpired:
                watch.look()
    finally:
        _end(process.pid)
        process.communicate()
    if watch.broken:
        return {**watch.verdict(), **watch.used()}
    if process.returncode == 0:
        return {"status": FINISHED, **watch.used()}
    lines = error.decode(errors="replace").strip().splitlines()
    why = lines[-1][:300] if lines else f"exit code {process.returncode}"
    if any(words in why for words in _TOO_LARGE):
        return {"status": NOT_FINISHED, "limit": "memory", "error": why, **watch.used()}
    return {"status": FAILED, "error": why, **watch.used()}


class _Watch:
    """What a process and its descendants have used."""

    def __init__(self, pid: int, limits: Limits) -> None:
        self._pid, self._limits, self._begun = pid, limits, time.monotonic()
        self._cpu, self._peak = 0.0, 0.0
        self.broken: str | None = None

    def look(self) -> None:
        """Read the clock and the process table."""
        used = [_used(process) for process in _family(self._pid)]
        self._cpu = max(self._cpu, sum(seconds for seconds, _ in used))
        self._peak = max(self._peak, sum(gib for _, gib in used))
        if self._peak > self._limits.gib:
            self.broken = "memory"
        elif self._cpu > self._limits.seconds or time.monotonic() - self._begun > 2 * self._limits.seconds:
            self.broken = "time"

    def verdict(self) -> dict[str, Any]:
        return {"status": NOT_FINISHED, "limit": self.broken}

    def used(self) -> dict[str, float]:
        seconds = time.monotonic() - self._begun
        return {"seconds": round(seconds, 2), "cpu_seconds": round(self._cpu, 2), "peak_gib": round(self._peak, 3)}


def _family(pid: int) -> list[psutil.Process]:
    """A process and its descendants; none once it has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _used(process: psutil.Process) -> tuple[float, float]:
    """CPU seconds, those of children that ended included, and resident GiB of a process; 0 once it has ended."""
    try:
        return sum(process.cpu_times()[:4]), process.memory_info().rss / 2**30
    except psutil.NoSuchProcess:
        return 0.0, 0.0


def _end(pid: int) -> None:
    """End a process and what it started, if it started sessions of their own too."""
    for relative in reversed(_family(pid)):
        with contextlib.suppress(psutil.NoSuchProcess):
            relative.kill()


def _child(pipe: Any, function: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> None:
    """Run a cell, in its process, and send what it returned."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        answer = {"status": FINISHED, **function(*arguments)}
    except MemoryError:
        answer = {"status": NOT_FINISHED, "limit": "memory"}
    except Exception as error:  # noqa: BLE001 - a cell's failure is its figure
        answer = {"status": FAILED, "error": f"{type(error).__name__}: {error}"[:300]}
    pipe.send(answer)
