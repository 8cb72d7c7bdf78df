"""Which columns of several tables name rows of another one, by their names and values. Not private.

    patient_id in two tables                 a name in both
    patient_id beside `id` of patients.csv   the name of the other table
    visit 1, 2, 3 of each patient            a key of two columns: it names a row of a patient alone

For the holder's own screen. Keys are compared as text, by a hash of 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from sfumato.columns.kinds import Categorical, Identifier, Integer
from sfumato.columns.roles import is_plural, role_of, stem_of, words_of
from sfumato.desk.person_columns import THINGS, cell_texts
from sfumato.desk.proposals import distinct_share
from sfumato.desk.table_survey import TableSurvey
from sfumato.io.chunks import Source

NEARLY = 0.9  # of the values of a key differ: a table of people may have some twice
_MOST_ALONE = 0.5  # of values that name no row, under one name in both tables
_MOST_ODD = 0.1  # under different names
_NEARLY_ALL = 0.99  # of keys of two columns


class Link(NamedTuple):
    """A table whose rows name rows of another one.

    Attributes:
        below: the table.
        above: the other.
        by: its column.
        key: that of the other.
        unit: the column in both that names the unit, in which alone the key is one; None where it is one by itself.
    """

    below: str
    above: str
    by: str
    key: str
    unit: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class KeyColumns:
    """The columns of some tables that may name rows.

    Attributes:
        tables: what they show.
        cells: hashes of cells that were read, by table and column, 0 where one is missing.
    """

    tables: Mapping[str, TableSurvey]
    cells: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)

    def of(self, name: str) -> list[str]:
        """Return the columns of a table that may name rows: texts and whole numbers."""
        table = self.tables[name]
        return [
            column
            for column, (kind, _) in table.guesses.items()
            if isinstance(kind, Identifier | Integer | Categorical) and table.columns[column].n_distinct > 1
        ]

    def names_rows_of(self, name: str, column: str) -> bool:
        """Whether nearly every row has a value of its own."""
        return distinct_share(self.tables[name].columns[column]) >= NEARLY

    def hashes(self, name: str, *columns: str) -> np.ndarray:
        """Return a hash of each row's cells, shape (rows,); 0 where one is missing."""
        absent = [column for column in columns if (name, column) not in self.cells]
        if absent:
            read = _read(self.tables[name].source, absent)
            self.cells.update({(name, column): read[column] for column in absent})
        first, *others = (self.cells[name, column] for column in columns)
        for other in others:
            mixed = first * np.uint64(0x9E3779B97F4A7C15) + other
            first = np.where((first == 0) | (other == 0), np.uint64(0), mixed)
        return first

    def links(self) -> list[Link]:
        """Return the tables that have the key of another one; of each of these, the key that most others have."""
        some = [link for name in self.tables for other in self.tables for link in self._between(name, other)]
        some = [link for link in some if not self._is_own(link) or self._is_same(link)]
        uses = pd.Series([(link.above, link.key) for link in some], dtype=object).value_counts()
        links, best = list[Link](), dict[tuple[str, str], Link]()
        for link in some:
            most = best.setdefault((link.below, link.above), link)
            if uses[(link.above, link.key)] > uses[(most.above, most.key)]:
                best[link.below, link.above] = link
        keys = {above: key for (above, key) in reversed(list(uses.index))}
        for link in best.values():
            back = best.get((link.above, link.below))
            if link.key == keys[link.above] and (back is None or self._is_above(link)):
                links.append(link)
        return links

    def _between(self, below: str, above: str) -> list[Link]:
        """Return the columns of a table that name rows of another one."""
        if below == above:
            return []
        keys = [key for key in self.of(above) if self.names_rows_of(above, key)]
        pairs = [(by, key) for key in keys for by in self.of(below) if _alike(by, key, above)]
        links = []
        for by, key in sorted(pairs, key=lambda pair: pair[0] != pair[1]):
            odd = self._odd(below, (by,), above, (key,))
            if odd <= (_MOST_ALONE if by == key else _MOST_ODD):
                links.append(Link(below, above, by, key))
        return links

    def _is_own(self, link: Link) -> bool:
        """Whether it may be a number of the rows of either table, called `id` in both."""
        return not stem_of(link.by) and self.names_rows_of(link.below, link.by)

    def _is_same(self, link: Link) -> bool:
        """Whether two tables have nearly the same keys: else `id` of both is a number of each."""
        below, above, by, key, _ = link
        return max(self._odd(below, (by,), above, (key,)), self._odd(above, (key,), below, (by,))) <= _MOST_ODD

    def _is_above(self, link: Link) -> bool:
        """Whether of two tables whose rows name each other's it is this one that lies above."""
        order = list(self.tables)
        above, below = (
            (self.tables[name].n_rows or 0, names_people_of(name), -order.index(name))
            for name in (link.above, link.below)
        )
        repeats = distinct_share(self.tables[link.below].columns[link.by]) < NEARLY
        return repeats or above > below

    def _odd(self, below: str, by: Iterable[str], above: str, key: Iterable[str]) -> float:
        """Return the share of a table's rows, of those that name one, whose row is not there."""
        rows = self.hashes(below, *by)
        rows = rows[rows != 0]
        return 1.0 if not rows.size else 1 - float(np.isin(rows, self.hashes(above, *key)).mean())

    def within_units(self, direct: Iterable[Link], root: str) -> list[Link]:
        """Return links by a key that names a row of one unit alone, among tables that are below that of units."""
        units = {link.below: link.by for link in direct if link.above == root}
        links = list[Link]()
        for above, unit in units.items():
            if self.names_rows_of(above, unit):  # a row a unit
                continue
            for key in self.of(above):
                one = _share_of_different(self.hashes(above, unit, key)) >= _NEARLY_ALL
                if not one or key == unit or self.names_rows_of(above, key):
                    continue
                links += [
                    Link(below, above, key, key, own)
                    for below, own in units.items()
                    if below != above and key in self.of(below)
                    if _share_of_different(self.hashes(below, own, key)) < NEARLY
                    and self._odd(below, (own, key), above, (unit, key)) <= _MOST_ODD
                ]
        return links


