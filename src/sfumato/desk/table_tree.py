"""A guess at the tree of several tables: whose rows are the units, and which table lies below which. Not private.

    the units            rows of persons or households, by name; else of a table that is below none, no list of a few
    a table of units     has the key of every other one below it, or of one that has
    keys of several      below the lowest
    a list               wards, products, schools: above the table of units, or beside it

A column that names rows of a list is one of labels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from sfumato.columns.roles import role_of
from sfumato.desk.table_keys import KeyColumns, Link, names_people_of, names_things_of
from sfumato.desk.table_survey import TableSurvey

_FEW = 100  # rows: no population of units
_MANY = 10  # rows of each in another table, from which few rows are a list


@dataclass(frozen=True, slots=True)
class TableTree:
    """A guess at the tree of tables.

    Attributes:
        root: the table of units; None where no table has a key of another.
        keys: the column that names a row, of each table that has others below it.
        links: of each table below another one, from the root down.
        units: the column that names the unit, of each table that has it.
        lists: the columns that name rows of tables which are no part of the tree, with these.
        questions: one line for each doubt.
    """

    root: str | None
    keys: Mapping[str, str]
    links: tuple[Link, ...]
    units: Mapping[str, str]
    lists: Mapping[tuple[str, str], str]
    questions: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The tables of the tree, the root first."""
        return (str(self.root), *(link.below for link in self.links))

    def without(self, names: Collection[str]) -> TableTree:
        """Return the tree without some tables, which have no column to release, and those below them."""
        gone = set(names)
        for link in self.links:
            gone |= {link.below} if link.above in gone else set()
        lines = tuple(f"NOT IN THE TREE: {name}, of which nothing would be released" for name in sorted(gone))
        links = tuple(link for link in self.links if link.below not in gone)
        keys = {name: key for name, key in self.keys.items() if name not in gone}
        return replace(self, keys=keys, links=links, questions=(*self.questions, *lines))

    @classmethod
    def of(cls, columns: KeyColumns) -> TableTree:
        """Guess the tree of some tables."""
        links = _without_circles(columns.links(), columns)
        root = _root(columns, links)
        if root is None:
            return cls(None, {}, (), {}, {}, ())
        unit = next(link.key for link in links if link.above == root)
        below = _below(root, links)
        inside = [link for link in links if link.above in below and link.below in below]
        inside += [link for link in columns.within_units(inside, root) if link not in inside]
        inside = _without_circles(inside, columns)
        above = defaultdict[str, list[Link]](list)
        for link in inside:
            above[link.below].append(link)
        placed = [_lowest(own, above) for name, own in above.items() if name != root]
        placed.sort(key=lambda link: (_depth(link.below, above), link.below))
        keys = {link.above: link.key for link in placed} | {root: unit}
        lists = {(link.below, link.by): link.above for link in links if link.above not in below}
        questions = _questions(columns.tables, root, placed, inside, lists)
        units = {link.below: link.by for link in inside if link.above == root}
        lists = {key: name for key, name in lists.items() if key[0] in below}
        return cls(root, keys, tuple(placed), units, lists, questions)


def _without_circles(links: Iterable[Link], columns: KeyColumns) -> list[Link]:
    """Return links of which none leads back; those whose key repeats below come first."""
    free: list[Link] = []
    for link in sorted(links, key=lambda link: columns.names_rows_of(link.below, link.by)):
        if link.above not in _below(link.below, free):
            free.append(link)
    return free


def _below(name: str, links: Iterable[Link]) -> set[str]:
    """Return a table and all below it."""
    links, reached = list(links), {name}
    while further := {link.below for link in links if link.above in reached} - reached:
        reached |= further
    return reached


def _depth(name: str, above: Mapping[str, list[Link]]) -> int:
    return max((1 + _depth(link.above, above) for link in above.get(name, ())), default=0)


def _lowest(own: list[Link], above: Mapping[str, list[Link]]) -> Link:
    """Return the link to the lowest table above; of tables that one column names rows of, the highest."""
    highest = {by: min(_depth(link.above, above) for link in own if link.by == by) for by in {link.by for link in own}}
    some = [link for link in own if _depth(link.above, above) == highest[link.by]]
    return max(some, key=lambda link: (_depth(link.above, above), link.unit is None))


def _root(columns: KeyColumns, links: list[Link]) -> str | None:
    """Return the table of units: the best of those below none, or, where that is a list, of those below it."""
    keys = {link.above: link.key for link in links}
    tables = columns.tables

    def rank(name: str) -> tuple[bool, bool, int, int]:
        of_people = _of_people(name, keys[name])
        return of_people, not _is_list(name, keys[name], links, tables), len(_below(name, links)), rows_of(name)

    def rows_of(name: str) -> int:
        return tables[name].n_rows or 0

    lowest = {link.below for link in links}
    some = [name for name in tables if name in keys and name not in lowest]
    while some:
        root = max(some, key=rank)
        lower = [link.below for link in links if link.above == root and link.below in keys]
        if _of_people(root, keys[root]) or not _is_list(root, keys[root], links, tables) or not lower:
            return root
        some = lower
    return None


def _of_people(name: str, key: str) -> bool:
    return names_people_of(name) or role_of(key) in ("person", "household")


def _is_list(name: str, key: str, links: list[Link], tables: Mapping[str, TableSurvey]) -> bool:
    """Whether a table is a list of things, or of so few rows, with so many of each below, that it is no population."""
    rows = tables[name].n_rows or 0
    most = max(tables[link.below].n_rows or 0 for link in links if link.above == name)
    return names_things_of(name) or names_things_of(key) or (rows <= _FEW and most >= _MANY * rows)


def _questions(
    tables: Mapping[str, TableSurvey],
    root: str,
    placed: list[Link],
    links: list[Link],
    lists: Mapping[tuple[str, str], str],
) -> tuple[str, ...]:
    lines = []
    for link in placed:
        of_unit = "" if link.unit is None else f", of one {link.unit}"
        lines.append(f"{link.below} is of {link.above}: {link.by} says of which row{of_unit}")
    names = {root, *(link.below for link in placed)}
    for link in placed:
        others = [other for other in links if other.below == link.below and other.by != link.by and other.above != root]
        lines += [
            f"{other.below} has {other.by} of {other.above}, too: a table is of one"
            for other in others
            if other.above not in _above(link.above, placed)
        ]
    lines += [
        f"{above} is taken for a list, not for units: {by} of {below} is a column of labels. Publish {above} with "
        "the release if it is public. If you protect its rows, write the tree by hand"
        for (below, by), above in lists.items()
        if below in names
    ]
    listed = set(lists.values())
    lines += [
        f"NOT IN THE TREE: {name}, which shares no key with it by name and type: say its `of` and `by`, or leave it out"
        for name in tables
        if name not in names and name not in listed
    ]
    return tuple(lines)


def _above(name: str, placed: list[Link]) -> set[str]:
    """Return a table and those above it."""
    above = {link.below: link.above for link in placed}
    names = {name}
    while name in above:
        name = above[name]
        names.add(name)
    return names
