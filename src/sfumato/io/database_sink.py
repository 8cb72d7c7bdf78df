"""Tables of an SQLite or DuckDB file, written in one transaction: all of them or none."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import types

from sfumato.errors import ConfigError, OutputError
from sfumato.extras import import_extra
from sfumato.io.atomic import reason_of
from sfumato.io.database_urls import FILES, Wanted, is_whole, quoted, read_url, table_url
from sfumato.io.places import scheme_of

_FORMS = "sqlite:///file or duckdb:///file"


def database_target(url: str) -> Wanted:
    """Return the table that a URL names.

    Raises:
        ConfigError: it is no table of an SQLite or DuckDB file, or DuckDB is not installed.
    """
    wanted = read_url(url)
    if wanted.kind not in FILES or wanted.table is None:
        raise ConfigError(f"Expected a database to write to be named {_FORMS} with ?table=NAME, got another form.")
    if wanted.kind == "duckdb":
        import_extra("duckdb", "databases")
    return wanted


def database_targets(url: str, names: Sequence[str]) -> dict[str, Wanted]:
    """Return the tables of these names in the file of a URL that names none.

    Raises:
        ConfigError: it is no such file, names a table, or DuckDB is not installed.
    """
    if scheme_of(url) not in FILES or not is_whole(url):
        raise ConfigError(f"Expected a database to write several tables to as {_FORMS}, got another form.")
    return {name: database_target(table_url(url, name)) for name in names}


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
        raise OutputError(f"Expected {path.name} to be a {wanted.kind} database that can be read: {failure}.")
    if tables and not overwrite:
        raise OutputError(
            f"Expected no {wanted.label} yet, got one. Pass --overwrite (overwrite=True); nothing is appended."
        )


def write_database(
    batches: Iterable[Mapping[str, pa.Table]], targets: Mapping[str, Wanted], *, overwrite: bool
) -> None:
    """Write batches to new tables of one file; with `overwrite`, in the place of those that are there.

    Args:
        batches: tables by name, of the same columns and types in each batch.
        targets: by name.
        overwrite: whether tables may be replaced.

    Raises:
        ConfigError: a column holds lists or images.
        OutputError: a table exists and may not be replaced, or cannot be written.
    """
    for wanted in targets.values():
        refuse_table(wanted, overwrite=overwrite)
    (place,) = {wanted.place for wanted in targets.values()}
    path = Path(place)
    new = not path.exists()
    failure: str | None = "it did not come to an end"
    try:
        failure = _failure(lambda: _write(batches, path, targets))
    finally:
        if failure and new:
            for rest in ("", "-journal", ".wal"):  # which the next database here would take for its own
                path.with_name(f"{path.name}{rest}").unlink(missing_ok=True)
    if failure:
        raise OutputError(f"Cannot write {' and '.join(wanted.label for wanted in targets.values())}: {failure}.")


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


_DUCKDB_REASONS = {
    "IOException": "another program holds it, it is no DuckDB database, or the system could not read or write it",
    "OutOfMemoryException": "memory or the disk is full",
}


def _failure(act: Callable[[], None]) -> str | None:
    """Do it; return why the system, the format or the database refuses."""
    duckdb: Any = sys.modules.get("duckdb")
    refusals = (sqlite3.Error,) if duckdb is None else (sqlite3.Error, duckdb.Error)
    try:
        return reason_of(act)
    except refusals as error:
        if not isinstance(error, sqlite3.Error):
            return _DUCKDB_REASONS.get(type(error).__name__, "DuckDB refused")
        code = getattr(error, "sqlite_errorcode", None)  # of errors of SQLite itself; above 8 bits it says more
        return _REASONS.get(sqlite3.SQLITE_ERROR if code is None else code & 0xFF, "SQLite refused")


def _tables(path: Path, wanted: Wanted) -> list[object]:
    if wanted.kind == "sqlite":
        connection, query = sqlite3.connect(path), "SELECT name FROM sqlite_master WHERE lower(name) = lower(?)"
    else:
        connection = import_extra("duckdb", "databases").connect(str(path), read_only=True)
        query = "SELECT table_name FROM information_schema.tables WHERE lower(table_name) = lower(?)"
    with contextlib.closing(connection):
        return connection.execute(query, (wanted.table,)).fetchall()


def _write(batches: Iterable[Mapping[str, pa.Table]], path: Path, targets: Mapping[str, Wanted]) -> None:
    in_sqlite = all(wanted.kind == "sqlite" for wanted in targets.values())
    if in_sqlite:
        connection: Any = sqlite3.connect(path, isolation_level=None)
    else:
        connection = import_extra("duckdb", "databases").connect(str(path))
    places = {name: quoted(wanted.table or "", wanted.kind) for name, wanted in targets.items()}
    inserts: dict[str, str] = {}
    with contextlib.closing(connection):
        connection.execute("BEGIN IMMEDIATE" if in_sqlite else "BEGIN TRANSACTION")
        for batch in batches:
            for name, table in batch.items():
                if name not in inserts:
                    connection.execute(f"DROP TABLE IF EXISTS {places[name]}")
                    inserts[name] = (_create if in_sqlite else _create_like)(connection, places[name], table)
                if in_sqlite:
                    connection.executemany(inserts[name], _rows(table))
                else:
                    connection.register(_PART, _plain(table)).execute(inserts[name])
        connection.execute("COMMIT")


_PART = "sfumato_part"


def _create_like(connection: Any, name: str, table: pa.Table) -> str:  # noqa: ANN401 - DuckDB is an extra
    """Make an empty table of DuckDB; return the statement that adds the part."""
    connection.register(_PART, _plain(table)).execute(f"CREATE TABLE {name} AS SELECT * FROM {_PART} LIMIT 0")
    return f"INSERT INTO {name} SELECT * FROM {_PART}"


def _plain(table: pa.Table) -> pa.Table:
    """Return a table without dictionaries, which DuckDB would take for types of their own."""
    for field in table.schema:
        _type(field)
    fields = [f.with_type(f.type.value_type) if types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def _create(connection: sqlite3.Connection, name: str, table: pa.Table) -> str:
    """Make an empty table of SQLite; return the statement that adds a row."""
    columns = ", ".join(f"{quoted(field.name, 'sqlite')} {_type(field)}" for field in table.schema)
    connection.execute(f"CREATE TABLE {name} ({columns})")
    return f"INSERT INTO {name} VALUES ({', '.join('?' * table.num_columns)})"


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
