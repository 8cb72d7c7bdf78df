"""Learning rates over the steps of a descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Constant:
    """The same rate at every step."""

    def factor(self, step: int, n_steps: int) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Cosine:
    """From the full rate down to a share of it along half a cosine.

    Attributes:
        last: the share at the end, in [0, 1].
    """

    last: float = 0.0

    def factor(self, step: int, n_steps: int) -> float:
        """Return the factor of step 0 … n_steps − 1."""
        return self.last + (1 - self.last) * 0.5 * (1 + math.cos(math.pi * step / n_steps))


Schedule: TypeAlias = Constant | Cosine
