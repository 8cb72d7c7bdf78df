"""Class-conditional tables of every column, bought with one Gaussian release.

Every column's cells are counted within every class. From the counts, for free: class shares, marginals, and which cells
form a group. Proof: docs/proofs/class_cell_counts.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.maths.gaussian import project_to_simplex, shrinkage_weight
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.mechanisms.queries import Noisy
from sfumato.mechanisms.statistics import QueryCounts
from sfumato.records.engine import Rows
from sfumato.schema.grid import ColumnGrid, Grid


@dataclass(frozen=True)
class TableLayout:
    """Which columns of a grid are modelled, and which one is the class.

    Attributes:
        grid: cells of all released columns.
        target: index of the class column; None for one class.
    """

    grid: Grid
    target: int | None

    @cached_property
    def features(self) -> tuple[ColumnGrid, ...]:
        """The columns other than the target."""
        return tuple(c for j, c in enumerate(self.grid.columns) if j != self.target)

    @property
    def n_classes(self) -> int:
        """Number of classes: the target's cells, or 1."""
        return 1 if self.target is None else self.grid.columns[self.target].n_cells

    @cached_property
    def class_cells(self) -> Cells:
        """The target's cells, or the one of all rows."""
        return Cells.all_rows() if self.target is None else Cells.of(self.grid.columns[self.target])

    def classes(self, rows: Rows) -> np.ndarray:
        """Return the class of each coded row, shape (n,)."""
        return self.class_cells.base_cells(rows)


def class_cell_counts(layout: TableLayout) -> QueryCounts:
    """For every column, how many records lie in each (class, cell).

    Value: shape (classes, sum of the columns' cells), columns side by side.
    """
    query = MarginalQuery(tuple((Cells.of(column),) for column in layout.features), (layout.class_cells,))
    return QueryCounts(query, "counts of cells by class")


@dataclass(frozen=True)
class Marginals:
    """What the first release says.

    Attributes:
        class_counts: noisy numbers of records per class, floored above 0, shape (k,).
        tables: per column, P(cell | class), shape (k, cells).
    """

    class_counts: np.ndarray
    tables: tuple[np.ndarray, ...]

    @property
    def class_shares(self) -> np.ndarray:
        """Shares of the classes, shape (k,)."""
        return self.class_counts / self.class_counts.sum()

    def pooled(self, j: int) -> np.ndarray:
        """Return P(cell) of column j."""
        return self.class_shares @ self.tables[j]


def fit_marginals(noisy: Noisy, columns: Sequence[ColumnGrid]) -> Marginals:
    """Turn noisy counts into class counts and conditional probabilities. Free: uses released values only.

    Every column's table sums to the class counts; the sums are averaged with weights 1/cells, the inverse of their
    variances. Columns of one kind are drawn together as far as their differences are noise. Each class's probabilities
    are shrunk toward the pooled ones by the share of noise in their difference, then projected to the simplex.
    """
    tables = _drawn_together(noisy, columns)
    weights = np.array([1 / column.n_cells for column in columns])
    counts = np.average([table.sum(axis=1) for table in tables], axis=0, weights=weights)
    count_std = noisy.noise_std / np.sqrt(weights.sum())
    # a class below its own noise is kept, at a count that its noise could have hidden
    counts = np.maximum(counts, max(1.0, count_std))
    return Marginals(counts, tuple(_conditional(table, counts, noisy.noise_std) for table in tables))


def _drawn_together(noisy: Noisy, columns: Sequence[ColumnGrid]) -> list[np.ndarray]:
    """Return every column's counts, pooled ones shrunk toward the mean of the columns of the same kind.

    By the share of noise in all differences of the kind's columns: 178 readings of one instrument share their noise,
    28 components with a shape each are left alone. Classes have the same noise, so each takes an even part of what
    the pooled counts move by.
    """
    ends = np.cumsum([column.n_cells for column in columns])
    tables = np.split(noisy.value.copy(), ends[:-1], axis=1)
    alike: dict[object, list[int]] = {}
    for j, column in enumerate(columns):
        alike.setdefault(column.kind, []).append(j)
    for places in alike.values():
        pooled = np.stack([tables[j].sum(axis=0) for j in places])
        differences = pooled - pooled.mean(axis=0)
        n_classes, noise_terms = noisy.value.shape[0], (len(places) - 1) * pooled.shape[1]
        weight = shrinkage_weight(float((differences**2).sum()), noise_terms * n_classes * noisy.noise_std**2)
        for j, difference in zip(places, differences, strict=True):
            tables[j] -= (1 - weight) * difference / n_classes
    return tables


def _conditional(table: np.ndarray, counts: np.ndarray, noise_std: float) -> np.ndarray:
    total = counts.sum()
    pooled = project_to_simplex(table.sum(axis=0), total) / total
    result = np.empty_like(table)
    for k, count in enumerate(counts):
        difference = table[k] / count - pooled
        noise_energy = table.shape[1] * (noise_std / count) ** 2
        weight = shrinkage_weight(float(difference @ difference), noise_energy)
        result[k] = project_to_simplex(pooled + weight * difference, 1.0)
        result[k] /= result[k].sum()
    return result
