"""Tables, queries and relations of DuckDB, with text where Arrow has no such type. No cell of a table stops another."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from sfumato.errors import ConfigError
from sfumato.extras import import_extra
from sfumato.io.chunks import attempt, check_names
from sfumato.io.database_urls import Result, Wanted, identifier, parts_of
from sfumato.io.lazy_frames import in_utc, utc_schema
from sfumato.io.spool import SpooledSource, spooled

_ALIKE = re.compile(
    r"(?:BOOLEAN|U?(?:TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\s?\d+\)|VARCHAR)(?:\[\])?"
    r"|TIME|TIME_NS|\"?NULL\"?|ENUM\(.*\)",
    re.DOTALL,
)
"""Types whose values are the same in Arrow."""
_DATES = re.compile(r"DATE|TIMESTAMP(?:_S|_MS|_NS| WITH TIME ZONE)?")
_STORED = """
SELECT count(*) FROM duckdb_tables()
WHERE lower(table_name) = lower($table) AND sql NOT ILIKE '%GENERATED ALWAYS AS%' AND database_name = current_database()
AND lower(schema_name) = lower(CASE $schema WHEN '' THEN current_schema() ELSE $schema END)
"""


@contextlib.contextmanager
def duckdb_rows(wanted: Wanted, *, rows: bool, chunk_rows: int) -> Iterator[Result]:
    """Give the columns of a statement, and its rows or none of them.

    Raises:
        ConfigError: it is no SELECT statement, or DuckDB is not installed.
        DataError: its columns have no names of their own.
    """
    duckdb = import_extra("duckdb", "databases")
    with contextlib.closing(duckdb.connect(wanted.place, read_only=True)) as connection:
        (one,) = connection.extract_statements(wanted.statement)  # it would run several, and give the last one's rows
        if one.type != duckdb.StatementType.SELECT:
            raise ConfigError(f"Expected {wanted.label} to be a SELECT statement, got another.")
        *schema, table = parts_of(wanted.table or "", wanted.kind)
        ((stored,),) = connection.execute(_STORED, {"schema": "".join(schema), "table": table}).fetchall()
        relation = connection.sql(wanted.statement)
        check_names(relation.columns, wanted.label)
        types, batches = _result(relation, rows=rows, chunk_rows=chunk_rows)
        yield Result(types, batches, computed=not stored)


def open_relation(relation: Any, *, chunk_rows: int) -> SpooledSource:  # noqa: ANN401 - DuckDB is an extra
    """Open a DuckDB relation; its rows are not read yet.

    Raises:
        DataError: its columns have no names of their own, or its connection is closed.
    """
    label = "the DuckDB relation"
    message = f"Cannot read {label}. Check that its connection is open, and that its tables are there."
    check_names(attempt(lambda: relation.columns, message), label)
    schema, _ = attempt(lambda: _result(relation, rows=False, chunk_rows=chunk_rows), message)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from _result(relation, rows=True, chunk_rows=chunk_rows)[1]

    return spooled(batches(), schema, label, chunk_rows=chunk_rows)


def _result(
    relation: Any,  # noqa: ANN401
    *,
    rows: bool,
    chunk_rows: int,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns of a relation, and its rows or none of them."""
    columns = [_column(name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)]
    whole = relation.project(", ".join(columns))
    whole = whole if rows else whole.limit(0)
    read = getattr(whole, "to_arrow_reader", None) or whole.fetch_record_batch  # its name before DuckDB 1.5
    reader = read(chunk_rows)
    schema, batches = utc_schema(reader.schema), map(in_utc, reader)
    return schema, batches if rows else iter(list(batches))  # what is not read to its end blocks the connection


def _column(name: str, kind: str) -> str:
    """Return the expression of a column: text of what Arrow does not have, missing where a date is infinite."""
    column = identifier(name)
    if _DATES.fullmatch(kind):
        low, high = (f"CAST('{day}' AS {kind})" for day in _RANGES.get(kind, ("0001-01-01", "9999-12-31")))
        return f"CASE WHEN {column} BETWEEN {low} AND {high} THEN {column} END AS {column}"
    if _ALIKE.fullmatch(kind):
        return column
    return f"CAST({column} AS VARCHAR{'[]' if kind.endswith('[]') else ''}) AS {column}"


_RANGES = {"TIMESTAMP_NS": ("1677-09-22", "2262-04-11")}  # of 64 bits
