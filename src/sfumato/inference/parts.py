"""Estimates of a union of disjoint parts: means of the parts' answers, weighted by their rows, with independent errors.

The mean of the union is Σ N_k m_k / Σ N_k, of parts with N_k rows that count. With public N_k only m_k have errors.
Where it is an estimate itself, its error and that of m_k, of one release, are taken to add up. What was not measured is
an allowance, and may have the same sign in all parts: it adds up over parts too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.errors import ConfigError
from sfumato.inference.estimate import Estimate

_INDEPENDENT = ("noise", "sampling")

Slopes = Sequence[tuple[float, Estimate]]
"""Derivatives of a function by the answers of one part."""


def function_of_parts(value: float, slopes: Sequence[Slopes]) -> Estimate:
    """Return the estimate of a function of parts' answers, by its derivatives, a list per part."""
    first = slopes[0][0][1]
    causes: dict[str, list[float]] = {}
    for own in slopes:
        sizes: dict[str, float] = {}
        for slope, estimate in own:
            for cause, size in (estimate.parts or {"noise": estimate.std_error}).items():
                sizes[cause] = sizes.get(cause, 0.0) + abs(slope) * float(size)  # type: ignore[arg-type]
        for cause, size in sizes.items():
            causes.setdefault(cause, []).append(size)
    parts = {cause: math.hypot(*own) if cause in _INDEPENDENT else sum(own) for cause, own in causes.items()}
    rests = (
        f"Of {len(slopes)} combined releases, by their numbers of rows. {first.rests_on.partition(' Its variance')[0]}"
    )
    return Estimate(value, math.hypot(*parts.values()), first.target, rests, parts)


def weighted_mean(values: Sequence[Estimate], sizes: Sequence[float | Estimate]) -> Estimate:
    """Return the mean of the union, of means of parts with these numbers of rows.

    Raises:
        ConfigError: the answers are moments.
    """
    means, weights = [number(value) for value in values], [number(size) for size in sizes]
    total = sum(weights)
    mean = sum(m * w for m, w in zip(means, weights, strict=True)) / total
    slopes: list[Slopes] = []
    for value, size, m, w in zip(values, sizes, means, weights, strict=True):
        own = [(w / total, value)]
        slopes.append([*own, ((m - mean) / total, size)] if isinstance(size, Estimate) else own)
    return function_of_parts(mean, slopes)


def pooled_variance(variances: Sequence[Estimate], means: Sequence[Estimate], rows: Sequence[int]) -> Estimate:
    """Return the variance of the union: within parts, and between their means.

    Raises:
        ConfigError: the answers are moments.
    """
    total = sum(rows)
    mean = number(weighted_mean(means, rows))
    value, slopes = 0.0, []
    for variance, own, n in zip(variances, means, rows, strict=True):
        away, share = number(own) - mean, n / total
        value += share * (number(variance) + away**2)
        slopes.append([(share, variance), (2 * share * away, own)])
    return function_of_parts(value, slopes)


def times(estimate: Estimate, factor: float) -> Estimate:
    """Return an estimate of a multiple."""
    return function_of_parts(number(estimate) * factor, [[(factor, estimate)]])


def number(value: float | Estimate) -> float:
    """Return the value of an estimate of a number, as sums take it.

    Raises:
        ConfigError: it is a moment.
    """
    plain = value.unbounded if isinstance(value, Estimate) else value
    if not isinstance(plain, int | float):
        raise ConfigError("Expected a column of numbers to ask combined releases of, got one of dates. Ask each part.")
    return float(plain)
