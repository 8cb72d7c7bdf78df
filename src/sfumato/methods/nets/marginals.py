"""Counts of every column's cells, bought with one Gaussian release, and the shares that follow.

Proof: docs/proofs/class_cell_counts.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.maths.gaussian import project_to_simplex, shrinkage_weight
from sfumato.plugins import Cells, ColumnGrid, Grid, MarginalQuery, Noisy, QueryCounts


def cell_counts(grid: Grid) -> QueryCounts:
    """For every column, how many records lie in each cell. Value: shape (1, cells), columns side by side."""
    return QueryCounts(MarginalQuery(tuple((Cells.of(column),) for column in grid.columns), (Cells.all_rows(),)))


def cell_shares(noisy: Noisy, columns: Sequence[ColumnGrid]) -> tuple[np.ndarray, ...]:
    """Shares of every column's cells, of noisy counts. Free: uses released values only.

    Every column's table sums to the number of records; the sums are averaged with weights 1/cells, the inverse of their
    variances. Columns of one kind are drawn together as far as their differences are noise. What a table has beside its
    projection to the simplex is shrunk by the share of noise in it, and projected again.
    """
    tables = _drawn_together(noisy, columns)
    weights = np.array([1 / column.n_cells for column in columns])
    total = np.average([table.sum() for table in tables], weights=weights)
    # a number below its own noise is one that the noise could have hidden
    total = max(float(total), 1.0, float(noisy.noise_std / np.sqrt(weights.sum())))
    return tuple(_shares(table, total, noisy.noise_std) for table in tables)


def _drawn_together(noisy: Noisy, columns: Sequence[ColumnGrid]) -> list[np.ndarray]:
    """Every column's counts, shrunk toward the mean of the columns of the same kind.

    By the share of noise in all differences of the kind's columns: 178 readings of one instrument share their noise,
    28 components with a shape each are left alone.
    """
    ends = np.cumsum([column.n_cells for column in columns])
    tables = np.split(noisy.value[0].copy(), ends[:-1])
    alike: dict[object, list[int]] = {}
    for j, column in enumerate(columns):
        alike.setdefault(column.kind, []).append(j)
    for places in alike.values():
        counts = np.stack([tables[j] for j in places])
        differences = counts - counts.mean(axis=0)
        noise_terms = (len(places) - 1) * counts.shape[1]
        weight = shrinkage_weight(float((differences**2).sum()), noise_terms * noisy.noise_std**2)
        for j, difference in zip(places, differences, strict=True):
            tables[j] -= (1 - weight) * difference
    return tables


def _shares(table: np.ndarray, total: float, noise_std: float) -> np.ndarray:
    projected = project_to_simplex(table, total) / total
    difference = table / total - projected
    weight = shrinkage_weight(float(difference @ difference), table.size * (noise_std / total) ** 2)
    shares = project_to_simplex(projected + weight * difference, 1.0)
    return shares / shares.sum()
