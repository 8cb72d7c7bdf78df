"""Samples of linked rows: units with their constants and first row, and walks from each row to the next."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.errors import ConfigError, ReleaseError
from sfumato.lenses.chain import plain_schema
from sfumato.lenses.lens import Sampler, Units, UnitSampler
from sfumato.records.histories import Ahead, off_lines
from sfumato.records.sequences import known_at
from sfumato.release.tilted_table import TableSoftmax
from sfumato.rules.cells import as_values, numbers, numeric, to_codes
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import Weight

_Never: TypeAlias = Mapping[str, Sequence[float] | np.ndarray]
_Draw: TypeAlias = Callable[[np.ndarray, _Never], Mapping[str, np.ndarray]]
_ROUNDED = 1e-9  # of a span: sums of floats
_ROUNDS = 5  # times that rows are drawn anew that cannot be


class LinkedTable(UnitSampler):
    """Units and their rows, as coded rows: each row is drawn given the one before it and the unit's constants."""

    name = "linked_table"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        if not schema.linked:
            raise ReleaseError("Expected a schema of linked rows in the release.")
        self._tables, self._columns = linked_tables(schema, _weight(schema, settings)), schema.released
        self._first = _part(self._tables, "units", settings, parameters)
        self._first.require_first(self._tables.n_first)
        self._units: Sampler = self._first
        own = self._own = schema.of_kind(TabularKind)
        # codes that a first row has only where there is none
        gone = {} if self._tables.fewest else self._tables.units.of_kind(TabularKind)
        self._never = {
            name: np.array([np.nan if gone[name].is_numeric else gone[name].n_levels - 1])
            for name in self._tables.before
            if gone and not own[name].has_blank
        }
        self._steps: TableSoftmax | None = None
        if self._tables.steps is not None:
            self._steps = _part(self._tables, "steps", settings, parameters)
            for n in self._tables.drawn_first:
                self._steps.require_first(n)
        widths = [part.width for part in (self._units, self._steps) if part is not None]  # one is drawn at a time
        self.width = max(widths) + 2 * self._tables.max_rows * len(self._columns)  # rows, and those put in order
        self.possible, self.class_column = self._first.possible, self._first.class_column
        self.ends, self.order = self._tables.ends, self._tables.order
        # what rows that end have not, of each column that may end them, and how often it does
        self._going = [{**self.ends, n: np.setdiff1d(range(own[n].n_levels), c)} for n, c in self.ends.items()]
        of = [] if self._tables.steps is None else self._tables.steps.released
        shares = [parameters[f"steps.column.{of.index(n)}.shares"][list(c)].sum() + 1e-9 for n, c in self.ends.items()]
        self._chances = np.array(shares) / max(sum(shares), 1e-9)

    def among_labels(self) -> LinkedTable:
        """Return the sampler given that no cell has a hidden level."""
        sampler, own, first = copy.copy(self), self._own, self._tables.units.of_kind(TabularKind)
        sampler._units = sampler._first = self._first.among_labels()
        sampler._steps = None if self._steps is None else self._steps.among_labels()
        # where there may be no first row, a hidden level is that of none
        hiding = [name for name in self._tables.before if own[name].hides_blank and not first[name].hides_blank]
        sampler._never = self._never | {name: np.array([len(own[name].labels)]) for name in hiding}
        sampler.possible = sampler._first.possible
        return sampler

    @property
    def fixed(self) -> tuple[str, ...]:
        """The columns that no row may have otherwise once a unit is drawn: constants and order."""
        return (*self._tables.constants, *([] if self._tables.order is None else [self._tables.order]))

    def units(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Units:
        """Return n units, numbered from 0, and coded rows."""
        return self._walks(dict(self._units.rows(n, rng, classes)), n, rng)

    def require_context(self) -> None:
        """Refuse a chain that draws other columns before the constants of units.

        Raises:
            ReleaseError: it does.
        """
        self._first.require_first(len(self._tables.constants))

    def below(self, context: Mapping[str, np.ndarray], rng: np.random.Generator) -> Units:
        """Return units that have these coded constants, in their order, and coded rows.

        Raises:
            ReleaseError: the chain of units draws other columns before its constants.
        """
        first = self._first.followed({name: context[name] for name in self._tables.constants}, rng)
        return self._walks(first, next(iter(first.values())).size, rng)

    def _walks(self, first: dict[str, np.ndarray], n: int, rng: np.random.Generator) -> Units:
        """Return n units that begin with these rows."""
        tables, sizes, ended = self._tables, np.ones(n, dtype=np.int64), np.zeros(n, dtype=bool)
        if tables.count:
            most, fewest = tables.max_rows, tables.fewest
            sizes = fewest + np.rint(first.pop(tables.count) * (most - fewest)).astype(np.int64)
        if tables.ended:
            ended = (first.pop(tables.ended) == 1) & (sizes > 0)
        if tables.n_first:
            self._complete(first, sizes, ended, rng)
        lines = {name: (first.pop(own.level), first.pop(own.trend)) for name, own in tables.histories.items()}
        owners, rows = self._paths(first, sizes, ended, lines, rng)
        whose = np.concatenate(owners)
        order = np.argsort(whose, kind="stable")
        together = {name: np.concatenate([part[name] for part in rows])[order] for name in self._columns}
        return Units(whose[order], together, sizes[whose[order]] == 0)

    def _paths(
        self,
        first: dict[str, np.ndarray],
        sizes: np.ndarray,
        ended: np.ndarray,
        lines: Mapping[str, tuple[np.ndarray, np.ndarray]],
        rng: np.random.Generator,
        rounds: int = _ROUNDS,
    ) -> tuple[list[np.ndarray], list[dict[str, np.ndarray]]]:
        """Return whose rows of the same place follow, and these, place after place.

        Records end within the bounds of the order, and so units that would not are drawn anew from their first row on;
        what no round mended is, step by step.
        """
        tables, n = self._tables, sizes.size
        ahead = {name: Ahead(*line, sizes) for name, line in lines.items()}
        owners, rows, late = [np.arange(n)], [first], np.zeros(n, dtype=bool)
        last, left = first, np.arange(n)
        twice: Mapping[str, np.ndarray] = {name: np.full(n, kind.n) for name, kind in tables.pairs.items()}
        for place in range(2, tables.max_rows + 1):
            going = np.flatnonzero(sizes[left] >= place)
            if not going.size:
                break
            before, left = left, left[going]
            for name, of_units in ahead.items():
                of_units.take(before, last[name], place - 1)
            at = {tables.histories[name].line: of_units.at(left, place) for name, of_units in ahead.items()}
            last, earlier = ({name: codes[going] for name, codes in rows.items()} for rows in (last, twice))
            at |= {own: last[name] for name, own in tables.before.items()} | {tables.ended: ended[left]}
            at |= {tables.before[name]: kind.codes(last[name], earlier[name]) for name, kind in tables.pairs.items()}
            twice, (last, beyond) = last, self._following({**last, **at}, sizes[left], place, rng, settle=not rounds)
            late[left] |= beyond
            owners.append(left)
            rows.append(last)
        if not (late.any() and rounds):
            return owners, rows
        again, stay = np.flatnonzero(late), [~late[own] for own in owners]
        some = {name: codes[again] for name, codes in first.items()}
        of_some = {name: (level[again], trend[again]) for name, (level, trend) in lines.items()}
        more, anew = self._paths(some, sizes[again], ended[again], of_some, rng, rounds - 1)
        owners = [own[good] for own, good in zip(owners, stay, strict=True)] + [again[own] for own in more]
        rows = [{n: codes[good] for n, codes in part.items()} for part, good in zip(rows, stay, strict=True)]
        return owners, rows + anew

    def _complete(
        self, first: dict[str, np.ndarray], sizes: np.ndarray, ended: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Draw first rows anew where there is none, where a value is missing that cannot be, or ends do not fit.

        A unit without rows gets the first row that one of its constants and one row would have, which is not written:
        so no code that a column has not is passed on.
        """
        tables, ending = self._tables, ended & (sizes == 1)
        names = [name for own in tables.histories.values() for name in (own.level, own.trend)] + list(tables.before)

        def draw(units: np.ndarray, never: _Never) -> dict[str, np.ndarray]:
            known = {name: first[name][units] for name in tables.constants}
            known[tables.count] = (np.maximum(sizes[units], 1) - tables.fewest) / (tables.max_rows - tables.fewest)
            known |= {tables.ended: ended[units].astype(np.int64)} if tables.ended else {}
            return self._first.followed(known, rng, never=_union(self._never, never))

        wrong = np.flatnonzero((sizes == 0) | self._wrong(first, ending))
        wrong = self._anew(first, wrong, ending, draw, rng)
        good = np.setdiff1d(np.arange(sizes.size), wrong)
        for name in names if wrong.size else ():  # those of another unit, or the start of the domain
            codes = first[name]
            codes[wrong] = codes[rng.choice(good, wrong.size)] if good.size else 0
        self._settle(first, ending)

    def _ending(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return which rows have a label after which there is none, shape (n,)."""
        ending = np.zeros(next(iter(rows.values())).size, dtype=bool)
        for name, codes in self._tables.ends.items():
            ending |= np.isin(rows[name], codes)
        return ending

    def _apart(
        self, some: np.ndarray, ending: np.ndarray, draw: _Draw, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Return columns of some rows: those that end among the labels of one column that do, others among the rest."""
        whose = rng.choice(len(self._going), ending.size, p=self._chances) if ending.any() else np.zeros(ending.size)
        parts = [(np.flatnonzero(ending & (whose == k)), never) for k, never in enumerate(self._going)]
        parts.append((np.flatnonzero(~ending), self._tables.ends))
        each = [(own, draw(some[own], never)) for own, never in parts if own.size]
        order = np.argsort(np.concatenate([own for own, _ in each]))
        return {name: np.concatenate([rows[name] for _, rows in each])[order] for name in each[0][1]}

    def _anew(
        self, rows: dict[str, np.ndarray], wrong: np.ndarray, ending: np.ndarray, draw: _Draw, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw columns of wrong rows anew, in place; return those that are still wrong."""
        for _ in range(_ROUNDS):
            if wrong.size:
                again = self._apart(wrong, ending[wrong], draw, rng)
                for name in rows.keys() - self._tables.constants:
                    rows[name][wrong] = again[name]
                wrong = wrong[self._wrong(again, ending[wrong])]
        return wrong

    def _wrong(self, rows: Mapping[str, np.ndarray], ending: np.ndarray) -> np.ndarray:
        """Return which first rows or steps cannot be, shape (n,): no record is read so."""
        of_steps = self._tables.place in rows
        lacking = _beyond(self._tables, rows) if of_steps else self._lacking(rows)
        return lacking | (self._ending(rows) != ending)

    def _settle(self, rows: dict[str, np.ndarray], ending: np.ndarray) -> None:
        """Give rows that no draw mended the first label that ends nothing, or the first that ends a unit; in place."""
        wrong = self._ending(rows) != ending
        for name, codes in self._tables.ends.items() if wrong.any() else ():
            free = next(code for code in range(len(codes) + 1) if code not in codes)
            rows[name][wrong & ~ending & np.isin(rows[name], codes)] = free
        for name, codes in list(self._tables.ends.items())[:1]:
            rows[name][wrong & ending] = codes[0]

    def _lacking(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return which rows lack a value that cannot be missing, shape (n,)."""
        lacking = np.zeros(next(iter(rows.values())).size, dtype=bool)
        for name, codes in self._never.items():
            lacking |= np.isin(rows[name], codes) | np.isnan(rows[name])
        return lacking

    def _following(
        self, last: Mapping[str, np.ndarray], sizes: np.ndarray, place: int, rng: np.random.Generator, *, settle: bool
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the rows after these, of units with so many rows, and which would be behind the bounds of the order.

        These are drawn anew to `settle` them.
        """
        tables, ending = self._tables, last[self._tables.ended] & (sizes == place)
        known = known_at(last, tables, sizes, np.full(sizes.size, place))
        known |= {own.line: last[own.line] for own in tables.histories.values()}
        known |= {before: last[before] for before in tables.before.values()}

        def draw(rows: np.ndarray, never: _Never) -> dict[str, np.ndarray]:
            some = {name: codes[rows] for name, codes in known.items()}
            return self._step(some, (sizes - place + 1)[rows], rng, never)

        steps = self._apart(np.arange(sizes.size), ending, draw, rng)
        wrong = self._wrong(steps, ending) if settle else self._ending(steps) != ending
        if wrong.any():
            self._anew(steps, np.flatnonzero(wrong), ending, draw, rng)
        rows = {name: last[name] if name == tables.weight else steps[name] for name in self._columns}
        self._settle(rows, ending)
        if tables.order is not None:
            rows[tables.order] = later_order(tables, steps)
        return rows, _beyond(tables, steps)

    def _step(
        self,
        known: Mapping[str, np.ndarray],
        left: np.ndarray,
        rng: np.random.Generator,
        never: _Never | None = None,
    ) -> dict[str, np.ndarray]:
        """Return steps given what is known before them, of units with so many rows left; numbers off their lines."""
        assert self._steps is not None
        steps, histories = dict(self._steps.followed(known, rng, never=never)), self._tables.histories
        if not any(np.isfinite(steps[own.offset]).any() for own in histories.values()):
            return steps
        own_offsets = {own.offset: steps[own.offset] for own in histories.values()}
        values = {
            name: _off_line(steps[name], known[own.line], steps[own.offset], left, rng)
            for name, own in histories.items()
        }
        return dict(self._steps.followed({**known, **own_offsets}, rng, values, never))

    def given(self, codes: Mapping[str, float]) -> LinkedTable:
        """Return the sampler given these constants.

        Raises:
            ConfigError: a column is not constant, or the release gives such units probability 0.
        """
        others = [name for name in codes if name not in self._tables.constants]
        if others:
            known = ", ".join(map(repr, self._tables.constants)) or "none"
            raise ConfigError(
                f"Expected given columns that are constant, got {others[0]!r}, which varies from row to row. Constant: "
                f"{known}."
            )
        sampler = copy.copy(self)
        sampler._units = self._units.given(codes)
        sampler.possible = sampler._units.possible
        return sampler


def _union(*sets: _Never) -> dict[str, np.ndarray]:
    """Return per column the codes of all sets."""
    names = dict.fromkeys(name for codes in sets for name in codes)
    return {name: np.concatenate([codes[name] for codes in sets if name in codes]) for name in names}


def _off_line(
    codes: np.ndarray, lines: np.ndarray, offset: np.ndarray, left: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return the codes of values at their offsets from lines; as drawn where one is missing, or none has an offset.

    A row without an offset has that of another row.
    """
    known = np.flatnonzero(np.isfinite(offset))
    if not known.size:
        return codes
    offset = np.where(np.isfinite(offset), offset, offset[known[rng.integers(known.size, size=offset.size)]])
    at = off_lines(offset, lines, left)
    return np.where(np.isnan(codes) | np.isnan(at), codes, at)


def _beyond(tables: LinkedTables, steps: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return which steps would end behind the bounds of the order, shape (n,)."""
    if tables.steps is None or tables.order is None or (plan := tables.steps.rule_plan) is None:
        return np.zeros(next(iter(steps.values())).size, dtype=bool)
    before, kind = tables.before[tables.order], numeric(plan.kinds, tables.order)
    start, gap = as_values(kind, steps[before]), as_values(numeric(plan.free, tables.order), steps[tables.order])
    lower, upper = kind.bounds
    return ~start.absent & ~gap.absent & (start.values + gap.values > upper + _ROUNDED * (upper - lower))


def later_order(tables: LinkedTables, steps: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the codes of the order of coded steps: its distance from the row before, put behind that."""
    plan = None if tables.steps is None else tables.steps.rule_plan
    assert plan is not None
    assert tables.order is not None
    codes = to_codes(numeric(plan.kinds, tables.order), numbers(plan.assembled(steps), tables.order))
    return np.where(np.isnan(steps[tables.before[tables.order]]), np.nan, codes)


def _weight(schema: Schema, settings: Mapping[str, Any]) -> Weight | None:
    """Return the weight of units, which steps do not have, by the settings; None without."""
    name = settings.get("weight")
    if name is None:
        return None
    if schema.unit is None or name not in schema.unit.constant:
        raise ReleaseError("Expected a constant column as the weight of units in the release.")
    return Weight(column=name)


def _part(
    tables: LinkedTables, name: str, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]
) -> TableSoftmax:
    """Return the sampler of one of the tables, whose class can be a constant alone."""
    own: Any = settings.get(name)
    known = isinstance(own, Mapping) and own.get("name") == TableSoftmax.name
    if not known or own.get("target") not in (None, *tables.known):
        raise ReleaseError(f"Expected settings of a chain of {name} in the release.")
    arrays = {key.removeprefix(f"{name}."): a for key, a in parameters.items() if key.startswith(f"{name}.")}
    return TableSoftmax(tables.units if name == "units" else plain_schema(tables.steps or tables.units), own, arrays)
