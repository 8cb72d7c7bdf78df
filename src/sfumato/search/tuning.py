"""`tune`: settings chosen by the records, and charged: private selection of Papernot and Steinke (ICLR 2022).

    counts of pairs of cells   G(σ₁), once              → what every fit is scored against
    K fits, each of a candidate drawn uniformly          → the one nearest to these counts leaves, with its settings
    with criteria, each fit judged by G(σ₂)              → of those that pass; if none does, the verdicts alone leave

K is random, its law public. Proof, conditions and what is charged: docs/proofs/tune.md,
docs/proofs/acceptance.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sfumato.columns.kinds import TabularKind
from sfumato.data_ledger.journal import Journal, written_out
from sfumato.errors import ConfigError, require_instance, require_open_unit
from sfumato.fitting.account import Account
from sfumato.fitting.arguments import FitOptions, SearchKeywords, noise_source, number_of_rows, warn_of_draft
from sfumato.fitting.contents import check_types, form_of
from sfumato.fitting.driver import Driver, Fit, FittedModel, description_of, interim_release
from sfumato.fitting.purposes import Facts
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.lenses.chain import PlainRows, plain_schema
from sfumato.lenses.lens import DataSet
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import Noisy
from sfumato.mechanisms.sampling import drawn_candidate, drawn_repetitions
from sfumato.privacy.accounting import account
from sfumato.privacy.budget import EstimateCount, NonPrivate, PrivacyBudget, default_delta
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate import Description
from sfumato.privacy.certificate_form import Protected, Searched, Verdict
from sfumato.privacy.ledger import SearchLedger, alike
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share
from sfumato.privacy.repetitions import Repetitions
from sfumato.records.linked import LinkedData
from sfumato.records.private import PrivateData
from sfumato.records.table_sources import open_records
from sfumato.release.samplers import Sampler, build_sampler, with_package
from sfumato.release_front import Release
from sfumato.schema.accept import Criterion
from sfumato.schema.code_lists import refuse_lists_of_data
from sfumato.schema.named_questions import require_formulas, with_questions
from sfumato.schema.open_schema import open_schema
from sfumato.schema.schema import Schema, SchemaLike, read_schema
from sfumato.schema.schema_facts import with_areas
from sfumato.schema.set_columns import itemised
from sfumato.schema.shapes import CRITERIA, SEARCH, require_able
from sfumato.search.acceptance import (
    Judge,
    check_findings,
    judges_of,
    not_accepted,
    verdict_stages,
    verdicts_of_release,
    verdicts_on,
    with_criteria,
)
from sfumato.search.pair_scores import SCORE_STAGE, Score, mean_distance, sampled_counts, score_stages, scores_of

METHOD = "tune"
_UPWARD = 1 + 1e-12


def best_of(
    data: object,
    candidates: Sequence[Synthesizer],
    schema: SchemaLike,
    *,
    repetitions: Repetitions,
    score_share: float,
    accept: Sequence[Criterion | Mapping[str, Any]] | None,
    accept_share: float,
    options: Mapping[str, Any],
) -> Release:
    """Fit the best of several candidates: `sfumato.tune`, whose methods are made."""
    fit_options = FitOptions.from_keywords(options, of=SearchKeywords)
    refuse_lists_of_data(schema, data)
    schema = with_questions(with_areas(open_schema(schema), fit_options.areas), fit_options.questions)
    require_formulas(schema)
    warn_of_draft(schema, accept_draft=fit_options.accept_draft)
    schema = with_criteria(read_schema(schema), accept)
    require_able(schema, SEARCH)
    if schema.accept:
        require_able(schema, CRITERIA)
    search = Search.of(
        candidates, schema, fit_options.target, fit_options.n_public, repetitions,
        score_share=score_share, accept_share=accept_share,
    )  # fmt: skip
    noise = noise_source(search.budget, fit_options.seed)
    source = open_records(data, schema)
    records = LinkedData(source, schema) if schema.linked else PrivateData(source, schema)
    check_types(records.source, schema, as_source=fit_options.as_source)
    driver = Driver(
        plan=search.plans[0],
        ledger=SearchLedger(search.plans, search.budget, judged=len(search.judges)),
        noise=noise,
        method=METHOD,
        methods=tuple(map(type, search.candidates)),
        unit=Protected(**schema.protects),
        journal=Journal(None, {}),
        source=source,
        rows_are_records=fit_options.rows_are_records or schema.rows_are_records,
    )
    with driver.charged(fit_options.ledger) as noise:
        best = driver.silenced(lambda: search.run(records, driver.ledger, noise))
        described = search.description(
            best, type(records.source), computed=driver.computed, as_source=fit_options.as_source
        )
        certificate = driver.certificate(described)
        form = form_of(records.source, schema, as_source=fit_options.as_source)
        names = [score.name for score in search.scores]
        measured = list(zip(names, best.counts, strict=True))
        release = best.fitted.release(certificate, schema, form, measured)
        if best.accepted:  # else its verdicts alone leave
            driver.final(release)
    if not best.accepted:
        raise not_accepted(certificate)
    return release


@dataclass(frozen=True, slots=True)
class Best:
    """The outcome of a search."""

    candidate: int
    distance: float
    fitted: FittedModel
    counts: tuple[Noisy, ...]
    verdicts: tuple[Verdict, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether it passes every criterion."""
        return all(verdict.passed for verdict in self.verdicts)

    def before(self, other: Best | None) -> bool:
        """Whether it ranks above: by criteria passed, then by distance. Of equals the first stays."""
        return other is None or self._rank < other._rank

    @property
    def _rank(self) -> tuple[int, float]:
        """A total order, least first: a distance that is no finite number comes last."""
        passed = sum(verdict.passed for verdict in self.verdicts)
        return -passed, self.distance if math.isfinite(self.distance) else math.inf


