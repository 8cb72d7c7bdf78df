"""Criteria of acceptance, judged on the records: the measurement of each, its stage, and the noisy verdict.

Every fit of a search is judged, each criterion by one Gaussian release with noise of its own. Fit and verdicts are
together what the search repeats, so that the theorem of `tune` covers both: docs/proofs/acceptance.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from sfumato.errors import ConfigError, EstimateError, NotAcceptedError
from sfumato.extras import require_extra
from sfumato.inference.families import FAMILIES
from sfumato.inference.linked_rows import questions_of
from sfumato.inference.regression import fit_formula
from sfumato.inference.regression_results import Regression
from sfumato.inference.score_designs import question_columns, require_term
from sfumato.lenses.chain import plain_schema
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.misplaced import noisy_misplaced
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import noisy_histogram
from sfumato.privacy.certificate import Certificate
from sfumato.privacy.certificate_form import Verdict
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.privacy.words import verdict
from sfumato.records.engine import Records, Rows, reduce
from sfumato.release.model import ReleaseValue
from sfumato.release.samplers import Sampler
from sfumato.schema.accept import OF_RELEASE, POSITIVE, Criterion, read_criteria
from sfumato.schema.named_questions import read_question
from sfumato.schema.schema import Schema
from sfumato.search.auroc import AurocTask, ScoreCounts, auroc_of
from sfumato.search.pair_scores import MarginalCounts, MarginalLayout

_SAMPLES, _BLOCK, _SEED = 1 << 18, 1 << 14, 1
_TAUGHT = 1 << 15


@dataclass(frozen=True)
class Judge(ABC):
    """Judges fits by one criterion.

    Attributes:
        criterion: what is asked for.
        stage: the name of its stage.
        n_public: the public number of rows: errors are shares of it.
        unit_rows: most rows of a unit.
    """

    criterion: Criterion
    stage: str
    n_public: int
    unit_rows: int

    measures = ""

    @abstractmethod
    def nothing(self) -> Any:  # noqa: ANN401 - each judge's own
        """Return the state before any sample."""

    @abstractmethod
    def see(self, state: Any, rows: Rows) -> None:  # noqa: ANN401
        """Take in some coded samples of a fit."""

    @abstractmethod
    def judge(self, state: Any, records: Records, ledger: Ledger, noise: NoiseSource) -> Verdict:  # noqa: ANN401
        """Charge the stage, and return the noisy verdict on the fit whose samples were seen."""

    def check_noise(self, plan: Plan) -> None:
        """Refuse a verdict that noise alone would decide."""
        return


def _verdict(criterion: Criterion, value: float, noise_std: float = 0.0) -> Verdict:
    """Return the verdict on a value, noisy or of a release."""
    return Verdict(
        criterion=criterion.words, value=value, noise_std=noise_std, relation=criterion.relation,
        threshold=criterion.threshold, passed=criterion.passed_by(value),
    )  # fmt: skip


@dataclass(frozen=True)
class ErrorJudge(Judge):
    """Total variation between records and release, of the worst table: records in other cells ÷ public rows."""

    layout: MarginalLayout

    measures = "how many records lie where the fit has none, in its worst table of cells, to accept it or not"

    def nothing(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros(self.layout.starts[-1])

    def see(self, state: np.ndarray, rows: Rows) -> None:
        """Count some samples."""
        self.layout.count(state, rows)

    def judge(self, state: np.ndarray, records: Records, ledger: Ledger, noise: NoiseSource) -> Verdict:
        """Compare counts of the records with those of the samples."""
        exact, starts = reduce(MarginalCounts(self.layout), records), self.layout.starts
        noisy = noisy_misplaced(exact, state, starts, stage=self.stage, ledger=ledger, noise=noise)
        return _verdict(self.criterion, float(noisy.value) / self.n_public, noisy.noise_std / self.n_public)

    def check_noise(self, plan: Plan) -> None:
        """Refuse noise as large as the error that is asked for."""
        noise_std = plan[self.stage].noise_multiplier * self.unit_rows / self.n_public
        if noise_std >= self.criterion.threshold:
            raise ConfigError(
                f"Expected a criterion that noise leaves something of, got {self.criterion.words} with noise of "
                f"standard deviation {noise_std:.2g}. Nothing was read or charged: ask for less, spend a larger "
                "epsilon or accept_share, or declare more rows if there are."
            )


@dataclass(frozen=True)
class AurocJudge(Judge):
    """AUROC on the records of a classifier that samples of the fit taught."""

    task: AurocTask

    measures = "how many records lie in each run of scores of a classifier that the fit taught, by class, to accept it"

    def nothing(self) -> list[Rows]:
        """Return no samples."""
        return []

    def see(self, state: list[Rows], rows: Rows) -> None:
        """Keep the first samples, to learn from."""
        if len(state) * _BLOCK < _TAUGHT:
            state.append(rows)

    def judge(self, state: list[Rows], records: Records, ledger: Ledger, noise: NoiseSource) -> Verdict:
        """Learn, count records by score and class with noise, and compute the AUROC of these counts."""
        exact = reduce(ScoreCounts.taught_by(self.task, state), records)
        noisy = noisy_histogram(exact, stage=self.stage, ledger=ledger, noise=noise)
        return _verdict(self.criterion, *auroc_of(noisy.value, noisy.noise_std))


def verdicts_on(
    judges: Sequence[Judge], sampler: Sampler, records: Records, ledger: Ledger, noise: NoiseSource
) -> tuple[Verdict, ...]:
    """Judge a fit by every criterion, in order, on the same samples.

    Args:
        judges: one for each criterion.
        sampler: of the fit; its samples are free.
        records: what the fit was made of.
        ledger: of these verdicts; closed at the end.
        noise: the source of randomness.
    """
    states = [judge.nothing() for judge in judges]
    for block, start in enumerate(range(0, _SAMPLES, _BLOCK)):
        rows = sampler.rows(min(_BLOCK, _SAMPLES - start), public_stream(_SEED, block))
        for judge, state in zip(judges, states, strict=True):
            judge.see(state, rows)
    verdicts = tuple(judge.judge(state, records, ledger, noise) for judge, state in zip(judges, states, strict=True))
    ledger.close()
    return verdicts


def judges_of(criteria: Sequence[Criterion], schema: Schema, n_public: int) -> tuple[Judge, ...]:
    """Return a judge for each criterion that records are asked about.

    Args:
        criteria: in the order of the schema.
        schema: what is modelled: of a schema with rules, what these leave free.
        n_public: the public number of rows.

    Raises:
        ConfigError: a criterion has too many tables, or speaks of a column that follows from others by a rule;
            scikit-learn is needed and not installed.
    """
    for criterion in criteria:
        named = [*criterion.columns, *([] if criterion.target is None else [criterion.target])]
        beyond = next((name for name in named if name not in schema.released), None)
        if beyond is not None:
            raise ConfigError(
                f"Expected {criterion.words} to name columns that no rule computes, got {beyond!r}: it follows from "
                "others. Name these."
            )
    numbered = [(i, criterion) for i, criterion in enumerate(criteria, 1) if criterion.kind not in OF_RELEASE]
    return tuple(_judge(criterion, i, schema, n_public) for i, criterion in numbered)


def check_findings(schema: Schema) -> None:
    """Refuse a finding whose regression cannot be evaluated, or has no such term, by public facts.

    Raises:
        ConfigError: as said.
    """
    for criterion in schema.accept:
        if criterion.finding is not None:
            columns = question_columns(plain_schema(schema), schema)
            question = read_question(criterion.finding)
            logistic = FAMILIES[question.form].two_values
            require_term(question.words, question.formula, str(criterion.term), columns, logistic=logistic)


def verdicts_of_release(criteria: Sequence[Criterion], release: Callable[[], ReleaseValue]) -> tuple[Verdict, ...]:
    """Return the verdicts that need no record: functions of a fit's own release.

    Every sampled row keeps the rules, or sampling fails. A finding has the answer of the release, with the noise that
    the fit charged for.

    Args:
        criteria: of which those that ask records are left out.
        release: of the fit, made where a criterion asks it.
    """
    values = {c: 0.0 if c.finding is None else _sureness(c, release()) for c in criteria if c.kind in OF_RELEASE}
    return tuple(_verdict(criterion, value) for criterion, value in values.items())


def _sureness(criterion: Criterion, release: ReleaseValue) -> float:
    """The chance of the sign that a release's estimate and its standard error speak for; 0 where it has no answer."""
    question = read_question(criterion.finding)
    try:
        fit = fit_formula(questions_of(release), question.formula, None, "population", FAMILIES[question.form])
    except (ConfigError, EstimateError, np.linalg.LinAlgError):  # what is charged is judged, whatever noise made of it
        return 0.0
    assert isinstance(fit, Regression)
    values = dict(zip(map(str, fit.params.index), fit.tvalues.to_numpy(), strict=True))
    value = float(values.get(str(criterion.term), np.nan))  # none where others are compared with its label
    return float(special.ndtr(value if criterion.sign == POSITIVE else -value)) if math.isfinite(value) else 0.0


