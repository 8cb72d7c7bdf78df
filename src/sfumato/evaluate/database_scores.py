"""Scores of a database: each table as linked rows of the rows above, and what tables have to do with each other.

Reads real records without noise: the figures are NOT private.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.desk.rule_breaks import count_breaks
from sfumato.errors import ConfigError, DataError
from sfumato.evaluate.between_tables import between_tables
from sfumato.evaluate.coded_tables import CodedTable, read_codes
from sfumato.evaluate.fidelity import rule_scores
from sfumato.evaluate.linked import LinkedRows, evaluate_linked, linked_columns, linked_scores
from sfumato.io.sources import Source
from sfumato.records.database_records import BranchRecords, DatabaseData
from sfumato.records.table_sources import TableSources, open_records
from sfumato.schema.branch_schemas import BranchView, branch_views
from sfumato.schema.schema import Schema
from sfumato.schema.shapes import EVALUATION, require_able


def scores_of_units(
    real: object, synthetic: object, *, schema: Schema, test: object, target: str | None
) -> dict[str, Any]:
    """Compare linked rows, or the tables of a database; arguments as `evaluate`.

    Raises:
        ConfigError: test rows or a target were given: no classifier learns from linked rows.
    """
    require_able(schema, EVALUATION)
    if test is not None or target is not None:
        raise ConfigError(
            f"Expected no {'test rows' if test is not None else 'target'} beside linked rows, got some: no classifier "
            "learns from them. Leave it out."
        )
    return (evaluate_linked if schema.tree is None else evaluate_database)(real, synthetic, schema)


def evaluate_database(real: object, synthetic: object, schema: Schema) -> dict[str, Any]:
    """Compare the tables of a database; arguments as `evaluate`.

    Returns:
        `private`: false. `units`: how many there are. `rows`: how many count, by table. `tables`: of each table but
        that of units the scores of linked rows, as `evaluate_linked` has them: its `first_rows` compare the columns of
        rows above, what earlier tables say of them, the number of rows below and the first of these, so that they say
        how tables go together. `between`: for each pair of tables of which none is above the other, or with that of
        units, the mean total variation of their columns' two-way tables by person: of samples (`synthetic`), of these
        with rows dealt to other persons (`dealt`), and of a tenth of the real persons (`tenth`). `rules`: as `evaluate`
        has them. JSON-ready.
    """
    data = {name: _read(rows, schema) for name, rows in (("real", real), ("synthetic", synthetic))}
    assert schema.tree is not None
    names = tuple(schema.table_columns)
    real_rows, samples = ({name: records.level(name) for name in names} for records in data.values())
    tables: dict[str, Any] = {}
    for name, view in branch_views(schema).items():
        own = replace(view, schema=linked_columns(view.schema))
        tables[name] = linked_scores(_linked(data["real"], own), _linked(data["synthetic"], own), own.schema)
    return {
        "private": False,
        "units": {label: records.level(names[0]).size for label, records in data.items()},
        "rows": {name: {label: records.level(name).size for label, records in data.items()} for name in names[1:]},
        "tables": tables,
        "between": between_tables(real_rows, samples, schema.tree, schema.of_kind(TabularKind)),
        "rules": rule_scores({label: count_breaks(records.source, schema) for label, records in data.items()}),
    }


def count_units(rows: object, schema: Schema) -> int:
    """Return how many units linked rows, or the tables of a database, have. Not private."""
    if schema.tree is None:
        return LinkedRows.read(open_records(rows, schema), schema).n_units
    data = _read(rows, schema)
    return data.level(data.source.database.units).size


class ReadTable(NamedTuple):
    """A table of linked rows or of a database, read to be compared. Not private where the rows are real.

    Attributes:
        cells: its own rows, as they lie there.
        schema: of these, without rules.
        known: its rows, coded, with what is known of the rows above.
        wide: schema of these.
        rows: its rows as linked rows of the rows above; None of the table of units.
        columns: schema of these.
    """

    cells: Source
    schema: Schema
    known: CodedTable
    wide: Schema
    rows: LinkedRows | None = None
    columns: Schema | None = None


def read_tables(rows: object, schema: Schema) -> dict[str, ReadTable]:
    """Read linked rows, by no name, or every table of a database that has columns and rows.

    Raises:
        SchemaError, DataError: the tables cannot be read, or linked rows have no unit.
    """
    source = open_records(rows, schema)
    if schema.tree is None:
        plain = replace(schema, rules=(), accept=())
        linked = LinkedRows.read(source, schema), linked_columns(schema)
        return {"": ReadTable(source, plain, read_codes(source, plain), plain, *linked)}
    data, views, tables = _read(source, schema), branch_views(schema), dict[str, ReadTable]()
    cleared = {"unit": None, "rules": (), "accept": (), "sources": {}, "table_source": {}}
    for name, own in schema.table_columns.items():
        level, columns = data.level(name), {column: schema.columns[column] for column in own}
        if not own or not level.size:
            continue
        cells, plain = data.source.tables[name], replace(schema, columns=columns, **cleared)
        if name not in views:
            tables[name] = ReadTable(cells, plain, read_codes(cells, plain), plain)
            continue
        view = replace(views[name], schema=linked_columns(views[name].schema))
        context = data.sequences(view).constants
        known = {column: codes[level.above] for column, codes in context.items()} | dict(level.codes)
        own_kinds = {column: columns[column] for column in level.codes}
        wide = replace(view.schema, columns={**view.schema.columns, **own_kinds}, **cleared)
        coded = CodedTable(columns=known, n_rows=level.size, label=cells.label)
        tables[name] = ReadTable(cells, plain, coded, wide, _linked(data, view), view.schema)
    return tables


def _read(rows: object, schema: Schema) -> DatabaseData:
    source = open_records(rows, schema)
    assert isinstance(source, TableSources)
    return DatabaseData(source, schema)


def _linked(data: DatabaseData, view: BranchView) -> LinkedRows:
    records, label = BranchRecords(data, view), data.source.label
    sequences = records.sequences()
    if not sequences.sizes.any():
        raise DataError(f"Expected rows of the table {records.view.branch.name!r} in {label}, got none.")
    parts = list(records.units())
    first = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    codes: Mapping[str, np.ndarray] = sequences.codes
    return LinkedRows(label, sequences.sizes, codes, first)
