"""Coded tables as the numbers that classifiers read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp

from sfumato.columns.kinds import LevelKind, NumericKind, n_levels
from sfumato.evaluate.tables import CodedTable


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Features:
    """A map from coded tables to feature matrices, fixed by a training table.

    A level column becomes one-hot over the schema's levels, its missing level included. A numeric
    column is standardised by the training table's mean and deviation; a missing number becomes
    that mean, and if the column is nullable a further feature says so.

    Args:
        kinds: the feature columns, in order.
        means: mean of each numeric column's codes in the training table.
        deviations: their standard deviation (÷ n), 1 where it would be 0.
    """

    kinds: Mapping[str, LevelKind | NumericKind]
    means: Mapping[str, float]
    deviations: Mapping[str, float]

    @classmethod
    def of(cls, table: CodedTable, kinds: Mapping[str, LevelKind | NumericKind]) -> Features:
        """The map that a training table fixes."""
        moments = {
            name: _mean_and_deviation(table.columns[name])
            for name, kind in kinds.items()
            if not isinstance(kind, LevelKind)
        }
        return cls(
            kinds=kinds,
            means={name: mean for name, (mean, _) in moments.items()},
            deviations={name: deviation for name, (_, deviation) in moments.items()},
        )

    @property
    def width(self) -> int:
        """How many features there are."""
        return sum(_width(kind) for kind in self.kinds.values())

    def matrix(self, table: CodedTable) -> sp.csr_matrix:
        """Features of the rows of a table, shape (n, width), float64."""
        blocks = list(self._blocks(table))
        places, values = (np.stack(side, axis=1).ravel() for side in zip(*blocks, strict=True))
        starts = np.arange(table.n_rows + 1) * len(blocks)
        matrix = sp.csr_matrix((values, places, starts), shape=(table.n_rows, self.width))
        matrix.eliminate_zeros()
        return matrix

    def _blocks(self, table: CodedTable) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (feature number, value) of one possibly nonzero feature per row at a time."""
        start = 0
        ones = np.ones(table.n_rows)
        for name, kind in self.kinds.items():
            codes = table.columns[name]
            if isinstance(kind, LevelKind):
                yield start + codes.astype(np.int32), ones
            else:
                missing = np.isnan(codes)
                score = (codes - self.means[name]) / self.deviations[name]
                place = np.full(table.n_rows, start, dtype=np.int32)
                yield place, np.where(missing, 0.0, score)
                if kind.nullable:
                    yield place + 1, missing.astype(np.float64)
            start += _width(kind)


def _width(kind: LevelKind | NumericKind) -> int:
    if isinstance(kind, LevelKind):
        return n_levels(kind)
    return 2 if kind.nullable else 1


def _mean_and_deviation(codes: np.ndarray) -> tuple[float, float]:
    known = codes[~np.isnan(codes)]
    if not len(known) or known.min() == known.max():
        # exactly: rounding can give a constant column a mean beside it, and a deviation above 0
        return (float(known[0]) if len(known) else 0.0), 1.0
    # of values far below the bounds the square of the deviation may underflow
    return float(known.mean()), float(known.std()) or float(np.ptp(known))
