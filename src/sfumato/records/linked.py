"""Linked rows: the rows of every unit in their order, as records of units and as records of steps.

A unit's rows follow each other by the column of order, a missing one last; rows of equal order by a hash of the unit
and the row's content, so that nothing but the unit's own rows decides, and never their place in the source. Without a
column of order they follow by that hash alone, equal rows told apart by a number. The first `max_rows` count. What is
constant is taken from the first row, or from the table of units, which also has those without rows.

A record is a unit. A unit that is added or removed changes one record of units, and one of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, final

import numpy as np

from sfumato._lazy import later
from sfumato.columns.kind import TabularKind
from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.lenses.chain import plain_schema, read_kinds
from sfumato.lenses.lens import Units
from sfumato.records.engine import Rows
from sfumato.records.long_tables import as_records
from sfumato.records.private import PrivateData
from sfumato.records.table_pairs import TablePair
from sfumato.records.unit_names import NOBODY, UnitNumbers
from sfumato.records.units import content_hashes, mixed
from sfumato.rules.cells import from_codes
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")

STEPS = ""
"""In records of steps, how many steps a unit has; no column has this name."""
_LAST = 2.0  # of a row without an order: behind all codes, which are at most 1
_UNITS_AT_ONCE, _STEPS_AT_ONCE = 1 << 15, 1 << 17
_GROWN = 2  # times that the rows which count may have grown before the others are dropped


@final
class LinkedData:
    """Records of units: their constants, number of rows and first row. `steps` are records of steps.

    The source is read once, when records are first asked for. Memory: per unit its name, and of each row that counts 8
    bytes a number and 4 a label; twice that while rows are put in order. Without a column of order all rows are held
    until the last is read.

    Args:
        source: where the rows lie.
        schema: what is public about them; its unit links rows.

    Raises:
        SchemaError: as `PrivateData`.
    """

    max_rows_per_unit = 1

    def __init__(self, source: Source, schema: Schema) -> None:
        self._rows = PrivateData(source, schema)
        self._source = as_records(source, schema)
        self._schema = schema
        self.tables = linked_tables(plain_schema(schema), schema.weight)
        self._sequences: Sequences | None = None

    @property
    def schema(self) -> Schema:
        """The public schema of units with their first row."""
        return self.tables.units

    @property
    def described(self) -> Schema:
        """The public schema, as it was declared."""
        return self._schema

    @property
    def source(self) -> Source:
        """The source; its metadata are public, its chunks are not."""
        return self._source

    @property
    def counts_entries(self) -> bool:
        """False: cells say how many units there are."""
        return False

    @property
    def steps(self) -> StepRecords:
        """Records of steps, one for each unit of two rows or more."""
        return StepRecords(self)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns, a unit a row."""
        return unit_records(self.tables, self.sequences())

    def sequences(self) -> Sequences:
        """Return the rows that count in their order; read once."""
        if self._sequences is None:
            # of coding and sorting nothing may be said but that it failed
            message = f"Cannot read the units of {self._source.label}. Please report its types: a fit reads any cell."
            sorting = _Sorting(plain_schema(self._schema), self._schema.missing_in(self._source))
            unit = self._schema.unit
            assert unit is not None
            names = list(dict.fromkeys([*read_kinds(self._schema), unit.column]))

            def take(chunk: Chunk, has_rows: bool) -> None:
                sorting.take(chunk.columns[unit.column], self._rows._code(chunk), has_rows=has_rows)

            for chunk, has_rows in _chunks(self._source.with_dictionaries(), names):
                attempt(lambda chunk=chunk, has_rows=has_rows: take(chunk, has_rows), message)
            self._sequences = attempt(sorting.sequences, message)
        return self._sequences

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._schema.released)})"


