"""Noisy tables of counts that a release measured, brought to the columns that a question asks of.

A table summed over some of its axes is a noisy table of the others; tables of the same cells from several queries are
one, weighted by the inverse of their noise variances.

Free: uses released values only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.inference.totals import FEWEST_ROWS, Totals
from sfumato.measurements.cells import ALL_ROWS, BaseCells, Cells, joint_cells
from sfumato.measurements.measurement import Measurement
from sfumato.measurements.queries import MarginalQuery


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
        if not isinstance(query, MarginalQuery) or query.whole_rows or query.weight != weight:
            return []
        tables = zip(query.tables, query.split(measurement.value), strict=True)
        whole = [cls((*query.by, *axes), value, measurement.noise_std**2) for axes, value in tables]
        return [table.over(table.columns) for table in whole]

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

    def same_cells(self, other: CountTable) -> bool:
        """Whether both count the same cells."""
        return len(self.axes) == len(other.axes) and all(map(Cells.same, self.axes, other.axes))

    def totals(self, base: BaseCells, n_rows: int) -> Totals:
        """The cells' indicators on a model's rows, but of cells with hardly a row, and their counts."""
        place = np.zeros(n_rows, dtype=np.int64)
        if self.axes:
            place = joint_cells(self.axes, [base.of(axis) for axis in self.axes])
        cells = np.flatnonzero(np.bincount(place, minlength=self.value.size) >= FEWEST_ROWS)
        functions = (place[:, None] == cells).astype(np.float64)
        return Totals(functions, self.value.reshape(-1)[cells], np.full(cells.size, self.variance))


def pool_tables(tables: Iterable[CountTable]) -> list[CountTable]:
    """The tables with those of the same cells put together."""
    groups: dict[tuple[tuple[str, int], ...], list[list[CountTable]]] = {}
    for table in tables:
        alike = groups.setdefault(tuple((axis.column, axis.size) for axis in table.axes), [])
        same = next((group for group in alike if group[0].same_cells(table)), None)
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
