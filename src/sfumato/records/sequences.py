"""Rows of units in their order: the rows that count, and records of units and of steps made of them.

A unit's rows follow each other by the column of order, a missing one last; of equal order those last that end a unit,
the others by a hash of the unit and the row's content, so that nothing but the unit's own rows decides, and never their
place in the source. Without a column of order they follow by that hash alone, equal rows told apart by a number. The
first `max_rows` count, and none after one that ends a unit.

A record is an owner: the unit itself, or in tables further below the person of several units, who has a record with all
of them. An owner that is added or removed changes one record of units, and one of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, final

import numpy as np

from sfumato._lazy import later
from sfumato.columns.kind import TabularKind
from sfumato.lenses.lens import Units
from sfumato.lenses.weights import WEIGHT_BITS as UNIT_WEIGHT_BITS
from sfumato.lenses.weights import whole_weights
from sfumato.records.engine import Rows
from sfumato.records.histories import history, lines_ahead, offsets
from sfumato.records.units import content_hashes, mixed
from sfumato.rules.cells import from_codes
from sfumato.schema.linked import LinkedTables

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


STEPS = ""
"""In records of several rows, how many of these count; no column has this name."""
_LAST = 2.0  # of a row without an order: behind all codes, which are at most 1
_UNITS_AT_ONCE, _STEPS_AT_ONCE = 1 << 15, 1 << 17
_GROWN = 2  # times that the rows which count may have grown before the others are dropped
_MARGIN = 2.0**-30  # more than the rounding of a Frobenius norm of up to a million products
UNIT_BITS = 10
"""Of what each row of a unit counts, where rows share one bound."""
FINER_BITS = 6
"""Of a weighted step, beyond those."""


@final
class Sequences:
    """The rows that count, units one after the other and each unit's rows in order.

    Attributes:
        sizes: number of rows of each unit, shape (units,).
        starts: where each begins, shape (units,).
        codes: coded columns of all rows; those of constants, where a table of rows has them, count in the first row.
        constants: coded columns of units.
        owners: whose each unit is, from 0 and in order, shape (units,); None where each is its own.
    """

    def __init__(
        self,
        sizes: np.ndarray,
        starts: np.ndarray,
        codes: Mapping[str, np.ndarray],
        constants: Mapping[str, np.ndarray],
        owners: np.ndarray | None = None,
    ) -> None:
        self.sizes, self.starts, self.codes, self.constants, self.owners = sizes, starts, codes, constants, owners
        self._histories: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def history(self, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return codes of a number: the means and the changes of units, shape (units,), and lines ahead of rows."""
        if name not in self._histories:
            units = np.repeat(np.arange(self.sizes.size), self.sizes)
            numbers = np.arange(units.size) - (np.cumsum(self.sizes) - self.sizes)[units] + 1
            at = self.starts[units] + numbers - 1
            codes = self.codes[name]
            ahead = np.full(codes.size, np.nan)
            ahead[at] = lines_ahead(codes[at], units, numbers, self.sizes)
            self._histories[name] = (*history(codes[at], units, numbers, self.sizes.size), ahead)
        return self._histories[name]

    @classmethod
    def joined(cls, sizes: np.ndarray, codes: Mapping[str, np.ndarray], constants: Collection[str]) -> Self:
        """Return units whose constants are columns of their rows; one without rows has a row that says these alone."""
        lengths = np.maximum(sizes, 1)
        starts = np.cumsum(lengths) - lengths
        return cls(sizes, starts, codes, {name: codes[name][starts] for name in constants})

    @classmethod
    def of(cls, units: Units, constants: Collection[str]) -> Self:
        """Return units as a sampler draws them."""
        sizes = np.bincount(units.owners, ~units.without, int(units.owners.max(initial=-1)) + 1).astype(np.int64)
        return cls.joined(sizes, units.rows, constants)


def unit_records(tables: LinkedTables, sequences: Sequences) -> Iterator[Rows]:
    """Yield chunks of records of units."""
    if sequences.owners is not None:
        yield from _of_owners(sequences.owners, lambda units: _units_at(tables, sequences, units))
        return
    for start in range(0, sequences.sizes.size, _UNITS_AT_ONCE):
        yield _units_at(tables, sequences, np.arange(start, min(start + _UNITS_AT_ONCE, sequences.sizes.size)))


