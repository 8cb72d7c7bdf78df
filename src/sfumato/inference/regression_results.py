"""Regressions as results: coefficients with errors, tests of terms, what is explained, and predicted means.

Free: uses released values only.

A row to predict is put after the model's rows, with weight 0, and the formula evaluated on all: so means in `center`
and knots of splines are those of the fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import pandas as pd
from scipy import special

from sfumato.columns.facts import grouped
from sfumato.columns.kind import TabularKind
from sfumato.errors import ConfigError, EstimateError, require_flag, require_open_unit
from sfumato.inference.calibration import Target
from sfumato.inference.denominators import Ratios
from sfumato.inference.estimate import Estimate, Estimates, GroupedResults
from sfumato.inference.families import FAMILIES
from sfumato.inference.formulas import ReadFormula
from sfumato.inference.joint_errors import HypothesisTest, JointErrors, deviations
from sfumato.inference.table_measurements import values
from sfumato.inference.times import shown

_ROW = "row"
_STEP = 1e-4  # of the linear predictor, by which the slope of a mean is taken


@dataclass(frozen=True, eq=False)
class DesignRows:
    """Where a formula is evaluated.

    Attributes:
        read: the formula.
        frame: the model's rows of its columns.
        weights: of these, shape (N,).
        kinds: of its columns.
        two_values: whether its left side has to have two.
        wanted: the columns of its right side.
    """

    read: ReadFormula
    frame: pd.DataFrame
    weights: np.ndarray
    kinds: Mapping[str, TabularKind]
    two_values: bool
    wanted: frozenset[str]

    def of(self, rows: Sequence[Mapping[str, object]]) -> np.ndarray:
        """Return the terms of rows, shape (rows, k), from values by column.

        Raises:
            ConfigError: a column of the right side is not given, another is, or a value is none of the column's.
        """
        for row in rows:
            if not isinstance(row, Mapping) or set(row) != self.wanted:
                names = ", ".join(map(repr, sorted(self.wanted)))
                raise ConfigError(
                    f"Expected a value for each column of the right side of {self.read.text!r}, {names}, and no other."
                )
        table = pd.concat([self.frame, self._given(rows)], ignore_index=True)
        weights = np.concatenate([self.weights, np.zeros(len(rows))])
        design = self.read.design(table, weights, logistic=self.two_values)
        if not design.present[-len(rows) :].all():
            raise EstimateError(f"Expected values that {self.read.text!r} can be evaluated at, got missing ones.")
        return design.right[-len(rows) :]

    def _given(self, rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
        columns = {}
        for name, kind in self.kinds.items():
            if name in self.wanted:
                codes = [kind.given(name, row[name], kind.sample_type).code for row in rows]
                columns[name] = values(kind, np.asarray(codes, dtype=np.float64 if kind.is_numeric else np.int64))
            else:  # of the left side alone, where any value does
                columns[name] = self.frame[name].dropna().iloc[[0] * len(rows)].reset_index(drop=True)
        return pd.DataFrame(columns)


@dataclass(frozen=True, slots=True)
class Regression:
    """A fitted regression, by term, with the names that statsmodels gives.

    Attributes:
        formula: as it was asked.
        kind: "least squares", "logistic", "Poisson" or "gamma".
        params: coefficients.
        bse: their standard errors: privacy noise, sampling if the target is the population, and what was not measured;
            where errors are not alike on both sides, those of the farther one.
        covariance: of the errors, a frame of terms by terms.
        parts: standard errors by cause, a frame of terms by "noise", "sampling" and "unmeasured".
        target: "population" or "table".
        rests_on: a sentence on what was measured.
        nobs: number of rows without a missing value, estimated.
        references: by column, the label that its others are compared with: the commonest, unless the formula names one.
        factors: the terms of the formula, and the coefficients of each.
        rsquared: of least squares, the share of the left side's variance that the terms explain, less what noise and
            sampling add to it; None of others, or where the measurements do not say it.
        joint: the errors of the coefficients together, by cause.
        ratios: coefficients as ratios, of which tests and intervals are: their errors are not alike on both sides.
        rows: where the formula is evaluated.

    Example:
        >>> release.ols("wage ~ age + C(sex)").conf_int(level=0.9)  # doctest: +SKIP
    """

    formula: str
    kind: str
    params: pd.Series
    bse: pd.Series
    covariance: pd.DataFrame
    parts: pd.DataFrame
    target: Target
    rests_on: str
    nobs: float
    references: Mapping[str, str]
    factors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rsquared: Estimate | None = None
    joint: JointErrors | None = field(default=None, repr=False, compare=False)
    ratios: Ratios | None = field(default=None, repr=False, compare=False)
    rows: DesignRows | None = field(default=None, repr=False, compare=False)

    @property
    def tvalues(self) -> pd.Series:
        """Coefficients ÷ the standard errors that they have if they are 0: standard normal then."""
        if self.ratios is None:
            return self.params / self.bse
        return pd.Series(self.ratios.statistics(self.params.to_numpy()), index=self.params.index)

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided, under the normal law."""
        return pd.Series(2 * special.ndtr(-np.abs(self.tvalues.to_numpy())), index=self.params.index)

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the errors."""
        return self.covariance

    def conf_int(self, level: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return intervals by term: columns low and high.

        Args:
            level: in (0, 1).
            simultaneous: whether all intervals hold at once so often, by the joint law of the errors, not each.
        """
        require_flag(simultaneous=simultaneous)
        z = JointErrors({"": self.covariance.to_numpy()}).deviations(level) if simultaneous else deviations(level)
        low, high = (z * self.bse, z * self.bse) if self.ratios is None else self.ratios.ends(z)
        return pd.DataFrame({"low": self.params - low, "high": self.params + high})

    def to_frame(self, level: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return coefficients, standard errors, z, p and intervals by term; arguments as `conf_int`."""
        columns = {"coef": self.params, "std_error": self.bse, "z": self.tvalues, "p": self.pvalues}
        return pd.DataFrame(columns).join(self.conf_int(level, simultaneous=simultaneous))

    def wald_test(self, terms: str | Sequence[str]) -> HypothesisTest:
        """Return Wald's test that coefficients are all 0.

        Args:
            terms: of the formula, as in `factors`, or coefficients, as in `params`; one or several.

        Raises:
            ConfigError: there is no such term.

        Example:
            >>> release.ols("wage ~ age + C(region)").wald_test("C(region)").pvalue  # doctest: +SKIP
        """
        wanted = [terms] if isinstance(terms, str) else list(terms)
        names: list[str] = []
        for term in wanted:
            known = self.factors.get(term, [term] if term in self.params.index else [])
            if not known:
                all_terms = ", ".join(map(repr, dict.fromkeys((*self.factors, *self.params.index))))
                raise ConfigError(f"Expected one of the terms {all_terms}, got {term!r}.")
            names += known
        names = list(dict.fromkeys(names))
        if not names:
            raise ConfigError("Expected at least one term to test, got none.")
        params, statistics = self.params[names].to_numpy(), self.tvalues[names].to_numpy()
        at_zero = np.where(statistics == 0, 1.0, params / np.where(statistics == 0, 1.0, statistics * self.bse[names]))
        return HypothesisTest.of_zeros(
            params,
            self.covariance.loc[names, names].to_numpy() * np.outer(at_zero, at_zero),
            f"{self.formula}: the coefficient{'' if len(names) == 1 else 's'} of {', '.join(wanted)} "
            f"{'is' if len(names) == 1 else 'are all'} 0.",
            self.target,
            self.rests_on,
        )

    def wald_test_terms(self) -> pd.DataFrame:
        """Return Wald's test of each term of the formula, all coefficients of a factor together: chi2, df, p."""
        tests = {term: self.wald_test(term) for term in self.factors or self.params.index}
        rows = {term: (test.statistic, test.df, test.pvalue) for term, test in tests.items()}
        return pd.DataFrame.from_dict(rows, orient="index", columns=["chi2", "df", "p"]).rename_axis("term")

    @overload
    def predict(self, values: Mapping[str, object]) -> Estimate: ...
    @overload
    def predict(self, values: pd.DataFrame | Sequence[Mapping[str, object]]) -> Estimates: ...
    def predict(
        self, values: Mapping[str, object] | pd.DataFrame | Sequence[Mapping[str, object]]
    ) -> Estimate | Estimates:
        """Return the mean of the left side that the regression predicts, with its interval.

        Args:
            values: of each column of the right side, by name; or several rows of them.

        Raises:
            ConfigError: a column is missing, or a value is none of the column's.

        Example:
            >>> release.logit("member ~ age + C(sex)").predict({"age": 40, "sex": "f"}).interval()  # doctest: +SKIP
            (0.31, 0.38)
        """
        if self.rows is None or self.joint is None:
            raise ConfigError("Expected a regression of a formula to predict by, got one of a list of answers.")
        several = not isinstance(values, Mapping)
        rows = values.to_dict(orient="records") if isinstance(values, pd.DataFrame) else values if several else [values]
        index = values.index if isinstance(values, pd.DataFrame) else range(len(rows))
        if not len(rows):
            raise ConfigError("Expected at least one row of values, got none.")
        predicted = [self._predicted(terms) for terms in self.rows.of(rows)]  # type: ignore[arg-type]
        if not several:
            return predicted[0]
        return Estimates(dict(zip(index, predicted, strict=True)), (_ROW,), {}, self._joint)

    def _predicted(self, terms: np.ndarray) -> Estimate:
        """Return the mean at the terms of a row, shape (k,); its interval is that of the linear predictor."""
        assert self.joint is not None
        mean = next(family for family in FAMILIES.values() if family.kind == self.kind).mean
        middle = float(terms @ self.params.to_numpy())
        sizes = self.joint.along(terms)
        spread = float(np.sqrt(sum(size**2 for size in sizes.values())))
        slope = abs(float(np.diff(mean(np.array([middle - _STEP, middle + _STEP])))[0])) / (2 * _STEP)

        def ends(z: float) -> tuple[float, float]:
            low, high = mean(np.array([middle - z * spread, middle + z * spread]))
            return float(low), float(high)

        parts = {cause: slope * size for cause, size in sizes.items()}
        value = float(mean(np.array([middle]))[0])
        rests = f"A mean by {self.formula}, as far as that holds. {self.rests_on}"
        return Estimate(value, slope * spread, self.target, rests, parts, ends, influence=slope * terms)

    def _joint(self, predicted: Sequence[Estimate]) -> JointErrors:
        assert self.joint is not None
        slopes = np.stack([estimate.influence for estimate in predicted])  # type: ignore[arg-type]
        return JointErrors({cause: slopes @ part @ slopes.T for cause, part in self.joint.by_cause.items()})

    def summary(self, level: float = 0.95) -> str:
        """Return the table as text, with what it rests on."""
        lines = [self.title(), self.to_frame(level).to_string(float_format=lambda number: shown(number, 4))]
        if self.rsquared is not None:
            low, high = self.rsquared.interval(level)
            lines.append(f"R-squared {self.rsquared.value:.3g}, {100 * level:g} %: {low:.3g} to {high:.3g}")
        if any(len(names) > 1 for names in self.factors.values()):
            lines.append(self.wald_test_terms().to_string(float_format=lambda number: shown(number, 4)))
        return "\n".join([*lines, self.rests_on])

    def to_dict(self, level: float = 0.95, *, simultaneous: bool = False) -> dict[str, Any]:
        """Return the regression as plain values: what `estimate --json` prints; arguments as `conf_int`."""
        frame = self.to_frame(level, simultaneous=simultaneous).rename_axis("term").reset_index()
        return {
            "formula": self.formula,
            "kind": self.kind,
            "target": self.target,
            "level": level,
            "nobs": self.nobs,
            "terms": frame.to_dict(orient="records"),
            "references": dict(self.references),
            "wald_tests": self.wald_test_terms().reset_index().to_dict(orient="records"),
            "rsquared": None if self.rsquared is None else self.rsquared.to_dict(level),
            "rests_on": self.rests_on,
        }

    def title(self) -> str:
        """Return in a line what was fitted, and to how many rows."""
        return f"{self.formula}: {self.kind}, of the {self.target}, about {grouped(self.nobs, '.0f')} rows"

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import LEVEL, regression_card

        return regression_card(self.title(), self.to_frame(LEVEL), self.rests_on)


class Regressions(GroupedResults[Regression]):
    """Regressions by group.

    Attributes:
        left_out: groups that the release does not answer for, and why.
    """

    def to_frame(self, level: float = 0.95, *, simultaneous: bool = False) -> pd.DataFrame:
        """Return `Regression.to_frame` of each, by group and term; those of all groups at once if `simultaneous`."""
        own = self._own(level, simultaneous)
        frames = {group: fit.to_frame(own, simultaneous=simultaneous) for group, fit in self.items()}
        return pd.concat(frames, names=["group", "term"])

    def _own(self, level: float, simultaneous: bool) -> float:
        """Return the level of each group's intervals (Bonferroni)."""
        require_flag(simultaneous=simultaneous)
        return 1 - (1 - require_open_unit(level=level)) / len(self) if simultaneous else level

    def _entries(self, level: float, simultaneous: bool) -> Iterator[dict[str, Any]]:
        own = self._own(level, simultaneous)
        for fit in self.values():
            yield {**fit.to_dict(own, simultaneous=simultaneous), "level": level}

    def summary(self, level: float = 0.95) -> str:
        """Return the tables as text, what was left out, and what they rest on."""
        tables = [f"{group}: {fit.summary(level)}" for group, fit in self.items()]
        return "\n\n".join([*tables, *self._omissions()])

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import LEVEL, regressions_card

        first = next(iter(self.values()))
        frames = {group: fit.to_frame(LEVEL) for group, fit in self.items()}
        return regressions_card(first.title(), frames, self.left_out, first.rests_on)
