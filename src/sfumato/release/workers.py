"""Blocks of samples drawn by several processes, in their order: the same rows as one process draws."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

import numpy as np
import pyarrow as pa

from sfumato.errors import ReleaseError

_AHEAD = 2  # blocks per worker that are drawn before they are asked for: memory stays bounded


class Draw(Protocol):
    """A sample's blocks, as one object that goes to every worker once."""

    def tables(self, block: int, classes: np.ndarray | None) -> list[pa.Table]:
        """Return the rows of a block."""
        ...


def blocks_in_order(draw: Draw, blocks: Iterable[tuple[int, np.ndarray | None]], workers: int) -> Iterator[pa.Table]:
    """Yield the rows of blocks as `draw` makes them.

    Raises:
        ReleaseError: a worker ended before its block was drawn.
    """
    # a fresh process each: a fork would copy locks that other threads hold
    context = multiprocessing.get_context("spawn")
    lost = False
    try:
        with ProcessPoolExecutor(workers, mp_context=context, initializer=_keep, initargs=(draw,)) as pool:
            try:
                yield from _tables_in_order(pool, blocks, workers)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
    except BrokenProcessPool:
        lost = True
    if lost:
        raise ReleaseError("A worker ended before its rows were drawn. Take fewer workers: memory may be short.")


def _tables_in_order(
    pool: ProcessPoolExecutor, blocks: Iterable[tuple[int, np.ndarray | None]], workers: int
) -> Iterator[pa.Table]:
    waiting: deque[Future[list[pa.Table]]] = deque()
    for block, classes in blocks:
        waiting.append(pool.submit(_tables_of_block, block, classes))
        if len(waiting) > _AHEAD * workers:
            yield from waiting.popleft().result()
    while waiting:
        yield from waiting.popleft().result()


_draws: list[Draw] = []


def _keep(draw: Draw) -> None:
    _draws[:] = [draw]


def _tables_of_block(block: int, classes: np.ndarray | None) -> list[pa.Table]:
    return _draws[0].tables(block, classes)
