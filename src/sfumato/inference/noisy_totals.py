"""What a release measured with noise: totals, tables of counts, second moments of features, and scores.

A table summed over some of its axes is a noisy table of the others; tables of the same cells from several queries are
one, weighted by the inverse of their noise variances.

Free: uses released values only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.inference.formulas import ReadFormula, read_formula
from sfumato.maths.arrays import Functions, dense, sparse_indicators
from sfumato.measurements.cells import ALL_ROWS, BaseCells, Cells, joint_cells
from sfumato.measurements.queries import MarginalQuery, Measurement, MomentQuery
from sfumato.measurements.score_query import ONE, Link, ScoreQuery
from sfumato.schema.named_questions import mean_formula

FEWEST_ROWS = 3
"""Of the model, that a function is not 0 in: of others it says nothing."""
LEAST_SEEN = 4.0
"""Deviations of its error that the size of a group has to be above 0."""
MOST_APART = 100
"""Labels of a column that are all told apart. Of more those that noise hides are one, and all after the commonest."""
_MOST_CELLS = 400  # of a table with such a column, that are told apart
_LEAST_HEARD = 0.1  # of the variance of noise
LINKS: Mapping[str, Link] = {"ols": "identity", "logit": "logit", "poisson": "log"}
"""Of the regressions that can be named before a fit."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Noisy totals of functions of a record.

    Attributes:
        functions: of the model's rows, shape (N, p).
        totals: noisy, over all records, shape (p,).
        variances: of their independent noise, shape (p,).
    """

    functions: Functions
    totals: np.ndarray
    variances: np.ndarray

    @classmethod
    def joined(cls, parts: list[Totals], most: float = math.inf) -> Totals:
        """Several together; of more than `most` only entries that are not 0, those with fewest first."""
        totals, variances = (np.concatenate([getattr(part, of) for part in parts]) for of in ("totals", "variances"))
        if totals.size > most:
            functions: Any = sparse.hstack([part.functions for part in parts], format="csc")
            return cls(functions, totals, variances)._some(np.argsort(np.diff(functions.indptr), kind="stable"))
        return cls(np.concatenate([dense(part.functions) for part in parts], axis=1), totals, variances)

    def with_rows(self) -> Totals:
        """Those whose functions are not 0 in `FEWEST_ROWS` rows: of the others the model says that there are none."""
        chosen = (self.functions != 0).sum(axis=0) >= FEWEST_ROWS
        return self if chosen.all() else self._some(chosen)

    def above_noise(self, off: float) -> Totals:
        """Those that noise does not hide, where totals are off by so many of the functions' standard deviations."""
        return self._some(off**2 * self.functions.var(axis=0) > _LEAST_HEARD * self.variances)

    def _some(self, chosen: np.ndarray) -> Totals:
        return Totals(self.functions[:, chosen], self.totals[chosen], self.variances[chosen])


