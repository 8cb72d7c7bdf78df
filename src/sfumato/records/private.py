"""A source seen through its schema, and before that is known: the records as the rest of Sfumato may read them."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, Self, final

import numpy as np
import pyarrow as pa

from sfumato.columns.canonical import form_text
from sfumato.columns.cells import is_text, plain, read_floats, total, values_of, without_tokens
from sfumato.columns.kind import TabularKind
from sfumato.columns.open import Open
from sfumato.columns.sets import ItemSet
from sfumato.columns.storage import has_text, text_of
from sfumato.columns.wall_clock import moments_of
from sfumato.columns.written import Written
from sfumato.errors import SchemaError
from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.lenses.chain import plain_records, plain_schema, read_kinds
from sfumato.records.engine import Engine, Records, Rows, Statistic
from sfumato.records.long_tables import as_records
from sfumato.records.units import Keeper, UnitRows
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import weight_kind


class SourceRecords:
    """Records of a source, read in chunks, at most `max_rows` of each unit: a base for what codes them.

    Args:
        source: where the records lie; its metadata are public, its chunks are not.
        schema: what is public of them.
        engine: sums over the records, on workers; by default they are summed here.
    """

    def __init__(self, source: Source, schema: Schema, engine: Engine | None) -> None:
        self.source, self._schema, self._engine = source, schema, engine
        self._units: UnitRows | None = None

    @property
    def schema(self) -> Schema:
        """The public schema."""
        return self._schema

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
        part.source, part._engine, part._units = piece, None, None
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
            self._units = UnitRows.of(self.source, schema, self.read_columns, self._code)
        return self._units.keeper()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._coded_names())})"


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
        return self.source.counts_entries and self._schema.unit is None

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns: level codes, numbers in [0, 1] or NaN, images as stored, and `CodedSets`.

        With a unit column, at most `max_rows` records of each unit are kept, by a rule that looks at one unit alone. A
        record without a unit is left out.
        """
        message = f"Cannot code the columns of {self.source.label}. Please report their types: a fit reads any cell."
        return self._coded(self.source.with_dictionaries(), message)

    def _coded_names(self) -> list[str]:
        return list(read_kinds(self._schema))

    def _code(self, chunk: Chunk) -> dict[str, Any]:
        missing = {name: self._schema.missing_in(self.source, name) for name in chunk.columns}
        kinds = read_kinds(self._schema)
        codes = {name: kind.code(chunk.columns[name], missing=missing[name]) for name, kind in kinds.items()}
        return plain_records(self._schema, codes)


def check_columns(source: Source, schema: Schema, estimated: Container[str] = ()) -> None:
    """Refuse a schema that does not describe the source, naming every column that does not fit.

    Raises:
        SchemaError: as `PrivateData`.
    """
    absent = [name for name in schema.needed if name not in source.storage]
    if absent:
        label = source.label_of(absent[0])
        absent = [name for name in absent if source.label_of(name) == label]
        # a file's own names are not listed: without a header line, or with a stray quote in it, they are a record
        # but for those that are misspelt names of the schema
        words = [word.casefold() for word in absent]
        similar = [n for n in source.names if difflib.get_close_matches(n.strip().casefold(), words, 1, 0.8)]
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
        kind = schema.columns[name]
        # that one cell may have decided that no cell of the column can be read is no reason to refuse it
        is_inferred = name in source.inferred and not pa.types.is_nested(values_of(source.storage[name]))
        if not (is_inferred and isinstance(kind, TabularKind | Open | ItemSet)):
            kind.check_readable(name, source.storage[name])


def _listed(names: Sequence[str], most: int = 20) -> str:
    text = ", ".join(repr(name) for name in names[:most])
    return text if len(names) <= most else f"{text}, … ({len(names)} in all)"