@final
class StepRecords:
    """Records of steps: of each unit of two rows or more, coded columns of all its steps side by side.

    Columns have shape (units, steps), of which the first ones of a unit count, as many as `STEPS` says. Units come in
    the order of their numbers of steps; nothing depends on it. Weighted units also have their weight at every step,
    which is no column of the schema.
    """

    max_rows_per_unit = 1

    def __init__(self, data: LinkedData) -> None:
        self._data, self._tables = data, data.tables
        assert data.tables.steps is not None
        self._joint = data.tables.steps

    @property
    def schema(self) -> Schema:
        """The public schema of a step, as it is modelled."""
        return plain_schema(self._joint)

    counts_entries = False

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns, a unit a row."""
        return step_records(self._tables, self._data.sequences())


def unit_records(tables: LinkedTables, sequences: Sequences) -> Iterator[Rows]:
    """Yield chunks of records of units."""
    for start in range(0, sequences.sizes.size, _UNITS_AT_ONCE):
        some = slice(start, start + _UNITS_AT_ONCE)
        first = sequences.starts[some]
        rows = {name: codes[first] for name, codes in sequences.codes.items()}
        if tables.count:
            rows[tables.count] = _codes(sequences.sizes[some], tables.fewest, tables.max_rows)
        yield rows if tables.fewest else _without(tables, rows, sequences.sizes[some] == 0)


def _without(tables: LinkedTables, rows: Rows, empty: np.ndarray) -> Rows:
    """Return units of which some have no first row: it is missing."""
    kinds = tables.units.of_kind(TabularKind)
    gone = {name: absent_code(kinds[name]) for name in tables.before}
    return {name: np.where(empty, gone[name], codes) if name in gone else codes for name, codes in rows.items()}


def step_records(tables: LinkedTables, sequences: Sequences) -> Iterator[Rows]:
    """Yield chunks of records of steps."""
    units = np.flatnonzero(sequences.sizes > 1)
    units = units[np.argsort(-sequences.sizes[units], kind="stable")]  # of like length together: little is empty
    start = 0
    while start < units.size:
        width = int(sequences.sizes[units[start]]) - 1
        some = units[start : start + max(1, _STEPS_AT_ONCE // width)]
        yield _steps_of(tables, sequences.sizes[some], _places(sequences, some, width), sequences.codes)
        start += some.size


def _steps_of(tables: LinkedTables, sizes: np.ndarray, places: np.ndarray, codes: Mapping[str, np.ndarray]) -> Rows:
    n = places.shape
    rows = {name: codes[name][places[:, :1]].repeat(n[1] - 1, axis=1) for name in tables.constants}
    rows[tables.count] = np.repeat(_codes(sizes, 2, tables.max_rows)[:, None], n[1] - 1, axis=1)
    numbers = np.minimum(np.arange(2, n[1] + 1), tables.max_rows)
    rows[tables.place] = np.tile(_codes(numbers, 2, tables.max_rows), (n[0], 1))
    for name, before in tables.before.items():
        rows[before] = codes[name][places[:, :-1]]
        rows[name] = codes[name][places[:, 1:]]
    return {**with_gaps(tables, rows), STEPS: sizes - 1}


def with_gaps(tables: LinkedTables, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return coded steps with the order as its distance from the row before."""
    plan = None if tables.steps is None else tables.steps.rule_plan
    if plan is None or tables.order is None:
        return rows
    pair = (tables.before[tables.order], tables.order)
    flat = {name: from_codes(plan.kinds[name], rows[name].reshape(-1)) for name in pair}
    gaps = plan.gap_codes(tables.order, flat).reshape(rows[tables.order].shape)
    if plan.gap_kind(tables.order).nullable:
        # a distance from nowhere is none; such rows are last, and so is what follows them
        gaps = np.where(np.isnan(rows[pair[0]]), np.nan, gaps)
    return {**rows, tables.order: gaps}


def _codes(numbers: np.ndarray, lower: int, upper: int) -> np.ndarray:
    """Return the codes of whole numbers between two bounds."""
    return (np.clip(numbers, lower, upper) - lower) / max(upper - lower, 1)


def absent_code(kind: TabularKind) -> float:
    """Return the code of what is missing in a column that may be missing."""
    return np.nan if kind.is_numeric else kind.n_levels - 1


def _chunks(source: Source, names: list[str]) -> Iterator[tuple[Chunk, bool]]:
    """Yield chunks of rows, and of two tables those of units without rows and False."""
    if isinstance(source, TablePair):
        return source.joined(tuple(names))
    return ((chunk, True) for chunk in source.chunks(names))


