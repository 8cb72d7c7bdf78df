"""Tables of an SQLite file, written in one transaction: whole or not at all."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import types

from sfumato.errors import ConfigError, OutputError
from sfumato.io.atomic import reason_of
from sfumato.io.database_urls import Wanted, quoted, read_url


def sqlite_target(url: str) -> Wanted:
    """Return the table that a URL names.

    Raises:
        ConfigError: it is no table of an SQLite file.
    """
    wanted = read_url(url)
    if wanted.kind != "sqlite" or wanted.table is None:
        raise ConfigError("Expected a database to write to be named sqlite:///file?table=NAME, got another form.")
    return wanted


def refuse_table(wanted: Wanted, *, overwrite: bool) -> None:
    """Raise unless the table may be written.

    Raises:
        OutputError: it exists and may not be replaced, or the file is no database.
    """
    path = Path(wanted.place)
    if not path.exists():
        if not path.parent.is_dir():
            raise OutputError(f"Expected the folder of {path} to exist. Create it first.")
        return
    tables: list[object] = []
    failure = _failure(lambda: tables.extend(_tables(path, wanted)))
    if failure:
        raise OutputError(f"Expected {path.name} to be an SQLite database that can be read: {failure}.")
    if tables and not overwrite:
        raise OutputError(
            f"Expected no {wanted.label} yet, got one. Pass --overwrite (overwrite=True); nothing is appended."
        )


def write_sqlite(batches: Iterator[pa.Table], wanted: Wanted, *, overwrite: bool) -> None:
    """Write batches to a new table; with `overwrite`, in the place of one that is there.

    Raises:
        ConfigError: a column holds lists or images.
        OutputError: the table exists and may not be replaced, or cannot be written.
    """
    refuse_table(wanted, overwrite=overwrite)
    path = Path(wanted.place)
    new = not path.exists()
    failure: str | None = "it did not come to an end"
    try:
        failure = _failure(lambda: _write(batches, path, wanted))
    finally:
        if failure and new:
            for file in (
                path,
                path.with_name(f"{path.name}-journal"),
            ):  # which the next database here would take for its own
                file.unlink(missing_ok=True)
    if failure:
        raise OutputError(f"Cannot write {wanted.label}: {failure}.")


_REASONS = {  # by the primary code of an error; its own words may hold cells
    sqlite3.SQLITE_FULL: "no space is left for it",
    sqlite3.SQLITE_IOERR: "the system could not read or write it, as on a full or damaged disk",
    sqlite3.SQLITE_BUSY: "another program holds it",
    sqlite3.SQLITE_LOCKED: "another program holds it",
    sqlite3.SQLITE_READONLY: "it may not be written",
    sqlite3.SQLITE_PERM: "it may not be written",
    sqlite3.SQLITE_CANTOPEN: "the system does not open it",
    sqlite3.SQLITE_NOTADB: "it is no SQLite database",
    sqlite3.SQLITE_CORRUPT: "it is a damaged database",
    sqlite3.SQLITE_TOOBIG: "a cell is longer than SQLite takes",
}


def _failure(act: Callable[[], None]) -> str | None:
    """Do it; return why the system, the format or SQLite refuses."""
    try:
        return reason_of(act)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)  # of errors of SQLite itself; above 8 bits it says more
        return _REASONS.get(sqlite3.SQLITE_ERROR if code is None else code & 0xFF, "SQLite refused")


def _tables(path: Path, wanted: Wanted) -> list[object]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        query = "SELECT name FROM sqlite_master WHERE lower(name) = lower(?)"
        return connection.execute(query, (wanted.table,)).fetchall()


def _write(batches: Iterator[pa.Table], path: Path, wanted: Wanted) -> None:
    first = next(batches)
    name = quoted(wanted.table or "", "sqlite")
    columns = ", ".join(f"{quoted(field.name, 'sqlite')} {_type(field)}" for field in first.schema)
    places = ", ".join("?" * len(first.column_names))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.execute(f"CREATE TABLE {name} ({columns})")
        insert = f"INSERT INTO {name} VALUES ({places})"
        for batch in itertools.chain([first], batches):
            connection.executemany(insert, _rows(batch))
        connection.execute("COMMIT")


def _type(field: pa.Field) -> str:
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        raise ConfigError(f"Expected plain columns for a database, got {kind} for column {field.name!r}.")
    if types.is_integer(kind) or types.is_boolean(kind):
        return "INTEGER"
    return "REAL" if types.is_floating(kind) else "TEXT"


def _rows(batch: pa.Table) -> Iterator[tuple[object, ...]]:
    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        plain = column.cast(field.type.value_type) if types.is_dictionary(field.type) else column
        columns.append((plain if _type(field) != "TEXT" else plain.cast(pa.string())).to_pylist())
    return zip(*columns, strict=True)
