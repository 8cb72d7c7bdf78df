"""Data sources: named columns of known storage types, read again and again in chunks.

A source knows two kinds of things. Its container, column names and storage types are metadata,
shown in its repr and in messages. Its cells and the number of its rows are private: they leave
only through `Source.chunks`, and no error raised here carries them.

A record is a function of its own cells only if no other cell had a part in how they are stored. Three origins of a
column's type say whether one could:

    text       every cell is its own text: CSV, JSON lines, spreadsheets, SQLite
    declared   the container says the type before there is a cell: Parquet, Arrow, polars, nullable pandas types
    inferred   the type follows from all cells together: NumPy's numbers in pandas frames, and files that pandas wrote

Of an inferred type one missing cell turns whole numbers of 64 bits into floats, and those of 2^53 and more into others.
Such columns are therefore read as the floats they would have become, whatever they are stored as: the cells of two
neighbours come out alike. Proof: docs/proofs/cells.md.
"""

from __future__ import annotations

import contextlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.facts import LARGEST_EXACT
from sfumato.columns.kind import ColumnKind
from sfumato.entry_points import is_ours, package_of
from sfumato.errors import DataError, SchemaError, SfumatoError, require_integer
from sfumato.io.csv_form import CsvForm

_INFERRED = re.compile(r"u?int\d+|float\d+|complex\d+|bool|object|datetime64.*|timedelta64.*")
"""NumPy's names of types that follow from all cells of a column; `Int64`, `string` and Arrow's are declared."""
Container: TypeAlias = Literal["csv", "parquet", "npz", "pandas", "polars", "pyarrow", "arrays", "folder", "fimi"]
Note: TypeAlias = Literal["skipped", "shortened", "beside"]
"""Records that are left out because they cannot be read, those read without their last cells, which are empty, and
those beside which stand cells under no name, which are not read."""
Column: TypeAlias = pa.ChunkedArray | np.ndarray
T = TypeVar("T")

DEFAULT_CHUNK_ROWS = 65_536
_CHUNK_BYTES = 128 << 20  # of cells in a chunk, about


def pandas_columns(schema: pa.Schema) -> frozenset[str]:
    """Return the columns that pandas stored in a type it had inferred, by the metadata it writes.

    Args:
        schema: of a file or a table.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"id": [1, 2], "code": pd.array([1, None], "Int64")})
        >>> sorted(pandas_columns(pa.Schema.from_pandas(frame)))
        ['id']
    """
    entries: Any = None
    with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):  # a stranger may have written it
        entries = json.loads((schema.metadata or {})[b"pandas"])["columns"]
    if not isinstance(entries, list):
        return frozenset()
    named = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
    return frozenset(entry["name"] for entry in named if _INFERRED.fullmatch(str(entry.get("numpy_type"))))


def of_schema(schema: pa.Schema, label: str) -> dict[str, Any]:
    """Return the fields of a source that has the columns of a schema.

    Raises:
        DataError: two columns have one name, or one has none.
    """
    check_names(schema.names, label)
    storage = dict(zip(schema.names, schema.types, strict=True))
    return {"label": label, "storage": storage, "inferred": pandas_columns(schema)}


