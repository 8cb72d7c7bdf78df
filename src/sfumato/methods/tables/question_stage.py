"""A third stage of the table method: questions that were named before the fit, with a declared part of the budget.

    ols, logit, poisson   scores Σ x·(y − μ(xᵀb)) at the coefficients b that the first two stages say
    mean by groups        the same, of a term for each group, and a table of the groups' sizes
    table, share          counts of combinations of labels; numbers in runs of cells
    quantile by groups    counts of the groups' runs

A regression needs no matrix of moments: that is known well enough from the second stage, and what it is wrong by is of
second order where the coefficients are near. So a question costs as many numbers as it has terms, and residuals, which
are smaller than values, are clipped by what their model says of them. The scores of all regressions are one vector,
clipped once: a record that is far out in one of them is seldom so in all.

Everything that a question needs is checked on public facts, before a record is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.errors import ConfigError, SchemaError
from sfumato.extras import installed
from sfumato.fitting.driver import Fit, FittedModel, interim_release
from sfumato.fitting.purposes import Facts
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.lag_scores import PRODUCTS, SQUARES, pair_query
from sfumato.inference.noisy_totals import LINKS
from sfumato.inference.score_designs import aim_equation, joint_scores, outlined, question_columns, score_design
from sfumato.inference.table_measurements import TableMeasurements
from sfumato.maths.constants import QUESTIONS, SIZES
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.measurements.score_query import MOST_TOGETHER, ONE, EstimatingEquation, Link, ScoreQuery
from sfumato.methods.tables.cell_counts import public_runs
from sfumato.methods.tables.question_sums import QuestionPart, QuestionQuery, QuestionSums, replace_distance, weights_of
from sfumato.methods.tables.question_tilt import fit_tilts
from sfumato.privacy.plan import Stage, multiplier_for_share
from sfumato.release.tilted_table import MOST_TILTS, MOST_WORK, TiltedTable, work_of, written_tilts
from sfumato.schema.branch_schemas import branch_views
from sfumato.schema.formula_expressions import column
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.named_questions import FORMULAS, NamedQuestion
from sfumato.schema.schema_facts import weight_bound
from sfumato.schema.unit_features import Lag, lag_of

NAME = "named questions"
"""Of the stage."""


TABLE, SCORES, SPREAD, PAIRS, PAIR_SPREAD = "table", "scores", "spread", "pairs", "spread of pairs"
"""Roles of parts: counts; scores of a regression; squares of a mean of units; pairs of rows of units, and squares."""


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part of a question before anything is measured: its cells or formula, and its share of the budget.

    Attributes:
        question: of which it is a part.
        role: of `TABLE` and the others.
        share: of the questions' budget, beside those of others.
    """

    question: NamedQuestion
    role: str
    share: float

    @property
    def link(self) -> Link:
        """Of a regression."""
        return LINKS.get(self.question.form, "identity")

    @property
    def name(self) -> str:
        """Of the measurement."""
        groups = self.role == TABLE and self.question.form == "mean"
        suffix = ", groups" if groups else f", {self.role}" if self.role in (SPREAD, PAIR_SPREAD) else ""
        return f"{self.question.words}{suffix}"


def planned_questions(questions: Sequence[NamedQuestion], *, linked: bool) -> list[PlannedPart]:
    """The parts of questions, of rows or of `linked` units."""
    parts = []
    for question in questions:
        shares = {TABLE: 1.0}
        if question.form in FORMULAS:
            shares = {SCORES: 1.0}
        elif question.form == "correlation":
            shares = {PAIRS: 1 - QUESTIONS.pair_spread, PAIR_SPREAD: QUESTIONS.pair_spread}
        elif question.form == "mean":
            shares = {SCORES: 0.5, TABLE: 0.5} if question.by else {SCORES: 1.0 if linked else 0.5}
            shares |= {SPREAD: QUESTIONS.spread_part} if linked else {}
        parts += [PlannedPart(question, role, share * question.weight) for role, share in shares.items()]
    return parts


def question_stage(facts: Facts, share: float, name: str = NAME) -> Stage:
    """The event, at a part of the table's squared budget, after every question was checked on public facts.

    Raises:
        SchemaError: a question is of a column that follows from others, of too many cells, or cannot be measured.
        ConfigError: a formula cannot be read, or a term is no product of functions of single columns.
    """
    return Stage(
        name=name,
        noise_multiplier=multiplier_for_share(share),
        replace_distance=replace_distance(part for _, part in planned_parts(facts)),
        measures="what the named questions ask: " + "; ".join(q.words for q in facts.described.questions),
    )


