"""Ends of intervals where the normal law about an estimate is not enough: bounds, variances, correlations, lengths.

Noise makes a vector too long: the estimate of its square is less tr Σ, and the interval holds all squares θ that lie
as near to it as the level says, under the variance 2 tr Σ² + 4 dᵀΣd of a square of a normal vector at θ. Near 0 that
is wide, and starts at 0.

Free: uses released values only.
Reference: Zou 2007, intervals of sums from the intervals of their parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sfumato.columns.bounded import NumericKind
from sfumato.columns.kind import ColumnKind
from sfumato.inference.calibration import Target, Variances
from sfumato.inference.estimate import Ends, Estimate
from sfumato.inference.times import Value

_TINY = 1e-12
_MOST_RELATIVE = 0.5  # standard error ÷ value, up to which an interval is made on the logarithm
_MOST_SKEWED = 2.0  # times the sampling error, that Fisher's z may put an end away
_SAMPLING = "sampling"


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


def size_of(parts: Mapping[str, float]) -> float:
    """Return the standard error of parts whose squares add up."""
    return float(np.sqrt(sum(size**2 for size in parts.values())))


def within_bounds(estimate: Estimate, lowest: Value, highest: Value) -> Estimate:
    """Return an estimate that stays, with its intervals, within bounds that its target has."""

    def inside(value: Value) -> Value:
        return min(max(value, lowest), highest)

    def ends(z: float) -> tuple[Value, Value]:
        low, high = estimate.ends_at(z)
        return inside(low), inside(high)

    return replace(estimate, value=inside(estimate.value), free_value=estimate.unbounded, ends=ends)


def possible_range(kind: ColumnKind, *, declared: bool) -> tuple[float, float]:
    """Return what values of a column can be: its bounds, if they were declared and no rule computes it."""
    return kind.bounds if declared and isinstance(kind, NumericKind) else (-np.inf, np.inf)


def most_variance(lowest: float, highest: float) -> float:
    """Return the largest variance of values between two bounds (Popoviciu 1935)."""
    return ((highest - lowest) / 2) ** 2


def of_variance(value: float, parts: Mapping[str, float]) -> Ends:
    """Return intervals of a variance: on the logarithm; from 0 where noise may be all of it."""
    std_error = size_of(parts)
    if std_error >= _MOST_RELATIVE * value:  # a factor says nothing, nor does one of a column that never varies
        return lambda z: (max(value - z * std_error, 0.0), max(value + z * std_error, 0.0))
    relative = std_error / value
    return lambda z: (value * np.exp(-z * relative), value * np.exp(z * relative))


def of_correlation(value: float, parts: Mapping[str, float]) -> Ends:
    """Return intervals of a correlation.

    Sampling moves a correlation the less the nearer it is to 1: its part is made on Fisher's z. Noise does not, and its
    part has the same length anywhere. Each end is as far off as both together, by squares (Zou 2007).
    """
    fixed = size_of({cause: size for cause, size in parts.items() if cause != _SAMPLING})
    # noise may have brought the value to 1, where nothing would be left of sampling
    sampling = parts.get(_SAMPLING, 0.0)
    spread = sampling / (1 - max(abs(value) - fixed, 0.0) ** 2)
    middle = np.arctanh(value)

    def ends(z: float) -> tuple[float, float]:
        low, high = np.tanh(middle - z * spread), np.tanh(middle + z * spread)
        # beside 1 noise may leave a spread on z that goes all the way to -1
        low, high = max(low, value - _MOST_SKEWED * z * sampling), min(high, value + _MOST_SKEWED * z * sampling)
        down, up = np.hypot(z * fixed, value - low), np.hypot(z * fixed, high - value)
        return float(max(value - down, -1.0)), float(min(value + up, 1.0))

    return ends
