"""Whose a row is, and which records of a unit count: at most `max_rows`, by a rule that no order of rows changes.

A unit with more rows keeps those with the smallest hash of (unit, content, which of its equal rows). The unit is in it,
so that no content is kept more often than its share; equal rows are told apart by a number alone, and it does not
matter which of them is kept. What is kept of a unit depends on its own rows and on nothing else: a unit that is added
or removed changes at most `max_rows` records.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato._lazy import later
from sfumato.columns.canonical import canonical
from sfumato.columns.cells import is_text, joined, plain, read_text, without_tokens
from sfumato.columns.sets import CodedSets
from sfumato.columns.storage import has_text, text_of
from sfumato.io.chunks import Chunk, Column, Source, attempt
from sfumato.records.engine import Rows
from sfumato.schema.database import Branch
from sfumato.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = later("pandas")


NOBODY = -1
"""The number of a row without a unit."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of splitmix64


@final
class UnitNumbers:
    """Numbers of units, or of other keys, in the order in which they come; whatever type a table stores them in.

    Memory: the name of each.

    Args:
        missing: texts that stand for no unit.
        exact: whether names are compared letter by letter: see `Identifier`.
    """

    def __init__(self, missing: Sequence[str], *, exact: bool = False) -> None:
        self._missing, self._exact = missing, exact
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, cells: Column) -> np.ndarray:
        """Return the number of each cell's unit, −1 without one, int64 of shape (n,); new ones get the next numbers."""
        numbers = self._numbers
        return self._of_cells(cells, lambda names: [numbers.setdefault(name, len(numbers)) for name in names])

    def known(self, cells: Column) -> np.ndarray:
        """Return the number of each cell's unit, −1 without one or where it has not come before."""
        return self._of_cells(cells, lambda names: [self._numbers.get(name, NOBODY) for name in names])

    def missing(self, cells: Column) -> np.ndarray:
        """Return which cells name nobody, shape (n,)."""
        return self._of_cells(cells, lambda names: [0] * len(names)) == NOBODY

    def hashes(self) -> np.ndarray:
        """Return a hash of each unit's name, uint64, shape (units,)."""
        return np.fromiter(map(text_hash, self._numbers), np.uint64, len(self._numbers))

    def _of_cells(self, cells: Column, numbers: Callable[[list[str]], list[int]]) -> np.ndarray:
        coded = unit_names(joined(cells), self._missing, exact=self._exact).dictionary_encode()
        each = numbers(coded.dictionary.to_pylist())  # which holds no null: these have no index
        index = coded.indices.fill_null(len(each)).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.array([*each, NOBODY], dtype=np.int64)[index]


@final
class RowKeys:
    """The rows that tables below name: the row of each key, or of each key of a unit.

    Attributes:
        numbers: of the keys.

    Args:
        numbers: of the keys.
        keys: the number of each row's key, −1 without one, shape (n,).
        owners: the unit of each row, shape (n,).
        units: names of units.
    """

    def __init__(self, numbers: UnitNumbers, keys: np.ndarray, owners: np.ndarray, units: UnitNumbers) -> None:
        self.numbers, self._units = numbers, units
        rows = np.flatnonzero(keys >= 0)
        keys, owners = keys[rows], owners[rows]
        self._n_units = len(units)
        # of rows of one key, the first of the unit whose name has the least hash
        order = np.lexsort((rows, units.hashes()[owners], keys))
        first = order[np.flatnonzero(np.diff(keys[order], prepend=-1))]
        self._row = np.full(len(numbers), NOBODY)
        self._row[keys[first]] = rows[first]
        pairs = keys * self._n_units + owners
        self._pairs, first = np.unique(pairs, return_index=True)
        self._pair_rows = rows[first]

    def rows(self, chunk: Chunk, branch: Branch) -> np.ndarray:
        """Return the row above of each row of a chunk, −1 for none, shape (n,)."""
        key = self.numbers.known(chunk.columns[branch.by])
        if branch.unit is None or branch.unit == branch.by:
            return np.append(self._row, NOBODY)[key]
        unit = self._units.known(chunk.columns[branch.unit])
        pairs = np.where((key >= 0) & (unit >= 0), key * self._n_units + unit, NOBODY)
        if not self._pairs.size:
            return np.full(pairs.size, NOBODY)
        place = np.minimum(np.searchsorted(self._pairs, pairs), self._pairs.size - 1)
        return np.where(self._pairs[place] == pairs, self._pair_rows[place], NOBODY)


