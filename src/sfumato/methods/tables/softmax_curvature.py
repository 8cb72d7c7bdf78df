"""The curvature of a softmax's objective, in whose metric its steps are taken.

Weights bend the objective unevenly: by tens of thousands where a block says less than its slack, hardly at all where
rows leave no doubt. A row counts by how much it leaves open: where nearly all rows are sure of their run, few of them
have all of the curvature, and these are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import linalg

from sfumato.maths.constants import FIT
from sfumato.methods.tables.softmax_objective import Gradient, Objective

_cholesky, _solve = linalg.get_lapack_funcs(("potrf", "potrs"), dtype=np.float32)
_JITTER, _JITTERS, _SMALL, _LEAST_CURVATURE = 3e-4, 6, 1e-8, 1e-5


@dataclass(frozen=True, slots=True)
class Curvature:
    """A curvature of weights and tilts, block by block along its diagonal.

    Attributes:
        factors: the Cholesky factor of each block, lower triangles, float32.
    """

    factors: tuple[np.ndarray, ...]

    def solved(self, slope: np.ndarray) -> np.ndarray:
        """Return the inverse curvature times a slope by weights and tilts, shape (qm + kr,)."""
        slope, start = slope.astype(np.float32), 0
        solution = np.empty_like(slope)
        for factor in self.factors:
            stop = start + len(factor)
            solution[start:stop] = _solve(factor, slope[start:stop], lower=1)[0]
            start = stop
        return solution.astype(np.float64)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some rows, by class.

    Attributes:
        features: shape (n, m), float32.
        chances: P(run), shape (r, n).
        means: E[φ | row], shape (q, n).
        shares: what part of all rows each stands for, shape (n,).
        starts: where each class's rows begin, shape (k + 1,).
    """

    features: np.ndarray
    chances: np.ndarray
    means: np.ndarray
    shares: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, objective: Objective, weights: np.ndarray, tilts: np.ndarray, odds: np.ndarray) -> _Rows:
        """Return as many rows as the features need, evenly by their odds, shape (n,)."""
        n, m = objective.features.shape
        some = min(n, max(FIT.curvature_rows, FIT.rows_a_feature * m))
        ends = np.cumsum(odds, dtype=np.float64)
        places = np.searchsorted(ends, (np.arange(some) + 0.5) / some * ends[-1])
        rows, counts = np.unique(np.minimum(places, n - 1), return_counts=True)
        shares = (counts * ends[-1] / (some * n * odds[rows])).astype(np.float32)
        starts = np.searchsorted(rows, objective.starts)
        features = np.asfortranarray(objective.features[rows])
        chances = objective.chances(features, starts, weights, tilts)
        return cls(features, chances, objective.values.T @ chances, shares, starts)

    def of_tilts(self) -> Iterator[np.ndarray]:
        """Yield the curvature by each class's tilts, shape (r, r)."""
        for first, last in pairwise(self.starts):
            own = self.chances[:, first:last]
            weighted = own * self.shares[first:last]
            curvature = np.diag(weighted.sum(axis=1)) - weighted @ own.T
            yield curvature + _LEAST_CURVATURE * np.eye(len(own), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class ProductCurvature:
    """A curvature of many weights and tilts together, by its products alone (conjugate gradients).

    Attributes:
        rows: that have it.
        values: features of the column's runs, shape (r, q), float32.
        penalty: what is added along the diagonal of weights, shape (q, m).
        near: a curvature like it, whose inverse is known.
    """

    rows: _Rows
    values: np.ndarray
    penalty: np.ndarray
    near: Curvature

    def solved(self, slope: np.ndarray) -> np.ndarray:
        """Return about the inverse curvature times a slope by weights and tilts, shape (qm + kr,)."""
        solution, rest = np.zeros_like(slope), slope
        direction = step = self.near.solved(rest)
        first = size = float(rest @ step)
        for _ in range(FIT.products):
            product = self._product(direction)
            if not (bend := float(direction @ product)) > 0:  # by rounding
                return solution if solution.any() else direction
            part = size / bend
            solution, rest = solution + part * direction, rest - part * product
            step, before = self.near.solved(rest), size
            size = float(rest @ step)
            if not FIT.left_by_products * first < size < np.inf:
                break
            direction = step + size / before * direction
        return solution

    def _product(self, direction: np.ndarray) -> np.ndarray:
        """Return the curvature times a direction, shape (qm + kr,)."""
        rows, size = self.rows, self.penalty.size
        by_weights, by_tilts = (
            direction[:size].reshape(self.penalty.shape),
            direction[size:].reshape(-1, len(self.values)),
        )
        logits = self.values @ (by_weights.astype(np.float32) @ rows.features.T)
        logits += np.repeat(by_tilts.astype(np.float32).T, np.diff(rows.starts), axis=1)
        logits -= np.einsum("rn,rn->n", rows.chances, logits)
        logits *= rows.chances
        logits *= rows.shares
        weights = (rows.features.T @ (self.values.T @ logits).T).T + self.penalty * by_weights
        tilts = [logits[:, first:last].sum(axis=1) for first, last in pairwise(rows.starts)]
        return np.concatenate([weights.ravel(), (tilts + _LEAST_CURVATURE * by_tilts).ravel()])


def rough_curvature(objective: Objective, weights: np.ndarray, tilts: np.ndarray) -> Curvature:
    """Return the curvature as it is where every row leaves as much open: of weights 0, about exact."""
    rows = _Rows.of(objective, weights, tilts, np.ones(len(objective.features), dtype=np.float32))
    half = rows.features * np.sqrt(rows.shares)[:, None]
    second = half.T @ half / rows.shares.sum()
    spreads = _variances(objective, rows) @ rows.shares
    blocks = [spread * second for spread in spreads]
    return _by_blocks(objective, weights, rows, blocks)


def exact_curvature(
    objective: Objective, weights: np.ndarray, tilts: np.ndarray, gradient: Gradient
) -> Curvature | ProductCurvature:
    """Return the curvature of weights and tilts together there, by rows that leave much open."""
    open_part = np.maximum(gradient.means[-1] - (gradient.means[:-1] ** 2).sum(axis=0), 0.0)
    odds = open_part * np.einsum("ij,ij->i", objective.features, objective.features)
    odds = odds / max(float(odds.mean()), _SMALL) + FIT.even_odds
    rows = _Rows.of(objective, weights, tilts, odds)
    if objective.target.size + objective.shares.size <= FIT.most_joint:
        return Curvature((_factor(_joint(objective, weights, rows)),))
    variances = _variances(objective, rows) * rows.shares
    halves = (rows.features * np.sqrt(variance)[:, None] for variance in variances)
    near = _by_blocks(objective, weights, rows, [half.T @ half for half in halves])
    return ProductCurvature(rows, objective.values, objective.penalty_curvature(weights), near)


def _variances(objective: Objective, rows: _Rows) -> np.ndarray:
    """Return the variance of each of the column's features in each row, shape (q, n)."""
    return np.maximum((objective.values**2).T @ rows.chances - rows.means**2, 0.0)


def _by_blocks(objective: Objective, weights: np.ndarray, rows: _Rows, blocks: list[np.ndarray]) -> Curvature:
    """Return the curvature of blocks of weights with that of their penalty, and of tilts."""
    penalties, factors = objective.penalty_curvature(weights), []
    for block, penalty in zip(blocks, penalties, strict=True):
        factors.append(_factor(block + np.diag(penalty.astype(np.float32))))
    return Curvature((*factors, *(_factor(block) for block in rows.of_tilts())))


def _joint(objective: Objective, weights: np.ndarray, rows: _Rows) -> np.ndarray:
    """Return the lower triangle of the curvature of weights and tilts together, shape (qm + kr, qm + kr)."""
    (q, m), values, n = objective.shape, objective.values, len(rows.features)
    r, size = len(values), q * m + objective.shares.size
    whole = np.zeros((size, size), dtype=np.float32)
    by_feature = whole[: q * m, : q * m].reshape(q, m, q, m)
    for a in range(q):
        spreads = ((values[:, a, None] * values[:, a:]).T @ rows.chances - rows.means[a] * rows.means[a:]) * rows.shares
        weighted = (spreads.T[:, :, None] * rows.features[:, None, :]).reshape(n, -1)
        by_feature[a:, :, a] = (weighted.T @ rows.features).reshape(q - a, m, m)
    whole[np.arange(q * m), np.arange(q * m)] += objective.penalty_curvature(weights).ravel()
    parts = np.concatenate([rows.shares[None], rows.means * rows.shares])
    weighted = (parts.T[:, :, None] * rows.features[:, None, :]).reshape(n, -1)
    for c, (block, (first, last)) in enumerate(zip(rows.of_tilts(), pairwise(rows.starts), strict=True)):
        here = slice(q * m + c * r, q * m + (c + 1) * r)
        crossed = (rows.chances[:, first:last] @ weighted[first:last]).reshape(r, q + 1, m)
        whole[here, : q * m] = (values[:, :, None] * crossed[:, :1] - crossed[:, 1:]).reshape(r, -1)
        whole[here, here] = block
    return whole


def _factor(matrix: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor of a matrix by its lower triangle, whose diagonal grows until it has one.

    Where rounding has left nothing of a matrix but its diagonal, this is what steps rest on.
    """
    diagonal = matrix.diagonal().copy()
    places = np.arange(len(matrix))
    for power in range(_JITTERS if np.isfinite(matrix).all() else 0):
        matrix[places, places] = diagonal * (1 + _JITTER * 10**power) + _SMALL
        factor, fault = _cholesky(matrix, lower=1)
        if not fault:
            return factor
    diagonal = np.nan_to_num(diagonal, nan=1.0, posinf=1.0)
    return np.diag(np.sqrt(np.maximum(diagonal, _LEAST_CURVATURE)))
