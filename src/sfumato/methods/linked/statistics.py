"""Sums over the steps of units: cells, and second moments, with one bound for all steps of a unit together.

A record is a unit with all its steps (`sfumato.records.linked.StepRecords`). Each of its k steps counts min(1, K/k):
K steps count whole, and a unit with more counts as K. In whole numbers of 2^-10, rounded down, so that they add up to
K·2^10 at most. The part that each step of a unit has is a function of k, which is a column of every step: what is
learned of a step given k is not moved by it. Proof: docs/proofs/linked.md.

Reference: Amin, Kulesza, Muñoz Medina and Vassilvitskii, ICML 2019, on bounding what a user contributes; there rows
beyond a bound are dropped, here all steps of a unit share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.lenses.weights import WEIGHT_BITS as UNIT_WEIGHT_BITS
from sfumato.lenses.weights import whole_weights
from sfumato.methods.tables.cell_counts import TwoResolutionCounts
from sfumato.methods.tables.feature_moments import MomentBits, TableMoments
from sfumato.records.engine import Rows
from sfumato.records.sharing import AS_ONE, FINER_BITS, WEIGHT_BITS, Sharing, flattened, weighted_steps

_MOST_BITS, _ALL_BITS = 36, 60  # as of the moments of tables
_WORK_BYTES = 1 << 22


def step_bits(n_public: int) -> MomentBits:
    """Return how finely entries and weights of steps are whole numbers, for a public number of units."""
    together = min(_MOST_BITS, _ALL_BITS - (n_public - 1).bit_length())
    return MomentBits((together - WEIGHT_BITS) // 2, WEIGHT_BITS)


@dataclass(frozen=True)
class StepCounts(TwoResolutionCounts):
    """For every column, how many steps lie in each run of cells and in each cell, weighted by `Sharing`.

    A unit of k steps adds w(k)·a to one run and w(k)·b to one cell of each of the c columns for each step,
    k·w(k) ≤ K. In each column these add up to vectors of norms K·a and K·b at most, however the steps lie; together
    K·√(c(a² + b²)). No entry is negative, so that two units are at most √2 times that apart. One `Gaussian` event.
    """

    sharing: Sharing = AS_ONE
    name: str = "counts of steps in runs and cells"

    @property
    def how_counted(self) -> dict[str, Any]:
        """By `Sharing`."""
        return {"whole_rows": self.sharing.full}

    @property
    def squares(self) -> float:
        """K²·c(a² + b²)."""
        return self.sharing.full**2 * super().squares

    @property
    def step(self) -> np.ndarray:
        """What 1 is worth: a or b, times 2^-10."""
        return super().step * 2.0**-WEIGHT_BITS

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count the steps of some units."""
        flat, owners, steps = flattened(rows)
        self.add_weighted(total, flat, self.sharing.weights(steps)[owners].astype(np.float64))

    def split(self, value: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return each column's counts in weighted steps, without the weights of runs and cells."""
        return super().split(value * 2.0**-WEIGHT_BITS)


@dataclass(frozen=True)
class WeightedStepCounts(StepCounts):
    """`StepCounts` of weighted units, each times its weight ÷ the bound.

    A step of a unit of k steps and weight ω/2^20 adds v = ⌊(w(k)·ω + 2^13)/2^14⌋, in steps of 2^-16. As ω ≤ 2^20 and
    w(k) is whole, v ≤ 2^6·w(k): norm and distance of two units are at most those of unweighted ones. One `Gaussian`
    event. Proof: docs/proofs/linked.md.
    """

    column: str = ""
    name: str = "weights of steps in runs and cells"

    @property
    def how_counted(self) -> dict[str, Any]:
        """By `Sharing` and the unit's weight."""
        return {"whole_rows": self.sharing.full, "weight": self.column}

    @property
    def step(self) -> np.ndarray:
        """What 1 is worth: a or b, times 2^-16."""
        return super().step * 2.0**-FINER_BITS

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count the steps of some units by their weights."""
        flat, owners, steps = flattened(rows)
        shared = self.sharing.weights(steps)[owners]
        self.add_weighted(total, flat, weighted_steps(shared, flat, self.column).astype(np.float64))

    def split(self, value: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return each column's counts in weighted steps ÷ the bound."""
        return super().split(value * 2.0**-FINER_BITS)


@dataclass(frozen=True)
class StepMoments(TableMoments):
    """The sum of outer products of steps' vectors, those of a unit clipped together.

    A unit with steps x₁ … x_k adds u·Σ xᵢxᵢᵀ. F² = Σᵢⱼ ⟨xᵢ, xⱼ⟩² is the squared Frobenius norm of the sum, and
    u = min(w(k), C²/F): norm at most C². The sum is positive semidefinite, so two units' have a non-negative inner
    product and are at most √2·C² apart. One `Gaussian` event.

    In whole numbers: x = y·C/2^b, and u of 2^-m with u·F ≤ 2^m·4^b, F rounded up.
    """

    sharing: Sharing = AS_ONE
    name: str = "second moments of steps"
    compact = None  # type: ignore[assignment] - steps of a unit are clipped together

    @property
    def how_counted(self) -> dict[str, Any]:
        """By `Sharing`."""
        return {"whole_rows": self.sharing.full}

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add the steps of some units, a few units at a time."""
        flat, owners, steps = flattened(rows)
        if not owners.size:
            return
        cells = self.cells(flat, np.zeros(owners.size, dtype=np.int64))
        entries = [whole.astype(np.float64) for whole in self.whole]
        ends, at_once = np.cumsum(steps), max(256, _WORK_BYTES // (8 * max(self.dimension, 1)))
        start = 0
        while start < owners.size:
            # whole units: one that has more steps than are taken at once is taken alone
            last = max(int(np.searchsorted(ends, start + at_once, side="right")), int(owners[start]) + 1)
            some = slice(start, int(ends[last - 1]))
            vectors = np.concatenate([e[c[some]] for e, c in zip(entries, cells, strict=True)], axis=1)
            mine = owners[some] - owners[start]
            units = slice(int(owners[start]), last)
            counted = self.weighed(self.shared(vectors, mine, steps[units]), rows, units)
            total[0] += vectors.T @ (vectors * counted[mine, None])
            start = some.stop

    def weighed(self, shared: np.ndarray, rows: Rows, units: slice) -> np.ndarray:
        """Return what units count whose clipping is `shared`: each once."""
        del rows, units
        return shared

    def shared(self, vectors: np.ndarray, owners: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Return u of units, whole numbers in float64, shape (units,).

        Args:
            vectors: of their steps, whole numbers y, shape (n, d), one unit's after the other's.
            owners: unit of each step, shape (n,).
            steps: number of each unit's steps, shape (units,).
        """
        most = 2.0 ** (2 * self.bits.entries + self.bits.weights)
        return self.sharing.clipped(vectors, owners, steps, most)


@dataclass(frozen=True)
class WeightedStepMoments(StepMoments):
    """`StepMoments` of weighted units, each times its weight ÷ the bound.

    A unit of weight ω/2^20 adds v·Σ xᵢxᵢᵀ with v = ⌊(u·ω + 2^19)/2^20⌋. As ω ≤ 2^20 and u is whole, v ≤ u: norm at most
    C², and the sum stays positive semidefinite. One `Gaussian` event.
    """

    column: str = ""
    name: str = "weighted second moments of steps"

    @property
    def how_counted(self) -> dict[str, Any]:
        """By `Sharing` and the unit's weight."""
        return {"whole_rows": self.sharing.full, "weight": self.column}

    def weighed(self, shared: np.ndarray, rows: Rows, units: slice) -> np.ndarray:
        """Return v of units, whole numbers in float64: by the weight of their first step, which is that of all."""
        weights = whole_weights({self.column: rows[self.column][units, 0]}, self.column)
        product = shared.astype(np.int64) * weights + (1 << (UNIT_WEIGHT_BITS - 1))
        return (product >> UNIT_WEIGHT_BITS).astype(np.float64)
