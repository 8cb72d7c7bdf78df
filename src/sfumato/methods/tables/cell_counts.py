"""Counts of every column's cells at two resolutions, measured with one Gaussian release: runs of cells, and cells.

Proof: docs/proofs/cell_counts.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.maths.constants import SIZES
from sfumato.measurements.cells import BaseCells, Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.mechanisms.statistics import Counts
from sfumato.records.engine import Rows
from sfumato.schema.grid import ColumnGrid, Grid

RUN_STEP, CELL_STEP = 27 / 32, 17 / 32
"""What a record adds to a run, and to a cell: 7 tenths of the squared norm, and 3. Exact in binary, as is the
sum of their squares, so that norms are what they are said to be."""


@dataclass(frozen=True)
class TwoResolutionCounts(Counts):
    """For every column, how many records lie in each run of cells, and in each cell; runs by class of a column.

    One record adds a = 27/32 to one run, or (class, run), of each column but that of the classes, and b = 17/32 to one
    cell of each of the c columns, which has norm √(c(a² + b²)), or √((c − 1)a² + cb²). Two records are at most √2 times
    that apart, as no entry is negative; so are two units, whose norms are as many times as large as they have records.
    One `Gaussian` event for all of it.

    Value: a times all columns' runs side by side, class after class, then b times all columns' cells, one vector.

    Attributes:
        grid: the columns.
        by: place of the column by whose cells runs are counted; None for none.
    """

    least: ClassVar[float] = 1.0  # records: below it nothing is told
    shift: ClassVar[int] = 0  # bits by which whole numbers are finer than records

    grid: Grid
    by: int | None = None
    name: str = "counts of runs and cells"

    @property
    def squares(self) -> float:
        """c(a² + b²), of c columns; of that of the classes b² alone."""
        return len(self._counted) * RUN_STEP**2 + len(self.grid.columns) * CELL_STEP**2

    @property
    def _counted(self) -> list[int]:
        """Places of the columns whose runs are counted."""
        return [j for j in range(len(self.grid.columns)) if j != self.by]

    @property
    def n_classes(self) -> int:
        """How many classes runs are counted by, or 1."""
        return 1 if self.by is None else self.grid.columns[self.by].n_cells

    @cached_property
    def runs(self) -> tuple[np.ndarray, ...]:
        """The run of each cell of each column."""
        return tuple(public_runs(column) for column in self.grid.columns)

    @cached_property
    def run_query(self) -> MarginalQuery:
        """The runs of all columns side by side, by class where they are."""
        axes = tuple((Cells.of(self.grid.columns[j], self.runs[j]),) for j in self._counted)
        by = Cells.all_rows() if self.by is None else Cells.of(self.grid.columns[self.by])
        return MarginalQuery(axes, (by,), **self.how_counted)

    @cached_property
    def cell_query(self) -> MarginalQuery:
        """The cells of all columns, one after the other."""
        return MarginalQuery(tuple((Cells.of(column),) for column in self.grid.columns), **self.how_counted)

    @property
    def how_counted(self) -> dict[str, Any]:
        """How a record counts, where that is not once."""
        return {}

    @property
    def step(self) -> np.ndarray:
        """What 1 is worth: a in a run, b in a cell, times 2^-shift."""
        return self._each * 2.0**-self.shift

    @cached_property
    def _each(self) -> np.ndarray:
        """What a record adds to each entry, a or b."""
        runs, cells = (math.prod(query.shape) for query in (self.run_query, self.cell_query))
        return np.concatenate([np.full(runs, RUN_STEP), np.full(cells, CELL_STEP)])

    def zero(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros(self._each.size)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        self.add_weighted(total, rows, None)

    def add_weighted(self, total: np.ndarray, rows: Rows, weights: np.ndarray | None) -> None:
        """Count some records, each so many times, shape (n,); None is once."""
        base = BaseCells(rows)
        runs, cells = self._parts(total)
        self.run_query.add(runs, base, weights)
        self.cell_query.add(cells, base, weights)

    def _parts(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The counts of runs and of cells in a value, not copied."""
        place = math.prod(self.run_query.shape)
        return value[:place].reshape(self.run_query.shape), value[place:]

    def by_class(self, value: np.ndarray) -> dict[int, np.ndarray]:
        """Return the counts of runs by class, shape (classes, r), of each column but that of the classes, by place."""
        return dict(zip(self._counted, self.run_query.split(self._parts(value / self._each)[0]), strict=True))

    def split(self, value: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return each column's counts of runs and of cells in records, without the weights, all classes together."""
        tables = self.by_class(value)
        runs = {j: table.sum(axis=0) for j, table in tables.items()}
        if self.by is not None:
            weights = [1 / table.shape[1] for table in tables.values()]
            runs[self.by] = np.average([table.sum(axis=1) for table in tables.values()], axis=0, weights=weights)
        cells = self.cell_query.split(self._parts(value / self._each)[1])
        return [runs[j] for j in range(len(self.grid.columns))], cells


def public_runs(column: ColumnGrid, most: int = SIZES.public_runs) -> np.ndarray:
    """Return the run of each cell, shape (c,): even runs of numbers, 0, bounds and missing apart; labels one by one."""
    if not column.numeric:
        return np.arange(column.n_cells)
    ordered = column.n_cells - column.kind.nullable
    marks = np.arange(ordered) * min(most, ordered) // ordered
    starts = np.diff(marks, prepend=-1) > 0
    alone = [] if column.zero is None else [column.zero[0]]
    if column.ends:
        alone += [0, ordered - 1]
    for cell in alone:
        starts[cell : cell + 2] = True
    runs = np.cumsum(starts) - 1
    return np.append(runs, runs[-1] + 1) if column.kind.nullable else runs
