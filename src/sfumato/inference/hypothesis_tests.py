"""Tests of hypotheses by noisy estimates: the statistic, its law under the hypothesis, and what it rests on.

Free: uses released values only.
Reference: Wald 1943; Rao and Scott 1984 (a sum of squares of normal numbers that go together); Satterthwaite 1946.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from sfumato.inference.calibration import Target
from sfumato.inference.joint_errors import wald


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
        """Return Wald's test that numbers are all 0, shape (k,), by the covariance of their errors."""
        statistic, df = wald(values, covariance)
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
        line = f"chi-square {self.statistic:.4g}, df {self.df:.4g}, p {self.pvalue:.3g}, of the {self.target}"
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
