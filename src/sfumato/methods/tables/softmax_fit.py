"""Fitting one column's softmax to released cross moments: convex, noise-aware block by block.

    min over W, t:  E[log Σ_run exp(t_k(run) + φ(run)ᵀ W u)] − ⟨W, M⟩ − Σ_k s_k Σ_run t_k(run) P_k(run) + penalty(W)

with u the features of simulated rows' earlier columns, M the released moments E[φ uᵀ] and P the released shares. At
the optimum the model has these shares, and these moments up to what the penalty leaves: for each block of W the norm
c·√(entries)·‖√v∘W‖, v the variance of the entries of M, which leaves c noise deviations (relaxed constraints on moments
are penalties of the dual: Dudík, Phillips and Schapire 2007). Blocks that say nothing stay 0. A small ridge of the size
of the simulation's own error keeps weights finite where moments and simulated rows contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import linalg, optimize

_FLOOR = 1e-9
_RIDGE = 0.01
_RAKING_ROUNDS = 4
_SMALL = 1e-8
_MOST_EXPLAINED = 0.99


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


@np.errstate(over="ignore", under="ignore", invalid="ignore")  # invalid: some libraries say so of finite numbers
def fit_softmax(
    rows: SimulatedRows,
    moments: Moments,
    values: np.ndarray,
    shares: np.ndarray,
    *,
    slack: float,
    rounds: int,
    score: int | None,
    offset: np.ndarray | None = None,
    tilts: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return W, shape (q, m), and tilts, shape (k, r).

    Args:
        rows: simulated.
        moments: released, shrunk.
        values: features of the column's runs, shape (r, q).
        shares: P(run | class), shape (k, r).
        slack: c, noise deviations that are left.
        rounds: most steps.
        score: place of the normal score among the features, if there is one.
        offset: predictor that is already there, shape (n, q).
        tilts: where tilts start, if not at the shares, shape (k, r).
    """
    problem = _Problem.of(rows, moments, values, shares, slack, offset)
    start = problem.start(score, tilts)
    found = optimize.minimize(
        problem.value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": rounds, "maxcor": 15, "ftol": 1e-9, "gtol": 1e-5},
    )
    coefficients, tilts = problem.unpacked(found.x)
    weights = linalg.solve_triangular(problem.lower, coefficients.T, lower=True, trans=1).T
    return weights, problem.raked(coefficients, tilts)


