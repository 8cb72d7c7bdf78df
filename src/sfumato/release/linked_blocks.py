"""Samples of linked rows a block of units at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.lenses.lens import UnitSampler
from sfumato.maths.streams import public_stream
from sfumato.records.long_tables import number_ids
from sfumato.release.conditions import Conditions
from sfumato.release.row_decoder import Decoder
from sfumato.release.table_pairs import with_parts
from sfumato.release.workers import blocks_in_order

SAMPLE_BLOCK = 16_384
_BLOCK_NUMBERS, _BLOCK_BYTES = 1 << 22, 1 << 26
_FIRST_ID = 1


@dataclass(frozen=True)
class LinkedBlocks:
    """Draws one block of units after the other, each from a random stream of its own.

    Attributes:
        decoder: from codes to cells, of linked rows.
        n: how many units.
        seed: of all blocks.
        conditions: whose sampler draws units.
    """

    decoder: Decoder
    n: int
    seed: int
    conditions: Conditions

    @property
    def size(self) -> int:
        """Units of a block."""
        return max(1, min(SAMPLE_BLOCK, _BLOCK_NUMBERS // self.conditions.sampler.width))

    def tables_between(self, first: int, end: int, workers: int) -> Iterator[pa.Table]:
        """Yield the rows of some blocks, in order, at most 16,384 at a time."""
        if workers > 1 and end - first > 1:
            return blocks_in_order(self, ((block, None) for block in range(first, end)), min(workers, end - first))
        return (table for block in range(first, end) for table in self.each(block))

    def tables(self, block: int, classes: np.ndarray | None) -> list[pa.Table]:
        """Return the rows of a block."""
        del classes
        return list(self.each(block))

    def each(self, block: int) -> Iterator[pa.Table]:
        """Yield the rows of a block's units, numbered on from those of the blocks before."""
        sampler = self.conditions.sampler
        assert isinstance(sampler, UnitSampler)
        owners, rows, without = sampler.units(self.size, public_stream(self.seed, block))
        count = int(np.searchsorted(owners, self.n - block * self.size))
        at_once = max(1, min(SAMPLE_BLOCK, _BLOCK_BYTES // max(self.decoder.row_bytes, 1)))
        for first in range(0, max(count, 1), at_once):
            some = slice(first, min(first + at_once, count))
            part = {name: codes[some] for name, codes in rows.items()}
            table = self.with_ids(owners[some] + block * self.size, part)
            if not self.decoder.schema.two_tables:
                yield table
                continue
            starts = np.diff(owners, prepend=-1)[some] != 0
            yield with_parts(table, starts=starts, present=~without[some])

    def with_ids(self, owners: np.ndarray, rows: Mapping[str, Any]) -> pa.Table:
        """Return coded rows as samples have them, with the numbers of their units, which are counted from 0."""
        decoder = self.decoder
        assert decoder.schema.unit is not None
        name = decoder.schema.unit.column
        ids = number_ids(pa.array(owners + _FIRST_ID), decoder.storage[name])
        return decoder.decode(rows, self.conditions.values).add_column(0, name, ids)
