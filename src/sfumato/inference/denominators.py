"""How far noise decides about a regression's coefficients through what they are divided by.

A coefficient is a ratio: a sum of scores ÷ the curvature of its own term, D = Σ w·slope·x̃², with x̃ the term less what
the other terms say of it. Where the noise of D is not small beside D, as of a count whose bounds are far wider than its
values, a straight line through the estimate says too little of the error: noise that adds to D makes the coefficient
and its error small at once. So intervals are Fieller's: all b + δ at which the scores may have a sum of 0,

    δ² ≤ z²·(se² + 2·lean·δ + spread·δ²)        spread = var(D)/D², lean = −cov(b, D)/D

and D is known to be positive, so that the sign may be known where the size is not. Where no end is found on a side, any
coefficient there may be true: then the end is `UNKNOWN` times as far off, and words say so.

Free: uses released values only.
Reference: Fieller 1954 (ratios). Proof: docs/proofs/inference.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sfumato.inference.calibration import Calibration
from sfumato.inference.families import Family, Solution
from sfumato.inference.formulas import Design

UNKNOWN = 100.0
"""By how much an end is farther off at most."""
_USUAL = 2.0  # deviations of the intervals that standard errors stand for
_MOST_OF_OTHERS = 2.0  # of factors: what hardly varies can be off by anything, and moves others little
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """Coefficients as ratios of sums that noise moves.

    Attributes:
        errors: standard errors of a straight line through them, shape (k,).
        lean: per coefficient, how they go with their denominators, shape (k,).
        spread: variances of the denominators, in their own squares, shape (k,).
    """

    errors: np.ndarray
    lean: np.ndarray
    spread: np.ndarray

    def ends(self, z: float) -> tuple[np.ndarray, np.ndarray]:
        """Return how far below and above each coefficient the ends of z deviations are, both at least 0, shape (k,)."""
        reach = z * self.errors
        square, half = 1 - z**2 * self.spread, z**2 * self.lean
        root = half**2 + square * reach**2
        whole = np.sqrt(np.maximum(root, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            # of both roots r, in the form that square = 0 allows: r = -reach²/(half ∓ whole)
            low, high = reach**2 / (half + whole), reach**2 / (whole - half)
        far = UNKNOWN * reach
        low, high = (np.where((root > 0) & (end > 0), np.minimum(end, far), far) for end in (low, high))
        return np.where(reach > 0, low, 0.0), np.where(reach > 0, high, 0.0)

    def factors(self) -> np.ndarray:
        """Return by how much the farther end of a usual interval is farther off than a straight line has it."""
        reach = _USUAL * self.errors
        return np.where(reach > 0, np.maximum(*self.ends(_USUAL)) / np.where(reach > 0, reach, 1.0), 1.0)

    def statistics(self, params: np.ndarray) -> np.ndarray:
        """Return coefficients ÷ the standard errors that they have if they are 0, shape (k,)."""
        variances = self.errors**2 - 2 * self.lean * params + self.spread * params**2
        return params / np.sqrt(np.maximum(variances, _TINY))


@dataclass(frozen=True, slots=True, eq=False)
class Denominators:
    """Curvatures of the terms of a regression, with their errors.

    Attributes:
        lean: as of `Ratios`, shape (k,).
        spread: likewise.
        along: how far each coefficient goes with one that is off by 1, a line for each such, shape (k, k).
    """

    lean: np.ndarray
    spread: np.ndarray
    along: np.ndarray

    @classmethod
    def of(
        cls, calibration: Calibration, family: Family, design: Design, solution: Solution, present: np.ndarray
    ) -> Denominators:
        """Return those of a solution on the rows that are `present`, shape (N,)."""
        k = design.right.shape[1]
        slope = family.score(design.left, design.right @ solution.params)[1] * present
        positive = np.maximum(calibration.weights, 0.0)
        positive *= float(calibration.weights.sum()) / max(float(positive.sum()), _TINY)
        inverse = linalg.pinvh((design.right * (positive * slope)[:, None]).T @ design.right)
        along = inverse / np.maximum(np.diagonal(inverse), _TINY)[:, None]
        functions = (design.right @ along.T) ** 2 * slope[:, None]
        curvature, above = calibration.total(functions), positive @ functions
        both = calibration.noise(np.column_stack([solution.influence * present[:, None], functions]))
        variance = np.maximum(np.diagonal(both)[k:], 0.0)
        if solution.doubt.any():  # the curvature that was taken is that of weights above 0
            variance, curvature = variance + (above - curvature) ** 2, above
        curvature = np.maximum(curvature, _TINY)
        return cls(-np.diagonal(both[:k, k:]) / curvature, variance / curvature**2, along)

    def others(self, factors: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Return the covariance that coefficients get from those of others that are farther off, shape (k, k)."""
        more = errors * np.sqrt(np.minimum(factors, _MOST_OF_OTHERS) ** 2 - 1)
        moved = self.along * more[:, None]
        np.fill_diagonal(moved, 0.0)
        return moved.T @ moved