@final
class OpenData(SourceRecords):
    """Records of a source as numbers and texts: of the open columns only, at most `max_rows` of each unit.

    A column comes as float64, NaN where it holds no number (integer, continuous; of dates, the year), or as objects:
    text, or None where it is missing (all other kinds). Beside numbers may come words: text, or None where a cell is a
    number or missing. What a cell becomes depends on that cell alone.

    Args:
        source: where the records lie.
        schema: what is public of them.
        engine: sums over the records, on workers; by default they are summed here.

    Raises:
        SchemaError: the source has not the columns of the schema.
    """

    def __init__(self, source: Source, schema: Schema, engine: Engine | None = None) -> None:
        PrivateData(source, schema)
        super().__init__(source, schema, engine)
        self._beside: Mapping[str, str] = {}

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of the open columns; without any, of one released column, for counting records."""
        message = f"Cannot read the columns of {self.source.label}. Please report their types: a fit reads any cell."
        return self._coded(self.source, message)

    def read_as(self, opened: Mapping[str, Open], beside: Mapping[str, str] | None = None) -> OpenData:
        """The same records, of open columns read as these kinds: no type refuses one, what is no value is missing.

        Args:
            opened: kinds by column.
            beside: per column of numbers whose words come, too, the name that these come under.
        """
        records = copy.copy(self)
        records._beside = beside or {}
        records._schema, records._units = replace(self._schema, columns={**self._schema.columns, **opened}), None
        return records

    def _coded_names(self) -> list[str]:
        return list(self._schema.open) or [self._schema.released[0]]

    def _code(self, chunk: Chunk) -> Rows:
        tokens, opened = self._schema.missing_in, self._schema.of_kind(Open)
        rows = {}
        for name in self._coded_names():
            kind = opened.get(name, _LABELS)
            read = partial(_values, kind, missing=tokens(self.source, name))
            rows[name] = _read_totally(read, chunk.columns[name], np.nan if kind.kind in _AS_NUMBERS else None)
        for name, key in self._beside.items():
            read = partial(_words, opened[name].written, missing=tokens(self.source, name))
            rows[key] = _read_totally(read, chunk.columns[name], None)
        return rows


_LABELS = Open(kind="categorical")
_AS_NUMBERS = ("integer", "continuous", "datetime")


def _read_totally(
    read: Callable[[pa.Array], np.ndarray], column: pa.ChunkedArray | np.ndarray, none: float | None
) -> np.ndarray:
    """Read cells; those that Arrow refuses are missing."""
    dtype = object if none is None else np.float64
    chunks = [pa.array(column)] if isinstance(column, np.ndarray) else column.chunks
    return np.concatenate([total(read, chunk, lambda n: np.full(n, none, dtype=dtype)) for chunk in chunks])


def _words(written: Written | None, cells: pa.Array, missing: tuple[str, ...]) -> np.ndarray:
    """Return the texts of cells that are no numbers; None of all others."""
    cells = plain(cells)
    rest = np.isnan(read_floats(cells, (), written))
    words = np.full(len(cells), None, dtype=object)
    words[rest] = _values(Open(written=written), cells.filter(pa.array(rest)), missing)
    return words


def _values(kind: Open, cells: pa.Array, missing: tuple[str, ...]) -> np.ndarray:
    if kind.kind in ("integer", "continuous"):
        return read_floats(cells, missing, kind.written)
    if kind.kind == "datetime":
        steps, valid = kind.between(2000, 2000).read(cells, missing)
        moments = moments_of(steps, kind.resolution).astype("datetime64[us]")
        return np.where(valid, moments.astype("datetime64[Y]").astype(np.int64) + 1970, np.nan)
    cells = plain(cells)
    if pa.types.is_dictionary(cells.type):
        cells = plain(cells).dictionary_decode()
    if not (is_text(cells.type) or has_text(cells.type)):
        return np.full(len(cells), None)
    text = without_tokens(text_of(cells), missing)
    return np.array((form_text(text) if kind.is_plain else text).to_pylist(), dtype=object)
