"""Samples of a database a block of units at a time: tables whose keys resolve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.maths.streams import public_stream
from sfumato.records.long_tables import number_ids
from sfumato.release.blocks import Blocks
from sfumato.release.database_sampler import DatabaseTables, TableRows

_FIRST_ID = 1


@dataclass(frozen=True)
class DatabaseBlocks(Blocks):
    """Blocks of units with the rows of all tables.

    Units are numbered from 1; a row of a table below by the number of the row above and its place there, so that no
    number depends on what other blocks hold.
    """

    def each(self, block: int, classes: np.ndarray | None) -> Iterator[Any]:
        """Yield the tables of a block's units, by their names."""
        sampler, n = self.conditions.sampler, self.size if classes is None else classes.size
        assert isinstance(sampler, DatabaseTables)
        count = max(0, min(self.size, self.n - block * self.size))
        yield self.written(sampler.tables(n, public_stream(self.seed, block), classes), block * self.size, count)

    def written(self, tables: Mapping[str, TableRows], start: int, count: int) -> dict[str, pa.Table]:
        """Return coded tables as samples have them: of the first `count` units, numbered on from `start`."""
        schema, values = self.decoder.schema, self.conditions.values
        database, unit = schema.database, schema.unit
        assert database is not None
        assert unit is not None
        storage = self.decoder.storage[unit.column]
        ids = {database.units: start + np.arange(count) + _FIRST_ID}
        owners, stay = {database.units: np.arange(count)}, {database.units: count}
        decoded = self._decoded(tables[database.units].rows, unit.constant, count, values)
        written = {
            database.units: decoded.add_column(0, unit.column, number_ids(pa.array(ids[database.units]), storage))
        }
        for branch in database.branches:
            level = tables[branch.name]
            n = int(np.searchsorted(level.above, stay[branch.of]))
            above, numbers = level.above[:n], level.numbers[:n]
            ids[branch.name] = (ids[branch.of][above] - _FIRST_ID) * branch.max_rows + numbers + _FIRST_ID
            owners[branch.name], stay[branch.name] = owners[branch.of][above], n
            named = {branch.by: ids[branch.of][above]}
            named |= {} if branch.key is None else {branch.key: ids[branch.name]}
            named |= {} if branch.unit is None else {branch.unit: ids[database.units][owners[branch.name]]}
            table = self._decoded(level.rows, branch.columns, n, {})
            for place, name in enumerate(branch.identifiers):
                table = table.add_column(place, name, number_ids(pa.array(named[name]), storage))
            written[branch.name] = table
        return written

    def _decoded(
        self, rows: Mapping[str, Any], columns: tuple[str, ...], n: int, values: Mapping[str, pa.Array]
    ) -> pa.Table:
        """Return the columns of the first n rows of a table."""
        return self.decoder.decode({name: rows[name][:n] for name in columns}, values, columns)
