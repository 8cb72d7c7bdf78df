"""Second moments of a table's records within every class, bought with one Gaussian release.

A record is the blocks that stand for its cells, by marginals released before (`sfumato.learners.marginals`), clipped to
the norm that these make one expect. Proof: docs/proofs/second_moment.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.data.engine import Rows
from sfumato.encoders.grid import ColumnGrid
from sfumato.learners.marginals import Marginals, TableLayout, group_cells
from sfumato.mechanisms.queries import Noisy
from sfumato.mechanisms.whole import PRODUCT_BITS, step_of, whole_rows
from sfumato.models.chain import ChainModel
from sfumato.models.columns import ClassBlocks, ColumnModel, uncalibrated_column
from sfumato.models.gaussian import nearest_positive, noise_reach, shrink_spectrum

_WORK_BYTES = 1 << 25  # of the widest work array: rows are expanded to vectors this much at a time


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

    @property
    def step(self) -> float:
        """(C/2^18)²."""
        return step_of(self.clip_norm, PRODUCT_BITS) ** 2

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
                vectors = whole_rows(self.vectors(k, [column[some] for column in cells]), self.clip_norm, PRODUCT_BITS)
                total[k] += vectors.T @ vectors

    def vectors(self, k: int, cells: Sequence[np.ndarray]) -> np.ndarray:
        """Return the vectors of records of class k, shape (n, d)."""
        vectors = np.empty((cells[0].size, self.dimension))
        start = 0
        for model, blocks, column in zip(self.columns, self._blocks, cells, strict=True):
            vectors[:, start : start + model.width] = blocks[k].of(column)
            start += model.width
        vectors[:, start:] = self.constant
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
    reach = noise_reach(noise_std, d)
    mean = np.einsum("k,kij->ij", shares, across)
    pooled = np.where(inside, 0.0, shrink_spectrum(mean, reach * float(np.linalg.norm(shares / counts))))
    factors = np.empty_like(own)
    for k in range(len(counts)):
        # the class is part of the pool: in the difference its own noise weighs less, and the others' a little
        noise = reach * float(np.linalg.norm(((np.arange(len(counts)) == k) - shares) / counts))
        difference = np.where(inside, 0.0, shrink_spectrum(across[k] - mean, noise))
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
