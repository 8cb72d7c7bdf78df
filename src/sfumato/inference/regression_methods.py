"""Regressions of a release of a table as methods, answered from its measurements.

What answers them is imported when one is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, overload

from sfumato.extras import require_extra
from sfumato.maths.threads import few_threads
from sfumato.release.model import ReleaseValue

if TYPE_CHECKING:
    from sfumato.inference.questions import Questions
    from sfumato.inference.regression_results import Regression, Regressions


class RegressionMethods(ABC):
    """Regressions from the noisy measurements that a release holds. They cost no budget, and read no record."""

    @property
    @abstractmethod
    def _release(self) -> ReleaseValue:
        """The release whose measurements answer."""

    @property
    def _questions(self) -> Questions:
        from sfumato.inference.linked_rows import questions_of

        return questions_of(self._release)

    @overload
    def ols(self, formula: str, *, by: None = None, target: str = "population") -> Regression: ...
    @overload
    def ols(self, formula: str, *, by: str, target: str = "population") -> Regressions: ...
    @few_threads
    def ols(self, formula: str, *, by: str | None = None, target: str = "population") -> Regression | Regressions:
        """Return least squares, from the noisy moments; of a left side of two labels, of its second.

        Args:
            formula: such as "wage ~ age + C(sex)", read by formulaic. What the measurements do not say is refused:
                products of three columns, unless the target of the fit is one of them, and squares beside others.
            by: a column of labels: a regression for each label's rows.
            target: "population", of which the records are independent draws, or "table", the records themselves.

        Raises:
            ConfigError: it is no formula of the release's columns, or formulaic is not installed.
            EstimateError: the release holds no measurements, or they do not answer it.

        Example:
            >>> release.ols("wage ~ age + C(sex)").conf_int(level=0.9)  # doctest: +SKIP
        """
        return self._fit("ols", formula, by, target)

    @overload
    def logit(self, formula: str, *, by: None = None, target: str = "population") -> Regression: ...
    @overload
    def logit(self, formula: str, *, by: str, target: str = "population") -> Regressions: ...
    @few_threads
    def logit(self, formula: str, *, by: str | None = None, target: str = "population") -> Regression | Regressions:
        """Return logistic regression of a column of two labels, of which the second is meant; arguments as `ols`.

        Example:
            >>> release.logit("member ~ age + C(sex)").params  # doctest: +SKIP
        """
        return self._fit("logit", formula, by, target)

    @overload
    def poisson(self, formula: str, *, by: None = None, target: str = "population") -> Regression: ...
    @overload
    def poisson(self, formula: str, *, by: str, target: str = "population") -> Regressions: ...
    @few_threads
    def poisson(self, formula: str, *, by: str | None = None, target: str = "population") -> Regression | Regressions:
        """Return Poisson regression of a left side that is never below 0, with a logarithmic link; arguments as `ols`.

        Standard errors are right whatever the law of the left side, if the logarithm of its mean is a sum of terms.

        Example:
            >>> release.poisson("visits ~ age + C(sex)").params  # doctest: +SKIP
        """
        return self._fit("poisson", formula, by, target)

    @overload
    def gamma(self, formula: str, *, by: None = None, target: str = "population") -> Regression: ...
    @overload
    def gamma(self, formula: str, *, by: str, target: str = "population") -> Regressions: ...
    @few_threads
    def gamma(self, formula: str, *, by: str | None = None, target: str = "population") -> Regression | Regressions:
        """Return gamma regression of a left side that is never below 0, with a logarithmic link; arguments as `ols`.

        Its scores are functions of all columns of the formula together: of more than two columns, three with the
        target of the fit, it is refused. Poisson regression has the same coefficients where the mean is right.

        Example:
            >>> release.gamma("cost ~ C(arm)").params  # doctest: +SKIP
        """
        return self._fit("gamma", formula, by, target)

    def _fit(self, family: str, formula: str, by: str | None, target: str) -> Regression | Regressions:
        require_extra("regression", "read formulas")
        from sfumato.inference.families import FAMILIES
        from sfumato.inference.regression import fit_formula

        return fit_formula(self._questions, formula, by, target, FAMILIES[family])
