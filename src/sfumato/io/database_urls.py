"""URLs of databases: `sqlite:///file?table=t`, `duckdb:///file?query=…`, `postgresql://user@host/db?table=t`.

What follows the `?` is read as it is typed but for `%` and two hexadecimal digits, which stand for a byte of UTF-8. No
message shows a URL: it may hold a query or a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, final
from urllib.parse import quote, unquote

import pyarrow as pa

from sfumato.errors import ConfigError

FILES = ("sqlite", "duckdb")  # kinds of databases that are files
SCHEMES = ("sqlite", "duckdb", "postgresql", "postgres")


@final
@dataclass(frozen=True, slots=True, repr=False)
class Wanted:
    """The table or query that a URL names.

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
        """Its name in messages."""
        what = "the query" if self.table is None else f"table {self.table}"
        return f"{what} of {self.kind} database"

    @property
    def statement(self) -> str:
        """One SELECT statement, without the semicolon at its end."""
        if self.table is not None:
            return f"SELECT * FROM {quoted(self.table, self.kind)}"
        return re.sub(r"[\s;]+\Z", "", self.query or "")


class Result(NamedTuple):
    """What a database gives.

    Attributes:
        types: names and types of the columns.
        batches: the rows, or none of them.
        computed: whether they are more than the rows of a table as it is stored: of a query, a view, a foreign table.
    """

    types: pa.Schema
    batches: Iterator[pa.RecordBatch | pa.Table]
    computed: bool


class Reading(Protocol):
    """How one kind of database is read: a statement's columns, and its rows or none of them."""

    def __call__(self, wanted: Wanted, *, rows: bool, chunk_rows: int) -> AbstractContextManager[Result]:
        """Give columns and batches, while the connection is open."""
        ...


def read_url(url: str) -> Wanted:
    """Read the URL of a table or a query.

    Raises:
        ConfigError: it is none.

    Example:
        >>> read_url("sqlite:///people.db?query=SELECT age+1 AS age FROM people").query
        'SELECT age+1 AS age FROM people'
    """
    scheme, _, rest = url.partition("://")
    kind = "postgresql" if scheme.lower() == "postgres" else scheme.lower()
    address, _, text = rest.partition("?")
    form = f"{kind}://" + ("user@host/database" if kind == "postgresql" else "/file") + "?table=NAME or ?query=SELECT…"
    options = _options(text)
    target = {name: value for name, value in options if name in ("table", "query")}
    others = [(name, value) for name, value in options if name not in target]
    if len(target) != 1 or not all(target.values()) or len(target) + len(others) != len(options):
        raise ConfigError(
            f"Expected a database to be named {form}, with a table or a query, got another form. Write & as %26 and % "
            "as %25 in either."
        )
    if kind == "postgresql":
        more = "&".join(f"{name}={quote(value, safe='')}" for name, value in others)
        place = f"{kind}://{address}" + (f"?{more}" if more else "")
    elif not address.startswith("/") or others or not address.strip("/"):
        raise ConfigError(f"Expected a {kind} file to be named {form}, with three slashes or more, got another form.")
    else:
        place = unquote(address[1:])
    return Wanted(kind, place, target.get("table"), target.get("query"))


def is_whole(url: str) -> bool:
    """Whether the URL of a database names neither a table nor a query."""
    return not {name for name, _ in _options(url.partition("?")[2])} & {"table", "query"}


def table_url(url: str, table: str) -> str:
    """Return the URL of a table of a database whose own URL names none.

    Raises:
        ConfigError: it names a table or a query.

    Example:
        >>> table_url("postgresql://me@host/db?sslmode=require", "visits")
        'postgresql://me@host/db?sslmode=require&table=visits'
    """
    if not is_whole(url):
        raise ConfigError(
            "Expected a database to be named without a table or a query, as several tables are read, got one. Leave "
            "out what follows the ?."
        )
    return f"{url}{'&' if '?' in url else '?'}table={quote(table, safe='')}"


def _options(text: str) -> list[tuple[str, str]]:
    """Return names and values; none if one is no UTF-8: a `%` that was not meant as such."""
    pairs = [part.partition("=") for part in text.split("&")]
    try:
        return [(unquote(name), unquote(value, errors="strict")) for name, _, value in pairs]
    except UnicodeDecodeError:
        return []


def parts_of(table: str, kind: str) -> list[str]:
    """Return the name of a table, after that of its schema if it is named: `s.people`."""
    return [table] if kind == "sqlite" else table.split(".", 1)


def quoted(table: str, kind: str) -> str:
    """Return the name of a table, maybe after that of its schema and a dot, as an SQL identifier."""
    return ".".join(map(identifier, parts_of(table, kind)))


def identifier(name: str) -> str:
    """Return one name as an SQL identifier.

    Example:
        >>> print(identifier("age"))
        "age"
    """
    return '"' + name.replace('"', '""') + '"'


def projected(statement: str, columns: list[str], *, rows: bool) -> str:
    """Return a statement with its columns as SQL expressions, and its rows or none of them."""
    # the line end ends a comment
    whole = f"SELECT {', '.join(columns)} FROM (\n{statement}\n) AS records"
    return whole if rows else f"{whole} LIMIT 0"
