"""Least squares and logistic regression on calibrated rows: noisy sufficient statistics, with the noise in the errors.

The rows have the products that were measured, so that least squares of columns within the measured functions is that of
the noisy second moments; what noise those have, and what of a column they do not say, are in the standard errors.
Logistic regression solves its score equations on the same rows: products with the left side as measured, the law of the
right side from the model, calibrated. Standard errors are robust to heteroscedasticity, by the rows' influence values.

Free: uses released values only.
Reference: Huber 1967 (the sandwich); Ferrando, Wang and Sheldon 2022 (noise-aware intervals from noisy statistics).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from sfumato.errors import EstimateError
from sfumato.inference.bootstrap import stretches
from sfumato.inference.calibration import Target
from sfumato.inference.estimate import GroupedResults, answers_by_group, deviations
from sfumato.inference.estimator import Estimator, require_known, rests_on
from sfumato.inference.formulas import Design, read_formula
from sfumato.inference.questions import Questions
from sfumato.inference.together import require_together

_ROUNDS = 50
_CONVERGED = 1e-10
_LARGEST_LOGIT = 30.0  # of a term of a usual row: beyond it chances are 0 and 1
LEAST_LEVEL = 2.0
"""Deviations of its error that the number of rows of a label has to be above 0, for a term of its own."""
_LEAST_EIGENVALUE = 1e-6  # of the scaled design: below it, a term is a sum of others


@dataclass(frozen=True, slots=True)
class Regression:
    """A fitted regression, by term, with the names that statsmodels gives.

    Attributes:
        formula: as it was asked.
        kind: "least squares" or "logistic".
        params: coefficients.
        bse: their standard errors: privacy noise, sampling if the target is the population, and what was not measured.
        covariance: of the errors, a frame of terms by terms.
        parts: standard errors by cause, a frame of terms by "noise", "sampling" and "unmeasured".
        target: "population" or "table".
        rests_on: a sentence on what was measured.
        nobs: number of rows without a missing value, estimated.
        references: by column, the label that its others are compared with: the commonest, unless the formula names one.

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

    @property
    def tvalues(self) -> pd.Series:
        """Coefficients ÷ standard errors, standard normal where a coefficient is 0."""
        return self.params / self.bse

    @property
    def pvalues(self) -> pd.Series:
        """Two-sided, under the normal law."""
        return pd.Series(2 * special.ndtr(-np.abs(self.tvalues.to_numpy())), index=self.params.index)

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the errors."""
        return self.covariance

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals by term: columns low and high.

        Args:
            level: in (0, 1).
        """
        z = deviations(level)
        return pd.DataFrame({"low": self.params - z * self.bse, "high": self.params + z * self.bse})

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return coefficients, standard errors, z, p and intervals by term."""
        columns = {"coef": self.params, "std_error": self.bse, "z": self.tvalues, "p": self.pvalues}
        return pd.DataFrame(columns).join(self.conf_int(level))

    def summary(self, level: float = 0.95) -> str:
        """Return the table as text, with what it rests on."""
        return f"{self.title()}\n{self.to_frame(level).to_string(float_format='{:.4g}'.format)}\n{self.rests_on}"

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return the regression as plain values: what `estimate --json` prints."""
        terms = self.to_frame(level).rename_axis("term").reset_index().to_dict(orient="records")
        return {
            "formula": self.formula,
            "kind": self.kind,
            "target": self.target,
            "level": level,
            "nobs": self.nobs,
            "terms": terms,
            "references": dict(self.references),
            "rests_on": self.rests_on,
        }

    def title(self) -> str:
        """Return in a line what was fitted, and to how many rows."""
        return f"{self.formula}: {self.kind}, of the {self.target}, about {self.nobs:,.0f} rows"

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

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return `Regression.to_frame` of each, by group and term."""
        return pd.concat({group: fit.to_frame(level) for group, fit in self.items()}, names=["group", "term"])

    def summary(self, level: float = 0.95) -> str:
        """Return the tables as text, what was left out, and what they rest on."""
        tables = [f"{group}: {fit.summary(level)}" for group, fit in self.items()]
        return "\n\n".join([*tables, *self._omissions()])

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import LEVEL, regressions_card

        first = next(iter(self.values()))
        frames = {group: fit.to_frame(LEVEL) for group, fit in self.items()}
        return regressions_card(first.title(), frames, self.left_out, first.rests_on)


def fit_formula(
    questions: Questions, formula: str, by: str | None, target: str, *, logistic: bool
) -> Regression | Regressions:
    """Return least squares or logistic regression of a formula; arguments and errors as `Release.ols`."""
    frame = questions.measured.frame
    read = read_formula(formula, list(frame.columns))
    estimator = questions.estimator(read.columns if by is None else (*read.columns, by), target)
    design = read.design(frame, estimator.calibration.weights, logistic=logistic)
    link = "logit" if logistic else "identity"
    named = by is None and any(scores.of_regression(read, link) for scores in questions.measured.scores)
    return fit_design(questions, design, read.columns, by, target, formula, logistic=logistic, named=named)


def fit_design(
    questions: Questions,
    design: Design,
    columns: tuple[str, ...],
    by: str | None,
    target: str,
    formula: str,
    *,
    logistic: bool,
    named: bool = False,
) -> Regression | Regressions:
    """Return the regression of a design on the model's rows, which holds these columns; `formula` names it.

    Where it was `named` before the fit, its own scores were measured, and need no products of two columns.

    Raises:
        EstimateError: the measurements do not answer it.
    """
    estimator = questions.estimator(columns if by is None else (*columns, by), target)
    if not named:
        _require_products(questions, design, by, f"the regression {formula!r}")
    for name in columns:
        questions.require_squares(name, estimator)
    if by is None:
        return _one(estimator, design, np.ones_like(design.present), formula, logistic)
    groups = {
        label: partial(_one, estimator, design, rows, formula, logistic) for label, rows in questions.levels(by).items()
    }
    return Regressions(*answers_by_group(groups))


def _require_products(questions: Questions, design: Design, by: str | None, what: str) -> None:
    """Refuse a regression whose sums of products are of columns that were not measured together."""
    group = set() if by is None else {by}
    for one, other in itertools.combinations_with_replacement((design.of_left, *design.of_terms), 2):
        require_together(questions.measured, one | other | group, what)


def _one(estimator: Estimator, design: Design, rows: np.ndarray, formula: str, logistic: bool) -> Regression:
    """Return the regression of some of the rows, shape (N,)."""
    what = f"the {'logistic ' if logistic else ''}regression {formula!r}"
    present = design.present * rows
    n = estimator.positive(present, what)
    weights = estimator.calibration.weights * present
    solve = logistic_fit if logistic else least_squares
    require_levels_seen(estimator, design, rows, what)
    params, influence = solve(design.left, design.right, weights, what, design.terms)
    influence = influence * present[:, None]
    variances = estimator.calibration.variances(influence, None if design.present.all() else design.present)
    require_known(variances.known, estimator.columns, what)
    if logistic:

        def ask(redrawn: np.ndarray) -> np.ndarray:
            return solve(design.left, design.right, redrawn * present, what, design.terms)[0]

        linear = np.sqrt(np.maximum(np.diagonal(variances.noise), 0.0))
        variances = variances.stretch_noise(stretches(estimator.calibration, ask, linear, what))
    covariance = variances.of(estimator.target)
    terms, parts = list(design.terms), variances.by_cause(estimator.target)
    sizes = {cause: np.sqrt(np.maximum(np.diagonal(part), 0.0)) for cause, part in parts.items()}
    # of all terms together, each in its own unit
    shares = {cause: float(np.sqrt((size**2 / np.diagonal(covariance)).mean())) for cause, size in sizes.items()}
    return Regression(
        formula,
        "logistic" if logistic else "least squares",
        pd.Series(params, index=terms),
        pd.Series(np.sqrt(np.diagonal(covariance)), index=terms),
        pd.DataFrame(covariance, index=terms, columns=terms),
        pd.DataFrame(sizes, index=terms),
        estimator.target,
        estimator.preface + _compared_with(design.references) + rests_on(estimator, shares),
        n,
        design.references,
    )


def _compared_with(references: Mapping[str, str]) -> str:
    """Return the sentence on the labels that others are compared with."""
    pairs = " and ".join(f"{column!r} with {label!r}" for column, label in references.items())
    return f"Labels are compared with the commonest: of {pairs}. " if pairs else ""


def require_levels_seen(estimator: Estimator, design: Design, rows: np.ndarray, what: str) -> None:
    """Refuse a term of a label that noise hides: its coefficient, and with it the others', would be noise."""
    binary = np.flatnonzero(np.isin(design.right, (0.0, 1.0)).all(axis=0) & (design.right != 1.0).any(axis=0))
    indicators = design.right[:, binary] * rows[:, None]
    totals = estimator.calibration.total(indicators)
    errors = np.sqrt(estimator.calibration.each(indicators).of("table"))
    for place in np.argsort(totals):
        if not totals[place] > LEAST_LEVEL * errors[place]:
            raise EstimateError(
                f"Expected labels that stand out of noise for {what}, got {design.terms[binary[place]]}, of which the "
                "release holds too few rows. Put it together with another label, leave its column out, or fit with a "
                "larger epsilon."
            )


