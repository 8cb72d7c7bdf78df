"""Regressions on calibrated rows: noisy sufficient statistics, with the noise in the errors.

The rows have the products that were measured, so that least squares of columns within the measured functions is that of
the noisy second moments; what noise those have, and what of a column they do not say, are in the standard errors.
Logistic and Poisson regression solve their score equations on the same rows: products with the left side as measured,
the law of the right side from the model, calibrated. Those of gamma regression are functions of all columns together.
Standard errors are robust to heteroscedasticity, by the rows' influence values.

How much farther an estimate spreads under its noise than a straight line through it says, a bootstrap finds.

Free: uses released values only.
Reference: Huber 1967 (the sandwich); Ferrando, Wang and Sheldon 2022 (noise-aware intervals from noisy statistics);
Efron 1982, the parametric bootstrap.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from scipy import stats

from sfumato.errors import EstimateError
from sfumato.inference.calibration import Calibration
from sfumato.inference.denominators import UNKNOWN, Denominators, Ratios
from sfumato.inference.estimate import Estimate, answers_by_group
from sfumato.inference.estimator import LEAST_KNOWN, Estimator, require_known, rests_on
from sfumato.inference.families import Family
from sfumato.inference.formulas import Design, read_formula
from sfumato.inference.intervals import SquaredLength, size_of
from sfumato.inference.joint_errors import JointErrors
from sfumato.inference.questions import Questions
from sfumato.inference.regression_results import DesignRows, Regression, Regressions
from sfumato.inference.rows import require_together
from sfumato.maths.streams import public_stream

DRAWS = 40
_STREAM = 20_261
_MOST_LOST = 0.25  # of the draws, which have no solution: noise may then hide whether there is one
_MIDDLE = stats.norm.ppf(0.84) - stats.norm.ppf(0.16)
LEAST_LEVEL = 2.0
"""Deviations of its error that the number of rows of a label has to be above 0, for a term of its own."""
_TINY = 1e-9


def stretches(
    calibration: Calibration, ask: Callable[[np.ndarray], np.ndarray], linear: np.ndarray, what: str
) -> np.ndarray:
    """Return the factors by which standard errors of noise are too small, at least 1, shape (k,).

    Noise is redrawn about what was measured, and the question asked of the weights that this gives; the spread is that
    of the middle 68 % of the answers, which a few wild ones leave alone. The stream of draws is public and fixed, so
    that an estimate is a function of the release.

    Args:
        calibration: of the columns of the question.
        ask: from weights of the model's rows, shape (N,), to coefficients, shape (k,).
        linear: standard errors by linearisation, shape (k,).
        what: the question, for messages.

    Raises:
        EstimateError: a fourth of the draws have no answer.
    """
    if not linear.any():
        return np.ones_like(linear)
    rng, estimates = public_stream(_STREAM), []
    for _ in range(DRAWS):
        weights = calibration.redraw(rng)
        try:
            estimates.append(ask(weights))
        except EstimateError:
            continue
    if len(estimates) < (1 - _MOST_LOST) * DRAWS:
        raise EstimateError(
            f"Expected {what} to have a solution whatever the noise was, got one that noise decides about. Use fewer "
            "terms, or fit with a larger epsilon."
        )
    low, high = np.quantile(estimates, [0.16, 0.84], axis=0)
    return np.maximum((high - low) / _MIDDLE / np.where(linear > 0, linear, np.inf), 1.0)


def fit_formula(
    questions: Questions, formula: str, by: str | None, target: str, family: Family
) -> Regression | Regressions:
    """Return the regression of a formula; arguments and errors as `Release.ols`."""
    frame = questions.measured.told_apart
    read = read_formula(formula, list(frame.columns))
    estimator = questions.estimator(read.columns if by is None else (*read.columns, by), target)
    weights = estimator.calibration.weights
    design = read.design(frame, weights, logistic=family.two_values)
    family.require_left(design.left, formula)
    named = by is None and any(scores.of_regression(read, family.name) for scores in questions.measured.scores)
    fit = fit_design(questions, design, read.columns, by, target, formula, family, named=named)
    # where the formula is evaluated, for predicted means
    kinds = {name: questions.measured.column(name).kind for name in read.columns}
    wanted = frozenset().union(*design.of_terms)
    rows = DesignRows(read, frame[list(read.columns)], weights, kinds, family.two_values, wanted)
    if isinstance(fit, Regression):
        return replace(fit, rows=rows)
    return Regressions({label: replace(one, rows=rows) for label, one in fit.items()}, fit.left_out)


def fit_design(
    questions: Questions, design: Design, columns: tuple[str, ...], by: str | None, target: str, formula: str,
    family: Family, *, named: bool = False,
) -> Regression | Regressions:  # fmt: skip
    """Return the regression of a design on the model's rows, which holds these columns; `formula` names it.

    Where it was `named` before the fit, its own scores were measured, and need no products of two columns.

    Raises:
        EstimateError: the measurements do not answer it.
    """
    estimator = questions.estimator(columns if by is None else (*columns, by), target)
    estimator = questions.as_clipped(columns, estimator)
    what, squares = f"the regression {formula!r}", family.linear
    if named:
        estimator = estimator.named()
    try:
        group = set() if by is None else {by}
        for one, other in itertools.combinations_with_replacement((design.of_left, *design.of_terms), 2):
            require_together(questions.measured, one | other | group, what)
    except EstimateError:
        if not named:
            raise
        squares = False  # R-squared is a function of sums of products of all terms, coefficients are not
    if not (named or family.pairs):
        _require_all(questions, design, by, family, formula)
    for name in columns:
        questions.require_fine(name, estimator)
    if by is None:
        return _one(estimator, design, np.ones_like(design.present), formula, family, squares)
    groups = {
        label: partial(_one, estimator, design, rows, formula, family, squares)
        for label, rows in questions.levels(by).items()
    }
    return Regressions(*answers_by_group(groups))


def _require_all(questions: Questions, design: Design, by: str | None, family: Family, formula: str) -> None:
    """Refuse scores that are functions of all columns together, where these were not measured together."""
    columns = frozenset().union(design.of_left, *design.of_terms, set() if by is None else {by})
    what = f"{family.phrase(formula)}, whose scores are functions of all its columns (those of poisson are of two)"
    require_together(questions.measured, columns, what)


def _one(
    estimator: Estimator, design: Design, rows: np.ndarray, formula: str, family: Family, squares: bool
) -> Regression:
    """Return the regression of some of the rows, shape (N,); with R-squared where `squares` were measured."""
    what = family.phrase(formula)
    present = design.present * rows
    n = estimator.positive(present, what)
    weights = estimator.calibration.weights * present
    require_levels_seen(estimator, design, rows, what)
    solution = family.solve(design.left, design.right, weights, what, design.terms)
    influence = solution.influence * present[:, None]
    variances = estimator.calibration.variances(influence, None if design.present.all() else design.present)
    require_known(variances.known, estimator.columns, what)
    denominators = Denominators.of(estimator.calibration, family, design, solution, present)
    factors = np.ones(len(design.terms))
    if not family.linear:

        def ask(redrawn: np.ndarray) -> np.ndarray:
            return family.solve(design.left, design.right, redrawn * present, what, design.terms).params

        factors = stretches(estimator.calibration, ask, _errors(variances.noise), what)
    # a straight line's errors, with those of other terms' denominators; then those of its own
    straight, inside = variances.stretch_noise(factors), _errors(variances.of("table"))
    hidden = np.maximum(Ratios(inside, denominators.lean, denominators.spread).factors() / factors, 1.0)
    allowed = denominators.others(hidden, inside) + np.outer(solution.doubt, solution.doubt)
    straight = replace(straight, unmeasured=straight.unmeasured + allowed)
    ratios = Ratios(_errors(straight.of(estimator.target)), denominators.lean, denominators.spread)
    variances = straight.stretch_noise(hidden)
    unknown = [term for term, factor in zip(design.terms, hidden * factors, strict=True) if factor >= UNKNOWN]
    covariance = variances.of(estimator.target)
    terms, parts = list(design.terms), variances.by_cause(estimator.target)
    sizes = {cause: _errors(part) for cause, part in parts.items()}
    # of all terms together, each in its own unit
    shares = {cause: float(np.sqrt((size**2 / np.diagonal(covariance)).mean())) for cause, size in sizes.items()}
    return Regression(
        formula,
        family.kind,
        pd.Series(solution.params, index=terms),
        pd.Series(np.sqrt(np.diagonal(covariance)), index=terms),
        pd.DataFrame(covariance, index=terms, columns=terms),
        pd.DataFrame(sizes, index=terms),
        estimator.target,
        estimator.preface + _notes(design.references, unknown) + rests_on(estimator, shares),
        n,
        design.references,
        design.factors,
        _explained(estimator, design, present) if squares else None,
        JointErrors(parts),
        ratios,
    )


def _explained(estimator: Estimator, design: Design, present: np.ndarray) -> Estimate | None:
    """Return the share of the left side's variance that the terms explain; None where it is not known."""
    n = float(estimator.calibration.weights @ present)
    weights = estimator.calibration.weights * present / n
    left, right = design.left, design.right
    constant = np.linalg.lstsq(right[present > 0], np.ones(int((present > 0).sum())), rcond=None)[1]
    if (right[present > 0] == 1).all(axis=0).any() or float(constant.sum()) < _TINY:
        left, right = left - weights @ left, right - weights @ right
    moments = (right * weights[:, None]).T @ right
    values, vectors = np.linalg.eigh(moments)
    spread = float(weights @ left**2)
    real = values > _TINY * max(float(values.max(initial=0.0)), _TINY)
    if not spread > 0 or (values < -_TINY * abs(values).max(initial=0.0)).any():
        return None
    y, q = left / np.sqrt(spread), right @ (vectors[:, real] / np.sqrt(values[real]))
    d = q.T @ (weights * y)
    influence = q * (y - q @ d / 2)[:, None] - np.outer(y**2 / 2, d)
    variances = estimator.calibration.variances(influence * (present / n)[:, None])
    if variances.known.min(initial=1.0) < LEAST_KNOWN:
        return None
    square = SquaredLength.of(d, variances, estimator.target)
    rests = estimator.preface + rests_on(estimator, square.squares)
    return Estimate(square.value, size_of(square.squares), estimator.target, rests, square.squares, square.ends)


def _notes(references: Mapping[str, str], unknown: Sequence[str]) -> str:
    """Return the sentences on the labels that others are compared with, and on terms that noise decides about."""
    pairs = " and ".join(f"{column!r} with {label!r}" for column, label in references.items())
    compared = f"Labels are compared with the commonest: of {pairs}. " if pairs else ""
    names = " and ".join(unknown)
    hidden = f"Noise hides how far rows that are else alike differ in {names}: its coefficient may be of any size. "
    return compared + (hidden if unknown else "")


def _errors(covariance: np.ndarray) -> np.ndarray:
    """Return the roots of the diagonal."""
    return np.sqrt(np.maximum(np.diagonal(covariance), 0.0))


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
