"""Whose a row is: cells of units, keys and ids as names, and the names as numbers."""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import is_text, joined, plain, read_text, without_tokens
from sfumato.columns.facts import LARGEST_EXACT
from sfumato.columns.storage import canonical_text, has_canonical_text
from sfumato.columns.text_forms import without_point
from sfumato.io.chunks import Chunk, Column
from sfumato.schema.database import Branch

NOBODY = -1
"""The number of a row without a unit."""

_WITH_EXPONENT = r"^[+-]?[0-9]+(?:\.[0-9]*)?[eE]\+?[0-9]+$"


@final
class UnitNumbers:
    """Numbers of units, or of other keys, in the order in which they come; whatever type a table stores them in.

    Memory: the name and a hash of each.

    Args:
        missing: texts that stand for no unit.
    """

    def __init__(self, missing: Sequence[str]) -> None:
        self._missing = missing
        self._numbers: dict[str, int] = {}
        self._hashes: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def numbers(self, cells: Column) -> np.ndarray:
        """Return the number of each cell's unit, −1 without one, int64 of shape (n,); new ones get the next numbers."""
        return self._of_cells(cells, self._number)

    def known(self, cells: Column) -> np.ndarray:
        """Return the number of each cell's unit, −1 without one or where it has not come before."""
        return self._of_cells(cells, lambda name: self._numbers.get(name, NOBODY))

    def missing(self, cells: Column) -> np.ndarray:
        """Return which cells name nobody, shape (n,)."""
        return self._of_cells(cells, lambda name: 0) == NOBODY

    def hashes(self) -> np.ndarray:
        """Return a hash of each unit's name, uint64, shape (units,)."""
        return np.array(self._hashes, dtype=np.uint64)

    def _number(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self._numbers))
        if number == len(self._hashes):
            self._hashes.append(text_hash(name))
        return number

    def _of_cells(self, cells: Column, number: Callable[[str], int]) -> np.ndarray:
        coded = unit_names(joined(cells), self._missing).dictionary_encode()
        numbers = [NOBODY if name is None else number(name) for name in coded.dictionary.to_pylist()]
        index = coded.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.array([*numbers, NOBODY], dtype=np.int64)[index]


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


def text_hash(text: str) -> int:
    """Return a hash of a text, 64 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def unit_names(cells: pa.Array, missing: Sequence[str]) -> pa.Array:
    """Return whom or what each cell names, as text, the same for `5`, `5.0` and 5.0; null where it names nobody.

    A number of 2^53 or more that has been a float names nobody: it may stand for any of several whole numbers, whose
    rows would be taken for those of one unit.

    Privacy: none (a function of each cell).

    Args:
        cells: n cells of any type.
        missing: texts that stand for nobody.
    """
    cells = plain(cells)
    if isinstance(cells, pa.DictionaryArray):
        return unit_names(cells.dictionary, missing).take(cells.indices)
    if types.is_nested(cells.type) or types.is_interval(cells.type):
        return pa.nulls(len(cells), pa.large_string())
    if not is_text(cells.type):
        coded = cells.dictionary_encode()
        return unit_names(_texts(coded.dictionary), missing).take(coded.indices)
    text = without_point(without_tokens(read_text(cells).cast(pa.large_string()), missing))
    rounded = pc.match_substring_regex(text, _WITH_EXPONENT)
    if not pc.any(rounded).as_py():
        return text
    lost = pc.greater(pc.abs(pc.if_else(rounded, text, "0").cast(pa.float64())), LARGEST_EXACT)
    return pc.if_else(lost, pa.scalar(None, text.type), text)


def _texts(values: pa.Array) -> pa.Array:
    """Return the text of values that are no text."""
    if types.is_timestamp(values.type) and values.type.unit == "ns":
        finer = pc.subtract(values.cast(pa.int64()), pc.multiply(pc.divide(values.cast(pa.int64()), 1000), 1000))
        digits = pc.if_else(pc.equal(finer, 0), "", finer.cast(pa.string()))  # which canonical text has not
        return pc.binary_join_element_wise(canonical_text(values), digits, "")
    if has_canonical_text(values.type):
        return canonical_text(values)
    if types.is_time32(values.type):
        values = values.cast(pa.int32())
    values = values.cast(pa.int64()) if types.is_temporal(values.type) else values
    return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())