def text_hash(text: str) -> int:
    """Return a hash of a text, 64 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def unit_names(cells: pa.Array, missing: Sequence[str], *, exact: bool = False) -> pa.Array:
    """Return whom or what each cell names, as its canonical text; null where it names nobody.

    A number of 2^53 or more names nobody: once a float, it may stand for any of several whole numbers, whose rows would
    be taken for those of one unit.

    Privacy: none (a function of each cell).

    Args:
        cells: n cells of any type.
        missing: texts that stand for nobody.
        exact: whether names are compared letter by letter: see `Identifier`.
    """
    cells = plain(cells)
    if isinstance(cells, pa.DictionaryArray):
        return unit_names(cells.dictionary, missing, exact=exact).take(cells.indices)
    if types.is_nested(cells.type) or types.is_interval(cells.type):
        return pa.nulls(len(cells), pa.large_string())
    if not is_text(cells.type):
        coded = cells.dictionary_encode()
        return unit_names(_texts(coded.dictionary), missing, exact=exact).take(coded.indices)
    text = read_text(cells).cast(pa.large_string())
    return canonical(without_tokens(text, missing, exact=exact), exact=exact)


def _texts(values: pa.Array) -> pa.Array:
    """Return the text of values that are no text."""
    if has_text(values.type):
        return text_of(values)
    if types.is_duration(values.type):
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[values.type.unit]
        spans = (
            None if span is None else _span(span * 10**9 // per_second) for span in values.cast(pa.int64()).to_pylist()
        )
        return pa.array(spans, pa.string())
    return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())


def _span(nanoseconds: int) -> str:
    """Return a length of time as text."""
    seconds, part = divmod(nanoseconds, 10**9)
    days, seconds = divmod(seconds, 86_400)
    return f"{days} days {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{part:09}"


@final
class UnitRows:
    """The rows of every unit, counted in a pass; where some have too many, chosen in a second one.

    Memory: a name per unit, and 12 bytes per row of the units that have too many.

    Args:
        max_rows: the most records of a unit, at least 1.
        missing: texts that stand for no unit.
        exact: whether names are compared letter by letter.
    """

    def __init__(self, max_rows: int, missing: Sequence[str], *, exact: bool = False) -> None:
        self._max_rows = max_rows
        self._names = UnitNumbers(missing, exact=exact)
        self._counts = np.zeros(0, dtype=np.int64)
        self._crowded: list[pd.DataFrame] = []
        self._quota: pd.DataFrame | None = None

    @classmethod
    def of(cls, source: Source, schema: Schema, columns: Sequence[str], code: Callable[[Chunk], Rows]) -> UnitRows:
        """Read a source once or twice, and choose.

        Args:
            source: where the records lie.
            schema: its unit has a column, and the most records.
            columns: what `code` and the unit need.
            code: the records of a chunk, total.
        """
        unit = schema.unit
        assert unit is not None
        units = cls(unit.max_rows, (*schema.missing_in(source, unit.column), ""), exact=schema.is_exact(unit.column))
        message = f"Cannot read the unit column of {source.label}. Please report its type: a fit reads any cell."
        for chunk in source.chunks([unit.column]):
            attempt(lambda chunk=chunk: units.count(chunk.columns[unit.column]), message)
        if not units.all_fit:
            for chunk in source.chunks(columns):
                attempt(lambda chunk=chunk: units.collect(chunk.columns[unit.column], code(chunk)), message)
            attempt(units.choose, message)
        return units

    def count(self, cells: Column) -> None:
        """Take in the units of a chunk: the first pass."""
        units = self._names.numbers(cells)
        counts = np.bincount(units[units != NOBODY], minlength=len(self._names))
        counts[: self._counts.size] += self._counts
        self._counts = counts

    @property
    def all_fit(self) -> bool:
        """Whether no unit has too many rows: then there is nothing to choose."""
        return not (self._counts > self._max_rows).any()

    def collect(self, cells: Column, rows: Rows) -> None:
        """Take in the rows of a chunk, of the units that have too many: the second pass."""
        self._crowded.append(self._crowded_rows(self._names.numbers(cells), rows)[1])

    def choose(self) -> None:
        """Say how many of each unit's equal rows are kept."""
        rows = pd.concat(self._crowded, ignore_index=True)
        self._crowded = []
        same = ["unit", "content"]
        rows["copy"] = rows.groupby(same, sort=False).cumcount()
        owner = self._names.hashes()[rows["unit"].to_numpy()]
        rows["order"] = mixed(mixed(owner, rows["content"].to_numpy()), rows["copy"].to_numpy().astype(np.uint64))
        first = rows.sort_values(["unit", "order", "content"]).groupby("unit", sort=False).head(self._max_rows)
        self._quota = first.groupby(same, sort=False).size().rename("kept").reset_index()

    def keeper(self) -> Keeper:
        """Return the chooser of rows for one pass."""
        return Keeper(self, self._quota)

    def _crowded_rows(self, units: np.ndarray, rows: Rows) -> tuple[np.ndarray, pd.DataFrame]:
        """Return where the rows of units with too many are, and these: unit and hash of the content."""
        places = np.flatnonzero((units != NOBODY) & (self._counts[units] > self._max_rows))
        part = {name: column[places] for name, column in rows.items()}
        return places, pd.DataFrame(
            {"unit": units[places].astype(np.int32), "content": content_hashes(part, len(places))}
        )


