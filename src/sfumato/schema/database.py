"""A database: a table of units, and tables of events below it or below each other.

    tables:
      persons: {key: person, rows: 12000, columns: [sex]}
      visits: {of: persons, key: visit, max_rows: 8, order: day, columns: [day, score, state], ends: {state: dead}}
      measurements: {of: visits, max_rows: 4, columns: [value]}
      drugs: {of: persons, max_rows: 6, columns: [drug]}

The rows of a table below one row are a *branch*: linked rows whose constants are what is known of the row above, the
rows further above, and of the branches before. A single branch whose rows have no key of their own is *joined*: they
are the linked rows of units, with the columns of these.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sfumato.columns.facts import label_text, plain_value, shown
from sfumato.columns.kind import settle
from sfumato.errors import SchemaError

MOST_TABLES = 200
"""The most tables of a database: what is known of a row above is looked up along all paths."""

_UNUSABLE = set('/\\:*?"<>|=')


def require_file_name(name: object) -> None:
    """Refuse the name of a table that is none of a file: samples are files of these names.

    Raises:
        SchemaError: it is none.
    """
    if not isinstance(name, str) or not name.strip(". ") or _UNUSABLE & set(name) or not name.isprintable():
        raise SchemaError(f"Expected the name of a table to be one of a file, got {shown(name)}. Rename it.")


def own_name(table: str, column: str) -> str:
    """Return the name that a column has in the files of its table, of which the schema may put the table's before it.

    Example:
        >>> own_name("visits", "visits.date"), own_name("visits", "date")
        ('date', 'date')
    """
    return column.removeprefix(f"{table}.") or column


def read_ends(value: object, place: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the labels that end a unit, per column.

    Raises:
        SchemaError: they are none.
    """
    entries = value.items() if isinstance(value, Mapping) else value
    faults: list[str] = []
    try:
        ends = dict[str, tuple[str, ...]]()
        for name, labels in entries:  # type: ignore[union-attr]
            several = isinstance(labels, Iterable) and not isinstance(labels, str | bytes | Mapping)
            ends[name] = tuple(label_text("a label", label, faults) for label in (labels if several else [labels]))
    except (TypeError, ValueError):
        ends = {"": ()}
    if faults or not all(isinstance(name, str) and name and labels for name, labels in ends.items()):
        raise SchemaError(
            f"Expected ends of {place} to map columns to labels, such as {{state: dead}}, got {shown(value)}."
        )
    return tuple(ends.items())


def read_totals(value: object, place: str) -> tuple[tuple[str, str], ...]:
    """Return columns of rows above with the columns whose totals they are.

    Raises:
        SchemaError: they are no mapping of names to names.
    """
    totals: dict[str, str] = dict(value) if isinstance(value, Mapping | tuple) else {"": ""}
    if not all(isinstance(name, str) and name for pair in totals.items() for name in pair):
        raise SchemaError(
            f"Expected totals of {place} to map columns of the table above to its own, such as {{cost: amount}}, got "
            f"{shown(value)}."
        )
    return tuple(totals.items())


def column_names(value: object, place: str) -> tuple[str, ...]:
    """Return the names of columns, each once.

    Raises:
        SchemaError: they are no list of names.
    """
    names = list(value) if isinstance(value, list | tuple) else None
    if names is None or not all(isinstance(name, str) and name for name in names):
        raise SchemaError(f"Expected {place} to be a list of columns, got {shown(value)}.")
    if len(set(names)) < len(names):
        raise SchemaError(f"Expected {place} to name each column once, got one twice.")
    return tuple(names)


