"""Two tables with a key as one source: rows joined to their units, and the units that have no row.

Every key is one record, with all that either table holds of it, and what becomes of it follows from these cells alone:

    a unit without a key           left out
    a key that units have twice    one unit: the row of the smaller hash of key and content
    a row without a key            left out
    a row whose key no unit has    left out
    a unit without rows            a unit of 0 rows

Keys are compared as text, `5` for the number 5 however it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import joined, values_of
from sfumato.columns.identifiers import Identifier
from sfumato.columns.kind import ColumnKind, TabularKind
from sfumato.errors import DataError, SchemaError
from sfumato.io.chunks import Chunk, Source, guarded
from sfumato.io.common_types import of_one_type
from sfumato.io.csv_form import CsvForm
from sfumato.lenses.chain import read_kinds
from sfumato.records.unit_names import NOBODY, UnitNumbers
from sfumato.records.units import content_hashes, mixed
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Tables


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TablePair(Source):
    """The rows of one table, each with the columns of its unit, which another table holds.

    Memory: the table of units; of that of rows, a chunk.

    Attributes:
        units: the table of units, one row each.
        rows: the table of their rows.
        tables: what both are called.
        key: the column of `units` that names a unit.
        rows_key: the column of `rows` that says whose a row is.
        kinds: the released columns of `units`.
        missing: texts that stand for no key.
    """

    units: Source
    rows: Source
    tables: Tables
    key: str
    rows_key: str
    kinds: Mapping[str, ColumnKind]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, units: Source, rows: Source, schema: Schema) -> TablePair:
        """Put two tables together, as a schema says.

        Raises:
            DataError: the table of rows has no column of the key.
            SchemaError: no cell of that column can name a unit.
        """
        unit, tables = schema.unit, schema.two_tables
        assert unit is not None
        assert tables is not None
        rows_key = tables.by or unit.column
        own, kinds = {unit.column, *unit.constant}, read_kinds(schema)
        varying = {name: schema.columns[name] for name in schema.released if name not in own}
        # lines of JSON have the columns that are asked for
        units = units.under({unit.column: Identifier(), **{name: kinds[name] for name in unit.constant}})
        rows = rows.under({rows_key: Identifier(), **varying})
        if rows_key not in rows.storage:
            raise DataError(
                f"Expected {rows.label}, the table {tables.rows!r}, to have the column {rows_key!r}, which says "
                "whose a row is. Name another one as `by`."
            )
        if pa.types.is_nested(values_of(rows.storage[rows_key])):
            raise SchemaError(
                f"Expected the key {rows_key!r} of {rows.label} to hold names or numbers, got cells of type "
                f"{rows.storage[rows_key]}."
            )
        of_units = {name: kind for name, kind in units.storage.items() if name not in varying}
        of_rows = {name: kind for name, kind in rows.storage.items() if name not in {*of_units, *own, rows_key}}
        return cls(
            label=f"{units.label} and {rows.label}",
            container=units.container,
            storage=of_units | of_rows,
            dtypes={name: text for side in (rows, units) for name, text in side.dtypes.items()},
            chunk_rows=min(units.chunk_rows, rows.chunk_rows),
            missing_as_text=units.missing_as_text or rows.missing_as_text,
            units=units,
            rows=rows,
            tables=tables,
            key=unit.column,
            rows_key=rows_key,
            kinds={name: kinds[name] for name in unit.constant},
            missing=(*schema.missing_in(units if units.missing_as_text else rows), ""),
        )

    def read_as(self, form: CsvForm) -> TablePair:
        """Return the pair of tables of CSV text in a declared form."""
        return replace(self, units=self.units.read_as(form), rows=self.rows.read_as(form))

    def skipped(self) -> Iterator[str]:
        """Yield the records of either table that cannot be read. Not private."""
        for name, table in zip(self.tables.names, (self.units, self.rows), strict=True):
            yield from (f"{name}, {text}" for text in table.skipped())

    def shortened(self) -> Iterator[str]:
        """Yield the records of either table that are read without their last cells. Not private."""
        for name, table in zip(self.tables.names, (self.units, self.rows), strict=True):
            yield from (f"{name}, {text}" for text in table.shortened())

    def size(self) -> int:
        """Bytes of both tables."""
        return self.units.size() + self.rows.size()

    @property
    def in_files(self) -> bool:
        """Whether other processes can read both."""
        return self.units.in_files and self.rows.in_files

    def with_dictionaries(self) -> TablePair:
        """Return the pair of which the text of rows may come dictionary-encoded."""
        return replace(self, rows=self.rows.with_dictionaries())

    def parts(self, names: Sequence[str]) -> list[tuple[Source, list[str]]]:
        """Return both tables, and the columns of these that each has."""
        mine = [name for name in names if self._of_units(name)]
        return [(self.units, mine), (self.rows, [name for name in names if name not in mine])]

    def joined(self, columns: tuple[str, ...]) -> Iterator[tuple[Chunk, bool]]:
        """Yield chunks of rows with the columns of their units; last, units without rows, and False.

        The cells that a unit without rows has not are null.

        Raises:
            DataError: a table is damaged, or changed while it was read.
        """
        message = f"Cannot read {self.label}: damaged, or changed while it was read."
        return guarded(self._joined(columns), message)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        return (chunk for chunk, has_rows in self._joined(columns) if has_rows)

    def _of_units(self, name: str) -> bool:
        return name in self.units.storage and (name == self.key or name in self.kinds or name not in self.rows.storage)

    def _joined(self, columns: tuple[str, ...]) -> Iterator[tuple[Chunk, bool]]:
        places = UnitNumbers(self.missing)
        (_, mine), (_, others) = self.parts(columns)
        table = self._one_each(places, mine)
        has_rows = np.zeros(len(places), dtype=bool)
        for chunk in self.rows.chunks([self.rows_key, *others]):
            place = places.known(chunk.columns[self.rows_key])
            rows = np.flatnonzero(place != NOBODY)
            if not rows.size:
                continue
            has_rows[place[rows]] = True
            units = table.take(pa.array(place[rows]))
            cells = {name: units.column(name) for name in mine}
            cells |= {name: _taken(chunk.columns[name], rows) for name in others}
            yield Chunk(columns={name: cells[name] for name in columns}, n_rows=int(rows.size)), True
        without = np.flatnonzero(~has_rows)
        for start in range(0, without.size, self.chunk_rows):
            some = without[start : start + self.chunk_rows]
            units = table.take(pa.array(some))
            cells = {name: units.column(name) for name in mine}
            cells |= {name: pa.chunked_array([pa.nulls(some.size, self.storage[name])]) for name in others}
            yield Chunk(columns={name: cells[name] for name in columns}, n_rows=int(some.size)), False

    def _one_each(self, places: UnitNumbers, names: list[str]) -> pa.Table:
        """Return one row of each unit, in the order of the places that their keys are given."""
        parts, numbers = [], []
        wanted = list(dict.fromkeys([self.key, *self.kinds, *names]))
        for chunk in self.units.chunks(wanted):
            place = places.numbers(chunk.columns[self.key])
            rows = np.flatnonzero(place != NOBODY)
            parts.append({name: _roomy(_taken(chunk.columns[name], rows)) for name in wanted})
            numbers.append(place[rows])
        if not parts:
            return pa.table({name: pa.array([], self.units.storage[name]) for name in wanted})
        # a column at a time, so that no more than one is there twice
        table = pa.table({name: self._whole(name, [part.pop(name) for part in parts]) for name in wanted})
        owners = np.concatenate(numbers)
        return table.take(pa.array(self._chosen(table, owners, places))).select(wanted)

    def _whole(self, name: str, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        """Return the parts of a column as one array: of different types, as the values that each reads as by itself."""
        arrays, kind = [joined(part) for part in parts], self.kinds.get(name)
        if len({array.type for array in arrays}) > 1 and isinstance(kind, TabularKind):
            codes = (kind.code(array, missing=self.missing[:-1]) for array in arrays)
            arrays = [kind.decode(part, kind.sample_type) for part in codes]
        return pa.concat_arrays(of_one_type(arrays))

    def _chosen(self, table: pa.Table, owners: np.ndarray, places: UnitNumbers) -> np.ndarray:
        """Return the row of each unit, shape (units,): of several, by content, never by where they lie."""
        rows = np.zeros(len(places), dtype=np.int64)
        rows[owners] = np.arange(owners.size)
        several = np.flatnonzero(np.bincount(owners, minlength=len(places))[owners] > 1)
        if not several.size:
            return rows
        some = table.take(pa.array(several))
        codes = {name: kind.code(some.column(name), missing=self.missing[:-1]) for name, kind in self.kinds.items()}
        whose = owners[several]
        order = mixed(places.hashes()[whose], content_hashes(codes, whose.size))
        columns = [np.nan_to_num(codes[name], nan=-1.0) for name in sorted(codes)]
        sorted_rows = np.lexsort((*columns, order, whose))
        first = sorted_rows[np.flatnonzero(np.diff(whose[sorted_rows], prepend=-1))]
        rows[whose[first]] = several[first]
        return rows


def _taken(column: pa.ChunkedArray | np.ndarray, rows: np.ndarray) -> pa.ChunkedArray:
    assert isinstance(column, pa.ChunkedArray)
    return column if rows.size == len(column) else column.take(pa.array(rows))


def _roomy(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text in a type that holds more than 2 GiB of it."""
    return column.cast(pa.large_string()) if pa.types.is_string(column.type) else column
