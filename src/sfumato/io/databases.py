"""Tables and queries of databases: `sqlite:///file?table=t`, `duckdb:///file?query=…`, `postgresql://user@host/db`.

They are read once, in one statement, into a private temporary file: all passes see one snapshot. Types are those that
the database declares, where Arrow has them, and text where it does not; SQLite declares none, and its cells are text,
each by itself. No cell of a stored table stops the others from being read. A query, a view, a foreign table and columns
that are computed when they are read are programs of the holder's: the catalogue tells them. No error shows a query or
a password, or what the database said: that may be a cell.

The driver of PostgreSQL gives `money` as cents, and addresses, ranges and much else as bytes of the protocol. So the
server is asked for the types of the columns first, and turns all but a few into text itself.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from sfumato.columns.cells import joined
from sfumato.errors import DataError
from sfumato.extras import import_extra
from sfumato.io.chunks import attempt, check_names
from sfumato.io.database_urls import Reading, Result, Wanted, identifier, projected, quoted, read_url, table_url
from sfumato.io.duckdb_queries import duckdb_rows
from sfumato.io.frames import cell_text
from sfumato.io.lazy_frames import in_utc, utc_schema
from sfumato.io.spool import Spool, SpooledSource, plain_schema, write_batches

_BOOL, _INT8, _INT2, _INT4, _TEXT, _FLOAT4, _FLOAT8 = 16, 20, 21, 23, 25, 700, 701
_ALIKE = {_BOOL, _INT8, _INT2, _INT4, _TEXT, _FLOAT4, _FLOAT8, 19, 1042, 1043, 1083}  # name, char, varchar, time
_LISTS = {1000, 1016, 1005, 1007, 1009, 1021, 1022, 1015}  # of truth values, numbers and text
_MONEY, _NUMERIC, _MONEYS, _NUMERICS, _OID = 790, 1700, 791, 1231, 26
_DATES = {1082: "date", 1114: "timestamp", 1184: "timestamptz"}

_SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL TIME ZONE 'UTC'",
    "SET LOCAL datestyle TO ISO, YMD",
    "SET LOCAL intervalstyle TO iso_8601",
    "SET LOCAL bytea_output TO hex",
    "SET LOCAL extra_float_digits TO 1",
)
_STORED = """
WITH RECURSIVE parts(oid) AS (
    SELECT to_regclass($1)::oid UNION SELECT inhrelid FROM pg_inherits JOIN parts ON inhparent = parts.oid
)
SELECT count(*) > 0 AND bool_and(
    relkind IN ('r', 'p') AND NOT row_security_active(pg_class.oid)
    AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attgenerated = 'v')
) AND current_setting('server_encoding') IN ('UTF8', 'LATIN1')
FROM pg_class JOIN parts ON pg_class.oid = parts.oid
"""
"""Whether a table and its partitions are stored, without policies or computed columns, in text that all is UTF-8."""

_STORED_IN_FILE = """
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?1 COLLATE NOCASE
AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden = 2)
"""
"""Whether a table is stored: none that a module makes (which has no page), without computed columns."""


@contextlib.contextmanager
def postgresql_rows(wanted: Wanted, *, rows: bool, chunk_rows: int) -> Iterator[Result]:
    """Give the columns of a statement, and its rows or none of them, in a snapshot of their own.

    Raises:
        ConfigError: the driver is not installed.
        DataError: the server cannot be reached, or the columns have no names of their own.
    """
    del chunk_rows  # the driver's own
    adbc = import_extra("adbc_driver_postgresql.dbapi", "databases")
    message = "Cannot reach the postgresql database. Check host, port, user, password and name of the database."
    with contextlib.closing(attempt(lambda: adbc.connect(wanted.place), message)) as connection:
        with connection.cursor() as cursor:
            for setting in _SETTINGS:
                cursor.execute(setting)
            stored = False
            if wanted.table is not None:
                cursor.execute(_STORED, (quoted(wanted.table, "postgresql"),))
                stored = bool(cursor.fetchone()[0])
            columns = [_column(name, kind) for name, kind in _types(cursor, wanted).items()]
            # prepared, so that the server takes one statement
            cursor.execute(projected(wanted.statement, columns, rows=rows))
            with contextlib.closing(cursor.fetch_record_batch()) as reader:
                yield Result(utc_schema(reader.schema), map(in_utc, reader), computed=not stored)
        connection.rollback()


def _types(cursor: Any, wanted: Wanted) -> dict[str, int]:  # noqa: ANN401
    """Return the number of each column's type in the server's catalogue; that of a domain is what it is made of."""
    cursor.execute(projected(wanted.statement, ["*"], rows=False))
    with contextlib.closing(cursor.fetch_record_batch()) as reader:
        names = reader.schema.names
    check_names(names, wanted.label)
    typed = ", ".join(f"pg_typeof(records.{identifier(name)})::oid::int8" for name in names)
    # one row of no values, whatever the records are
    cursor.execute(f"SELECT {typed} FROM (SELECT 1) AS one LEFT JOIN (\n{wanted.statement}\n) AS records ON false")
    kinds: list[int] = list(cursor.fetchone())
    while bases := _bases(cursor, kinds):
        kinds = [{kind: kind, **bases}[kind] for kind in kinds]
    return dict(zip(names, kinds, strict=True))


def _bases(cursor: Any, kinds: list[int]) -> dict[int, int]:  # noqa: ANN401
    """Return the base types of the domains among some types."""
    listed = ", ".join(map(str, sorted(set(kinds))))
    cursor.execute(f"SELECT oid::int8, typbasetype::oid::int8 FROM pg_type WHERE typtype = 'd' AND oid IN ({listed})")
    return dict(cursor.fetchall())


def _column(name: str, kind: int) -> str:
    """Return the expression of a column: what Arrow has as it is, all else as the server's text."""
    column = identifier(name)
    # by the type's own output, as in a file that the server writes: a cast adds `/32` to an address
    expression = f"CASE WHEN {column} IS DISTINCT FROM NULL THEN format('%s', {column}) END"
    if kind in _ALIKE:
        expression = column
    elif kind in _LISTS:  # of more dimensions, or another first index than 1, the driver reads none
        expression = f"CASE WHEN array_ndims({column}) > 1 THEN NULL ELSE {column}[:] END"
    elif kind == _OID:
        expression = f"{column}::int8"
    elif kind == _MONEY:  # its text has the signs of the server's country
        expression = f"{column}::numeric::text"
    elif kind in (_MONEYS, _NUMERICS):
        expression = f"CASE WHEN array_ndims({column}) > 1 THEN NULL ELSE {column}[:]::numeric[]::text[] END"
    elif kind == _NUMERIC:
        expression = f"NULLIF({column}, 'NaN')::text"
    elif kind in _DATES:  # Arrow has no infinite ones
        of = _DATES[kind]
        expression = f"CASE WHEN {column} BETWEEN '0001-01-01'::{of} AND '9999-12-31'::{of} THEN {column} END"
    return f"{expression} AS {column}"


