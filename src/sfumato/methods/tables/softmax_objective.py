"""The objective that a column's softmax is fitted by, and its gradient, over simulated rows.

    E[log Σ_run exp(t_k(run) + φ(run)ᵀ W u)] − ⟨W, M⟩ − Σ_k s_k Σ_run t_k(run) P_k(run) + penalty(W)

with u the features of simulated rows' earlier columns, M the released moments E[φ uᵀ] and P the released shares. Where
it is least the model has these shares, and these moments up to what the penalty leaves: for each block of W the norm
c·√(entries)·‖√v∘W‖, v the variance of the entries of M, which leaves c noise deviations (relaxed constraints on moments
are penalties of the dual: Dudík, Phillips and Schapire 2007). A small ridge of the size of the simulation's own error
keeps weights finite where moments and simulated rows contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from sfumato.maths.constants import FIT

_FLOOR = 1e-9
_SMALL = 1e-8
_BLOCK = 2_048  # rows whose chances fit a processor's cache
_SAFE_LOGIT = 60.0  # exponentials of this and of its negative are 32-bit numbers


@dataclass(frozen=True, slots=True)
class Moments:
    """What one column's predictor is fitted to.

    Attributes:
        target: E[φ uᵀ], shape (q, m).
        variances: of its entries' noise that is left, shape (q, m).
        groups: block of each entry, 0 … b − 1, shape (q, m).
        beyond: ⟨W, M⟩ of weights that a base has of other features.
    """

    target: np.ndarray
    variances: np.ndarray
    groups: np.ndarray
    beyond: float = 0.0


@dataclass(frozen=True, slots=True)
class SimulatedRows:
    """What columns are fitted to.

    Attributes:
        features: of earlier columns, shape (n, m), float32; best a feature's values together.
        classes: shape (n,).
    """

    features: np.ndarray
    classes: np.ndarray

    def by_class(self, k: int) -> list[np.ndarray]:
        """Return the features of each class's rows, where these come in order of their classes."""
        ends = np.searchsorted(self.classes, np.arange(k + 1))
        return [self.features[first:last] for first, last in pairwise(ends)]


@dataclass(frozen=True, slots=True)
class Gradient:
    """What an objective is at some weights and tilts.

    Attributes:
        value: in nats.
        by_weights: its slope, shape (q, m).
        by_tilts: its slope, shape (k, r).
        means: E[φ | row], and below them E[|φ|² | row], shape (q + 1, n).
    """

    value: float
    by_weights: np.ndarray
    by_tilts: np.ndarray
    means: np.ndarray