def as_inferred(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return cells of an inferred type as they would be beside a missing one: whole numbers of 64 bits as floats.

    Where all are below 2^53 in size, both say the same, and the cells stay as they are.

    Privacy: none (a function of each cell; which type they come in says nothing that their values do not).

    Args:
        column: n cells of any type.
    """
    if types.is_dictionary(column.type):
        if not _is_wide(column.type.value_type) or not any(_is_large(part.dictionary) for part in column.chunks):
            return column
        return as_inferred(pa.chunked_array([part.dictionary_decode() for part in column.chunks]))
    if not _is_wide(column.type) or not any(map(_is_large, column.chunks)):
        return column
    return column.cast(pa.float64(), safe=False)


def _is_wide(kind: pa.DataType) -> bool:
    return types.is_int64(kind) or types.is_uint64(kind)


def _is_large(numbers: pa.Array) -> bool:
    span = pc.min_max(numbers).as_py()
    return span["max"] is not None and max(abs(span["min"]), abs(span["max"])) > LARGEST_EXACT


@final
@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some consecutive rows of a source.

    Args:
        columns: name to cells. An image column is a numpy array of shape (n_rows, *shape); any
            other is a pyarrow ChunkedArray, of a type that may be another in the next chunk: each cell is read by
            itself. The cells of a CSV file are its text as it stands, never null.
        n_rows: the number of rows in this chunk. Private, like the cells.
    """

    columns: Mapping[str, Column]
    n_rows: int

    def __repr__(self) -> str:
        return f"Chunk(columns={list(self.columns)!r})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Source(ABC):
    """A table or a stack of images, read any number of times without holding all of it.

    Args:
        label: what messages call the source, e.g. `adult.csv` or `the pandas data frame`.
        container: the kind of thing the data came in.
        storage: column name to its pyarrow type, in the source's own order. Every column of a CSV
            file is `pa.string()`; an image column is `pa.fixed_shape_tensor(dtype, shape)`.
        dtypes: column name to the data frame's own name of its type (pandas, polars); empty for
            other containers.
        keys: image column name to the key it has in its `.npz` or dict; empty for tables.
        chunk_rows: the most rows of one chunk, at least 1.
        inferred: columns whose type follows from all their cells together, see above.
        missing_as_text: whether nothing but a text can say that a cell has no value, as in CSV files: then usual tokens
            (`NA`) say so. Where there is a null, a text `NA` is Namibia.
        computed: whether a program of the holder's makes the rows: a query, a plan, a stream. That each is made of one
            record alone is then the holder's word.
    """

    # whether there are as many records as the container says, whatever their cells hold: no text can end a record
    counts_entries: ClassVar[bool] = False

    label: str
    container: Container
    storage: Mapping[str, pa.DataType]
    dtypes: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    chunk_rows: int = DEFAULT_CHUNK_ROWS
    inferred: frozenset[str] = frozenset()
    missing_as_text: bool = False
    computed: bool = False

    def __post_init__(self) -> None:
        require_integer(at_least=1, chunk_rows=self.chunk_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in the source's own order."""
        return tuple(self.storage)

    def label_of(self, name: str) -> str:
        """Return the label of what has, or should have, a column."""
        return self.label

    def undeclared(self, declared: Collection[str]) -> list[str]:
        """Return the names of columns that are none of these; of several tables, `table.column`."""
        return [name for name in self.names if name not in declared]

    def outline(self, **changes: object) -> dict[str, Any]:
        """Return the fields that a source made of this one, cell by cell, has in common with it, but for changes."""
        names = ("label", "container", "storage", "dtypes", "keys", "chunk_rows", "missing_as_text", "computed")
        return {name: getattr(self, name) for name in names} | changes

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the source with the storage types that these kinds declare; most sources know their own.

        Raises:
            SchemaError: the source cannot hold such columns.
        """
        return self

    def read_as(self, form: CsvForm) -> Source:
        """Return the source of CSV text in a declared form; itself, if it is no CSV.

        Raises:
            DataError: its header cannot be read so.
        """
        return self

    def found_form(self) -> CsvForm:
        """Return the form of CSV text that the file itself shows, where it is not the usual one. Not private."""
        return CsvForm()

    def measured(self) -> Source:
        """Return the source with storage types read off the records where only they tell. Not private: for drafts."""
        return self

    def size(self) -> int:
        """Return how many bytes it is stored in, 0 where that is not known: for bounds on memory, not private."""
        path = getattr(self, "path", None)
        return path.stat().st_size if isinstance(path, Path) else 0

    @property
    def in_files(self) -> bool:
        """Whether any process that sees the same files can read it: not what is in memory, or comes once."""
        return False

    def computing(self) -> Iterator[str]:
        """Yield the labels of the tables whose rows a program of the holder's computes: see `computed`.

        A source that is neither ours nor of an installed package is such a program.
        """
        if self.computed or not (is_ours(type(self)) or package_of(type(self))):
            yield self.label

    def keep(self) -> None:
        """Run what can be read only once, or may fail, before anything is charged; by default there is no such thing.

        Raises:
            DataError: it failed. The message names the source only.
        """
        return

    def with_dictionaries(self) -> Source:
        """Return the source whose text may come dictionary-encoded, where that is quicker; the cells are equal."""
        return self

    def pieces(self) -> Sequence[Source]:
        """Return sources that together have the rows of this one, each once; itself where it cannot be divided.

        Raises:
            DataError: it is damaged.
        """
        return (self,)

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the names of records that are not read, or not whole. Not private."""
        return iter(())

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator[Chunk]:
        """Read the rows from the first to the last, in chunks of at most `chunk_rows`.

        Args:
            columns: the columns to read; None means all of them. What is not asked for is not
                decoded.

        Returns:
            An iterator over chunks, none of them empty; a source without rows has no chunk.

        Raises:
            SchemaError: a column is not in the source.
            DataError: the source is damaged, or changed while it was read. The message names the
                source only.
        """
        wanted = self.names if columns is None else tuple(dict.fromkeys(columns))
        absent = [name for name in wanted if name not in self.storage]
        if absent:
            rule = f"Expected {self.label} to have the columns asked for, got no column"
            raise SchemaError(f"{rule} {', '.join(map(repr, absent))}. Check their spelling.")
        if not wanted:
            raise SchemaError(f"Expected at least one column to read from {self.label}, got none.")
        return guarded(map(self._alone, self._read(wanted)), self.unreadable)

    @property
    def unreadable(self) -> str:
        """The message of a source that cannot be read."""
        return f"Cannot read {self.label}: it is damaged, or it changed while it was read."

    def _alone(self, chunk: Chunk) -> Chunk:
        """Return a chunk whose cells are as they are whatever else their columns hold."""
        if self.inferred.isdisjoint(chunk.columns):
            return chunk
        columns = {
            name: as_inferred(column) if name in self.inferred and isinstance(column, pa.ChunkedArray) else column
            for name, column in chunk.columns.items()
        }
        return Chunk(columns=columns, n_rows=chunk.n_rows)

    @abstractmethod
    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        """Yield the chunks; any exception becomes a DataError in `chunks`."""

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {kind}" for name, kind in self.storage.items())
        return f"{type(self).__name__}({self.label}, {{{columns}}})"


def attempt(read: Callable[[], T], message: str) -> T:
    """Return `read()`; if it fails, raise a DataError that carries nothing of the failure.

    Readers put cells in their exceptions ("could not convert 'Smith'"), and even `raise ... from
    None` would keep them on `__context__`; hence the blind catch, and the raise after it.

    Raises:
        DataError: it failed.
        MemoryError: for want of memory.
    """
    failure: Exception = DataError(message)
    try:
        return read()
    except SfumatoError:
        raise
    except MemoryError:  # numpy's says how many cells there are
        failure = MemoryError("Not enough memory to read the records.")
    except Exception:  # noqa: BLE001
        pass
    raise failure


def guarded(chunks: Iterator[T], message: str) -> Iterator[T]:
    """Pass on what a reader yields; if it fails, raise a DataError that carries nothing of the failure."""
    while (chunk := attempt(lambda: next(chunks, None), message)) is not None:
        yield chunk


def table_chunks(batches: Iterable[pa.RecordBatch | pa.Table], columns: tuple[str, ...], rows: int) -> Iterator[Chunk]:
    """Cut and join record batches into chunks of `rows` rows; fewer of large rows, before other types, and last."""
    pending: list[pa.Table] = []
    for batch in batches:
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        table = table.select(columns).replace_schema_metadata()
        if pending and pending[0].schema != table.schema:
            if any(part.num_rows for part in pending):
                yield _as_chunk(pa.concat_tables(pending))
            pending = []
        pending.append(table)
        while sum(part.num_rows for part in pending) >= rows:
            joined = pa.concat_tables(pending)
            yield _as_chunk(joined.slice(0, rows))
            pending = [joined.slice(rows)]
        if sum(part.nbytes for part in pending) > _CHUNK_BYTES and any(part.num_rows for part in pending):
            yield _as_chunk(pa.concat_tables(pending))
            pending = []
    if any(part.num_rows for part in pending):
        yield _as_chunk(pa.concat_tables(pending))


def batched(items: Iterable[tuple[T, int]], most: int, most_size: int) -> Iterator[list[T]]:
    """Yield items, which come with their sizes, in lists of at most `most` and of little more than `most_size`."""
    batch: list[T] = []
    total = 0
    for item, size in items:
        batch.append(item)
        total += size
        if len(batch) == most or total > most_size:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


def _as_chunk(table: pa.Table) -> Chunk:
    return Chunk(columns=dict(zip(table.column_names, table.columns, strict=True)), n_rows=table.num_rows)


def check_names(names: Sequence[object], label: str) -> None:
    """Refuse column names that are not text, empty or repeated.

    Columns are named by position: the "header" of a file without one is somebody's record.
    """
    position: dict[object, int] = {}
    for i, name in enumerate(names, start=1):
        if not isinstance(name, str):
            kind = type(name).__name__
            rule = f"Expected the column names of {label} to be text, got {kind} for column {i}"
            raise DataError(f"{rule}. Rename them, e.g. `frame.columns = frame.columns.map(str)`.")
        if not name.strip():
            rule = f"Expected every column of {label} to have a name, got none for column {i}"
            raise DataError(f"{rule}. Name it, or write the file without its index.")
        if name in position:
            same = f"columns {position[name]} and {i}"
            rule = f"Expected the columns of {label} to have different names, got the same for {same}"
            raise DataError(f"{rule}. Rename one, or add a header line if there is none.")
        position[name] = i
    if not names:
        raise DataError(f"Expected {label} to have columns, got none.")
