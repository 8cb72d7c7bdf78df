"""What one cell has to be, as rules name it: a label, a number, a span of them or of dates, one of a list, missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.facts import shown
from sfumato.columns.kind import TabularKind
from sfumato.columns.levels import LevelKind
from sfumato.errors import ConfigError, SchemaError
from sfumato.rules.cells import Column, Kinds, Table, absent

_NUMBER = r"-?(?:[0-9]{1,30}(?:\.[0-9]{1,30})?|\.[0-9]{1,30})"
_ONE = re.compile(rf"\s*{_NUMBER}\s*")
_SPAN = re.compile(rf"\s*({_NUMBER})?\s*(?:-|–|\bto\b|\.\.)\s*({_NUMBER})?\s*")
_DOTS = re.compile(r"\s*(.*?)\s*\.\.\s*(.*?)\s*")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A set of values of one column.

    Attributes:
        column: its name.
        kind: its kind.
        levels: of labels, which levels are in the set, the missing one included; shape (levels,).
        spans: of numbers and dates, first and last value of every span, in the kind's own units.
        missing: whether a missing cell is in the set.
    """

    column: str
    kind: TabularKind
    levels: np.ndarray | None
    spans: tuple[tuple[float, float], ...]
    missing: bool

    def holds(self, table: Mapping[str, Column]) -> np.ndarray:
        """Return which rows have a value of the set, shape (n,)."""
        return self.within(table[self.column])

    def within(self, column: Column) -> np.ndarray:
        """Return which cells are of the set, shape (n,)."""
        if isinstance(column, Values):
            found = np.zeros(len(column), dtype=bool)
            for low, high in self.spans:
                found |= (column.values >= low) & (column.values <= high)
            return np.where(column.absent, self.missing, found)
        assert self.levels is not None
        return self.levels[column]

    def only(self) -> Column | None:
        """Return the one value of the set, shape (1,); None if it has several."""
        if self.levels is not None:
            chosen = np.flatnonzero(self.levels)
            return chosen.astype(np.int64) if chosen.size == 1 else None
        assert isinstance(self.kind, NumericKind)
        dtype = type(self.kind.bounds[0])
        if self.missing and not self.spans:
            return Values(np.array([self.kind.bounds[0]], dtype=dtype), np.array([True]))
        if not self.missing and len(self.spans) == 1 and self.spans[0][0] == self.spans[0][1]:
            return Values(np.array([self.spans[0][0]], dtype=dtype), np.array([False]))
        return None

    @property
    def points(self) -> list[float]:
        """The ends of the spans, of numbers and dates."""
        return [point for span in self.spans for point in span]

    @property
    def is_possible(self) -> bool:
        """Whether some cell of the column may be of the set."""
        return bool(self.levels.any()) if self.levels is not None else bool(self.spans) or self.missing


def all_hold(terms: tuple[Term, ...], table: Table) -> np.ndarray:
    """Return which rows have values of all sets, shape (n,)."""
    return np.logical_and.reduce([term.holds(table) for term in terms])


def read_terms(entry: object, kinds: Kinds, place: str) -> tuple[Term, ...]:
    """Read a mapping from columns to what their cells have to be.

    Raises:
        SchemaError: a column or a value is not the schema's.
    """
    if not isinstance(entry, Mapping) or not entry:
        raise SchemaError(f"Expected {place} to map columns to values, such as {{sex: male}}, got {shown(entry)}.")
    return tuple(read_term(str(name), value, kinds, place) for name, value in entry.items())


def read_term(name: str, value: object, kinds: Kinds, place: str) -> Term:
    """Read what a column's cells have to be: a value, a list of them, a span such as `18-64`, or none for missing.

    Raises:
        SchemaError: the column or a value is not the schema's.
    """
    kind = kind_of(name, kinds, place)
    values = value if isinstance(value, list | tuple) else [value]
    missing = any(v is None for v in values)
    if missing and not kind.nullable:
        raise SchemaError(f"Expected {place} to name values that {name!r} has, got none: it is not nullable.")
    if isinstance(kind, LevelKind):
        levels = np.zeros(kind.n_levels, dtype=bool)
        levels[[level_of(name, kind, v, place) for v in values if v is not None]] = True
        if missing:
            levels[kind.n_levels - 1] = True
        return Term(name, kind, levels, (), missing)
    assert isinstance(kind, NumericKind)
    spans = tuple(span_of(name, kind, v, place) for v in values if v is not None)
    return Term(name, kind, None, spans, missing)


def kind_of(name: object, kinds: Kinds, place: str) -> TabularKind:
    """Return the kind of a column that a rule names.

    Raises:
        SchemaError: it is no released column of labels, numbers or dates.
    """
    if not isinstance(name, str) or name not in kinds:
        raise SchemaError(
            f"Expected {place} to name released columns of labels, numbers or dates whose facts are declared, got "
            f"{shown(name)}. Declare it, or leave it out of the rule."
        )
    return kinds[name]


def numeric_kind(name: object, kinds: Kinds, place: str) -> NumericKind:
    """Return the kind of a column of numbers or dates.

    Raises:
        SchemaError: it is none.
    """
    kind = kind_of(name, kinds, place)
    if not isinstance(kind, NumericKind):
        raise SchemaError(f"Expected {place} to name a column of numbers or dates, got {shown(name)}.")
    return kind


def level_of(name: str, kind: LevelKind, value: Any, place: str) -> int:  # noqa: ANN401
    """Return the level of a label that a rule names."""
    return int(_read(name, kind, value, place)[0])


def value_of(name: str, kind: NumericKind, value: Any, place: str) -> Any:  # noqa: ANN401
    """Return a number or date that a rule names, in the kind's own units."""
    return _read(name, kind, value, place)[1]


def span_of(name: str, kind: NumericKind, value: Any, place: str) -> tuple[Any, Any]:  # noqa: ANN401
    """Read `17`, `0-17`, `65-`, `..17`, `2020-01-01..2020-12-31`; what is left open is a bound of the column."""
    found = None
    if isinstance(value, str) and not _ONE.fullmatch(value):  # `-5` is a number; up to 5 is `..5`
        found = _SPAN.fullmatch(value) or _DOTS.fullmatch(value)
    if found is None:
        one = value_of(name, kind, value, place)
        return one, one
    low, high = (end or None for end in found.groups())
    first = kind.bounds[0] if low is None else _end(name, kind, low, place)
    last = kind.bounds[1] if high is None else _end(name, kind, high, place)
    if first > last:
        raise SchemaError(f"Expected {place} to have spans that go up, got {shown(value)} for {name!r}.")
    return first, last


def _end(name: str, kind: NumericKind, text: str, place: str) -> Any:  # noqa: ANN401
    """Return an end of a span; one beyond the column's bounds is the bound."""
    try:
        number = float(text)
    except ValueError:
        return value_of(name, kind, text, place)
    if kind.name == "datetime":
        return value_of(name, kind, text, place)
    low, high = kind.bounds
    return min(max(type(low)(number), low), high)


def _read(name: str, kind: TabularKind, value: Any, place: str) -> tuple[float, Any]:  # noqa: ANN401
    try:
        read = kind.given(name, value, kind.sample_type)
    except ConfigError as error:
        raise SchemaError(f"In {place}: {error}") from None
    if not isinstance(kind, NumericKind):
        return read.code, None
    values, _ = kind.read(read.stored, ())
    return read.code, values[0].item()


def present(kind: TabularKind, column: Column) -> np.ndarray:
    """Return which cells hold a value, shape (n,)."""
    return ~absent(kind, column)
