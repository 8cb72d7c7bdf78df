"""The softmax of most entropy whose moments with simulated rows are those that are asked for.

    min over a, W   mean log Σ_x m(x) exp(a(x) + f(x)ᵀ Wᵀ g) − ⟨W, C⟩ − a·m + ½ ridge |W|²

g are functions of the rows, f of the column's runs, C their moments and m the runs' shares. Convex: L-BFGS from 0, in
coordinates in which g has about unit covariance. Parts may have rows, functions and ridges of their own.

Free: uses released values only. Reference: Liu and Nocedal 1989 (L-BFGS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.optimize import minimize

from sfumato.maths.constants import DESCENT, VECTORS

_FLOAT = np.float32
_LEAST_LOG = _FLOAT(-30)
_JITTER = 1e-6  # of a covariance whose inverse is taken


@dataclass(frozen=True)
class Predictors:
    """Some of what a column is drawn given.

    Attributes:
        rows: g, centred, shape (n, d).
        functions: f of the column's runs, shape (r, b).
        moments: C, shape (d, b).
        ridge: of the weights.
        squares: mean of g gᵀ, shape (d, d), by default that of the rows.
    """

    rows: np.ndarray
    functions: np.ndarray
    moments: np.ndarray
    ridge: float
    squares: np.ndarray | None = None

    def whitening(self) -> np.ndarray:
        """Return a matrix that brings the rows to about unit covariance, shape (d, d)."""
        squares = self.rows.T @ self.rows / len(self.rows) if self.squares is None else self.squares
        lower = np.linalg.cholesky(squares + (self.ridge + _JITTER) * np.eye(len(squares)))
        return linalg.solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)


class _Objective:
    """The function that is minimised, of W of each part in whitened coordinates and a, in one vector."""

    def __init__(self, parts: Sequence[Predictors], law: np.ndarray) -> None:
        self._root = np.sqrt(np.maximum(law, VECTORS.least_weight))  # single precision sums nothing below
        self._parts, self._law, self._n = parts, law, len(parts[0].rows)
        self._whitenings = [part.whitening() for part in parts]
        self._narrow = [(part.rows.astype(_FLOAT, copy=False), part.functions.astype(_FLOAT)) for part in parts]
        self._ends = np.cumsum([0, *(part.moments.size for part in parts)])
        self._buffer = np.empty((self._n, law.size), dtype=_FLOAT)

    def unpacked(self, v: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """Return W of each part, shapes (d, b), and a, shape (r,)."""
        each = zip(self._parts, self._whitenings, self._ends, strict=False)
        weights = [w.T @ v[start : start + p.moments.size].reshape(p.moments.shape) for p, w, start in each]
        return weights, v[self._ends[-1] :] / self._root

    def __call__(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the value and its slope."""
        (weights, shift), x = self.unpacked(v), self._buffer
        x[:] = (np.log(self._law) + shift).astype(_FLOAT)
        for (rows, functions), own in zip(self._narrow, weights, strict=True):
            x += (rows @ own.astype(_FLOAT)) @ functions.T
        largest = x.max(axis=1, keepdims=True)
        x -= largest
        np.exp(np.maximum(x, _LEAST_LOG, out=x), out=x)
        sums = x.sum(axis=1, keepdims=True)
        x /= sums
        value = float((np.log(sums) + largest).mean(dtype=np.float64)) - float(shift @ self._law)
        slopes = []
        for p, (rows, functions), white, own in zip(self._parts, self._narrow, self._whitenings, weights, strict=True):
            value += p.ridge / 2 * float((own**2).sum()) - float((own * p.moments).sum())
            slope = (rows.T @ (x @ functions)).astype(np.float64) / self._n - p.moments + p.ridge * own
            slopes.append((white @ slope).ravel())
        return value, np.concatenate([*slopes, (x.mean(axis=0, dtype=np.float64) - self._law) / self._root])


def softmax_weights(parts: Sequence[Predictors], law: np.ndarray, steps: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return W of each part, shapes (d, b), and a, shape (r,).

    Args:
        parts: of the same rows, in the same order.
        law: m, above 0, shape (r,).
        steps: of the solver at most.
    """
    objective, start = _Objective(parts, law), np.zeros(sum(part.moments.size for part in parts) + law.size)
    options = {
        "maxiter": steps, "gtol": DESCENT.solver_slope, "ftol": DESCENT.solver_fall,
        "maxcor": DESCENT.solver_kept,
    }  # fmt: skip
    return objective.unpacked(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x)
