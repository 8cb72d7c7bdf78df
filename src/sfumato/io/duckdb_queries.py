"""Tables, queries and relations of DuckDB, with casts that do not fail, and text where Arrow has no such type.

A `CAST` of the statement is read as `TRY_CAST`: a cell that does not cast is missing. CSV, JSON and SQLite files in a
statement are refused: DuckDB infers their types from some rows, and a later cell of another type would stop it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.errors import ConfigError
from sfumato.extras import import_extra
from sfumato.io.chunks import attempt, check_names
from sfumato.io.database_urls import Result, Wanted, identifier
from sfumato.io.lazy_frames import in_utc, utc_schema
from sfumato.io.spool import Spool, SpooledSource, plain_schema, write_batches
from sfumato.io.strict_json import mappings_in

_ALIKE = re.compile(
    r"(?:BOOLEAN|U?(?:TINY|SMALL|BIG)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\s?\d+\)|VARCHAR)(?:\[\])?"
    r"|TIME|TIME_NS|\"?NULL\"?|ENUM\(.*\)",
    re.DOTALL,
)
"""Types whose values are the same in Arrow."""
_DATES = re.compile(r"DATE|TIMESTAMP(?:_S|_MS|_NS| WITH TIME ZONE)?")
_INFERRED = re.compile(
    r"(?:read_(?:csv|json|ndjson|xlsx)|sniff_csv|sqlite_scan|st_read).*|.*\.(?:[ct]sv|txt|json|jsonl|ndjson|xlsx)(?:\.\w+)?",
    re.IGNORECASE | re.DOTALL,
)


@contextlib.contextmanager
def duckdb_rows(wanted: Wanted, *, rows: bool, chunk_rows: int) -> Iterator[Result]:
    """Give the columns of a statement, and its rows or none of them.

    Raises:
        ConfigError: it is no SELECT statement, it reads files whose types are inferred, or DuckDB is not installed.
        DataError: its columns have no names of their own.
    """
    duckdb = import_extra("duckdb", "databases")
    with contextlib.closing(duckdb.connect(wanted.place, read_only=True)) as connection:
        (one,) = connection.extract_statements(wanted.statement)  # it would run several, and give the last one's rows
        if one.type != duckdb.StatementType.SELECT:
            raise ConfigError(f"Expected {wanted.label} to be a SELECT statement, got another.")
        relation = connection.sql(_with_casts_that_try(wanted.statement, wanted.label) or wanted.statement)
        check_names(relation.columns, wanted.label)
        yield _result(relation, rows=rows, chunk_rows=chunk_rows)


def open_relation(relation: Any, *, chunk_rows: int) -> SpooledSource:  # noqa: ANN401 - DuckDB is an extra
    """Open a DuckDB relation; its rows are read in the first pass.

    Raises:
        ConfigError: it reads files whose types are inferred, or no SELECT statement tells it.
        DataError: its columns have no names of their own, or its connection is closed.
    """
    label = "the DuckDB relation"
    message = f"Cannot read {label}. Check that its connection is open, and that its tables are there."
    check_names(attempt(lambda: relation.columns, message), label)
    changed = _with_casts_that_try(attempt(relation.sql_query, message), label)
    if changed is not None:
        relation = attempt(lambda: relation.query("records", changed), message)  # on its own connection
    schema = plain_schema(attempt(lambda: _result(relation, rows=False, chunk_rows=chunk_rows), message)[0])

    def write(path: Path) -> None:
        _, batches = _result(relation, rows=True, chunk_rows=chunk_rows)
        write_batches(batches, schema, path, chunk_rows=chunk_rows)

    return SpooledSource(
        label=label,
        container="pyarrow",
        storage=dict(zip(schema.names, schema.types, strict=True)),
        chunk_rows=chunk_rows,
        spool=Spool(label, write),
    )


def _result(relation: Any, *, rows: bool, chunk_rows: int) -> Result:  # noqa: ANN401
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


def _with_casts_that_try(statement: str, label: str) -> str | None:
    """Return a statement whose casts give no value where they would fail; None if it has none.

    Raises:
        ConfigError: it reads files whose types are inferred, or is no statement that DuckDB can write as a tree.
    """
    with contextlib.closing(import_extra("duckdb", "databases").connect()) as scratch:
        ((text,),) = scratch.execute("SELECT json_serialize_sql(?)", [statement]).fetchall()
        tree = json.loads(text)
        if tree["error"]:
            raise ConfigError(f"Expected {label} to be one SELECT statement, got another. Make a table of it first.")
        nodes = list(mappings_in(tree))
        if any(
            _INFERRED.fullmatch(str(node.get(key, ""))) for node in nodes for key in ("function_name", "table_name")
        ):
            raise ConfigError(
                f"Expected {label} to read tables or Parquet files, got one of CSV, JSON, Excel or SQLite files, whose "
                "types DuckDB infers from some rows. Pass the file itself."
            )
        casts = [node for node in nodes if node.get("class") == "CAST" and not node.get("try_cast")]
        for node in casts:
            node["try_cast"] = True
        if not casts:
            return None
        ((changed,),) = scratch.execute("SELECT json_deserialize_sql(?)", [json.dumps(tree)]).fetchall()
        return changed
