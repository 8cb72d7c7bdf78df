"""A first schema of several tables: keys and tree are asked, and facts read off the records.

Columns of linked rows cannot be discovered, so a draft of tables declares bounds and labels as they are in the records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from sfumato.columns.kind import TabularKind
from sfumato.columns.kinds import ColumnKind, Identifier
from sfumato.desk.drafting import Draft
from sfumato.desk.key_trees import KeyTree
from sfumato.desk.proposals import UNIT_ROWS, Protection, proposals_of
from sfumato.desk.table_survey import TableSurvey
from sfumato.errors import DataError, SchemaError
from sfumato.io.chunks import Source
from sfumato.schema.linked_faults import MOST_LINKED
from sfumato.schema.reader import Reader
from sfumato.schema.schema import Schema
from sfumato.schema.tables import read_tables

_ASKED = """\
ASKED, not known: the tree of tables was guessed from columns of one name and type, and from how often their values occur.
The guarantee protects a row of the first table with all rows below it. max_rows is a proposal of ours, not read off the
records: choose it from what is public; rows beyond it are not used. Add `order: COLUMN` to a table whose rows follow each
other."""


def draft_tables(tables: Mapping[str, Source], *, exact: bool = False, names_are_public: bool = False) -> Draft:
    """Draft a schema of several tables in one pass over each. It is marked as a draft: fits refuse it.

    Privacy: none. The draft holds facts about the records, for the data holder's own eyes.

    Args:
        tables: by name.
        exact: also declare the number of units as it is, and release what seems to name people.
        names_are_public: as `draft_schema`.

    Raises:
        DataError: as `draft_schema`, or no table has the key of another one.
    """
    surveys = {name: TableSurvey.read(table, names_are_public=names_are_public) for name, table in tables.items()}
    tree = KeyTree.of(surveys)
    if tree.root is None:
        raise DataError(
            f"Expected one of the tables {', '.join(tables)} to have a key that another has by the same name and type, "
            "got none. Rename columns, or write `tables` of the schema by hand."
        )
    columns, notes, own = _columns(surveys, tree, exact=exact)
    tree = tree.without([link.below for link in tree.links if not own[link.below]])
    schema = None
    with contextlib.suppress(SchemaError):
        schema = Schema(
            columns=columns,
            unit=read_tables(_entries(surveys, tree, own, exact=exact), []),
            draft=True,
            missing=_missing(surveys),
            reader=_reader(surveys),
        )
    if schema is None or schema.unit is None:
        raise DataError(
            f"Expected tables with columns that can be described and name nobody, got {', '.join(tables)}. Write the "
            "schema by hand."
        )
    left_out = tuple(f"{name}: {line}" for name, table in surveys.items() for line in table.left_out)
    return Draft(schema, notes, Protection(None, "\n".join([_ASKED, *tree.questions])), left_out)


def _columns(
    surveys: Mapping[str, TableSurvey], tree: KeyTree, *, exact: bool
) -> tuple[dict[str, ColumnKind], dict[str, str], dict[str, list[str]]]:
    """Return kinds and comments of columns, and the columns that each table releases."""
    columns, notes, own = dict[str, ColumnKind](), dict[str, str](), dict[str, list[str]]()
    for name in tree.names:
        table, own[name] = surveys[name], []
        proposals = {} if exact else proposals_of(table.columns, table.guesses)
        for column, (guess, reason) in table.guesses.items():
            kind, note = guess, reason
            if column in tree.keys.values():
                kind, note = Identifier(), "names rows: not released"
            elif column in proposals and isinstance(proposals[column][0], Identifier):
                kind, note = proposals[column]
            elif not isinstance(kind, TabularKind) or "nullable" not in kind.__dataclass_fields__:  # type: ignore[attr-defined]
                kind, note = Identifier(), f"{kind.name} is not modelled in several tables: not released"
            if column not in columns:
                columns[column], notes[column] = kind, table.note(column, note)
                own[name] += [column] if kind.is_released else []
            elif kind.is_released:
                notes[column] += f"; not released of {name}: a column is of one table. Rename it there"
    return columns, notes, own


def _entries(
    surveys: Mapping[str, TableSurvey], tree: KeyTree, own: Mapping[str, list[str]], *, exact: bool
) -> dict[str, dict[str, Any]]:
    """Return the entries of `tables` in a schema document."""
    root, unit = str(tree.root), tree.keys[str(tree.root)]
    entries: dict[str, dict[str, Any]] = {root: {"key": unit, "columns": own[root]}}
    if exact:
        entries[root]["rows"] = surveys[root].n_rows
    most = {root: 1}
    for link in tree.links:
        rows = UNIT_ROWS if most[link.above] * UNIT_ROWS <= MOST_LINKED else 1
        most[link.below] = most[link.above] * rows
        entry: dict[str, Any] = {"of": link.above, "max_rows": rows}
        if len(tree.links) > 1:  # two tables alone say no more
            entry["columns"] = own[link.below]
        if link.below in {other.above for other in tree.links}:
            entry["key"] = tree.keys[link.below]
        if link.above != root and unit in surveys[link.below].columns:
            entry["unit"] = unit
        entries[link.below] = entry
    return entries


def _missing(surveys: Mapping[str, TableSurvey]) -> tuple[str, ...]:
    """Return texts for no value in some table that are no values of another one."""
    answers = {
        name: {text for column in table.columns.values() for text in column.distinct or ()}
        for name, table in surveys.items()
    }
    tokens = dict.fromkeys(token for table in surveys.values() for token in table.missing)
    return tuple(
        token
        for token in tokens
        if all(token in table.missing or token not in answers[name] for name, table in surveys.items())
    )


def _reader(surveys: Mapping[str, TableSurvey]) -> Reader:
    """Return how the cells of all tables are written, where it is the same."""
    first, *others = (table.reader for table in surveys.values())
    return first if all(other == first for other in others) else Reader()
