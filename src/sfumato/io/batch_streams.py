"""Python objects that give Arrow record batches: data sets, readers, query results, functions that make them.

What can be read once, or has no order of its own (a query, a lazy frame), is written to a private temporary file in the
first pass, and the later passes read that: every pass has to see the same records.

A data set has the types of its first file, and stops at a cell of another file that they do not hold. Whether there is
such a cell must not decide whether there is a release.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast, final

import pyarrow as pa

from sfumato._lazy import later
from sfumato.errors import ConfigError, DataError
from sfumato.io.chunks import Chunk, Column, Source, as_inferred, attempt, check_names, pandas_columns, table_chunks
from sfumato.io.csv import open_csv
from sfumato.io.csv_form import CsvForm
from sfumato.io.duckdb_queries import open_relation
from sfumato.io.lazy_frames import open_lazy
from sfumato.io.picture_cells import holds_files
from sfumato.io.spool import Batches, spooled
from sfumato.io.stored import stored_file

if TYPE_CHECKING:
    import polars as pl

if TYPE_CHECKING:
    import pyarrow.dataset as pads
    from pyarrow import fs
else:  # they bring pandas and ssl
    pads, fs = later("pyarrow.dataset"), later("pyarrow.fs")


_LABEL = "the pyarrow dataset"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DatasetSource(Source):
    """The files of a data set, in the order in which it lists them.

    A column that a file lacks is missing in all its records.
    """

    dataset: pads.Dataset

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield from table_chunks(self._tables(columns), columns, self.chunk_rows)

    def _tables(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        for fragment in self.dataset.get_fragments():
            folders: Mapping[str, Any] = pads.get_partition_keys(fragment.partition_expression)
            for cells, n_rows in _cells(fragment, columns, self.chunk_rows):
                whole = {name: pa.repeat(pa.scalar(folders.get(name), self.storage[name]), n_rows) for name in columns}
                yield pa.table({**whole, **cells})


def open_dataset(dataset: pads.Dataset, *, chunk_rows: int) -> Source:
    """Open a data set; no record is read yet.

    Raises:
        DataError: its columns have unusable names, it is filtered, or its files are of a format whose types follow from
            their cells.
    """
    if isinstance(dataset, pads.InMemoryDataset):  # it may hold a reader, which is read once
        scanner = dataset.scanner(batch_size=chunk_rows)
        return spooled(scanner.to_batches(), dataset.schema, _LABEL, chunk_rows=chunk_rows)
    check_names(dataset.schema.names, _LABEL)
    _check_fragments(dataset)
    return DatasetSource(
        label=_LABEL,
        container="parquet",
        storage=dict(zip(dataset.schema.names, dataset.schema.types, strict=True)),
        chunk_rows=chunk_rows,
        dataset=dataset,
    )


def _check_fragments(dataset: pads.Dataset) -> None:
    fragments = attempt(
        lambda: list(dataset.get_fragments()),
        f"Expected {_LABEL} without a filter, which may fail at a cell. Pass the paths of its files, or a table.",
    )
    known = (pads.ParquetFileFormat, pads.IpcFileFormat, pads.CsvFileFormat, pads.OrcFileFormat)
    if any(not isinstance(getattr(fragment, "format", None), known) for fragment in fragments):
        raise DataError(
            f"Expected {_LABEL} to have Parquet, Arrow, ORC or CSV files, whose cells can be read one by one. Pass the "
            "paths of its files, such as 'ds/*.jsonl'."
        )


def _cells(file: Any, columns: Sequence[str], rows: int) -> Iterator[tuple[Mapping[str, Column], int]]:  # noqa: ANN401
    """Yield cells of the columns that a file has, and the number of records."""
    if isinstance(file.format, pads.CsvFileFormat):
        source = _text(file, rows)
        own = [name for name in columns if name in source.names]
        yield from ((chunk.columns if own else {}, chunk.n_rows) for chunk in source.chunks(own or source.names[:1]))
        return
    schema = file.physical_schema
    fields = {name: pads.field(name) for name in columns if name in schema.names}  # a name may hold a dot
    inferred = pandas_columns(schema)
    scanner = file.scanner(schema=schema, columns=fields, batch_size=rows, batch_readahead=2, fragment_readahead=1)
    for batch in scanner.to_batches():
        cells = {name: pa.chunked_array([batch.column(name)]) for name in fields}
        yield {name: as_inferred(c) if name in inferred else c for name, c in cells.items()}, batch.num_rows


def _text(file: Any, rows: int) -> Source:  # noqa: ANN401 - a Fragment
    """Return a file of CSV as it is read by its path: every cell as its text."""
    system = None if isinstance(file.filesystem, fs.LocalFileSystem) else file.filesystem
    form = CsvForm(delimiter=file.format.parse_options.delimiter)
    return open_csv(stored_file(file.path, system=system), chunk_rows=rows, form=form)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FunctionSource(Source):
    """Batches of a function, which is called once when the source is opened, and once per pass.

    Batches may have types of their own, which follow from their cells: each is read as it comes. Of batches without a
    schema beside them, no type is known before.

    Attributes:
        make: the function.
        first: types of the first batch, for drafts and for samples in the types of the source.
    """

    make: Callable[[], Batches]
    first: Mapping[str, pa.DataType] = field(default_factory=dict)

    def stored_type(self, name: str) -> pa.DataType:
        """Return the type of the first batch."""
        return self.first.get(name, self.storage[name])

    def measured(self) -> Source:
        """Return the source with the types of the first batch. Not private."""
        return replace(self, storage={**self.storage, **self.first})

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield from table_chunks(self._batches(), columns, self.chunk_rows)

    def _batches(self) -> Iterator[pa.RecordBatch | pa.Table]:
        for batch in self.make():
            if set(batch.schema.names) != set(self.storage):
                raise DataError(f"Expected {self.label} to give batches of the same columns at every call.")
            yield batch


def open_stream(
    data: object, *, chunk_rows: int, open_paths: Callable[[Sequence[str], CsvForm], Source]
) -> Source | None:
    """Open an object that gives record batches; None if it is no such thing. No record is read yet.

    Args:
        data: a `pyarrow.dataset.Dataset`, a polars LazyFrame, an object with `__arrow_c_stream__`, or a function
            without arguments.
        chunk_rows: the most rows of one chunk.
        open_paths: opens files by their paths.

    Raises:
        DataError: it gives no columns, or columns whose names are unusable.
        ConfigError: a function gives something else than record batches.
    """
    if (pads := sys.modules.get("pyarrow.dataset")) and isinstance(data, pads.Dataset):
        return open_dataset(cast("Any", data), chunk_rows=chunk_rows)
    if (polars := sys.modules.get("polars")) and isinstance(data, polars.LazyFrame):
        return open_lazy(cast("pl.LazyFrame", data), chunk_rows=chunk_rows, open_paths=open_paths)
    if (duckdb := sys.modules.get("duckdb")) and isinstance(data, duckdb.DuckDBPyRelation):
        return open_relation(data, chunk_rows=chunk_rows)
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, type):
        label = "the Arrow stream"
        what = (
            f"Expected {label} to be a table with columns, got something else. Pass a table or a record batch reader; "
            "make a frame of a single column: series.to_frame()."
        )
        reader = attempt(lambda: pa.RecordBatchReader.from_stream(data), what)
        return spooled(reader, reader.schema, label, chunk_rows=chunk_rows)
    if callable(data) and not isinstance(data, type | os.PathLike):
        return _open_function(cast("Callable[[], Batches]", data), chunk_rows)
    return None


def _open_function(make: Callable[[], Batches], chunk_rows: int) -> FunctionSource:
    label = "the function's batches"
    batches = attempt(make, f"Cannot call the function for {label}: it failed. It takes no argument.")
    schema: Any = getattr(batches, "schema", None)
    first: Any = None
    if isinstance(schema, pa.Schema):
        inferred = pandas_columns(schema)
    else:
        what = "a pyarrow RecordBatchReader, or at least one record batch in an iterable"
        if isinstance(batches, Iterable):
            first = attempt(lambda: next(iter(batches), None), f"Cannot read {label}: the function's iterable failed.")
        if not isinstance(first, pa.RecordBatch | pa.Table):
            raise ConfigError(f"Expected a function that returns {what}, got something else. Make Arrow batches of it.")
        schema = first.schema
        inferred = frozenset(schema.names)  # another batch may bring other types
    check_names(schema.names, label)
    first_types = dict(zip(schema.names, schema.types, strict=True))
    unknown = {name for name in inferred if _may_be_another(first_types[name])} if first is not None else set()
    return FunctionSource(
        label=label,
        container="pyarrow",
        storage={**first_types, **dict.fromkeys(unknown, pa.null())},
        chunk_rows=chunk_rows,
        inferred=inferred,
        make=make,
        first=first_types,
    )


def _may_be_another(kind: pa.DataType) -> bool:
    """Whether cells of another batch may be of another type: not of files of pictures, which are declared."""
    return not holds_files(kind) and not isinstance(kind, pa.BaseExtensionType)
