"""A database: each branch as linked rows, given what is known of the rows above.

    first branch       units with their constants, of which one may be the class, number of rows and first row; steps
    other branches     the same given the context: the unit, the rows above, the branches before
    below a branch     rows above of a unit share one bound, as its steps do
    questions          that were named, of the first branch whose units have their columns, as of linked rows

A unit has one record in every stage, bounded as a whole: noise does not grow with rows or tables. The budget is shared
by the declared weights of branches.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.lenses.chain import plain_schema
from sfumato.maths.constants import LINKS
from sfumato.maths.streams import public_stream
from sfumato.methods.linked.consistency import Simulation, of_parts, simulated_units
from sfumato.methods.linked.recipe import (
    LinkedNames,
    Owners,
    linked_error,
    linked_forecast,
    linked_stages,
    number_of_rows,
    run_linked,
    sum_law,
)
from sfumato.methods.linked.statistics import with_units_measured
from sfumato.methods.tables.question_forecast import QuestionForecast, forecast_words, question_forecasts
from sfumato.methods.tables.question_stage import NAME, question_stage
from sfumato.methods.tables.settings import Names
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.context import sequences_of
from sfumato.records.database_records import DatabaseData
from sfumato.records.sequences import Sequences
from sfumato.release.database_sampler import DatabaseTables
from sfumato.schema.branch_schemas import BranchView, branch_views
from sfumato.schema.linked import linked_tables
from sfumato.schema.schema import Schema


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


def database_forecast(plan: Plan, facts: Facts) -> dict[str, str]:
    """Say what the noise of each stage means; of what lies below a branch, where every unit has one row of that."""
    views = branch_views(facts.described)
    words: dict[str, str] = {}
    for name, view in views.items():
        own = _facts(view, facts)
        words |= {**linked_forecast(plan, own, _names(name)), **forecast_words(plan, own, _questions(name))}
    return words


def answer_forecasts(plan: Plan, facts: Facts) -> list[QuestionForecast]:
    """Return what to expect of each named question, of whichever table."""
    views = branch_views(facts.described).items()
    return [one for name, view in views for one in question_forecasts(plan, _facts(view, facts), _questions(name))]


def database_error(plan: Plan, facts: Facts) -> float:
    """Return the noise of a label's share among units."""
    name, view = next(iter(branch_views(facts.described).items()))
    return linked_error(plan, _facts(view, facts), _names(name))


def run_database(fit: Fit, *, level_groups: int, clip_slack: float, simulated: int | None) -> FittedModel:
    """Draw the releases of every branch, and fit its chains."""
    data, settings = fit.data, {"level_groups": level_groups, "clip_slack": clip_slack, "simulated": simulated}
    assert isinstance(data, DatabaseData)
    data.read()
    fitted: dict[str, FittedModel] = {}
    laws: dict[str, np.ndarray] = {}  # of each branch, P(k) of a unit's number of rows
    for name, view in branch_views(fit.facts.described).items():
        owners = Owners(laws[view.branch.of], fit.n_public) if view.branch.of in laws else None
        own = Fit(data.branch(name), fit.account, _facts(view, fit.facts))  # type: ignore[arg-type]
        simulate = _simulation(fit.facts.described, name, fitted, laws.get(view.branch.of)) if fitted else None
        linked = run_linked(own, **settings, names=_names(name), given=True, owners=owners, simulate=simulate)
        fitted[name] = with_units_measured(own, linked, _questions(name)) if view.schema.questions else linked
        law = number_of_rows(linked_tables(plain_schema(view.schema)), _units_of(fitted[name]))
        laws[name] = law if owners is None else sum_law(owners.law, law)
    return _joined(fitted)


def _simulation(schema: Schema, name: str, before: Mapping[str, FittedModel], law: np.ndarray | None) -> Simulation:
    """Return what draws units of a branch with the models of those before; `law` is P(k) of a unit's rows above."""
    view, fitted = branch_views(schema)[name], dict(before)
    n = simulated_units(1.0 if law is None else float(law @ np.arange(law.size)))

    def simulate(model: FittedModel) -> Sequences:
        together = _joined({**fitted, name: model})
        sampler = DatabaseTables(schema, together.sampler, together.parameters, tables=[*fitted, name])
        return sequences_of(schema, view, sampler.levels(n, public_stream(LINKS.seed)))

    return simulate


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


def _units_of(branch: FittedModel) -> FittedModel:
    """Return the chain of units of a branch."""
    part = "units."
    parameters = {key.removeprefix(part): a for key, a in branch.parameters.items() if key.startswith(part)}
    return FittedModel(sampler=branch.sampler["units"], parameters=parameters, measurements=())


def _joined(branches: Mapping[str, FittedModel]) -> FittedModel:
    samplers = {name: dict(branch.sampler) for name, branch in branches.items()}
    return of_parts({"name": DatabaseTables.name, "branches": samplers}, branches)
