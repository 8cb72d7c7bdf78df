"""A source seen through its schema: the records as the rest of Sfumato may read them."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Container, Iterator, Sequence
from typing import Any, Protocol, final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import values_of
from sfumato.errors import SchemaError
from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.records.engine import Engine, Records, Rows, Statistic
from sfumato.records.long_tables import as_records
from sfumato.records.units import Keeper, UnitRows
from sfumato.schema.schema import Schema


class CodedRecords(Records, Protocol):
    """What a recipe reads: records coded into the public domain of a schema."""

    @property
    def schema(self) -> Schema:
        """The public schema."""
        ...

    @property
    def counts_entries(self) -> bool:
        """Whether the number of units is the same whatever the cells hold."""
        ...


@final
class PrivateData:
    """Records of a source, coded into the public domain of a schema, at most `max_rows` of each unit.

    Its repr shows the schema's column names and nothing of the records.

    Args:
        source: where the records lie.
        schema: what is public about them.
        bought: columns whose kinds were found in these records: nothing of them is refused any more.
        engine: sums over the records, on workers; by default they are summed here.

    Raises:
        SchemaError: the schema names a column that the source does not have, or a kind that no cell of the column's
            storage type can have. No record was read.
    """

    def __init__(
        self, source: Source, schema: Schema, *, bought: Container[str] = (), engine: Engine | None = None
    ) -> None:
        source = as_records(source, schema)
        self._source = source
        self._schema = schema
        self._engine = engine
        self._units: UnitRows | None = None
        _check_columns(source, schema, bought)

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._schema

    @property
    def source(self) -> Source:
        """The source; its metadata are public, its chunks are not."""
        return self._source

    @property
    def counts_entries(self) -> bool:
        """Whether the number of units is the same whatever the cells hold: no cell ends a record, or names a unit."""
        return self._source.counts_entries and self._schema.unit is None

    @property
    def max_rows_per_unit(self) -> int:
        """Most records that one unit contributes."""
        return 1 if self._schema.unit is None else self._schema.unit.max_rows

    @property
    def read_columns(self) -> list[str]:
        """The columns of the source that are read: the released ones, and that of the unit."""
        unit = self._schema.unit
        return list(dict.fromkeys([*self._schema.released, *([] if unit is None else [unit.column])]))

    def over(self, piece: Source) -> PrivateData:
        """Return the records of a part of the source, to be summed where they are."""
        part = copy.copy(self)
        part._source, part._engine, part._units = piece, None, None
        return part

    def summed(self, statistic: Statistic, width: int | None = None) -> np.ndarray | None:
        """Return the sum by the engine, if there is one: see `SummedElsewhere`."""
        if self._engine is None or self._schema.unit is not None:
            return None  # which rows of a unit count depends on all of them: in pieces, each piece would keep its own
        return self._engine.summed(statistic, self, width)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns: level codes, numbers in [0, 1] or NaN, images as stored, and `CodedSets`.

        With a unit column, at most `max_rows` records of each unit are kept, by a rule that looks at one unit alone. A
        record without a unit is left out.
        """
        message = f"Cannot code the columns of {self._source.label}. Please report their types: a fit reads any cell."
        keeper = self._keeper()
        for chunk in self._source.with_dictionaries().chunks(self.read_columns):
            yield attempt(lambda chunk=chunk: self._kept(chunk, keeper), message)

    def _kept(self, chunk: Chunk, keeper: Keeper | None) -> Rows:
        rows, unit = self._code(chunk), self._schema.unit
        return rows if keeper is None or unit is None else keeper.kept(chunk.columns[unit.column], rows)

    def _keeper(self) -> Keeper | None:
        """Return what chooses the rows of units in one pass; which rows these are is found out in the first."""
        schema = self._schema
        if schema.unit is None:
            return None
        if self._units is None:
            self._units = UnitRows.of(self._source, schema.unit, schema.missing, self.read_columns, self._code)
        return self._units.keeper()

    def _code(self, chunk: Chunk) -> dict[str, Any]:
        kinds, missing = self._schema.columns, self._schema.missing
        return {name: kinds[name].code(chunk.columns[name], missing=missing) for name in self._schema.released}

    def __repr__(self) -> str:
        return f"PrivateData({', '.join(self._schema.released)})"


def _check_columns(source: Source, schema: Schema, bought: Container[str]) -> None:
    """Refuse a schema that does not describe the source, naming every column that does not fit."""
    needed = [*schema.written, *([] if schema.unit is None else [schema.unit.column])]
    absent = [name for name in needed if name not in source.storage]
    if absent:
        # a file's own names are not listed: without a header line, or with a stray quote in it, they are a record
        similar = [name for name in source.names if _resembles(name, absent)]
        hint = f"Did you mean {_listed(similar)}?" if similar else "Has the file a header line?"
        raise SchemaError(
            f"Expected {source.label} to have every column of the schema, got no column {_listed(absent)}. "
            f"{hint} Is this the schema of another table?"
        )
    if not schema.released:
        raise SchemaError("Expected a schema with at least one column to release, got none.")
    if schema.unit is not None and pa.types.is_nested(values_of(source.storage[schema.unit.column])):
        raise SchemaError(
            f"Expected the unit column {schema.unit.column!r} to hold names or numbers, got cells of type "
            f"{source.storage[schema.unit.column]}."
        )
    for name in (name for name in schema.released if name not in bought):
        schema.columns[name].check_readable(name, source.storage[name])


def _resembles(name: str, absent: Sequence[str]) -> bool:
    """Whether a name of the file is a misspelt name of the schema, hence no cell."""
    words = [word.casefold() for word in absent]
    return bool(difflib.get_close_matches(name.strip().casefold(), words, 1, 0.8))


def _listed(names: Sequence[str], most: int = 20) -> str:
    text = ", ".join(repr(name) for name in names[:most])
    return text if len(names) <= most else f"{text}, … ({len(names)} in all)"