@final
class Keeper:
    """Chooses the rows of one pass, chunk by chunk."""

    def __init__(self, units: UnitRows, quota: pd.DataFrame | None) -> None:
        self._units = units
        self._quota = quota
        self._used = np.zeros(0 if quota is None else len(quota), dtype=np.int64)

    def rows_of(self, cells: Column, rows: Rows) -> Rows:
        """Return the records of a chunk that count."""
        keep = self.keep(cells, rows)
        return {name: column[keep] for name, column in rows.items()}

    def keep(self, cells: Column, rows: Rows) -> np.ndarray:
        """Return which records to keep, shape (n,)."""
        units = self._units._names.numbers(cells)
        mask = units != NOBODY
        if self._quota is None:
            return mask
        places, crowded = self._units._crowded_rows(units, rows)
        same = ["unit", "content"]
        quota = self._quota.assign(place=np.arange(len(self._quota)))
        matches = crowded.merge(quota, on=same, how="left")  # in the order of the rows
        place = matches["place"].fillna(-1).to_numpy().astype(np.int64)
        copy = crowded.groupby(same, sort=False).cumcount().to_numpy()
        left = np.where(place >= 0, matches["kept"].fillna(0).to_numpy() - self._used[place], 0) if place.size else copy
        chosen = copy < left
        self._used += np.bincount(place[chosen], minlength=self._used.size)
        mask[places] = chosen
        return mask


def content_hashes(rows: Rows, n: int) -> np.ndarray:
    """Return a hash of each record's codes, uint64, shape (n,): equal for equal records."""
    hashes = np.zeros(n, dtype=np.uint64)
    for name in sorted(rows):
        hashes = mixed(hashes, np.full(n, text_hash(name), dtype=np.uint64))
        for part in _words(rows[name]):
            hashes = mixed(hashes, part)
    return hashes


def mixed(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a hash of pairs, uint64: the finaliser of splitmix64 (Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        word = (first * _GOLDEN + np.uint64(1)) ^ second.astype(np.uint64)
        word = (word ^ (word >> np.uint64(30))) * _MIX[0]
        word = (word ^ (word >> np.uint64(27))) * _MIX[1]
    return word ^ (word >> np.uint64(31))


def _words(column: Any) -> Iterator[np.ndarray]:  # noqa: ANN401 - arrays, and CodedSets
    """Yield the codes of a column as words, one of each record at a time."""
    if isinstance(column, CodedSets):
        items = mixed(column.codes.astype(np.uint64), np.zeros(column.codes.size, np.uint64))
        sums = np.zeros(len(column), dtype=np.uint64)
        np.add.at(sums, column.owners, items)
        yield sums
    elif column.dtype == object:
        yield np.array([0 if cell is None else text_hash(str(cell)) for cell in column], dtype=np.uint64)
    elif column.dtype.kind == "f":
        clean = np.where(np.isnan(column), np.nan, column + 0.0).astype(np.float64)  # one NaN, one zero
        yield from (word.view(np.uint64) for word in np.ascontiguousarray(_flat(clean).T))
    else:
        yield from (word.astype(np.uint64) for word in _flat(column).T)


def _flat(column: np.ndarray) -> np.ndarray:
    return column.reshape(len(column), math.prod(column.shape[1:]))
