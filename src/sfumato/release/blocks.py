"""Samples a block at a time: single rows, rows of several samples, rows joined to their units, tables of a database.

Blocks of units are drawn as rows with the columns of their unit, and one of a unit without rows. A column without a
name says what of a row is to be written.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.errors import ReleaseError
from sfumato.lenses.lens import Units, UnitSampler
from sfumato.maths.streams import public_stream
from sfumato.records.long_tables import as_written, number_ids
from sfumato.release.conditions import Conditions
from sfumato.release.database_sampler import DatabaseTables, TableRows
from sfumato.schema.database import own_name
from sfumato.schema.schema import Schema

_PARTS = ""
_STARTS, _THERE = 1, 2  # which row is the first of its unit, and which is a row, and no unit without any
_NO_VALUES: Mapping[str, pa.Array] = {}
_AHEAD = 2  # blocks per worker that are drawn before they are asked for: memory stays bounded
SAMPLE_BLOCK = 16_384
_BLOCK_NUMBERS = 1 << 22  # wide rows are drawn fewer at a time
_BLOCK_BYTES = 1 << 26  # of cells, which labels may make long
_FIRST_ID = 1


def rows_present(rows: pa.Table) -> np.ndarray | None:
    """Return which rows are some, and no units without any; None where all are."""
    return (rows.column(_PARTS).to_numpy() & _THERE) != 0 if _PARTS in rows.column_names else None


def rows_with_units(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows alone, each with the columns of its unit."""
    for batch in batches:
        yield _chosen(batch, _THERE).drop_columns([_PARTS])


def pairs(batches: Iterator[pa.Table], schema: Schema) -> Iterator[dict[str, pa.Table]]:
    """Yield both tables by their names, that of units first: the key, then the columns in the schema's order."""
    columns = columns_of_tables(schema)
    parts = dict(zip(columns, (_STARTS, _THERE), strict=True))
    for batch in batches:
        yield {
            table: _chosen(batch, parts[table]).select(list(named.values())).rename_columns(list(named))
            for table, named in columns.items()
        }


def columns_of_tables(schema: Schema) -> dict[str, dict[str, str]]:
    """Return the columns of all tables, that of units first: written name → name in the schema. Keys come first."""
    assert schema.unit is not None
    assert schema.database is not None
    key, own = schema.unit.column, schema.table_columns
    keys = {schema.database.units: (key,), **{branch.name: branch.identifiers for branch in schema.database.branches}}
    return {
        table: dict.fromkeys(keys[table], key) | {own_name(table, c): c for c in schema.released if c in own[table]}
        for table in schema.database.names
    }


