"""How long sets are, on the mean: from it follows how far apart two of them lie.

total length    G(σ)    a set's number of items, at most L
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.models.sets import SetEncoder
from sfumato.records.engine import Rows


@dataclass(frozen=True)
class TotalLength:
    """The number of items in all sets together.

    A record adds its length, between 0 and L = min(max_length, m): norm and distance are at most L. Value: shape ().
    """

    encoder: SetEncoder
    name: str = "items in all sets"
    step: float = 1.0

    @property
    def norm_bound(self) -> float:
        """L."""
        return float(self.encoder.kind.longest)

    @property
    def replace_bound(self) -> float:
        """L."""
        return self.norm_bound

    def zero(self) -> np.ndarray:
        """Return zero."""
        return np.zeros(())

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add the lengths of some sets."""
        total += float(self.encoder.sets(rows).codes.size)
