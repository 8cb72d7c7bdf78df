"""The base of all records of a source: units that own several, and parts that workers sum."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Self

import numpy as np

from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.records.engine import Engine, Rows, Statistic
from sfumato.records.units import Keeper, UnitRows
from sfumato.schema.schema import Schema


class SourceRecords:
    """Records of a source, read in chunks, at most `max_rows` of each unit: a base for what codes them.

    Args:
        source: where the records lie.
        schema: what is public of them.
        engine: sums over the records, on workers; by default they are summed here.
    """

    def __init__(self, source: Source, schema: Schema, engine: Engine | None) -> None:
        self._source, self._schema, self._engine = source, schema, engine
        self._units: UnitRows | None = None

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._schema

    @property
    def source(self) -> Source:
        """The source; its metadata are public, its chunks are not."""
        return self._source

    @property
    def max_rows_per_unit(self) -> int:
        """Most records that one unit contributes."""
        return 1 if self._schema.unit is None else self._schema.unit.max_rows

    @property
    def read_columns(self) -> list[str]:
        """The columns of the source that are read: those that are coded, and that of the unit."""
        unit = self._schema.unit
        return list(dict.fromkeys([*self._coded_names(), *([] if unit is None else [unit.column])]))

    def over(self, piece: Source) -> Self:
        """Return the records of a part of the source, to be summed where they are."""
        part = copy.copy(self)
        part._source, part._engine, part._units = piece, None, None
        return part

    def summed(self, statistic: Statistic, width: int | None = None) -> np.ndarray | None:
        """Return the sum by the engine, if there is one: see `SummedElsewhere`.

        Records of units are summed here: which rows of a unit count depends on all of them.
        """
        if self._engine is None or self._schema.unit is not None:
            return None
        return self._engine.summed(statistic, self, width)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns: the records that count."""
        raise NotImplementedError

    def _coded_names(self) -> list[str]:
        """Return the columns that `_code` codes."""
        raise NotImplementedError

    def _code(self, chunk: Chunk) -> Rows:
        """Return the coded columns of a chunk. Total: a cell is coded by itself, whatever it holds."""
        raise NotImplementedError

    def _coded(self, source: Source, message: str) -> Iterator[Rows]:
        """Yield chunks of coded columns: the records that count.

        Args:
            source: the same records, perhaps in another form.
            message: what is said if a cell cannot be coded: nothing of the cell.
        """
        unit, keeper = self._schema.unit, self._keeper()

        def counted(chunk: Chunk) -> Rows:
            rows = self._code(chunk)
            return rows if keeper is None or unit is None else keeper.rows_of(chunk.columns[unit.column], rows)

        for chunk in source.chunks(self.read_columns):
            yield attempt(lambda chunk=chunk: counted(chunk), message)

    def _keeper(self) -> Keeper | None:
        """Return the chooser of units' rows for one pass; which rows these are is found out in the first."""
        schema = self._schema
        if schema.unit is None:
            return None
        if self._units is None:
            missing = schema.missing_in(self._source)
            self._units = UnitRows.of(self._source, schema.unit, missing, self.read_columns, self._code)
        return self._units.keeper()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._coded_names())})"
