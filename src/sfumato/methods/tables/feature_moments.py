"""Second moments of a table's records, pooled and by class, measured with one Gaussian release.

A record is the features of its cells (`sfumato.methods.tables.features`), each times the root of its weight, clipped
to a norm that released shares make one expect. Proof: docs/proofs/second_moment.md.

The entries of a cell are whole numbers y, and clipping is a whole number u beside them: a record adds u·yyᵀ. So the sum
over records is a linear map of how often each pair of groups of cells is there, weighted by u: one weighted count for
each pair of columns, and whole numbers either way. Where columns are so many that products of vectors are faster, these
are taken instead, and the sum has the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import CellEntries, MomentBits, MomentQuery
from sfumato.mechanisms.contributions import step_of
from sfumato.mechanisms.statistics import OuterProducts
from sfumato.methods.tables.layout import TableLayout
from sfumato.records.engine import ROWS_AT_ONCE, Rows

_WORK_BYTES = 1 << 20  # of vectors at once: they stay in the cache
_BLOCK_ROWS = 1 << 14
_FRACTIONS = 1 << 20
_LARGEST = 1 << 20  # of an entry: the squared length of a record stays below 2^53
_MOST_PAIRS = 1 << 23  # entries of the tables of pairs: 64 MiB
# nanoseconds: a pair of columns; an entry of its table, in 2^16 rows; an entry of a vector; one of a product
_PAIR, _PAIR_ENTRY, _ENTRY, _PRODUCT = 4.0, 3.0, 2.0, 0.06


@dataclass(frozen=True)
class TableMoments(OuterProducts):
    """The sum of outer products of the records' clipped vectors: of all records, and of each class.

    A record x adds α·f·xxᵀ to the pooled matrix and β·f·xxᵀ to that of its class, α² + β² ≤ 1 and f·‖x‖² ≤ C²: norm at
    most C². Two records' contributions have a non-negative inner product, so they are at most √2·C² apart; so are two
    units', C² being so many times as large as they have records. One `Gaussian` event for all matrices.
    Value: shape (1 + classes, d, d), or (1, d, d) where β = 0.

    In whole numbers: x = y·C/2^b and f = u/2^m with u = min(2^m, ⌊2^m·4^b / ‖y‖²⌋), so that u·‖y‖² ≤ 2^m·4^b exactly.

    Attributes:
        layout: the columns.
        vectors: per feature column, the entries of each cell, shape (c, q); then, where they are wanted, of the class
            (without a target, of the one class of all rows): an indicator, whose products with features are its means.
        clip_norm: C.
        by_class: β² in [0, 1), up to rounding; 0 for the pooled matrix alone.
        bits: of the whole numbers; fewer where there are many rows.
    """

    layout: TableLayout
    vectors: tuple[np.ndarray, ...]
    clip_norm: float
    by_class: float = 0.0
    name: str = "second moments, pooled and by class"
    bits: MomentBits = field(default_factory=MomentBits)

    @cached_property
    def dimension(self) -> int:
        """CellEntries d of a record's vector."""
        return sum(vectors.shape[1] for vectors in self.vectors)

    @property
    def weights(self) -> np.ndarray:
        """α, then β for each class, shape (1 + classes,) or (1,)."""
        if not self.by_class:
            return np.ones(1)
        squares = np.array([1 - self.by_class] + [self.by_class] * self.layout.class_cells.size)
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
        step = step_of(self.clip_norm, self.bits.entries)
        return tuple(
            np.rint(np.clip(np.nan_to_num(v / step), -_LARGEST, _LARGEST)).astype(np.int64) for v in self.vectors
        )

    @cached_property
    def pooled_query(self) -> MomentQuery:
        """The pooled sum."""
        columns = [Cells.of(column) for column in self.layout.features]
        columns = [*columns, self.layout.class_cells][: len(self.whole)]
        features = tuple(CellEntries.of(cells, whole) for cells, whole in zip(columns, self.whole, strict=True))
        return MomentQuery(features, self.clip_norm, self.bits, **self.how_counted)

    @property
    def class_query(self) -> MomentQuery:
        """The sums by class."""
        return replace(self.pooled_query, by=(self.layout.class_cells,))

    @property
    def how_counted(self) -> dict[str, Any]:
        """How a record counts, where that is not once."""
        return {}

    def zero(self) -> np.ndarray:
        """Return empty moments."""
        return np.zeros((self.weights.size, self.dimension, self.dimension))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, expanded to vectors a few at a time."""
        classes = self.layout.classes(rows)
        cells, entries = self.cells(rows, classes), [whole.astype(np.float64) for whole in self.whole]
        clipping = self.counted(rows, cells)
        at_once = max(256, _WORK_BYTES // (8 * max(self.dimension, 1)))
        n_parts = self.layout.class_cells.size if self.by_class else 1
        parts = [np.flatnonzero(classes == k) if self.by_class else np.arange(classes.size) for k in range(n_parts)]
        for k, members in enumerate(parts):
            for start in range(0, members.size, at_once):
                some = members[start : start + at_once]
                vectors = np.concatenate([e[c[some]] for e, c in zip(entries, cells, strict=True)], axis=1)
                product = vectors.T @ (vectors * clipping[some, None])
                total[0] += product
                if self.by_class:
                    total[1 + k] += product

    def cells(self, rows: Rows, classes: np.ndarray) -> list[np.ndarray]:
        """Return the cell of each record in every column, and after these its class where that has entries."""
        cells = [column.cells(rows[column.name]) for column in self.layout.features]
        return [*cells, classes] if len(self.vectors) > len(cells) else cells

    def clipping(self, cells: Sequence[np.ndarray]) -> np.ndarray:
        """Return u of records with these cells, whole numbers in float64, shape (n,)."""
        of_columns = zip(self.pooled_query.features, cells, strict=True)
        return self.pooled_query.clipping([entries.cells.grouped(column) for entries, column in of_columns])

    def counted(self, rows: Rows, cells: Sequence[np.ndarray]) -> np.ndarray:
        """Return what each record's product is multiplied by: u, whole numbers in float64, shape (n,)."""
        del rows
        return self.clipping(cells)

    def of(self, cells: Sequence[np.ndarray]) -> np.ndarray:
        """Return the vectors of records with these cells as they are summed, unclipped, shape (n, d)."""
        whole = np.concatenate([v[c] for v, c in zip(self.whole, cells, strict=True)], axis=1)
        return whole * step_of(self.clip_norm, self.bits.entries)

    @cached_property
    def compact(self) -> PairCounts | None:
        """The same sum as weighted counts of pairs, where that is faster: a choice by public sizes alone."""
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

    @property
    def _parts(self) -> int:
        """Classes that are told apart."""
        return self.moments.layout.class_cells.size if self.moments.by_class else 1

    def _pairs(self) -> Iterator[tuple[int, int, slice]]:
        """Yield pairs of columns, and where their tables (classes, r, r') lie; of a column with itself (classes, r)."""
        start, sizes = 0, [len(entries) for entries in self.entries]
        for i, first in enumerate(sizes):
            for j in range(i, len(sizes)):
                end = start + self._parts * first * (sizes[j] if j > i else 1)
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
        classes = self.moments.layout.classes(rows)
        cells = self.moments.cells(rows, classes)
        for start in range(0, classes.size, _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            some = {name: column[block] for name, column in rows.items()}
            self._add(total, some, [column[block] for column in cells], classes[block].astype(np.int64))

    def _add(self, total: np.ndarray, rows: Rows, cells: Sequence[np.ndarray], classes: np.ndarray) -> None:
        clipping = self.moments.counted(rows, cells)
        groups = [of_cell[column] for of_cell, column in zip(self.groups, cells, strict=True)]
        before, place = -1, groups[0]
        for i, j, part in self._pairs():
            if i > before:
                before, place = i, groups[i]
                if self._parts > 1:
                    place = place + classes * len(self.entries[i])
            where = place if i == j else place * len(self.entries[j]) + groups[j]
            total[part] += np.bincount(where, clipping, part.stop - part.start)

    def expanded(self, total: np.ndarray) -> np.ndarray:
        """Return the moments of tables, int64 modulo 2^64: a linear map in whole numbers, hence that of any sum."""
        ends = np.cumsum([0, *(entries.shape[1] for entries in self.entries)])
        sums = np.zeros((self._parts, ends[-1], ends[-1]), dtype=np.int64)
        for i, j, part in self._pairs():
            first, second = self.entries[i], self.entries[j]
            rows, columns = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            table = total[part].reshape(self._parts, len(first), -1)
            if i == j:
                sums[:, rows, rows] = np.matmul(first.T, first * table)
                continue
            sums[:, rows, columns] = np.matmul(np.matmul(first.T, table), second)
            sums[:, columns, rows] = sums[:, rows, columns].transpose(0, 2, 1)
        pooled = sums.sum(axis=0, keepdims=True)
        return np.concatenate([pooled, sums]) if self.moments.by_class else pooled
