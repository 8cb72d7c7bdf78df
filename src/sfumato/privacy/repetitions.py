"""How often a search repeats its fit: a random number, whose law is what the search costs.

Truncated negative binomial law of Papernot and Steinke (ICLR 2022, arXiv:2110.03620, Definition 1). Of a shape η ≥ 0
and 0 < γ ≤ 1, for k = 1, 2, …

    P(K = k) = (1 − γ)^k / (γ^−η − 1) · Π_{l<k} (l + η)/(l + 1),    with η = 0:  P(K = k) = (1 − γ)^k / (k log 1/γ)

η = 1 is the geometric law, η = 0 the logarithmic one. K is never 0, so there always is a release. Account and
conditions: docs/proofs/tune.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, final

from sfumato._lazy import later
from sfumato.errors import ConfigError, require_positive

if TYPE_CHECKING:
    from scipy import optimize
else:
    optimize = later("scipy.optimize")

LARGEST_MEAN = 1e4
_LARGEST_SHAPE = 100.0
_UPWARD = 1 + 1e-9  # γ is rounded up: fewer repetitions than charged, never more
_NEGLIGIBLE = 1e-18


@final
@dataclass(frozen=True, slots=True)
class Repetitions:
    """The law of the number of repetitions.

    Attributes:
        mean: E[K], 1 to 10,000.
        shape: η, 0 to 100: 1 is geometric, 0 logarithmic.

    Raises:
        ConfigError: an argument is outside its domain.
    """

    mean: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        mean = require_positive(mean_repetitions=self.mean)
        if not 1 <= mean <= LARGEST_MEAN:
            raise ConfigError(
                f"Expected mean_repetitions between 1 and {LARGEST_MEAN:g}, got mean_repetitions={mean!r}."
            )
        shape = self.shape
        if isinstance(shape, bool) or not isinstance(shape, int | float) or not 0 <= shape <= _LARGEST_SHAPE:
            raise ConfigError(
                f"Expected shape between 0 (logarithmic) and {_LARGEST_SHAPE:g}, got shape={shape!r}. 1 is geometric."
            )
        object.__setattr__(self, "mean", float(mean))
        object.__setattr__(self, "shape", float(shape))

    @property
    def gamma(self) -> float:
        """γ of the law with this mean, at most 10⁻⁹ of itself above the root."""
        return _gamma(self.mean, self.shape)

    def probability(self, k: int) -> float:
        """Return P(K = k)."""
        if k < 1:
            return 0.0
        gamma, shape = self.gamma, self.shape
        if gamma == 1:
            return float(k == 1)
        if shape == 0:
            first = (1 - gamma) / -math.log(gamma)
        else:
            first = (1 - gamma) * shape / math.expm1(-shape * math.log(gamma))
        log_rest = math.fsum(math.log((i + shape) / (i + 1)) for i in range(1, k))
        return first * math.exp((k - 1) * math.log1p(-gamma) + log_rest)

    def last(self, k: int) -> float:
        """Return P(K = k | K ≥ k): the probability that repetition k is the last one."""
        return _last(self.gamma, self.shape, k)


@lru_cache(maxsize=64)
def _gamma(mean: float, shape: float) -> float:
    if shape == 1 or mean == 1:
        return min(1.0, _UPWARD / mean)
    root = optimize.brentq(lambda gamma: _mean(gamma, shape) - mean, 1e-12 / mean, 1 - 1e-12, xtol=1e-18)
    return min(1.0, float(root) * _UPWARD)  # type: ignore[arg-type]


@lru_cache(maxsize=4096)
def _last(gamma: float, shape: float, k: int) -> float:
    if shape == 1 or gamma == 1:
        return gamma
    # P(K ≥ k)/P(K = k) is a sum of positive terms: no digit is lost, however far out k is
    ratio, total, j = 1.0, 1.0, k
    while ratio > _NEGLIGIBLE * total:
        ratio *= (1 - gamma) * (j + shape) / (j + 1)
        total += ratio
        j += 1
    return min(1.0, 1 / total)


def _mean(gamma: float, shape: float) -> float:
    if shape == 0:
        return (1 / gamma - 1) / -math.log(gamma)
    return shape * (1 / gamma - 1) / -math.expm1(shape * math.log(gamma))
