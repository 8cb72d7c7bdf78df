"""The tables of a database as one source: each read by itself, or rows joined to their units, and units that have none.

Joined, every key is one record, with all that either table holds of it, and what becomes of it follows from these cells
alone:

    a unit without a key           left out
    a key that units have twice    one unit: the row of the smaller hash of key and content
    a row without a key            left out
    a row whose key no unit has    left out
    a unit without rows            a unit of 0 rows

Keys are compared as text, `5` for the number 5 however it is stored.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import joined, values_of
from sfumato.columns.kind import ColumnKind, TabularKind
from sfumato.columns.open import Identifier
from sfumato.errors import ConfigError, DataError, PrivacyWarning, SchemaError
from sfumato.io.chunks import Chunk, Note, Source, guarded
from sfumato.io.csv_form import CsvForm
from sfumato.io.joined import of_one_type
from sfumato.io.renamed import RenamedSource
from sfumato.io.sources import open_source
from sfumato.io.table_folders import tables_in
from sfumato.lenses.chain import read_kinds
from sfumato.records.sequences import RowOrder
from sfumato.records.units import NOBODY, UnitNumbers
from sfumato.schema.database import Database, own_name
from sfumato.schema.schema import Schema


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TableSources(Source):
    """The tables of a database as one source. Where one is joined to that of units, it has the rows of that.

    Memory: of joined tables, that of units, and a chunk of rows.

    Attributes:
        tables: by name.
        columns: those that each table has of the schema, but for what names rows.
        database: what they are.
        key: the column that names a unit.
        kinds: of the columns of units.
        missing: texts that stand for no value, of the key and of each column of units.
    """

    tables: Mapping[str, Source]
    columns: Mapping[str, tuple[str, ...]]
    database: Database
    key: str
    kinds: Mapping[str, ColumnKind]
    missing: Mapping[str, tuple[str, ...]]
    exact: bool = False

    @classmethod
    def of(cls, tables: Mapping[str, Source], schema: Schema) -> TableSources:
        """Put tables together, as a schema says.

        Raises:
            DataError: a table lacks a column that names rows.
            SchemaError: no cell of such a column can name one.
        """
        database, unit = schema.database, schema.unit
        assert database is not None
        assert unit is not None
        kinds, columns = read_kinds(schema), schema.table_columns
        read, storage = dict[str, Source](), dict[str, pa.DataType]()
        for name, table in tables.items():
            identifiers = database.branch(name).identifiers if name != database.units else (unit.column,)
            table = RenamedSource.of(table, _own_names(name, table, columns[name]))
            read[name] = table.under(dict.fromkeys(identifiers, Identifier()) | {c: kinds[c] for c in columns[name]})
            _require_identifiers(read[name], name, identifiers)
            own = read[name].storage
            names = (*((unit.column,) if database.joined else identifiers), *columns[name])
            storage |= {column: own[column] for column in names if column in own and column not in storage}
            has_units = unit.column in table.names
            if has_units and database.is_nested(name) and (branch := database.branch(name)).unit is None:
                warnings.warn(
                    f"The table {name!r} has the column {unit.column!r}, as the key of units is called, but its rows "
                    f"are matched by {branch.by!r} alone. Where it names units, and these share such keys, one of them "
                    f"may change the records of all: declare it as `unit` of {name!r}.",
                    PrivacyWarning,
                    6,
                )
        parts = list(read.values())
        texts = next((part for part in parts if part.missing_as_text), parts[0])
        return cls(
            label=" and ".join(part.label for part in parts),
            container=parts[0].container,
            storage=storage,
            dtypes={column: text for part in reversed(parts) for column, text in part.dtypes.items()},
            chunk_rows=min(part.chunk_rows for part in parts),
            missing_as_text=any(part.missing_as_text for part in parts),
            tables=read,
            columns=columns,
            database=database,
            key=unit.column,
            kinds={name: kinds[name] for name in unit.constant},
            missing={name: schema.missing_in(texts, name) for name in (unit.column, *unit.constant)},
            exact=schema.is_exact(unit.column),
        )

    def read_as(self, form: CsvForm) -> TableSources:
        """Return the tables of CSV text in a declared form."""
        return replace(self, tables={name: table.read_as(form) for name, table in self.tables.items()})

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the records of any table that are not read, or not whole. Not private."""
        for name, table in self.tables.items():
            yield from (f"{name}, {text}" for text in table.notes(what))

    def parts(self, names: Collection[str]) -> list[tuple[Source, list[str]]]:
        """Return all tables, and the columns of these that each has."""
        return [(table, [c for c in self.columns[name] if c in names]) for name, table in self.tables.items()]

    def label_of(self, name: str) -> str:
        """Return the label of the table that has, or should have, a column."""
        table = next((table for table, columns in self.columns.items() if name in columns), self.database.units)
        return f"{self.tables[table].label} (the table {table!r})"

    def undeclared(self, declared: Collection[str]) -> list[str]:
        """Return the columns, `table.column`, that are none of these, or that the schema has in another table."""
        places = {column: name for name, columns in self.columns.items() for column in columns}
        identifiers = {self.database.units: (self.key,), **{b.name: b.identifiers for b in self.database.branches}}
        return [
            f"{name}.{column}"
            for name, table in self.tables.items()
            for column in table.names
            if column not in identifiers[name] and (column not in declared or places.get(column, name) != name)
        ]

    def computing(self) -> Iterator[str]:
        """Yield the labels of the tables whose rows a program of the holder's computes."""
        for table in self.tables.values():
            yield from table.computing()

    def keep(self) -> None:
        """Run what can be read only once, or may fail, of any table."""
        for table in self.tables.values():
            table.keep()

    def size(self) -> int:
        """Bytes of all tables."""
        return sum(table.size() for table in self.tables.values())

    @property
    def in_files(self) -> bool:
        """Whether other processes can read all."""
        return all(table.in_files for table in self.tables.values())

    def with_dictionaries(self) -> TableSources:
        """Return the tables of which the text of rows may come dictionary-encoded."""
        units = self.database.units
        return replace(
            self, tables={n: table if n == units else table.with_dictionaries() for n, table in self.tables.items()}
        )

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

    def _joined(self, columns: tuple[str, ...]) -> Iterator[tuple[Chunk, bool]]:
        places, branch = UnitNumbers((*self.missing[self.key], ""), exact=self.exact), self.database.joined
        assert branch is not None
        mine = [name for name in columns if name == self.key or name in self.kinds]
        others = [name for name in columns if name not in mine]
        table = self._one_each(places, mine)
        has_rows = np.zeros(len(places), dtype=bool)
        for chunk in self.tables[branch.name].chunks([branch.by, *others]):
            place = places.known(chunk.columns[branch.by])
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
        units = self.tables[self.database.units]
        for chunk in units.chunks(wanted):
            place = places.numbers(chunk.columns[self.key])
            rows = np.flatnonzero(place != NOBODY)
            parts.append({name: _roomy(_taken(chunk.columns[name], rows)) for name in wanted})
            numbers.append(place[rows])
        if not parts:
            return pa.table({name: pa.array([], units.storage[name]) for name in wanted})
        # a column at a time, so that no more than one is there twice
        table = pa.table({name: self._whole(name, [part.pop(name) for part in parts]) for name in wanted})
        owners = np.concatenate(numbers)
        return table.take(pa.array(self._chosen(table, owners, places))).select(wanted)

    def _whole(self, name: str, parts: Sequence[pa.ChunkedArray]) -> pa.Array:
        """Return the parts of a column as one array: of different types, as the values that each reads as by itself."""
        arrays, kind = [joined(part) for part in parts], self.kinds.get(name)
        if len({array.type for array in arrays}) > 1 and isinstance(kind, TabularKind):
            codes = (kind.code(array, missing=self.missing[name]) for array in arrays)
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
        codes = {name: kind.code(some.column(name), missing=self.missing[name]) for name, kind in self.kinds.items()}
        order = RowOrder(self.kinds, None, 1, places.hashes)
        order.take(owners[several], codes, several)
        units, _, first = order.rows()
        rows[units] = first
        return rows


