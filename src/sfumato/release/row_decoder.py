"""Coded rows as tables: the cells of a schema's columns, in the types in which samples come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.records.long_tables import as_written
from sfumato.schema.schema import Schema

_NO_VALUES: Mapping[str, pa.Array] = {}


@dataclass(frozen=True)
class Decoder:
    """From the codes that a sampler draws to cells.

    Attributes:
        schema: of the release.
        storage: types of the columns of samples.
    """

    schema: Schema
    storage: Mapping[str, pa.DataType]

    @property
    def row_bytes(self) -> int:
        """The most bytes of a row's cells."""
        return sum(self.schema.columns[name].cell_bytes for name in self.schema.released)

    def decode(
        self,
        rows: Mapping[str, Any],
        values: Mapping[str, pa.Array] = _NO_VALUES,
        names: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the released columns of coded rows, or some of them; those of `values` have one value each."""
        columns = {}
        for name in self.schema.released if names is None else names:
            if name in values:
                # the value itself: its cell holds others
                columns[name] = values[name].take(pa.array(np.zeros(len(rows[name]), dtype=np.int64)))
            else:
                columns[name] = self.schema.columns[name].decode(rows[name], self.storage[name])
        return pa.table(columns)

    def table(
        self,
        rows: Mapping[str, Any],
        values: Mapping[str, pa.Array] = _NO_VALUES,
        *,
        start: int = 0,
        n: int | None = None,
    ) -> pa.Table:
        """Return coded rows as samples are written, n of them, of which the first is at `start` in the sample."""
        records = self.decode(rows, values)
        return as_written(records if n is None else records.slice(0, n), self.schema, self.storage, start)
