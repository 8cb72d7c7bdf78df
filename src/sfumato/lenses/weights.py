"""Weights as a lens: the weight is one column more, as a part of its public bound: a total map of single cells.

A record counts as that part of one (`sfumato.methods.tables.weighted`), at most once. Samples are rows of the weighted
population, so no row goes back by its weight: as plain records they count once. Proof: docs/proofs/weights.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.columns.kind import ColumnKind
from sfumato.columns.numbers import Continuous
from sfumato.lenses.lens import Sampler

WEIGHT_BITS = 20
"""Of a weight: a sum of 2^16 weights stays below 2^53, and of `MOST_ROWS` below 2^63."""


@dataclass(frozen=True, slots=True)
class WeightLens:
    """The column of weights.

    Attributes:
        column: its name.
        kind: numbers from 0 to the bound.
    """

    column: str
    kind: Continuous

    def columns(self, columns: Mapping[str, ColumnKind]) -> dict[str, ColumnKind]:
        """Columns with the weight: how surely others are known depends on what it has to do with them."""
        return {**columns, self.column: self.kind}

    def code(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Records with w ÷ bound."""
        return rows | {self.column: fractions(rows[self.column])}

    def rows(self, inner: Sampler) -> Sampler:
        """The sampler itself."""
        return inner


def fractions(codes: np.ndarray) -> np.ndarray:
    """Return w ÷ bound of each record, in [0, 1], shape (n,): each from its own cell alone, whatever that holds.

    A weight above the bound is 1. One below 0, missing, or no number is 0: the record counts for nothing.
    """
    return np.clip(np.where(np.isnan(codes), 0.0, codes), 0.0, 1.0)


def whole_weights(rows: Mapping[str, Any], column: str, bits: int = WEIGHT_BITS) -> np.ndarray:
    """Return weights as whole numbers k of 2^-bits of the bound, 0 ≤ k ≤ 2^bits, int64, shape (n,).

    Total: what is no number counts for nothing, whatever coded it.
    """
    shares = fractions(np.asarray(rows[column], dtype=np.float64))
    return np.rint(shares * (1 << bits)).astype(np.int64)
