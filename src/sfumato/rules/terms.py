"""Sets of values of a cell, as rules name them: a label, a number, a span of these or of dates, a list, missing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.facts import label_text, shown
from sfumato.columns.kind import TabularKind
from sfumato.columns.levels import LevelKind
from sfumato.errors import ConfigError, SchemaError
from sfumato.rules.cells import Column, Kinds, Table

_NUMBER = r"-?(?:[0-9]{1,30}(?:\.[0-9]{1,30})?|\.[0-9]{1,30})"
_ONE = re.compile(_NUMBER)
_SPAN = re.compile(rf"({_NUMBER})?\s*(?:-|–|\bto\b|\.\.)\s*({_NUMBER})?")
_LONGEST_SPAN = 200  # characters: longer text is no span, and no pattern is tried on it
_MOST_SPANS = 1_000


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
            mask = np.zeros(len(column), dtype=bool)
            for low, high in self.spans:
                mask |= (column.values >= low) & (column.values <= high)
            return np.where(column.absent, self.missing, mask)
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


def missing_term(name: str, kind: TabularKind) -> Term:
    """Return the set of a column's missing cell alone."""
    levels = None if kind.is_numeric else np.arange(kind.n_levels) == kind.n_levels - 1
    return Term(name, kind, levels, (), missing=True)


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
        levels[levels_of(name, kind, [v for v in values if v is not None], place)] = True
        if missing:
            levels[kind.n_levels - 1] = True
        return Term(name, kind, levels, (), missing)
    assert isinstance(kind, NumericKind)
    if len(values) > _MOST_SPANS:
        raise SchemaError(f"Expected {place} to name at most {_MOST_SPANS} values of {name!r}, got {len(values)}.")
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


def levels_of(name: str, kind: LevelKind, values: Sequence[Any], place: str) -> np.ndarray:
    """Return the levels of labels that a rule names, None for missing; all are looked up at once.

    Raises:
        SchemaError: one is no label of the column.
    """
    faults: list[str] = []
    texts = [None if value is None else label_text(name, value, faults) for value in values]
    if faults:
        for value in values:
            _read(name, kind, value, place)  # says which one is wrong
    levels = kind.find(pa.array(texts, pa.string()), ()).astype(np.int64)
    for i in np.flatnonzero(levels < 0).tolist():
        if texts[i] is not None:
            _read(name, kind, values[i], place)
    if None in texts:
        levels[[text is None for text in texts]] = int(_read(name, kind, None, place)[0])
    return levels


def value_of(name: str, kind: NumericKind, value: Any, place: str) -> Any:  # noqa: ANN401
    """Return a number or date that a rule names, in the kind's own units."""
    return _read(name, kind, value, place)[1]


def span_of(name: str, kind: NumericKind, value: Any, place: str) -> tuple[Any, Any]:  # noqa: ANN401
    """Read `17`, `0-17`, `65-`, `..17`, `2020-01-01..2020-12-31`; what is left open is a bound of the column."""
    ends = _ends(value) if isinstance(value, str) else None
    if ends is None or (kind.name == "datetime" and ".." not in value and _is_date(name, kind, value)):
        one = value_of(name, kind, value, place)
        return one, one
    low, high = ends
    first = kind.bounds[0] if not low else _end(name, kind, low, place, math.ceil)
    last = kind.bounds[1] if not high else _end(name, kind, high, place, math.floor)
    if first > last:
        raise SchemaError(f"Expected {place} to have spans that go up, got {shown(value)} for {name!r}.")
    return first, last


def _ends(text: str) -> tuple[str, str] | None:
    """Return the ends of a span as text, if a text is one: `-5` is a number, up to 5 is `..5`."""
    text = text.strip()
    if len(text) > _LONGEST_SPAN or _ONE.fullmatch(text):
        return None
    match = _SPAN.fullmatch(text)
    if match is not None:
        return match[1] or "", match[2] or ""
    low, dots, high = text.partition("..")
    return (low.strip(), high.strip()) if dots else None


def _is_date(name: str, kind: NumericKind, text: str) -> bool:
    """Whether text such as `01-2024` is one date of a column's own format, and no span."""
    try:
        kind.given(name, text, kind.sample_type)
    except ConfigError:
        return False
    return True


def _end(name: str, kind: NumericKind, text: str, place: str, whole: Callable[[float], int]) -> Any:  # noqa: ANN401
    """Return an end of a span; one beyond the column's bounds is the bound, one between whole numbers the next inside.

    Only a plain number may be beyond: anything else is read as the column's cells are.
    """
    if kind.name == "datetime" or not _ONE.fullmatch(text):
        return value_of(name, kind, text, place)
    low, high = kind.bounds
    number = whole(float(text)) if isinstance(low, int) else float(text)
    return min(max(number, low), high)


def _read(name: str, kind: TabularKind, value: Any, place: str) -> tuple[float, Any]:  # noqa: ANN401
    try:
        read = kind.given(name, value, kind.sample_type)
    except ConfigError as error:
        raise SchemaError(f"In {place}: {error}") from None
    if not isinstance(kind, NumericKind):
        return read.code, None
    values, _ = kind.read(read.stored, ())
    return read.code, values[0].item()
