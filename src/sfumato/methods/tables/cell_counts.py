"""Counts of every column's runs of cells, cells, single values and their endings, measured with one Gaussian release.

Proof: docs/proofs/cell_counts.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sfumato.columns.kinds import NumericKind, TabularKind
from sfumato.maths.constants import SIZES
from sfumato.measurements.cells import BaseCells, Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.mechanisms.queries import Noisy
from sfumato.mechanisms.statistics import Counts
from sfumato.methods.tables.atoms import NoisyValues, endings_of, n_endings
from sfumato.records.engine import Rows
from sfumato.schema.grid import ColumnGrid, Grid

RUN_STEP, CELL_STEP, VALUE_STEP, ENDING_STEP = 27 / 32, 17 / 32, 10 / 32, 6 / 32
"""What a record adds to a run, a cell, a value and an ending. Exact in binary, as are sums of their squares, so that
norms are what they are said to be."""


def value_squares(kinds: Iterable[TabularKind]) -> float:
    """Return s² + l e² for each of some columns of numbers, of l lists of endings, whose values are counted."""
    endings = [n_endings(kind) for kind in kinds if isinstance(kind, NumericKind)]
    return len(endings) * VALUE_STEP**2 + sum(endings) * ENDING_STEP**2


def counted_values(columns: Iterable[tuple[TabularKind, int]]) -> Iterator[bool]:
    """Yield of which columns, of so many cells, single values are counted: of more values, as many as memory has."""
    left = SIZES.all_values
    for kind, cells in columns:
        size = kind.steps.last + 1 if isinstance(kind, NumericKind) else 0
        counted = cells < size <= min(SIZES.most_values, left)
        left -= size * counted
        yield counted


def counting(statistic: object) -> dict[str, Any]:
    """Return how a statistic's records count, as queries have it: by the weight in a column, by `Sharing`, or once."""
    weight, sharing = getattr(statistic, "column", ""), getattr(statistic, "sharing", None)
    by_weight = {"weight": weight} if weight else {}
    return by_weight if sharing is None else {"whole_rows": sharing.full, **by_weight}