def joined_tables(batches: Iterator[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """Return all tables, whole."""
    parts = list(batches)
    return {name: pa.concat_tables([batch[name] for batch in parts]) for name in parts[0]}


def _chosen(batch: pa.Table, part: int) -> pa.Table:
    parts = batch.column(_PARTS).to_numpy()
    return batch.filter(pa.array((parts & part) != 0))


@dataclass(frozen=True)
class Decoder:
    """From the codes that a sampler draws to cells.

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

    def decode(
        self, rows: Mapping[str, Any], values: Mapping[str, pa.Array] = _NO_VALUES, names: Sequence[str] | None = None
    ) -> pa.Table:
        """Return the released columns of coded rows, or some of them; those of `values` have one value each."""
        columns = {}
        for name in self.schema.released if names is None else names:
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


def drawn_in_order(draw: Blocks, blocks: Iterable[tuple[int, np.ndarray | None]], workers: int) -> Iterator[pa.Table]:
    """Yield the rows of blocks as `draw` makes them, which goes to every worker once.

    Raises:
        ReleaseError: a worker ended before its block was drawn.
    """
    # a fresh process each: a fork would copy locks that other threads hold
    context = multiprocessing.get_context("spawn")
    lost = False
    try:
        with ProcessPoolExecutor(workers, mp_context=context, initializer=_keep, initargs=(draw,)) as pool:
            try:
                yield from _collected(pool, blocks, workers)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
    except BrokenProcessPool:
        lost = True
    if lost:
        raise ReleaseError("A worker ended before its rows were drawn. Take fewer workers: memory may be short.")


def _collected(
    pool: ProcessPoolExecutor, blocks: Iterable[tuple[int, np.ndarray | None]], workers: int
) -> Iterator[pa.Table]:
    waiting: deque[Future[list[pa.Table]]] = deque()
    for block, classes in blocks:
        waiting.append(pool.submit(_drawn, block, classes))
        if len(waiting) > _AHEAD * workers:
            yield from waiting.popleft().result()
    while waiting:
        yield from waiting.popleft().result()


_kept: list[Blocks] = []


def _keep(draw: Blocks) -> None:
    _kept[:] = [draw]


def _drawn(block: int, classes: np.ndarray | None) -> list[pa.Table]:
    return list(_kept[0].each(block, classes))


def block_rows(width: int) -> int:
    """How many rows are drawn at a time, of so many numbers each."""
    return max(1, min(SAMPLE_BLOCK, _BLOCK_NUMBERS // width))


@dataclass(frozen=True)
class Blocks:
    """A sample, a block of records after the other, each from a random stream of its own; here of single rows.

    Attributes:
        decoder: from codes to cells.
        n: how many records.
        seed: of all blocks.
        conditions: whose sampler draws.
    """

    decoder: Decoder
    n: int
    seed: int
    conditions: Conditions

    @property
    def size(self) -> int:
        """Records of a block."""
        return block_rows(self.conditions.sampler.width)

    def tables_between(self, first: int, end: int, workers: int) -> Iterator[pa.Table]:
        """Yield the rows of some blocks, in order, at most 16,384 at a time."""
        blocks = zip(range(first, end), self.conditions.classes(self.size, self.seed), strict=False)
        if workers > 1 and end - first > 1:
            return drawn_in_order(self, blocks, min(workers, end - first))
        return (table for block, classes in blocks for table in self.each(block, classes))

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


@dataclass(frozen=True)
class DatabaseBlocks(Blocks):
    """Blocks of units with the rows of all tables.

    Units are numbered from 1; a row of a table below by the number of the row above and its place there, so that no
    number depends on what other blocks hold.
    """

    def each(self, block: int, classes: np.ndarray | None) -> Iterator[Any]:
        """Yield the tables of a block's units, by their names."""
        sampler, n = self.conditions.sampler, self.size if classes is None else classes.size
        assert isinstance(sampler, DatabaseTables)
        count = max(0, min(self.size, self.n - block * self.size))
        tables = self.written(sampler.tables(n, public_stream(self.seed, block), classes), block * self.size, count)
        yield {name: t.rename_columns([own_name(name, c) for c in t.column_names]) for name, t in tables.items()}

    def written(self, tables: Mapping[str, TableRows], start: int, count: int) -> dict[str, pa.Table]:
        """Return coded tables with the schema's names: of the first `count` units, numbered on from `start`."""
        database, unit = self.decoder.schema.database, self.decoder.schema.unit
        assert database is not None
        assert unit is not None
        storage = self.decoder.storage[unit.column]
        ids = {database.units: start + np.arange(count) + _FIRST_ID}
        owners, stay = {database.units: np.arange(count)}, {database.units: count}
        first = {name: tables[database.units].rows[name][:count] for name in unit.constant}
        decoded = self.decoder.decode(first, self.conditions.values, unit.constant)
        key = number_ids(pa.array(ids[database.units]), storage)
        written = {database.units: pa.table({unit.column: key, **_columns_of(decoded)})}  # keys alone may be all
        for branch in database.branches:
            level = tables[branch.name]
            n = int(np.searchsorted(level.above, stay[branch.of]))
            above, numbers = level.above[:n], level.numbers[:n]
            ids[branch.name] = (ids[branch.of][above] - _FIRST_ID) * branch.max_rows + numbers + _FIRST_ID
            owners[branch.name], stay[branch.name] = owners[branch.of][above], n
            named = {branch.by: ids[branch.of][above]}
            named |= {} if branch.key is None else {branch.key: ids[branch.name]}
            named |= {} if branch.unit is None else {branch.unit: ids[database.units][owners[branch.name]]}
            table = self.decoder.decode({name: level.rows[name][:n] for name in branch.columns}, {}, branch.columns)
            keys = {name: number_ids(pa.array(named[name]), storage) for name in branch.identifiers}
            written[branch.name] = pa.table({**keys, **_columns_of(table)})
        return written


def _columns_of(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))


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


@dataclass(frozen=True)
class LinkedBlocks(Blocks):
    """Blocks of units with their rows.

    Attributes:
        numbers: of the units that are drawn, from 0, -1 of those that are left out; None where all stay.
    """

    numbers: np.ndarray | None = None

    def each(self, block: int, classes: np.ndarray | None) -> Iterator[pa.Table]:
        """Yield the rows of a block's units, numbered on from those of the blocks before."""
        sampler = self.conditions.sampler
        assert isinstance(sampler, UnitSampler)
        n, stream = self.size if classes is None else classes.size, public_stream(self.seed, block)
        owners, rows, without = self._numbered(block, sampler.units(n, stream, classes))
        at_once = max(1, min(SAMPLE_BLOCK, _BLOCK_BYTES // max(self.decoder.row_bytes, 1)))
        for first in range(0, max(owners.size, 1), at_once):
            some = slice(first, first + at_once)
            table = self.numbered(owners[some], {name: codes[some] for name, codes in rows.items()})
            if self.decoder.schema.database is None:
                yield table
                continue
            starts = np.diff(owners, prepend=-1)[some] != 0
            parts = np.where(starts, _STARTS, 0) + np.where(without[some], 0, _THERE)
            yield table.append_column(_PARTS, pa.array(parts.astype(np.int8)))

    def _numbered(self, block: int, units: Units) -> Units:
        """Return the units of a block that stay, with their numbers in the sample."""
        owners = units.owners + block * self.size
        stay: slice | np.ndarray = slice(int(np.searchsorted(owners, self.n)))
        if self.numbers is not None:
            owners = np.append(self.numbers, -1)[np.minimum(owners, self.numbers.size)]
            stay = np.flatnonzero(owners >= 0)
        return Units(owners[stay], {name: codes[stay] for name, codes in units.rows.items()}, units.without[stay])

    def numbered(self, owners: np.ndarray, rows: Mapping[str, Any]) -> pa.Table:
        """Return coded rows as samples have them, with the numbers of their units, which are counted from 0."""
        decoder = self.decoder
        assert decoder.schema.unit is not None
        name = decoder.schema.unit.column
        ids = number_ids(pa.array(owners + _FIRST_ID), decoder.storage[name])
        return decoder.decode(rows, self.conditions.values).add_column(0, name, ids)
