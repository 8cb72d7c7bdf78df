"""Features of units: what all rows of a unit say together, as columns that questions of linked rows name.

    mean of score        of the unit's rows where it is not missing
    first of score       of the first row; last of score: of the last one
    change of score      the last less the first, of units of two rows or more
    ever of state=ill    whether any row has the label
    lag 2 of score       of pairs of rows, two apart: `correlation` alone asks of it

The number of rows is a column of units anyway. A feature is a function of a unit's own rows, within bounds that the
schema alone says. Sums over the pairs of a unit are features too, about a centre and by a scale that are released.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from sfumato.columns.booleans import Truth
from sfumato.columns.facts import shown
from sfumato.columns.kinds import Continuous, Integer, LevelKind, NumericKind, TabularKind
from sfumato.errors import SchemaError
from sfumato.schema.schema_facts import SchemaFacts

ONE = 1 << 20
"""What codes, centres and scales of features are whole numbers of."""
MOMENTS = ("pairs", "earlier", "later", "earlier squared", "later squared", "products")
"""Of the pairs of rows of a unit, each ÷ the most pairs: their number, sums of both ends, of squares and products."""
_OF_ROWS = re.compile(r"(mean|first|last|change|ever) of (.+)", re.DOTALL)
_LAG = re.compile(r"lag (\d{1,4}) of (.+)", re.DOTALL)
_OF_PAIRS = re.compile(rf"({'|'.join(MOMENTS)}) of (.+) at lag (\d{{1,4}}) about (\d{{1,7}}) by (\d{{1,7}})", re.DOTALL)


@final
@dataclass(frozen=True, slots=True)
class UnitFeature:
    """A column of units that is a function of all their rows.

    Attributes:
        name: as questions name it.
        form: `mean`, `first`, `last`, `change`, `ever`, or one of `MOMENTS`.
        column: of rows.
        kind: of the feature.
        label: of `ever`, the label's code.
        lag: of pairs, how many rows apart.
        centre: of pairs, the code that counts as 0, in 2^-20.
        scale: of pairs, the distance that counts as 1, in 2^-20; farther values count as 1.
    """

    name: str
    form: str
    column: str
    kind: TabularKind
    label: int = 0
    lag: int = 0
    centre: int = 0
    scale: int = ONE


@final
@dataclass(frozen=True, slots=True)
class Lag:
    """Pairs of rows of a unit, so many rows apart, of a column of numbers."""

    column: str
    lag: int

    def moments(self, centre: int, scale: int) -> tuple[str, ...]:
        """The names of their `MOMENTS`."""
        return tuple(f"{part} of {self.column} at lag {self.lag} about {centre} by {scale}" for part in MOMENTS)


def lag_of(name: str, schema: SchemaFacts) -> Lag | None:
    """The pairs of rows that a name such as `lag 2 of score` means; None where it means none.

    Raises:
        SchemaError: it is of no column of numbers of the rows, or of more rows than a unit has.
    """
    match = _LAG.fullmatch(name)
    if match is None or name in schema.columns or schema.unit is None:
        return None
    lag, column = int(match[1]), match[2]
    _row_kind(name, column, schema, numbers=True)
    if not 1 <= lag < schema.unit.max_rows:
        raise SchemaError(f"Expected a lag from 1 to {schema.unit.max_rows - 1} in {name!r}, got {lag}.")
    return Lag(column, lag)


def feature_of(name: str, schema: SchemaFacts) -> UnitFeature | None:
    """The feature of units that a name means; None where it means none.

    Args:
        name: as a question or a query has it.
        schema: of linked rows.

    Raises:
        SchemaError: it is of no column of the rows, or of another kind.
    """
    if name in schema.columns or schema.unit is None or not schema.linked:
        return None
    if match := _OF_PAIRS.fullmatch(name):
        form, column, lag, centre, scale = match[1], match[2], *map(int, match.groups()[2:])
        if lag_of(f"lag {lag} of {column}", schema) is None or not (centre <= ONE and 1 <= scale <= ONE):
            raise SchemaError(f"Expected a lag, a centre and a scale in {name!r}, got others.")
        lower = 0.0 if form == "pairs" or form.endswith("squared") else -1.0
        return UnitFeature(name, form, column, Continuous(lower=lower, upper=1.0), 0, lag, centre, scale)
    match = _OF_ROWS.fullmatch(name)
    if match is None:
        return None
    form, column = match[1], match[2]
    if form == "ever":
        return _ever(name, column, schema)
    kind = _row_kind(name, column, schema, numbers=form in ("mean", "change"))
    absent = kind.nullable or not schema.unit.fewest
    if form in ("mean", "change"):
        assert isinstance(kind, NumericKind)
        lower, upper = map(float, kind.bounds)
        if form == "change":
            lower, upper, absent = lower - upper, upper - lower, True
        return UnitFeature(name, form, column, Continuous(lower=lower, upper=upper, nullable=absent))
    return UnitFeature(name, form, column, replace(kind, nullable=absent))  # type: ignore[type-var] - a dataclass


def _ever(name: str, rest: str, schema: SchemaFacts) -> UnitFeature:
    column, _, label = rest.rpartition("=")
    kind = _row_kind(name, column, schema, numbers=False)
    labels = [str(known) for known in kind.labels] if isinstance(kind, LevelKind) else []
    if label not in labels:
        raise SchemaError(f"Expected a label of a column in {name!r}, such as 'ever of state=ill', got {shown(label)}.")
    return UnitFeature(name, "ever", column, Truth(), labels.index(label))


def _row_kind(name: str, column: str, schema: SchemaFacts, *, numbers: bool) -> TabularKind:
    """The kind of a column of rows, of `numbers` that are no dates."""
    kind, unit = schema.of_kind(TabularKind).get(column), schema.unit
    if kind is None or (unit is not None and column in unit.constant):
        raise SchemaError(f"Expected a column of the rows of a unit in {name!r}, got {shown(column)}.")
    if numbers and not isinstance(kind, Integer | Continuous):
        raise SchemaError(f"Expected a column of numbers in {name!r}, got {shown(column)} of the kind {kind.name}.")
    return kind


def rows_column(name: str) -> str:
    """The column of rows that a feature or a lag of this name would be of; empty where it has no such form."""
    match = _OF_ROWS.fullmatch(name) or _LAG.fullmatch(name)
    return "" if match is None else match[2].rpartition("=")[0] if match[1] == "ever" else match[2]


def features_in(names: Sequence[str], schema: SchemaFacts) -> list[UnitFeature]:
    """Those of some names that are features of units, each once."""
    known = (feature_of(name, schema) for name in dict.fromkeys(names))
    return [feature for feature in known if feature is not None]
