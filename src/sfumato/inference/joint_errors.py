"""Errors of several estimates together: differences, intervals that all hold at once, and tests of hypotheses.

Free: uses released values only.
Reference: Šidák 1967 (intervals of any joint normal law); Hothorn, Bretz and Westfall 2008 (of a known one); Wald 1943;
Wald 1943; Rao and Scott 1984 (a sum of squares of normal numbers that go together); Satterthwaite 1946.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from sfumato.errors import require_open_unit
from sfumato.inference.calibration import Target
from sfumato.inference.times import shown
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


@dataclass(frozen=True, slots=True)
class HypothesisTest:
    """A test of a hypothesis about the records, or the population that they were drawn from.

    Attributes:
        hypothesis: what is tested, in a sentence.
        statistic: chi-square by its law where the hypothesis is true: privacy noise, sampling if the target is the
            population, and what was not measured are in it.
        df: degrees of freedom of that law.
        pvalue: chance of so large a statistic where the hypothesis is true.
        target: "population" or "table".
        rests_on: a sentence on what was measured.

    Example:
        >>> release.independence("sex", "income").pvalue  # doctest: +SKIP
        0.0003
    """

    hypothesis: str
    statistic: float
    df: float
    pvalue: float
    target: Target
    rests_on: str

    @classmethod
    def of_zeros(
        cls, values: np.ndarray, covariance: np.ndarray, hypothesis: str, target: Target, rests_on: str
    ) -> HypothesisTest:
        """Return Wald's test that numbers are all 0, shape (k,), by the covariance of their errors; its rank is df."""
        scale = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
        scale = np.where(scale > 0, scale, 1.0)
        roots, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
        known = roots > _TINY * max(float(roots.max(initial=0.0)), _TINY)
        along = vectors[:, known].T @ (values / scale)
        statistic, df = float(np.sum(along**2 / roots[known])), int(known.sum())
        return cls(hypothesis, statistic, df, _chance(statistic, df), target, rests_on)

    @classmethod
    def of_squares(
        cls, values: np.ndarray, covariance: np.ndarray, hypothesis: str, target: Target, rests_on: str
    ) -> HypothesisTest:
        """Return the test of the sum of squares of such numbers, of which many may be small: Rao and Scott's.

        The sum has the law of Σ λ·χ² with the eigenvalues λ of the covariance, and is scaled to the chi-square law of
        the same mean and variance.
        """
        mean, spread = float(np.trace(covariance)), float(np.sum(covariance**2))
        df = mean**2 / spread if spread > 0 else 0.0
        statistic = float(values @ values) * mean / spread if spread > 0 else np.inf
        return cls(hypothesis, statistic, df, _chance(statistic, df), target, rests_on)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return a row with statistic, df and p; no level changes it."""
        del level
        row = {"statistic": [self.statistic], "df": [self.df], "p": [self.pvalue]}
        return pd.DataFrame(row, index=pd.Index([self.hypothesis], name="hypothesis"))

    def summary(self) -> str:
        """Return the test as text, with what it rests on."""
        line = f"chi-square {shown(self.statistic, 4)}, df {self.df:.4g}, p {self.pvalue:.3g}, of the {self.target}"
        return f"{self.hypothesis}\n{line}\n{self.rests_on}"

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return the test as plain values: what `estimate --json` prints; no level changes it."""
        del level
        return {
            "hypothesis": self.hypothesis,
            "statistic": self.statistic,
            "df": self.df,
            "p": self.pvalue,
            "target": self.target,
            "rests_on": self.rests_on,
        }

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import hypothesis_card

        return hypothesis_card(self.hypothesis, (self.statistic, self.df, self.pvalue), self.target, self.rests_on)


def _chance(statistic: float, df: float) -> float:
    return float(special.chdtrc(df, statistic)) if df > 0 else float("nan")
