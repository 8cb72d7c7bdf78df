"""Ends of intervals where the normal law about an estimate is not enough: bounds, variances, correlations.

Reference: Zou 2007, intervals of sums from the intervals of their parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sfumato.columns.bounded import NumericKind
from sfumato.columns.kind import ColumnKind
from sfumato.inference.estimate import Ends, Estimate
from sfumato.inference.times import Value

_MOST_RELATIVE = 0.5  # standard error ÷ value, up to which an interval is made on the logarithm
_MOST_SKEWED = 2.0  # times the sampling error, that Fisher's z may put an end away
_SAMPLING = "sampling"


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