@contextlib.contextmanager
def sqlite_rows(wanted: Wanted, *, rows: bool, chunk_rows: int) -> Iterator[Result]:
    """Give the columns of a statement as text, and its rows or none of them.

    Raises:
        DataError: its columns have no names of their own.
    """
    # for reading alone; sqlite3 itself takes one statement
    address = f"file:{quote(str(Path(wanted.place).absolute()))}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", errors="replace")
        ((stored,),) = connection.execute(_STORED_IN_FILE, (wanted.table,)).fetchall()
        cursor = connection.execute(projected(wanted.statement, ["*"], rows=rows))
        names = [column[0] for column in cursor.description]
        check_names(names, wanted.label)
        types = pa.schema([(name, pa.string()) for name in names])
        yield Result(types, _text_tables(cursor, names, chunk_rows=chunk_rows), computed=not stored)


def _text_tables(rows: Iterable[Sequence[object]], names: Sequence[str], *, chunk_rows: int) -> Iterator[pa.Table]:
    """Yield rows as tables of text, cell by cell; a cell that has no text is missing."""
    remaining = iter(rows)
    while part := list(itertools.islice(remaining, chunk_rows)):
        columns = [pa.array([cell_text(row[i]) for row in part], pa.string()) for i in range(len(names))]
        yield pa.table(columns, names=list(names))


