"""Linked rows: the rows of every unit in their order, as records of units and as records of steps.

What is constant is taken from the first row, or from the table of units, which also has those without rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import final

import numpy as np

from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.lenses.chain import plain_schema, read_kinds
from sfumato.records.engine import Rows
from sfumato.records.long_tables import as_records
from sfumato.records.private import PrivateData
from sfumato.records.sequences import RowOrder, Sequences, step_records, unit_records
from sfumato.records.table_sources import TableSources
from sfumato.records.unit_names import UnitNumbers
from sfumato.schema.linked import LinkedTables, end_codes, linked_tables
from sfumato.schema.schema import Schema


class LinkedRecords(ABC):
    """Records of units: their constants, number of rows and first row. `steps` are records of steps.

    Attributes:
        tables: of units and of steps.
        described: the public schema, as it was declared.
    """

    max_rows_per_unit = 1
    counts_entries = False  # cells say how many units there are
    tables: LinkedTables
    described: Schema

    @property
    def schema(self) -> Schema:
        """The public schema of units with their first row."""
        return self.tables.units

    @property
    def steps(self) -> StepRecords:
        """Records of steps, one for each unit of two rows or more."""
        return StepRecords(self)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns, a unit a row."""
        return unit_records(self.tables, self.sequences())

    @abstractmethod
    def sequences(self) -> Sequences:
        """Return the rows that count in their order; read once."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.described.released)})"


@final
class LinkedData(LinkedRecords):
    """Linked rows of one source.

    The source is read once, when records are first asked for. Memory: per unit its name, and of each row that counts 8
    bytes a number and 4 a label; twice that while rows are put in order. Without a column of order all rows are held
    until the last is read.

    Args:
        source: where the rows lie.
        schema: what is public about them; its unit links rows.

    Raises:
        SchemaError: as `PrivateData`.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self._rows = PrivateData(source, schema)
        self._source = as_records(source, schema)
        self.described = schema
        self.tables = linked_tables(plain_schema(schema), schema.weight)
        self._sequences: Sequences | None = None

    @property
    def source(self) -> Source:
        """The source; its metadata are public, its chunks are not."""
        return self._source

    def sequences(self) -> Sequences:
        """Return the rows that count in their order; read once."""
        if self._sequences is None:
            # of coding and sorting nothing may be said but that it failed
            message = f"Cannot read the units of {self._source.label}. Please report its types: a fit reads any cell."
            schema, unit = self.described, self.described.unit
            assert unit is not None
            sorting = _Sorting(schema, self._source)
            for chunk, has_rows in _chunks(self._source.with_dictionaries(), sorting.names(schema)):

                def take(chunk: Chunk = chunk, has_rows: bool = has_rows) -> None:
                    sorting.take(chunk.columns[unit.column], self._rows._code(chunk), has_rows=has_rows)

                attempt(take, message)
            self._sequences = attempt(sorting.sequences, message)
        return self._sequences


@final
class StepRecords:
    """Records of steps: of each unit of two rows or more, coded columns of all its steps side by side.

    Columns have shape (units, steps), of which the first ones of a unit count, as many as `STEPS` says. Units come in
    the order of their numbers of steps; nothing depends on it. Weighted units also have their weight at every step,
    which is no column of the schema.
    """

    max_rows_per_unit = 1
    counts_entries = False

    def __init__(self, data: LinkedRecords) -> None:
        self._data, self._tables = data, data.tables
        assert data.tables.steps is not None
        self._joint = data.tables.steps

    @property
    def schema(self) -> Schema:
        """The public schema of a step, as it is modelled."""
        return plain_schema(self._joint)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns, a unit a row."""
        return step_records(self._tables, self._data.sequences())


def _chunks(source: Source, names: list[str]) -> Iterator[tuple[Chunk, bool]]:
    """Yield chunks of rows, and where units have a table of their own, those without rows and False."""
    if isinstance(source, TableSources):
        return source.joined(tuple(names))
    return ((chunk, True) for chunk in source.chunks(names))


class _Sorting:
    """Takes rows with the names of their units."""

    def __init__(self, schema: Schema, source: Source) -> None:
        plain, unit = plain_schema(schema), schema.unit
        assert unit is not None
        self._constants = tuple(name for name in plain.released if name in unit.constant)
        self._numbers = UnitNumbers((*schema.missing_in(source), ""))
        self._rows = RowOrder(plain.released, unit.order, unit.max_rows, self._numbers.hashes, end_codes(plain))
        self._without: list[np.ndarray] = []

    @staticmethod
    def names(schema: Schema) -> list[str]:
        """Return the columns that are read."""
        assert schema.unit is not None
        return list(dict.fromkeys([*read_kinds(schema), schema.unit.column]))

    def take(self, cells: object, rows: Rows, *, has_rows: bool = True) -> None:
        """Take in the rows of a chunk, but for those of no unit; not `has_rows`: a row for each unit without any."""
        units = self._numbers.numbers(cells)  # type: ignore[arg-type]
        if not has_rows:
            self._without.append(units[units >= 0])
        self._rows.take(units, rows)

    def sequences(self) -> Sequences:
        """Return the rows that count."""
        units, codes, _ = self._rows.rows()
        sizes = np.bincount(units, minlength=len(self._numbers))
        for without in self._without:
            sizes[without] = 0
        return Sequences.joined(sizes, codes, self._constants)
