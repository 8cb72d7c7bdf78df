"""A finding of a release, verified on the records: a noisy yes or no, charged like a fit.

The release says that a coefficient is above 0, say. One sum over the records says whether theirs is beyond the least
that would be significant: of each record's influence on the coefficient there, clipped. The answer is a function of
that noisy sum and of the release.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from sfumato.data_ledger.journal import Journal
from sfumato.errors import ConfigError, EstimateError, require_choice
from sfumato.fitting.account import Account
from sfumato.fitting.arguments import noise_source
from sfumato.fitting.driver import Driver
from sfumato.inference.families import LINEAR, LOGISTIC, POISSON, Family
from sfumato.inference.formulas import read_formula
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.noisy_totals import LINKS
from sfumato.inference.regression_results import Regression
from sfumato.inference.score_designs import aim_equation, curvature, score_design
from sfumato.maths.threads import few_threads
from sfumato.measurements.score_query import ONE, EstimatingEquation, ScoreQuery
from sfumato.methods.tables.question_sums import QuestionPart, QuestionSums
from sfumato.privacy.budget import PrivacyBudget, default_delta
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate_form import Protected
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.private import PrivateData
from sfumato.records.table_sources import open_records
from sfumato.release_front import Release
from sfumato.schema.schema_facts import weight_bound

STAGE = "verification"
_FAMILIES: dict[str, Family] = {family.name: family for family in (LINEAR, LOGISTIC, POISSON)}
_KEPT = 0.995  # of the rows, whose influence is not clipped
_SIGNIFICANT = float(special.ndtri(0.975))
_LEAST_RATE = 0.001  # of errors that is told: clipping moves smaller ones

Says = Literal["above 0", "below 0", "not significant"]


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether the records show what a release says of one coefficient, at 5 %.

    Attributes:
        formula: of the regression.
        term: its coefficient.
        says: "above 0", "below 0" or "not significant": of the release.
        agrees: whether the records, with noise, say the same.
        coefficient: of the release.
        bound: beyond which a coefficient of the records is significant, by the release's sampling error.
        noise_std: of the coefficient that the answer rests on.
        epsilon: ε of the answer, in nats.
        delta: its δ.
        private: whether its noise was secret.
    """

    formula: str
    term: str
    says: Says
    agrees: bool
    coefficient: float
    bound: float
    noise_std: float
    epsilon: float
    delta: float
    private: bool

    @property
    def false_yes(self) -> float:
        """The chance of a yes where the records' coefficient is 0; of none significant, where it is twice the bound."""
        if self.says == "not significant":
            return float(special.ndtr(-self.bound / self.noise_std) - special.ndtr(-3 * self.bound / self.noise_std))
        return float(special.ndtr(-self.bound / self.noise_std))

    @property
    def false_no(self) -> float:
        """The chance of a no where the records' coefficient is exactly the release's."""
        size = abs(self.coefficient)
        if self.says == "not significant":
            ends = special.ndtr(np.array([-self.bound - size, size - self.bound]) / self.noise_std)
            return float(ends.sum())
        return float(special.ndtr((self.bound - size) / self.noise_std))

    def summary(self) -> str:
        """Return the answer in sentences, with its error rates and what it cost."""
        answer = "agree" if self.agrees else "do not agree"
        rates = [
            f"{rate:.2g}" if rate >= _LEAST_RATE else f"below {_LEAST_RATE:g}"
            for rate in (self.false_yes, self.false_no)
        ]
        zero = "twice what is significant" if self.says == "not significant" else "0"
        return (
            f"The records {answer}: the release says that {self.term} of {self.formula!r} is {self.says} "
            f"({self.coefficient:.4g}).\n"
            f"The chance of a wrong yes is {rates[0]} where the records' coefficient is {zero}, of a wrong no "
            f"{rates[1]} where it is the release's.\n"
            f"The answer cost epsilon = {self.epsilon:g}, delta = {self.delta:g}"
            f"{'' if self.private else ': NOT PRIVATE, its noise was seeded'}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values: what `verify-finding --json` prints."""
        return {**asdict(self), "false_yes": self.false_yes, "false_no": self.false_no}

    def __repr__(self) -> str:
        return self.summary()


@few_threads
def verify_finding(
    release: Release,
    data: object,
    formula: str,
    term: str,
    *,
    epsilon: float,
    family: str = "ols",
    delta: float | None = None,
    ledger: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    rows_are_records: bool = False,
) -> Verification:
    """Ask the records, with noise, whether they show what a release says of one coefficient: its sign at 5 %, or none.

    Privacy: (ε, δ), beside that of the release: one Gaussian event, of a sum of numbers clipped to 1 (ScoreQuery in
        docs/proofs/questions.md, k = 1). All checks come before the charge.

    Args:
        release: of a table, as it is or loaded.
        data: its records, as `fit` takes them.
        formula: of a regression that the release answers.
        term: a coefficient of it, as the release names it.
        epsilon: ε in nats of the answer.
        family: "ols", "logit" or "poisson".
        delta: δ; by default min(1e-5, 0.1/n) of the release's n.
        ledger: the account of the data; it is charged before a record is counted.
        seed: a whole number from 0, for tests only: not private.
        rows_are_records: as `fit`.

    Raises:
        ConfigError: an argument is outside its domain, or the formula has no such term.
        EstimateError: the release does not answer the regression.
        BudgetExceededError: the ledger cannot pay. Nothing was charged.
        DataError: the data cannot be read.

    Example:
        >>> sfumato.verify_finding(release, frame, "wage ~ age", "age", epsilon=0.1).agrees  # doctest: +SKIP
        True
    """
    require_choice(tuple(_FAMILIES), family=family)
    if release.schema.linked:
        raise ConfigError(
            "Expected a release of single rows to verify a finding of, got one of linked rows, whose record is a unit."
        )
    fit = getattr(release, family)(formula)
    if term not in fit.params.index:
        raise ConfigError(f"Expected one of the terms {', '.join(map(repr, fit.params.index))}, got {term!r}.")
    n = release.certificate.n_public
    budget = PrivacyBudget(epsilon, default_delta(n) if delta is None else delta)
    stage = Stage(name=STAGE, noise_multiplier=1.0, replace_distance=2.0, measures=f"{term} of {formula}")
    plan = calibrate(Plan([stage]), budget)
    query, scale = _influence(release, fit, term, _FAMILIES[family])
    noise, schema = noise_source(budget, seed), release.schema
    opened = open_records(data, schema)
    driver = Driver(
        plan=plan, ledger=Ledger(plan, budget, None), noise=noise, method="verify-finding", methods=(),
        unit=Protected(**schema.protects), journal=Journal(None, {}), source=opened, rows_are_records=rows_are_records,
    )  # fmt: skip
    records = PrivateData(opened, schema)
    sums = QuestionSums((QuestionPart(STAGE, query, 1.0),), query.weight)
    with driver.charged(ledger) as source:
        noisy = Account(driver.ledger, source, driver.journal).measure(STAGE, sums, records)
        driver.ledger.close()
    return _answer(fit, term, float(noisy.value[0]) * scale, noisy.noise_std * scale, budget, private=noise.private)


def _answer(
    fit: Regression, term: str, missed: float, noise_std: float, budget: PrivacyBudget, *, private: bool
) -> Verification:
    """Return the answer, where the records' coefficient misses where it was asked by a noisy number."""
    says, at = _where(fit, term)
    bound = _bound(fit, term)
    noisy = at + missed
    shown = {"above 0": noisy > bound, "below 0": noisy < -bound, "not significant": abs(noisy) <= bound}[says]
    return Verification(
        fit.formula, term, says, bool(shown), _number(fit.params, term), bound, noise_std, budget.epsilon, budget.delta,
        private,
    )  # fmt: skip


def _number(series: pd.Series, term: str) -> float:
    return float(series.to_numpy()[list(series.index).index(term)])


def _bound(fit: Regression, term: str) -> float:
    return _SIGNIFICANT * _number(fit.parts["sampling"], term)


def _where(fit: Regression, term: str) -> tuple[Says, float]:
    """What the release says, and the coefficient at which the records are asked: where what it says would end.

    There the sign of the sum is right however far the records are, and whatever clipping takes away.
    """
    if abs(_number(fit.tvalues, term)) <= _SIGNIFICANT:
        return "not significant", _number(fit.params, term)
    bound = _bound(fit, term)
    return ("above 0", bound) if _number(fit.params, term) > 0 else ("below 0", -bound)


def _influence(release: Release, fit: Regression, term: str, family: Family) -> tuple[ScoreQuery, float]:
    """Return scores whose one number is a record's influence on a coefficient, clipped to 1, and what 1 is worth."""
    measured: Any = release._questions.measured
    read = read_formula(fit.formula, list(measured.told_apart.columns))
    columns = {name: measured.column(name) for name in read.columns}
    totals = measured_functions(measured, cell_functions(measured, read.columns))
    weights = measured.calibration(totals).weights  # as named questions are aimed by: its errors do not matter here
    design = read.design(measured.told_apart, weights, logistic=family.two_values)
    weights = weights * design.present
    solution = family.solve(design.left, design.right, weights, family.phrase(fit.formula), design.terms)
    own = solution.of_record[:, design.terms.index(term)] * design.present
    equation = score_design(fit.formula, fit.formula, LINKS[family.name], columns, measured.told_apart, weights)
    equation = aim_equation(equation, measured, weights)
    left, terms = equation.sides(measured.base)
    right = np.stack(terms, axis=1)
    scores = right * equation.residual(left, terms)[:, None]
    direction = np.linalg.lstsq(scores, own, rcond=None)[0]
    worth = float(np.quantile(np.abs(scores @ direction), _KEPT))
    if not worth > 0:
        raise EstimateError(f"Expected a term whose influence varies from record to record, got {term!r}.")
    equation = _moved(equation, right, weights, direction, _where(fit, term)[1] - _number(fit.params, term))
    turn = np.zeros((len(terms), len(terms)), dtype=np.int64)
    turn[0] = np.rint(direction / worth * ONE)
    schema = release.schema
    weight, unit = ("", 1.0) if schema.weight is None else (schema.weight.column, weight_bound(schema))
    return ScoreQuery((equation,), turn, weight), worth * unit  # a record adds its weight ÷ the bound


def _moved(
    equation: EstimatingEquation, right: np.ndarray, weights: np.ndarray, direction: np.ndarray, by: float
) -> EstimatingEquation:
    """Return the equation at coefficients that are the nearest at which one is another by so much.

    With H the slope of the mean scores, the one has the gradient H·a for its influence aᵀs: along a it changes by aᵀHa.
    """
    positive = np.maximum(weights, 0.0)
    slope = (right * (positive * curvature(equation, right))[:, None]).T @ right
    step = by / float(direction @ slope @ direction) * direction
    return replace(equation, coefficients=equation.coefficients + np.rint(step * ONE).astype(np.int64))
