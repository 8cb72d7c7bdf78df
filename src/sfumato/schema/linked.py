"""Linked rows of a unit as two tables of a known kind: of units with their first row, and of steps from row to row.

    units    constants, number of rows, histories; the first row, which is missing of a unit without rows
    steps    constants, number of rows, the row's number, lines of histories; the row before; offsets from the lines;
             the row, its order as the distance from before

The *history* of a number is the line through a unit's rows: its mean, and its change from the first row to the last. It
is drawn before rows are, and each row given the line through it and those after it, which follows from the history and
the rows before: so levels and trends outlast single rows. How far it lies off that line is a column of its own, as
noise hides the difference of two columns that are nearly the same.

Both have one record a unit: of steps a unit has a sequence, which a mechanism bounds as a whole. Their schemas follow
from the declared one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeGuard

from sfumato.columns.booleans import Truth
from sfumato.columns.bounded import NumericKind
from sfumato.columns.kind import ColumnKind, nullable_kind
from sfumato.columns.levels import Categorical, LabelPair, LevelKind
from sfumato.columns.numbers import Continuous, Integer
from sfumato.maths.constants import LINKS
from sfumato.schema.distances import Clock, Distance
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import Keyed, Weight

MOST_CHANGE = 1.5
"""The most that a line through values between 0 and 1 rises from the first of them to the last, of any number."""
_MOST_HISTORIES, _FEWEST_ROWS = 4, 3
_ENDS = ("goes on", "right before an end", "last", "last and an end")


@dataclasses.dataclass(frozen=True, slots=True)
class History:
    """The columns that tell of a number's line through a unit's rows.

    Attributes:
        level: of units: the mean of the rows' values; missing of none.
        trend: of units: what the line rises from the first row to the last; missing of fewer than two values.
        line: of steps: where the line through the row and those after it is at the row, within the bounds.
        offset: of steps: the value less the line, in the spread of rows with many after them; missing of a unit's last
            row, which lies on the line.
    """

    level: str
    trend: str
    line: str
    offset: str


@dataclasses.dataclass(frozen=True, slots=True)
class LinkedTables:
    """The two tables of a schema of linked rows.

    Attributes:
        units: schema of units with their first row.
        steps: schema of two rows that follow each other; its rule puts their order. None where a unit has one row.
        count: the column of units and steps that holds the number of a unit's rows; empty where a unit has one row.
        place: the column of steps that holds the number of the row, 2 for the first step.
        before: per column of a row, the column of steps that holds it in the row before; of few labels with the one
            before that, as `LabelPair`.
        constants: the columns that a unit's rows share.
        order: the column of order, if there is one.
        max_rows: the most rows of a unit.
        fewest: the fewest.
        weight: the constant that is the units' weight; empty without. A column of units, and none of steps: these
            count by it, and given the row before it would only be one more noisy column. Samples do not have it.
        ended: the column of units that says whether a label ended them; empty unless labels end units.
        end: that of steps that says so, and whether the row is the unit's last one.
        ends: per column of labels, the codes after which a unit has no row.
        histories: per column of numbers that has one.
        pairs: per column of few labels, the kind of what is before.
    """

    units: Schema
    steps: Schema | None
    count: str
    place: str
    before: dict[str, str]
    constants: tuple[str, ...]
    order: str | None
    max_rows: int
    fewest: int = 1
    weight: str = ""
    ended: str = ""
    end: str = ""
    ends: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    histories: dict[str, History] = dataclasses.field(default_factory=dict)
    pairs: dict[str, LabelPair] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, weight: str = "") -> LinkedTables:
        """Return the tables of a plain schema whose unit links its rows; `weight` was its weight."""
        unit = schema.unit
        assert unit is not None
        kinds = {name: schema.columns[name] for name in schema.released}
        constants = tuple(name for name in schema.released if name in unit.constant)
        taken, varying = set(kinds), [name for name in schema.released if name not in constants]
        count, place = (new_name(taken, name) for name in (unit.count_name, f"row of {unit.column}"))
        before = {name: new_name(taken, f"{name} before") for name in varying}
        if unit.max_rows == unit.fewest:
            return cls(_table(schema, kinds), None, "", "", before, constants, unit.order, 1, weight=weight)
        fixed: dict[str, ColumnKind] = {name: kinds[name] for name in constants}
        fixed[count] = Integer(lower=unit.fewest, upper=unit.max_rows)
        ends = end_codes(schema) if unit.max_rows > 1 else {}
        ended, end = (new_name(taken, f"{word} of {unit.column}") if ends else "" for word in ("ended", "end"))
        fixed |= {ended: Truth()} if ended else {}
        first = {name: kinds[name] if unit.fewest else nullable_kind(kinds[name]) for name in varying}
        histories = _histories(schema, varying, taken)
        lines = {
            part: kind
            for name, own in histories.items()
            for part, kind in ((own.level, _mean_kind(kinds[name])), (own.trend, _apart_kind(kinds[name], MOST_CHANGE)))
        }
        units = _table(schema, {**fixed, **lines, **first})
        if unit.max_rows == 1:
            return cls(units, None, count, "", before, constants, unit.order, 1, unit.fewest, weight)
        # of a unit of one row there is no step: what steps can be is less than what a number of rows can
        numbers = dict.fromkeys((count, place), Integer(lower=2, upper=unit.max_rows))
        steps = {name: kind for name, kind in fixed.items() if name not in (weight, ended)} | numbers
        steps |= {end: Categorical(categories=_ENDS)} if end else {}
        steps |= {history.line: _mean_kind(kinds[name]) for name, history in histories.items()}
        pairs = {name: LabelPair.of(kind.width) for name in before if _few(kind := kinds[name]) and unit.max_rows > 2}
        steps |= {before[name]: pairs.get(name, kinds[name]) for name in varying}
        rules = () if unit.order is None else ({"order": [before[unit.order], unit.order]},)
        steps |= {history.offset: _apart_kind(kinds[name]) for name, history in histories.items()}
        # numbers with offsets before the other columns, as they are drawn
        joint = _table(schema, {**steps, **{name: kinds[name] for name in (*histories, *before)}}, rules)
        known = (units, joint, count, place, before, constants, unit.order, unit.max_rows, unit.fewest, weight)
        return cls(*known, ended, end, ends, histories, pairs)

    @property
    def known(self) -> tuple[str, ...]:
        """The constants that are columns of steps: all but the weight."""
        return tuple(name for name in self.constants if name != self.weight)

    @property
    def drawn_first(self) -> tuple[int, ...]:
        """How many columns of steps are drawn before all others, in turn: those known, offsets, numbers with these."""
        several = len(self.histories)
        return (self.n_fixed, self.n_fixed + several, self.n_fixed + 2 * several) if several else (self.n_fixed,)

    @property
    def n_first(self) -> int:
        """How many columns of units, the first ones, are drawn before the first row where that depends on how many."""
        return 0 if self.fewest and not self.ends else len(self.constants) + 1 + bool(self.ends)

    @property
    def n_fixed(self) -> int:
        """How many columns of steps, the first ones, are known before a row is drawn."""
        return len(self.known) + 2 + bool(self.end) + len(self.histories) + len(self.before)


def _histories(schema: Schema, varying: list[str], taken: set[str]) -> dict[str, History]:
    """Return the histories of numbers, where they are few, and units may have three rows.

    Numbers between the bounds of the order are times as it is: they go on with it, and have none.
    """
    unit = schema.unit
    assert unit is not None
    order = None if unit.order is None else schema.columns[unit.order]
    times = (order.lower, order.upper) if isinstance(order, NumericKind) else None  # such a column is a time, too
    numbers = [
        name
        for name in varying
        if isinstance(kind := schema.columns[name], Integer | Continuous) and (kind.lower, kind.upper) != times
    ]
    if unit.max_rows < _FEWEST_ROWS or len(numbers) > _MOST_HISTORIES:
        return {}
    words = "level", "trend", "line", "offset"
    return {name: History(*(new_name(taken, f"{word} of {name}") for word in words)) for name in numbers}


def _few(kind: ColumnKind) -> TypeGuard[LevelKind]:
    """Whether labels are so few that two that follow each other are counted with a third."""
    if not isinstance(kind, LevelKind):
        return False
    return (kind.width * (kind.width + 1) + 1) * (kind.width + 1) <= LINKS.most_pairs


def _mean_kind(kind: ColumnKind) -> Continuous:
    assert isinstance(kind, Integer | Continuous)
    return Continuous(lower=kind.lower, upper=kind.upper, nullable=True)


def _apart_kind(kind: ColumnKind, most: float = 1.0) -> Continuous:
    """Return the kind of what lies apart, by so many times the span of a column at most."""
    assert isinstance(kind, Integer | Continuous)
    most *= kind.upper - kind.lower
    return Continuous(lower=-most, upper=most, nullable=True)


@lru_cache(maxsize=16)
def _cached(schema: Keyed[Schema], weight: str) -> LinkedTables:
    return LinkedTables.of(schema.value, weight)


def linked_tables(schema: Schema, weight: Weight | None = None) -> LinkedTables:
    """Return the two tables of a plain schema of linked rows; `weight` is the declared schema's."""
    key = schema.unit, tuple(schema.columns.items()), schema.missing, tuple(schema.missing_of.items())
    return _cached(Keyed(schema, key), "" if weight is None else weight.column)


