"""Columns as documents of other tools describe them, and the kinds that follow.

A kind without bounds or categories is left open (`discover: true`); free text becomes an identifier, not released.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from sfumato.columns.kinds import Boolean, Categorical, ColumnKind, Continuous, DateTime, Identifier, Integer
from sfumato.columns.open import Open, OpenKind
from sfumato.columns.text_forms import MISSING_TOKENS
from sfumato.errors import SchemaError, SchemaWarning
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit

_OPEN: dict[str, OpenKind] = {
    "integer": "integer",
    "number": "continuous",
    "datetime": "datetime",
    "category": "categorical",
}


NOT_RELEASED = "declared as identifier, not released. Give bounds or categories to release them."
_LEFT_OPEN = "left open with `discover: true`, for a fit to estimate. Declare bounds or categories to save budget."


@dataclass(slots=True)
class Variable:
    """A column as a file describes it.

    Attributes:
        name: of the column.
        form: "integer", "number", "boolean", "datetime" or "category" (labels that are not listed); "identifier" of
            what names a record.
        lower: bound of a number or a date, as the file has it.
        upper: the other.
        categories: all values that it may have; none where they are not listed.
        nullable: whether a value may be missing.
        date_format: of dates, in strftime's letters; None for ISO 8601.
        missing: texts that stand for a missing value, beside the usual ones.
    """

    name: str
    form: str
    lower: object = None
    upper: object = None
    categories: Sequence[object] = ()
    nullable: bool = True
    date_format: str | None = None
    missing: Sequence[str] = ()


def schema_of(
    variables: Sequence[Variable], source: str, path: object, *, missing: Iterable[str] = (), unit: str | None = None
) -> Schema:
    """Return the schema that follows; a warning names the columns of which too little is said.

    Args:
        variables: the columns of a table as a file describes them.
        source: where its facts come from, a word of the schema's `source`.
        path: the file.
        missing: texts that stand for a missing value in all columns, beside the usual ones.
        unit: the column that names the unit, of one row each; None if there is none.

    Raises:
        SchemaError: there is no column, a name comes twice, or a fact is impossible; it names the column.
    """
    if not variables:
        raise SchemaError(f"Expected {path} to describe at least one column, got none. Name another file.")
    columns: dict[str, ColumnKind] = {}
    sources: dict[str, str] = {}
    left_open: list[str] = []
    unknown: list[str] = []
    for variable in variables:
        if variable.name in columns:
            raise SchemaError(f"Column {variable.name!r}: expected each column once in {path}, got it twice.")
        kind = _kind(variable, path)
        columns[variable.name] = kind or Identifier()
        if kind is None:
            unknown.append(variable.name)
        elif isinstance(kind, Open):
            left_open.append(variable.name)
        elif not isinstance(kind, Identifier):
            sources[variable.name] = source
    warn_unfixed(left_open, _LEFT_OPEN)
    warn_unfixed(unknown, NOT_RELEASED)
    return Schema(
        columns=columns,
        unit=None if unit is None else Unit(column=unit, max_rows=1),
        missing=tuple(dict.fromkeys([*MISSING_TOKENS, *missing])),
        missing_of={v.name: tuple(dict.fromkeys([*MISSING_TOKENS, *v.missing])) for v in variables if v.missing},
        sources=sources,
    )


def warn_unfixed(names: Sequence[str], then: str) -> None:
    """Warn of columns whose domain a file does not fix; `then` says what they became."""
    if names:
        text = f"The file does not fix the domain of {', '.join(map(repr, names))}: {then}"
        warnings.warn(text, SchemaWarning, stacklevel=4)


def _kind(variable: Variable, path: object) -> ColumnKind | None:
    fault = ""
    try:
        return _unchecked(variable)
    except SchemaError as error:
        fault = str(error)
    except (TypeError, ValueError, InvalidOperation):
        fault = "Expected plain facts, got others."
    raise SchemaError(f"Column {variable.name!r}: {fault} Correct {path}.")


def _unchecked(variable: Variable) -> ColumnKind | None:
    if variable.form == "identifier":
        return Identifier()
    if variable.form == "boolean":
        return Boolean(nullable=variable.nullable)
    if variable.categories:
        labels = (str(label).lower() if isinstance(label, bool) else label for label in variable.categories)
        return Categorical.of_text(labels, nullable=variable.nullable)
    if variable.lower is None or variable.upper is None:
        kind = _OPEN.get(variable.form)
        return None if kind is None else Open(kind=kind, format=variable.date_format)
    if variable.form == "datetime":
        first, last = str(variable.lower), str(variable.upper)
        return DateTime(lower=first, upper=last, format=variable.date_format, nullable=variable.nullable)
    if variable.form not in ("integer", "number"):
        return None
    lower, upper = number_of(variable.lower), number_of(variable.upper)
    if variable.form == "integer" and lower == int(lower) and upper == int(upper):
        return Integer(lower=int(lower), upper=int(upper), nullable=variable.nullable)
    return Continuous(lower=float(lower), upper=float(upper), nullable=variable.nullable)


def number_of(value: object) -> Decimal:
    """Return a number as a file has it, exactly.

    Raises:
        SchemaError: it is none, or not finite.
    """
    number = None
    if not isinstance(value, bool):
        with contextlib.suppress(InvalidOperation):
            number = Decimal(str(value).strip())
    if number is None or not number.is_finite() or abs(number) > 10**300:
        raise SchemaError("Expected bounds that are finite numbers, got something else.")
    return number
