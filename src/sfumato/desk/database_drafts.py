"""A first schema of several tables: their tree, orders and numbers of rows are asked; facts are read off the records.

    table_keys     which columns name rows of another table
    table_tree     whose rows are the units, what lies below what, and which tables are lists
    table_order    by what rows follow each other, between which dates they lie, what ends them

Columns of linked rows cannot be discovered, so a draft of tables declares bounds and labels as they are in the records.
A name that several tables have is called `table.column`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.columns.kind import ColumnKind, TabularKind
from sfumato.columns.kinds import Categorical, Identifier, Integer
from sfumato.desk.drafting import Draft
from sfumato.desk.person_columns import person_columns
from sfumato.desk.proposals import Protection, proposals_of
from sfumato.desk.table_keys import KeyColumns
from sfumato.desk.table_order import TableOrders, most_rows, says_place
from sfumato.desk.table_survey import TableSurvey
from sfumato.desk.table_tree import TableTree
from sfumato.errors import DataError, PrivacyWarning, SchemaError
from sfumato.io.chunks import Source
from sfumato.records.database_records import DatabaseData
from sfumato.records.table_sources import TableSources
from sfumato.schema.linked_faults import MOST_LINKED
from sfumato.schema.reader import Reader
from sfumato.schema.schema import Schema
from sfumato.schema.tables import read_tables, unit_entry

_MOST_LABELS = 200  # rows of a list whose key is a column of labels
_ASKED = """\
ASKED, not known: the tree of tables was guessed from names of columns and tables, and from whose rows they name. The
guarantee protects a row of the first table with all rows below it. `max_rows`, `order`, `within` and `ends` were READ
OFF THE RECORDS: replace them by what is public. Rows beyond max_rows are not used."""


def draft_tables(tables: Mapping[str, Source], *, exact: bool = False, names_are_public: bool = False) -> Draft:
    """Draft a schema of several tables in a few passes over each. It is marked as a draft: fits refuse it.

    Privacy: none. The draft holds facts about the records, for the data holder's own eyes.

    Args:
        tables: by name.
        exact: also declare the number of units as it is, and release what seems to name people.
        names_are_public: as `draft_schema`.

    Raises:
        DataError: as `draft_schema`, or no table has the key of another one.
    """
    surveys = {name: TableSurvey.read(table, names_are_public=names_are_public) for name, table in tables.items()}
    keys = KeyColumns(surveys)
    tree = TableTree.of(keys)
    if tree.root is None:
        raise DataError(
            f"Expected one of the tables {', '.join(tables)} to have a key that another has, of a value of its own in "
            "nearly every row, by one name or as `patient_id` of a table patients, got none. Rename columns, or write "
            "`tables` of the schema by hand."
        )
    columns, notes, own = _columns(surveys, tree, exact=exact)
    tree = tree.without([link.below for link in tree.links if not own[link.below]])
    released = {column for names in own.values() for column in names}
    missing = {  # of columns and of keys
        name: texts
        for table, survey in surveys.items()
        for column, texts in survey.missing_of.items()
        for name in (column, f"{table}.{column}")
        if name in columns and (name not in released or name in own.get(table, ()))
    }
    first, *others = (table.reader for table in surveys.values())
    schema = None
    with contextlib.suppress(SchemaError):
        schema = Schema(
            columns=columns,
            unit=read_tables(_entries(surveys, keys, tree, own, exact=exact), released, []),
            draft=True,
            missing_of=missing,
            reader=first if all(other == first for other in others) else Reader(),
        )
    if schema is None or schema.unit is None:
        raise DataError(
            f"Expected tables with columns that can be described and name nobody, got {', '.join(tables)}. Write the "
            "schema by hand."
        )
    schema = _ordered(schema, {name: surveys[name].source for name in tree.names})
    left_out = tuple(f"{name}: {line}" for name, table in surveys.items() for line in table.left_out)
    return Draft(schema, notes, Protection(None, "\n".join([_ASKED, *tree.questions])), left_out)


def _columns(
    surveys: Mapping[str, TableSurvey], tree: TableTree, *, exact: bool
) -> tuple[dict[str, ColumnKind], dict[str, str], dict[str, list[str]]]:
    """Return kinds and comments of columns, and the columns that each table releases."""
    columns, notes, own = dict[str, ColumnKind](), dict[str, str](), dict[str, list[str]]()
    naming = {*tree.keys.values(), *tree.units.values(), *(link.by for link in tree.links)}
    tables = Counter(column for name in tree.names for column in surveys[name].guesses)
    for name in tree.names:
        table, own[name] = surveys[name], []
        people = {} if exact else person_columns(table.source, table.columns)
        own_keys = {tree.keys.get(name), tree.units.get(name), *(link.by for link in tree.links if link.below == name)}
        proposals = {} if exact else proposals_of(table.columns, table.guesses, people)
        for column, (guess, reason) in table.guesses.items():
            kind, note = guess, reason
            of_list = tree.lists.get((name, column))
            if column in own_keys or (column in naming and tables[column] > 1):
                kind, note = Identifier(), "names rows: not released"
            elif of_list is not None:
                kind, note = _label(table, column), f"names rows of {of_list}"
            elif column in proposals and isinstance(proposals[column][0], Identifier):
                kind, note = proposals[column]
            elif isinstance(kind, Categorical) and table.columns[column].is_number and says_place(column):
                kind, note = _whole(table, column), "few whole numbers, whose name says that they are times or places"
            elif not isinstance(kind, TabularKind) or "nullable" not in kind.__dataclass_fields__:  # type: ignore[attr-defined]
                kind, note = Identifier(), f"{kind.name} is not modelled in several tables: not released"
            place = f"{name}.{column}" if tables[column] > 1 and kind.is_released else column
            if place not in columns:
                columns[place], notes[place] = kind, table.note(column, note)
                own[name] += [place] if kind.is_released else []
    return columns, notes, own


def _label(table: TableSurvey, column: str) -> ColumnKind:
    """Return the kind of a column that names rows of a list: labels, if they are few."""
    distinct, kind = table.columns[column].distinct, table.guesses[column][0]
    if isinstance(kind, Categorical):
        return kind
    if distinct is None or len(distinct) > _MOST_LABELS:
        return Identifier()
    labels = sorted(distinct, key=float) if table.columns[column].is_number else sorted(distinct)
    return Categorical.of_text(labels, nullable=table.columns[column].has_missing)


def _whole(table: TableSurvey, column: str) -> Integer:
    survey = table.columns[column]
    assert survey.lowest is not None
    assert survey.highest is not None
    return Integer(lower=int(survey.lowest), upper=int(survey.highest), nullable=survey.has_missing)


def _entries(
    surveys: Mapping[str, TableSurvey],
    keys: KeyColumns,
    tree: TableTree,
    own: Mapping[str, list[str]],
    *,
    exact: bool,
) -> dict[str, dict[str, Any]]:
    """Return the entries of `tables` in a schema document."""
    root = str(tree.root)
    entries: dict[str, dict[str, Any]] = {root: {"key": tree.keys[root], "columns": own[root]}}
    if exact:
        entries[root]["rows"] = surveys[root].n_rows
    most = {root: 1}
    for link in tree.links:
        named = keys.hashes(link.below, *((link.by,) if link.unit is None else (link.unit, link.by)))
        rows = min(most_rows(np.unique(named[named != 0], return_counts=True)[1]), MOST_LINKED // most[link.above])
        most[link.below] = most[link.above] * max(rows, 1)
        entry: dict[str, Any] = {"of": link.above, "max_rows": max(rows, 1), "columns": own[link.below]}
        if link.by != link.key:
            entry["by"] = link.by
        if link.below in tree.keys:
            entry["key"] = tree.keys[link.below]
        if link.below in tree.units and link.above != root:
            entry["unit"] = tree.units[link.below]
        entries[link.below] = entry
    if len(tree.links) == 1 and not {"key", "unit"} & set(entries[tree.links[0].below]):  # such a table says no more
        del entries[tree.links[0].below]["columns"]
    return entries


def _ordered(schema: Schema, tables: Mapping[str, Source]) -> Schema:
    """Return a draft with what records show of the order of rows, as far as it goes together."""
    assert schema.unit is not None
    entries = unit_entry(schema.unit)["tables"]
    apart = {name: dict(entry) for name, entry in entries.items()}
    for name, entry in apart.items():  # a single table, too, is read as one of several
        if "of" in entry and "columns" not in entry:
            entry |= {"columns": list(schema.table_columns[name]), "unit": entry.get("by", schema.unit.column)}
    read = dataclasses.replace(schema, unit=read_tables(apart, schema.released, []))
    with warnings.catch_warnings(action="ignore", category=PrivacyWarning):  # which columns name units was found
        orders = TableOrders(DatabaseData(TableSources.of(tables, read), read))
    for name, order in orders.of.items():
        if order.order is None:
            continue
        for more in ({"order": order.order}, {"within": order.within}, {"ends": dict(order.ends)}):
            schema = _with(schema, entries, name, {key: value for key, value in more.items() if value})
    for rule in orders.rules():
        with contextlib.suppress(SchemaError):
            schema = dataclasses.replace(schema, rules=(*schema.rules, rule))
    return schema


def _with(schema: Schema, entries: dict[str, dict[str, Any]], name: str, more: Mapping[str, Any]) -> Schema:
    """Return a schema with more said of a table, or as it was where that cannot be; entries follow."""
    within = more.get("within") and "columns" not in entries[name]
    entry = {**entries[name], **more} | ({"columns": list(schema.table_columns[name])} if within else {})
    faults: list[str] = []
    with contextlib.suppress(SchemaError):
        unit = read_tables({**entries, name: entry}, schema.released, faults)
        if unit is not None and not faults:
            schema = dataclasses.replace(schema, columns=_widened(schema, entry), unit=unit)
            entries[name] = entry
    return schema


def _widened(schema: Schema, entry: Mapping[str, Any]) -> dict[str, ColumnKind]:
    """Return the columns with an order whose bounds hold those between which it lies."""
    columns = dict(schema.columns)
    if entry.get("within"):
        kinds: list[Any] = [columns[name] for name in (entry["order"], *entry["within"])]
        lower, upper = min(kind.lower for kind in kinds), max(kind.upper for kind in kinds)
        columns[entry["order"]] = dataclasses.replace(kinds[0], lower=lower, upper=upper)
    return columns