class PartSchema(Schema):
    """Schema of one of the two tables: linked rows are read once, and have nothing beside their dates."""

    __slots__ = ()

    @property
    def clocks(self) -> dict[str, Clock]:
        """None."""
        return {}

    @property
    def distances(self) -> dict[str, Distance]:
        """None."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        rebuilt, facts = super().__reduce__()
        return part_schema, (rebuilt(*facts),)


def part_schema(schema: Schema) -> PartSchema:
    """Return a schema as that of a part."""
    return PartSchema(**{field.name: getattr(schema, field.name) for field in dataclasses.fields(schema)})


def _table(schema: Schema, columns: dict[str, ColumnKind], rules: Iterable[dict[str, list[str]]] = ()) -> Schema:
    cleared = {"rows": None, "unit": None, "sources": {}, "table_source": {}, "accept": (), "draft": False}
    cleared["questions"] = ()
    return part_schema(dataclasses.replace(schema, columns=columns, rules=tuple(rules), **cleared))


def end_codes(schema: Schema) -> dict[str, tuple[int, ...]]:
    """Return the codes of the labels after which a unit has no row, per column."""
    ends: dict[str, tuple[int, ...]] = {}
    for name, labels in () if schema.unit is None else schema.unit.ends:
        kind = schema.columns[name]
        assert isinstance(kind, LevelKind)
        ends[name] = tuple(kind.labels.index(label) for label in labels)
    return ends


def new_name(taken: set[str], name: str) -> str:
    """Return a name that no column has, and note it."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name
