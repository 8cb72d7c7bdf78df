"""Branches of a database as linked rows: each a database of two tables, of the rows above and of its own.

The constants of a branch are what is known when its rows are drawn, the *context*:

    the unit                 the columns of the table of units
    the rows above           their columns, and how many rows of each table the row further above has
    the rows before          of a branch below a branch: means of numbers of the unit's rows under earlier rows above
    the branches before      their number of rows, means of numbers, which of few labels ever came, else the last label

All of it is a function of the unit's own rows, and all kinds follow from the schema.

A rule is of the first table whose rows, with those above, have its columns: there it is a rule of linked rows. So is
the order of two columns between which rows below lie, such as the start and the end of a stay. An order of two tables
of which none is above the other is one of the later table and the latest, or earliest, of the other: nobody is seen
after death. A question that is named before the fit is of the first branch right below that of units whose units have
all its columns and features.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sfumato.columns.kind import ColumnKind, TabularKind, nullable_kind
from sfumato.columns.numbers import Continuous
from sfumato.columns.open import Identifier
from sfumato.schema.branch_features import Feature, branch_features, question_branch
from sfumato.schema.database import Branch, Crossing, Database
from sfumato.schema.linked import new_name, part_schema
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import Keyed
from sfumato.schema.unit import Unit


@dataclass(frozen=True)
class BranchView:
    """A branch as linked rows.

    Attributes:
        branch: as declared.
        schema: of the branch alone, with its rules: constants are the context.
        features: those of the context, in order; the other constants are columns of rows above.
        is_nested: whether it lies below another branch: rows above are several of a unit.
    """

    branch: Branch
    schema: Schema
    features: tuple[Feature, ...]
    is_nested: bool


def without_totals(schema: Schema) -> Schema:
    """Return a schema of a database without the columns that are totals of rows below, which follow from these."""
    database, unit = schema.tree, schema.unit
    if database is None or unit is None or not database.totals:
        return schema
    free = {name: kind for name, kind in schema.columns.items() if name not in database.totals}
    branches = tuple(
        # a lone table names its unit once more: so it stays one that is not joined to that of units
        dataclasses.replace(
            branch, columns=tuple(filter(free.__contains__, branch.columns)), totals=(),
            unit=branch.by if branch.of == database.units else branch.unit,
        )
        for branch in database.branches
    )  # fmt: skip
    tables = dataclasses.replace(database, branches=branches)
    unit = dataclasses.replace(unit, constant=tuple(filter(free.__contains__, unit.constant)), tables=tables)
    sources = {name: source for name, source in schema.sources.items() if name in free}
    return dataclasses.replace(schema, columns=free, unit=unit, sources=sources)


def branch_views(schema: Schema) -> dict[str, BranchView]:
    """Return the branches of a schema of a database, in the order in which they are drawn."""
    schema = without_totals(schema)
    tokens = schema.missing, tuple(schema.missing_of.items())
    key = schema.unit, tuple(schema.columns.items()), tokens, repr(schema.rules), schema.questions
    return dict(_cached(Keyed(schema, key)))


@lru_cache(maxsize=16)
def _cached(schema: Keyed[Schema]) -> dict[str, BranchView]:
    database = schema.value.tree
    assert database is not None
    return {branch.name: _view(schema.value, database, branch) for branch in database.branches}


def _view(schema: Schema, database: Database, branch: Branch) -> BranchView:
    unit = schema.unit
    assert unit is not None
    kinds = schema.of_kind(TabularKind)
    context: dict[str, ColumnKind] = {name: kinds[name] for name in unit.constant}
    for step in database.path(branch.of):
        context |= {name: kinds[name] for name in database.branch(step).columns}
    rules, plan = _rules(schema, database, branch), schema.rule_plan
    follows = {later for _, later in database.spans} | ({} if plan is None else {**plan.gaps, **plan.follows}).keys()
    taken = set(schema.columns)  # a column's codes are its own alone: no feature has a name of another
    context_features = branch_features(database, branch, kinds, follows)
    orders = dict.fromkeys(database.crossing(rule, schema.table_columns) for rule in schema.rules)
    bounds = {of: bound_of(database, of, kinds) for of in orders if of is not None and of.branch == branch.name}
    context_features += bounds.values()
    features = tuple(dataclasses.replace(feature, name=new_name(taken, feature.name)) for feature in context_features)
    for of, bound in zip(bounds, features[-len(bounds) :], strict=False):
        names = [bound.name, of.column]
        rules += ({"order": names if of.form == "latest" else names[::-1]},)
    context |= {feature.name: feature.kind for feature in features}
    own: dict[str, ColumnKind] = {name: kinds[name] for name in branch.columns}
    if branch.within is not None and branch.order is not None:
        own[branch.order] = Continuous(lower=0, upper=1)  # its place between the two
    key = next((b.key for b in database.branches if b.name == branch.of), None) or unit.column
    joined = dataclasses.replace(branch, by=key, key=None, unit=None, within=None, columns=())
    view = dataclasses.replace(
        schema,
        columns={key: Identifier(), **context, **own},
        rows=None,
        unit=Unit(
            column=key,
            constant=tuple(context),
            units=None if database.is_nested(branch.name) else unit.units,
            tables=Database(units=branch.of, branches=(joined,)),
        ),
        sources={},
        table_source={},
        rules=rules,
        questions=tuple(q for q in schema.questions if question_branch(q.names, schema) == branch.name),
        accept=(),
    )
    return BranchView(branch, part_schema(view), features, database.is_nested(branch.name))


def bound_of(database: Database, of: Crossing, kinds: Mapping[str, TabularKind]) -> Feature:
    """Return what an order across tables lets the other one say."""
    kind, above = nullable_kind(kinds[of.bound]), database.above_both(of.branch, of.table)
    return Feature(f"{of.form} of {of.bound}", kind, of.table, above, of.form, of.bound)


def _rules(schema: Schema, database: Database, branch: Branch) -> tuple[Mapping[str, Any], ...]:
    """Return the rules of a branch: those stated of its rows, and the order of columns between which rows below lie."""
    homes = (branch.name, database.units) if branch == database.branches[0] else (branch.name,)
    entries = zip(schema.rules, () if schema.rule_plan is None else schema.rule_plan.columns, strict=True)
    own = [entry for entry, names in entries if database.home(names, schema.table_columns) in homes]
    spans = [{"order": list(span)} for span in database.spans if set(span) <= set(branch.columns)]
    return (*own, *(span for span in spans if span not in own))