def count(value: object, name: str) -> int:
    """Return a public number of at least 1.

    Raises:
        SchemaError: it is none.
    """
    value = plain_value(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SchemaError(f"Expected {name} to be a whole number of at least 1, got {shown(value)}.")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A table of events.

    Attributes:
        name: of the table.
        of: the table above.
        max_rows: the most rows of one row above that are used.
        columns: those that are released; none of a joined branch, which has all that are not of units.
        by: the column that names the row above.
        key: the column that names a row, which tables below have; None without.
        unit: the column that names the unit, where it stands in the table, too: then keys need to be unique within a
            unit alone.
        order: the column of numbers or dates by which rows of one row above follow each other.
        within: two columns of rows above between which `order` lies, such as the start and the end of a stay.
        ends: per column of labels, those after which there is no row.
        totals: per column of the row above that is a total of its rows, the column that is added up.
        weight: of the budget, beside those of other branches.
    """

    name: str
    of: str
    max_rows: int
    by: str
    columns: tuple[str, ...] = ()
    key: str | None = None
    unit: str | None = None
    order: str | None = None
    within: tuple[str, str] | None = None
    ends: tuple[tuple[str, tuple[str, ...]], ...] = ()
    totals: tuple[tuple[str, str], ...] = ()
    weight: float = 1.0

    def __post_init__(self) -> None:
        require_file_name(self.name)
        place = f"the table {self.name!r}"
        settle(self, max_rows=count(self.max_rows, f"max_rows of {place}"))
        settle(self, columns=column_names(self.columns, f"columns of {place}"))
        settle(self, ends=read_ends(self.ends, place), totals=read_totals(self.totals, place))
        for key in ("by", "key", "unit", "order"):
            value = getattr(self, key)
            if value is not None and (not isinstance(value, str) or not value):
                raise SchemaError(f"Expected {key} of {place} to name a column, got {shown(value)}.")
        if self.within is not None:
            settle(self, within=column_names(self.within, f"within of {place}"))
            if len(self.within) != 2 or self.order is None:
                raise SchemaError(
                    f"Expected within of {place} to name two columns of rows above, beside an order, got "
                    f"{shown(self.within)}."
                )
        number = isinstance(self.weight, int | float) and not isinstance(self.weight, bool)
        if not number or not 0 < self.weight < math.inf:
            raise SchemaError(f"Expected weight of {place} to be a positive number, got {shown(self.weight)}.")

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that name rows or units, in the order in which samples have them."""
        return tuple(dict.fromkeys(name for name in (self.key, self.by, self.unit) if name is not None))


class Crossing(NamedTuple):
    """A column of a branch is not before the latest, or behind the earliest, `bound` of a table drawn before it."""

    branch: str
    column: str
    form: Literal["latest", "earliest"]
    table: str
    bound: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """The tables of a database.

    Attributes:
        units: name of the table of units; its columns are the constants of the unit.
        branches: the others, each after the table that it is of.

    Example:
        >>> visits = Branch(name="visits", of="persons", max_rows=8, columns=("score",), by="person", key="visit")
        >>> values = Branch(name="values", of="visits", max_rows=4, columns=("value",), by="visit")
        >>> Database(units="persons", branches=(visits, values)).path("values")
        ('visits', 'values')
    """

    units: str
    branches: tuple[Branch, ...]

    def __post_init__(self) -> None:
        require_file_name(self.units)
        known = {self.units.casefold()}
        for branch in self.branches:
            if branch.name.casefold() in known:
                raise SchemaError(f"Expected tables of different names, got {branch.name!r} twice. Rename one.")
            if branch.of.casefold() not in known:
                raise SchemaError(
                    f"Expected the table {branch.name!r} to be of one before it, got of={shown(branch.of)}. Put that "
                    "first, or correct it."
                )
            known.add(branch.name.casefold())
        if self.joined is not None and self.joined.columns:
            raise SchemaError(
                f"Expected no columns of {self.joined.name!r}, the only table below {self.units!r}, got some: "
                "it has all that are not of that. Leave them out."
            )

    @property
    def joined(self) -> Branch | None:
        """The single branch whose rows are the linked rows of units; None of several, or of keys or totals."""
        first = self.branches[0] if len(self.branches) == 1 else None
        plain = first is not None and (first.key, first.unit, first.within, first.totals) == (None, None, None, ())
        return first if plain else None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all, that of units first."""
        return (self.units, *(branch.name for branch in self.branches))

    def branch(self, name: str) -> Branch:
        """Return the branch of this name.

        Raises:
            KeyError: there is none.
        """
        return {branch.name: branch for branch in self.branches}[name]

    def path(self, name: str) -> tuple[str, ...]:
        """Return the branches from that below units down to this one."""
        if name == self.units:
            return ()
        return (*self.path(self.branch(name).of), name)

    @property
    def spans(self) -> tuple[tuple[str, str], ...]:
        """The pairs of columns between which rows of some branch lie, each once."""
        return tuple(dict.fromkeys(branch.within for branch in self.branches if branch.within is not None))

    @property
    def totals(self) -> dict[str, str]:
        """Per column that is a total of rows below, their column."""
        return {total: column for branch in self.branches for total, column in branch.totals}

    @property
    def told_by_key(self) -> tuple[str, ...]:
        """The tables whose key alone says whose the rows below are, each once."""
        below = [branch for branch in self.branches if self.is_nested(branch.name)]
        return tuple(dict.fromkeys(branch.of for branch in below if branch.unit in (None, branch.by)))

    def home(self, names: Collection[str], columns: Mapping[str, tuple[str, ...]]) -> str:
        """Return the first table whose rows, with those above, have all these of the tables' columns; empty of none."""
        whole = {name: {c for step in (self.units, *self.path(name)) for c in columns[step]} for name in self.names}
        return next((name for name in self.names if whole[name].issuperset(names)), "")

    def crossing(self, rule: Mapping[str, Any], columns: Mapping[str, tuple[str, ...]]) -> Crossing | None:
        """Return what an order of columns of two tables says, of which none is above the other; None of others."""
        names = rule.get("order", ())
        if len(names) != 2 or self.home(names, columns):
            return None
        tables = [next((table for table in self.names if name in columns[table]), "") for name in names]
        if not all(tables):
            return None
        own = int(self.names.index(tables[1]) > self.names.index(tables[0]))
        form = "latest" if own else "earliest"
        return Crossing(tables[own], names[own], form, tables[1 - own], names[1 - own])

    def above_both(self, name: str, other: str) -> str:
        """Return the lowest table above the rows of two, or one of them, that is above the other's."""
        shared = [a for a, b in zip(self.path(name), self.path(other), strict=False) if a == b]
        return shared[-1] if shared else self.units

    def is_nested(self, name: str) -> bool:
        """Whether a branch lies below another one."""
        return len(self.path(name)) > 1

    def most_rows(self, name: str, above: str | None = None) -> int:
        """Return the most rows of a branch, of one row of a table above it, by default of one unit."""
        path = self.path(name)
        return math.prod(self.branch(step).max_rows for step in path[len(self.path(above or self.units)) :])