@dataclass(frozen=True, slots=True)
class Search:
    """A search before it reads a record: public facts.

    Attributes:
        candidates: what is tried.
        plans: of every candidate, the calibrated plan of the whole search as if each repetition fitted it.
        budget: what the search costs.
        facts: of every fit.
        judges: of every fit, one for each criterion.
    """

    candidates: tuple[Synthesizer, ...]
    plans: tuple[Plan, ...]
    budget: PrivacyBudget
    facts: Facts
    judges: tuple[Judge, ...] = ()

    @property
    def scores(self) -> tuple[Score, ...]:
        """The scores by which fits are compared."""
        return scores_of(self.facts)

    @classmethod
    def of(
        cls,
        candidates: Sequence[Synthesizer],
        schema: Schema,
        target: str | None,
        n_public: int | EstimateCount | None,
        law: Repetitions,
        *,
        score_share: float,
        accept_share: float = 0.1,
    ) -> Search:
        """Plan a search; arguments and errors as `tune`."""
        require_open_unit(score_share=score_share)
        require_open_unit(accept_share=accept_share)
        require_open_unit("Shares of score and verdicts leave room for the fit.", shares=score_share + accept_share)
        require_instance(Sequence, "a list of methods", candidates=candidates)  # type: ignore[type-abstract]
        candidates = tuple(candidates)
        _check(candidates, schema)
        rows = schema.n_records if n_public is None else n_public
        if rows is None:
            raise ConfigError("Expected a declared number of rows for a search, got none. Declare a round number.")
        rows = number_of_rows(rows)
        epsilon, delta = candidates[0].epsilon, candidates[0].delta
        budget = PrivacyBudget(epsilon, default_delta(rows) if delta is None else delta)  # type: ignore[arg-type]
        budget.warn_if_delta_is_large(rows)
        relative = [candidate.uncalibrated(schema, target, rows, budget.delta) for candidate in candidates]
        check_findings(schema)
        judges = judges_of(schema.accept, plain_schema(schema), rows)
        facts = Facts(schema, target, rows)
        plans = _calibrate(relative, budget, law, facts, score_share, judges, accept_share)
        for judge in judges:
            judge.check_noise(plans[0])
        return cls(candidates, plans, budget, facts, judges)

    def run(self, records: PrivateData | LinkedData, account: SearchLedger, noise: NoiseSource) -> Best:
        """Charge all, then fit as often as drawn, and keep the best."""
        scores = self.scores
        repetitions = drawn_repetitions(self.plans[0].repetitions or Repetitions(1), noise)
        account.charge(repetitions)
        once = account.once()
        counts = tuple(Account(once, noise).measure(s.stage, s.statistic, s.records(records)) for s in scores)
        once.close()
        best: Best | None = None
        for _ in range(repetitions):
            j = drawn_candidate(len(self.candidates), noise)
            ledger = account.repetition(j)
            fit = Fit(records, Account(ledger, noise), self.facts)
            fitted = self.candidates[j].run(fit)
            ledger.close()
            distance = mean_distance(scores, counts, sampled_counts(scores, self.facts.described, self._inner(fitted)))
            result = Best(j, distance, fitted, counts, self._verdicts(fitted, records, account, noise))
            if result.before(best):
                best = result
        if best is None:
            raise ConfigError("Expected at least one repetition, got none. This is a bug: please report it.")
        return best

    def _verdicts(
        self, fitted: FittedModel, records: PrivateData | LinkedData, account: SearchLedger, noise: NoiseSource
    ) -> tuple[Verdict, ...]:
        """Judge one fit by every criterion, in order."""
        rows = self.facts.rows
        own = verdicts_of_release(self.facts.described.accept, lambda: interim_release(fitted, self.facts, rows))
        if not self.judges:
            return own
        sampler = PlainRows(self.facts.described, self._inner(fitted))  # coded as the records are
        return (*verdicts_on(self.judges, sampler, records, account.verdicts(), noise), *own)

    def _inner(self, fitted: FittedModel) -> Sampler:
        """Return the release's own sampler."""
        sampler = build_sampler(self.facts.schema, with_package(fitted.sampler), fitted.parameters)
        if isinstance(sampler, DataSet):
            raise ConfigError("Expected a method whose releases are models, got a data set of mixtures.")
        return sampler

    def description(self, best: Best, source: type, *, computed: bool, as_source: bool) -> Description:
        """Return all of the certificate but `private`, for records read by a class of sources."""
        chosen = self.candidates[best.candidate]
        return description_of(
            self.plans[best.candidate],
            self.budget,
            methods=tuple(map(type, self.candidates)),
            source=source,
            computed=computed,
            as_source=as_source,
            schema=self.facts.described,
            method=chosen.method,
            n_public=self.facts.rows,
            sampling=chosen.sampling(self.plans[best.candidate]),
            search=Searched(
                candidates=tuple(map(_settings, self.candidates)),
                chosen=best.candidate,
                squared_distance=best.distance,
                verdicts=best.verdicts,
            ),
        )


