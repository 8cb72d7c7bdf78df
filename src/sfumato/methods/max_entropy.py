"""MaxEntropy: a few noisy sums, then the model of most entropy that has them, of which samples are a function.

Tables: counts of runs, cells and values, then second moments of features; a lawful mixture near these, and a chain of
softmaxes, each the conditional law of most entropy with the mixture's moments (`sfumato.methods.tables.recipe`).
Weighted tables: the same, each record times its weight (`sfumato.methods.tables.weighted`).
Linked rows of units: two such tables, of first rows and of steps (`sfumato.methods.linked.recipe`).
Databases: each branch as linked rows, given what is known of the rows above.

    first branch       units with their constants, of which one may be the class, number of rows and first row; steps
    other branches     the same given the context: the unit, the rows above, the branches before
    below a branch     rows above of a unit share one bound, as its steps do
    questions          that were named, of the first branch whose units have their columns, as of linked rows

A unit has one record in every stage, bounded as a whole: noise does not grow with rows or tables. The budget is shared
by the declared weights of branches.

Images: profiles, class sums, pooled second moment, class second moments; a Gaussian per class, which is the law of most
entropy with these (`sfumato.methods.images.recipe`).

All are one-shot Gaussian releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np

from sfumato.entry_points import built_in
from sfumato.errors import ConfigError, require_integer, require_open_unit, require_positive
from sfumato.fitting.arguments import nominal_budget
from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import POSES, Facts, Fidelity, Pose, Purpose, Training
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.lenses.chain import plain_schema
from sfumato.maths.constants import LINKS, SIZES
from sfumato.maths.streams import public_stream
from sfumato.methods.linked.recipe import (
    LinkedNames,
    Owners,
    kept_between,
    linked_error,
    linked_forecast,
    linked_stages,
    number_of_rows,
    of_parts,
    run_linked,
    simulated_units,
    sum_law,
)
from sfumato.methods.linked.statistics import with_units_measured
from sfumato.methods.tables.question_forecast import (
    QuestionForecast,
    forecast_words,
    noise_for_answer,
    question_forecasts,
)
from sfumato.methods.tables.question_stage import NAME, question_stage, with_questions_measured
from sfumato.methods.tables.recipe import measure_table, one_way_error, table_forecast, table_stages
from sfumato.methods.tables.settings import Names, TableFacts, forecast_rows, margins_share
from sfumato.methods.tables.weighted import MeasuringWeights
from sfumato.privacy.plan import Plan, Stage, one_shot
from sfumato.records.database_records import DatabaseData
from sfumato.records.engine import Rows
from sfumato.release.database_sampler import DatabaseTables
from sfumato.schema.branch_schemas import BranchView, branch_views
from sfumato.schema.linked import linked_tables
from sfumato.schema.schema import Schema
from sfumato.schema.shapes import SHAPES


@final
@dataclass(frozen=True, kw_only=True)
class MaxEntropy(Synthesizer):
    """The default method: noisy counts and moments, and the law of most entropy that has them, of tables and images.

    Attributes:
        marginal_share: part of the squared budget for the marginals, in (0, 1); the rest is for second moments. By
            default .3 of a table, more where noise hides how columns go together, up to .5; .4 of linked rows.
        level_groups: most levels of a column that keep an indicator of their own; rarer ones share one.
        clip_slack: clip norm of a record's vector ÷ the one whose noise and bias together are least, by the released
            marginals.
        purpose: `Fidelity()`: samples look and count like the records; `Training()`: samples of images teach a
            classifier best.
        pose: whether images are centred, straightened and scaled before their moments, and samples moved back:
            "affine", "none", or "auto": where most images do not touch their border, as a release says.
        question_share: part of the squared budget for the schema's named questions, in (0, 1); without any it is the
            table's.
        calibration_rows: rows simulated to fit the chain of columns; by default 12,000. Fewer are quicker, and samples
            are less like the records; audits use few.
    """

    method: ClassVar[str] = "max-entropy"
    resumable: ClassVar[bool] = True
    takes_prior: ClassVar[bool] = True
    takes: ClassVar[frozenset[str]] = frozenset(SHAPES)

    marginal_share: float | None = None
    level_groups: int = SIZES.level_groups
    clip_slack: float = 1.0
    purpose: Purpose = field(default_factory=Fidelity)
    pose: Pose = "auto"
    question_share: float = 0.25
    calibration_rows: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.marginal_share is not None:
            require_open_unit(marginal_share=self.marginal_share)
        require_open_unit(question_share=self.question_share)
        require_integer(at_least=2, level_groups=self.level_groups)
        require_positive(clip_slack=self.clip_slack)
        if self.calibration_rows is not None:
            require_integer(at_least=1, calibration_rows=self.calibration_rows)
        if not isinstance(self.purpose, Fidelity | Training):
            raise ConfigError(f"Expected purpose to be Fidelity() or Training(), got purpose={self.purpose!r}.")
        if self.pose not in POSES:
            raise ConfigError(f"Expected pose to be one of {', '.join(map(repr, POSES))}, got pose={self.pose!r}.")

    @property
    def _images(self) -> Synthesizer:
        """This method of images, which a family brings."""
        make = built_in("images", self.method)
        return make(epsilon=self.epsilon, delta=self.delta, purpose=self.purpose, pose=self.pose)

    def stages(self, facts: Facts) -> list[Stage]:
        """For tables two releases, for linked rows and for images four; see the module's docstring."""
        if facts.schema.images:
            return self._images.stages(facts)
        settings = {"marginal_share": SIZES.linked_margins, "level_groups": self.level_groups}
        settings |= {} if self.marginal_share is None else {"marginal_share": self.marginal_share}
        if facts.described.tree is not None:
            return database_stages(facts, **settings, question_share=self.question_share)
        part = self.question_share if facts.described.questions else 0.0
        if facts.schema.linked:
            before = linked_stages(facts, **settings, share=1 - part)
        else:
            before = self._table_stages(facts, 1 - part)
        return [*before, question_stage(facts, part)] if part else before

    def _table_stages(self, facts: Facts, share: float) -> list[Stage]:
        """Those of a table, at a part of the squared budget."""
        marginal = self.marginal_share
        if marginal is None and facts.n_public is None:
            marginal = SIZES.margins[0]
        if marginal is None:
            budget = self._budget(facts.rows) or nominal_budget(facts.rows)
            whole = one_shot(share, budget)
            marginal = margins_share(TableFacts.of(facts, self.level_groups), whole, forecast_rows(facts))
        return table_stages(facts, marginal_share=marginal, level_groups=self.level_groups, share=share)

    def forecast(self, plan: Plan, facts: Facts) -> dict[str, str]:
        """Say what the noise of each stage means at `n_public`, from public facts alone.

        Of what lies below a branch, where every unit has one row of that.
        """
        if facts.schema.images:
            return self._images.forecast(plan, facts)
        if facts.described.tree is not None:
            words: dict[str, str] = {}
            for name, view in branch_views(facts.described).items():
                own = _facts(view, facts)
                words |= {**linked_forecast(plan, own, _names(name)), **forecast_words(plan, own, _questions(name))}
                if tables := dict.fromkeys(feature.branch for feature in view.features):
                    stage = _names(name).units.moments
                    words[stage] += f"; {kept_between(plan, own, _names(name), tables)}"
            return words
        if facts.schema.linked:
            return {**linked_forecast(plan, facts), **forecast_words(plan, facts)}
        return {**table_forecast(plan, facts), **forecast_words(plan, facts)}

    def one_way_error(self, plan: Plan, facts: Facts) -> float:
        """The noise of a label's share, of all classes together; of images, that of a class count."""
        if facts.schema.images:
            return self._images.one_way_error(plan, facts)
        if facts.described.tree is not None:
            name, view = next(iter(branch_views(facts.described).items()))
            return linked_error(plan, _facts(view, facts), _names(name))
        return (linked_error if facts.schema.linked else one_way_error)(plan, facts)

    def noise_for_answer(self, plan: Plan, facts: Facts, question: str, target_error: float) -> float:
        """By the forecasts of the schema's named questions."""
        of_tree = facts.described.tree is not None
        forecasts = answer_forecasts(plan, facts) if of_tree else question_forecasts(plan, facts)
        return noise_for_answer(forecasts, question, target_error)

    def run(self, fit: Fit) -> FittedModel:
        """Fit the marginals, the moments and the chain; or the moments of images."""
        if fit.data.schema.images:
            return self._images.run(fit)
        settings: dict[str, Any] = {
            "level_groups": self.level_groups, "clip_slack": self.clip_slack, "simulated": self.calibration_rows,
        }  # fmt: skip
        if fit.facts.described.tree is not None:
            return run_database(fit, **settings)
        if fit.facts.schema.linked:
            linked = run_linked(fit, **settings)
            return with_units_measured(fit, linked) if fit.facts.described.questions else linked
        measuring = MeasuringWeights.of(fit.facts)
        fitted = measure_table(fit, **settings, measuring=measuring)
        return with_questions_measured(fit, fitted) if fit.facts.described.questions else fitted


