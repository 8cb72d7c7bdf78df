"""Rows of several samples in one order: any first n have each part's share of n, to less than a row of each part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from sfumato.release.blocks import SAMPLE_BLOCK


def part_sequence(rows: Sequence[int], n: int, block: int = SAMPLE_BLOCK) -> Iterator[np.ndarray]:
    """Yield the part of each of n rows, in blocks: the t-th row of part k, of share s, is at (t + ½)/s in the order.

    Args:
        rows: public numbers of rows of the parts, whose shares are met.
        n: how many rows in all; the first do not depend on it.
        block: how many at a time.
    """
    shares = np.array(rows, dtype=np.float64) / sum(rows)
    taken = np.zeros(len(rows), dtype=np.int64)
    for start in range(0, n, block):
        counts = np.ceil(block * shares).astype(np.int64) + len(rows) + 2  # none is behind by more
        parts = np.repeat(np.arange(len(rows)), counts)
        places = np.concatenate([np.arange(count) + first for count, first in zip(counts, taken, strict=True)])
        order = parts[np.argsort((places + 0.5) / shares[parts], kind="stable")][: min(block, n - start)]
        taken += np.bincount(order, minlength=len(rows))
        yield order


def merged(rows: Sequence[int], n: int, samples: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Yield the rows of samples in that order; each has as many as the order takes, and one table at least."""
    streams = [_Rows(sample) for sample in samples]
    if n == 0:
        yield streams[0].take(0)
    for order in part_sequence(rows, n):
        counts = np.bincount(order, minlength=len(streams))
        table = pa.concat_tables([stream.take(int(count)) for stream, count in zip(streams, counts, strict=True)])
        places = np.empty(order.size, dtype=np.int64)
        places[np.argsort(order, kind="stable")] = np.arange(order.size)
        yield table.unify_dictionaries().combine_chunks().take(places)


class _Rows:
    """Rows of a sample, any number at a time."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables, self._left = tables, next(tables)

    def take(self, n: int) -> pa.Table:
        while self._left.num_rows < n:
            self._left = pa.concat_tables([self._left, next(self._tables)])
        first, self._left = self._left.slice(0, n), self._left.slice(n)
        return first
