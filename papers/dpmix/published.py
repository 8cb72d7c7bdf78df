"""The published theorems of DPMix (Lee et al., ISIT 2019), and its baselines, for comparison only.

Theorem 1 as printed has exp(Δ²/2) where its proof gives exp(Δ²/ℓ²): as printed it is unsound at ℓ = 1 and vacuous
above. Theorem 3 holds only when every record joins the same number of mixtures. Nothing here is part of the package.
"""

from __future__ import annotations

import math
from functools import lru_cache

import mpmath
import numpy as np

_MOST_ORDER = 256
_DIGITS = 400  # the alternating sums B cancel


def squared_distance(n_features: int, n_labels: int, sigma_x: float, sigma_y: float) -> float:
    """Return Δ² = d_X/σ_X² + d_Y/σ_Y²: the sensitivities are √d, of records in [0, 1]."""
    return n_features / sigma_x**2 + n_labels / sigma_y**2


@lru_cache(maxsize=4096)
def _alternating(j: int, exponent: float) -> float:
    """Return ln B(j), B(j) = Σ_i (−1)^i C(j, i) e^{i(i−1) x}, with x = Δ²/(2ℓ²); −∞ where B is 0."""
    with mpmath.workdps(_DIGITS):
        x = mpmath.mpf(exponent)
        total = mpmath.fsum((-1) ** i * math.comb(j, i) * mpmath.exp(i * (i - 1) * x) for i in range(j + 1))
        return float(mpmath.log(total)) if total > 0 else -math.inf


def theorem_1(squared: float, degree: int, n: int, n_mixtures: int, delta: float, *, as_printed: bool = False) -> float:
    """Return ε of T mixtures of ℓ of n records, by Theorem 1, with the corrected exponent unless `as_printed`.

    Args:
        squared: Δ².
        degree: ℓ.
        n: number of records.
        n_mixtures: T.
        delta: δ.
        as_printed: whether to keep exp(Δ²/2).
    """
    best, worse, p = math.inf, 0, math.log(degree / n)
    for alpha in range(2, _MOST_ORDER + 1):
        moment = _log_moment(alpha, squared, degree, p, as_printed=as_printed)
        epsilon = n_mixtures * moment / (alpha - 1) - math.log(delta) / (alpha - 1)
        worse = 0 if epsilon < best else worse + 1
        best = min(best, epsilon)
        if worse > 8:  # one minimum over α
            break
    return best


def _log_moment(alpha: int, squared: float, degree: int, log_p: float, *, as_printed: bool) -> float:
    exponent = squared / 2 if as_printed else squared / degree**2
    first = min(math.log(4) + _log_expm1(exponent), math.log(2) + exponent)
    terms = [2 * log_p + math.log(math.comb(alpha, 2)) + first]
    x = squared / (2 * degree**2)
    for j in range(3, alpha + 1):
        low, high = _alternating(2 * (j // 2), x), _alternating(2 * ((j + 1) // 2), x)
        terms.append(math.log(4) + j * log_p + math.log(math.comb(alpha, j)) + (low + high) / 2)
    return _log1p_sum(terms)


def _log1p_sum(logs: list[float]) -> float:
    """Return ln(1 + Σ e^logs)."""
    total = float(np.logaddexp.reduce(logs))
    return math.log1p(math.exp(total)) if total < 0 else total + math.log1p(math.exp(-total))


def _log_expm1(x: float) -> float:
    return math.log(math.expm1(x)) if x < 1 else x + math.log1p(-math.exp(-x))


def theorem_3(squared: float, degree: int, n: int, n_mixtures: int, delta: float) -> float:
    """Return ε of the variant in which every record joins Tℓ/n mixtures; claimed, and false, for DPMix itself."""
    rate = n_mixtures * (degree / n) * squared / (2 * degree**2)
    alpha = 1 + math.sqrt(math.log(1 / delta) / rate)
    return alpha * rate + math.log(1 / delta) / (alpha - 1)


def noise_by_theorem_1(
    epsilon: float, degree: int, n: int, n_mixtures: int, delta: float, *, n_features: int, n_labels: int
) -> float:
    """Return σ = σ_X = σ_Y at which the corrected Theorem 1 gives ε."""
    low, high = 1e-4, 100.0
    while high > 1.0005 * low:
        middle = math.sqrt(low * high)
        squared = squared_distance(n_features, n_labels, middle, middle)
        if squared / degree**2 > 1500 or theorem_1(squared, degree, n, n_mixtures, delta) > epsilon:
            low = middle
        else:
            high = middle
    return high


def unit_norm_noise(
    epsilon: float, degree: int, n: int, n_mixtures: int, delta: float, *, n_features: int, n_labels: int
) -> float:
    """Return σ = σ_X = σ_Y where records and labels have norm at most 1, at the Δ² = 1/σ_X² + 1/σ_Y² of Theorem 1."""
    sigma = noise_by_theorem_1(epsilon, degree, n, n_mixtures, delta, n_features=n_features, n_labels=n_labels)
    return math.sqrt(2 / squared_distance(n_features, n_labels, sigma, sigma))
