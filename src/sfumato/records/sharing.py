"""How much each step of a unit counts in counts: all steps of a unit share one bound. Proof: docs/proofs/linked.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.lenses.weights import WEIGHT_BITS as UNIT_WEIGHT_BITS
from sfumato.lenses.weights import whole_weights
from sfumato.records.engine import Rows
from sfumato.records.sequences import STEPS

WEIGHT_BITS = 10
_MARGIN = 2.0**-30  # more than the rounding of a Frobenius norm of up to a million products
FINER_BITS = 6
"""Of a weighted step, beyond those."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How much each step of a unit counts.

    Attributes:
        full: K, the number of steps of a unit that count whole, at least 1.
    """

    full: int

    def weights(self, steps: np.ndarray) -> np.ndarray:
        """Return the weight of each step of units with so many steps, in 2^-10, int64: at most K·2^10 together."""
        return np.minimum(1 << WEIGHT_BITS, (self.full << WEIGHT_BITS) // np.maximum(steps, 1))

    def clipped(self, vectors: np.ndarray, owners: np.ndarray, steps: np.ndarray, most: float) -> np.ndarray:
        """Return u of units in 2^-10, whole numbers in float64, shape (units,): ‖Σ u·yyᵀ‖ ≤ `most`.

        Args:
            vectors: of their steps, whole numbers y, shape (n, d), one unit's after the other's.
            owners: unit of each step, from 0, shape (n,).
            steps: number of each unit's steps, shape (units,).
            most: 2^10 times the largest norm of Σ yyᵀ that counts whole.
        """
        squares = np.zeros(steps.size)
        for lag in range(int(steps.max(initial=0))):
            pairs = np.flatnonzero(owners[lag:] == owners[: owners.size - lag])
            # whole numbers below 2^53: exact in any order; sums of their squares are taken in that of the steps
            products = np.einsum("ij,ij->i", vectors[pairs], vectors[pairs + lag])
            np.add.at(squares, owners[pairs], (1.0 if lag == 0 else 2.0) * products**2)
        norm = np.sqrt(squares) * (1 + _MARGIN)
        return np.minimum(self.weights(steps), np.floor(most / np.maximum(norm, 1.0)))


AS_ONE = Sharing(1)
"""All steps of a unit count as one step together."""


def flattened(rows: Rows) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return the steps of units one after the other, the unit of each, and how many each unit has."""
    steps = rows[STEPS]
    names = [name for name in rows if name != STEPS]
    width = rows[names[0]].shape[1]
    mine = np.arange(width) < steps[:, None]
    return {name: rows[name][mine] for name in names}, np.repeat(np.arange(steps.size), steps), steps


def weighted_steps(shared: np.ndarray, flat: Rows, column: str) -> np.ndarray:
    """Return the weights of steps times their unit's weight ÷ the bound, in 2^-16, int64, shape (n,).

    v = ⌊(s·ω + 2^13)/2^14⌋ of s in 2^-10 and ω ≤ 2^20 in 2^-20, so v ≤ 2^6·s: no more than without weights.
    """
    product = shared * whole_weights(flat, column)
    coarser = UNIT_WEIGHT_BITS - FINER_BITS
    return (product + (1 << (coarser - 1))) >> coarser
