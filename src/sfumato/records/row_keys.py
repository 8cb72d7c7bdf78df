"""Keys by which tables name rows of the table above them."""

from __future__ import annotations

from typing import final

import numpy as np

from sfumato.io.chunks import Chunk
from sfumato.records.unit_names import NOBODY, UnitNumbers
from sfumato.schema.database import Branch


@final
class RowKeys:
    """The rows that tables below name: the row of each key, or of each key of a unit.

    Attributes:
        numbers: of the keys.

    Args:
        numbers: of the keys.
        keys: the number of each row's key, −1 without one, shape (n,).
        owners: the unit of each row, shape (n,).
        units: names of units.
    """

    def __init__(self, numbers: UnitNumbers, keys: np.ndarray, owners: np.ndarray, units: UnitNumbers) -> None:
        self.numbers, self._units = numbers, units
        rows = np.flatnonzero(keys >= 0)
        keys, owners = keys[rows], owners[rows]
        self._n_units = len(units)
        # of rows of one key, the first of the unit whose name has the least hash
        order = np.lexsort((rows, units.hashes()[owners], keys))
        first = order[np.flatnonzero(np.diff(keys[order], prepend=-1))]
        self._row = np.full(len(numbers), NOBODY)
        self._row[keys[first]] = rows[first]
        pairs = keys * self._n_units + owners
        order = np.lexsort((rows, pairs))
        first = order[np.flatnonzero(np.diff(pairs[order], prepend=-1))]
        self._pairs, self._pair_rows = pairs[first], rows[first]

    def rows(self, chunk: Chunk, branch: Branch) -> np.ndarray:
        """Return the row above of each row of a chunk, −1 for none, shape (n,)."""
        key = self.numbers.known(chunk.columns[branch.by])
        if branch.unit is None or branch.unit == branch.by:
            return np.append(self._row, NOBODY)[key]
        unit = self._units.known(chunk.columns[branch.unit])
        pairs = np.where((key >= 0) & (unit >= 0), key * self._n_units + unit, NOBODY)
        if not self._pairs.size:
            return np.full(pairs.size, NOBODY)
        place = np.minimum(np.searchsorted(self._pairs, pairs), self._pairs.size - 1)
        return np.where(self._pairs[place] == pairs, self._pair_rows[place], NOBODY)