def step_records(tables: LinkedTables, sequences: Sequences) -> Iterator[Rows]:
    """Yield chunks of records of steps."""
    steps = np.maximum(sequences.sizes - 1, 0)
    first = np.cumsum(steps) - steps

    def at(places: np.ndarray) -> Rows:
        units = np.searchsorted(first, places, side="right") - 1
        return steps_at(tables, sequences, units, places - first[units] + 2)

    owners = np.arange(steps.size) if sequences.owners is None else sequences.owners
    yield from _of_owners(np.repeat(owners, steps), at)


def _of_owners(owners: np.ndarray, at: Callable[[np.ndarray], Rows]) -> Iterator[Rows]:
    """Yield records of owners: columns of shape (owners, n), of which the first ones count, as many as `STEPS` says.

    Args:
        owners: of what records are made of, from 0 and in order.
        at: columns of some of these, by their places.
    """
    counts = np.bincount(owners)
    first = np.cumsum(counts) - counts
    # of like number together, so that little is empty
    places = np.flatnonzero(counts)
    places = places[np.argsort(-counts[places], kind="stable")]
    start = 0
    while start < places.size:
        width = int(counts[places[start]])
        some = places[start : start + max(1, _STEPS_AT_ONCE // width)]
        within = first[some, None] + np.minimum(np.arange(width), counts[some, None] - 1)
        rows = at(within.reshape(-1))
        yield {**{name: codes.reshape(within.shape) for name, codes in rows.items()}, STEPS: counts[some]}
        start += some.size


def _units_at(tables: LinkedTables, sequences: Sequences, units: np.ndarray) -> Rows:
    """Return units with their first rows, which are missing of one without."""
    rows = {name: codes[units] for name, codes in sequences.constants.items()}
    empty, kinds = sequences.sizes[units] == 0, tables.units.of_kind(TabularKind)
    for name in tables.before:
        codes = sequences.codes[name]
        first = codes[np.minimum(sequences.starts[units], codes.size - 1)] if codes.size else np.zeros(units.size)
        rows[name] = np.where(empty, absent_code(kinds[name]), first) if empty.any() else first
    if tables.count:
        rows[tables.count] = _codes(sequences.sizes[units], tables.fewest, tables.max_rows)
    if tables.ended:
        rows[tables.ended] = _ended(tables, sequences, units)
    for name, own in tables.histories.items():
        mean, change, _ = sequences.history(name)
        rows |= {own.level: mean[units], own.trend: change[units]}
    return rows


def steps_at(tables: LinkedTables, sequences: Sequences, units: np.ndarray, numbers: np.ndarray) -> Rows:
    """Return the steps of units to the rows of these numbers, 2 for the second."""
    constants = {name: codes[units] for name, codes in sequences.constants.items()}
    constants |= {tables.ended: _ended(tables, sequences, units)} if tables.ended else {}
    rows = {**constants, **known_at(constants, tables, sequences.sizes[units], numbers)}
    at, left = sequences.starts[units] + numbers - 1, sequences.sizes[units] - numbers + 1
    for name, own in tables.histories.items():
        lines = sequences.history(name)[2][at]
        rows |= {own.line: lines, own.offset: offsets(sequences.codes[name][at], lines, left)}
    for name, before in tables.before.items():
        rows[before] = sequences.codes[name][at - 1]
        rows[name] = sequences.codes[name][at]
    for name, kind in tables.pairs.items():
        twice = np.where(numbers > 2, sequences.codes[name][at - 2], kind.n)
        rows[tables.before[name]] = kind.codes(sequences.codes[name][at - 1], twice)
    plan = None if tables.steps is None else tables.steps.rule_plan
    if plan is None or tables.order is None:
        return rows
    # the order is its distance from the row before
    pair = (tables.before[tables.order], tables.order)
    gaps = plan.gap_codes(tables.order, {name: from_codes(plan.kinds[name], rows[name]) for name in pair})
    if plan.gap_kind(tables.order).nullable:
        # a distance from nowhere is none; such rows are last, and so is what follows them
        gaps = np.where(np.isnan(rows[pair[0]]), np.nan, gaps)
    return {**rows, tables.order: gaps}


def _ended(tables: LinkedTables, sequences: Sequences, units: np.ndarray) -> np.ndarray:
    """Return whether a label ended units, shape (units,), int64."""
    ended = np.zeros(units.size, dtype=bool)
    for name, ends in tables.ends.items() if sequences.sizes.any() else ():
        codes, last = sequences.codes[name], sequences.starts[units] + sequences.sizes[units] - 1
        ended |= np.isin(codes[np.clip(last, 0, codes.size - 1)], ends)
    return (ended & (sequences.sizes[units] > 0)).astype(np.int64)


def known_at(units: Rows, tables: LinkedTables, sizes: np.ndarray, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Return what is known of steps to rows of these numbers, by their units and how many rows these have."""
    rows = {name: units[name] for name in tables.known} | {tables.count: _codes(sizes, 2, tables.max_rows)}
    rows[tables.place] = _codes(numbers, 2, tables.max_rows)
    if not tables.end:
        return rows
    ended = np.asarray(units[tables.ended]).astype(np.int64)
    return {**rows, tables.end: np.where(numbers == sizes, 2 + ended, ended * (numbers == sizes - 1))}


def _codes(numbers: np.ndarray, lower: int, upper: int) -> np.ndarray:
    """Return the codes of whole numbers between two bounds."""
    return (np.clip(numbers, lower, upper) - lower) / max(upper - lower, 1)


def absent_code(kind: TabularKind) -> float:
    """Return the code of what is missing in a column that may be missing."""
    return np.nan if kind.is_numeric else kind.n_levels - 1


@final
class RowOrder:
    """Takes rows in whatever order, and keeps those of every unit that count.

    Args:
        names: the coded columns.
        order: the one by which rows follow each other; None without.
        max_rows: the most rows of a unit.
        hashes: of all units, uint64, by their numbers.
        ends: per column, the codes after which a unit has no row.
        keys: hashes of the rows' own keys, uint64, by their numbers; None where rows have none.
    """

    def __init__(
        self,
        names: Iterable[str],
        order: str | None,
        max_rows: int,
        hashes: Callable[[], np.ndarray],
        ends: Mapping[str, Sequence[int]] | None = None,
        keys: Callable[[], np.ndarray] | None = None,
    ) -> None:
        self._names, self._order, self._max_rows, self._hashes = tuple(names), order, max_rows, hashes
        self._ends, self._key_hashes = dict(ends or {}), keys
        self._units: list[np.ndarray] = []
        self._keys: list[np.ndarray] = []
        self._codes: list[dict[str, np.ndarray]] = []
        self._n_rows, self._counted = 0, 1 << 20

    def take(self, units: np.ndarray, rows: Rows, keys: np.ndarray | None = None) -> None:
        """Take in rows of these units, −1 for nobody, and with these numbers of their own keys, −1 for none."""
        mine = np.flatnonzero(units >= 0)
        self._units.append(units[mine])
        self._codes.append({name: np.asarray(codes)[mine] for name, codes in rows.items()})
        self._keys.append(np.zeros(0, dtype=np.int64) if keys is None else keys[mine])
        self._n_rows += mine.size
        if self._order is not None and self._n_rows > _GROWN * self._counted:
            self._sort()
            self._counted = max(self._counted, self._n_rows)

    def rows(self) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
        """Return the unit of each row that counts, the coded rows, and the numbers of their keys."""
        self._sort()
        return self._units[0], self._codes[0], self._keys[0]

    def _sort(self) -> None:
        """Put all rows in their order, and drop those that do not count."""
        units = np.concatenate([np.zeros(0, dtype=np.int64), *self._units])
        own = np.concatenate([np.zeros(0, dtype=np.int64), *self._keys])
        # a column at a time, so that no more than one is there twice
        codes = {
            name: np.concatenate([part.pop(name) for part in self._codes] or [np.zeros(0)]) for name in self._names
        }
        self._units, self._keys, self._codes = [], [], []
        place = self._order_of(units, codes, own)
        units = units[place]
        starts = np.flatnonzero(np.diff(units, prepend=-1))  # rows of a unit lie together
        rank = np.arange(units.size) - np.repeat(starts, np.diff(starts, append=units.size))
        counts = rank < np.minimum(self._max_rows, self._ended(units, rank, codes, place))
        place = place[counts]
        for name in codes:
            codes[name] = codes[name][place]
        self._units, self._codes, self._keys = [units[counts]], [codes], [own[place] if own.size else own]
        self._n_rows = int(counts.sum())

    def _ended(
        self, units: np.ndarray, rank: np.ndarray, codes: Mapping[str, np.ndarray], place: np.ndarray
    ) -> np.ndarray | float:
        """Return of every row, in order, after how many its unit ends."""
        if not self._ends or not units.size:
            return np.inf
        last = self._ending(codes)[place]
        starts = np.flatnonzero(rank == 0)
        first = np.minimum.reduceat(np.where(last, rank + 1, units.size), starts)
        return np.repeat(first, np.diff(starts, append=units.size))

    def _ending(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return which rows have a label after which there is none, shape (n,)."""
        return np.logical_or.reduce([np.isin(codes[name], ends) for name, ends in self._ends.items()])

    def _order_of(self, units: np.ndarray, codes: Mapping[str, np.ndarray], own: np.ndarray) -> np.ndarray:
        """Return the places of all rows in their order, unit after unit, shape (n,)."""
        keys = self._keys_of(units, codes, own)
        place = np.lexsort((*keys, units))
        same = np.ones(max(units.size - 1, 0), dtype=bool)
        for key in (units, *keys):
            same &= np.diff(key[place]) == 0
        alike = np.flatnonzero(same)
        # two contents of one hash are still told apart, so that no place in the source decides
        columns = [np.nan_to_num(codes[name], nan=-1.0) for name in sorted(codes)] if alike.size else []
        if any((column[place[alike]] != column[place[alike + 1]]).any() for column in columns):
            place = np.lexsort((*columns, *keys, units))
        return place

    def _keys_of(self, units: np.ndarray, codes: Mapping[str, np.ndarray], own: np.ndarray) -> list[np.ndarray]:
        """Return by what rows of one unit are put in order, the last first."""
        content = content_hashes(codes, units.size)
        if self._key_hashes is not None and own.size:
            content = mixed(content, np.append(self._key_hashes(), np.uint64(0))[own])
        owners = self._hashes()[units]
        if self._order is None:
            copies = pd.DataFrame({"unit": units, "content": content}).groupby(["unit", "content"]).cumcount()
            return [mixed(mixed(owners, content), copies.to_numpy().astype(np.uint64))]
        order = codes[self._order]
        ties = [mixed(owners, content)] + ([self._ending(codes)] if self._ends else [])
        return [*ties, np.where(np.isnan(order), _LAST, order)]


def clipped(vectors: np.ndarray, owners: np.ndarray, weights: np.ndarray, most: float) -> np.ndarray:
    """Return u of units in 2^-10, whole numbers in float64, shape (units,): ‖Σ u·yyᵀ‖ ≤ `most`.

    Args:
        vectors: of their steps, whole numbers y, shape (n, d), one unit's after the other's.
        owners: unit of each step, from 0, shape (n,).
        weights: what steps of each unit count at most, shape (units,).
        most: 2^10 times the largest norm of Σ yyᵀ that counts whole.
    """
    squares = np.zeros(weights.size)
    for lag in range(int(np.bincount(owners).max(initial=0))):
        pairs = np.flatnonzero(owners[lag:] == owners[: owners.size - lag])
        # whole numbers below 2^53: exact in any order; sums of their squares are taken in that of the steps
        products = np.einsum("ij,ij->i", vectors[pairs], vectors[pairs + lag])
        np.add.at(squares, owners[pairs], (1.0 if lag == 0 else 2.0) * products**2)
    norm = np.sqrt(squares) * (1 + _MARGIN)
    return np.minimum(weights, np.floor(most / np.maximum(norm, 1.0)))


def as_one(steps: np.ndarray) -> np.ndarray:
    """Return what each step of units with so many steps counts, in 2^-10, int64: all of a unit as one together."""
    return (1 << UNIT_BITS) // np.maximum(steps, 1)


def flattened(rows: Rows) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return the steps of units one after the other, the unit of each, and how many each unit has."""
    steps = rows[STEPS]
    names = [name for name in rows if name != STEPS]
    width = rows[names[0]].shape[1]
    mine = np.arange(width) < steps[:, None]
    return {name: rows[name][mine] for name in names}, np.repeat(np.arange(steps.size), steps), steps


def weighted_steps(shared: np.ndarray, flat: Rows, column: str) -> np.ndarray:
    """Return the weights of steps times their unit's weight ÷ the bound, if it has one, in 2^-16, int64, shape (n,).

    v = ⌊(s·ω + 2^13)/2^14⌋ of s in 2^-10 and ω ≤ 2^20 in 2^-20, so v ≤ 2^6·s: no more than without weights.
    """
    if not column:
        return shared << FINER_BITS
    product = shared * whole_weights(flat, column)
    coarser = UNIT_WEIGHT_BITS - FINER_BITS
    return (product + (1 << (coarser - 1))) >> coarser
