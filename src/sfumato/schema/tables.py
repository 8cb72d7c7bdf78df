"""Two tables with a key: of units, and of their rows.

    tables:
      persons: {key: patient, rows: 20000, columns: [sex, born]}
      visits: {of: persons, max_rows: 6, order: day}

They are linked rows whose constants lie in a table of their own, so that a unit may have no row at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.columns.facts import shown
from sfumato.errors import SchemaError
from sfumato.schema.unit import Tables, Unit

_OF_UNITS, _OF_ROWS = ("key", "rows", "columns"), ("of", "key", "max_rows", "order")
_SHAPE = "such as tables: {persons: {key: patient, rows: 20000, columns: [sex]}, visits: {of: persons, max_rows: 6}}"


def read_tables(entry: object, faults: list[str]) -> Unit | None:
    """Return the unit of a schema document with `tables`, or note what is wrong with it."""
    if not isinstance(entry, Mapping) or not all(isinstance(table, Mapping) for table in entry.values()):
        faults.append(f"Expected tables to map two names to what is known of each, {_SHAPE}.")
        return None
    parents = [name for name, table in entry.items() if "of" not in table]
    children = [name for name in entry if name not in parents]
    before = len(faults)
    faults += _shape_faults(entry, parents, children)
    if len(faults) > before:
        return None
    return _unit(parents[0], children[0], entry, faults)


def unit_entry(unit: Unit) -> dict[str, Any]:
    """Return the entry of a unit in a schema document, under `unit` or `tables`."""
    if unit.tables is None:
        return {"unit": unit.to_dict()}
    tables = unit.tables
    entries = {
        tables.units: {"key": unit.column, "rows": unit.units, "columns": list(unit.constant)},
        tables.rows: {"of": tables.units, "key": tables.key, "max_rows": unit.max_rows, "order": unit.order},
    }
    return {"tables": {t: {k: v for k, v in entry.items() if v is not None} for t, entry in entries.items()}}


def _shape_faults(entry: Mapping[Any, Any], parents: list[Any], children: list[Any]) -> list[str]:
    """Return the faults of the number of tables, and of their `of`."""
    deep = [name for name in children if entry[name]["of"] in children]
    if deep:
        return [f"Expected tables of two levels, got {shown(deep[0])} of a table that is itself of another. Join them."]
    if len(children) > 1:
        return [
            f"Expected one table of rows beside that of units, got a second one, {shown(children[1])}. Release each "
            "with the units by itself: the budgets add up."
        ]
    if len(parents) != 1 or not children:
        return [f"Expected two tables, one of them with `of`, got {len(entry)}; {_SHAPE}."]
    if entry[children[0]]["of"] != parents[0]:
        return [f"Expected {shown(children[0])} of the other table, got of={shown(entry[children[0]]['of'])}."]
    faults = []
    for name, known, needed in ((parents[0], _OF_UNITS, "key"), (children[0], _OF_ROWS, "max_rows")):
        faults += [
            f"Expected {', '.join(known)} in the table {shown(name)}, got {shown(key)}. Remove or correct it."
            for key in entry[name]
            if key not in known
        ]
        if needed not in entry[name]:
            faults.append(f"Expected {needed} in the table {shown(name)}, got none.")
    return faults


def _unit(parent: Any, child: Any, entry: Mapping[Any, Any], faults: list[str]) -> Unit | None:  # noqa: ANN401
    of_units, of_rows = entry[parent], entry[child]
    key = of_rows.get("key")
    try:
        return Unit(
            column=of_units["key"],
            max_rows=of_rows["max_rows"],
            order=of_rows.get("order"),
            constant=of_units.get("columns", ()),
            units=of_units.get("rows"),
            tables=Tables(units=parent, rows=child, key=None if key == of_units["key"] else key),
        )
    except SchemaError as error:
        faults.append(str(error))
    return None
