"""Fitting one column's softmax to released cross moments: convex, noise-aware block by block.

    min over W, t:  E[log Σ_run exp(t_k(run) + φ(run)ᵀ W u)] − ⟨W, M⟩ − Σ_k s_k Σ_run t_k(run) P_k(run) + penalty(W)

with u the features of simulated rows' earlier columns, M the released moments E[φ uᵀ] and P the released shares. At
the optimum the model has these shares, and these moments up to what the penalty leaves: for each block of W the norm
c·√(entries)·‖√v∘W‖, v the variance of the entries of M, which leaves c noise deviations (relaxed constraints on moments
are penalties of the dual: Dudík, Phillips and Schapire 2007). Blocks that say nothing stay 0. A small ridge of the size
of the simulation's own error keeps weights finite where moments and simulated rows contradict each other.

At the optimum the value is the entropy of the run given the rows, so it is at least 0 where some law has these moments.
A value below 0 proves that none has: ⟨W, M⟩ is more than any law's. Then M is moved to the nearest moments, in units of
their noise, that these weights do not refute, and fitted again (cutting planes: Kelley 1960).
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
_MOST_CUTS = 3
_LEAST_ENTROPY = 0.02  # nats, to which moments that no law has are moved
_RESTART = 0.5  # of the weights that refuted them
_REACH = 4.0  # logits by which a step of length 1 of a feature's weights moves a run, at most


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
class SoftmaxFit:
    """A fitted softmax, and whether it is one.

    Attributes:
        weights: W, shape (q, m).
        tilts: shape (k, r).
        value: of the objective, in nats: below 0 no law has the moments.
        gradient: largest entry of the objective's, at its end.
        cuts: how often the moments were moved to what laws can have.
    """

    weights: np.ndarray
    tilts: np.ndarray
    value: float
    gradient: float
    cuts: int


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
    base: np.ndarray | None = None,
    tilts: np.ndarray | None = None,
) -> SoftmaxFit:
    """Return the softmax of a column.

    Args:
        rows: simulated.
        moments: released, shrunk.
        values: features of the column's runs, shape (r, q).
        shares: P(run | class), shape (k, r).
        slack: c, noise deviations that are left.
        rounds: most steps.
        score: place of the normal score among the features, if there is one.
        base: weights that are already there, and are added to, shape (q, m).
        tilts: where tilts start, if not at the shares, shape (k, r).
    """
    problem = _Problem.of(rows, moments, values, shares, slack, base)
    x, cuts = problem.start(score, tilts), 0
    while True:
        found = optimize.minimize(
            problem.value_and_gradient,
            x,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": rounds, "maxcor": 15, "ftol": 1e-9, "gtol": 1e-5},
        )
        coefficients, tilts = problem.unpacked(found.x)
        value = float(found.fun) + problem.least
        if value >= 0 or cuts == _MOST_CUTS:
            break
        problem.cut(coefficients, _LEAST_ENTROPY - value)
        x, cuts = problem.packed(_RESTART * coefficients, tilts), cuts + 1
    weights = problem.of_features(coefficients)
    return SoftmaxFit(weights, problem.raked(coefficients, tilts), value, float(np.abs(found.jac).max()), cuts)


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
    base: np.ndarray | None  # (q, m): of whitened features
    starts: np.ndarray  # (k + 1,): where each class's rows begin
    least: float = 0.0  # what the value is above the entropy by, because of the base

    @classmethod
    def of(
        cls,
        rows: SimulatedRows,
        moments: Moments,
        values: np.ndarray,
        shares: np.ndarray,
        slack: float,
        base: np.ndarray | None,
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
        problem = cls(
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
            base=None if base is None else base @ lower,
            starts=np.concatenate([[0], np.cumsum(counts)]),
        )
        if base is not None:
            problem.least = problem.slack_of(base) - float((base * moments.target).sum())
        return problem

    @property
    def shape(self) -> tuple[int, int]:
        return self.target.shape  # type: ignore[return-value]

    @property
    def _scale(self) -> np.ndarray:
        """Steps of tilts: of a rare run's tilt, longer."""
        return 1 / np.sqrt(np.maximum(self.shares * np.maximum(self.class_shares, 1e-3)[:, None], 1e-5))

    @property
    def _reach(self) -> np.ndarray:
        """Steps of a feature's weights: of one that is large somewhere, as a rare label's is, shorter, shape (q, 1)."""
        largest = np.abs(self.values).max(axis=0, initial=0.0).astype(np.float64)
        return np.minimum(1.0, _REACH / np.maximum(largest, _SMALL))[:, None]

    def start(self, score: int | None, tilts: np.ndarray | None) -> np.ndarray:
        """Return where to start: a normal variable's regression on the features, or their linear response."""
        q, m = self.shape
        coefficients = np.zeros((q, m))
        tilts = np.log(self.shares) if tilts is None else tilts
        if self.base is None:
            coefficients = self.target * self._reach
            if score is not None:
                row = self.target[score]
                explained = min(float(row @ row), _MOST_EXPLAINED)
                coefficients[:] = 0.0
                coefficients[score] = row / (1 - explained)
                score_values = self.values[:, score].astype(np.float64)
                tilts = tilts - score_values**2 / 2 * explained / (1 - explained)
        return self.packed(coefficients, tilts)

    def packed(self, coefficients: np.ndarray, tilts: np.ndarray) -> np.ndarray:
        """Return coefficients, shape (q, m), and tilts, shape (k, r), as one vector in units of its steps."""
        return np.concatenate([(coefficients / self._reach).ravel(), (tilts / self._scale).ravel()])

    def unpacked(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients and the tilts of such a vector."""
        q, m = self.shape
        return x[: q * m].reshape(q, m) * self._reach, x[q * m :].reshape(self.shares.shape) * self._scale

    def of_features(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the weights of features, shape (q, m), of those of whitened ones."""
        return linalg.solve_triangular(self.lower, coefficients.T, lower=True, trans=1, check_finite=False).T

    def slack_of(self, weights: np.ndarray) -> float:
        """Return by how much ⟨W, M⟩ may be off within the slack, of weights of features, shape (q, m)."""
        squares = np.bincount(self.groups.ravel(), ((self.deviations * weights) ** 2).ravel(), self.levels.size)
        return float(self.levels @ np.sqrt(squares))

    def cut(self, coefficients: np.ndarray, excess: float) -> None:
        """Move the moments to the nearest, in units of their noise, of which these weights say so much less."""
        whole = coefficients if self.base is None else coefficients + self.base
        direction = self.of_features(whole)
        toward = self.ridge * direction
        length = float((toward * direction).sum())
        moved = linalg.solve_triangular(self.lower, toward.T, lower=True, check_finite=False).T * excess / length
        self.target = self.target - moved
        if self.base is not None:
            self.least += float((self.base * moved).sum())

    def _chances(self, coefficients: np.ndarray, tilts: np.ndarray) -> tuple[np.ndarray, float]:
        """Return P(run) for each row, shape (r, n), and the sum of the logarithms of what they were divided by."""
        whole = coefficients if self.base is None else coefficients + self.base
        predictor = whole.astype(np.float32) @ self.whitened.T
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
        by_weight = (met - self.target + slope) * self._reach
        gradient = np.concatenate([by_weight.ravel(), ((means - wanted) * self._scale).ravel()])
        return value, gradient

    def _penalty(self, coefficients: np.ndarray) -> tuple[float, np.ndarray]:
        weights = self.of_features(coefficients)
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