def names_people_of(name: str) -> bool:
    """Whether a table's name says that its rows are persons or households.

    Example:
        >>> names_people_of("patients"), names_people_of("Kunden"), names_people_of("wards")
        (True, True, False)
    """
    return role_of(f"{name} id") in ("person", "household")


def names_things_of(name: str) -> bool:
    """Whether a name says that what it has are no persons: wards, products, schools.

    Example:
        >>> names_things_of("wards"), names_things_of("products"), names_things_of("patients")
        (True, True, False)
    """
    return any(is_plural(word, thing) for word in [*words_of(name), stem_of(name)] for thing in THINGS - {"code"})


def _alike(by: str, key: str, above: str) -> bool:
    """Whether the name of a column may be that of a key of another table."""
    stem = stem_of(by)
    return by == key or (bool(stem) and any(is_plural(other, stem) for other in (stem_of(key), stem_of(above))))


def _share_of_different(hashes: np.ndarray) -> float:
    some = hashes[hashes != 0]
    return np.unique(some).size / max(some.size, 1)


def _read(source: Source, columns: list[str]) -> dict[str, np.ndarray]:
    """Return a hash of each cell of some columns."""
    parts = {name: [np.empty(0, np.uint64)] for name in columns}
    for chunk in source.chunks(columns):
        for name, cells in chunk.columns.items():
            coded = cell_texts(cells).dictionary_encode()
            words = np.array(coded.dictionary.to_pylist(), dtype=object)
            hashes = np.zeros(words.size + 1, dtype=np.uint64)
            hashes[:-1] = np.where(words == "", 0, pd.util.hash_array(words, categorize=False)) if words.size else 0
            parts[name].append(hashes[coded.indices.fill_null(words.size).to_numpy(zero_copy_only=False)])
    return {name: np.concatenate(part) for name, part in parts.items()}
