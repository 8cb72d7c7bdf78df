"""Noisy totals of functions of a record, beside the functions of a model's rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

FEWEST_ROWS = 3
"""Of the model, that a function is not 0 in: of others it says nothing."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Noisy totals of functions of a record.

    Attributes:
        functions: of the model's rows, shape (N, p).
        totals: noisy, over all records, shape (p,).
        variances: of their independent noise, shape (p,).
    """

    functions: np.ndarray
    totals: np.ndarray
    variances: np.ndarray

    @classmethod
    def joined(cls, parts: list[Totals]) -> Totals:
        """Several together."""
        return cls(
            np.concatenate([part.functions for part in parts], axis=1),
            np.concatenate([part.totals for part in parts]),
            np.concatenate([part.variances for part in parts]),
        )

    def with_rows(self) -> Totals:
        """Those whose functions are not 0 in `FEWEST_ROWS` rows: of the others the model says that there are none."""
        frequent = np.count_nonzero(self.functions, axis=0) >= FEWEST_ROWS
        return Totals(self.functions[:, frequent], self.totals[frequent], self.variances[frequent])


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

    def of(self, functions: np.ndarray) -> np.ndarray:
        """Functions of the rows added up, shape (units, k), of shape (N, k)."""
        return np.asarray(self._rows @ functions)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values of units at each of their rows, shape (N,)."""
        return values[self.owners]
