"""Rules, and those that forbid: implications, forbidden combinations, cells that have to be missing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.rules.cells import Column, Kinds, Table, absent, put
from sfumato.rules.terms import Term, all_hold, missing_term

Frozen = Collection[str]
"""Columns whose cells may not be changed: they are given."""


class Rule(ABC):
    """A rule that every row keeps.

    Attributes:
        place: which rule it is, for messages.
    """

    place: str

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The columns that it speaks of."""

    @abstractmethod
    def broken(self, table: Table) -> np.ndarray:
        """Return which rows break it, shape (n,)."""

    def project(self, table: Table, frozen: Frozen) -> None:  # noqa: B027 - many rules have no such change
        """Change rows that break it, in place, where one change is the obvious one; it may leave some."""

    def implied(self, given: Mapping[str, Column]) -> dict[str, Column]:
        """Return the values of other columns that follow from values of some, shape (1,) each."""
        return {}

    @property
    def anchors(self) -> tuple[str, ...]:
        """Columns that are better kept when others can be changed."""
        return ()

    @property
    def points(self) -> dict[str, list[float]]:
        """Numbers that it names, by column: where rows that keep it are to be looked for."""
        return {}


class _OfTerms(Rule):
    """A rule that is said in sets of values, `terms`."""

    __slots__ = ()

    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the sets."""
        return tuple(term.column for term in self.terms)

    @property
    def points(self) -> dict[str, list[float]]:
        """The ends of spans."""
        points: dict[str, list[float]] = {}
        for term in self.terms:
            points.setdefault(term.column, []).extend(term.points)
        return points


class _Conditional(_OfTerms):
    """A rule of rows that meet conditions."""

    __slots__ = ()

    conditions: tuple[Term, ...]

    @property
    def anchors(self) -> tuple[str, ...]:
        """The conditions."""
        return tuple(term.column for term in self.conditions)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Implication(_Conditional):
    """Where all conditions hold, all conclusions do; and only there, if that is said.

    Attributes:
        conditions: of the rows it speaks of.
        conclusions: what these rows have to be.
        only_if: whether each conclusion holds in no other row.
    """

    place: str
    conditions: tuple[Term, ...]
    conclusions: tuple[Term, ...]
    only_if: bool

    @property
    def terms(self) -> tuple[Term, ...]:  # type: ignore[override]
        """Conditions and conclusions."""
        return (*self.conditions, *self.conclusions)

    def broken(self, table: Table) -> np.ndarray:
        """Return which rows break it."""
        condition = all_hold(self.conditions, table)
        mask = condition & ~all_hold(self.conclusions, table)
        if self.only_if:
            mask |= ~condition & np.logical_or.reduce([term.holds(table) for term in self.conclusions])
        return mask

    def project(self, table: Table, frozen: Frozen) -> None:
        """Set conclusions; where one is given and the others follow, conditions."""
        condition = all_hold(self.conditions, table)
        if self.only_if and any(term.column in frozen for term in self.conclusions):
            reverse = ~condition & np.logical_or.reduce(
                [term.holds(table) for term in self.conclusions if term.column in frozen]
            )
            _set(table, np.flatnonzero(reverse), self.conditions, frozen)
            condition = all_hold(self.conditions, table)
        for term in self.conclusions:
            _set(table, np.flatnonzero(condition & ~term.holds(table)), (term,), frozen)

    def implied(self, given: Mapping[str, Column]) -> dict[str, Column]:
        """Return conclusions of what is given; or, of a conclusion that holds nowhere else, the conditions."""
        known = [term for term in self.conditions if term.column in given]
        if len(known) == len(self.conditions) and all(term.within(given[term.column])[0] for term in known):
            return _only(self.conclusions)
        certain = [t for t in self.conclusions if t.column in given and t.within(given[t.column])[0]]
        if self.only_if and certain:
            return _only(self.conditions)
        return {}


def _only(terms: tuple[Term, ...]) -> dict[str, Column]:
    return {term.column: value for term in terms if (value := term.only()) is not None}


def _set(table: Table, rows: np.ndarray, terms: tuple[Term, ...], frozen: Frozen) -> None:
    """Write the one value of each term into some rows, but for columns that are given."""
    for name, value in _only(terms).items():
        if name not in frozen and rows.size:
            put(table, rows, name, value[np.zeros(rows.size, dtype=np.int64)])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Never(_OfTerms):
    """No row has all of these values.

    Attributes:
        terms: the values.
    """

    place: str
    terms: tuple[Term, ...]

    def broken(self, table: Table) -> np.ndarray:
        """Return which rows break it."""
        return all_hold(self.terms, table)


@final
@dataclass(frozen=True, slots=True, eq=False)
class NullIf(_Conditional):
    """A column is missing where all conditions hold, and nowhere else.

    Attributes:
        column: the column.
        conditions: when it is missing.
        kinds: the kinds of all columns.
    """

    place: str
    column: str
    conditions: tuple[Term, ...]
    kinds: Kinds

    @property
    def terms(self) -> tuple[Term, ...]:  # type: ignore[override]
        """The conditions."""
        return self.conditions

    @property
    def columns(self) -> tuple[str, ...]:
        """The column, and those of the conditions."""
        return (self.column, *self.anchors)

    def broken(self, table: Table) -> np.ndarray:
        """Return which rows break it."""
        return absent(self.kinds[self.column], table[self.column]) != all_hold(self.conditions, table)

    def project(self, table: Table, frozen: Frozen) -> None:
        """Let cells be missing where they have to be."""
        if self.column in frozen:
            return
        rows = np.flatnonzero(all_hold(self.conditions, table) & self.broken(table))
        if rows.size:
            put(table, rows, self.column, missing(self.kinds, self.column, rows.size))

    def implied(self, given: Mapping[str, Column]) -> dict[str, Column]:
        """Return that the column is missing, of conditions that are given; or conditions of one that is missing."""
        if all(term.column in given and term.within(given[term.column])[0] for term in self.conditions):
            return {self.column: missing(self.kinds, self.column, 1)}
        if self.column in given and absent(self.kinds[self.column], given[self.column])[0]:
            return _only(self.conditions)
        return {}


def missing(kinds: Kinds, name: str, n: int) -> Column:
    """Return n missing cells of a nullable column."""
    value = missing_term(name, kinds[name]).only()
    assert value is not None
    return value[np.zeros(n, dtype=np.int64)]
