"""Samples of rows joined to their units: as rows that have the columns of these, or apart as two tables.

Blocks of units are drawn as rows with the columns of their unit, and one of a unit without rows. A column without a
name says what of a row is to be written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from sfumato.schema.schema import Schema

_PARTS = ""
_STARTS, _THERE = 1, 2


def with_parts(rows: pa.Table, *, starts: np.ndarray, present: np.ndarray) -> pa.Table:
    """Return rows of units that say which is the first of its unit, and which is a row and no unit without any."""
    parts = _STARTS * starts.astype(np.int8) + _THERE * present.astype(np.int8)
    return rows.append_column(_PARTS, pa.array(parts.astype(np.int8)))


def rows_present(rows: pa.Table) -> np.ndarray | None:
    """Return which rows are some, and no units without any; None where all are."""
    return (rows.column(_PARTS).to_numpy() & _THERE) != 0 if _PARTS in rows.column_names else None


def rows_with_units(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows alone, each with the columns of its unit."""
    for batch in batches:
        yield _chosen(batch, _THERE).drop_columns([_PARTS])


def pairs(batches: Iterator[pa.Table], schema: Schema) -> Iterator[dict[str, pa.Table]]:
    """Yield both tables by their names, that of units first: the key, then the columns in the schema's order."""
    columns = columns_of_tables(schema)
    parts = dict(zip(columns, (_STARTS, _THERE), strict=True))
    for batch in batches:
        yield {
            table: _chosen(batch, parts[table]).select(list(named.values())).rename_columns(list(named))
            for table, named in columns.items()
        }


def columns_of_tables(schema: Schema) -> dict[str, dict[str, str]]:
    """Return the columns of all tables, that of units first: written name → name in the schema. Keys come first."""
    assert schema.unit is not None
    assert schema.database is not None
    key, own = schema.unit.column, schema.table_columns
    keys = {schema.database.units: (key,), **{branch.name: branch.identifiers for branch in schema.database.branches}}
    return {
        table: {**dict.fromkeys(keys[table], key), **{name: name for name in schema.released if name in own[table]}}
        for table in schema.database.names
    }


def joined_tables(batches: Iterator[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """Return all tables, whole."""
    parts = list(batches)
    return {name: pa.concat_tables([batch[name] for batch in parts]) for name in parts[0]}


def _chosen(batch: pa.Table, part: int) -> pa.Table:
    parts = batch.column(_PARTS).to_numpy()
    return batch.filter(pa.array((parts & part) != 0))
