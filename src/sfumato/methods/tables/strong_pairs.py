"""Two numbers that say much of each other: their moments are those of a law that the noisy ones could come from.

Noise takes the moments of a near-copy out of what any law has, and a model fitted to such moments goes wrong. Here a
pair is a Gaussian copula with its noisy correlation, from which a softmax moves as far as other moments stand above
their noise. Without noise these are the released moments. Free: uses released values only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.maths.constants import PAIRS
from sfumato.methods.tables.softmax_fit import fit_softmax
from sfumato.methods.tables.softmax_objective import Moments, SimulatedRows
from sfumato.models.tables.softmax_draws import probabilities


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric column.

    Attributes:
        shares: P(run), shape (r,).
        values: features of its runs, shape (r, q).
        score: place of the score among them.
    """

    shares: np.ndarray
    values: np.ndarray
    score: int


def feasible_moments(
    first: Number, second: Number, released: np.ndarray, variances: np.ndarray, groups: np.ndarray, correlation: float
) -> np.ndarray:
    """Return E[φ₁ φ₂ᵀ] of a law near the released moments, shape (q₁, q₂).

    Args:
        first: drawn given the second.
        second: another column.
        released: noisy moments, shape (q₁, q₂).
        variances: of their noise, the same shape.
        groups: block of each, whole numbers from 0.
        correlation: of the scores.
    """
    n_rows = PAIRS.pair_rows
    ends = np.cumsum(second.shares / second.shares.sum())
    runs = np.minimum(np.searchsorted(ends, (np.arange(n_rows) + 0.5) / n_rows), ends.size - 1)
    features = second.values[runs].astype(np.float32)
    classes = np.zeros(n_rows, dtype=np.int64)
    own = first.values[:, first.score]
    explained = correlation**2
    base = np.zeros((first.values.shape[1], features.shape[1]))
    base[first.score, second.score] = correlation / (1 - explained)
    table = first.shares[None] / first.shares.sum()
    tilts = np.log(np.maximum(table, 1e-9)) - own**2 / 2 * explained / (1 - explained)
    fit = fit_softmax(
        SimulatedRows(features, classes),
        Moments(released, variances, groups),
        first.values,
        table,
        slack=PAIRS.pair_slack,
        tolerance=PAIRS.pair_tolerance,
        score=None,
        base=base,
        tilts=tilts,
    )
    chances = probabilities(features @ (base + fit.weights).T.astype(np.float32), first.values, fit.tilts, classes)
    return (chances.astype(np.float64) @ first.values).T @ features / n_rows
