"""Workers that are processes of this machine."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import pickle
import signal
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, final

import numpy as np

from sfumato.engines.passes import ChunkSource, Pass, shares
from sfumato.engines.work import work
from sfumato.errors import EngineError, require_integer
from sfumato.io.chunks import Source
from sfumato.records.engine import Records, SplitRecords, Statistic

_AHEAD = 2  # pieces per worker that are handed out before they are asked for: memory stays bounded
_DEATHS = 3  # of workers in one pass
_FEWEST, _MOST = 2, 8  # parts per worker: of fewer, one that is large keeps the others waiting

Piece = tuple[int, bytes]
Handed = tuple[Piece, "Future[bytes] | None"]


@final
class Processes:
    """Workers that are processes of this machine.

    Files of several pieces (row groups of Parquet, files of a folder) are read by the workers; any other source is read
    here, once per pass, and handed to them a chunk at a time. Use it in a `with` block, or close it.

    Args:
        workers: how many, at least 1.

    Raises:
        ConfigError: `workers` is no whole number of at least 1.

    Example:
        >>> from sfumato.engines import Processes
        >>> with Processes(2) as engine:
        ...     print(engine)
        Processes(2)
    """

    def __init__(self, workers: int) -> None:
        self.workers = require_integer(at_least=1, workers=workers)
        self._pool: ProcessPoolExecutor | None = None

    def check(self, source: Source) -> None:
        """Take any data: what the processes cannot read themselves is read here and handed to them."""

    def summed(self, statistic: Statistic, records: SplitRecords, width: int | None) -> np.ndarray | None:
        """Return the sum over the records, whole numbers modulo 2^64; None if they are summed by the caller."""
        if self.workers == 1:
            return None
        summing = Pass.of(statistic, records, width)
        if summing is None:
            return None
        handed: list[int] = []
        for packed in self._answers(summing.shared, _numbered(records, self.workers, handed)):
            summing.take(packed)
        return summing.total(handed)

    def _answers(self, shared: Any, pieces: Iterator[Piece]) -> Iterator[bytes]:  # noqa: ANN401
        """Yield the answers, in order; what was handed out and is not wanted any more is taken back."""
        waiting: deque[Handed] = deque()
        try:
            yield from self._in_order(shared, pieces, waiting)
        finally:
            for _, future in waiting:
                if future is not None:
                    future.cancel()

    def _in_order(self, shared: Any, pieces: Iterator[Piece], waiting: deque[Handed]) -> Iterator[bytes]:  # noqa: ANN401
        """Yield the answers; pieces whose worker died are handed out again."""
        deaths = 0
        while True:
            room = _AHEAD * self.workers - len(waiting)
            waiting.extend((piece, None) for piece in itertools.islice(pieces, room))
            if not waiting:
                return
            answer = self._next(shared, waiting)
            if answer is not None:
                waiting.popleft()
                yield answer
                continue
            deaths += 1
            self.close()
            waiting.extend([(piece, None) for piece, _ in (waiting.popleft() for _ in range(len(waiting)))])
            if deaths == _DEATHS:
                raise EngineError(
                    "A worker ended three times before its piece of the records was summed. Take fewer workers if "
                    "memory is short; in a script, keep the call under `if __name__ == '__main__':`."
                )

    def _next(self, shared: Any, waiting: deque[Handed]) -> bytes | None:  # noqa: ANN401
        """Hand out what waits, and return the first answer; None if a worker died."""
        try:
            for i, (piece, future) in enumerate(waiting):
                if future is None:
                    waiting[i] = piece, self._submit(work, shared, *piece)
            first = waiting[0][1]
            assert first is not None
            return first.result()
        except BrokenProcessPool:
            return None

    def _submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Hand out a call; a worker that is started for it never hears Ctrl-C: this process hears it, and ends them."""
        pool = self._started()  # before: it starts multiprocessing's tracker of resources, which unblocks Ctrl-C
        with _without_interrupts():
            return pool.submit(function, *arguments)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # a fresh process each: a fork would copy locks that other threads hold
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_quiet)
        return self._pool

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Processes({self.workers})"


def _numbered(records: SplitRecords, workers: int, handed: list[int]) -> Iterator[Piece]:
    for number, part in enumerate(_parts(records, workers)):
        handed.append(number)
        yield number, pickle.dumps(part, protocol=5)


def _parts(records: SplitRecords, workers: int) -> Iterator[Records]:
    source = records.source
    pieces = source.pieces() if source.in_files else ()
    if len(pieces) >= _FEWEST * workers:
        yield from shares(records, pieces, _MOST * workers)
        return
    for chunk in source.with_dictionaries().chunks(records.read_columns):
        yield records.over(ChunkSource.of(chunk, source))


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C: processes that are started meanwhile inherit it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


def _quiet() -> None:
    """Leave the processor's cores to the other workers."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