@dataclass(frozen=True, slots=True)
class RowWeights:
    """Weights of records, for the errors of drawing them.

    Attributes:
        each: weight of a record like each of the model's rows, shape (N,). Rows are drawn by the weighted law, so the
            mean of a function times `each` is Σ w²·function ÷ Σ w of the records.
        records: the public number of records.
        fixed: whether the weights' sum is public, and no sample changes it.
    """

    each: np.ndarray
    records: float
    fixed: bool


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Sums over the rows of each unit.

    Attributes:
        owners: the unit of each row, from 0, shape (N,).
        units: how many units there are.
    """

    owners: np.ndarray
    units: int

    @cached_property
    def _rows(self) -> sparse.csr_matrix:
        n = self.owners.size
        return sparse.csr_matrix((np.ones(n), (self.owners, np.arange(n))), shape=(self.units, n))

    def of(self, functions: Functions) -> np.ndarray:
        """Functions of the rows added up, shape (units, k), of shape (N, k)."""
        return dense(self._rows @ functions)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values of units at each of their rows, shape (N,)."""
        return values[self.owners]


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Noisy sums of the products of two features.

    Attributes:
        query: of the pooled sum.
        pooled: over all records, shape (d, d).
        variance: of its noise on the diagonal; half of it off the diagonal.
        by_class: the same of some features by the cells of a column; None without.
    """

    query: MomentQuery
    pooled: np.ndarray
    variance: float
    by_class: Products | None = None

    @classmethod
    def of(cls, measurements: Iterable[Measurement], weight: str = "") -> Products | None:
        """The first pooled sum among measurements, and the first by class; None without.

        Args:
            measurements: of a table.
            weight: the column by which the table's rows count: other sums are left out; "" where each counts once.
        """
        moments = ((m, m.query) for m in measurements if isinstance(m.query, MomentQuery))
        queries = [(m, query) for m, query in moments if not query.together and query.weight == weight]
        first = next(((m, query) for m, query in queries if not query.by), None)
        if first is None:
            return None
        pooled, query = first
        own = next((cls(q, m.value, m.noise_std**2) for m, q in queries if q.by), None)
        return cls(query, pooled.value, pooled.noise_std**2, own)

    @property
    def columns(self) -> dict[str, int]:
        """The place of each column's features."""
        return {entries.cells.column: j for j, entries in enumerate(self.query.features)}

    @property
    def features(self) -> dict[str, int]:
        """The places of `columns` without the entry that all rows have."""
        return {name: place for name, place in self.columns.items() if name != ALL_ROWS}

    @property
    def constant(self) -> int | None:
        """The place of the entry that all rows have; None where there is none."""
        return self.columns.get(ALL_ROWS)

    @property
    def ends(self) -> np.ndarray:
        """Where the entries of each column begin, and the last end."""
        return np.cumsum([0, *(entries.whole.shape[1] for entries in self.query.features)])

    def width(self, place: int) -> int:
        """Number of entries of a column."""
        return self.query.features[place].whole.shape[1]

    def vectors(self, place: int) -> np.ndarray:
        """CellEntries of each cell of a column, as they are summed, shape (cells, q)."""
        return self.query.features[place].whole * self.query.unit

    def clipping(self, base: BaseCells) -> np.ndarray:
        """By how much clipping weighs each row down, shape (N,)."""
        u = self.query.clipping([base.of(entries.cells) for entries in self.query.features])
        return u * 2.0**-self.query.bits.weights


@dataclass(frozen=True, slots=True)
class Scores:
    """Noisy sums of turned, clipped scores of regressions.

    Attributes:
        measurement: of a `ScoreQuery`.
    """

    measurement: Measurement

    @property
    def query(self) -> ScoreQuery:
        """The scores."""
        query = self.measurement.query
        assert isinstance(query, ScoreQuery)
        return query

    def of_columns(self, columns: Collection[str]) -> bool:
        """Whether one of the regressions is of some of these columns, and no others."""
        return any(equation.columns <= set(columns) for equation in self.query.equations)

    def of_regression(self, read: ReadFormula, family: str) -> bool:
        """Whether this regression is one of theirs: the same left side, terms and family."""
        return any(
            equation.link == LINKS.get(family)
            and equation.columns == set(read.columns)
            and read_formula(equation.formula, read.columns).terms == read.terms
            for equation in self.query.equations
        )

    def of_mean(self, name: str, by: Sequence[str]) -> bool:
        """Whether they are of the mean of a column in each group of others."""
        if not any(equation.columns == {name, *by} for equation in self.query.equations):
            return False
        return self.of_regression(read_formula(mean_formula(name, by), (name, *by)), "ols")

    def totals(self, base: BaseCells) -> Totals:
        """The scores of a model's rows, and their noisy sums."""
        measurement = self.measurement
        variances = np.full(measurement.value.size, measurement.noise_std**2)
        return Totals(self.query.scores(base) / ONE, measurement.value, variances)


