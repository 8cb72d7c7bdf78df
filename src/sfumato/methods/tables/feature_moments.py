"""Second moments of a table's records, pooled and by class, bought with one Gaussian release.

A record is the features of its cells (`sfumato.methods.tables.features`), each times the root of its weight, clipped
to a norm that released shares make one expect. Proof: docs/proofs/second_moment.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.mechanisms.contributions import PRODUCT_BITS, step_of, whole_rows
from sfumato.mechanisms.statistics import OuterProducts
from sfumato.methods.marginals import TableLayout
from sfumato.records.engine import Rows

_WORK_BYTES = 1 << 25
_FRACTIONS = 1 << 20


@dataclass(frozen=True)
class TableMoments(OuterProducts):
    """The sum of outer products of the records' clipped vectors: of all records, and of each class.

    A record x adds α·xxᵀ to the pooled matrix and β·xxᵀ to that of its class, α² + β² ≤ 1: norm at most C². Two
    records' contributions have a non-negative inner product, so they are at most √2·C² apart; so are two units', C²
    being so many times as large as they have records. One `Gaussian` event for all matrices.
    Value: shape (1 + classes, d, d), or (1, d, d) where β = 0.

    Attributes:
        layout: the columns.
        vectors: per feature column, the entries of each cell, shape (c, q); then, where they are wanted, of the class
            (without a target, of the one class of all rows): an indicator, whose products with features are its means.
        clip_norm: C.
        by_class: β² in [0, 1), up to rounding; 0 for the pooled matrix alone.
        bits: of the whole numbers; fewer where there are many rows.
    """

    layout: TableLayout
    vectors: tuple[np.ndarray, ...]
    clip_norm: float
    by_class: float = 0.0
    name: str = "second moments, pooled and by class"
    bits: int = PRODUCT_BITS

    @cached_property
    def dimension(self) -> int:
        """Entries d of a record's vector."""
        return sum(vectors.shape[1] for vectors in self.vectors)

    @property
    def weights(self) -> np.ndarray:
        """α, then β for each class, shape (1 + classes,) or (1,)."""
        if not self.by_class:
            return np.ones(1)
        squares = np.array([1 - self.by_class] + [self.by_class] * self.layout.n_classes)
        # rounded down to binary fractions, so that the squares of two of them add up to at most 1, exactly
        return np.floor(np.sqrt(squares) * _FRACTIONS) / _FRACTIONS

    @property
    def step(self) -> np.ndarray:
        """(C/2^bits)² times α or β, shape (matrices, 1, 1)."""
        return (step_of(self.clip_norm, self.bits) ** 2 * self.weights)[:, None, None]

    def zero(self) -> np.ndarray:
        """Return empty moments."""
        return np.zeros((self.weights.size, self.dimension, self.dimension))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, expanded to vectors a few at a time."""
        classes = self.layout.classes(rows)
        cells = [column.cells(rows[column.name]) for column in self.layout.features]
        if len(self.vectors) > len(cells):
            cells.append(classes)
        step = max(256, _WORK_BYTES // (8 * max(self.dimension, 1)))
        n_parts = self.layout.n_classes if self.by_class else 1
        parts = [np.flatnonzero(classes == k) if self.by_class else np.arange(classes.size) for k in range(n_parts)]
        for k, members in enumerate(parts):
            for start in range(0, members.size, step):
                some = members[start : start + step]
                whole = whole_rows(self.of([column[some] for column in cells]), self.clip_norm, self.bits)
                product = whole.T @ whole
                total[0] += product
                if self.by_class:
                    total[1 + k] += product

    def of(self, cells: Sequence[np.ndarray]) -> np.ndarray:
        """Return the vectors of records with these cells, shape (n, d)."""
        return np.concatenate([v[c] for v, c in zip(self.vectors, cells, strict=True)], axis=1)
