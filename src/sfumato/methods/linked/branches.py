"""A database: each branch as linked rows, given what is known of the rows above.

    first branch       units with their constants, of which one may be the class, number of rows and first row; steps
    other branches     the same given the context: the unit, the rows above, the branches before
    below a branch     rows above of a unit share one bound, as its steps do

A unit has one record in every stage, bounded as a whole: noise does not grow with rows or tables. The budget is shared
by the declared weights of branches.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.lenses.chain import plain_schema
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
from sfumato.methods.tables.recipe import Names
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.database_records import DatabaseData
from sfumato.release.database_sampler import DatabaseTables
from sfumato.schema.branch_schemas import BranchView, branch_views
from sfumato.schema.linked import linked_tables


def database_stages(facts: Facts, *, marginal_share: float, level_groups: int) -> list[Stage]:
    """Return the stages of all branches, in the order in which they are measured."""
    views = branch_views(facts.described)
    whole = sum(view.branch.weight for view in views.values())
    return [
        stage
        for name, view in views.items()
        for stage in linked_stages(
            _facts(view, facts), marginal_share=marginal_share, level_groups=level_groups,
            share=view.branch.weight / whole, names=_names(name),
        )
    ]  # fmt: skip


def database_forecast(plan: Plan, facts: Facts) -> dict[str, str]:
    """Say what the noise of each stage means; of what lies below a branch, where every unit has one row of that."""
    views = branch_views(facts.described)
    words = [linked_forecast(plan, _facts(view, facts), _names(name)) for name, view in views.items()]
    return {stage: text for part in words for stage, text in part.items()}


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
        fitted[name] = run_linked(own, **settings, names=_names(name), given=True, owners=owners)
        law = number_of_rows(linked_tables(plain_schema(view.schema)), _units_of(fitted[name]))
        laws[name] = law if owners is None else sum_law(owners.law, law)
    return _joined(fitted)


def _facts(view: BranchView, facts: Facts) -> Facts:
    """Return the facts of a branch; units are drawn with the first one, by their classes if they have some."""
    first = next(iter(branch_views(facts.described)))
    return Facts(view.schema, facts.target if view.branch.name == first else None, facts.n_public)


def _names(branch: str) -> LinkedNames:
    units, steps = (
        Names(f"{branch}, {rows}: marginals", f"{branch}, {rows}: second moments") for rows in ("first rows", "steps")
    )
    return LinkedNames(units, steps)


def _units_of(branch: FittedModel) -> FittedModel:
    """Return the chain of units of a branch."""
    part = "units."
    parameters = {key.removeprefix(part): a for key, a in branch.parameters.items() if key.startswith(part)}
    return FittedModel(sampler=branch.sampler["units"], parameters=parameters, measurements=())


def _joined(branches: Mapping[str, FittedModel]) -> FittedModel:
    return FittedModel(
        sampler={
            "name": DatabaseTables.name,
            "branches": {name: dict(branch.sampler) for name, branch in branches.items()},
        },
        parameters={f"{name}.{key}": a for name, branch in branches.items() for key, a in branch.parameters.items()},
        measurements=tuple(
            (f"{name}: {key}", m) for name, branch in branches.items() for key, m in branch.measurements
        ),
    )