@dataclass(frozen=True, slots=True, eq=False)
class CountTable:
    """Noisy numbers of records in the cells of some columns.

    Attributes:
        axes: cells of the columns, by their names.
        value: shape (sizes of the axes …).
        variance: of each entry's independent noise.
    """

    axes: tuple[Cells, ...]
    value: np.ndarray
    variance: float

    @classmethod
    def all_of(cls, measurement: Measurement, weight: str = "") -> list[CountTable]:
        """The tables of a measurement; none of what counts no cells, or rows otherwise than the table's rows count.

        Args:
            measurement: of any query.
            weight: the column by which the table's rows count; "" where each counts once.
        """
        query = measurement.query
        if not isinstance(query, MarginalQuery) or query.norm is not None or query.weight != weight:
            return []
        tables = zip(query.tables, query.split(measurement.value), strict=True)
        whole = [cls((*query.by, *axes), value, measurement.noise_std**2) for axes, value in tables]
        return [table.over(table.columns) for table in whole]

    @property
    def partial(self) -> bool:
        """Whether it counts some cells of one column alone: then its sum is no number of rows."""
        return any(axis.partial for axis in self.axes)

    @property
    def columns(self) -> frozenset[str]:
        """The columns whose cells are told apart."""
        return frozenset(axis.column for axis in self.axes) - {ALL_ROWS}

    def over(self, columns: Collection[str]) -> CountTable:
        """The table of those of its columns that are named, summed over the others."""
        axes = sorted((i for i, a in enumerate(self.axes) if a.column in columns), key=lambda i: self.axes[i].column)
        summed = [i for i in range(len(self.axes)) if i not in axes]
        terms = float(math.prod(self.axes[i].size for i in summed))
        value = self.value.transpose([*axes, *summed]).reshape(*(self.axes[i].size for i in axes), -1).sum(axis=-1)
        return CountTable(tuple(self.axes[i] for i in axes), value, self.variance * terms)

    def totals(self, base: BaseCells, n_rows: int, most: int | None = None) -> Totals:
        """The cells' indicators on a model's rows, but of cells with hardly a row, and their counts.

        Of more cells than `most`, only those with most rows. Where a column has so many labels that they are not all
        told apart, neither are the cells: those that noise hides are one function.
        """
        place = np.zeros(n_rows, dtype=np.int64)
        if self.axes:
            place = joint_cells(self.axes, [base.of(axis) for axis in self.axes])
        place = np.where(place < 0, self.value.size, place)
        rows, value = np.bincount(place, minlength=self.value.size)[: self.value.size], self.value.reshape(-1)
        cells = np.flatnonzero(rows >= FEWEST_ROWS)
        many = any(axis.edges is None and axis.size > MOST_APART for axis in self.axes)
        if many:
            cells = seen(cells, value, self.variance, rows)
            most = min(len(self.axes) * MOST_APART, _MOST_CELLS) if most is None else most
        if most is not None and cells.size > most:
            cells = np.sort(cells[np.argsort(-rows[cells], kind="stable")[:most]])
        functions, variances = sparse_indicators(place, cells), np.full(cells.size, self.variance)
        if not many:
            return Totals(functions, value[cells], variances)
        rest, left = 1.0 - functions.sum(axis=1), self.variance * (value.size - cells.size)
        total = value.sum() - value[cells].sum()
        functions = sparse.hstack([functions, rest[:, None]], format="csc")
        return Totals(functions, np.append(value[cells], total), np.append(variances, left))


def seen(cells: np.ndarray, counts: np.ndarray, variance: float, rows: np.ndarray) -> np.ndarray:
    """Return the cells, of some, whose noisy count stands out of noise; without any, the commonest of the model."""
    stand_out = cells[counts[cells] > LEAST_SEEN * math.sqrt(variance)]
    return stand_out if stand_out.size else cells[np.argsort(-rows[cells], kind="stable")[:1]]


def pool_tables(tables: Iterable[CountTable]) -> list[CountTable]:
    """The tables with those of the same cells put together."""
    groups: dict[tuple[tuple[str, int], ...], list[list[CountTable]]] = {}
    for table in tables:
        alike = groups.setdefault(tuple((axis.column, axis.size) for axis in table.axes), [])
        same = next((group for group in alike if all(map(Cells.same, group[0].axes, table.axes))), None)
        alike.append([table]) if same is None else same.append(table)
    return [_average(group) for alike in groups.values() for group in alike]


def _average(tables: Sequence[CountTable]) -> CountTable:
    exact = [table for table in tables if not table.variance]
    if exact or len(tables) == 1:
        return (exact or tables)[0]
    precisions = [1 / table.variance for table in tables]
    value = sum(table.value * (part / sum(precisions)) for table, part in zip(tables, precisions, strict=True))
    return CountTable(tables[0].axes, np.asarray(value), 1 / sum(precisions))


def tables_of(tables: Iterable[CountTable], columns: Collection[str]) -> list[CountTable]:
    """The tables of these columns: of one column at its finest and its coarsest cells, of several at the coarsest."""
    brought = pool_tables(table.over(columns) for table in tables)
    coarse = coarsest(brought)
    if len(columns) != 1 or not brought:
        return coarse
    finest = max(brought, key=lambda table: (len(table.axes), table.value.size, -table.variance))
    return coarse if any(table is finest for table in coarse) else [finest, *coarse]


def coarsest(tables: Collection[CountTable]) -> list[CountTable]:
    """Of the tables of the same columns the one with the fewest cells, and of several such that of the least noise."""
    least: dict[frozenset[str], CountTable] = {}
    for table in tables:
        other = least.setdefault(table.columns, table)
        if (table.value.size, table.variance) < (other.value.size, other.variance):
            least[table.columns] = table
    return list(least.values())
