"""Whom the guarantee protects, where that is not the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.columns.facts import plain_value, shown
from sfumato.errors import SchemaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Whom the guarantee protects, where that is not the row.

    Attributes:
        column: the column that says whose a row is; it is never released.
        max_rows: the most rows of one unit that are used.

    Example:
        >>> from sfumato import Schema
        >>> from sfumato.columns import Identifier, Integer
        >>> columns = {"patient": Identifier(), "days": Integer(lower=0, upper=365)}
        >>> Schema(columns=columns, unit=Unit(column="patient", max_rows=3)).protects
        {'name': 'patient', 'max_rows': 3}
    """

    column: str
    max_rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SchemaError(f"Expected unit to name a column, got column={shown(self.column)}.")
        object.__setattr__(self, "max_rows", count(self.max_rows, "max_rows of unit"))


def read_unit(entry: object, faults: list[str]) -> Unit | None:
    """Return the unit of a schema document, or note what is wrong with it."""
    if entry is None:
        return None
    if not isinstance(entry, Mapping) or set(entry) != {"column", "max_rows"}:
        faults.append("Expected unit to hold column and max_rows, such as {column: person, max_rows: 5}.")
        return None
    try:
        return Unit(column=entry["column"], max_rows=entry["max_rows"])
    except SchemaError as error:
        faults.append(str(error))
    return None


def count(value: object, name: str) -> int:
    """Return a public number of at least 1.

    Raises:
        SchemaError: it is none.
    """
    value = plain_value(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SchemaError(f"Expected {name} to be a whole number of at least 1, got {shown(value)}.")
    return value