def _judge(criterion: Criterion, number: int, schema: Schema, n_public: int) -> Judge:
    stage = f"accept {number}: {criterion.kind}"
    rows = 1 if schema.unit is None else schema.unit.max_rows
    if criterion.kind in ("marginal_error", "pair_error"):
        ways = 1 if criterion.kind == "marginal_error" else 2
        layout = MarginalLayout.of(schema, criterion.columns, ways=ways)
        return ErrorJudge(criterion, stage, n_public, rows, layout)
    if criterion.kind == "auroc":
        require_extra("evaluate", "judge a criterion by AUROC")
        return AurocJudge(criterion, stage, n_public, rows, AurocTask.of(schema, criterion))
    raise ConfigError(f"Expected a criterion that this version judges, got {criterion.words}.")


def verdict_stages(judges: Sequence[Judge], share: float, distance: float) -> list[Stage]:
    """Return the stages of verdicts with relative noise, equal shares of `share` of the squared budget of a fit."""
    return [
        Stage(
            name=judge.stage,
            noise_multiplier=multiplier_for_share(share / len(judges)),
            replace_distance=distance,
            measures=judge.measures,
        )
        for judge in judges
    ]


def with_criteria(schema: Schema, accept: Sequence[Criterion | Mapping[str, Any]] | None) -> Schema:
    """Return the schema with the criteria that a caller states beside it.

    Raises:
        ConfigError: both state some.
        SchemaError: the criteria have faults.
    """
    if accept is None:
        return schema
    if schema.accept:
        raise ConfigError("Expected criteria in the schema or beside it (accept), got both. Leave one out.")
    return replace(schema, accept=read_criteria(accept))


def not_accepted(certificate: Certificate) -> NotAcceptedError:
    """Return the error of a search without a fit that passes, which releases its verdicts alone."""
    lines = "\n".join(f"  - {verdict(one)}" for one in certificate.search.verdicts) if certificate.search else ""
    return NotAcceptedError(
        "Expected a fit that meets every criterion, got none. The budget is spent, and nothing is released but the "
        f"verdicts on the fit that came nearest:\n{lines}",
        certificate,
    )