def _settings(candidate: Synthesizer) -> str:
    entries = [
        f"{entry.name}={written_out(getattr(candidate, entry.name))}"
        for entry in fields(candidate)
        if entry.repr and entry.name not in ("epsilon", "delta")
    ]
    return f"{candidate.method}: {', '.join(entries)}"


def _check(candidates: Sequence[Synthesizer], schema: Schema) -> None:
    if not candidates or not all(isinstance(candidate, Synthesizer) for candidate in candidates):
        raise ConfigError("Expected candidates to be one or more methods, such as MaxEntropy(epsilon=1).")
    if any(isinstance(candidate.epsilon, NonPrivate) for candidate in candidates):
        raise ConfigError("Expected candidates with noise, got one without: choosing among these needs no account.")
    if len({(candidate.epsilon, candidate.delta) for candidate in candidates}) > 1:
        raise ConfigError(
            "Expected candidates of one epsilon and one delta, those of the whole search, got several. State the same."
        )
    unfit = next((candidate for candidate in candidates if not candidate.makes_model), None)
    if unfit is not None:
        raise ConfigError(
            f"Expected methods whose releases are models, got {unfit.method!r}, which releases a data set."
        )
    for name, kind in itemised(schema).items():
        if not isinstance(kind, TabularKind):
            raise ConfigError(
                f"Expected a table to search settings for, got {kind.holds} in column {name!r}. A search is scored by "
                "pairs of a table's columns, and has no score for these. Choose settings on public data of the same "
                "form, or keep the defaults."
            )


def _calibrate(
    relative: Sequence[Plan],
    budget: PrivacyBudget,
    law: Repetitions,
    facts: Facts,
    score_share: float,
    judges: Sequence[Judge],
    accept_share: float,
) -> tuple[Plan, ...]:
    """Return the plan of the search for every candidate, from the noise ratios of its own."""
    single, gaussian = _level(relative, budget)
    unsampled = [stage for plan in single for stage in plan.stages if stage.inclusion is None]
    distance = max((stage.replace_distance for stage in unsampled), default=2.0)
    scores = [
        replace(stage, noise_multiplier=gaussian * stage.noise_multiplier) for stage in score_stages(facts, score_share)
    ]
    of_fit = 1 - score_share - (accept_share if judges else 0.0)
    verdicts = [
        replace(stage, noise_multiplier=gaussian * stage.noise_multiplier, repetitions=law)
        for stage in verdict_stages(judges, accept_share, distance)
    ]
    searches = []
    for plan in single:
        repeated = [
            replace(
                stage,
                noise_multiplier=stage.noise_multiplier * multiplier_for_share(of_fit),
                # the relation under which candidates differ, so all are charged the largest
                replace_distance=stage.replace_distance if stage.inclusion is not None else distance,
                repetitions=law,
            )
            for stage in plan.stages
        ]
        searches.append(Plan([*scores, *repeated, *verdicts]))
    factor = calibrate(searches[0], budget).stages[0].noise_multiplier / scores[0].noise_multiplier
    # one factor for all, so that plans that are alike are so to the last bit; rounding may have made it too small
    while account(searches[0].scaled(factor), budget.delta).epsilon > budget.epsilon:
        factor *= _UPWARD
    return tuple(plan.scaled(factor) for plan in searches)


def _level(plans: Sequence[Plan], budget: PrivacyBudget) -> tuple[Sequence[Plan], float]:
    """Return the plans at noise that costs the same, and the multiplier of one Gaussian release at about that cost."""
    if any(stage.inclusion is not None for plan in plans for stage in plan.stages):
        if not alike([plan.stages for plan in plans]):
            raise ConfigError(
                "Expected candidates that cost alike, got some with other sampling probabilities, numbers of steps or "
                "shares of the budget. Search among settings that leave these as they are."
            )
        gaussian = calibrate(Plan([Stage(name=SCORE_STAGE, noise_multiplier=1.0)]), budget)
        factor = calibrate(plans[0], budget).stages[0].noise_multiplier / plans[0].stages[0].noise_multiplier
        return [plan.scaled(factor) for plan in plans], gaussian.stages[0].noise_multiplier
    squares = [math.fsum(stage.count / stage.noise_multiplier**2 for stage in plan.stages) for plan in plans]
    return [plan.scaled(math.sqrt(square)) for plan, square in zip(plans, squares, strict=True)], 1.0
