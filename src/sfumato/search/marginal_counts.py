"""Counts of records in the cells of single columns, or of pairs of columns: what criteria of acceptance compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from sfumato.errors import ConfigError
from sfumato.mechanisms.statistics import Counts
from sfumato.records.engine import Rows
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.schema import Schema

PAIR_CELLS = 8
_NUMERIC_CELLS = {1: 16, 2: PAIR_CELLS}  # by the columns of a table
_MOST_LEVELS = 16  # of pairs
_MOST_CELLS = 1 << 21


@dataclass(frozen=True)
class MarginalLayout:
    """Tables of cells of one or two columns each. Follows from the schema and the criterion alone.

    Attributes:
        columns: cells of the columns that count.
        tables: which columns each table is of, by place.
    """

    columns: tuple[ColumnGrid, ...]
    tables: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str], *, ways: int) -> MarginalLayout:
        """Lay out all tables of one column, or of two, among those named; none named means all.

        Single columns have 16 cells where they are numeric, and all their levels. Pairs have the coarse cells of a
        search's score.

        Raises:
            ConfigError: the tables have too many cells together, or there is none.
        """
        every = Grid.of(schema, numeric_cells=_NUMERIC_CELLS[ways]).columns
        columns = tuple(column for column in every if not names or column.name in names)
        layout = cls(columns, tuple(combinations(range(len(columns)), ways)))
        if not layout.tables:
            raise ConfigError("Expected two columns at least for a criterion of pairs, got one.")
        if layout.starts[-1] > _MOST_CELLS:
            raise ConfigError(
                f"Expected a criterion whose tables have {_MOST_CELLS} cells at most together, got more. Name columns."
            )
        return layout

    def size(self, j: int, ways: int) -> int:
        """Return into how many cells a column is cut in a table of so many columns."""
        return self.columns[j].n_cells if ways == 1 else coarse_size(self.columns[j])

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each table begins in the flat vector, and its end, shape (tables + 1,)."""
        sizes = [math.prod(self.size(j, len(table)) for j in table) for table in self.tables]
        return np.cumsum([0, *sizes])

    def count(self, total: np.ndarray, rows: Rows, weights: np.ndarray | None = None) -> None:
        """Add the counts of some coded records to `total`, shape (cells,); each so many times, shape (n,), or once."""
        ways = len(self.tables[0])
        cells = [column.cells(rows[column.name]) for column in self.columns]
        if ways > 1:
            cells = [coarse(column, codes) for column, codes in zip(self.columns, cells, strict=True)]
        for table, start, end in zip(self.tables, self.starts, self.starts[1:], strict=False):
            flat = np.zeros(len(cells[0]), dtype=np.int64)
            for j in table:
                flat = flat * self.size(j, ways) + cells[j]
            total[start:end] += np.bincount(flat, weights, minlength=end - start)


@dataclass(frozen=True)
class MarginalCounts(Counts):
    """For every table of a layout, how many records lie in each cell.

    One record adds a single 1 to each of the t tables: norm √t. Two records are at most √(2t) apart. Value: all tables
    as one vector.
    """

    layout: MarginalLayout
    name: str = "counts of cells"
    step: float = 1.0

    @property
    def squares(self) -> float:
        """The number of tables."""
        return len(self.layout.tables)

    def zero(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros(self.layout.starts[-1])

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        self.layout.count(total, rows)


def coarse_size(column: ColumnGrid) -> int:
    """Return the number of coarse cells of a column."""
    return column.n_cells if column.numeric else min(column.n_cells, _MOST_LEVELS)


def coarse(column: ColumnGrid, cells: np.ndarray) -> np.ndarray:
    """Merge levels beyond the most into even runs, in the schema's order."""
    return cells if coarse_size(column) == column.n_cells else cells * _MOST_LEVELS // column.n_cells