def planned_parts(facts: Facts) -> list[tuple[tuple[PlannedPart, ...], QuestionPart]]:
    """Return what is measured, each with the parts of questions that it is of, on public cells, at coefficients of 0.

    Raises:
        SchemaError: as `question_stage`.
        ConfigError: likewise.
    """
    columns = question_columns(facts.schema, facts.described)
    planned = planned_questions(facts.described.questions, linked=facts.schema.linked)
    groups = _together([(part, _public_design(part, columns, facts)) for part in planned])
    weights = weights_of([math.fsum(part.share for part in group) for group, _ in groups])
    parts = [
        (group, QuestionPart("; ".join(part.name for part in group), query, weight))
        for (group, query), weight in zip(groups, weights, strict=True)
    ]
    if len(parts) > MOST_TILTS or sum(work_of(part.query) for _, part in parts) > MOST_WORK:
        raise SchemaError(
            "Expected questions whose terms samples can be brought to agree with, got too many together. Name fewer "
            "questions, or regressions of fewer terms."
        )
    return parts


def _together(
    designs: Sequence[tuple[PlannedPart, QuestionQuery | EstimatingEquation]],
) -> list[tuple[tuple[PlannedPart, ...], QuestionQuery]]:
    """The parts of questions with what is measured of them: of regressions the scores as one vector.

    Beyond `MOST_TOGETHER` terms, a next vector begins.
    """
    groups: list[tuple[tuple[PlannedPart, ...], QuestionQuery]] = []
    place = None
    for part, design in designs:
        if not isinstance(design, EstimatingEquation):
            groups.append(((part,), design))
            continue
        known, equations = ((), ()) if place is None else (groups[place][0], groups[place][1].equations)  # type: ignore[union-attr]
        size = sum(equation.coefficients.size for equation in (*equations, design))
        if place is None or size > MOST_TOGETHER:
            place, size = len(groups), design.coefficients.size
            known, equations = (), ()
            groups.append(((), ScoreQuery((), np.zeros((0, 0), dtype=np.int64))))
        turn = np.zeros((size, size), dtype=np.int64)
        groups[place] = ((*known, part), ScoreQuery((*equations, design), turn))
    return groups


def question_refusals(facts: Facts) -> list[str]:
    """Why a fit would refuse the schema's questions, a sentence or two for each; none where it takes them."""
    if facts.described.tree is not None:
        views = branch_views(facts.described).values()
        return [refusal for view in views for refusal in question_refusals(Facts(view.schema, None, facts.n_public))]
    refusals = []
    for question in facts.described.questions:
        alone = Facts(replace(facts.described, questions=(question,)), facts.target, facts.n_public)
        try:
            planned_parts(alone)
        except (SchemaError, ConfigError) as error:
            refusals.append(str(error))
    if refusals or not facts.described.questions:
        return refusals
    try:
        planned_parts(facts)
    except SchemaError as error:
        return [str(error)]
    return []


