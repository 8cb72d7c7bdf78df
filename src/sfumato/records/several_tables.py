"""What a schema describes as one source: a table, two with a key, or those of a database."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from sfumato.errors import ConfigError
from sfumato.io.chunks import Source
from sfumato.io.sources import open_source
from sfumato.io.table_places import tables_in
from sfumato.records.database_records import TableSources
from sfumato.records.table_pairs import TablePair
from sfumato.schema.schema import Schema


def open_records(data: object, schema: Schema) -> Source:
    """Open what a schema describes: one table, or several by their names.

    Args:
        data: of several tables a mapping of names to what `open_source` takes, a folder with a file of each, or the
            URL of a database that has them.
        schema: what is public about them.

    Raises:
        ConfigError: the schema is of several tables, and the data are not these; or as `open_source`.
        DataError: as `open_source`, a folder has not one file for each table, or a table lacks a column of the schema.
    """
    tables = schema.two_tables or schema.database
    if tables is None or isinstance(data, TablePair | TableSources):
        return open_source(data, csv=schema.reader.csv)
    if isinstance(data, str | os.PathLike):
        data = tables_in(os.fspath(data), tables.names)
    _require_all(data, tables.names)
    assert isinstance(data, Mapping)
    opened = {name: open_source(data[name], csv=schema.reader.csv) for name in tables.names}
    if schema.database is not None:
        return TableSources.of(opened, schema)
    units, rows = opened.values()
    return TablePair.of(units, rows, schema)


def _require_all(data: object, names: Sequence[str]) -> None:
    named = f"{{{', '.join(f'{name!r}: ...' for name in names)}}}"
    count = {2: "two"}.get(len(names), str(len(names)))
    if not isinstance(data, Mapping):
        raise ConfigError(f"Expected the {count} tables {named} as the schema has them, got a {type(data).__name__}.")
    strange = [name for name in data if name not in names]
    absent = [name for name in names if name not in data]
    if strange:
        raise ConfigError(f"Expected the {count} tables {named}, got {strange[0]!r}, which the schema does not name.")
    if absent:
        raise ConfigError(f"Expected the {count} tables {named}, got no {absent[0]!r}.")