@final
class Sequences:
    """The rows that count, units one after the other and each unit's rows in order.

    Attributes:
        sizes: number of rows of each unit, shape (units,).
        starts: where each begins, shape (units,).
        codes: coded columns of all rows; of a unit without any, one whose constants alone say something.
    """

    def __init__(self, sizes: np.ndarray, codes: Mapping[str, np.ndarray]) -> None:
        self.sizes, self.codes = sizes, codes
        lengths = np.maximum(sizes, 1)
        self.starts = np.cumsum(lengths) - lengths

    @classmethod
    def of(cls, units: Units) -> Sequences:
        """Return units as a sampler draws them."""
        sizes = np.bincount(units.owners, ~units.without, int(units.owners.max(initial=-1)) + 1).astype(np.int64)
        return cls(sizes, units.rows)


def _places(sequences: Sequences, units: np.ndarray, steps: int) -> np.ndarray:
    """Return where the rows of units lie, shape (units, steps + 1); beyond a unit's last row, that row again."""
    within = np.minimum(np.arange(steps + 1), sequences.sizes[units, None] - 1)
    return sequences.starts[units, None] + within


class _Sorting:
    """Takes rows in whatever order, and keeps the first of every unit."""

    def __init__(self, schema: Schema, missing: tuple[str, ...]) -> None:
        unit = schema.unit
        assert unit is not None
        self._order, self._max_rows = unit.order, unit.max_rows
        self._kinds: dict[str, TabularKind] = schema.of_kind(TabularKind)
        self._numbers = UnitNumbers((*missing, ""))
        self._units: list[np.ndarray] = []
        self._codes: list[dict[str, np.ndarray]] = []
        self._n_rows, self._counted = 0, 1 << 20
        self._without: list[np.ndarray] = []

    def take(self, cells: object, rows: Rows, *, has_rows: bool = True) -> None:
        """Take in the rows of a chunk, but for those of no unit; not `has_rows`: a row for each unit without any."""
        units = self._numbers.numbers(cells)  # type: ignore[arg-type]
        mine = units != NOBODY
        if not has_rows:
            self._without.append(units[mine])
        self._units.append(units[mine])
        self._codes.append({name: np.asarray(codes)[mine] for name, codes in rows.items()})
        self._n_rows += int(mine.sum())
        if self._order is not None and self._n_rows > _GROWN * self._counted:
            self._sort()
            self._counted = max(self._counted, self._n_rows)

    def sequences(self) -> Sequences:
        """Return the rows that count."""
        self._sort()
        units = self._units[0]
        sizes = np.bincount(units, minlength=len(self._numbers))
        for without in self._without:
            sizes[without] = 0
        return Sequences(sizes, self._codes[0])

    def _sort(self) -> None:
        """Put all rows in their order, and drop those that do not count."""
        units = np.concatenate([np.zeros(0, dtype=np.int64), *self._units])
        self._units = []
        # a column at a time, so that no more than one is there twice
        codes = {
            name: np.concatenate([part.pop(name) for part in self._codes] or [np.zeros(0)]) for name in self._kinds
        }
        self._codes = []
        place = self._order_of(units, codes)
        units = units[place]
        starts = np.flatnonzero(np.diff(units, prepend=-1))
        rank = np.arange(units.size) - np.repeat(starts, np.diff(starts, append=units.size))
        counts = rank < self._max_rows
        place = place[counts]
        for name in codes:
            codes[name] = codes[name][place]
        self._units, self._codes = [units[counts]], [codes]
        self._n_rows = int(counts.sum())

    def _order_of(self, units: np.ndarray, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the places of all rows in their order, unit after unit, shape (n,)."""
        keys = self._keys(units, codes)
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

    def _keys(self, units: np.ndarray, codes: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return by what rows of one unit are put in order, the last first."""
        content = content_hashes(codes, units.size)
        owners = self._numbers.hashes()[units]
        if self._order is None:
            copies = pd.DataFrame({"unit": units, "content": content}).groupby(["unit", "content"]).cumcount()
            return [mixed(mixed(owners, content), copies.to_numpy().astype(np.uint64))]
        order = codes[self._order]
        return [mixed(owners, content), np.where(np.isnan(order), _LAST, order)]
