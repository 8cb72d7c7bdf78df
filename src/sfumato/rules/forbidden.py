"""Labels and numbers that rules forbid together, though each rule speaks of rows that have them.

    if a is x then b is p;   if a is x then b is q          no row has x

Each label and each span that stands in a condition is taken for given, and what rules say of the other columns is
intersected until nothing changes: of labels the set, of numbers the span. Where nothing is left of a column, no row has
the value. What is named is forbidden; what is not named may be, by rules of arithmetic, say, which are not looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sfumato.columns.bounded import NumericKind
from sfumato.columns.kind import TabularKind
from sfumato.errors import SchemaError
from sfumato.rules.cells import Kinds, resolution_of
from sfumato.rules.ordered import Order
from sfumato.rules.rule import Implication, Never, NullIf, Rule
from sfumato.rules.rule_plan import RulePlan
from sfumato.rules.terms import Term, missing_term

_MOST_VALUES = 2_000  # that are tried
_MOST_KEPT = 100_000  # times that a rule is looked at, for all of them: seconds


class _NothingLeftError(Exception):
    """No value of a column is left."""


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """The values that a column may have.

    Attributes:
        levels: of labels, the missing one included, shape (levels,); None of numbers.
        low, high: of numbers, the span that holds them; low above high where the cell is missing.
        missing: whether a number may be missing.
    """

    levels: np.ndarray | None
    low: float = 0.0
    high: float = 0.0
    missing: bool = False

    @classmethod
    def of(cls, kind: TabularKind) -> _Values:
        """Return all values of a kind."""
        if isinstance(kind, NumericKind):
            return cls(None, *kind.bounds, missing=kind.nullable)  # whole numbers stay whole: a float rounds large ones
        return cls(np.arange(kind.n_levels) < kind.width)

    @property
    def is_empty(self) -> bool:
        """Whether there are none."""
        return not self.levels.any() if self.levels is not None else self.low > self.high and not self.missing

    def within(self, term: Term) -> _Values:
        """Return those that are of a set, and for spans apart those between."""
        if self.levels is not None:
            assert term.levels is not None
            return _Values(self.levels & term.levels)
        ends = [(max(self.low, low), min(self.high, high)) for low, high in term.spans]
        ends = [(low, high) for low, high in ends if low <= high]
        missing = self.missing and term.missing
        if not ends:
            return _Values(None, 1.0, 0.0, missing)
        return _Values(None, min(low for low, _ in ends), max(high for _, high in ends), missing)

    def without(self, term: Term) -> _Values:
        """Return those that are not of a set: of numbers all that may not be."""
        if self.levels is not None:
            assert term.levels is not None
            return _Values(self.levels & ~term.levels)
        covered = any(low <= self.low and self.high <= high for low, high in term.spans)
        low, high = (1.0, 0.0) if covered else (self.low, self.high)
        return _Values(None, low, high, self.missing and not term.missing)

    def are_of(self, term: Term) -> bool:
        """Whether all are of a set."""
        return self.without(term).is_empty

    def same(self, other: _Values) -> bool:
        """Whether they are the same values."""
        if self.levels is not None:
            return bool((self.levels == other.levels).all())
        return (self.low, self.high, self.missing) == (other.low, other.high, other.missing)


class _Row:
    """A row as far as its columns are known."""

    def __init__(self, kinds: Kinds, names: tuple[str, ...]) -> None:
        self.kinds = kinds
        self.values = {name: _Values.of(kinds[name]) for name in names}
        self.changed = True

    def put(self, name: str, values: _Values) -> None:
        """Take in what a column has to be.

        Raises:
            _NothingLeftError: nothing is left of it.
        """
        if values.is_empty:
            raise _NothingLeftError
        if not values.same(self.values[name]):
            self.values[name], self.changed = values, True

    def let(self, term: Term) -> None:
        """Let a column be of a set."""
        self.put(term.column, self.values[term.column].within(term))

    def forbid(self, term: Term) -> None:
        """Let a column be none of a set."""
        self.put(term.column, self.values[term.column].without(term))

    def holds(self, term: Term) -> bool:
        """Whether a column is of a set for sure."""
        return self.values[term.column].are_of(term)

    def fails(self, term: Term) -> bool:
        """Whether a column is none of a set for sure."""
        return self.values[term.column].within(term).is_empty

    def forbid_all(self, terms: tuple[Term, ...]) -> None:
        """Let not all of some terms hold: where all others do, the last does not."""
        open_terms = [term for term in terms if not self.holds(term)]
        if not open_terms:
            raise _NothingLeftError
        if len(open_terms) == 1:
            self.forbid(open_terms[0])

    def keep(self, rule: Rule) -> None:
        """Take in what a rule says."""
        if isinstance(rule, Implication):
            self._imply(rule)
        elif isinstance(rule, Never):
            self.forbid_all(rule.terms)
        elif isinstance(rule, NullIf):
            self._null(rule)
        elif isinstance(rule, Order):
            self._order(rule)

    def _imply(self, rule: Implication) -> None:
        if all(map(self.holds, rule.conditions)):
            for term in rule.conclusions:
                self.let(term)
        elif any(map(self.fails, rule.conclusions)):
            self.forbid_all(rule.conditions)
        if not rule.only_if:
            return
        if any(map(self.holds, rule.conclusions)):
            for term in rule.conditions:
                self.let(term)
        elif any(map(self.fails, rule.conditions)):
            for term in rule.conclusions:
                self.forbid(term)

    def _null(self, rule: NullIf) -> None:
        missing = missing_term(rule.column, self.kinds[rule.column])
        if all(map(self.holds, rule.conditions)):
            self.let(missing)
        elif any(map(self.fails, rule.conditions)):
            self.forbid(missing)
        elif self.holds(missing):
            for term in rule.conditions:
                self.let(term)
        elif self.fails(missing):
            self.forbid_all(rule.conditions)

    def _order(self, rule: Order) -> None:
        """Move the ends of columns in order that are never missing, and of one resolution."""
        sure = [name for name in rule.names if not self.values[name].missing]
        for earlier, later in itertools.pairwise(sure):
            one, other = self.kinds[earlier], self.kinds[later]
            if not (isinstance(one, NumericKind) and isinstance(other, NumericKind)):
                continue
            if resolution_of(one) != resolution_of(other):
                continue
            low, high = self.values[earlier], self.values[later]
            self.put(later, replace(high, low=max(low.low, high.low)))
            self.put(earlier, replace(low, high=min(low.high, self.values[later].high)))


def require_conditions(plan: RulePlan) -> None:
    """Refuse rules with conditions that no row can meet, because other rules forbid it.

    Raises:
        SchemaError: names the value and the rules that forbid it together.
    """
    tried, left = 0, itertools.count(_MOST_KEPT, -1)
    for rules, names in plan.components:
        stated = [rule.terms[0] for rule in rules if isinstance(rule, Never) and len(rule.terms) == 1]
        for term, text in _conditions(rules):
            tried += 1
            if tried > _MOST_VALUES or next(left) < 0:
                return
            direct = [other for other in stated if other.column == term.column]
            own = _Values.of(term.kind).within(term)
            if any(map(own.are_of, direct)) or _is_possible(plan.kinds, rules, names, term, left):
                continue
            places = ", ".join(dict.fromkeys(rule.place for rule in _needed(plan.kinds, rules, names, term, left)))
            raise SchemaError(
                f"Expected rules that leave rows with {text}, of which one speaks, found that {places} forbid them "
                f"together. Take one out, or say `never: {{{term.column}: ...}}` if no row has the value."
            )


def _is_possible(
    kinds: Kinds, rules: tuple[Rule, ...], names: tuple[str, ...], term: Term, left: Iterator[int]
) -> bool:
    """Return whether rules leave a row with a value, as far as is known after so many looks at a rule as are left."""
    row = _Row(kinds, names)
    try:
        row.let(term)
        while row.changed:
            row.changed = False
            for rule in rules:
                if next(left) < 0:
                    return True
                row.keep(rule)
    except _NothingLeftError:
        return False
    return True


def _needed(
    kinds: Kinds, rules: tuple[Rule, ...], names: tuple[str, ...], term: Term, left: Iterator[int]
) -> tuple[Rule, ...]:
    """Return rules that forbid a value, of which none can be left out."""
    for rule in rules:
        fewer = tuple(other for other in rules if other is not rule)
        if not _is_possible(kinds, fewer, names, term, left):
            rules = fewer
    return rules


def _conditions(rules: tuple[Rule, ...]) -> Iterator[tuple[Term, str]]:
    """Yield each label and each span of a condition, as a set of its own, and in words."""
    known: set[tuple[str, object]] = set()
    for rule in rules:
        for term in rule.conditions if isinstance(rule, Implication | NullIf) else ():
            some: list[tuple[object, Term, str]] = []
            if term.levels is None:
                for span in term.spans:
                    one = replace(term, spans=(span,), missing=False)
                    some.append((span, one, f"{term.column!r} as {rule.place} has it"))
            else:
                for k in np.flatnonzero(term.levels).tolist():
                    one = replace(term, levels=np.arange(term.levels.size) == k)
                    labels = getattr(term.kind, "labels", ())
                    some.append((k, one, f"{term.column!r} {repr(labels[k]) if k < len(labels) else 'missing'}"))
            for key, one, text in some:
                if (term.column, key) not in known:
                    known.add((term.column, key))
                    yield one, text
