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
SQUARES = RUN_STEP**2 + CELL_STEP**2


@dataclass(frozen=True)
class TwoResolutionCounts(Counts):
    """For every column, how many records lie in each run of cells, and in each cell.

    One record adds a = 27/32 to one run and b = 17/32 to one cell of each of the c columns, which has norm
    √(c(a² + b²)). Two records are at most √2 times that apart, as no entry is negative; so are two units, whose norms
    are as many times as large as they have records. One `Gaussian` event for all of it.

    Value: a times all columns' runs, then b times all columns' cells, one vector.
    """

    least: ClassVar[float] = 1.0  # records: below it nothing is told

    grid: Grid
    name: str = "counts of runs and cells"

    @property
    def squares(self) -> float:
        """c(a² + b²), of c columns."""
        return len(self.grid.columns) * SQUARES

    @cached_property
    def runs(self) -> tuple[np.ndarray, ...]:
        """The run of each cell of each column."""
        return tuple(public_runs(column) for column in self.grid.columns)

    @cached_property
    def run_query(self) -> MarginalQuery:
        """The runs of all columns, one after the other."""
        axes = tuple((Cells.of(c, runs),) for c, runs in zip(self.grid.columns, self.runs, strict=True))
        return MarginalQuery(axes, **self.how_counted)

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
        """What 1 is worth: a in a run, b in a cell."""
        runs, cells = (math.prod(query.shape) for query in (self.run_query, self.cell_query))
        return np.concatenate([np.full(runs, RUN_STEP), np.full(cells, CELL_STEP)])

    def zero(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros(self.step.size)

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

    def split(self, value: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return each column's counts of runs and of cells in records, without the weights."""
        runs, cells = self._parts(value / self.step)
        return self.run_query.split(runs), self.cell_query.split(cells)


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
