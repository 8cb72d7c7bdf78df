"""The squared length of a vector that is known with noise: of associations, and of what a regression explains.

Noise makes it too long: the estimate of the square is less tr Σ, and the interval holds all squares θ that lie as near
to it as the level says, under the variance 2 tr Σ² + 4 dᵀΣd of a square of a normal vector at θ. Near 0 that is wide,
and starts at 0.

Free: uses released values only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.inference.calibration import Target, Variances

_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class SquaredLength:
    """The squared length of a vector, a number in [0, 1].

    Attributes:
        square: estimated, less what noise adds; it may lie below 0.
        spread: tr Σ².
        slope: the variance along the vector.
        lengths: standard errors of the length by cause.
        squares: of its square.
    """

    square: float
    spread: float
    slope: float
    lengths: dict[str, float]
    squares: dict[str, float]

    @classmethod
    def of(cls, d: np.ndarray, variances: Variances, target: Target) -> SquaredLength:
        """Return that of a vector with noise, shape (k,)."""
        covariance = variances.of(target)
        raw = float(d @ d)
        along = d / np.sqrt(max(raw, _TINY))
        square = raw - float(np.trace(covariance))
        parts = variances.by_cause(target)
        own = {cause: max(float(along @ part @ along), 0.0) for cause, part in parts.items()}
        theta = max(square, 0.0)
        squares = {
            cause: float(np.sqrt(max(2 * float(np.sum(part * covariance)) + 4 * theta * own[cause], 0.0)))
            for cause, part in parts.items()
        }
        return cls(
            square,
            float(np.sum(covariance**2)),
            float(along @ covariance @ along),
            {cause: float(np.sqrt(variance)) for cause, variance in own.items()},
            squares,
        )

    @property
    def value(self) -> float:
        """The square, within [0, 1]."""
        return float(np.clip(self.square, 0.0, 1.0))

    def ends(self, z: float) -> tuple[float, float]:
        """Return the ends of the interval of the square: all θ with (square − θ)² ≤ z²·(2·spread + 4·θ·slope)."""
        middle = self.square + 2 * z**2 * self.slope
        half = np.sqrt(max(middle**2 - self.square**2 + 2 * z**2 * self.spread, 0.0))
        low, high = np.clip([middle - half, middle + half], 0.0, 1.0)
        return float(min(low, self.value)), float(max(high, self.value))

    def ends_of_length(self, z: float) -> tuple[float, float]:
        """Return the ends of the interval of the length."""
        low, high = self.ends(z)
        return float(np.sqrt(low)), float(np.sqrt(high))
