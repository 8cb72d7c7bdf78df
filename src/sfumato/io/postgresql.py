"""Tables and queries of PostgreSQL, with text where Arrow has no such type.

The driver gives `money` as cents, and addresses, ranges and much else as bytes of the protocol. So the server is asked
for the types of the columns first, and turns all but a few into text itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from sfumato.extras import import_extra
from sfumato.io.chunks import attempt, check_names
from sfumato.io.database_urls import Result, Wanted, identifier, projected
from sfumato.io.zones import in_utc, utc_schema

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
            columns = [_column(name, kind) for name, kind in _types(cursor, wanted).items()]
            # prepared, so that the server takes one statement
            cursor.execute(projected(wanted.statement, columns, rows=rows))
            with contextlib.closing(cursor.fetch_record_batch()) as reader:
                yield utc_schema(reader.schema), map(in_utc, reader)
        connection.rollback()


def _types(cursor: Any, wanted: Wanted) -> dict[str, int]:  # noqa: ANN401 - the driver is an extra
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
    elif kind in _LISTS:  # of more dimensions, the driver reads none
        expression = f"CASE WHEN array_ndims({column}) > 1 THEN NULL ELSE {column} END"
    elif kind == _OID:
        expression = f"{column}::int8"
    elif kind == _MONEY:  # its text has the signs of the server's country
        expression = f"{column}::numeric::text"
    elif kind in (_MONEYS, _NUMERICS):
        expression = f"CASE WHEN array_ndims({column}) > 1 THEN NULL ELSE {column}::numeric[]::text[] END"
    elif kind == _NUMERIC:
        expression = f"NULLIF({column}, 'NaN')::text"
    elif kind in _DATES:  # Arrow has no infinite ones
        of = _DATES[kind]
        expression = f"CASE WHEN {column} BETWEEN '0001-01-01'::{of} AND '9999-12-31'::{of} THEN {column} END"
    return f"{expression} AS {column}"
