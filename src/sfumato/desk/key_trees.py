"""The tree of tables that their columns suggest, for a draft: it is asked, line by line, and decides nothing.

    a column of one name and one type in two tables, whose values differ in nearly every row of one    its key
    a table that has the key of another                                                               lies below it
    keys of several others                                                                            below the lowest

Which values differ is judged for the holder's screen alone, as in the draft of one table.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sfumato.columns.kinds import Categorical, Identifier, Integer
from sfumato.desk.proposals import distinct_share
from sfumato.desk.table_survey import TableSurvey

_NEARLY = 0.9  # of the values of a key differ: a table of people may have some twice


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
    kept: list[Link] = []
    for link in sorted(links, key=lambda link: distinct_share(tables[link.below].columns[link.by])):
        reached, more = {link.above}, True
        while more:
            further = {other.above for other in kept if other.below in reached} - reached
            reached, more = reached | further, bool(further)
        if link.below not in reached:
            kept.append(link)
    return kept


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
