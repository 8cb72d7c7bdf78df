"""Weights of records as parts of their public bound: a total map of single cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.columns.kinds import Continuous
from sfumato.io.chunks import Column


def fractions(kind: Continuous, cells: Column, missing: Sequence[str]) -> np.ndarray:
    """Return w ÷ bound of each record, in [0, 1], shape (n,): each from its own cell alone, whatever that holds.

    A weight above the bound is 1. One below 0, missing, or no number is 0: the record counts for nothing.

    Args:
        kind: numbers from 0 to the bound, nullable.
        cells: of the column of weights.
        missing: texts that stand for no value.
    """
    codes = kind.code(cells, missing=missing)
    return np.clip(np.where(np.isnan(codes), 0.0, codes), 0.0, 1.0)
