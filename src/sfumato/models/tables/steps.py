"""Drawing one column of a chain in one class, given the columns before it; and what makes its marginal right."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, special

from sfumato.models.tables.gaussian_columns import QUANTILES, ClassBlocks, ColumnModel

_RAKING_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Step:
    """What drawing one column in one class needs, precomputed."""

    loading: np.ndarray  # (block start, width): innovations so far → predictor of the block
    whitener: np.ndarray  # (width, width): residual of the block → its innovations
    blocks: ClassBlocks
    probabilities: np.ndarray  # (g,): of the groups
    tilts: np.ndarray  # (g,)
    quantiles: np.ndarray | None  # (257,): of the drawn score
    residual_std: float  # of the score given the columns so far
    order: np.ndarray  # (c,): cells sorted by group
    cumulative: np.ndarray  # (c,): of the cells' probabilities in that order
    bounds: np.ndarray  # (g + 1,): cumulative probability at the groups' ends

    @classmethod
    def of(cls, column: ColumnModel, k: int, factor: np.ndarray, block: slice) -> Step:
        """Read it off a column, the class's factor and the column's slice of the vector."""
        order = np.argsort(column.groups, kind="stable")
        cumulative = np.cumsum(column.probabilities[k][order])
        ends = np.searchsorted(column.groups[order], np.arange(column.n_groups), side="right") - 1
        own = factor[block, block]
        whitener = linalg.solve_triangular(own, np.eye(column.width), lower=True).T
        return cls(
            loading=factor[block, : block.start].T.copy(),
            whitener=whitener,
            blocks=column.class_blocks(k),
            probabilities=np.bincount(column.groups, column.probabilities[k], column.n_groups),
            tilts=column.tilts[k],
            quantiles=None if column.quantiles is None else column.quantiles[k],
            residual_std=float(own[0, 0]) if column.scored else 0.0,
            order=order,
            cumulative=cumulative,
            bounds=np.concatenate([[0.0], cumulative[ends]]),
        )

    def choose(self, predictor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a cell for each predictor, shape (n,)."""
        group = self._group(predictor, rng)
        position = rng.random(predictor.shape[0])
        if self.quantiles is not None:
            score = predictor[:, 0] + self.residual_std * rng.standard_normal(predictor.shape[0])
            ranked = np.interp(score, self.quantiles, QUANTILES)
            position = np.where(group == 0, ranked, position)
        low, high = self.bounds[group], self.bounds[group + 1]
        place = np.searchsorted(self.cumulative, low + position * (high - low), side="right")
        # rounding at a group's upper end must not leave the group
        last = np.searchsorted(self.cumulative, high, side="left")
        return self.order[np.minimum(place, np.minimum(last, self.order.size - 1))]

    def probability(self, predictor: np.ndarray, cell: int) -> float:
        """Return the probability with which `choose` returns a cell for one predictor, shape (1, width)."""
        weights = np.ones(1)
        if self.probabilities.size > 1:
            weights = self._tilted(predictor, self.tilts)[0]
        group = int(self.blocks.groups[cell])
        low, high = self.bounds[group], self.bounds[group + 1]
        place = int(np.flatnonzero(self.order == cell)[0])
        start = self.cumulative[place - 1] if place else 0.0
        if not high > low or not self.cumulative[place] > start:
            return 0.0
        ranks = (np.array([start, self.cumulative[place]]) - low) / (high - low)
        inside = ranks[1] - ranks[0]
        if self.quantiles is not None and group == 0:
            edges = np.interp(ranks, QUANTILES, self.quantiles)
            edges = np.where(ranks <= 0, -np.inf, np.where(ranks >= 1 - 1e-12, np.inf, edges))
            z = (edges - predictor[0, 0]) / self.residual_std
            # in the upper tail the difference of the complements is the exact one
            inside = np.diff(special.ndtr(z))[0] if z[0] < 0 else -np.diff(special.ndtr(-z))[0]
        return float(weights[group] / weights.sum() * inside)

    def _group(self, predictor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        n = predictor.shape[0]
        if self.probabilities.size == 1:
            return np.zeros(n, dtype=np.int64)
        cumulative = np.cumsum(self._tilted(predictor, self.tilts), axis=1)
        draws = rng.random(n) * cumulative[:, -1]
        return np.minimum((cumulative <= draws[:, None]).sum(axis=1), self.probabilities.size - 1)

    def _tilted(self, predictor: np.ndarray, tilts: np.ndarray) -> np.ndarray:
        """Return predicted group probabilities, clipped at 0 and tilted, up to a factor per row."""
        indicators = predictor[:, int(self.quantiles is not None) :]
        weights = np.maximum(self.probabilities + indicators, 0.0) * tilts
        empty = weights.sum(axis=1) <= 0
        weights[empty] = self.probabilities
        return weights

    def calibrated(self, predictor: np.ndarray, rng: np.random.Generator) -> Step:
        """Return the step with tilts and quantiles fitted to these predictors."""
        tilts = (self.probabilities > 0).astype(np.float64)
        if self.probabilities.size > 1:
            for _ in range(_RAKING_ROUNDS):
                weights = self._tilted(predictor, tilts)
                weights /= weights.sum(axis=1, keepdims=True)
                means = weights.mean(axis=0)
                reachable = means > 0
                tilts[reachable] *= self.probabilities[reachable] / means[reachable]
                tilts /= tilts.max()
        quantiles = None
        if self.quantiles is not None:
            score = predictor[:, 0] + self.residual_std * rng.standard_normal(predictor.shape[0])
            quantiles = np.quantile(score, QUANTILES)
        return replace(self, tilts=tilts, quantiles=quantiles)
