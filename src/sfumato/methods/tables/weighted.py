"""The statistics of a weighted table: those of an unweighted one, each record times its weight ÷ the bound.

A record of the largest weight adds what it would without weights, and any other less: norms, distances of two records
and events are those of unweighted sums. Weights are whole numbers of 2^-20 of the bound. Proof: docs/proofs/weights.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sfumato.fitting.purposes import Facts
from sfumato.lenses.weights import WEIGHT_BITS, whole_weights
from sfumato.maths.constants import SIZES
from sfumato.methods.tables.cell_counts import CellCounts
from sfumato.methods.tables.feature_moments import MomentBits, TableMoments
from sfumato.methods.tables.leading import Leading
from sfumato.methods.tables.recipe import Measuring
from sfumato.methods.tables.settings import Settings
from sfumato.records.engine import Rows
from sfumato.schema.grid import Grid
from sfumato.schema.schema_facts import weight_bound

_MOST_BITS, _ALL_BITS = 36, 60  # as of the moments of unweighted tables


def weight_bits(n_public: int) -> MomentBits:
    """Return how finely entries, and clipping times weights, are whole numbers: a third of the bits for the latter."""
    together = min(_MOST_BITS, _ALL_BITS - (n_public - 1).bit_length())
    return MomentBits((together - together // 3) // 2, together // 3)


@dataclass(frozen=True)
class WeightedCounts(CellCounts):
    """The weights of the records in each run, cell, value and ending, ÷ the bound, as `CellCounts` counts records.

    A record of weight k/2^20 of the bound adds k times what an unweighted one does, in steps of 2^-20: its norm is
    k/2^20 of that one's. No entry is negative, so that two records, or units, are at most √2 times the bound apart,
    whatever their weights. One `Gaussian` event.
    """

    least: ClassVar[float] = SIZES.least_weight
    shift: ClassVar[int] = WEIGHT_BITS

    column: str = ""
    name: str = "weights in runs and cells"

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records by their weights."""
        self.add_weighted(total, rows, whole_weights(rows, self.column).astype(np.float64))


@dataclass(frozen=True)
class WeightedMoments(TableMoments):
    """The sum of outer products of the records' clipped vectors, each times its weight ÷ the bound.

    A record adds (k/2^20) times what an unweighted one adds: norm at most C². Inner products of what two
    records, or units, add are not negative, so they are at most √2·C² apart. One `Gaussian` event.

    In whole numbers: u of `TableMoments`, and v = ⌊(u·k + 2^19)/2^20⌋, the nearest to u·k/2^20. As k ≤ 2^20 and u is
    whole, v ≤ u: v·‖y‖² ≤ 2^m·4^b exactly.
    """

    column: str = ""
    name: str = "weighted second moments, pooled and by class"

    def counted(self, rows: Rows, clipping: np.ndarray) -> np.ndarray:
        """Return v, whole numbers in float64, shape (n,)."""
        product = clipping.astype(np.int64) * whole_weights(rows, self.column) + (1 << (WEIGHT_BITS - 1))
        return (product >> WEIGHT_BITS).astype(np.float64)


@dataclass(frozen=True, slots=True)
class MeasuringWeights(Measuring):
    """How the records of a weighted table are measured: each counts by its weight.

    Attributes:
        column: of the weights.
        total: of all weights ÷ the bound, where it is public.
    """

    column: str = ""
    total: float | None = None

    @classmethod
    def of(cls, facts: Facts) -> MeasuringWeights | None:
        """Return it for a schema with weights; None without."""
        weight = facts.described.weight
        if weight is None:
            return None
        bound = weight_bound(facts.described)
        total = None if weight.total is None else weight.total / bound
        weights = {weight.column: SIZES.weight_column}
        return cls(weights=weights, worth=bound, column=weight.column, total=total)

    def resettled(self, settings: Settings, total: float, choose: Callable[[float], Settings]) -> Settings:
        """Return settings by the released sum of weights, but for cells, which the first release was counted in."""
        chosen = choose(total if self.total is None else self.total)
        return replace(chosen, cells=settings.cells, ends=settings.ends)

    def counts(self, grid: Grid, by: int | None) -> WeightedCounts:
        """Return the weighted statistic of the first stage."""
        return WeightedCounts(grid, by, known=self.known_shares(grid), column=self.column)

    def moments(
        self, grid: Grid, vectors: tuple[np.ndarray, ...], clip_norm: float, leading: Leading | None, n_public: int,
        counting: CellCounts,
    ) -> WeightedMoments:  # fmt: skip
        """Return the weighted statistic of the second stage."""
        del counting
        return WeightedMoments(grid, vectors, clip_norm, leading, bits=weight_bits(n_public), column=self.column)