@dataclass(slots=True)
class _Problem:
    whitened: np.ndarray  # (n, m) float32
    lower: np.ndarray  # (m, m): features = whitened @ lower.T
    values: np.ndarray  # (r, q) float32
    target: np.ndarray  # (q, m): of whitened features
    deviations: np.ndarray  # (q, m): √v of features
    groups: np.ndarray
    levels: np.ndarray  # (b,): c·√entries
    ridge: np.ndarray  # (q, m)
    shares: np.ndarray  # (k, r)
    class_shares: np.ndarray
    offset: np.ndarray | None
    starts: np.ndarray  # (k + 1,): where each class's rows begin

    @classmethod
    def of(
        cls,
        rows: SimulatedRows,
        moments: Moments,
        values: np.ndarray,
        shares: np.ndarray,
        slack: float,
        offset: np.ndarray | None,
    ) -> _Problem:
        n, m = rows.features.shape
        order = np.argsort(rows.classes, kind="stable")
        features, classes = rows.features[order], rows.classes[order]
        second = (features.T @ features).astype(np.float64) / n
        second[np.arange(m), np.arange(m)] += _RIDGE
        lower = linalg.cholesky(second, lower=True)
        inverse = linalg.solve_triangular(lower, np.eye(m), lower=True).T
        counts = np.bincount(classes, minlength=len(shares))
        sizes = np.bincount(moments.groups.ravel(), minlength=int(moments.groups.max(initial=-1)) + 1)
        return cls(
            whitened=features @ inverse.astype(np.float32),
            lower=lower,
            values=values.astype(np.float32),
            target=moments.target @ inverse,
            deviations=np.sqrt(moments.variances),
            groups=moments.groups,
            levels=slack * np.sqrt(sizes),
            ridge=moments.variances + 1 / n,
            shares=np.maximum(shares, _FLOOR),
            class_shares=counts / n,
            offset=None if offset is None else offset[order].astype(np.float32),
            starts=np.concatenate([[0], np.cumsum(counts)]),
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.target.shape  # type: ignore[return-value]

    @property
    def _scale(self) -> np.ndarray:
        """Steps of tilts: of a rare run's tilt, longer."""
        return 1 / np.sqrt(np.maximum(self.shares * np.maximum(self.class_shares, 1e-3)[:, None], 1e-5))

    def start(self, score: int | None, tilts: np.ndarray | None) -> np.ndarray:
        """Return where to start: a normal variable's regression on the features, or their linear response."""
        q, m = self.shape
        coefficients = np.zeros((q, m))
        tilts = np.log(self.shares) if tilts is None else tilts
        if self.offset is None:
            coefficients = self.target.copy()
            if score is not None:
                row = self.target[score]
                explained = min(float(row @ row), _MOST_EXPLAINED)
                coefficients[:] = 0.0
                coefficients[score] = row / (1 - explained)
                score_values = self.values[:, score].astype(np.float64)
                tilts = tilts - score_values**2 / 2 * explained / (1 - explained)
        return np.concatenate([coefficients.ravel(), (tilts / self._scale).ravel()])

    def unpacked(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, m = self.shape
        return x[: q * m].reshape(q, m), x[q * m :].reshape(self.shares.shape) * self._scale

    def _chances(self, coefficients: np.ndarray, tilts: np.ndarray) -> tuple[np.ndarray, float]:
        """Return P(run) for each row, shape (r, n), and the sum of the logarithms of what they were divided by."""
        predictor = coefficients.astype(np.float32) @ self.whitened.T
        if self.offset is not None:
            predictor += self.offset.T
        # runs before rows: sums over few runs are several times as fast along the first axis
        logits = self.values @ predictor
        tilts32 = tilts.astype(np.float32)
        for k in range(len(tilts)):
            logits[:, self.starts[k] : self.starts[k + 1]] += tilts32[k][:, None]
        largest = logits.max(axis=0)
        logits -= largest
        np.exp(logits, out=logits)
        total = logits.sum(axis=0)
        logits /= total
        return logits, float(np.log(total).sum(dtype=np.float64) + largest.sum(dtype=np.float64))

    def _class_sums(self, chances: np.ndarray) -> np.ndarray:
        """Return the sum over each class's rows, shape (k, r)."""
        return np.array([chances[:, a:b].sum(axis=1) for a, b in pairwise(self.starts)])

    def value_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        coefficients, tilts = self.unpacked(x)
        n = len(self.whitened)
        chances, log_total = self._chances(coefficients, tilts)
        met = (self.values.T @ chances) @ self.whitened / n
        means = self._class_sums(chances) / n
        wanted = self.shares * self.class_shares[:, None]
        penalty, slope = self._penalty(coefficients)
        value = log_total / n - float((coefficients * self.target).sum()) - float((tilts * wanted).sum()) + penalty
        gradient = np.concatenate([(met - self.target + slope).ravel(), ((means - wanted) * self._scale).ravel()])
        return value, gradient

    def _penalty(self, coefficients: np.ndarray) -> tuple[float, np.ndarray]:
        weights = linalg.solve_triangular(self.lower, coefficients.T, lower=True, trans=1, check_finite=False).T
        scaled = self.deviations * weights
        norms = np.sqrt(np.bincount(self.groups.ravel(), (scaled**2).ravel(), self.levels.size) + _SMALL)
        slope = self.deviations * scaled * (self.levels / norms)[self.groups] + self.ridge * weights
        whitened = linalg.solve_triangular(self.lower, slope.T, lower=True, check_finite=False).T
        return float(self.levels @ norms + 0.5 * (self.ridge * weights**2).sum()), whitened

    def raked(self, coefficients: np.ndarray, tilts: np.ndarray) -> np.ndarray:
        """Return tilts that give the simulated rows just the shares."""
        counts = np.maximum(np.diff(self.starts), 1)[:, None]
        for _ in range(_RAKING_ROUNDS):
            chances, _ = self._chances(coefficients, tilts)
            means = self._class_sums(chances)
            seen = np.diff(self.starts)[:, None] > 0
            ratio = np.where(seen, self.shares / np.maximum(means / counts, 1e-12), 1.0)
            tilts = tilts + np.clip(np.log(ratio), -3.0, 3.0)
        return tilts - tilts.max(axis=1, keepdims=True)
