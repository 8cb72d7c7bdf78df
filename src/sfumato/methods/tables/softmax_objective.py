"""The objective that a column's softmax is fitted by, its gradient and its curvature, over simulated rows.

    E[log Σ_run exp(t_k(run) + φ(run)ᵀ W u)] − ⟨W, M⟩ − Σ_k s_k Σ_run t_k(run) P_k(run) + penalty(W)

with u the features of simulated rows' earlier columns, M the released moments E[φ uᵀ] and P the released shares. Where
it is least the model has these shares, and these moments up to what the penalty leaves: for each block of W the norm
c·√(entries)·‖√v∘W‖, v the variance of the entries of M, which leaves c noise deviations (relaxed constraints on moments
are penalties of the dual: Dudík, Phillips and Schapire 2007). A small ridge of the size of the simulation's own error
keeps weights finite where moments and simulated rows contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from scipy import linalg

from sfumato.maths.constants import FIT

_FLOOR = 1e-9
_SMALL = 1e-8
_BLOCK = 2_048  # rows whose chances fit a processor's cache
_SAFE_LOGIT = 60.0  # exponentials of this and of its negative are 32-bit numbers
_JITTER, _JITTERS, _LEAST_CURVATURE = 3e-4, 6, 1e-5


@dataclass(frozen=True, slots=True)
class Moments:
    """What one column's predictor is fitted to.

    Attributes:
        target: E[φ uᵀ], shape (q, m).
        variances: of its entries' noise that is left, shape (q, m).
        groups: block of each entry, 0 … b − 1, shape (q, m).
    """

    target: np.ndarray
    variances: np.ndarray
    groups: np.ndarray


@dataclass(frozen=True, slots=True)
class SimulatedRows:
    """What columns are fitted to: features of earlier columns, shape (n, m), float32; classes, shape (n,)."""

    features: np.ndarray
    classes: np.ndarray


@dataclass(frozen=True, slots=True)
class Gradient:
    """An objective's value in nats, and its slopes: by weights, shape (q, m), and by tilts, shape (k, r)."""

    value: float
    by_weights: np.ndarray
    by_tilts: np.ndarray


