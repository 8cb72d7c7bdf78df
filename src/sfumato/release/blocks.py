"""Samples of single rows a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.maths.streams import public_stream
from sfumato.release.conditions import Conditions
from sfumato.release.linked_blocks import SAMPLE_BLOCK
from sfumato.release.row_decoder import Decoder
from sfumato.release.workers import blocks_in_order

_BLOCK_NUMBERS = 1 << 22  # wide rows are drawn fewer at a time
_BLOCK_BYTES = 1 << 26  # of cells, which labels may make long


def block_rows(width: int) -> int:
    """How many rows are drawn at a time, of so many numbers each."""
    return max(1, min(SAMPLE_BLOCK, _BLOCK_NUMBERS // width))


@dataclass(frozen=True)
class Blocks:
    """A sample of single rows, a block after the other, each from a random stream of its own.

    Attributes:
        decoder: from codes to cells.
        n: how many rows.
        seed: of all blocks.
        conditions: whose sampler draws.
    """

    decoder: Decoder
    n: int
    seed: int
    conditions: Conditions

    @property
    def size(self) -> int:
        """Rows of a block."""
        return block_rows(self.conditions.sampler.width)

    def tables_between(self, first: int, end: int, workers: int) -> Iterator[pa.Table]:
        """Yield the rows of some blocks, in order."""
        blocks = zip(range(first, end), self.conditions.classes(self.size, self.seed), strict=False)
        if workers > 1 and end - first > 1:
            return blocks_in_order(self, blocks, min(workers, end - first))
        return (table for block, classes in blocks for table in self.each(block, classes))

    def tables(self, block: int, classes: np.ndarray | None) -> list[pa.Table]:
        """Return the rows of a block."""
        return list(self.each(block, classes))

    def each(self, block: int, classes: np.ndarray | None) -> Iterator[pa.Table]:
        """Yield the rows of a block: cells may be far longer than codes, so not all are made at once."""
        sampler = self.conditions.sampler
        at_once = max(1, min(self.size, _BLOCK_BYTES // max(self.decoder.row_bytes, 1)))
        stream = public_stream(self.seed, block)
        rows = sampler.rows(self.size if classes is None else classes.size, stream, classes)
        start, count = block * self.size, min(self.size, self.n - block * self.size)
        for first in range(0, max(count, 1), at_once):
            end = min(first + at_once, count)
            # of no rows the first is made and left out: Arrow takes no empty images
            some = slice(first, max(end, 1))
            codes = {name: column[some] for name, column in rows.items()}
            yield self.decoder.table(codes, self.conditions.values, start=start + first, n=end - first)
