"""Faults of a schema whose rows are linked: of one table, joined to that of units, and of a tree of tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sfumato.columns.bounded import NumericKind
from sfumato.columns.facts import shown
from sfumato.columns.kind import TabularKind
from sfumato.columns.kinds import ItemSet
from sfumato.columns.levels import LevelKind
from sfumato.columns.numbers import Continuous, Integer
from sfumato.columns.open import Open
from sfumato.errors import did_you_mean
from sfumato.schema.database import Branch, Database, own_name
from sfumato.schema.schema_facts import SchemaFacts
from sfumato.schema.unit import Unit

MOST_LINKED = 1_000
"""Most rows of a unit that are linked: sums of their whole numbers stay below 2^63."""


def linked_faults(schema: SchemaFacts, unit: Unit) -> list[str]:
    """Return the faults of linked rows."""
    faults = []
    known = ", ".join(map(repr, schema.released))
    weight = None if schema.weight is None else schema.weight.column
    if weight is not None and weight not in unit.constant:
        place = "constant of unit" if unit.tables is None else f"columns of the table {unit.tables.units!r}"
        faults.append(
            f"Expected the weight of linked rows to be its unit's, got {weight!r} outside {place}. Name it there: of "
            "rows that differ, the first counts."
        )
    own = [name for name in unit.constant if name != weight]
    if weight is not None and not own and unit.order is None and unit.tables is None:
        faults.append("Expected linked rows by order or a constant, got the weight alone among the constants.")
    named = [("order", unit.order)] if unit.order is not None else []
    for key, name in [*named, *(("constant", name) for name in own)]:
        if name not in schema.released:
            faults.append(f"Expected {key} of unit to name released columns, got {name!r}. There are {known}.")
    if unit.tables is not None:
        faults += _identifier_faults(schema, unit.tables.branches[0]) + file_name_faults(schema, unit.tables, unit)
    if faults:
        return faults
    own = [name for name in schema.released if name not in unit.constant]
    faults = order_faults(schema, "unit", unit.order, unit.constant) + end_faults(schema, "unit", unit.ends, own)
    return [*faults, *_column_faults(schema, unit)]


def order_faults(schema: SchemaFacts, place: str, order: str | None, constant: Collection[str]) -> list[str]:
    """Return the faults of a column by which rows follow each other."""
    if order is None:
        return []
    if order in constant:
        return [f"Expected order of {place} to vary, got {order!r} among the constants, too. Take it out of these."]
    if not isinstance(schema.columns[order], NumericKind):
        return [f"Expected order of {place} to name a column of numbers or dates, got {order!r}."]
    return []


def end_faults(
    schema: SchemaFacts, place: str, ends: Iterable[tuple[str, tuple[str, ...]]], own: Collection[str]
) -> list[str]:
    """Return the faults of labels after which there is no row."""
    faults = []
    for name, labels in ends:
        kind = schema.columns.get(name)
        if name not in own or not isinstance(kind, LevelKind):
            faults.append(
                f"Expected ends of {place} to name columns of labels that vary from row to row, got {name!r}."
            )
            continue
        unknown = [label for label in labels if label not in kind.labels]
        if unknown:
            faults.append(
                f"Expected ends of {place} to be labels of {name!r}, got {shown(unknown[0])}."
                f"{did_you_mean(unknown[0], kind.labels)}"
            )
        elif len(set(labels)) == len(kind.labels):
            faults.append(f"Expected ends of {place} to leave labels of {name!r} that are none, got all of them.")
    return faults


def _column_faults(schema: SchemaFacts, unit: Unit) -> list[str]:
    faults = []
    if not set(schema.released) - set(unit.constant):
        faults.append("Expected linked rows to have a column that is not constant, got none. Name fewer constants.")
    for name in schema.released:
        kind = schema.columns[name]
        if isinstance(kind, ItemSet) and name in unit.constant:
            faults.append(
                f"Expected constants of labels, numbers or dates, got sets in column {name!r}. Take it out of these, "
                "or out of the table of units."
            )
        if isinstance(kind, Open | ItemSet):
            continue  # shapes that do not go together are said with the reason
        if not isinstance(kind, TabularKind):
            faults.append(
                f"Column {name!r}: expected a declared column of labels, numbers or dates beside linked rows, got "
                f"{kind.name}. Declare it, or take order and constant out of the unit."
            )
        elif unit.tables is not None and "nullable" not in kind.__dataclass_fields__:  # type: ignore[attr-defined]
            faults.append(
                f"Column {name!r}: expected a kind of which values may be missing in several tables, got {kind.name}."
            )
    if unit.max_rows > MOST_LINKED:
        faults.append(f"Expected max_rows of at most {MOST_LINKED} for linked rows, got {unit.max_rows}.")
    if schema.rows is not None:
        where = "`units` in the unit" if unit.tables is None else f"`rows` in the table {unit.tables.units!r}"
        faults.append(f"Expected {where} as the public count of linked rows, got `rows` of the schema. Move it.")
    return faults


def database_faults(schema: SchemaFacts, database: Database) -> list[str]:
    """Return the faults of a database."""
    unit = schema.unit
    assert unit is not None
    faults, tables = [], {database.units: unit.constant} | {b.name: b.columns for b in database.branches}
    for table, columns in tables.items():
        for name in columns:
            if name not in schema.released:
                faults.append(f"Expected columns of the table {table!r} to be released ones, got {name!r}.")
            elif any(name in other for known, other in tables.items() if known != table):
                faults.append(f"Expected each column in one table, got {name!r} in {table!r} and in another.")
    listed = {name for columns in tables.values() for name in columns}
    faults += [
        f"Expected every released column in one table, got {name!r} in none. List it there, or declare it as "
        "identifier."
        for name in schema.released
        if name not in listed
    ]
    faults += [fault for name in schema.released for fault in _kind_faults(schema, name)]
    for branch in database.branches:
        faults += _identifier_faults(schema, branch)
    faults += file_name_faults(schema, database, unit)
    if faults:
        return faults
    for branch in database.branches:
        faults += _branch_faults(schema, database, branch)
    faults += _total_faults(schema, database, tables)
    if schema.rows is not None:
        faults.append(f"Expected `rows` in the table {database.units!r}, got `rows` of the schema. Move it.")
    return faults


def file_name_faults(schema: SchemaFacts, database: Database, unit: Unit) -> list[str]:
    """Return the columns that go by one name in the file of their table: `visits.date` beside `date` of visits."""
    faults = []
    for table, columns in schema.table_columns.items():
        keys = (unit.column,) if table == database.units else database.branch(table).identifiers
        names = [*keys, *(own_name(table, name) for name in columns)]
        faults += [
            f"Expected columns of {table!r} that go by different names in its file, got {name!r} twice. Leave one out."
            for name in dict.fromkeys(names)
            if names.count(name) > 1
        ]
    return faults


def _total_faults(schema: SchemaFacts, database: Database, tables: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return the faults of columns that are totals of rows below."""
    faults, totals = [], set[str]()
    linking = {name for branch in database.branches for name in (branch.order, *(branch.within or ())) if name}
    for branch in database.branches:
        place = f"totals of the table {branch.name!r}"
        for total, column in branch.totals:
            whole, part = schema.columns.get(total), schema.columns.get(column)
            if total not in tables[branch.of] or column not in branch.columns or total in totals:
                faults.append(
                    f"Expected {place} to map columns of {branch.of!r}, each once, to its own, got {total!r}."
                )
            elif not isinstance(whole, Integer | Continuous) or type(whole) is not type(part):
                faults.append(f"Expected {place} to be numbers of one kind, got {total!r}: {column!r}.")
            elif not (
                whole.lower <= min(0, branch.max_rows * part.lower)  # type: ignore[union-attr] - of one kind
                and whole.upper >= max(0, branch.max_rows * part.upper)  # type: ignore[union-attr]
            ):
                faults.append(
                    f"Expected bounds of {total!r} that hold 0 and the sum of {branch.max_rows} of {column!r}, got "
                    "narrower ones. Widen them."
                )
            elif total in linking:
                faults.append(f"Expected {place} to be no order and no end of a span, got {total!r}.")
            totals.add(total)
    full = (database.units, *(branch.name for branch in database.branches if set(branch.columns) - totals))
    faults += [
        f"Expected a column of the table {name!r} that is no total, got none." for name in tables if name not in full
    ]
    return faults


