"""Keys of several tables: rows that name no row above, keys that occur twice, rows beyond those that count.

For the data holder's own screen: it counts records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from sfumato.records.table_sources import TableSources
from sfumato.records.unit_names import NOBODY, RowKeys, UnitNumbers
from sfumato.schema.database import Branch
from sfumato.schema.schema import Schema

KeyProblem: TypeAlias = Literal["no_key", "repeated", "orphans", "no_rows", "too_many"]


@dataclass(frozen=True, slots=True)
class KeyCount:
    """A problem of keys.

    Attributes:
        column: `table.column`.
        problem: its kind.
        becomes: the fate of the rows or keys.
        count: of these.
    """

    column: str
    problem: KeyProblem
    becomes: str
    count: int


def key_problems(source: TableSources, schema: Schema) -> Iterator[KeyCount]:
    """Yield what is wrong with the keys of a database, level by level; counts may be 0.

    Memory: a number for each key and each row.

    Raises:
        DataError: a table cannot be read.
    """
    levels = _Levels(schema, source)
    yield from levels.units(source.database.units, source.key)
    for branch in source.database.branches:
        yield from levels.branch(branch)


class _Levels:
    """The rows of each table that others name, as they are read from above down."""

    def __init__(self, schema: Schema, source: TableSources) -> None:
        self._schema, self._tables, self._branches = schema, source.tables, source.database.branches
        self._keys, self._owners = dict[str, RowKeys](), dict[str, np.ndarray]()
        self._units = UnitNumbers(())

    def units(self, name: str, column: str) -> Iterator[KeyCount]:
        """Read the table of units."""
        table = self._tables[name]
        self._units = UnitNumbers((*self._schema.missing_in(table), ""))
        parts = [self._units.numbers(chunk.columns[column]) for chunk in table.chunks([column])]
        numbers, each = _whole(parts), np.arange(len(self._units))
        self._keys[name], self._owners[name] = RowKeys(self._units, each, each, self._units), each
        place = f"{name}.{column}"
        yield KeyCount(place, "no_key", "left out", int((numbers == NOBODY).sum()))
        becomes = "one unit, of the row that a hash of its contents chooses"
        yield KeyCount(place, "repeated", becomes, _repeated(numbers[numbers != NOBODY]))

    def branch(self, branch: Branch) -> Iterator[KeyCount]:
        """Read a table of rows."""
        table, keys = self._tables[branch.name], self._keys[branch.of]
        own = UnitNumbers((*self._schema.missing_in(table), ""))
        parts: list[tuple[np.ndarray, ...]] = []
        for chunk in table.chunks(list(branch.identifiers)):
            none = keys.numbers.missing(chunk.columns[branch.by])
            number = none if branch.key is None else own.numbers(chunk.columns[branch.key])
            parts.append((keys.rows(chunk, branch), none, number))
        above, none, numbers = (_whole([part[i] for part in parts]) for i in range(3))
        named = above != NOBODY
        sizes = np.bincount(above[named], minlength=self._owners[branch.of].size)
        counted = self._owners[branch.of] != NOBODY
        place = f"{branch.name}.{branch.by}"
        yield KeyCount(place, "no_key", "left out", int(none.sum()))
        yield KeyCount(place, "orphans", "left out: no row above has their key", int((~named & (none == 0)).sum()))
        yield KeyCount(place, "no_rows", "kept: rows above of 0 rows", int((counted & (sizes == 0)).sum()))
        becomes = f"left out: beyond {branch.max_rows} rows of one row above"
        yield KeyCount(place, "too_many", becomes, int(np.maximum(sizes - branch.max_rows, 0).sum()))
        yield from self._own_keys(branch, own, np.where(named, numbers, NOBODY), above)

    def _own_keys(self, branch: Branch, own: UnitNumbers, numbers: np.ndarray, above: np.ndarray) -> Iterator[KeyCount]:
        """Note the keys by which tables below name rows."""
        below = [other for other in self._branches if other.of == branch.name]
        if branch.key is None or not below:
            return
        owners = np.append(self._owners[branch.of], NOBODY)[above]
        self._owners[branch.name] = owners
        self._keys[branch.name] = RowKeys(own, numbers, owners, self._units)
        has_key = numbers != NOBODY
        pairs = numbers * len(self._units) + owners if all(other.unit for other in below) else numbers
        place = f"{branch.name}.{branch.key}"
        yield KeyCount(place, "no_key", "kept, without rows below", int((~has_key & (above != NOBODY)).sum()))
        yield KeyCount(place, "repeated", "rows below belong to one row of the key", _repeated(pairs[has_key]))


def _whole(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _repeated(numbers: np.ndarray) -> int:
    """Return how many numbers occur more than once."""
    return int((np.unique(numbers, return_counts=True)[1] > 1).sum())
