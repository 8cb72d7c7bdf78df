"""Laws of two columns that noisy moments could come from: near-copies of numbers, and labels that are kept.

Noise takes the moments of two numbers that say much of each other out of what any law has, and a model fitted to such
moments goes wrong. Here such a pair is a Gaussian copula with its noisy correlation, from which a softmax moves as far
as other moments stand above their noise.

Labels are kept from one column to a later one where a person stays at a place from one row to the next. Of columns of a
hundred labels, each of the ten thousand moments is lost in noise; that a label is often kept shows in all of them
together. So the prior of two such columns is a copy in part: with chance ρ the later label is the earlier one, else it
is drawn apart from it. Single moments move from there as far as they stand above their noise.

Without noise either are the released moments. Free: uses released values only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.maths.constants import PAIRS
from sfumato.maths.gaussian import shrinkage_weight
from sfumato.methods.tables.softmax_fit import fit_softmax
from sfumato.methods.tables.softmax_objective import Moments, SimulatedRows
from sfumato.models.tables.softmax_draws import probabilities

_LEAST_MASS = 1e-12


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
        base=base,
        tilts=tilts,
    )
    chances = probabilities(features @ (base + fit.weights).T.astype(np.float32), first.values, fit.tilts, classes)
    return (chances.astype(np.float64) @ first.values).T @ features / n_rows


@dataclass(frozen=True, slots=True)
class Copy:
    """Two columns of the same labels, of which the later one may be a copy of the earlier.

    Attributes:
        columns: places of both.
        moments: E[φ₁ φ₂ᵀ] if it always were, shape (q₁, q₂).
    """

    columns: tuple[int, int]
    moments: np.ndarray

    @classmethod
    def of(cls, columns: tuple[int, int], shares: np.ndarray, first: np.ndarray, second: np.ndarray) -> Copy:
        """Return two columns whose labels have these shares, shape (c,), and features, shapes (c, q₁) and (c, q₂)."""
        return cls(columns, (first * shares[:, None]).T @ second)

    def kept(self, released: np.ndarray, variances: np.ndarray) -> float:
        """Return ρ, shrunk by its own noise; 0 where that may be all there is.

        The weighted least-squares fit of ρ·`moments` to all moments of both columns.

        Args:
            released: noisy moments, shape (q₁, q₂).
            variances: of their noise, the same shape.
        """
        weights = self.moments / variances
        precision = float((weights * self.moments).sum())
        if precision <= 0:
            return 0.0
        rho = float((weights * released).sum()) / precision
        if rho <= 0 or rho**2 * precision <= PAIRS.copied**2:
            return 0.0
        return min(rho, PAIRS.most_copied) * shrinkage_weight(rho**2, 1 / precision)


def lawful_moments(
    moments: np.ndarray, shares: tuple[np.ndarray, np.ndarray], values: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return the moments of a law near those that were asked for, shape (q₁, q₂). Arguments as of `lawful_table`."""
    return values[0].T @ lawful_table(moments, shares, values) @ values[1]


def lawful_table(
    moments: np.ndarray, shares: tuple[np.ndarray, np.ndarray], values: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return P(a, b) of a law near moments, shape (r₁, r₂), of sum 1.

    P(a, b) = P(a) P(b) (1 + φ₁(a)ᵀ M φ₂(b)) has the moments M and the shares; where it is below 0 it is set to 0, and
    what is left raked to the shares. Moments of a law come back as they are.

    Args:
        moments: M, shape (q₁, q₂).
        shares: of the runs of both columns, shapes (r₁,) and (r₂,).
        values: features of these runs, shapes (r₁, q₁) and (r₂, q₂).
    """
    first, second = (np.maximum(s, 0.0) for s in shares)
    return raked(np.outer(first, second) * (1 + values[0] @ moments @ values[1].T), first, second)


def raked(table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a table, at least 0, with the margins of two columns' shares, shape (r₁, r₂), of sum 1."""
    first, second = first / first.sum(), second / second.sum()
    joint = np.maximum(table, 0.0)
    for _ in range(PAIRS.copy_rounds):
        joint = joint * (first / np.maximum(joint.sum(axis=1), _LEAST_MASS))[:, None]
        joint = joint * (second / np.maximum(joint.sum(axis=0), _LEAST_MASS))
    return joint


def law_weights(law: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights, shape (q₂, q₁), and tilts, shape (r₂,), of a softmax that is P(b | a) of a law.

    log P(a, b) ÷ (P(a) P(b)) is a function of b, one of a, which a softmax does not see, and φ₂(b)ᵀ W φ₁(a): exactly,
    where each column's features tell all of its runs apart; else the nearest.

    Args:
        law: P(a, b), shape (r₁, r₂), of sum 1.
        first: features of the runs of a, shape (r₁, q₁), orthonormal up to a constant each.
        second: the same of b, shape (r₂, q₂).
    """
    shares = law.sum(axis=1), law.sum(axis=0)
    alone = np.outer(*shares)
    logs = np.log(np.maximum(law, _LEAST_MASS) / np.maximum(alone, _LEAST_MASS))
    logs[alone == 0] = 0.0
    first, second = ((v - p @ v) * p[:, None] for v, p in zip((first, second), shares, strict=True))
    return second.T @ logs.T @ first, shares[0] @ logs


def information(law: np.ndarray) -> float:
    """Return how many nats of one column the other says, by a law, shape (r₁, r₂)."""
    alone = np.outer(law.sum(axis=1), law.sum(axis=0))
    here = law > 0
    return float((law[here] * np.log(law[here] / alone[here])).sum())
