"""A first schema of several tables: their tree is asked, line by line, and facts are read off the records.

    a column of one name and one type in two tables, whose values differ in nearly every row of one    its key
    a table that has the key of another                                                               lies below it
    a table that has keys of several                                                                  below the lowest

Which values differ is judged for the holder's screen alone, as in the draft of one table. Columns of linked rows cannot
be discovered, so a draft of tables declares bounds and labels as they are in the records.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.columns.kind import TabularKind
from sfumato.columns.kinds import Categorical, ColumnKind, Identifier, Integer
from sfumato.desk.drafting import Draft
from sfumato.desk.person_columns import person_columns
from sfumato.desk.proposals import UNIT_ROWS, Protection, distinct_share, proposals_of
from sfumato.desk.table_survey import TableSurvey
from sfumato.errors import DataError, SchemaError
from sfumato.io.chunks import Source
from sfumato.schema.linked_faults import MOST_LINKED
from sfumato.schema.reader import Reader
from sfumato.schema.schema import Schema
from sfumato.schema.tables import read_tables

_NEARLY = 0.9  # of the values of a key differ: a table of people may have some twice
_ASKED = """\
ASKED, not known: the tree of tables was guessed from columns of one name and type, and from how often their values
occur. The guarantee protects a row of the first table with all rows below it. max_rows is a proposal of ours, not
read off the records: choose it from what is public; rows beyond it are not used. Add `order: COLUMN` to a table whose
rows follow each other."""


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
    released = {column for names in own.values() for column in names}
    missing = {  # of columns and of keys
        column: texts
        for name, table in surveys.items()
        for column, texts in table.missing_of.items()
        if column not in released or column in own.get(name, ())
    }
    schema = None
    first, *others = (table.reader for table in surveys.values())
    with contextlib.suppress(SchemaError):
        schema = Schema(
            columns=columns,
            unit=read_tables(_entries(surveys, tree, own, exact=exact), [], []),
            draft=True,
            missing_of=missing,
            reader=first if all(other == first for other in others) else Reader(),
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
        people = {} if exact else person_columns(table.source, table.columns)
        proposals = {} if exact else proposals_of(table.columns, table.guesses, people)
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
        if len(tree.links) > 1:  # a table alone says no more
            entry["columns"] = own[link.below]
        if link.below in {other.above for other in tree.links}:
            entry["key"] = tree.keys[link.below]
        if link.above != root and unit in surveys[link.below].columns:
            entry["unit"] = unit
        entries[link.below] = entry
    return entries


@dataclass(frozen=True, slots=True)
class Link:
    """A table whose rows name rows of another one.

    Attributes:
        below: the table.
        above: the other.
        by: the column, in both.
    """

    below: str
    above: str
    by: str


@dataclass(frozen=True, slots=True)
class KeyTree:
    """A guess at the tree of tables.

    Attributes:
        root: the table of units; None where no table has a key of another.
        keys: the column that names a row, of each table that has others below it.
        links: of each table below another one, from the root down.
        questions: one line for each doubt.
    """

    root: str | None
    keys: Mapping[str, str]
    links: tuple[Link, ...]
    questions: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The tables of the tree, the root first."""
        return (str(self.root), *(link.below for link in self.links))

    def without(self, names: Collection[str]) -> KeyTree:
        """Return the tree without some tables, which have no column to release, and those below them."""
        gone = set(names)
        for link in self.links:
            gone |= {link.below} if link.above in gone else set()
        lines = tuple(f"NOT IN THE TREE: {name}, of which nothing would be released" for name in sorted(gone))
        links = tuple(link for link in self.links if link.below not in gone)
        return KeyTree(self.root, self.keys, links, (*self.questions, *lines))

    @classmethod
    def of(cls, tables: Mapping[str, TableSurvey]) -> KeyTree:
        """Guess the tree of some tables."""
        links = _without_circles(_links(tables), tables)
        above = defaultdict[str, list[Link]](list)
        for link in links:
            above[link.below].append(link)
        keys = {link.above: link.by for link in links}
        chosen = {name: max(above[name], key=lambda link: _depth(link.above, above)) for name in above}
        roots = Counter({name: 0 for name in sorted(keys) if name not in chosen})
        roots.update(_root(name, chosen) for name in chosen)
        root = next((name for name, _ in roots.most_common(1)), None)
        placed = [link for name, link in chosen.items() if _root(name, chosen) == root]
        placed.sort(key=lambda link: (_depth(link.below, above), link.below))
        return cls(root, keys, tuple(placed), tuple(_questions(tables, root, placed, above)))


def _links(tables: Mapping[str, TableSurvey]) -> list[Link]:
    """Return the tables that have the key of another one; of each table, the key that most others have."""
    holders = defaultdict[tuple[str, bool], list[str]](list)
    for name, table in tables.items():
        for column, (kind, _) in table.guesses.items():
            if isinstance(kind, Identifier | Integer | Categorical) and table.columns[column].n_values:
                holders[column, table.columns[column].is_number].append(name)
    links = []
    for (column, _), names in holders.items():
        shares = {name: distinct_share(tables[name].columns[column]) for name in names}
        owner = max(names, key=lambda name: (shares[name] >= _NEARLY, tables[name].columns[column].n_values))
        if shares[owner] >= _NEARLY:
            links += [Link(name, owner, column) for name in names if name != owner]
    uses = Counter((link.above, link.by) for link in links)
    best = {above: by for (above, by), _ in reversed(uses.most_common())}
    return [link for link in links if best[link.above] == link.by]


def _without_circles(links: list[Link], tables: Mapping[str, TableSurvey]) -> list[Link]:
    """Return links of which none leads back; those whose key repeats below come first."""
    free: list[Link] = []
    for link in sorted(links, key=lambda link: distinct_share(tables[link.below].columns[link.by])):
        reached, more = {link.above}, True
        while more:
            further = {other.above for other in free if other.below in reached} - reached
            reached, more = reached | further, bool(further)
        if link.below not in reached:
            free.append(link)
    return free


def _depth(name: str, above: Mapping[str, list[Link]]) -> int:
    return max((1 + _depth(link.above, above) for link in above.get(name, ())), default=0)


def _root(name: str, chosen: Mapping[str, Link]) -> str:
    return _root(chosen[name].above, chosen) if name in chosen else name


def _questions(
    tables: Mapping[str, TableSurvey], root: str | None, placed: list[Link], above: Mapping[str, list[Link]]
) -> list[str]:
    lines = [f"{link.below} is of {link.above}: {link.by} says of which row" for link in placed]
    names = {root, *(link.below for link in placed)}
    for link in placed:
        others = [other for other in above[link.below] if other != link and other.above != root]
        lines += [f"{other.below} has {other.by} of {other.above}, too: a table is of one" for other in others]
    lines += [
        f"NOT IN THE TREE: {name}, which shares no key with it by name and type: say its `of` and `by`, or leave it out"
        for name in tables
        if name not in names
    ]
    return lines
