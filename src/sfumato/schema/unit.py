"""Whom the guarantee protects, where that is not the row; and what links the rows of one unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.columns.facts import shown
from sfumato.columns.kind import settle
from sfumato.errors import SchemaError
from sfumato.schema.database import Database, column_names, count, read_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Whom the guarantee protects, where that is not the row.

    Attributes:
        column: the column that says whose a row is; it is never released.
        max_rows: the most rows of one unit that are used; of several tables it follows from these.
        order: a column of numbers or dates by which a unit's rows follow each other. With it, or with `constant`, rows
            are linked: samples are units with their rows.
        constant: the columns that are the same in all rows of a unit.
        units: of linked rows, the number of units that may be assumed publicly.
        tables: of linked rows in several tables, what these are: then `constant` are the columns of that of units,
            and a unit may have no row. `max_rows`, `order` and `ends` follow from them.
        ends: per column of labels, those after which a unit has no row, such as {"state": ["dead"]}.

    Example:
        >>> from sfumato import Schema
        >>> from sfumato.columns import Identifier, Integer
        >>> columns = {"patient": Identifier(), "days": Integer(lower=0, upper=365)}
        >>> Schema(columns=columns, unit=Unit(column="patient", max_rows=3)).protects
        {'name': 'patient', 'max_rows': 3}
    """

    column: str
    max_rows: int = 0
    order: str | None = None
    constant: tuple[str, ...] = ()
    units: int | None = None
    tables: Database | None = None
    ends: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SchemaError(f"Expected unit to name a column, got column={shown(self.column)}.")
        if self.tables is not None:
            self._follow(self.tables)
        settle(self, max_rows=count(self.max_rows, "max_rows of unit"))
        if self.order is not None and (not isinstance(self.order, str) or not self.order):
            raise SchemaError(f"Expected order of unit to name a column, got {shown(self.order)}.")
        settle(self, constant=column_names(self.constant, "constant of unit"), ends=read_ends(self.ends, "unit"))
        if self.units is not None:
            settle(self, units=count(self.units, "units of unit"))
        if self.units is not None and not self.linked:
            raise SchemaError(
                "Expected units of unit beside order or constant, got it alone. Name what links the rows, or declare "
                "the public number of rows as `rows`."
            )

    def _follow(self, tables: Database) -> None:
        if not isinstance(tables, Database):
            raise SchemaError(f"Expected tables of unit to be a Database, got {type(tables).__name__}.")
        branch, most = tables.joined, sum(tables.most_rows(branch.name) for branch in tables.branches)
        order, ends = (None, ()) if branch is None else (branch.order, branch.ends)
        for name, value in (("max_rows", most), ("order", order), ("ends", ends)):
            if getattr(self, name) not in (0, None, (), value):
                raise SchemaError(f"Expected {name} of unit to follow from its tables, got another. Leave it out.")
            settle(self, **{name: value})

    @property
    def count_name(self) -> str:
        """The column of units that holds their number of rows: of a table below, under its name."""
        below = None if self.tables is None else self.tables.joined
        return f"number of rows of {self.column}" if below is None else f"number of {below.name}"

    @property
    def linked(self) -> bool:
        """Whether the unit with all its rows is one record, and samples have units with their rows."""
        return self.order is not None or bool(self.constant) or self.tables is not None or bool(self.ends)

    @property
    def fewest(self) -> int:
        """The fewest rows of a unit: 0 where units have a table of their own."""
        return 1 if self.tables is None else 0

    def to_dict(self) -> dict[str, Any]:
        """Return the unit as plain values; what has its default is left out. Of several tables: `unit_entry`."""
        rest = {"order": self.order, "constant": list(self.constant) or None, "units": self.units}
        rest["ends"] = {name: list(labels) for name, labels in self.ends} or None
        document = {"column": self.column, "max_rows": self.max_rows, **rest}
        return {key: value for key, value in document.items() if value is not None}


_NEEDED, _KNOWN = {"column", "max_rows"}, {"column", "max_rows", "order", "constant", "units", "ends"}


def read_unit(entry: object, faults: list[str]) -> Unit | None:
    """Return the unit of a schema document, or note what is wrong with it."""
    if entry is None:
        return None
    if not isinstance(entry, Mapping) or not set(entry) >= _NEEDED:
        example = "{column: person, max_rows: 5}"
        faults.append(f"Expected unit to hold column and max_rows, such as {example}, got {shown(entry)}.")
        return None
    unknown = [key for key in entry if key not in _KNOWN]
    if unknown:
        faults.append(
            f"Expected unit to hold column, max_rows and perhaps order, constant, units and ends, got "
            f"{shown(unknown[0])}."
        )
        return None
    try:
        return Unit(**entry)
    except SchemaError as error:
        faults.append(str(error))
    return None
