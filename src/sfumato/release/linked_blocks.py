"""Samples of linked rows a block of units at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.lenses.lens import Units, UnitSampler
from sfumato.maths.streams import public_stream
from sfumato.records.long_tables import number_ids
from sfumato.release.blocks import SAMPLE_BLOCK, Blocks
from sfumato.release.joined_rows import with_parts

_BLOCK_BYTES = 1 << 26
_FIRST_ID = 1


@dataclass(frozen=True)
class LinkedBlocks(Blocks):
    """Blocks of units with their rows.

    Attributes:
        numbers: of the units that are drawn, from 0, -1 of those that are left out; None where all stay.
    """

    numbers: np.ndarray | None = None

    def each(self, block: int, classes: np.ndarray | None) -> Iterator[pa.Table]:
        """Yield the rows of a block's units, numbered on from those of the blocks before."""
        sampler = self.conditions.sampler
        assert isinstance(sampler, UnitSampler)
        n, stream = self.size if classes is None else classes.size, public_stream(self.seed, block)
        owners, rows, without = self._numbered(block, sampler.units(n, stream, classes))
        at_once = max(1, min(SAMPLE_BLOCK, _BLOCK_BYTES // max(self.decoder.row_bytes, 1)))
        for first in range(0, max(owners.size, 1), at_once):
            some = slice(first, first + at_once)
            table = self.numbered(owners[some], {name: codes[some] for name, codes in rows.items()})
            if self.decoder.schema.database is None:
                yield table
                continue
            starts = np.diff(owners, prepend=-1)[some] != 0
            yield with_parts(table, starts=starts, present=~without[some])

    def _numbered(self, block: int, units: Units) -> Units:
        """Return the units of a block that stay, with their numbers in the sample."""
        owners = units.owners + block * self.size
        stay: slice | np.ndarray = slice(int(np.searchsorted(owners, self.n)))
        if self.numbers is not None:
            owners = np.append(self.numbers, -1)[np.minimum(owners, self.numbers.size)]
            stay = np.flatnonzero(owners >= 0)
        return Units(owners[stay], {name: codes[stay] for name, codes in units.rows.items()}, units.without[stay])

    def numbered(self, owners: np.ndarray, rows: Mapping[str, Any]) -> pa.Table:
        """Return coded rows as samples have them, with the numbers of their units, which are counted from 0."""
        decoder = self.decoder
        assert decoder.schema.unit is not None
        name = decoder.schema.unit.column
        ids = number_ids(pa.array(owners + _FIRST_ID), decoder.storage[name])
        return decoder.decode(rows, self.conditions.values).add_column(0, name, ids)
