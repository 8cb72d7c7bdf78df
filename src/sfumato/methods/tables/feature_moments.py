"""Second moments of a table's records, pooled and by class of a column to predict, measured with one Gaussian release.

A record is the features of its cells (`sfumato.methods.tables.features`), each times the root of its weight, clipped
to a norm that released shares make one expect. By class, it is what leads each of its numbers
(`sfumato.methods.tables.leading`). Proof: docs/proofs/second_moment.md.

The entries of a cell are whole numbers y, and clipping is a whole number u beside them: a record adds u·yyᵀ. So the sum
over records is a linear map of how often each pair of groups of cells is there, weighted by u: one weighted count for
each pair of columns, and whole numbers either way. Where columns are so many that products of vectors are faster, these
are taken instead, and the sum has the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import CellEntries, MomentBits, MomentQuery
from sfumato.mechanisms.contributions import step_of
from sfumato.mechanisms.statistics import OuterProducts
from sfumato.methods.tables.cell_counts import counting
from sfumato.methods.tables.leading import Leading
from sfumato.records.engine import ROWS_AT_ONCE, Rows
from sfumato.schema.grid import Grid

_WORK_BYTES = 1 << 20  # of vectors at once: they stay in the cache
_BLOCK_ROWS = 1 << 14
_FRACTIONS = 1 << 20
_LARGEST = 1 << 20  # of an entry: the squared length of a record stays below 2^53
_MOST_PAIRS = 1 << 23  # entries of the tables of pairs: 64 MiB
# nanoseconds: a pair of columns; an entry of its table, in 2^16 rows; an entry of a vector; one of a product
_PAIR, _PAIR_ENTRY, _ENTRY, _PRODUCT = 4.0, 3.0, 2.0, 0.06


@dataclass(frozen=True)
class TableMoments(OuterProducts):
    """The sum of outer products of the records' clipped vectors: of all features, and by class of those that lead.

    A record adds α·f·xxᵀ to the pooled matrix, f·‖x‖² ≤ C², and β·g·zzᵀ to that of its class, g·‖z‖² ≤ C²: with
    α² + β² ≤ 1 a norm of at most C². Two records' contributions have a non-negative inner product, so they are at most
    √2·C² apart; so are two units', C² being so many times as large as they have records. One `Gaussian` event for all
    matrices. Value: shape (1 + classes, d, d), or (1, d, d) without classes; by class the first l × l entries, else 0.

    In whole numbers: x = y·C/2^b and f = u/2^m with u = min(2^m, ⌊2^m·4^b / ‖y‖²⌋), so that u·‖y‖² ≤ 2^m·4^b exactly;
    likewise z and g.

    Attributes:
        grid: the columns.
        vectors: per column, the entries of each cell, shape (c, q); then, where it is wanted, an entry of all rows,
            shape (1, 1), whose products with features are their means.
        clip_norm: C.
        leading: what is told apart by class; None for the pooled matrix alone.
        bits: of the whole numbers; fewer where there are many rows.
    """

    grid: Grid
    vectors: tuple[np.ndarray, ...]
    clip_norm: float
    leading: Leading | None = None
    name: str = "second moments, pooled and by class"
    bits: MomentBits = field(default_factory=MomentBits)

    @cached_property
    def dimension(self) -> int:
        """Entries d of a record's vector."""
        return sum(vectors.shape[1] for vectors in self.vectors)

    @property
    def weights(self) -> np.ndarray:
        """α, then β for each class, shape (1 + classes,) or (1,)."""
        if self.leading is None:
            return np.ones(1)
        squares = np.array([1 - self.leading.part] + [self.leading.part] * self.leading.n_classes)
        # rounded down to binary fractions, so that the squares of two of them add up to at most 1, exactly
        return np.floor(np.sqrt(squares) * _FRACTIONS) / _FRACTIONS

    @property
    def step(self) -> np.ndarray:
        """(C/2^b)²/2^m times α or β, shape (matrices, 1, 1)."""
        whole = step_of(self.clip_norm, self.bits.entries) ** 2 * 2.0**-self.bits.weights
        return (whole * self.weights)[:, None, None]

    @cached_property
    def whole(self) -> tuple[np.ndarray, ...]:
        """The entries of each cell as whole numbers y of C/2^b, int64, as `vectors`."""
        return tuple(self._whole(vectors) for vectors in self.vectors)

    @cached_property
    def _whole_leading(self) -> tuple[np.ndarray, ...]:
        """The entries of z of each cell of the columns that lead, as whole numbers, int64, shapes (c, features)."""
        return () if self.leading is None else tuple(self._whole(values) for values in self.leading.values)

    def _whole(self, vectors: np.ndarray) -> np.ndarray:
        step = step_of(self.clip_norm, self.bits.entries)
        return np.rint(np.clip(np.nan_to_num(vectors / step), -_LARGEST, _LARGEST)).astype(np.int64)

    @cached_property
    def pooled_query(self) -> MomentQuery:
        """The pooled sum."""
        cells = [*map(Cells.of, self.grid.columns), Cells.all_rows()]
        features = tuple(CellEntries.of(own, whole) for own, whole in zip(cells, self.whole, strict=False))
        return MomentQuery(features, self.clip_norm, self.bits, **self.how_counted)

    @cached_property
    def class_query(self) -> MomentQuery | None:
        """The sums by class, of what leads; None without classes."""
        if self.leading is None:
            return None
        columns = zip(self.leading.columns, self._whole_leading, strict=True)
        features = tuple(CellEntries.of(Cells.of(self.grid.columns[j]), whole) for j, whole in columns)
        by = Cells.of(self.grid.columns[self.leading.target], self.leading.classes)
        return MomentQuery(features, self.clip_norm, self.bits, by=(by,), **self.how_counted)

    @property
    def how_counted(self) -> dict[str, Any]:
        """How a record counts, where that is not once: see `counting`."""
        return counting(self)

    def zero(self) -> np.ndarray:
        """Return empty moments."""
        return np.zeros((self.weights.size, self.dimension, self.dimension))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, expanded to vectors a few at a time."""
        cells, entries = self.cells(rows), [whole.astype(np.float64) for whole in self.whole]
        counted = self.counted(rows, self.clipping(cells))
        at_once = max(256, _WORK_BYTES // (8 * max(self.dimension, 1)))
        for start in range(0, counted.size, at_once):
            some = slice(start, start + at_once)
            vectors = np.concatenate([e[c[some]] for e, c in zip(entries, cells, strict=True)], axis=1)
            total[0] += vectors.T @ (vectors * counted[some, None])
        if self.leading is not None:
            self._add_leading(total[1:], rows, cells, self.leading)

    def _add_leading(self, total: np.ndarray, rows: Rows, cells: Sequence[np.ndarray], leading: Leading) -> None:
        """Add β·g·zzᵀ of some records to the matrices of their classes."""
        classes, most = leading.classes[cells[leading.target]], 1 << self.bits.weights
        for start in range(0, classes.size, _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            led = zip(leading.columns, self._whole_leading, strict=True)
            z = np.concatenate([whole[cells[j][block]] for j, whole in led], axis=1)
            clipping = np.minimum((most << (2 * self.bits.entries)) // np.maximum((z**2).sum(axis=1), 1), most)
            some = {name: column[block] for name, column in rows.items()}
            counted, z = self.counted(some, clipping.astype(np.float64)), z.astype(np.float64)
            for k in range(leading.n_classes):
                of_class = classes[block] == k
                own = z[of_class]
                total[k, : leading.size, : leading.size] += own.T @ (own * counted[of_class, None])

    def cells(self, rows: Rows) -> list[np.ndarray]:
        """Return the cell of each record in every column, and after these the one of all rows where it has an entry."""
        cells = [column.cells(rows[column.name]) for column in self.grid.columns]
        return [*cells, np.zeros_like(cells[0])][: len(self.vectors)]

    def clipping(self, cells: Sequence[np.ndarray]) -> np.ndarray:
        """Return u of records with these cells, whole numbers in float64, shape (n,)."""
        of_columns = zip(self.pooled_query.features, cells, strict=True)
        return self.pooled_query.clipping([entries.cells.grouped(column) for entries, column in of_columns])

    def counted(self, rows: Rows, clipping: np.ndarray) -> np.ndarray:
        """Return what each record's product is multiplied by, whole numbers in float64, by its clipping, shape (n,)."""
        del rows
        return clipping

    def of(self, cells: Sequence[np.ndarray]) -> np.ndarray:
        """Return the vectors of records with these cells as they are summed, unclipped, shape (n, d)."""
        whole = np.concatenate([v[c] for v, c in zip(self.whole, cells, strict=True)], axis=1)
        return whole * step_of(self.clip_norm, self.bits.entries)

    @cached_property
    def compact(self) -> PairCounts | None:
        """The same sum as weighted counts of pairs, where that is faster: a choice by public sizes alone."""
        if self.leading is not None:
            return None
        pairs = PairCounts.of(self)
        n_pairs = len(self.vectors) * (len(self.vectors) + 1) / 2
        counted = n_pairs * _PAIR + pairs.size / ROWS_AT_ONCE * _PAIR_ENTRY
        multiplied = self.dimension * _ENTRY + self.dimension**2 * _PRODUCT
        return pairs if pairs.size <= _MOST_PAIRS and counted < multiplied else None