def _public_design(
    part: PlannedPart, columns: Mapping[str, ColumnGrid], facts: Facts
) -> QuestionQuery | EstimatingEquation:
    """The table or the equation of a question on public cells."""
    if part.role in (PAIRS, PAIR_SPREAD):
        return pair_query(pairs_of(part, facts), facts.schema, ONE // 2, ONE // 2, left_of(part))
    weight = facts.described.weight
    for name in part.question.named:
        if weight is not None and name == weight.column:
            raise SchemaError(f"Expected no weight in the question {part.question.words!r}, got {name!r}.")
        if name not in columns:
            raise SchemaError(
                f"Expected columns that are measured themselves in the question {part.question.words!r}, got "
                f"{name!r}, which follows from others by a rule or holds sets. Ask of what it follows from."
            )
    if part.role in (SCORES, SPREAD):
        formula = part.question.regression
        if part.role == SPREAD:
            middle = float(sum(columns[part.question.columns[0]].kind.bounds)) / 2  # type: ignore[attr-defined]
            formula = spread_formula(part.question, middle)
        design = score_design if installed("formulaic") else outlined  # a plan's: a fit refuses before
        return design(part.question.words, formula, part.link, columns)
    query = table_query(part, columns)
    if query.shape[-1] > QUESTIONS.most_cells:
        raise SchemaError(
            f"Expected a table of at most {QUESTIONS.most_cells} cells for the question {part.question.words!r}, got "
            f"{query.shape[-1]}: noise would leave nothing of it. Name fewer columns, or merge labels."
        )
    return query


def pairs_of(part: PlannedPart, facts: Facts) -> Lag:
    """The pairs of rows of units that a correlation is of."""
    lag = lag_of(part.question.columns[0], facts.schema)
    if lag is None:
        raise SchemaError(f"Expected pairs of rows of linked units in the question {part.question.words!r}, got none.")
    rules = facts.described.rule_plan
    if rules is not None and lag.column in rules.gaps:
        raise SchemaError(
            f"Expected a column that is measured itself in the question {part.question.words!r}, got {lag.column!r}, "
            "of which the distance is. Ask of the column that it follows."
        )
    return lag


def left_of(part: PlannedPart) -> int:
    """The moment of pairs that is the left side of their scores."""
    return PRODUCTS if part.role == PAIRS else SQUARES


def spread_formula(question: NamedQuestion, middle: float) -> str:
    """The regression that says how far units are from a mean."""
    number = np.format_float_positional(middle, precision=12, fractional=False, trim="-")
    return f"I(({column(question.columns[0]).text} - ({number}))**2) ~ 1"


def table_query(part: PlannedPart, columns: Mapping[str, ColumnGrid], weight: str = "") -> MarginalQuery:
    """The table of a question: labels one by one, numbers in public runs of cells, as coarse as few cells need."""
    runs = SIZES.public_runs
    while True:
        axes = [
            Cells.of(column, public_runs(column, runs) if column.numeric else None)
            for column in (columns[name] for name in part.question.axes)
        ]
        query = MarginalQuery((tuple(axes),), weight=weight)
        if query.shape[-1] <= QUESTIONS.most_cells or runs <= QUESTIONS.fewest_runs:
            return query
        runs //= 2


def with_questions_measured(fit: Fit, fitted: FittedModel) -> FittedModel:
    """Measure the named questions by what a fitted table says, and return it with their measurements.

    Args:
        fit: of which the table's stages are charged.
        fitted: the table.
    """
    schema = fit.facts.described
    column, worth = ("", 1.0) if schema.weight is None else (schema.weight.column, weight_bound(schema))
    measured = TableMeasurements(interim_release(fitted, fit.facts, fit.n_public))
    columns = {c.name: c for c in Grid.stored(fit.facts.schema, fitted.parameters).columns}

    def query_of(group: tuple[PlannedPart, ...], query: QuestionQuery, noise_std: float) -> QuestionQuery:
        if isinstance(query, MarginalQuery):
            return table_query(group[0], columns, column)
        return replace(regression_scores(group, query.equations, measured, noise_std * worth), weight=column)

    sums = aimed_sums(fit, query_of, column)
    known = replace(fitted, measurements=(*fitted.measurements, *sums.measurements(fit.measure(NAME, sums), worth)))
    tilts = fit_tilts(
        TableMeasurements(interim_release(known, fit.facts, fit.n_public)), [part.query for part in sums.parts]
    )
    documents, arrays = written_tilts(tilts)
    sampler = {**fitted.sampler, "name": TiltedTable.name, "tilts": documents}
    return replace(known, sampler=sampler, parameters={**fitted.parameters, **arrays})


def aimed_sums(
    fit: Fit,
    query_of: Callable[[tuple[PlannedPart, ...], QuestionQuery, float], QuestionQuery],
    column: str = "",
    stage: str = NAME,
) -> QuestionSums:
    """The sums of the questions, as what was released so far aims them.

    Args:
        fit: of which the stages before are charged.
        query_of: of parts that are measured as one, by their public query and the noise of its sum.
        column: of weights.
        stage: that measures them.
    """
    parts = []
    for group, part in planned_parts(fit.facts):
        noise_std = 0.0 if fit.noise.silent else fit.plan[stage].noise_multiplier * fit.facts.unit_rows / part.weight
        parts.append(replace(part, query=query_of(group, part.query, noise_std)))
    return QuestionSums(tuple(parts), column)


def regression_scores(
    group: Sequence[PlannedPart], equations: Sequence[EstimatingEquation], measured: TableMeasurements, noise_std: float
) -> ScoreQuery:
    """The scores of some regressions, at the coefficients and in the turn that released values say."""
    weights = []
    for equation in equations:
        totals = measured_functions(measured, cell_functions(measured, sorted(equation.columns)))
        weights.append(measured.calibration(totals).weights)
    shares = np.array([part.share for part in group])
    aimed = [aim_equation(equation, measured, own) for equation, own in zip(equations, weights, strict=True)]
    return joint_scores(aimed, measured, weights, shares / shares.sum(), noise_std)
