"""The audited forms of statistics: what one record may add, and how far two records' additions may be apart.

| form | norm B | distance of two records | because |
|---|---|---|---|
| `Counts` | √s | √2·B | a record adds s ones, or numbers of s squares; none is negative |
| `NonNegativeSum` | B | √2·B | no entry is negative, so that two additions have an inner product of at least 0 |
| `ClippedSum` | C | 2·C | a vector clipped to C may be turned round |
| `OuterProducts` | C² | √2·C² | ‖xxᵀ‖ = ‖x‖², and ⟨xxᵀ, yyᵀ⟩ = ⟨x, y⟩² ≥ 0 |

‖u − v‖² = ‖u‖² + ‖v‖² − 2⟨u, v⟩ ≤ 2B² where ⟨u, v⟩ ≥ 0. The same holds of units of several records, of so many times
the bound. Few statistics have no such form, and derive their own bounds: moments of mixtures, sums about k-means'
centres, sums of images by class, lengths of sets.
Proofs: docs/proofs/gaussian_sum.md, docs/proofs/second_moment.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import ConfigError, require_instance
from sfumato.measurements.cells import BaseCells
from sfumato.measurements.queries import MarginalQuery
from sfumato.mechanisms.contributions import step_of
from sfumato.records.engine import Rows

_SQRT2 = float(np.sqrt(2))


class NonNegativeSum(ABC):
    """Additions without negative entries; subclasses say `norm_bound`, and make entries non-negative."""

    @property
    @abstractmethod
    def norm_bound(self) -> float:
        """B: largest ℓ2 norm of one record's contribution."""

    @property
    def replace_bound(self) -> float:
        """√2·B."""
        return _SQRT2 * self.norm_bound


class Counts(NonNegativeSum):
    """Ones added to cells, or other non-negative numbers; subclasses say the sum of their `squares`."""

    @property
    @abstractmethod
    def squares(self) -> float:
        """s: largest sum of squares of what one record adds; of ones, their number."""

    @property
    def norm_bound(self) -> float:
        """√s."""
        return float(np.sqrt(self.squares))

    @property
    def step(self) -> float | np.ndarray:
        """What 1 is worth: 1, unless other numbers than ones are added."""
        return 1.0


@dataclass(frozen=True)
class QueryCounts(Counts):
    """The tables of a query: a record adds one 1 to each of its t tables, which has norm √t.

    No entry is negative, so two records are at most √(2t) apart. Proof: docs/proofs/cell_counts.md.

    Raises:
        ConfigError: the query is of weighted records, or of units whose rows share a bound: it is not counted so here.
    """

    query: MarginalQuery
    name: str = "counts of cells"

    def __post_init__(self) -> None:
        require_instance(MarginalQuery, "a MarginalQuery", query=self.query)
        if self.query.weight or self.query.norm is not None:
            raise ConfigError(
                "Expected a query in which every record counts once, got one with "
                f"{f'weight={self.query.weight!r}' if self.query.weight else f'norm={self.query.norm}'}. "
                "Leave it out, or write a statistic that counts so."
            )

    @property
    def squares(self) -> float:
        """The number of tables."""
        return len(self.query.tables)

    def zero(self) -> np.ndarray:
        """Empty tables."""
        return np.zeros(self.query.shape)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        self.query.add(total, BaseCells(rows))


class ClippedSum(ABC):
    """Vectors clipped to the norm `clip_norm`, of any direction."""

    clip_norm: float

    @property
    def norm_bound(self) -> float:
        """C."""
        return self.clip_norm

    @property
    def replace_bound(self) -> float:
        """2·C."""
        return 2 * self.clip_norm


class OuterProducts(NonNegativeSum):
    """Outer products of vectors clipped to the norm `clip_norm`, symmetric matrices as `svec`.

    The sum has to be symmetric: its upper triangle is all that is read. Several matrices in one array: weights that are
    not negative, their squares adding up to at most 1.
    """

    clip_norm: float
    bits: Any

    @property
    def norm_bound(self) -> float:
        """C²."""
        return self.clip_norm**2

    @property
    def step(self) -> float | np.ndarray:
        """(C/2^bits)²: products of whole numbers."""
        return step_of(self.clip_norm, self.bits) ** 2
