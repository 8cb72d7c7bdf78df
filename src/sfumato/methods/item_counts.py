"""How many sets hold each item.

    counts of items    G(σ)    x ∈ {0, 1}^m with at most L ones

Proof: docs/proofs/gaussian_sum.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.models.sets import SetEncoder
from sfumato.records.engine import Rows

_SQRT2 = float(np.sqrt(2))


@dataclass(frozen=True)
class ItemCounts:
    """The number of sets that hold each item.

    A record adds its binary vector, of norm at most √L, L = min(max_length, m). No entry is negative, so two records
    are at most √(2L) apart. Value: shape (m,).
    """

    encoder: SetEncoder
    name: str = "counts of items"
    step: float = 1.0

    @property
    def norm_bound(self) -> float:
        """√L."""
        return self.encoder.norm_bound

    @property
    def replace_bound(self) -> float:
        """√2·norm_bound."""
        return _SQRT2 * self.norm_bound

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(self.encoder.dimension)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count the items of some sets."""
        total += np.bincount(self.encoder.sets(rows).codes, minlength=total.size)
