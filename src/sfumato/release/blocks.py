"""Samples a block at a time, each block from its own stream: of single rows, and of linked rows, a block of units."""

from __future__ import annotations

import multiprocessing
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import ReleaseError
from sfumato.lenses.lens import UnitSampler
from sfumato.maths.streams import public_stream
from sfumato.records.long_tables import as_written, number_ids
from sfumato.release.conditions import Conditions
from sfumato.release.pair_samples import with_parts
from sfumato.schema.schema import Schema

SAMPLE_BLOCK = 16_384
_BLOCK_NUMBERS = 1 << 22  # wide rows are drawn fewer at a time
_BLOCK_BYTES = 1 << 26  # of cells, which labels may make long
_FIRST_ID = 1
_AHEAD = 2  # blocks per worker that are drawn before they are asked for: memory stays bounded
_NO_VALUES: Mapping[str, pa.Array] = {}


def block_rows(width: int) -> int:
    """How many rows, or units, are drawn at a time, of so many numbers each."""
    return max(1, min(SAMPLE_BLOCK, _BLOCK_NUMBERS // width))


@dataclass(frozen=True)
class Decoder:
    """From the codes that a sampler draws to the cells of a schema's columns, in the types in which samples come.

    Attributes:
        schema: of the release.
        storage: types of the columns of samples.
    """

    schema: Schema
    storage: Mapping[str, pa.DataType]

    @property
    def row_bytes(self) -> int:
        """The most bytes of a row's cells."""
        return sum(self.schema.columns[name].cell_bytes for name in self.schema.released)

    def decode(self, rows: Mapping[str, Any], values: Mapping[str, pa.Array] = _NO_VALUES) -> pa.Table:
        """Return the released columns of coded rows; those of `values` have one value each."""
        columns = {}
        for name in self.schema.released:
            if name in values:
                # the value itself: its cell holds others
                columns[name] = values[name].take(pa.array(np.zeros(len(rows[name]), dtype=np.int64)))
            else:
                columns[name] = self.schema.columns[name].decode(rows[name], self.storage[name])
        return pa.table(columns)

    def table(
        self,
        rows: Mapping[str, Any],
        values: Mapping[str, pa.Array] = _NO_VALUES,
        *,
        start: int = 0,
        n: int | None = None,
    ) -> pa.Table:
        """Return coded rows as samples are written, n of them, of which the first is at `start` in the sample."""
        records = self.decode(rows, values)
        return as_written(records if n is None else records.slice(0, n), self.schema, self.storage, start)


@dataclass(frozen=True)
class SampleBlocks(ABC):
    """A sample, a block after the other, each from a random stream of its own.

    Attributes:
        decoder: from codes to cells.
        n: how many rows; of linked rows, units.
        seed: of all blocks.
        conditions: whose sampler draws.
    """

    decoder: Decoder
    n: int
    seed: int
    conditions: Conditions

    @property
    def size(self) -> int:
        """Rows, or units, of a block."""
        return block_rows(self.conditions.sampler.width)

    @property
    def count(self) -> int:
        """Number of blocks, at least 1."""
        return max(1, -(-self.n // self.size))

    def tables_between(self, first: int, end: int, workers: int) -> Iterator[pa.Table]:
        """Yield the rows of some blocks, in order."""
        blocks = zip(range(first, end), self.conditions.classes(self.size, self.seed), strict=False)
        if workers > 1 and end - first > 1:
            return blocks_in_order(self, blocks, min(workers, end - first))
        return (table for block, classes in blocks for table in self.each(block, classes))

    def tables(self, block: int, classes: np.ndarray | None) -> list[pa.Table]:
        """Return the rows of a block."""
        return list(self.each(block, classes))

    @abstractmethod
    def each(self, block: int, classes: np.ndarray | None) -> Iterator[pa.Table]:
        """Yield the rows of a block, at most 16,384 at a time; cells may be far longer than codes."""

    def _rows_at_once(self, most: int) -> int:
        return max(1, min(most, _BLOCK_BYTES // max(self.decoder.row_bytes, 1)))


class RowBlocks(SampleBlocks):
    """A sample of single rows."""

    def each(self, block: int, classes: np.ndarray | None) -> Iterator[pa.Table]:
        """Yield the rows of a block."""
        sampler, at_once = self.conditions.sampler, self._rows_at_once(self.size)
        stream = public_stream(self.seed, block)
        rows = sampler.rows(self.size if classes is None else classes.size, stream, classes)
        start, count = block * self.size, min(self.size, self.n - block * self.size)
        for first in range(0, max(count, 1), at_once):
            end = min(first + at_once, count)
            # of no rows the first is made and left out: Arrow takes no empty images
            some = slice(first, max(end, 1))
            codes = {name: column[some] for name, column in rows.items()}
            yield self.decoder.table(codes, self.conditions.values, start=start + first, n=end - first)


class UnitBlocks(SampleBlocks):
    """A sample of linked rows."""

    def each(self, block: int, classes: np.ndarray | None) -> Iterator[pa.Table]:
        """Yield the rows of a block's units, numbered on from those of the blocks before."""
        del classes
        sampler = self.conditions.sampler
        assert isinstance(sampler, UnitSampler)
        owners, rows, without = sampler.units(self.size, public_stream(self.seed, block))
        count, at_once = int(np.searchsorted(owners, self.n - block * self.size)), self._rows_at_once(SAMPLE_BLOCK)
        for first in range(0, max(count, 1), at_once):
            some = slice(first, min(first + at_once, count))
            part = {name: codes[some] for name, codes in rows.items()}
            table = self.with_ids(owners[some] + block * self.size, part)
            if not self.decoder.schema.two_tables:
                yield table
                continue
            starts = np.diff(owners, prepend=-1)[some] != 0
            yield with_parts(table, starts=starts, present=~without[some])

    def with_ids(self, owners: np.ndarray, rows: Mapping[str, Any]) -> pa.Table:
        """Return coded rows as samples have them, with the numbers of their units, which are counted from 0."""
        decoder = self.decoder
        assert decoder.schema.unit is not None
        name = decoder.schema.unit.column
        ids = number_ids(pa.array(owners + _FIRST_ID), decoder.storage[name])
        return decoder.decode(rows, self.conditions.values).add_column(0, name, ids)


def blocks_in_order(
    draw: SampleBlocks, blocks: Iterable[tuple[int, np.ndarray | None]], workers: int
) -> Iterator[pa.Table]:
    """Yield the rows of blocks as several processes draw them: the same, in their order, as one does.

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


_draws: list[SampleBlocks] = []


def _keep(draw: SampleBlocks) -> None:
    _draws[:] = [draw]


def _tables_of_block(block: int, classes: np.ndarray | None) -> list[pa.Table]:
    return _draws[0].tables(block, classes)
