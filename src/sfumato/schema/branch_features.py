"""Columns of context that rows of a database's branches say of the rows above them, from the schema alone.

Those of one unit have the names that questions have for features of units (`sfumato.schema.unit_features`): `number of
visits`, `mean of score`, `ever of state=ill`, `last of ward`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sfumato.columns.booleans import Truth
from sfumato.columns.kind import TabularKind, nullable_kind
from sfumato.columns.kinds import LevelKind
from sfumato.columns.numbers import Integer
from sfumato.schema.database import Branch, Database
from sfumato.schema.schema_facts import SchemaFacts
from sfumato.schema.unit_features import rows_column

FEW_LABELS = 3
"""Most labels of which each is told by itself, as whether it ever came."""
_MOST_COUNTED = 1000

Told: TypeAlias = Literal["number", "mean", "ever", "last", "earlier mean", "latest", "earliest"]


@dataclass(frozen=True, slots=True)
class Feature:
    """A number or a label that rows of a branch say of a row above them.

    Attributes:
        name: of the column of context.
        kind: of its values.
        branch: whose rows say it.
        above: the table of the row that it is said of.
        form: the statistic; an earlier mean is over the rows under rows above that come before, of the same unit.
        column: of the branch; empty for the number of rows.
        level: of a label that ever came, its code.
    """

    name: str
    kind: TabularKind
    branch: str
    above: str
    form: Told
    column: str = ""
    level: int = -1


def branch_features(
    database: Database, branch: Branch, kinds: Mapping[str, TabularKind], follows: Collection[str]
) -> list[Feature]:
    """Return the columns of context of a branch that rows of others say, or its own under rows above before.

    Args:
        database: of the branch.
        branch: whose rows are drawn given these.
        kinds: of all columns of the database.
        follows: columns that follow from others, which nothing is told of.
    """
    features, path = [], database.path(branch.name)
    for step in path[:-1]:
        features.append(_number(database, step, database.branch(step).of))
    if database.is_nested(branch.name):
        numbers = [name for name in branch.columns if kinds[name].is_numeric and name not in {branch.order, *follows}]
        kind_of = {name: nullable_kind(kinds[name]) for name in numbers}
        features += [
            Feature(f"{name} earlier", kind_of[name], branch.name, branch.of, "earlier mean", name) for name in numbers
        ]
    for earlier in database.branches:
        if earlier.name == branch.name:
            break
        if earlier.name in path:
            continue
        features += _told(database, earlier, database.above_both(branch.name, earlier.name), kinds)
    return features


def question_branch(names: Collection[str], schema: SchemaFacts) -> str:
    """Return the first table right below that of units whose units have all columns and features of a question.

    They are those of the unit, of its own rows, and what tables before it tell of the unit. Empty where there is none.

    Args:
        names: of the question's columns and features.
        schema: of a tree of tables.
    """
    database, kinds, unit = schema.tree, schema.of_kind(TabularKind), schema.unit
    assert database is not None
    assert unit is not None
    for branch in database.branches:
        if branch.of != database.units:
            continue
        context = [feature.name for feature in branch_features(database, branch, kinds, ())]
        columns = {*branch.columns} - ({branch.order} if branch.within else set())  # its place in between is measured
        own = {*unit.constant, *context, *columns, f"number of {branch.name}"}
        if all(name in own or rows_column(name) in columns for name in names):
            return branch.name
    return ""


def _number(database: Database, name: str, above: str) -> Feature:
    most = min(database.most_rows(name, above), _MOST_COUNTED)
    return Feature(f"number of {name}", Integer(lower=0, upper=most), name, above, "number")


def _told(database: Database, branch: Branch, above: str, kinds: Mapping[str, TabularKind]) -> list[Feature]:
    """Return what a branch tells those after it of a row above."""
    features = [_number(database, branch.name, above)]
    for name in branch.columns:
        kind = kinds[name]
        if kind.is_numeric:
            if name != branch.order:
                features.append(Feature(f"mean of {name}", nullable_kind(kind), branch.name, above, "mean", name))
        elif isinstance(kind, LevelKind) and len(kind.labels) <= FEW_LABELS:
            features += [
                Feature(f"ever of {name}={label}", Truth(), branch.name, above, "ever", name, level)
                for level, label in enumerate(kind.labels)
            ]
        else:
            features.append(Feature(f"last of {name}", nullable_kind(kind), branch.name, above, "last", name))
    return features
