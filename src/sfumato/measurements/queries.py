"""Queries: sums over records of functions of a record's columns, as data; those of sets are in `item_queries`.

A query says which columns it reads, into which cells these are cut, and what a record adds to the sum. A release keeps
it beside the noisy value; the code that evaluated it on the records evaluates it on a model's rows.

Each record adds once, or by its weight; of a record that is a unit with rows, these share one bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, TypeAlias

import numpy as np

from sfumato.measurements.cells import ALL_ROWS, BaseCells, Cells, joint_cells
from sfumato.measurements.item_queries import ItemPairQuery, ItemQuery
from sfumato.measurements.score_query import ScoreQuery
from sfumato.privacy.origin import Origin
from sfumato.records.sequences import UNIT_BITS

MOST_AXES = 8
"""Of one table, those of `by` with its own."""
_MOST_BITS, _ALL_BITS = 36, 60  # of u·yyᵀ: its sums over 2^16 records stay below 2^53, those over all below 2^63
_MOST_SQUARE = 1 << 42  # with 20 bits more, of int64
LARGEST = 1e100
"""Of noise and values: their squares, and sums of these, are numbers."""


@dataclass(frozen=True, slots=True)
class UnitNorm:
    """How the rows of a unit share one bound in tables of counts.

    Of a unit with k rows, c of them in a cell of a table, N² = Σ s c² + r k² over tables and cells, and each row counts
    w = min(1, C ÷ N), in whole numbers of 2^-10, rounded down.

    Attributes:
        square: C², in 2^-10.
        tables: s of each of a query's tables, in 2^-10.
        beside: r, in 2^-10.
    """

    square: int
    tables: tuple[int, ...]
    beside: int


@dataclass(frozen=True, eq=False)
class MarginalQuery:
    """How many records lie in each cell of some tables.

    Value: shape (sizes of `by` …, sum of the tables' sizes), tables side by side, each flat with its last axis fastest.
    A record adds one 1 to each table, or none to a table of some cells of one column where it is in none of them.

    Attributes:
        tables: the axes of each table, beside those of `by`.
        by: axes that all tables share, which come first.
        weight: the column by which records count; "" where each counts once.
        norm: of units whose rows share one bound; None of others.
    """

    kind: ClassVar[str] = "marginals"

    tables: tuple[tuple[Cells, ...], ...]
    by: tuple[Cells, ...] = ()
    weight: str = ""
    norm: UnitNorm | None = None

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Number of cells of each table within one cell of `by`."""
        return tuple(_product(axes) for axes in self.tables)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return (*(axis.size for axis in self.by), sum(self.widths))

    @property
    def cells(self) -> list[Cells]:
        """Every axis."""
        return [*self.by, *(axis for table in self.tables for axis in table)]

    def add(self, total: np.ndarray, base: BaseCells, counts: np.ndarray | None = None) -> None:
        """Add rows to a sum of this shape, each once or so many times, shape (n,)."""
        within = _product(self.by)
        flat, start = total.reshape(within, -1), 0
        first = joint_cells(self.by, [base.of(axis) for axis in self.by]) if self.by else None
        for axes, width in zip(self.tables, self.widths, strict=True):
            place, counts_of = joint_cells(axes, [base.of(axis) for axis in axes]), counts
            place = place if first is None else first * width + place
            if axes[0].partial:
                counts_of, place = (counts if counts is None else counts[place >= 0]), place[place >= 0]
            flat[:, start : start + width] += np.bincount(place, counts_of, minlength=within * width).reshape(-1, width)
            start += width

    def split(self, value: np.ndarray) -> list[np.ndarray]:
        """The tables of a value, shape (sizes of `by` …, sizes of the table's axes …) each."""
        parts = np.split(value, np.cumsum(self.widths)[:-1], axis=-1)
        shapes = [(*value.shape[:-1], *(axis.size for axis in axes)) for axes in self.tables]
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _product(axes: Sequence[Cells]) -> int:
    return math.prod(axis.size for axis in axes)


def unit_weights(queries: Sequence[MarginalQuery], base: BaseCells, owners: np.ndarray, n: int) -> np.ndarray:
    """Return w of n units, in 2^-10, int64, w²·N² ≤ C² exactly, by all tables of a bound and the unit of each row."""
    norms = [query.norm for query in queries if query.norm is not None]
    total = norms[0].beside * np.bincount(owners, minlength=n) ** 2
    for query, norm in zip(queries, norms, strict=True):
        for axes, square, size in zip(query.tables, norm.tables, query.widths, strict=True):
            if square:
                places = np.sort(owners * size + joint_cells(axes, [base.of(axis) for axis in axes]))
                starts = np.flatnonzero(np.diff(places, prepend=-1))
                times = np.diff(starts, append=places.size)
                np.add.at(total, places[starts] // size, square * times**2)
    square, whole = norms[0].square, 1 << 2 * UNIT_BITS
    shares = np.minimum(min(square, _MOST_SQUARE) * whole // np.maximum(total, 1), whole)
    return np.sqrt(np.where(total <= square, whole, shares)).astype(np.int64)  # exact: shares are below 2^52


@dataclass(frozen=True, slots=True)
class MomentBits:
    """How finely entries and clipping are whole numbers.

    Attributes:
        entries: b; an entry is a whole number of C/2^b.
        weights: m; clipping multiplies by a whole number of 2^-m.
    """

    entries: int = 15
    weights: int = 6

    @classmethod
    def of(cls, n_public: int) -> MomentBits:
        """As many as leave room for eight times the public number of rows: 2b + m ≤ 36, and 8n·2^(2b+m) ≤ 2^63.

        Args:
            n_public: the public number of rows, at most `MOST_ROWS`.
        """
        together = min(_MOST_BITS, _ALL_BITS - (n_public - 1).bit_length())
        weights = together // 6
        return cls((together - weights) // 2, weights)


@dataclass(frozen=True, eq=False)
class CellEntries:
    """The entries of a record's vector that follow from its cell in one column.

    Attributes:
        cells: of the column.
        whole: y of each cell, in C/2^b, int64, shape (cells, q).
    """

    cells: Cells
    whole: np.ndarray

    @classmethod
    def of(cls, cells: Cells, whole: np.ndarray) -> CellEntries:
        """The entries by base cell, shape (base, q); cells with the same ones are one group."""
        distinct, groups = np.unique(whole, axis=0, return_inverse=True)
        return cls(replace(cells, groups=np.asarray(groups).reshape(-1).astype(np.int64)), distinct)


@dataclass(frozen=True, eq=False)
class MomentQuery:
    """The sum of outer products of records' vectors, each clipped to a norm.

    A record adds f·xxᵀ with x = y·C/2^b and f = u/2^m, u = min(2^m, ⌊2^m·4^b / ‖y‖²⌋), so that f·‖x‖² ≤ C². Value:
    shape (d, d), or (cells of `by`, d, d): symmetric.

    Attributes:
        features: by column, the entries of x.
        clip_norm: C.
        bits: b and m.
        by: the cells of one column, each of which has a matrix of its own; or none.
        weight: as in `MarginalQuery`.
        together: whether rows are those of units, clipped together, each as it counts in counts of them at most.
    """

    kind: ClassVar[str] = "moments"

    features: tuple[CellEntries, ...]
    clip_norm: float
    bits: MomentBits = MomentBits()
    by: tuple[Cells, ...] = ()
    weight: str = ""
    together: bool = False

    @property
    def dimension(self) -> int:
        """Length d of a record's vector."""
        return sum(entries.whole.shape[1] for entries in self.features)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return (*(axis.size for axis in self.by), self.dimension, self.dimension)

    @property
    def cells(self) -> list[Cells]:
        """Every column's cells."""
        return [*self.by, *(entries.cells for entries in self.features)]

    @property
    def unit(self) -> float:
        """C/2^b."""
        return self.clip_norm * 2.0**-self.bits.entries

    @cached_property
    def _squares(self) -> list[np.ndarray]:
        return [(entries.whole**2).sum(axis=1) for entries in self.features]

    def clipping(self, cells: Sequence[np.ndarray]) -> np.ndarray:
        """The factor u of rows with these cells of each of `features`, whole numbers in float64, shape (n,)."""
        squares = np.zeros(cells[0].size, dtype=np.int64)
        for of_cell, column in zip(self._squares, cells, strict=True):
            squares += of_cell[column]
        most = 1 << (2 * self.bits.entries + self.bits.weights)
        return np.minimum(most // np.maximum(squares, 1), 1 << self.bits.weights).astype(np.float64)


Query: TypeAlias = MarginalQuery | MomentQuery | ItemQuery | ItemPairQuery | ScoreQuery


def query_fault(query: Query, kinds: Mapping[str, object], weight: str) -> str | None:
    """The fault of a query for columns of these kinds, or for the column by which records count; None without.

    Args:
        query: of anybody.
        kinds: of the columns, by name.
        weight: the column of weights; "" where each record counts once.
    """
    if isinstance(query, ItemQuery | ItemPairQuery):
        return query.fault(kinds)
    if isinstance(query, ScoreQuery):
        return query.fault(kinds, weight)
    if query.weight not in ("", weight):
        return f"counts records by {query.weight!r}, which is not the schema's weight"
    fault = next((fault for cells in query.cells if (fault := cells.fault(kinds))), None)
    return fault or _fault_of_axes(query)


def _fault_of_axes(query: MarginalQuery | MomentQuery) -> str | None:
    """The fault of the axes of a table, or of the columns of features; None without."""
    if isinstance(query, MomentQuery):
        twice = _twice(entries.cells for entries in query.features)
        if any(cells.partial for cells in query.cells):
            return "has features of some cells of a column alone"
        return None if twice is None else f"has features of {twice!r} twice"
    if len(query.by) + max(map(len, query.tables), default=0) > MOST_AXES:
        return f"has a table of more than {MOST_AXES} columns"
    some = [cells for cells in query.cells if cells.partial]
    alone = not query.by and all(len(table) == 1 for table in query.tables if any(axis.partial for axis in table))
    if some and not (alone and all(cells.counts_values for cells in some) and _twice(some) is None):
        return "has a table of some cells of a column which are no single values of a number, each once"
    twice = next((name for axes in query.tables if (name := _twice((*query.by, *axes)))), None)
    return None if twice is None else f"has a table in which {twice!r} stands twice"


def _twice(axes: Iterable[Cells]) -> str | None:
    """A column that several axes are of; None without."""
    columns: set[str] = set()
    for axis in axes:
        if axis.column in columns:
            return axis.column
        columns |= {axis.column} - {ALL_ROWS}
    return None


def are_too_large(values: np.ndarray) -> bool:
    """Whether one of some numbers is above `LARGEST` or below its negative, infinite or missing."""
    if values.dtype.kind != "f":
        return False
    most = values.dtype.type(min(LARGEST, float(np.finfo(values.dtype).max)))
    return not bool((np.abs(values) <= most).all())


@dataclass(frozen=True, slots=True)
class Measurement:
    """One noisy statistic.

    Attributes:
        name: what was measured.
        value: noisy value.
        noise_std: standard deviation of the Gaussian noise of each entry, in the value's units.
        symmetric: the last two axes are a symmetric matrix; off its diagonal the noise is noise_std/√2.
        origin: the stage of the certificate that paid for it, with its public bound and grid; None of what is no direct
            output of one event of all records.
        query: the sum over records that it is a noisy value of; None of what is no function of columns' cells.
    """

    name: str
    value: np.ndarray
    noise_std: float
    symmetric: bool = False
    origin: Origin | None = None
    query: Query | None = None

    def fault(self, kinds: Mapping[str, object], weight: str = "") -> str | None:
        """The fault of its query for its value, for columns of these kinds or their weight; None without."""
        if self.query is None:
            return None
        if fault := query_fault(self.query, kinds, weight):
            return fault
        if self.value.shape != self.query.shape:
            return f"has a value of shape {self.value.shape} where its query has {self.query.shape}"
        if isinstance(self.query, MomentQuery) != self.symmetric:
            return "is symmetric where its query is not, or its query is where it is not"
        return None