_READINGS: dict[str, Reading] = {"sqlite": sqlite_rows, "duckdb": duckdb_rows, "postgresql": postgresql_rows}

_TABLES = "information_schema.tables WHERE table_type = 'BASE TABLE'"
_LISTINGS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'",
    "duckdb": f"SELECT table_name FROM {_TABLES} AND table_schema = 'main'",
    "postgresql": f"SELECT table_name::text FROM {_TABLES} AND table_schema = current_schema()",
}


def table_names(url: str) -> list[str]:
    """Return the names of the tables of a database whose URL names none, sorted.

    Raises:
        ConfigError: the URL names a table or a query; or as `open_database`.
        DataError: the database cannot be read, or has no table.
    """
    kind = read_url(table_url(url, "any")).kind
    listing = f"{url}{'&' if '?' in url else '?'}query={quote(_LISTINGS[kind])}"
    source = open_database(listing, chunk_rows=1_000)
    (column,) = source.names
    names = sorted(str(name) for chunk in source.chunks() for name in joined(chunk.columns[column]).to_pylist())
    if not names:
        raise DataError(f"Expected tables in the {kind} database, got none. Check the address.")
    return names


def open_database(url: str, *, chunk_rows: int) -> SpooledSource:
    """Read the columns of a table or query, and whether they are computed; its rows are not read yet.

    Raises:
        ConfigError: the URL names no table and no query, or both, or the library for the database is not installed.
        DataError: the database cannot be reached or read, or its columns have no names of their own.
    """
    wanted = read_url(url)
    reading = _READINGS[wanted.kind]
    label = wanted.label
    schema, computed = _columns(wanted, reading, chunk_rows)

    def write(path: Path) -> None:
        def copy() -> None:
            with reading(wanted, rows=True, chunk_rows=chunk_rows) as result:
                if (plain_schema(result.types), result.computed) != (schema, computed):
                    raise DataError(f"Expected the columns of {label} to stay as they were, but they changed.")
                write_batches(result.batches, schema.names, path, chunk_rows=chunk_rows)

        attempt(copy, f"Cannot read {label}: the database refused, or the connection or the disk failed.")

    return SpooledSource(
        label=label,
        container="csv" if wanted.kind == "sqlite" else "parquet",
        storage=dict(zip(schema.names, schema.types, strict=True)),
        chunk_rows=chunk_rows,
        computed=computed,
        spool=Spool(label, write),
    )


def _columns(wanted: Wanted, reading: Reading, chunk_rows: int) -> tuple[pa.Schema, bool]:
    """Return the columns of a result of no rows, and whether they are computed."""
    if wanted.kind != "postgresql" and not Path(wanted.place).is_file():
        raise DataError(f"Expected a {wanted.kind} file that exists, got {Path(wanted.place).name}. Check the path.")
    condition = "is one SELECT statement that the database takes" if wanted.table is None else "is there"

    def read() -> tuple[pa.Schema, bool]:
        with reading(wanted, rows=False, chunk_rows=chunk_rows) as result:
            return plain_schema(result.types), result.computed

    message = f"Cannot read {wanted.label}. Check that it {condition}, and that you may read it."
    schema, computed = attempt(read, message)
    check_names(schema.names, wanted.label)
    return schema, computed