def _inverse(matrix: np.ndarray, what: str, terms: Sequence[str]) -> np.ndarray:
    """Return the inverse of a sum of products of terms; refuse by name a term that may be a sum of others."""
    sizes = np.diagonal(matrix)
    scale = np.sqrt(np.where(sizes > 0, sizes, 1.0))
    scaled = matrix / np.outer(scale, scale)
    worst = int(np.argmin(np.where(np.isfinite(sizes), sizes, -np.inf)))
    if bool((sizes > 0).all() and np.isfinite(scaled).all()):
        values, vectors = np.linalg.eigh(scaled)
        if values[0] >= _LEAST_EIGENVALUE:
            return np.linalg.inv(scaled) / np.outer(scale, scale)
        worst = int(np.argmax(np.abs(vectors[:, 0])))
    raise EstimateError(
        f"Expected terms that tell rows apart for {what}, got {terms[worst]}, which is a sum of others, or which noise "
        "hides. Leave it out, put a rare label together with another, or fit with a larger epsilon."
    )


def least_squares(
    left: np.ndarray, right: np.ndarray, weights: np.ndarray, what: str, terms: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients, shape (k,), and the influence of each row on them, shape (N, k).

    Args:
        left: left side of the rows, shape (N,).
        right: terms of the rows, shape (N, k).
        weights: of the rows, shape (N,).
        what: the regression, for messages.
        terms: names of the terms, for messages.
    """
    inverse = _inverse((right * weights[:, None]).T @ right, what, terms)
    params = inverse @ (right.T @ (weights * left))
    return params, (right * (left - right @ params)[:, None]) @ inverse


def logistic_fit(
    left: np.ndarray, right: np.ndarray, weights: np.ndarray, what: str, terms: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients by Newton's method, and the influence of each row on them; arguments as `least_squares`.

    Raises:
        EstimateError: there are none: a term's rows all have one value of the left side, as far as noise shows them.
    """
    params = step = np.zeros(right.shape[1])
    nonzero = np.abs(right).max(axis=1) > 0
    spread = np.sqrt(np.mean(right[nonzero] ** 2, axis=0)) if nonzero.any() else np.ones(right.shape[1])
    binary = np.isin(right, (0.0, 1.0)).all(axis=0)
    unit = np.where(binary, 1.0, spread)
    for _ in range(_ROUNDS):
        chances = special.expit(right @ params)
        inverse = _inverse((right * (weights * chances * (1 - chances))[:, None]).T @ right, what, terms)
        step = inverse @ (right.T @ (weights * (left - chances)))
        # steps of more than 2 in the logit of a usual row overshoot
        step *= min(1.0, 2.0 / max(float(np.sqrt(np.mean((right @ step) ** 2))), 1e-300))
        params = params + step
        moves = np.abs(params) * unit
        if not moves.max() < _LARGEST_LOGIT:
            raise _no_solution(what, terms[int(np.argmax(np.nan_to_num(moves, nan=np.inf)))])
        if np.abs(step).max() <= _CONVERGED * (1 + np.abs(params).max()):
            return params, (right * (left - chances)[:, None]) @ inverse
    raise _no_solution(what, terms[int(np.argmax(np.abs(step) * unit))])


def _no_solution(what: str, term: str) -> EstimateError:
    return EstimateError(
        f"Expected {what} to have a solution, got none because of {term}: the left side's two values may not overlap "
        "there, or noise hides it. Put a rare label together with another, or use fewer terms."
    )
