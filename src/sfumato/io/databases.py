"""Tables and queries of databases: `sqlite:///file?table=t`, `duckdb:///file?query=…`, `postgresql://user@host/db?table=t`.

They are read once, in one statement, into a private temporary file: all passes see one snapshot. Types are those that
the database declares; SQLite declares none, and its cells are text, each by itself. No error shows a query or a
password, or what the database said: that may be a cell.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import pyarrow as pa

from sfumato.errors import ConfigError, DataError
from sfumato.io.chunks import attempt, check_names
from sfumato.io.rows import text_tables
from sfumato.io.spool import Spool, SpooledSource, plain_schema, write_batches

FILES = ("sqlite", "duckdb")  # kinds of databases that are files
SCHEMES = ("sqlite", "duckdb", "postgresql", "postgres")
Result: TypeAlias = tuple[pa.Schema, Iterator[pa.RecordBatch | pa.Table]]
Statement: TypeAlias = Callable[["Wanted", str, int], AbstractContextManager[Result]]


@final
@dataclass(frozen=True, slots=True, repr=False)
class Wanted:
    """What a URL asks of a database.

    Attributes:
        kind: sqlite, duckdb or postgresql.
        place: the file, or the address of the server with all that belongs to it.
        table: the name of the table; None for a query.
        query: one SELECT statement; None for a table.
    """

    kind: str
    place: str
    table: str | None
    query: str | None

    @property
    def label(self) -> str:
        """What messages call it."""
        what = "the query" if self.table is None else f"table {self.table}"
        return f"{what} of {self.kind} database"

    @property
    def statement(self) -> str:
        """One SELECT statement, without the semicolon at its end."""
        if self.table is not None:
            return f"SELECT * FROM {quoted(self.table, self.kind)}"
        return re.sub(r"[\s;]+\Z", "", self.query or "")


def open_database(url: str, *, chunk_rows: int) -> SpooledSource:
    """Read the columns of a table or query; its rows are read in the first pass.

    Raises:
        ConfigError: the URL names no table and no query, or both, or the library for the database is not installed.
        DataError: the database cannot be reached or read, or its columns have no names of their own.
    """
    wanted = read_url(url)
    statement = _STATEMENTS[wanted.kind]
    label = wanted.label
    schema = plain_schema(_storable(_opened(wanted, lambda: _columns(statement, wanted, chunk_rows))))
    check_names(schema.names, label)

    def write(path: Path) -> None:
        def copy() -> None:
            with statement(wanted, wanted.statement, chunk_rows) as (found, batches):
                if plain_schema(_storable(found)) != schema:
                    raise DataError(f"Expected the columns of {label} to stay as they were, but they changed.")
                write_batches(map(_stored, batches), schema, path, chunk_rows=chunk_rows)

        attempt(copy, f"Cannot read {label}: the database refused, or the connection or the disk failed.")

    return SpooledSource(
        label=label,
        container="csv" if wanted.kind == "sqlite" else "parquet",
        storage=dict(zip(schema.names, schema.types, strict=True)),
        chunk_rows=chunk_rows,
        spool=Spool(label, write),
    )


def read_url(url: str) -> Wanted:
    """Read the URL of a table or a query.

    Raises:
        ConfigError: it is none.
    """
    scheme = url.partition(":")[0].lower()
    kind = "postgresql" if scheme == "postgres" else scheme
    form = f"{kind}://" + ("user@host/database" if kind == "postgresql" else "/file") + "?table=NAME or ?query=SELECT…"
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        parts, options = None, []
    asked = {name: value for name, value in options if name in ("table", "query")}
    others = [(name, value) for name, value in options if name not in asked]
    if parts is None or len(asked) != 1 or not all(asked.values()) or len(asked) + len(others) != len(options):
        raise ConfigError(f"Expected a database to be named {form}, with a table or a query, got another form.")
    if kind == "postgresql":
        place = urlunsplit((kind, parts.netloc, parts.path, urlencode(others, quote_via=quote), ""))
    elif parts.netloc or others or not parts.path.strip("/"):
        raise ConfigError(f"Expected a {kind} file to be named {form}, with three slashes or more, got another form.")
    else:
        place = unquote(parts.path[1:])
    return Wanted(kind, place, asked.get("table"), asked.get("query"))


def quoted(table: str, kind: str) -> str:
    """Return the name of a table, maybe after that of its schema and a dot, as an SQL identifier."""
    parts = [table] if kind == "sqlite" else table.split(".", 1)
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def _columns(statement: Statement, wanted: Wanted, chunk_rows: int) -> pa.Schema:
    """Return the columns of a result of no rows."""
    none = f"SELECT * FROM ({wanted.statement}\n) AS records LIMIT 0"  # the line end ends a comment
    with statement(wanted, none, chunk_rows) as (schema, _):
        return schema


def _opened(wanted: Wanted, read: Callable[[], pa.Schema]) -> pa.Schema:
    if wanted.kind != "postgresql" and not Path(wanted.place).is_file():
        raise DataError(f"Expected a {wanted.kind} file that exists, got {Path(wanted.place).name}. Check the path.")
    there = "is one SELECT statement that the database takes" if wanted.table is None else "is there"
    return attempt(read, f"Cannot read {wanted.label}. Check that it {there}, and that you may read it.")


@contextlib.contextmanager
def _sqlite(wanted: Wanted, sql: str, chunk_rows: int) -> Iterator[Result]:
    import sqlite3

    # for reading alone; sqlite3 itself takes one statement
    address = f"file:{quote(str(Path(wanted.place).absolute()))}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", errors="replace")
        cursor = connection.execute(sql)
        names = [column[0] for column in cursor.description]
        schema = pa.schema([(name, pa.string()) for name in names])
        yield schema, text_tables(iter(cursor), names, chunk_rows=chunk_rows)


@contextlib.contextmanager
def _duckdb(wanted: Wanted, sql: str, chunk_rows: int) -> Iterator[Result]:
    duckdb = _driver("duckdb")
    with contextlib.closing(duckdb.connect(wanted.place, read_only=True)) as connection:
        (one,) = connection.extract_statements(sql)  # it would run several, and give the last one's rows
        if one.type != duckdb.StatementType.SELECT:
            raise ConfigError(f"Expected {wanted.label} to be a SELECT statement, got another.")
        rows = connection.sql(one)
        read = getattr(rows, "to_arrow_reader", None) or rows.fetch_record_batch  # its name before DuckDB 1.5
        reader = read(chunk_rows)
        yield reader.schema, iter(reader)


@contextlib.contextmanager
def _postgresql(wanted: Wanted, sql: str, chunk_rows: int) -> Iterator[Result]:
    driver = _driver("adbc_driver_postgresql.dbapi")
    message = "Cannot reach the postgresql database. Check host, port, user, password and name of the database."
    with contextlib.closing(attempt(lambda: driver.connect(wanted.place), message)) as connection:
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute(sql)  # prepared, so that the server takes one statement
            with contextlib.closing(cursor.fetch_record_batch()) as reader:
                yield reader.schema, iter(reader)
        connection.rollback()


_STATEMENTS: dict[str, Statement] = {"sqlite": _sqlite, "duckdb": _duckdb, "postgresql": _postgresql}


def _driver(name: str) -> Any:  # noqa: ANN401 - a module of another package
    import importlib

    failure = ConfigError(
        f"Expected {name.partition('.')[0]} to be installed, got no such package. Run pip install 'sfumato[databases]'."
    )
    try:
        return importlib.import_module(name)
    except ImportError:
        pass
    raise failure


def _storable(schema: pa.Schema) -> pa.Schema:
    """Return a schema without extension types: a driver's own names for types that Arrow does not have."""
    return pa.schema([(field.name, _storage(field.type)) for field in schema])


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _stored(batch: pa.RecordBatch | pa.Table) -> pa.Table:
    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    columns = [c.cast(_storage(c.type)) if _storage(c.type) != c.type else c for c in table.columns]
    return pa.table(columns, names=table.column_names)
