"""Tables and queries of SQLite: each cell is text by itself, and no cell can stop the statement.

SQLite converts any cell to any type; what raises on a value are some of its functions (`abs` of the least whole number,
`sum` beyond 64 bits, `json_extract` of what is no JSON). A statement that calls one is refused, by its text alone.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from sfumato.errors import ConfigError
from sfumato.io.chunks import check_names
from sfumato.io.database_urls import Result, Wanted, projected
from sfumato.io.frames import cell_text

_FUNCTIONS = """
acos acosh asin asinh atan atan2 atanh avg ceil ceiling changes char coalesce concat concat_ws cos cosh count
cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor
glob group_concat hex if ifnull iif instr julianday lag last_value lead length like likelihood likely ln log
log10 log2 lower ltrim max min mod nullif octet_length percent_rank pi pow power quote radians random rank
replace round row_number rtrim sign sin sinh soundex sqlite_version sqrt strftime string_agg substr substring
tan tanh time timediff total trim trunc typeof unhex unicode unixepoch unlikely upper
"""
TOTAL = frozenset(_FUNCTIONS.split())
"""Functions of SQLite that give a value, or none, for any cells."""

_INSTEAD = {
    "abs": "CASE WHEN x < 0 THEN -x ELSE x END",
    "sum": "total(x)",
    "printf": "round(x, n)",
    "format": "round(x, n)",
}


@contextlib.contextmanager
def sqlite_rows(wanted: Wanted, *, rows: bool, chunk_rows: int) -> Iterator[Result]:
    """Give the columns of a statement as text, and its rows or none of them.

    Raises:
        ConfigError: it calls a function that a cell may stop.
        DataError: its columns have no names of their own.
    """
    # for reading alone; sqlite3 itself takes one statement
    address = f"file:{quote(str(Path(wanted.place).absolute()))}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        connection.text_factory = lambda text: text.decode("utf-8", errors="replace")
        cursor = _executed(connection, projected(wanted.statement, ["*"], rows=rows), wanted.label)
        names = [column[0] for column in cursor.description]
        check_names(names, wanted.label)
        yield pa.schema([(name, pa.string()) for name in names]), _text_tables(cursor, names, chunk_rows=chunk_rows)


def _executed(connection: sqlite3.Connection, sql: str, label: str) -> sqlite3.Cursor:
    refused: list[str] = []

    def allowed(action: int, _: str | None, name: str | None, *__: object) -> int:
        if action == sqlite3.SQLITE_FUNCTION and str(name).lower() not in TOTAL:
            refused.append(str(name))
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    connection.set_authorizer(allowed)
    try:
        return connection.execute(sql)
    except sqlite3.Error:
        if not refused:
            raise
    name = refused[0].lower()
    instead = f"write {_INSTEAD[name]}" if name in _INSTEAD else "leave it out, and declare the column as it is stored"
    raise ConfigError(
        f"Expected {label} to call functions that give a value for every cell, got {name}, which one cell can stop: "
        f"{instead}."
    )


def _text_tables(rows: Iterable[Sequence[object]], names: Sequence[str], *, chunk_rows: int) -> Iterator[pa.Table]:
    """Yield rows as tables of text, cell by cell; a cell that has no text is missing."""
    remaining = iter(rows)
    while part := list(itertools.islice(remaining, chunk_rows)):
        columns = [pa.array([cell_text(row[i]) for row in part], pa.string()) for i in range(len(names))]
        yield pa.table(columns, names=list(names))
