"""Workers that are processes of this machine."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, final

import numpy as np

from sfumato.engines.passes import Pass
from sfumato.engines.pieces import ChunkSource, shares
from sfumato.engines.work import work
from sfumato.errors import EngineError, require_integer
from sfumato.records.engine import Records, SplitRecords, Statistic

_AHEAD = 2  # pieces per worker that are handed out before they are asked for: memory stays bounded
_DEATHS = 3  # of workers in one pass
_FEWEST, _MOST = 2, 8  # parts per worker: of fewer, one that is large keeps the others waiting

Piece = tuple[int, bytes]


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
        """Yield the answers, in order; pieces whose worker died are handed out again."""
        waiting: deque[tuple[Piece, Future[bytes] | None]] = deque()
        deaths = 0
        while True:
            waiting.extend((piece, None) for piece in itertools.islice(pieces, self._room(waiting)))
            if not waiting:
                return
            try:
                for i, (piece, future) in enumerate(waiting):
                    if future is None:
                        waiting[i] = piece, self._started().submit(work, shared, *piece)
                found = waiting[0][1]
                assert found is not None
                answer = found.result()
            except BrokenProcessPool:
                deaths += 1
                self.close()
                waiting = deque((piece, None) for piece, _ in waiting)
                answer = None
            if deaths == _DEATHS:
                raise EngineError(
                    "A worker ended three times before its piece of the records was summed. Take fewer workers if "
                    "memory is short; in a script, keep the call under `if __name__ == '__main__':`."
                )
            if answer is not None:
                waiting.popleft()
                yield answer

    def _room(self, waiting: deque[Any]) -> int:
        return _AHEAD * self.workers - len(waiting)

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


def _quiet() -> None:
    """Leave the processor's cores to the other workers."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
