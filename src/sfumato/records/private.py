"""A source seen through its schema: the records as the rest of Sfumato may read them."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Container, Iterator, Sequence
from typing import Any, Protocol, final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import joined
from sfumato.errors import SchemaError
from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.records.engine import Engine, Records, Rows, Statistic
from sfumato.records.long_tables import as_records, unit_names
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
        part._source, part._engine = piece, None
        return part

    def summed(self, statistic: Statistic, width: int | None = None) -> np.ndarray | None:
        """Return the sum by the engine, if there is one: see `SummedElsewhere`."""
        return None if self._engine is None else self._engine.summed(statistic, self, width)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns: level codes, numbers in [0, 1] or NaN, images as stored, and `CodedSets`.

        With a unit column, only the first `max_rows` records of each unit are kept: a rule that looks at one unit
        alone. A record without a unit is left out.
        """
        unit = self._schema.unit
        limiter = None if unit is None else UnitLimiter(unit.max_rows, (*self._schema.missing, ""))
        message = f"Cannot code the columns of {self._source.label}. Please report their types: a fit reads any cell."
        for chunk in self._source.chunks(self.read_columns):
            yield attempt(lambda chunk=chunk: self._kept(chunk, limiter), message)

    def _kept(self, chunk: Chunk, limiter: UnitLimiter | None) -> dict[str, Any]:
        rows, unit = self._code(chunk), self._schema.unit
        if limiter is None or unit is None:
            return rows
        keep = limiter.keep(chunk.columns[unit.column])
        return {name: column[keep] for name, column in rows.items()}

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
    if schema.unit is not None and pa.types.is_nested(source.storage[schema.unit.column]):
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


class UnitLimiter:
    """Keeps the first `max_rows` records of every unit over all chunks; one small integer per unit in memory."""

    def __init__(self, max_rows: int, missing: Sequence[str]) -> None:
        self._max_rows = max_rows
        self._missing = missing
        self._seen: dict[object, int] = {}

    def keep(self, column: pa.ChunkedArray | np.ndarray) -> np.ndarray:
        """Return which records to keep, shape (n,)."""
        coded = unit_names(joined(column), self._missing).dictionary_encode()
        names = [None if name != name else name for name in coded.dictionary.to_pylist()]
        # equal names of different bits, 0.0 and -0.0, are one unit
        place = {name: i for i, name in reversed(list(enumerate(names)))}
        same = np.array([place[name] for name in names] + [len(names)], dtype=np.int64)
        known = np.array([name is not None for name in names] + [False])
        units = same[coded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False).astype(np.int64)]
        order = np.argsort(units, kind="stable")
        rank = np.empty(units.size, dtype=np.int64)
        rank[order] = np.arange(units.size) - np.searchsorted(units[order], units[order], side="left")
        before = np.array([self._seen.get(name, 0) for name in names] + [0], dtype=np.int64)
        counts = np.bincount(units, minlength=len(names) + 1)
        for name, i in place.items():
            self._seen[name] = self._seen.get(name, 0) + int(counts[i])
        return known[units] & (before[units] + rank < self._max_rows)
