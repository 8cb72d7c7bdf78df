"""Columns that follow from others: sums, products, differences, and labels read off a map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.rules.cells import Column, Kinds, Table, coarsest, fitted, in_steps, numbers, numeric, resolution_of
from sfumato.rules.rule import Frozen, Rule

Operation = Literal["sum", "product", "difference"]
_LARGEST = 2**53
_ROUNDING = 1e-9  # of the largest numbers at hand, where no resolution says more


class Follows(Rule):
    """A rule that says what one column is, given others."""

    column: str

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns that it follows from."""
        return tuple(name for name in self.columns if name != self.column)

    def value(self, table: Table) -> Column:
        """Return the column, as it follows from the others."""
        raise NotImplementedError

    def implied(self, given: Mapping[str, Column]) -> dict[str, Column]:
        """Return the column, where all that it follows from is given."""
        if all(name in given for name in self.sources):
            return {self.column: self.value(dict(given))}
        return {}


@final
@dataclass(frozen=True, slots=True, eq=False)
class Computed(Follows):
    """A number that is the sum, the product or the difference of others, up to a tolerance.

    It is missing where a part is, if it may be; a row with a missing part keeps the rule. Where it may not be missing,
    a missing part counts as nothing.

    Attributes:
        operation: sum, product or difference.
        column: the result.
        parts: what it follows from.
        kinds: the kinds of all columns.
        within: how far it may be from it: half a step of its resolution where not said.
        share: how far it may be from it, as a share of it; the larger of the two counts.
    """

    place: str
    operation: Operation
    column: str
    parts: tuple[str, ...]
    kinds: Kinds
    within: float
    share: float = 0.0

    neutral: ClassVar[Mapping[Operation, int]] = {"sum": 0, "difference": 0, "product": 1}

    @property
    def columns(self) -> tuple[str, ...]:
        """The result and its parts."""
        return (self.column, *self.parts)

    def exact(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the result before it is rounded, and which rows have a missing part."""
        step = coarsest(numeric(self.kinds, name) for name in self.parts)
        terms, gone = [], np.zeros(0, dtype=bool)
        for name in self.parts:
            column = numbers(table, name)
            gone = gone | column.absent if gone.size else column.absent.copy()
            values = in_steps(numeric(self.kinds, name), column.values, step)
            terms.append(np.where(column.absent, self.neutral[self.operation], values))
        if any((values > _LARGEST).any() or (values < -_LARGEST).any() for values in terms):
            terms = [values.astype(np.float64) for values in terms]  # of real rows: integers would wrap around
        result = terms[0]
        with np.errstate(all="ignore"):  # infinity stays what it is, and is no sum of anything
            for values in terms[1:]:
                if self.operation == "product":
                    result = result.astype(np.float64) * values
                else:
                    result = result + values if self.operation == "sum" else result - values
        return result, gone

    def value(self, table: Table) -> Values:
        """Return the result, within its bounds."""
        result, gone = self.exact(table)
        kind = numeric(self.kinds, self.column)
        return Values(fitted(kind, result), gone & kind.nullable)

    def broken(self, table: Table) -> np.ndarray:
        """Return which rows have a result that is not that of their parts."""
        column = numbers(table, self.column)
        expected, gone = self.exact(table)
        with np.errstate(all="ignore"):
            apart = np.abs(column.values - expected.astype(np.float64))
            allowed = np.maximum(self.within, self.share * np.abs(expected)) if self.share else self.within
        return ~((apart <= allowed) & np.isfinite(apart)) & ~column.absent & ~gone

    def project(self, table: Table, frozen: Frozen) -> None:
        """Let a part that is free take up the rest, where the result is given."""
        if self.column not in frozen or self.operation == "product":
            return
        for name in self.parts:
            rows = np.flatnonzero(self.broken(table))
            if name in frozen or not rows.size or resolution_of(numeric(self.kinds, name)) is not None:
                continue
            part, result = numbers(table, name), numbers(table, self.column)
            over = self.exact(table)[0][rows] - result.values[rows]
            sign = 1 if self.operation == "sum" or name == self.parts[0] else -1
            part.values[rows] = fitted(numeric(self.kinds, name), part.values[rows] - sign * over)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Derived(Follows):
    """A label that is read off another column by a public map.

    Attributes:
        column: the label's column.
        source: the column that it is read off.
        kinds: the kinds of both.
        by_level: of a source of labels, the level of each of its levels, missing included.
        starts: of a source of numbers or dates, where its spans start, going up.
        by_span: the level of each span.
        if_missing: the level where the source is missing.
    """

    place: str
    column: str
    source: str
    kinds: Kinds
    by_level: np.ndarray
    starts: np.ndarray
    by_span: np.ndarray
    if_missing: int

    @property
    def columns(self) -> tuple[str, ...]:
        """The column and its source."""
        return (self.column, self.source)

    @property
    def points(self) -> dict[str, list[float]]:
        """Where spans start."""
        return {self.source: self.starts.tolist()}

    def value(self, table: Table) -> np.ndarray:
        """Return the levels that the map says."""
        source = table[self.source]
        if not isinstance(source, Values):
            return self.by_level[source]
        place = np.maximum(np.searchsorted(self.starts, source.values, side="right") - 1, 0)
        return np.where(source.absent, self.if_missing, self.by_span[place])

    def broken(self, table: Table) -> np.ndarray:
        """Return which rows have another level."""
        column = table[self.column]
        assert isinstance(column, np.ndarray)
        return column != self.value(table)


def tolerance(kind: NumericKind, parts: list[NumericKind]) -> float:
    """Return how far a result may be from its parts where a rule does not say: what its rounding explains."""
    resolution = getattr(kind, "resolution", None)
    if isinstance(kind.bounds[0], int):
        return 0.0 if all(isinstance(part.bounds[0], int) for part in parts) else 0.5
    largest = max(abs(float(bound)) for part in (kind, *parts) for bound in part.bounds)
    return _ROUNDING * max(largest, 1.0) + (resolution / 2 if isinstance(resolution, float) else 0.0)
