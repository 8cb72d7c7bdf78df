"""Tables and queries of databases: `sqlite:///file?table=t`, `duckdb:///file?query=…`, `postgresql://user@host/db?table=t`.

They are read once, in one statement, into a private temporary file: all passes see one snapshot. Types are those that
the database declares, where Arrow has them, and text where it does not; SQLite declares none, and its cells are text,
each by itself. No error shows a query or a password, or what the database said: that may be a cell.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from sfumato.columns.cells import joined
from sfumato.errors import DataError
from sfumato.io.chunks import attempt, check_names
from sfumato.io.database_urls import Reading, Wanted, read_url, table_url
from sfumato.io.duckdb_queries import duckdb_rows
from sfumato.io.postgresql import postgresql_rows
from sfumato.io.spool import Spool, SpooledSource, plain_schema, write_batches
from sfumato.io.sqlite_queries import sqlite_rows

_READINGS: dict[str, Reading] = {"sqlite": sqlite_rows, "duckdb": duckdb_rows, "postgresql": postgresql_rows}

_LISTINGS = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'",
    "duckdb": "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'",
    "postgresql": "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()",
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
    """Read the columns of a table or query; its rows are read in the first pass.

    Raises:
        ConfigError: the URL names no table and no query, or both, the query is one that a cell could stop as its text
            shows, or the library for the database is not installed.
        DataError: the database cannot be reached or read, or its columns have no names of their own.
    """
    wanted = read_url(url)
    reading = _READINGS[wanted.kind]
    label = wanted.label
    schema = _columns(wanted, reading, chunk_rows)

    def write(path: Path) -> None:
        def copy() -> None:
            with reading(wanted, rows=True, chunk_rows=chunk_rows) as (types, batches):
                if plain_schema(types) != schema:
                    raise DataError(f"Expected the columns of {label} to stay as they were, but they changed.")
                write_batches(batches, schema, path, chunk_rows=chunk_rows)

        attempt(copy, f"Cannot read {label}: the database refused, or the connection or the disk failed.")

    return SpooledSource(
        label=label,
        container="csv" if wanted.kind == "sqlite" else "parquet",
        storage=dict(zip(schema.names, schema.types, strict=True)),
        chunk_rows=chunk_rows,
        spool=Spool(label, write),
    )


def _columns(wanted: Wanted, reading: Reading, chunk_rows: int) -> pa.Schema:
    """Return the columns of a result of no rows."""
    if wanted.kind != "postgresql" and not Path(wanted.place).is_file():
        raise DataError(f"Expected a {wanted.kind} file that exists, got {Path(wanted.place).name}. Check the path.")
    condition = "is one SELECT statement that the database takes" if wanted.table is None else "is there"

    def read() -> pa.Schema:
        with reading(wanted, rows=False, chunk_rows=chunk_rows) as (schema, _):
            return plain_schema(schema)

    schema = attempt(read, f"Cannot read {wanted.label}. Check that it {condition}, and that you may read it.")
    check_names(schema.names, wanted.label)
    return schema