@dataclass(slots=True)
class Objective:
    """The objective of one column.

    Attributes:
        features: of rows by class, shape (n, m), float32, a feature's together.
        values: features of the column's runs, shape (r, q), float32.
        target: the moments, shape (q, m).
        deviations: of their noise, √v, shape (q, m).
        groups: block of each entry, shape (q, m).
        levels: c·√(entries) of each block, shape (b,).
        ridge: shape (q, m).
        shares: P(run | class), shape (k, r).
        class_shares: of the rows, shape (k,).
        base: weights that are there already and are not penalised, shape (p, m), or None; the first q rows of these
            are of the features that weights are of.
        drawn: features of the runs that the base has weights of, shape (r, p), float32.
        starts: where each class's rows begin, shape (k + 1,).
        least: what the value is above the entropy by, because of the base.
    """

    features: np.ndarray
    values: np.ndarray
    target: np.ndarray
    deviations: np.ndarray
    groups: np.ndarray
    levels: np.ndarray
    ridge: np.ndarray
    shares: np.ndarray
    class_shares: np.ndarray
    base: np.ndarray | None
    drawn: np.ndarray
    starts: np.ndarray
    least: float = 0.0

    @classmethod
    def of(
        cls,
        rows: SimulatedRows,
        moments: Moments,
        values: np.ndarray,
        shares: np.ndarray,
        slack: float,
        base: np.ndarray | None,
    ) -> Self:
        """Return the objective of rows, moments, the features of runs, and their shares by class.

        Where the moments are of the first features alone, the others have what weights the base has.
        """
        n = len(rows.features)
        features = np.asfortranarray(rows.features, dtype=np.float32)
        if (np.diff(rows.classes) < 0).any():
            features = features.T[:, np.argsort(rows.classes, kind="stable")].T
        counts = np.bincount(rows.classes, minlength=len(shares))
        sizes = np.bincount(moments.groups.ravel(), minlength=int(moments.groups.max(initial=-1)) + 1)
        objective = cls(
            features=features,
            values=values[:, : len(moments.target)].astype(np.float32),
            target=moments.target,
            deviations=np.sqrt(moments.variances),
            groups=moments.groups,
            levels=slack * np.sqrt(sizes),
            ridge=moments.variances + 1 / n,
            shares=np.maximum(shares, _FLOOR),
            class_shares=counts / n,
            base=base,
            drawn=values.astype(np.float32),
            starts=np.concatenate([[0], np.cumsum(counts)]),
        )
        if base is not None:
            own = base[: len(moments.target)]
            objective.least = objective.slack_of(own) - float((own * moments.target).sum()) - moments.beyond
        return objective

    @property
    def shape(self) -> tuple[int, int]:
        """Q and m."""
        return self.target.shape  # type: ignore[return-value]

    def slack_of(self, weights: np.ndarray) -> float:
        """Return by how much ⟨W, M⟩ may be off within the slack."""
        return float(self.levels @ np.sqrt(self._squares(weights)))

    def evaluate(self, weights: np.ndarray, tilts: np.ndarray) -> Gradient:
        """Return the value and its slopes at weights, shape (q, m), and tilts, shape (k, r)."""
        n = len(self.features)
        log_total, shares, means = self._sums(self._predictor(weights), tilts)
        wanted = self.shares * self.class_shares[:, None]
        norms = np.sqrt(self._squares(weights) + _SMALL)
        penalty = float(self.levels @ norms + 0.5 * (self.ridge * weights**2).sum())
        slope = self.deviations**2 * weights * (self.levels / norms)[self.groups] + self.ridge * weights
        value = log_total / n - float((weights * self.target).sum()) - float((tilts * wanted).sum()) + penalty
        moments = (self.features.T @ means[:-1].T).T / n  # several times as fast as the other way about
        return Gradient(value, moments - self.target + slope, shares - wanted, means)

    def penalty_curvature(self, weights: np.ndarray) -> np.ndarray:
        """Return what the penalty bends by, shape (q, m): along a block less, and taken as across it."""
        norms = np.sqrt(self._squares(weights) + _SMALL)
        return self.deviations**2 * (self.levels / norms)[self.groups] + self.ridge

    def silent(self, by_weights: np.ndarray) -> bool:
        """Whether weights of 0 are best, where the slope by weights at 0 is this: no block says more than its slack."""
        scaled = np.where(by_weights == 0, 0.0, by_weights / np.maximum(self.deviations, 1e-300))
        squares = np.bincount(self.groups.ravel(), (scaled**2).ravel(), self.levels.size)
        return bool((squares <= self.levels**2).all())

    def raked(self, weights: np.ndarray, tilts: np.ndarray, rounds: int) -> np.ndarray:
        """Return tilts that give the simulated rows just the shares, after at most so many rounds."""
        counts = np.maximum(self.class_shares[:, None], 1e-12)
        present, predictor = self.class_shares[:, None] > 0, self._predictor(weights)
        for _ in range(rounds):
            _, means, _ = self._sums(predictor, tilts)
            if np.abs(means - self.shares * self.class_shares[:, None]).sum() < FIT.raked:
                break
            ratio = np.where(present, self.shares / np.maximum(means / counts, 1e-12), 1.0)
            tilts = tilts + np.clip(np.log(ratio), -FIT.largest_raking, FIT.largest_raking)
        return tilts - tilts.max(axis=1, keepdims=True)

    def _squares(self, weights: np.ndarray) -> np.ndarray:
        """Return ‖√v∘W‖² of each block, shape (b,)."""
        return np.bincount(self.groups.ravel(), ((self.deviations * weights) ** 2).ravel(), self.levels.size)

    def chances(self, features: np.ndarray, starts: np.ndarray, weights: np.ndarray, tilts: np.ndarray) -> np.ndarray:
        """Return P(run) of some rows by class, shape (r, rows), where classes start at these rows."""
        logits = self.drawn @ (self._whole(weights) @ features.T)
        logits += np.repeat(tilts.astype(np.float32).T, np.diff(starts), axis=1)
        logits -= logits.max(axis=0)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=0)
        return logits

    def _whole(self, weights: np.ndarray) -> np.ndarray:
        if self.base is None:
            return weights.astype(np.float32)
        whole = self.base.copy()
        whole[: len(weights)] += weights
        return whole.astype(np.float32)

    def _predictor(self, weights: np.ndarray) -> np.ndarray:
        """Return W u of each row, the base's W too, shape (p, n)."""
        return self._whole(weights) @ self.features.T

    def _sums(self, predictor: np.ndarray, tilts: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return Σ log Σ exp over rows, mean chances by class, shape (k, r), and means of each row as in a gradient.

        Runs come before rows: sums over few runs are several times as fast along the first axis. Rows come in blocks
        that a processor's cache holds.
        """
        q, n = self.values.shape[1], predictor.shape[1]
        reach = np.abs(predictor).max(axis=1, initial=0.0) @ np.abs(self.drawn).max(axis=0, initial=0.0)
        largest_tilts = tilts.max(axis=1)
        log_total, shares = float(largest_tilts @ np.diff(self.starts)), np.zeros(tilts.shape)
        squares = (self.values**2).sum(axis=1, keepdims=True)
        summed = np.concatenate([self.values, squares, np.ones_like(squares)], axis=1).T
        means = np.empty((q + 1, n), dtype=np.float32)
        for c, (first, last) in enumerate(pairwise(self.starts)):
            tilt = (tilts[c] - largest_tilts[c]).astype(np.float32)[:, None]
            for a in range(first, last, _BLOCK):
                b = min(a + _BLOCK, last)
                chances = self.drawn @ predictor[:, a:b]
                chances += tilt
                if reach > _SAFE_LOGIT:
                    largest = chances.max(axis=0)
                    chances -= largest
                    log_total += float(largest.sum(dtype=np.float64))
                np.exp(chances, out=chances)
                sums = summed @ chances
                log_total += float(np.log(sums[-1]).sum(dtype=np.float64))
                part = 1 / sums[-1]
                shares[c] += chances @ part
                np.multiply(sums[:-1], part, out=means[:, a:b])
        return log_total, shares / n, means