@dataclass(frozen=True)
class CellCounts(Counts):
    """How many records lie in each run of cells of every column, and in each cell; runs by class of a column.

    Of numbers of more values than cells, as far as `counted_values`, also at each value, and with each ending.

    One record adds a = 27/32 to one run, or (class, run), of each column but that of the classes, b = 17/32 to one
    cell of each of the c columns, and of v of them s = 10/32 to one value and e = 6/32 to one ending of each list, of
    which these columns have l in all: a vector of norm √(c(a² + b²) + v s² + l e²), less a² by class. Two records are
    at most √2 times that apart, as no entry is negative; so are two units, whose norms are as many times as large as
    they have records. One `Gaussian` event for all of it.

    Value: a times all columns' runs side by side, class after class, b times all columns' cells, s times values, e
    times endings, one vector.

    Attributes:
        grid: the columns.
        by: place of the column by whose cells runs are counted; None for none.
    """

    least: ClassVar[float] = 1.0  # records: below it nothing is told
    shift: ClassVar[int] = 0  # bits by which whole numbers are finer than records

    grid: Grid
    by: int | None = None
    name: str = "counts of runs and cells"

    def __getstate__(self) -> dict[str, Any]:
        """What is not looked up: arrays as long as all values need not travel."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def squares(self) -> float:
        """c(a² + b²) + v s² + l e², of c columns, v of which have values counted; of that of the classes b² alone."""
        values = value_squares(self.grid.columns[j].kind for j in self.valued)
        return len(self._counted) * RUN_STEP**2 + len(self.grid.columns) * CELL_STEP**2 + values

    @property
    def _counted(self) -> list[int]:
        """Places of the columns whose runs are counted."""
        return [j for j in range(len(self.grid.columns)) if j != self.by]

    @cached_property
    def valued(self) -> list[int]:
        """Places of the columns whose single values are counted."""
        columns = [(column.kind, column.n_cells - column.kind.nullable) for column in self.grid.columns]
        return [j for j, of in enumerate(counted_values(columns)) if of]

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

    @cached_property
    def value_query(self) -> MarginalQuery:
        """The single values of columns that have them counted, one column after the other."""
        columns = (self.grid.columns[j].whole() for j in self.valued)
        return MarginalQuery(tuple((Cells.of(column),) for column in columns), **self.how_counted)

    @cached_property
    def ending_query(self) -> MarginalQuery:
        """The endings of these columns' values, one list after the other."""
        tables = []
        for column in (self.grid.columns[j].whole() for j in self.valued):
            for own in endings_of(column.kind):  # type: ignore[arg-type] - of numbers
                groups = np.append(own, own.max() + 1) if column.kind.nullable else own
                tables.append((Cells.of(column, groups),))
        return MarginalQuery(tuple(tables), **self.how_counted)

    @cached_property
    def _queries(self) -> tuple[MarginalQuery, ...]:
        return self.run_query, self.cell_query, self.value_query, self.ending_query

    @property
    def how_counted(self) -> dict[str, Any]:
        """How a record counts, where that is not once: see `counting`."""
        return counting(self)

    @property
    def step(self) -> np.ndarray:
        """What 1 is worth: a in a run, b in a cell, s at a value, e with an ending, times 2^-shift."""
        return self._each * 2.0**-self.shift

    @cached_property
    def _each(self) -> np.ndarray:
        """What a record adds to each entry, a, b, s or e."""
        steps = (RUN_STEP, CELL_STEP, VALUE_STEP, ENDING_STEP)
        sizes = (math.prod(query.shape) for query in self._queries)
        return np.concatenate([np.full(size, step) for size, step in zip(sizes, steps, strict=True)])

    def zero(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros(self._each.size)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        self.add_weighted(total, rows, None)

    def add_weighted(self, total: np.ndarray, rows: Rows, weights: np.ndarray | None) -> None:
        """Count some records, each so many times, shape (n,); None is once."""
        base = BaseCells(rows)
        for query, part in zip(self._queries, self._parts(total), strict=True):
            query.add(part, base, weights)

    @cached_property
    def ends(self) -> np.ndarray:
        """Where the counts of runs end in a value, those of cells and those of single values."""
        return np.cumsum([math.prod(query.shape) for query in self._queries[:-1]])

    def _parts(self, value: np.ndarray) -> list[np.ndarray]:
        """The counts of runs, of cells, of values and of endings in a value, not copied."""
        runs, *others = np.split(value, self.ends)
        return [runs.reshape(self.run_query.shape), *others]

    def values(self, noisy: Noisy) -> dict[int, NoisyValues]:
        """Return the counts of single values and of endings in records, by the place of their column."""
        if not self.valued:
            return {}
        *_, values, endings = self._parts(noisy.value / self._each)
        stds, split = (noisy.noise_std / VALUE_STEP, noisy.noise_std / ENDING_STEP), {}
        lists = iter(self.ending_query.split(endings))
        for j, counts in zip(self.valued, self.value_query.split(values), strict=True):
            kind = self.grid.columns[j].kind
            last = -1 if kind.nullable else None  # that of missing
            own = [next(lists)[:last] for _ in range(n_endings(kind))]  # type: ignore[arg-type] - of numbers
            split[j] = NoisyValues(counts[:last], stds[0], own, stds[1])
        return split

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
    """Return the run of each cell, shape (c,): of numbers even ones, what is alone or missing apart; a label is one."""
    if not column.numeric:
        return np.arange(column.n_cells)
    ordered = column.n_cells - column.kind.nullable
    marks = np.arange(ordered) * min(most, ordered) // ordered
    starts = np.diff(marks, prepend=-1) > 0
    for cell in column.alone:
        starts[cell : cell + 2] = True
    runs = np.cumsum(starts) - 1
    return np.append(runs, runs[-1] + 1) if column.kind.nullable else runs
