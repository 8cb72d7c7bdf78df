"""Counts of every column's runs of cells, cells, single values and their endings, measured with one Gaussian release.

Proof: docs/proofs/cell_counts.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
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
from sfumato.methods.tables.nested import sums_of
from sfumato.records.engine import Rows
from sfumato.schema.grid import ColumnGrid, Grid

RUN_STEP, CELL_STEP, VALUE_STEP, ENDING_STEP, PAIR_STEP = 27 / 32, 17 / 32, 10 / 32, 6 / 32, 54 / 32
"""What a record adds to a run, a cell, a value, an ending and a pair. Exact in binary, as are sums of their squares, so
that norms are what they are said to be."""


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
    """Return how a statistic's records count, as queries have it: by the weight in a column, or once."""
    weight = getattr(statistic, "column", "")
    return {"weight": weight} if weight else {}


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
    times endings, p times pairs, one vector.

    Attributes:
        grid: the columns.
        by: place of the column by whose cells runs are counted; None for none.
        pairs: places of two columns whose cells are counted together, p = 54/32 to one of each: p² more in the square.
            The first one is counted so alone; of pairs of labels, the first label of these again, p² more.
        known: P(cell) of columns that are not counted, by their places.
        alike: of others, the place of a column with the same cells that is taken for it.
    """

    least: ClassVar[float] = 1.0  # records: below it nothing is told
    shift: ClassVar[int] = 0  # bits by which whole numbers are finer than records

    grid: Grid
    by: int | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    known: Mapping[int, np.ndarray] = field(default_factory=dict)
    alike: Mapping[int, int] = field(default_factory=dict)
    name: str = "counts of runs and cells"

    def __getstate__(self) -> dict[str, Any]:
        """What is not looked up: arrays as long as all values need not travel."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def squares(self) -> float:
        """c(a² + b²) + v s² + l e², of c columns, v of which have values counted; of that of the classes b² alone."""
        values = value_squares(self.grid.columns[j].kind for j in self.valued)
        pairs = (len(self.pairs) + len(self.nested)) * PAIR_STEP**2
        return len(self._counted) * RUN_STEP**2 + len(self.alone) * CELL_STEP**2 + values + pairs

    @cached_property
    def alone(self) -> list[int]:
        """Places of the columns that are counted by themselves."""
        return [j for j in range(len(self.grid.columns)) if j not in {*self.known, *self.alike, *dict(self.pairs)}]

    @property
    def _counted(self) -> list[int]:
        """Places of those whose runs are counted."""
        return [j for j in self.alone if j != self.by]

    @cached_property
    def valued(self) -> list[int]:
        """Places of the columns whose single values are counted."""
        alone = [(j, self.grid.columns[j]) for j in self.alone]
        of = counted_values((column.kind, column.n_cells - column.kind.nullable) for _, column in alone)
        return [j for (j, _), counted in zip(alone, of, strict=True) if counted]

    @cached_property
    def nested(self) -> dict[int, np.ndarray]:
        """Of columns of pairs of labels, the first label of each cell."""
        return {i: own for i, _ in self.pairs if (own := self.grid.columns[i].groups) is not None}

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
        return MarginalQuery(axes, (by,), **self.how_counted([RUN_STEP**2] * len(axes)))

    @cached_property
    def cell_query(self) -> MarginalQuery:
        """The cells of all columns, one after the other."""
        tables = tuple((Cells.of(self.grid.columns[j]),) for j in self.alone)
        squares = [CELL_STEP**2 + (j in self.valued) * VALUE_STEP**2 for j in self.alone]  # values lie within cells
        return MarginalQuery(tables, **self.how_counted(squares))

    @cached_property
    def value_query(self) -> MarginalQuery:
        """The single values of columns that have them counted, one column after the other."""
        tables = tuple((Cells.of(self.grid.columns[j].whole()),) for j in self.valued)
        return MarginalQuery(tables, **self.how_counted([0.0] * len(tables)))

    @cached_property
    def ending_query(self) -> MarginalQuery:
        """The endings of these columns' values, one list after the other."""
        tables = []
        for column in (self.grid.columns[j].whole() for j in self.valued):
            for own in endings_of(column.kind):  # type: ignore[arg-type] - of numbers
                groups = np.append(own, own.max() + 1) if column.kind.nullable else own
                tables.append((Cells.of(column, groups),))
        return MarginalQuery(tuple(tables), **self.how_counted([0.0] * len(tables)))

    @cached_property
    def pair_query(self) -> MarginalQuery:
        """The cells of pairs of columns, one pair after the other."""
        every = [(i, None, j) for i, j in self.pairs] + [
            (i, self.nested[i], j) for i, j in self.pairs if i in self.nested
        ]
        tables = tuple((Cells.of(self.grid.columns[i], own), Cells.of(self.grid.columns[j])) for i, own, j in every)
        return MarginalQuery(tables, **self.how_counted([PAIR_STEP**2] * len(tables)))

    @cached_property
    def _queries(self) -> tuple[MarginalQuery, ...]:
        return self.run_query, self.cell_query, self.value_query, self.ending_query, self.pair_query

    def how_counted(self, squares: Sequence[float]) -> dict[str, Any]:
        """How a record counts, where that is not once, by what it adds to each table of a query, squared."""
        del squares
        return counting(self)

    @property
    def step(self) -> np.ndarray:
        """What 1 is worth: a in a run, b in a cell, s at a value, e with an ending, times 2^-shift."""
        return self._each * 2.0**-self.shift

    @cached_property
    def _each(self) -> np.ndarray:
        """What a record adds to each entry, a, b, s, e or p."""
        steps = (RUN_STEP, CELL_STEP, VALUE_STEP, ENDING_STEP, PAIR_STEP)
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
        """Where the counts of runs end in a value, those of cells, of single values and of endings."""
        return np.cumsum([math.prod(query.shape) for query in self._queries[:-1]])

    def _parts(self, value: np.ndarray) -> list[np.ndarray]:
        """The counts of runs, of cells, of values, of endings and of pairs in a value, not copied."""
        runs, *others = np.split(value, self.ends)
        return [runs.reshape(self.run_query.shape), *others]

    def values(self, noisy: Noisy) -> dict[int, NoisyValues]:
        """Return the counts of single values and of endings in records, by the place of their column."""
        if not self.valued:
            return {}
        _, _, values, endings, _ = self._parts(noisy.value / self._each)
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

    def tables_of_pairs(self, value: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
        """Return the counts of pairs in records, by the places of both columns: least squares with those of groups."""
        split = iter(self.pair_query.split(self._parts(value / self._each)[-1]) if self.pairs else [])
        tables = {pair: next(split) for pair in self.pairs}
        for (i, j), table in tables.items():
            if (own := self.nested.get(i)) is not None:
                missed = next(split) - sums_of(table, own)
                tables[i, j] = table + (missed / (1 + np.bincount(own))[:, None])[own]
        return tables

    def deviations(self, noise_std: float) -> np.ndarray:
        """Return the noise of a cell of each column that is not counted alone, 0 of what is known, shape (p,)."""
        stds = np.zeros(len(self.grid.columns))
        for first, second in self.pairs:
            stds[first] = noise_std / PAIR_STEP * np.sqrt(self.grid.columns[second].n_cells)
        return stds

    def split(self, value: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return each column's counts of runs and of cells in records, without the weights, all classes together."""
        tables = self.by_class(value)
        runs = {j: table.sum(axis=0) for j, table in tables.items()}
        if self.by is not None:
            weights = [1 / table.shape[1] for table in tables.values()]
            runs[self.by] = np.average([table.sum(axis=1) for table in tables.values()], axis=0, weights=weights)
        cells = dict(zip(self.alone, self.cell_query.split(self._parts(value / self._each)[1]), strict=True))
        total = np.average([own.sum() for own in runs.values()], weights=[1 / own.size for own in runs.values()])
        others = {i: table.sum(axis=1) for (i, _), table in self.tables_of_pairs(value).items()}
        others |= {j: total * shares for j, shares in self.known.items()}
        others |= {j: cells[i] for j, i in self.alike.items()}
        runs |= {j: np.bincount(self.runs[j], own) for j, own in others.items()}
        cells |= others
        places = range(len(self.grid.columns))
        return [runs[j] for j in places], [cells[j] for j in places]


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