def _taken(column: pa.ChunkedArray | np.ndarray, rows: np.ndarray) -> pa.ChunkedArray:
    assert isinstance(column, pa.ChunkedArray)
    return column if rows.size == len(column) else column.take(pa.array(rows))


def _roomy(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text in a type that holds more than 2 GiB of it."""
    return column.cast(pa.large_string()) if pa.types.is_string(column.type) else column


def _own_names(name: str, table: Source, columns: Collection[str]) -> dict[str, str]:
    """Return the columns of a table that the schema calls `table.column`, as other tables have the name, too."""
    qualified = {column: own_name(name, column) for column in columns if column not in table.storage}
    return {own: column for column, own in qualified.items() if own in table.storage}


def _require_identifiers(table: Source, name: str, identifiers: tuple[str, ...]) -> None:
    for column in identifiers:
        if column not in table.storage:
            raise DataError(
                f"Expected {table.label}, the table {name!r}, to have the column {column!r}, which says whose a row "
                "is. Name another one as `by` or `key`."
            )
        if pa.types.is_nested(values_of(table.storage[column])):
            raise SchemaError(
                f"Expected the key {column!r} of {table.label} to hold names or numbers, got cells of type "
                f"{table.storage[column]}."
            )


def open_records(data: object, schema: Schema) -> Source:
    """Open what a schema describes: one table, or several by their names.

    Args:
        data: of several tables a mapping of names to what `open_source` takes, a folder with a file of each, or the
            URL of a database that has them.
        schema: what is public about them.

    Raises:
        ConfigError: the schema is of several tables, and the data are not these; or as `open_source`.
        DataError: as `open_source`, a folder has not one file for each table, or a table lacks a column of the schema.
    """
    database = schema.database
    if database is None or isinstance(data, TableSources):
        return open_source(data, csv=schema.reader.csv)
    if isinstance(data, str | os.PathLike):
        data = tables_in(os.fspath(data), database.names)
    _require_all(data, database.names)
    assert isinstance(data, Mapping)
    return TableSources.of({name: open_source(data[name], csv=schema.reader.csv) for name in database.names}, schema)


def _require_all(data: object, names: Sequence[str]) -> None:
    named = f"{{{', '.join(f'{name!r}: ...' for name in names)}}}"
    count = {2: "two"}.get(len(names), str(len(names)))
    if not isinstance(data, Mapping):
        raise ConfigError(f"Expected the {count} tables {named} as the schema has them, got a {type(data).__name__}.")
    strange = [name for name in data if name not in names]
    absent = [name for name in names if name not in data]
    if strange:
        raise ConfigError(f"Expected the {count} tables {named}, got {strange[0]!r}, which the schema does not name.")
    if absent:
        raise ConfigError(f"Expected the {count} tables {named}, got no {absent[0]!r}.")
