"""Errors of several estimates together: differences, intervals that all hold at once, and tests of several at once.

Free: uses released values only.
Reference: Šidák 1967 (intervals of any joint normal law); Hothorn, Bretz and Westfall 2008 (of a known one); Wald 1943.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from sfumato.errors import require_open_unit
from sfumato.maths.streams import public_stream

_DRAWS, _STREAM = 20_000, 20_262
_MOST_DRAWN = 500  # estimates of which the joint law is drawn: of more the bound that holds for any law
_TINY = 1e-10


def deviations(level: float) -> float:
    """Return how many standard deviations of a normal law hold this share about their middle.

    Raises:
        ConfigError: the level is not between 0 and 1.
    """
    return float(special.ndtri((1 + require_open_unit(level=level)) / 2))


def each_level(level: float, k: int) -> float:
    """Return the level of each of k intervals that all hold with this chance, whatever their joint law (Šidák)."""
    return require_open_unit(level=level) ** (1 / max(k, 1))


def any_law(level: float, k: int) -> float:
    """Return the deviations of k intervals that all hold with this chance, whatever their joint normal law."""
    return deviations(each_level(level, k))


@dataclass(frozen=True, slots=True, eq=False)
class JointErrors:
    """Errors of k estimates.

    Attributes:
        by_cause: covariances of the errors, shape (k, k), which add up.
    """

    by_cause: Mapping[str, np.ndarray]

    @classmethod
    def scaled(cls, covariances: Mapping[str, np.ndarray], sizes: Mapping[str, np.ndarray]) -> JointErrors:
        """Return errors of standard errors by cause, shape (k,), which go together as covariances say.

        Those of a cause without covariances are independent.
        """
        scaled = {}
        for cause, size in sizes.items():
            correlation = np.eye(len(size))
            if cause in covariances:
                own = np.sqrt(np.maximum(np.diagonal(covariances[cause]), 0.0))
                correlation = covariances[cause] / np.outer(*(2 * [np.where(own > 0, own, np.inf)]))
                np.fill_diagonal(correlation, 1.0)
            scaled[cause] = correlation * np.outer(size, size)
        return cls(scaled)

    @property
    def covariance(self) -> np.ndarray:
        """The covariance of the errors, shape (k, k)."""
        return np.sum(list(self.by_cause.values()), axis=0)

    def along(self, factors: np.ndarray) -> dict[str, float]:
        """Return the standard errors by cause of a sum of the estimates times factors, shape (k,)."""
        return {cause: float(np.sqrt(max(factors @ part @ factors, 0.0))) for cause, part in self.by_cause.items()}

    def deviations(self, level: float) -> float:
        """Return the deviations of k intervals that all hold with this chance.

        The joint normal law is drawn, from a public and fixed stream; never more than holds for any law.
        """
        covariance = self.covariance
        varying = np.flatnonzero(np.diagonal(covariance) > 0)
        fewest, most = deviations(level), any_law(level, len(varying))
        if not 1 < len(varying) <= _MOST_DRAWN:
            return most
        spread = np.sqrt(np.diagonal(covariance)[varying])
        values, vectors = np.linalg.eigh(covariance[np.ix_(varying, varying)] / np.outer(spread, spread))
        normals = public_stream(_STREAM).standard_normal((_DRAWS, len(varying)))
        drawn_z = normals @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        return float(np.clip(np.quantile(np.abs(drawn_z).max(axis=1), level), fewest, most))


def wald(values: np.ndarray, covariance: np.ndarray) -> tuple[float, int]:
    """Return Wald's statistic that numbers are all 0, shape (k,), and its degrees of freedom: the covariance's rank."""
    scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    roots, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    known = roots > _TINY * max(float(roots.max(initial=0.0)), _TINY)
    along = vectors[:, known].T @ (values / scale)
    return float(np.sum(along**2 / roots[known])), int(known.sum())
