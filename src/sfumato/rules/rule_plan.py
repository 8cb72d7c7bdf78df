"""The columns that rules leave free, which is all that is measured and modelled, and how rows are made of them.

    a sum, product, difference, derived label      left out: it follows from the others
    the later of two columns in order              its distance from the earlier one, at least 0, where that is no wider
    all other columns                              as they are

A record is mapped to what is free by its own cells alone, whatever they hold: a distance below 0 becomes 0, what
follows from others is not looked at. So neighbours stay neighbours, and no proof changes.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from sfumato.columns.bounded import Values
from sfumato.columns.kind import TabularKind
from sfumato.columns.numbers import Continuous, Integer
from sfumato.errors import SchemaError
from sfumato.rules.cells import (
    Column,
    Kinds,
    Table,
    coarsest,
    fitted,
    from_codes,
    in_steps,
    numbers,
    numeric,
    resolution_of,
    to_codes,
)
from sfumato.rules.computed import Computed, Follows
from sfumato.rules.ordered import Order
from sfumato.rules.rule import Frozen, NullIf, Rule

_WIDEST = 2  # times the span of the later column that its distance may have: lives would say no day of a visit


@dataclass(frozen=True, eq=False)
class RulePlan:
    """Rules over the columns of a table.

    Attributes:
        kinds: the columns of labels, numbers and dates.
        entries: what rows keep, per rule of the schema: a range may be several.
        places: of linked rows, how far below the unit each column lies, and whether rows follow each other by it.
    """

    kinds: Kinds
    entries: tuple[tuple[Rule, ...], ...]
    places: Mapping[str, tuple[int, bool]] = field(default_factory=dict)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """All rules, one after the other."""
        return tuple(itertools.chain.from_iterable(self.entries))

    @property
    def columns(self) -> list[set[str]]:
        """The columns of each rule of the schema."""
        return [{name for rule in rules for name in rule.columns} for rules in self.entries]

    def __post_init__(self) -> None:
        _ = self.order, self.gaps  # cycles and empty orders are refused here

    @cached_property
    def follows(self) -> dict[str, Follows]:
        """Per column that follows from others, the rule that says how: the first."""
        by_column: dict[str, Follows] = {}
        for rule in self.rules:
            if isinstance(rule, Follows):
                if rule.column in by_column:
                    raise SchemaError(
                        f"Expected one rule that says what {rule.column!r} is, got {by_column[rule.column].place} and "
                        f"{rule.place}. Take one out."
                    )
                by_column[rule.column] = rule
        return by_column

    @cached_property
    def order(self) -> list[str]:
        """The columns that follow from others, each after what it follows from and what says when it is missing."""
        sources = {name: {s for s in rule.sources if s in self.follows} for name, rule in self.follows.items()}
        nulls = {
            name: {c for rule in self.nulls.get(name, ()) for c in rule.columns if c in sources} for name in sources
        }
        with contextlib.suppress(CycleError):  # what follows from a column may say when this is missing: mended later
            return list(
                TopologicalSorter({name: (sources[name] | nulls[name]) - {name} for name in sources}).static_order()
            )
        try:
            return list(TopologicalSorter(sources).static_order())
        except CycleError as error:
            cycle = [rule.place for name, rule in self.follows.items() if name in error.args[1]]
        raise SchemaError(f"Expected rules without a cycle, got one of {', '.join(cycle)}. Take one out.")

    @cached_property
    def gaps(self) -> dict[str, str]:
        """Per column that is modelled by its distance from an earlier one, that column; each after its own."""
        gaps: dict[str, str] = {}
        roots: dict[str, str] = {}
        for rule in self.rules:
            for earlier, later in zip(rule.names, rule.names[1:], strict=False) if isinstance(rule, Order) else ():
                low, high = numeric(self.kinds, earlier), numeric(self.kinds, later)
                step = coarsest((low, high))
                first, last = np.array([low.bounds[0]]), np.array([high.bounds[1]])
                if in_steps(high, last, step)[0] < in_steps(low, first, step)[0]:
                    raise SchemaError(
                        f"Expected {rule.place} to order columns whose bounds allow it, got {earlier!r} and {later!r}: "
                        f"all values of {later!r} are below all of {earlier!r}."
                    )
                if later in gaps or later in self.follows or earlier in self.follows or self._bounds(earlier, later):
                    continue
                span = in_steps(high, np.array(high.bounds), step) - in_steps(low, first, step)
                if span[1] <= _WIDEST * (span[1] - span[0]) and _root(roots, earlier) != later:
                    gaps[later] = roots[later] = earlier
        parents_first = TopologicalSorter({later: [earlier] for later, earlier in gaps.items()}).static_order()
        return {name: gaps[name] for name in parents_first if name in gaps}

    def _bounds(self, earlier: str, later: str) -> bool:
        """Whether rows are bounded by what is above them, or follow each other by what that bounds: no distance."""
        (above, _), (depth, orders) = (self.places.get(name, (0, False)) for name in (earlier, later))
        return depth < above or (orders and depth > above)

    @cached_property
    def free(self) -> dict[str, TabularKind]:
        """The columns that are modelled, with their kinds."""
        return {
            name: self.gap_kind(name) if name in self.gaps else kind
            for name, kind in self.kinds.items()
            if name not in self.follows
        }

    def gap_kind(self, later: str) -> Integer | Continuous:
        """Return the kind of a distance, in the later column's own units."""
        low, high = numeric(self.kinds, self.gaps[later]), numeric(self.kinds, later)
        most = high.bounds[1] - self._units(later, np.array([low.bounds[0]]))[0]
        if isinstance(high.bounds[0], int) and isinstance(low.bounds[0], int):
            return Integer(lower=0, upper=max(int(most), 0), nullable=high.nullable)
        most = max(float(most), 0.0)
        resolution = getattr(high, "resolution", None)
        if not isinstance(resolution, float) or resolution > most:
            resolution = None
        return Continuous(lower=0.0, upper=most, resolution=resolution, nullable=high.nullable)

    def _units(self, later: str, values: np.ndarray) -> np.ndarray:
        """Return values of the earlier column in the later one's units."""
        low, high = numeric(self.kinds, self.gaps[later]), numeric(self.kinds, later)
        if resolution_of(high) == resolution_of(low):
            return values
        return in_steps(low, values, resolution_of(high))

    def _start(self, later: str, table: Mapping[str, Column]) -> np.ndarray:
        """Return where distances start: at the earlier column; at its lower bound where that is missing."""
        earlier = self.gaps[later]
        column = numbers(table, earlier)
        return self._units(later, np.where(column.absent, numeric(self.kinds, earlier).bounds[0], column.values))

    def to_free(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        """Return coded records as codes of the free columns: a map of each record by itself."""
        free = {name: codes for name, codes in rows.items() if name not in self.follows}
        for later, earlier in self.gaps.items():
            table = {name: from_codes(self.kinds[name], rows[name]) for name in (later, earlier)}
            free[later] = self.gap_codes(later, table)
        return free

    def gap_codes(self, later: str, table: Mapping[str, Column]) -> np.ndarray:
        """Return the codes of a distance."""
        column, kind = numbers(table, later), self.gap_kind(later)
        values = column.values - self._start(later, table)
        return to_codes(kind, Values(fitted(kind, values), column.absent))

    def known_gap(self, later: str, known: Mapping[str, Column]) -> float | None:
        """Return the code of a distance that follows from given values, shape (1,) each; None if it does not."""
        earlier = self.gaps[later]
        if later in known and earlier in known:
            return float(self.gap_codes(later, known)[0])
        low, high = numeric(self.kinds, earlier), numeric(self.kinds, later)
        for rule in self.follows.values():
            if not isinstance(rule, Computed) or rule.column not in known or resolution_of(low) != resolution_of(high):
                continue
            value = known[rule.column]
            if rule.operation == "difference" and rule.parts == (later, earlier) and isinstance(value, Values):
                kind = self.gap_kind(later)
                return float(to_codes(kind, Values(fitted(kind, value.values), value.absent))[0])
        return None

    def is_fixed(self, name: str, known: Mapping[str, Column]) -> bool:
        """Return whether a column that is not modelled has its given value whatever is drawn, when known are given."""
        if name in self.gaps:
            return self.gaps[name] in known
        rule = self.follows[name]
        if all(source in known for source in rule.sources):
            return True
        return any(
            set(rule.sources) == {later, low} and self.known_gap(later, known) is not None
            for later, low in self.gaps.items()
        )

    def assembled(self, rows: Mapping[str, Any]) -> Table:
        """Return the columns of rows of the model, those that follow from others included."""
        table: Table = {name: from_codes(kind, rows[name]) for name, kind in self.free.items()}
        for later in self.gaps:
            gap, kind = numbers(table, later), numeric(self.kinds, later)
            table[later] = Values(fitted(kind, self._start(later, table) + gap.values), gap.absent)
        self.follow(table, ())
        return {name: table[name] for name in self.kinds}

    def follow(self, table: Table, frozen: Frozen) -> None:
        """Write what follows from others, in place, but for columns that are given."""
        for name in self.order:
            if name not in frozen:
                table[name] = self.follows[name].value(table)
                for rule in self.nulls.get(name, ()):
                    if all(column in table for column in rule.columns):
                        rule.project(table, frozen)

    @cached_property
    def nulls(self) -> dict[str, list[NullIf]]:
        """Per column, the rules that say when it is missing."""
        by_column: dict[str, list[NullIf]] = {}
        for rule in self.rules:
            if isinstance(rule, NullIf):
                by_column.setdefault(rule.column, []).append(rule)
        return by_column

    @cached_property
    def components(self) -> list[tuple[tuple[Rule, ...], tuple[str, ...]]]:
        """Rules that share columns, with these: a row may be mended a component at a time."""
        groups: list[tuple[list[Rule], set[str]]] = []
        for rule in self.rules:
            mine: tuple[list[Rule], set[str]] = ([rule], set(rule.columns))
            apart = []
            for group in groups:
                if group[1] & mine[1]:
                    mine = (group[0] + mine[0], group[1] | mine[1])
                else:
                    apart.append(group)
            groups = [*apart, mine]
        return [(tuple(rules), tuple(name for name in self.kinds if name in names)) for rules, names in groups]

    @cached_property
    def parts(self) -> list[RulePlan]:
        """Per component a plan of its own rules and columns."""
        return [
            replace(self, kinds={n: self.kinds[n] for n in own}, entries=(rules,)) for rules, own in self.components
        ]


def _root(roots: dict[str, str], name: str) -> str:
    """Return where a chain of columns in order starts; the chains are made shorter on the way."""
    while name in roots:
        roots[name] = roots.get(roots[name], roots[name])
        name = roots[name]
    return name