@dataclass(frozen=True, slots=True)
class Curvature:
    """A square root of the objective's inverse curvature: coordinates in which it is about the same in all directions.

    Attributes:
        joint: of weights and tilts together, shape (qm + kr, qm + kr), or None.
        by_feature: else: of the weights of each of the column's features, shape (q, m, m).
        by_tilt: and of tilts, shape (k, r).
    """

    joint: np.ndarray | None
    by_feature: np.ndarray
    by_tilt: np.ndarray

    def moved(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what weights and tilts move by, of coordinates."""
        q, m, _ = self.by_feature.shape
        if self.joint is not None:
            step = z @ self.joint
            return step[: q * m].reshape(q, m), step[q * m :].reshape(self.by_tilt.shape)
        weights = np.matmul(z[: q * m].reshape(q, 1, m), self.by_feature)[:, 0]
        return weights, z[q * m :].reshape(self.by_tilt.shape) * self.by_tilt

    def slope(self, gradient: Gradient) -> np.ndarray:
        """Return the slope by coordinates."""
        if self.joint is not None:
            return self.joint @ np.concatenate([gradient.by_weights.ravel(), gradient.by_tilts.ravel()])
        weights = np.matmul(self.by_feature, gradient.by_weights[:, :, None])
        return np.concatenate([weights.ravel(), (gradient.by_tilts * self.by_tilt).ravel()])


@dataclass(slots=True)
class Objective:
    """The objective of one column.

    Attributes:
        features: of rows by class, shape (n, m), float32.
        values: features of the column's runs, shape (r, q), float32.
        target: the moments, shape (q, m).
        deviations: of their noise, √v, shape (q, m).
        groups: block of each entry, shape (q, m).
        levels: c·√(entries) of each block, shape (b,).
        ridge: shape (q, m).
        shares: P(run | class), shape (k, r).
        class_shares: of the rows, shape (k,).
        base: weights that are there already and are not penalised, shape (q, m), or None.
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
        """Return the objective of rows, moments, the features of runs, and their shares by class."""
        n = len(rows.features)
        order = np.argsort(rows.classes, kind="stable")
        counts = np.bincount(rows.classes, minlength=len(shares))
        sizes = np.bincount(moments.groups.ravel(), minlength=int(moments.groups.max(initial=-1)) + 1)
        objective = cls(
            features=np.asarray(rows.features, dtype=np.float32)[order],
            values=values.astype(np.float32),
            target=moments.target,
            deviations=np.sqrt(moments.variances),
            groups=moments.groups,
            levels=slack * np.sqrt(sizes),
            ridge=moments.variances + 1 / n,
            shares=np.maximum(shares, _FLOOR),
            class_shares=counts / n,
            base=base,
            starts=np.concatenate([[0], np.cumsum(counts)]),
        )
        if base is not None:
            objective.least = objective.slack_of(base) - float((base * moments.target).sum())
        return objective

    def thinned(self, every: int) -> Self:
        """Return the same objective over some of the rows of each class only."""
        chosen = np.concatenate([np.arange(a, b, every) for a, b in pairwise(self.starts)])
        counts = [len(range(a, b, every)) for a, b in pairwise(self.starts)]
        return replace(
            self,
            features=self.features[chosen],
            class_shares=np.array(counts) / len(chosen),
            starts=np.concatenate([[0], np.cumsum(counts)]),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Q and m."""
        return self.target.shape  # type: ignore[return-value]

    def regression(self) -> np.ndarray:
        """Return the weights of a linear regression with these moments, shape (q, m)."""
        n, m = self.features.shape
        some = self.features[:: max(1, n // max(2 * FIT.curvature_rows, FIT.rows_a_feature * m))]
        second = (some.T @ some).astype(np.float64) / len(some)
        second[np.arange(m), np.arange(m)] += FIT.ridge
        return linalg.solve(second, self.target.T, assume_a="pos", check_finite=False).T

    def slack_of(self, weights: np.ndarray) -> float:
        """Return by how much ⟨W, M⟩ may be off within the slack."""
        return float(self.levels @ np.sqrt(self._squares(weights)))

    def evaluate(self, weights: np.ndarray, tilts: np.ndarray) -> Gradient:
        """Return the value and its slopes at weights, shape (q, m), and tilts, shape (k, r)."""
        n = len(self.features)
        log_total, means, sums = self._sums(weights, tilts)
        wanted = self.shares * self.class_shares[:, None]
        norms = np.sqrt(self._squares(weights) + _SMALL)
        penalty = float(self.levels @ norms + 0.5 * (self.ridge * weights**2).sum())
        slope = self.deviations**2 * weights * (self.levels / norms)[self.groups] + self.ridge * weights
        value = log_total / n - float((weights * self.target).sum()) - float((tilts * wanted).sum()) + penalty
        return Gradient(value, (sums @ self.features) / n - self.target + slope, means - wanted)

    def silent(self, by_weights: np.ndarray) -> bool:
        """Whether weights of 0 are best, where the slope by weights at 0 is this: no block says more than its slack."""
        scaled = np.where(by_weights == 0, 0.0, by_weights / np.maximum(self.deviations, 1e-300))
        squares = np.bincount(self.groups.ravel(), (scaled**2).ravel(), self.levels.size)
        return bool((squares <= self.levels**2).all())

    def raked(self, weights: np.ndarray, tilts: np.ndarray, rounds: int) -> np.ndarray:
        """Return tilts that give the simulated rows just the shares, after at most so many rounds."""
        counts = np.maximum(self.class_shares[:, None], 1e-12)
        present = self.class_shares[:, None] > 0
        for _ in range(rounds):
            _, means, _ = self._sums(weights, tilts)
            if np.abs(means - self.shares * self.class_shares[:, None]).sum() < FIT.raked:
                break
            ratio = np.where(present, self.shares / np.maximum(means / counts, 1e-12), 1.0)
            tilts = tilts + np.clip(np.log(ratio), -FIT.largest_raking, FIT.largest_raking)
        return tilts - tilts.max(axis=1, keepdims=True)

    def curvature(self, weights: np.ndarray, tilts: np.ndarray) -> Curvature:
        """Return the curvature there, by some of the rows."""
        q, m = self.shape
        chosen, classes, shares = self._curvature_rows()
        features = self.features[chosen]
        chances = self._chances(features, classes, weights, tilts)
        of_tilts = _tilt_curvature(chances, classes, shares, len(self.shares))
        smooth = np.sqrt(self._squares(weights) + _SMALL)
        of_penalty = self.deviations**2 * (self.levels / smooth)[self.groups] + self.ridge
        means = self.values.T @ chances
        joint = q * m + of_tilts.shape[0] * of_tilts.shape[1] <= FIT.most_joint
        second = np.zeros((q, q if joint else 1, m, m))
        for a in range(q):
            for b in range(a + 1) if joint else [a]:
                spread = ((self.values[:, a] * self.values[:, b]) @ chances - means[a] * means[b]) * shares
                if a == b:  # a square by itself takes half of the operations of a product
                    half = features * np.sqrt(np.maximum(spread, 0.0))[:, None]
                    second[a, b if joint else 0] = half.T @ half
                    continue
                second[a, b] = (features.T * spread) @ features
                second[b, a] = second[a, b]
        diagonal = np.stack([of_tilts[c].diagonal() for c in range(len(of_tilts))])
        if not joint:
            blocks = second[:, 0]
            blocks[:, np.arange(m), np.arange(m)] += of_penalty
            return Curvature(None, _inverse_root(blocks), 1 / np.sqrt(diagonal + _LEAST_CURVATURE))
        whole = second.transpose(0, 2, 1, 3).reshape(q * m, q * m)
        whole[np.arange(q * m), np.arange(q * m)] += of_penalty.ravel()
        crossed = self._crossed(features, classes, shares, chances, means)
        lower = np.asarray(linalg.block_diag(*of_tilts)) + _LEAST_CURVATURE * np.eye(diagonal.size)
        return Curvature(
            _inverse_root(np.block([[whole, crossed.T], [crossed, lower]])[None])[0], np.empty((q, m, 0)), diagonal
        )

    def _crossed(
        self, features: np.ndarray, classes: np.ndarray, shares: np.ndarray, chances: np.ndarray, means: np.ndarray
    ) -> np.ndarray:
        """Return the curvature between tilts and weights, shape (kr, qm)."""
        q, m = self.shape
        k, r = self.shares.shape
        crossed = np.zeros((k, r, q, m))
        for c in range(k):
            of_class = classes == c
            weighted = features[of_class] * shares[of_class, None]
            for a in range(q):
                apart = chances[:, of_class] * (self.values[:, a][:, None] - means[a][of_class])
                crossed[c, :, a] = apart @ weighted
        return crossed.reshape(k * r, q * m)

    def _squares(self, weights: np.ndarray) -> np.ndarray:
        """Return ‖√v∘W‖² of each block, shape (b,)."""
        return np.bincount(self.groups.ravel(), ((self.deviations * weights) ** 2).ravel(), self.levels.size)

    def _curvature_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return some rows evenly from each class, their classes, and what part of all rows each stands for."""
        counts = np.diff(self.starts)
        most = max(FIT.curvature_rows, FIT.rows_a_feature * self.shape[1])
        many = np.minimum(counts, np.maximum(np.ceil(most * self.class_shares).astype(int), FIT.class_rows))
        rows = [
            a + np.arange(some) * count // max(some, 1)
            for a, count, some in zip(self.starts[:-1], counts, many, strict=True)
        ]
        classes = np.repeat(np.arange(len(counts)), many)
        return np.concatenate(rows), classes, (self.class_shares / np.maximum(many, 1))[classes].astype(np.float32)

    def _chances(self, features: np.ndarray, classes: np.ndarray, weights: np.ndarray, tilts: np.ndarray) -> np.ndarray:
        """Return P(run) of some rows, shape (r, rows)."""
        logits = self.values @ (self._whole(weights) @ features.T) + tilts.astype(np.float32).T[:, classes]
        logits -= logits.max(axis=0)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=0)
        return logits

    def _whole(self, weights: np.ndarray) -> np.ndarray:
        return (weights if self.base is None else weights + self.base).astype(np.float32)

    def _sums(self, weights: np.ndarray, tilts: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return Σ log Σ exp over rows, mean chances by class, shape (k, r), and E[φ | row], shape (q, n).

        Runs come before rows: sums over few runs are several times as fast along the first axis. Rows come in blocks
        that a processor's cache holds.
        """
        n, (q, _) = len(self.features), self.shape
        predictor = np.ones((q + 1, n), dtype=np.float32)
        predictor[:q] = self._whole(weights) @ self.features.T
        reach = np.abs(predictor[:q]).max(axis=1, initial=0.0) @ np.abs(self.values).max(axis=0, initial=0.0)
        largest_tilts = tilts.max(axis=1)
        log_total, means = float(largest_tilts @ np.diff(self.starts)), np.zeros(tilts.shape)
        ones = np.ones((len(self.values), 1), dtype=np.float32)
        summed = np.concatenate([self.values, ones], axis=1).T
        for c, (first, last) in enumerate(pairwise(self.starts)):
            tilt = (tilts[c] - largest_tilts[c]).astype(np.float32)
            tilted = np.concatenate([self.values, tilt[:, None]], axis=1)
            for a in range(first, last, _BLOCK):
                b = min(a + _BLOCK, last)
                chances = tilted @ predictor[:, a:b]
                if reach > _SAFE_LOGIT:
                    largest = chances.max(axis=0)
                    chances -= largest
                    log_total += float(largest.sum(dtype=np.float64))
                np.exp(chances, out=chances)
                sums = summed @ chances
                total = sums[q].copy()
                log_total += float(np.log(total).sum(dtype=np.float64))
                means[c] += chances @ (1 / total)
                predictor[:, a:b] = sums / total
        return log_total, means / n, predictor[:q]


def _tilt_curvature(chances: np.ndarray, classes: np.ndarray, shares: np.ndarray, k: int) -> np.ndarray:
    """Return the curvature by each class's tilts, shape (k, r, r)."""
    of_tilts = []
    for c in range(k):
        own = chances[:, classes == c]
        weighted = own * shares[classes == c]
        of_tilts.append(np.diag(weighted.sum(axis=1)) - weighted @ own.T)
    return np.array(of_tilts, dtype=np.float64)


def _inverse_root(matrices: np.ndarray) -> np.ndarray:
    """Return L⁻¹ of matrices L Lᵀ, shape (b, d, d), whose diagonals grow until they have one.

    Where rounding has left nothing of a matrix but its diagonal, this is what the coordinates rest on.
    """
    places = np.arange(matrices.shape[-1])
    for power in range(_JITTERS if np.isfinite(matrices).all() else 0):
        raised = matrices.copy()
        raised[..., places, places] *= 1 + _JITTER * 10**power
        raised[..., places, places] += _SMALL
        try:
            roots = np.linalg.cholesky(raised)
        except np.linalg.LinAlgError:
            continue
        (invert,) = linalg.get_lapack_funcs(("trtri",), (roots,))
        return np.stack([invert(root, lower=1)[0] for root in roots])
    diagonal = np.nan_to_num(matrices[..., places, places], nan=1.0, posinf=1.0)
    inverse = np.zeros(matrices.shape)
    inverse[..., places, places] = 1 / np.sqrt(np.maximum(diagonal, _LEAST_CURVATURE))
    return inverse