def _kind_faults(schema: SchemaFacts, name: str) -> list[str]:
    kind = schema.columns[name]
    if isinstance(kind, TabularKind) and "nullable" in kind.__dataclass_fields__:  # type: ignore[attr-defined]
        return []
    return [
        f"Column {name!r}: expected a declared column of labels, numbers or dates in a database, got {kind.name}. "
        "Declare it, or leave it out (`kind: identifier`)."
    ]


def _identifier_faults(schema: SchemaFacts, branch: Branch) -> list[str]:
    return [
        f"Expected {name!r} of the table {branch.name!r}, which names rows, to be no released column. Take it out of "
        "`columns`, or declare it as identifier."
        for name in branch.identifiers
        if name in schema.released
    ]


def _branch_faults(schema: SchemaFacts, database: Database, branch: Branch) -> list[str]:
    place, faults = f"the table {branch.name!r}", []
    most = database.most_rows(branch.name)
    if most > MOST_LINKED:
        faults.append(f"Expected max_rows of {place} that leave a unit {MOST_LINKED} of its rows at most, got {most}.")
    if not branch.columns:
        faults.append(f"Expected {place} to have a column, got none. List one, or leave the table out.")
    if branch.order is not None and branch.order not in branch.columns:
        faults.append(f"Expected order of {place} to be one of its columns, got {branch.order!r}.")
        return faults
    faults += order_faults(schema, place, branch.order, ())
    faults += end_faults(schema, place, branch.ends, branch.columns)
    return faults if faults or branch.within is None else _within_faults(schema, database, branch, branch.within)


def _within_faults(schema: SchemaFacts, database: Database, branch: Branch, within: tuple[str, str]) -> list[str]:
    assert branch.order is not None
    place, order = f"within of the table {branch.name!r}", schema.columns[branch.order]
    above = {name for step in database.path(branch.of) for name in database.branch(step).columns}
    above |= set(() if schema.unit is None else schema.unit.constant)
    faults = []
    for name in within:
        kind = schema.columns.get(name)
        if name not in above:
            faults.append(f"Expected {place} to name columns of rows above, got {name!r}.")
        elif not isinstance(kind, NumericKind) or type(kind) is not type(order):
            faults.append(f"Expected {place} to name columns of the kind of {branch.order!r}, got {name!r}.")
        elif kind.nullable or getattr(order, "nullable", False):
            faults.append(f"Expected {place} and its order without missing values, got nullable ones. Declare them so.")
        elif isinstance(order, NumericKind) and not (
            order.bounds[0] <= kind.bounds[0] and kind.bounds[1] <= order.bounds[1]
        ):
            faults.append(
                f"Expected {branch.order!r} to have bounds that hold those of {name!r}, between which it lies, got "
                "narrower ones. Widen them."
            )
    return faults