@dataclass(frozen=True)
class PairCounts:
    """Per pair of columns, how often each pair of groups of cells is there, weighted by the records' clipping.

    Cells of one group have the same entries. A record adds u to one entry of each pair, so that sums over 2^16 records
    are far below 2^53.

    Attributes:
        moments: whose sum it is.
        groups: group of each cell, per column.
        entries: whole numbers y of each group, per column, shape (r, q).
    """

    moments: TableMoments
    groups: tuple[np.ndarray, ...]
    entries: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, moments: TableMoments) -> PairCounts:
        """Take the groups of the query."""
        features = moments.pooled_query.features
        groups = tuple(entries.cells.grouped(np.arange(entries.cells.base)) for entries in features)
        return cls(moments, groups, tuple(entries.whole for entries in features))

    def _pairs(self) -> Iterator[tuple[int, int, slice]]:
        """Yield pairs of columns, and where their tables (r, r') lie; of a column with itself (r,)."""
        start, sizes = 0, [len(entries) for entries in self.entries]
        for i, first in enumerate(sizes):
            for j in range(i, len(sizes)):
                end = start + first * (sizes[j] if j > i else 1)
                yield i, j, slice(start, end)
                start = end

    @cached_property
    def size(self) -> int:
        """Number of all entries."""
        *_, (_, _, last) = self._pairs()
        return last.stop

    def zero(self) -> np.ndarray:
        """Return empty tables, one after the other."""
        return np.zeros(self.size)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, a block at a time."""
        cells = self.moments.cells(rows)
        for start in range(0, cells[0].size, _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            some = {name: column[block] for name, column in rows.items()}
            self._add(total, some, [column[block] for column in cells])

    def _add(self, total: np.ndarray, rows: Rows, cells: Sequence[np.ndarray]) -> None:
        counted = self.moments.counted(rows, self.moments.clipping(cells))
        groups = [of_cell[column] for of_cell, column in zip(self.groups, cells, strict=True)]
        for i, j, part in self._pairs():
            where = groups[i] if i == j else groups[i] * len(self.entries[j]) + groups[j]
            total[part] += np.bincount(where, counted, part.stop - part.start)

    def expanded(self, total: np.ndarray) -> np.ndarray:
        """Return the moments of tables, int64 modulo 2^64: a linear map in whole numbers, hence that of any sum."""
        ends = np.cumsum([0, *(entries.shape[1] for entries in self.entries)])
        sums = np.zeros((1, ends[-1], ends[-1]), dtype=np.int64)
        for i, j, part in self._pairs():
            first, second = self.entries[i], self.entries[j]
            rows, columns = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            if i == j:
                sums[0, rows, rows] = first.T @ (first * total[part, None])
                continue
            sums[0, rows, columns] = first.T @ total[part].reshape(len(first), -1) @ second
            sums[0, columns, rows] = sums[0, rows, columns].T
        return sums
