"""A source seen through its schema: the records as the rest of Sfumato may read them."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterator, Sequence
from typing import Any, Protocol, final

import pyarrow as pa

from sfumato.columns.cells import values_of
from sfumato.errors import SchemaError
from sfumato.io.chunks import Chunk, Source
from sfumato.lenses.chain import plain_records, plain_schema, read_kinds
from sfumato.records.engine import Engine, Records, Rows
from sfumato.records.long_tables import as_records
from sfumato.records.source_records import SourceRecords
from sfumato.schema.schema import Schema
from sfumato.schema.weighting import weight_kind


class CodedRecords(Records, Protocol):
    """Records of a recipe, coded into the public domain of a schema."""

    @property
    def schema(self) -> Schema:
        """The public schema."""
        ...

    @property
    def counts_entries(self) -> bool:
        """Whether the number of units is the same whatever the cells hold."""
        ...


@final
class PrivateData(SourceRecords):
    """Records of a source, coded into the public domain of a schema, at most `max_rows` of each unit.

    Its repr shows the schema's column names and nothing of the records.

    Args:
        source: where the records lie.
        schema: what is public about them.
        estimated: columns whose kinds a fit estimated from these records: nothing of them is refused any more.
        engine: sums over the records, on workers; by default they are summed here.

    Raises:
        SchemaError: the schema names a column that the source does not have, or a kind that no cell of the column's
            storage type can have. No record was read.
    """

    def __init__(
        self, source: Source, schema: Schema, *, estimated: Container[str] = (), engine: Engine | None = None
    ) -> None:
        source = as_records(source, schema)
        super().__init__(source, schema, engine)
        check_columns(source, schema, estimated)

    @property
    def schema(self) -> Schema:
        """The public schema of the plain table, as records are coded."""
        return plain_schema(self._schema)

    @property
    def described(self) -> Schema:
        """The public schema, as it was declared."""
        return self._schema

    @property
    def counts_entries(self) -> bool:
        """Whether the number of units is the same whatever the cells hold: no cell ends a record, or names a unit."""
        return self._source.counts_entries and self._schema.unit is None

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns: level codes, numbers in [0, 1] or NaN, images as stored, and `CodedSets`.

        With a unit column, at most `max_rows` records of each unit are kept, by a rule that looks at one unit alone. A
        record without a unit is left out.
        """
        message = f"Cannot code the columns of {self._source.label}. Please report their types: a fit reads any cell."
        return self._coded(self._source.with_dictionaries(), message)

    def _coded_names(self) -> list[str]:
        return list(read_kinds(self._schema))

    def _code(self, chunk: Chunk) -> dict[str, Any]:
        kinds, missing = read_kinds(self._schema), self._schema.missing_in(self._source)
        codes = {name: kind.code(chunk.columns[name], missing=missing) for name, kind in kinds.items()}
        return plain_records(self._schema, codes)


def check_columns(source: Source, schema: Schema, estimated: Container[str] = ()) -> None:
    """Refuse a schema that does not describe the source, naming every column that does not fit.

    Raises:
        SchemaError: as `PrivateData`.
    """
    hidden = [part for part in (None if schema.linked else schema.unit, schema.weight) if part is not None]
    needed = [*schema.written, *(part.column for part in hidden)]
    absent = [name for name in needed if name not in source.storage]
    if absent:
        label = source.label_of(absent[0])
        absent = [name for name in absent if source.label_of(name) == label]
        # a file's own names are not listed: without a header line, or with a stray quote in it, they are a record
        similar = [name for name in source.names if _resembles(name, absent)]
        hint = f"Did you mean {_listed(similar)}?" if similar else "Has the file a header line?"
        raise SchemaError(
            f"Expected {label} to have every column of the schema, got no column {_listed(absent)}. "
            f"{hint} Is this the schema of another table?"
        )
    if not schema.released:
        raise SchemaError("Expected a schema with at least one column to release, got none.")
    if schema.unit is not None and pa.types.is_nested(values_of(source.storage[schema.unit.column])):
        raise SchemaError(
            f"Expected the unit column {schema.unit.column!r} to hold names or numbers, got cells of type "
            f"{source.storage[schema.unit.column]}."
        )
    if schema.weight is not None:
        weight_kind(schema).check_readable(schema.weight.column, source.storage[schema.weight.column])
    for name in (name for name in schema.released if name not in estimated):
        schema.columns[name].check_readable(name, source.storage[name])


def _resembles(name: str, absent: Sequence[str]) -> bool:
    """Whether a name of the file is a misspelt name of the schema, hence no cell."""
    words = [word.casefold() for word in absent]
    return bool(difflib.get_close_matches(name.strip().casefold(), words, 1, 0.8))


def _listed(names: Sequence[str], most: int = 20) -> str:
    text = ", ".join(repr(name) for name in names[:most])
    return text if len(names) <= most else f"{text}, … ({len(names)} in all)"
