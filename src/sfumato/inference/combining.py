"""One result from the same analysis of many replicates.

A replicate's result differs from the next by what the measurements leave open, and by the replicate's own sampling:
T = (1 + 1/m)·B − V, B the variance of the m results and V the mean of the variances that they state, which is the part
of B that a replicate's finite size adds. It goes to (1 + 1/m)·B as replicates grow.

Reference: Raghunathan, Reiter and Rubin 2003 (the rule); Räisä, Jälkö, Kaski and Honkela 2023 (why it holds under
differential privacy, for large synthetic tables). Reiter's rule for partially synthetic data does not apply.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from sfumato.errors import ConfigError, require_open_unit

FEW_DEGREES = 10
"""Degrees of freedom below which `combine` warns."""
_LEAST_SHARE = 0.1  # of (1 + 1/m)·B that is left: fewer replicates may say less than nothing


@dataclass(frozen=True, slots=True)
class CombinedResult:
    """The result of one analysis of many replicates, by term.

    Attributes:
        params: means of the results.
        bse: standard errors.
        df: degrees of freedom of the t law of each.
        m: number of replicates.

    Example:
        >>> from sfumato import combine
        >>> combine([(1.0, 0.1), (1.5, 0.1)] * 10).bse.round(3).tolist()
        [0.243]
    """

    params: pd.Series
    bse: pd.Series
    df: pd.Series
    m: int

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided."""
        values = 2 * stats.t.sf(np.abs(self.params / self.bse), self.df)
        return pd.Series(values, index=self.params.index)

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals by term: columns low and high.

        Args:
            level: in (0, 1).
        """
        t = stats.t.ppf((1 + require_open_unit(level=level)) / 2, self.df)
        return pd.DataFrame({"low": self.params - t * self.bse, "high": self.params + t * self.bse})

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return coefficients, standard errors, degrees of freedom, p and intervals by term."""
        columns = {"coef": self.params, "std_error": self.bse, "df": self.df, "p": self.pvalues}
        return pd.DataFrame(columns).join(self.conf_int(level))

    def summary(self, level: float = 0.95) -> str:
        """Return the table as text."""
        table = self.to_frame(level).to_string(float_format="{:.4g}".format)
        return f"Of {self.m} replicates\n{table}"

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import LEVEL, combined_card

        return combined_card(self.m, self.to_frame(LEVEL))


def combine(results: Sequence[Any]) -> CombinedResult:
    """Put together the results of one analysis of each of a release's replicates.

    Args:
        results: at least 2: fitted models with `params` and `bse`, as those of statsmodels and linearmodels; or pairs
            (value, standard error) of numbers or of series by term.

    Returns:
        Means, standard errors and intervals, by term.

    Raises:
        ConfigError: fewer than 2 results, or of different terms, or without standard errors.

    Example:
        >>> fits = [smf.logit("w ~ x", table).fit() for table in release.replicates(20)]  # doctest: +SKIP
        >>> sfumato.combine(fits)  # doctest: +SKIP
    """
    if not isinstance(results, Sequence) or len(results) < 2:
        raise ConfigError("Expected results of at least 2 replicates, in a list, got fewer.")
    pairs = [_result(result) for result in results]
    terms = pairs[0][0].index
    if not all(value.index.equals(terms) and error.index.equals(terms) for value, error in pairs):
        raise ConfigError("Expected results with the same terms in the same order, got others: a level may be missing.")
    values = np.array([value.to_numpy(dtype=np.float64) for value, _ in pairs])
    within = np.array([error.to_numpy(dtype=np.float64) for _, error in pairs]) ** 2
    m = len(pairs)
    between = (1 + 1 / m) * values.var(axis=0, ddof=1)
    own = within.mean(axis=0)
    variance = np.maximum(between - own, _LEAST_SHARE * between)
    freedom = np.maximum((m - 1) * (variance / np.maximum(between, 1e-300)) ** 2, 1.0)
    if float(freedom.min()) < FEW_DEGREES:
        warnings.warn(
            f"Degrees of freedom are below {FEW_DEGREES}: intervals are wide. Draw more replicates, or more rows in "
            "each (n=).",
            stacklevel=2,
        )
    return CombinedResult(
        pd.Series(values.mean(axis=0), index=terms),
        pd.Series(np.sqrt(variance), index=terms),
        pd.Series(freedom, index=terms),
        m,
    )


def _result(result: object) -> tuple[pd.Series, pd.Series]:
    """Return coefficients and standard errors of one result."""
    if isinstance(result, tuple) and len(result) == 2:
        value, error = result
    else:
        value, error = getattr(result, "params", None), getattr(result, "bse", None)
    if value is None or error is None:
        raise ConfigError(
            f"Expected results with params and bse, or pairs of a value and its standard error, got a "
            f"{type(result).__name__}."
        )
    return _series(value), _series(error)


def _series(value: Any) -> pd.Series:  # noqa: ANN401 - numbers, arrays or series of a caller
    return value if isinstance(value, pd.Series) else pd.Series(np.atleast_1d(np.asarray(value, dtype=np.float64)))
