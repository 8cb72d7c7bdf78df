"""Tables of an SQLite file, written in one transaction: all of them or none."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import types

from sfumato.errors import ConfigError, OutputError
from sfumato.io.atomic import reason_of
from sfumato.io.database_urls import Wanted, is_whole, quoted, read_url, table_url
from sfumato.io.places import scheme_of


def sqlite_target(url: str) -> Wanted:
    """Return the table that a URL names.

    Raises:
        ConfigError: it is no table of an SQLite file.
    """
    wanted = read_url(url)
    if wanted.kind != "sqlite" or wanted.table is None:
        raise ConfigError("Expected a database to write to be named sqlite:///file?table=NAME, got another form.")
    return wanted


def sqlite_targets(url: str, names: Sequence[str]) -> dict[str, Wanted]:
    """Return the tables of these names in the file of a URL that names none.

    Raises:
        ConfigError: it is no SQLite file, or names a table.
    """
    if scheme_of(url) != "sqlite" or not is_whole(url):
        raise ConfigError("Expected a database to write several tables to as sqlite:///file, got another form.")
    return {name: sqlite_target(table_url(url, name)) for name in names}


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


def write_sqlite(batches: Iterable[Mapping[str, pa.Table]], targets: Mapping[str, Wanted], *, overwrite: bool) -> None:
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
            for file in (
                path,
                path.with_name(f"{path.name}-journal"),
            ):  # which the next database here would take for its own
                file.unlink(missing_ok=True)
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


def _write(batches: Iterable[Mapping[str, pa.Table]], path: Path, targets: Mapping[str, Wanted]) -> None:
    inserts: dict[str, str] = {}
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for batch in batches:
            for name, table in batch.items():
                if name not in inserts:
                    inserts[name] = _create(connection, quoted(targets[name].table or "", "sqlite"), table.schema)
                connection.executemany(inserts[name], _rows(table))
        connection.execute("COMMIT")


def _create(connection: sqlite3.Connection, name: str, schema: pa.Schema) -> str:
    """Make an empty table; return the statement that adds a row."""
    columns = ", ".join(f"{quoted(field.name, 'sqlite')} {_type(field)}" for field in schema)
    connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(f"CREATE TABLE {name} ({columns})")
    return f"INSERT INTO {name} VALUES ({', '.join('?' * len(schema))})"


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