def database_stages(facts: Facts, *, marginal_share: float, level_groups: int, question_share: float) -> list[Stage]:
    """Return the stages of all branches, in the order in which they are measured."""
    views, questions = branch_views(facts.described), facts.described.questions
    whole, of_questions = sum(view.branch.weight for view in views.values()), sum(q.weight for q in questions)
    part, stages = question_share if questions else 0.0, list[Stage]()
    for name, view in views.items():
        share, own = (1 - part) * view.branch.weight / whole, _facts(view, facts)
        settings = {"marginal_share": marginal_share, "level_groups": level_groups}
        stages += linked_stages(own, **settings, share=share, names=_names(name))
        if named := view.schema.questions:
            stages.append(question_stage(own, part * sum(q.weight for q in named) / of_questions, _questions(name)))
    return stages


def answer_forecasts(plan: Plan, facts: Facts) -> list[QuestionForecast]:
    """Return what to expect of each named question, of whichever table."""
    views = branch_views(facts.described).items()
    return [one for name, view in views for one in question_forecasts(plan, _facts(view, facts), _questions(name))]


def run_database(fit: Fit, *, level_groups: int, clip_slack: float, simulated: int | None) -> FittedModel:
    """Draw the releases of every branch, and fit its chains."""
    data, settings = fit.data, {"level_groups": level_groups, "clip_slack": clip_slack, "simulated": simulated}
    assert isinstance(data, DatabaseData)
    data.read()
    fitted: dict[str, FittedModel] = {}
    laws: dict[str, np.ndarray] = {}  # of each branch, P(k) of a unit's number of rows
    for name, view in branch_views(fit.facts.described).items():
        own = Fit(data.branch(name), fit.account, _facts(view, fit.facts))  # type: ignore[arg-type]
        law_above = laws.get(view.branch.of)
        mean = 1.0 if law_above is None else float(law_above @ np.arange(law_above.size))
        context, sizes = _context(fit.facts.described, view, fitted, mean) if fitted else (None, np.zeros(0))
        owners = None if law_above is None else Owners(law_above, fit.n_public, sizes)
        linked = run_linked(own, **settings, names=_names(name), given=True, owners=owners, context=context)
        fitted[name] = with_units_measured(own, linked, _questions(name)) if view.schema.questions else linked
        own_units = {k.removeprefix("units."): a for k, a in fitted[name].parameters.items() if k.startswith("units.")}
        chain = FittedModel(fitted[name].sampler["units"], own_units, ())
        law = number_of_rows(linked_tables(plain_schema(view.schema)), chain)
        laws[name] = law if owners is None else sum_law(owners.law, law)
    return _joined(fitted)


