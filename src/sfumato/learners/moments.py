"""Class-conditional tables and second moments of a table, bought with two Gaussian releases.

First every column's cells are counted within every class: one release. From it, for free: class shares, marginals,
groups of cells, the block that stands for each cell, and the norm that a record is expected to have. Then the
records' blocks, clipped to that norm, give the second moments of all classes: one release. Proofs:
docs/proofs/class_cell_counts.md, docs/proofs/second_moment.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.data.engine import Rows
from sfumato.encoders.grid import ColumnGrid, Grid
from sfumato.mechanisms.clip import clip_factors
from sfumato.mechanisms.queries import Noisy
from sfumato.models.chain import ChainModel, ClassBlocks, ColumnModel, uncalibrated_column
from sfumato.models.gaussian import (
    nearest_positive,
    noise_reach,
    project_to_simplex,
    shrink_spectrum,
    shrinkage_weight,
)

_WORK_BYTES = 1 << 25  # of the widest work array: rows are expanded to vectors this much at a time


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

    def classes(self, rows: Rows) -> np.ndarray:
        """Return the class of each coded row, shape (n,)."""
        if self.target is None:
            return np.zeros(len(next(iter(rows.values()))), dtype=np.int64)
        column = self.grid.columns[self.target]
        return column.cells(rows[column.name])


@dataclass(frozen=True)
class ClassCellCounts:
    """For every column, how many records lie in each (class, cell).

    One record adds a single 1 to each of the c columns' tables: norm √c. Two records are at most √(2c) apart.
    Value: shape (classes, sum of the columns' cells), columns side by side.
    """

    layout: TableLayout
    name: str = "counts of cells by class"

    @property
    def norm_bound(self) -> float:
        """√c."""
        return float(np.sqrt(len(self.layout.features)))

    @property
    def replace_bound(self) -> float:
        """√(2c)."""
        return float(np.sqrt(2 * len(self.layout.features)))

    def zero(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros((self.layout.n_classes, sum(c.n_cells for c in self.layout.features)))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        classes = self.layout.classes(rows)
        start = 0
        for column in self.layout.features:
            flat = classes * column.n_cells + column.cells(rows[column.name])
            counts = np.bincount(flat, minlength=self.layout.n_classes * column.n_cells)
            total[:, start : start + column.n_cells] += counts.reshape(-1, column.n_cells)
            start += column.n_cells


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
    variances. Each class's probabilities are shrunk toward the pooled ones by the share of noise in their
    difference, then projected to the simplex.
    """
    ends = np.cumsum([column.n_cells for column in columns])
    tables = np.split(noisy.value, ends[:-1], axis=1)
    weights = np.array([1 / column.n_cells for column in columns])
    counts = np.average([table.sum(axis=1) for table in tables], axis=0, weights=weights)
    count_std = noisy.noise_std / np.sqrt(weights.sum())
    # a class below its own noise is kept, at a count that its noise could have hidden
    counts = np.maximum(counts, max(1.0, count_std))
    return Marginals(counts, tuple(_conditional(table, counts, noisy.noise_std) for table in tables))


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


def group_cells(column: ColumnGrid, pooled: np.ndarray, most_groups: int) -> np.ndarray:
    """Return a group for each cell: about equally heavy runs of numeric cells, or the most frequent levels.

    Free: depends on the noisy pooled marginal only. The missing cell of a numeric column is a group of its own.

    Args:
        column: the column.
        pooled: P(cell), shape (c,).
        most_groups: at least 1; a missing cell is not counted.
    """
    if not column.numeric:
        groups = np.arange(column.n_cells)
        if column.n_cells > most_groups:
            rank = np.empty(column.n_cells, dtype=np.int64)
            rank[np.argsort(-pooled, kind="stable")] = np.arange(column.n_cells)
            groups = np.minimum(rank, most_groups - 1)
        return groups
    ordered = column.n_cells - column.kind.nullable
    groups = np.arange(column.n_cells)
    if ordered > most_groups:
        groups[:ordered] = _equal_runs(pooled[:ordered], most_groups)
    if column.kind.nullable:
        groups[-1] = groups[ordered - 1] + 1
    return groups


def _equal_runs(pooled: np.ndarray, most: int) -> np.ndarray:
    """Cut ordered cells into at most `most` runs; a cell heavier than an even share is a run of its own."""
    even = max(pooled.sum(), 1e-300) / most
    groups = np.zeros(pooled.size, dtype=np.int64)
    group, mass = 0, 0.0
    for cell, share in enumerate(pooled):
        full = mass > 0 and (mass + share / 2 > even or share > even)
        if full and group < most - 1:
            group, mass = group + 1, 0.0
        groups[cell] = group
        mass += share
    return groups


@dataclass(frozen=True)
class ClassSecondMoments:
    """Per class, the sum of outer products of the records' clipped vectors.

    A record's vector is its cells' blocks side by side and, if not 0, a constant, clipped to `clip_norm`; it feeds
    its own class only. So its contribution svec(xxᵀ) has norm at most C², and two records' are at most √2·C² apart.
    With a constant the products with it are counts and means. Value: shape (classes, d, d).
    """

    layout: TableLayout
    columns: tuple[ColumnModel, ...]
    clip_norm: float
    constant: float = 0.0
    name: str = "second moments by class"

    @property
    def norm_bound(self) -> float:
        """C²."""
        return self.clip_norm**2

    @property
    def replace_bound(self) -> float:
        """√2·C²."""
        return float(np.sqrt(2) * self.clip_norm**2)

    @cached_property
    def _blocks(self) -> list[list[ClassBlocks]]:
        return [[column.class_blocks(k) for k in range(self.layout.n_classes)] for column in self.columns]

    @cached_property
    def dimension(self) -> int:
        """Entries d of a record's vector; a constant is the last."""
        return sum(column.width for column in self.columns) + (self.constant != 0)

    def zero(self) -> np.ndarray:
        """Return empty moments."""
        return np.zeros((self.layout.n_classes, self.dimension, self.dimension))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, expanded to vectors a few at a time."""
        classes = self.layout.classes(rows)
        cells = [column.cells(rows[column.name]) for column in self.layout.features]
        step = max(256, _WORK_BYTES // (8 * max(self.dimension, 1)))
        for k in range(total.shape[0]):
            members = np.flatnonzero(classes == k)
            for start in range(0, members.size, step):
                some = members[start : start + step]
                vectors = self.vectors(k, [column[some] for column in cells])
                total[k] += vectors.T @ vectors

    def vectors(self, k: int, cells: Sequence[np.ndarray]) -> np.ndarray:
        """Return the clipped vectors of records of class k, shape (n, d)."""
        vectors = np.empty((cells[0].size, self.dimension))
        start = 0
        for model, blocks, column in zip(self.columns, self._blocks, cells, strict=True):
            vectors[:, start : start + model.width] = blocks[k].of(column)
            start += model.width
        vectors[:, start:] = self.constant
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        vectors *= clip_factors(norms, self.clip_norm)[:, None]
        return vectors


def expected_norm(columns: Sequence[ColumnModel]) -> float:
    """Return the largest class's root mean square norm of a record's vector, from released marginals. Free."""
    squares = sum(np.trace(column.second_moments(), axis1=1, axis2=2) for column in columns)
    return float(np.sqrt(np.max(squares)))


def fit_chain(noisy: Noisy, marginals: Marginals, columns: Sequence[ColumnModel]) -> ChainModel:
    """Turn noisy second moments into the factors of a chain model. Free: uses released values only.

    The block of a column with itself is known from the marginals, more exactly than the moments say. What is left,
    pooled over classes and then the classes' differences from it, is noise of known law plus signal: its spectrum is
    shrunk at the known edge of the noise.
    """
    moments = noisy.value / marginals.class_counts[:, None, None]
    return chain_of(moments, noisy.noise_std, marginals.class_counts, marginals.class_shares, columns)


def chain_of(
    moments: np.ndarray, noise_std: float, counts: np.ndarray, shares: np.ndarray, columns: Sequence[ColumnModel]
) -> ChainModel:
    """Turn noisy second moments per record into a chain model; see `fit_chain`.

    Args:
        moments: per class, shape (k, d, d).
        noise_std: standard deviation of the noise of a class's sum.
        counts: what the sums were divided by, shape (k,).
        shares: of the classes, shape (k,).
        columns: their blocks make up the d entries.
    """
    own = _own_blocks(columns)
    d = own.shape[1]
    inside = np.zeros((d, d), dtype=bool)
    start = 0
    for column in columns:
        inside[start : start + column.width, start : start + column.width] = True
        start += column.width
    across = np.where(inside, 0.0, moments)
    edge = noise_reach(noise_std, d)
    mean = np.einsum("k,kij->ij", shares, across)
    pooled = np.where(inside, 0.0, shrink_spectrum(mean, edge * np.linalg.norm(shares / counts)))
    factors = np.empty_like(own)
    for k in range(len(counts)):
        # the class is part of the pool: its own noise counts less in the difference, the others' a little
        weights = (np.arange(len(counts)) == k) - shares
        difference = np.where(inside, 0.0, shrink_spectrum(across[k] - mean, edge * np.linalg.norm(weights / counts)))
        factors[k] = _factor(own[k] + pooled + difference)
    return ChainModel(shares, tuple(columns), factors)


def _own_blocks(columns: Sequence[ColumnModel]) -> np.ndarray:
    """Return the block-diagonal second moments that the marginals imply, shape (k, d, d)."""
    d = sum(column.width for column in columns)
    own = np.zeros((columns[0].probabilities.shape[0], d, d))
    start = 0
    for column in columns:
        block = slice(start, start + column.width)
        own[:, block, block] = column.second_moments()
        start += column.width
    return own


def _factor(moment: np.ndarray, floor: float = 1e-4) -> np.ndarray:
    """Return the lower Cholesky factor of the nearest matrix whose eigenvalues are at least `floor`."""
    positive = nearest_positive(moment, floor)
    return np.linalg.cholesky(positive + 1e-9 * np.eye(len(positive)))


def column_models(
    marginals: Marginals, features: Sequence[ColumnGrid], *, level_groups: int, numeric_groups: int
) -> tuple[ColumnModel, ...]:
    """Return each column's uncalibrated model. Free: uses released values and public settings only.

    Args:
        marginals: what the first release says.
        features: the columns.
        level_groups: most groups of a level column.
        numeric_groups: most groups of a numeric column; 1 stands for a normal score.
    """
    models = []
    for j, column in enumerate(features):
        most = numeric_groups if column.numeric else level_groups
        scored = column.numeric and numeric_groups == 1
        groups = group_cells(column, marginals.pooled(j), most)
        models.append(uncalibrated_column(marginals.tables[j], groups, scored=scored))
    return tuple(models)
