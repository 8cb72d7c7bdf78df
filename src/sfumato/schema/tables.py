"""The tables of a database in a schema document.

    tables:
      persons: {key: patient, rows: 20000, columns: [sex, born]}
      visits: {of: persons, max_rows: 6, order: day}

A unit may have no row at all. The only table below that of units need not list its columns
(`sfumato.schema.database`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from sfumato.columns.facts import shown
from sfumato.errors import SchemaError, did_you_mean
from sfumato.schema.database import MOST_TABLES, Branch, Database, column_names
from sfumato.schema.unit import Unit

_OF_UNITS = ("key", "rows", "columns")
_OF_ROWS = ("of", "by", "max_rows", "order", "ends", "key", "unit", "columns", "within", "totals", "weight")
_SHAPE = "such as tables: {persons: {key: patient, rows: 20000, columns: [sex]}, visits: {of: persons, max_rows: 6}}"


def read_tables(entry: object, released: Collection[str], faults: list[str]) -> Unit | None:
    """Return the unit of a schema document with `tables`, or note what is wrong with it.

    Args:
        entry: of the document.
        released: the columns of all tables.
        faults: where to note.
    """
    if not isinstance(entry, Mapping) or not all(isinstance(table, Mapping) for table in entry.values()):
        faults.append(f"Expected tables to map names to what is known of each, {_SHAPE}.")
        return None
    if len(entry) > MOST_TABLES:
        faults.append(f"Expected at most {MOST_TABLES} tables, got {len(entry)}. Leave some out.")
        return None
    roots = [name for name, table in entry.items() if "of" not in table]
    below = {name: table for name, table in entry.items() if "of" in table}
    before = len(faults)
    faults += _shape_faults(entry, roots, below)
    if len(faults) > before:
        return None
    try:
        return _database(roots[0], entry[roots[0]], below, released)
    except SchemaError as error:
        faults.append(str(error))
    return None


def unit_entry(unit: Unit) -> dict[str, Any]:
    """Return the entry of a unit in a schema document, under `unit` or `tables`."""
    tables = unit.tables
    if tables is None:
        return {"unit": unit.to_dict()}
    root = {"key": unit.column, "rows": unit.units, "columns": list(unit.constant)}
    entries: dict[str, dict[str, Any]] = {tables.units: root}
    keys = {tables.units: unit.column}
    for branch in tables.branches:
        keys[branch.name] = branch.key or ""
        by = None if branch.by == keys[branch.of] else branch.by
        ends = {name: labels[0] if len(labels) == 1 else list(labels) for name, labels in branch.ends}
        entries[branch.name] = {
            "of": branch.of, "by": by, "key": branch.key, "unit": branch.unit, "max_rows": branch.max_rows,
            "order": branch.order, "within": None if branch.within is None else list(branch.within),
            "columns": list(branch.columns) or None, "ends": ends or None,
            "totals": dict(branch.totals) or None,
            "weight": None if branch.weight == 1 else branch.weight,
        }  # fmt: skip
    known = {name: {key: v for key, v in entry.items() if v is not None} for name, entry in entries.items()}
    return {"tables": known}


def _shape_faults(entry: Mapping[Any, Any], roots: list[Any], below: Mapping[Any, Mapping[Any, Any]]) -> list[str]:
    """Return the faults of the number of tables, of their `of` and of their keys."""
    if len(roots) != 1 or not below:
        return [
            f"Expected one table of units and others with `of`, got {len(roots)} without `of` of {len(entry)}; "
            f"{_SHAPE}."
        ]
    faults = [
        f"Expected {shown(name)} to be of another table, got of={shown(table['of'])}."
        f"{did_you_mean(str(table['of']), [str(other) for other in entry if other != name])}"
        for name, table in below.items()
        if table["of"] not in entry or table["of"] == name
    ]
    for name, table in entry.items():
        known, needed = (_OF_ROWS, "max_rows") if name in below else (_OF_UNITS, "key")
        faults += [
            f"Expected {', '.join(known)} in the table {shown(name)}, got {shown(key)}. Remove or correct it."
            for key in table
            if key not in known
        ]
        if needed not in table:
            faults.append(f"Expected {needed} in the table {shown(name)}, got none.")
    above = {table["of"] for table in below.values()}
    faults += [
        f"Expected key in the table {shown(name)}, by which the tables below it name its rows, got none."
        for name in below
        if name in above and "key" not in entry[name]
    ]
    return faults


def _database(
    root: Any,  # noqa: ANN401
    of_units: Mapping[Any, Any],
    below: Mapping[Any, Mapping[Any, Any]],
    released: Collection[str],
) -> Unit:
    keys = {root: of_units["key"], **{name: table.get("key") for name, table in below.items()}}
    branches, left = [], dict(below)
    while left:  # in the order of the document, each after the table that it is of
        done = {root, *(branch.name for branch in branches)}
        name = next((name for name, table in left.items() if table["of"] in done), None)
        if name is None:
            raise SchemaError(f"Expected tables of which none is of itself, got {shown(next(iter(left)))} in a circle.")
        table = left.pop(name)
        branches.append(Branch(**{"name": name, "by": keys[table["of"]], **table}))
    constant = column_names(of_units.get("columns", ()), f"columns of the table {root!r}")
    database = Database(units=root, branches=tuple(replace(branch, columns=()) for branch in branches))
    if database.joined is None:
        bare = next((name for name, table in below.items() if "columns" not in table), None)
        if bare is not None:
            raise SchemaError(f"Expected columns in the table {shown(bare)}, got none. List those that it releases.")
        database = Database(units=root, branches=tuple(branches))
    elif branches[0].columns and (strange := {*released}.difference(constant) ^ {*branches[0].columns}):
        raise SchemaError(f"Expected every released column in one table, got {min(strange)!r} in none or not released.")
    return Unit(column=of_units["key"], constant=constant, units=of_units.get("rows"), tables=database)