def _context(schema: Schema, view: BranchView, before: dict[str, FittedModel], mean: float) -> tuple[Rows, np.ndarray]:
    """Return what is known of rows above a branch, as models before draw them, and how many their owners have."""
    together = _joined(before)
    sampler = DatabaseTables(schema, together.sampler, together.parameters, tables=before)
    try:
        levels = sampler.levels(simulated_units(mean), public_stream(LINKS.seed))
    except ConfigError:  # no unit of these keeps the rules: whoever samples them is told
        return {}, np.zeros(0)
    owners = levels[view.branch.of].owners
    return levels.context(view), np.bincount(owners)[owners]


def _facts(view: BranchView, facts: Facts) -> Facts:
    """Return the facts of a branch; units are drawn with the first one, by their classes if they have some."""
    first = next(iter(branch_views(facts.described)))
    return Facts(view.schema, facts.target if view.branch.name == first else None, facts.n_public)


def _names(branch: str) -> LinkedNames:
    units, steps = (
        Names(f"{branch}, {rows}: marginals", f"{branch}, {rows}: second moments") for rows in ("first rows", "steps")
    )
    return LinkedNames(units, steps)


def _questions(branch: str) -> str:
    """The stage of a branch's questions."""
    return f"{branch}, {NAME}"


def _joined(branches: Mapping[str, FittedModel]) -> FittedModel:
    samplers = {name: dict(branch.sampler) for name, branch in branches.items()}
    return of_parts({"name": DatabaseTables.name, "branches": samplers}, branches)
