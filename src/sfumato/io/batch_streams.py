"""Python objects that give Arrow record batches: data sets, readers, query results, functions that make them.

A stream, a filter and a function are programs of the holder's: that each of their rows is made of one record is the
holder's word. They run once, into a private temporary file, before anything is charged, and all passes read that.

A data set of files has the types of its first file, and stops at a cell of another file that they do not hold. Whether
there is such a cell must not decide whether there is a release.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast, final

import pyarrow as pa

from sfumato._lazy import later
from sfumato.errors import ConfigError, DataError
from sfumato.io.chunks import Chunk, Column, Source, as_inferred, attempt, check_names, pandas_columns, table_chunks
from sfumato.io.csv import open_csv
from sfumato.io.csv_form import CsvForm
from sfumato.io.duckdb_queries import open_relation
from sfumato.io.lazy_frames import open_lazy
from sfumato.io.spool import Batches, spooled
from sfumato.io.stored import stored_file

if TYPE_CHECKING:
    import polars as pl
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
    """Open a data set; no record is read yet. Rows of one that has no files, or a filter, are a program's.

    Raises:
        DataError: its columns have unusable names, or its files are of a format whose types follow from their cells.
    """
    check_names(dataset.schema.names, _LABEL)
    fragments = _fragments(dataset)
    if fragments is None:
        scanner = attempt(lambda: dataset.scanner(batch_size=chunk_rows), f"Cannot read {_LABEL}.")
        return spooled(scanner.to_batches(), dataset.schema, _LABEL, chunk_rows=chunk_rows)
    known = (pads.ParquetFileFormat, pads.IpcFileFormat, pads.CsvFileFormat, pads.OrcFileFormat)
    if any(not isinstance(getattr(fragment, "format", None), known) for fragment in fragments):
        raise DataError(
            f"Expected {_LABEL} to have Parquet, Arrow, ORC or CSV files, whose cells can be read one by one. Pass the "
            "paths of its files, such as 'ds/*.jsonl'."
        )
    return DatasetSource(
        label=_LABEL,
        container="parquet",
        storage=dict(zip(dataset.schema.names, dataset.schema.types, strict=True)),
        chunk_rows=chunk_rows,
        dataset=dataset,
    )


def _fragments(dataset: pads.Dataset) -> list[pads.Fragment] | None:
    """Return the files of a data set; None where it has others than files, or a filter, which pyarrow gives none of."""
    with contextlib.suppress(Exception):
        return list(dataset.get_fragments()) if _of_files(dataset) else None
    return None


def _of_files(dataset: pads.Dataset) -> bool:
    if isinstance(dataset, pads.UnionDataset):
        return all(map(_of_files, dataset.children))
    return isinstance(dataset, pads.FileSystemDataset)


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


def open_stream(data: object, *, chunk_rows: int) -> Source | None:
    """Open an object that gives record batches; None if it is no such thing.

    Args:
        data: a `pyarrow.dataset.Dataset`, a polars LazyFrame, a DuckDB relation, an object with `__arrow_c_stream__`,
            or a function without arguments, which is called.
        chunk_rows: the most rows of one chunk.

    Raises:
        DataError: it gives no columns, or columns whose names are unusable.
        ConfigError: a function gives something else than record batches.
    """
    if (pads := sys.modules.get("pyarrow.dataset")) and isinstance(data, pads.Dataset):
        return open_dataset(cast("Any", data), chunk_rows=chunk_rows)
    if (polars := sys.modules.get("polars")) and isinstance(data, polars.LazyFrame):
        return open_lazy(cast("pl.LazyFrame", data), chunk_rows=chunk_rows)
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


def _open_function(make: Callable[[], Batches], chunk_rows: int) -> Source:
    """Call a function; without a reader, which has one schema, the types of each batch are its own."""
    label = "the function's batches"
    batches: Any = attempt(make, f"Cannot call the function for {label}: it failed. It takes no argument.")
    if isinstance(batches, pa.RecordBatch | pa.Table):
        batches = [batches]
    if isinstance(schema := getattr(batches, "schema", None), pa.Schema):
        return spooled(batches, schema, label, chunk_rows=chunk_rows)
    rest = iter(batches if isinstance(batches, Iterable) else ())
    first: Any = attempt(lambda: next(rest, None), f"Cannot read {label}: the function's iterable failed.")
    if not isinstance(first, pa.RecordBatch | pa.Table):
        what = "a pyarrow RecordBatchReader, or at least one record batch in an iterable"
        raise ConfigError(f"Expected a function that returns {what}, got something else. Make Arrow batches of it.")
    return spooled(itertools.chain([first], rest), first.schema, label, chunk_rows=chunk_rows, one=False)
