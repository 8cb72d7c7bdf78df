"""Python objects that give Arrow record batches: data sets, readers, query results, functions that make them.

What can be read once, or has no order of its own (a query, a lazy frame), is written to a private temporary file in the
first pass, and the later passes read that: every pass has to see the same records.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

import pyarrow as pa
import pyarrow.dataset as pads

from sfumato.errors import ConfigError, DataError
from sfumato.io.chunks import Chunk, Source, attempt, check_names, table_chunks
from sfumato.io.duckdb_queries import open_relation
from sfumato.io.spool import Spool, SpooledSource, plain_schema, write_batches

if TYPE_CHECKING:
    import polars as pl

    from sfumato.io.chunks import Container

Batches = Iterable[pa.RecordBatch | pa.Table]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DatasetSource(Source):
    """A `pyarrow.dataset.Dataset`, in the order in which it scans its fragments."""

    dataset: pads.Dataset

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        fields = {name: pads.field(name) for name in columns}  # a name may hold a dot
        yield from table_chunks(_scan(self.dataset, fields, self.chunk_rows), columns, self.chunk_rows)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class MadeSource(Source):
    """What a function gives: called once when the source is opened, and once per pass."""

    make: Callable[[], Batches]

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield from table_chunks(self._batches(), columns, self.chunk_rows)

    def _batches(self) -> Iterator[pa.RecordBatch | pa.Table]:
        for batch in self.make():
            if dict(zip(batch.schema.names, batch.schema.types, strict=True)) != self.storage:
                raise DataError(f"Expected {self.label} to give batches of the same columns and types at every call.")
            yield batch


def open_stream(data: object, *, chunk_rows: int) -> Source | None:
    """Open an object that gives record batches; None if it is no such thing. No record is read yet.

    Args:
        data: a `pyarrow.dataset.Dataset`, a polars LazyFrame, an object with `__arrow_c_stream__`, or a function
            without arguments.
        chunk_rows: the most rows of one chunk.

    Raises:
        DataError: it gives no columns, or columns whose names are unusable.
        ConfigError: a function gives something else than record batches.
    """
    if isinstance(data, pads.Dataset):
        return _open_dataset(cast("Any", data), chunk_rows)
    if (polars := sys.modules.get("polars")) and isinstance(data, polars.LazyFrame):
        return _open_lazy(cast("pl.LazyFrame", data), chunk_rows)
    if (duckdb := sys.modules.get("duckdb")) and isinstance(data, duckdb.DuckDBPyRelation):
        return open_relation(data, chunk_rows=chunk_rows)
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, type):
        label = "the Arrow stream"
        what = (
            f"Expected {label} to be a table with columns, got something else. Pass a table or a record batch reader."
        )
        reader = attempt(lambda: pa.RecordBatchReader.from_stream(data), what)
        return _spooled(reader, reader.schema, label, chunk_rows)
    if callable(data) and not isinstance(data, type | os.PathLike):
        return _open_made(cast("Callable[[], Batches]", data), chunk_rows)
    return None


def _columns(schema: pa.Schema, label: str, container: Container) -> dict[str, Any]:
    check_names(schema.names, label)
    return {"container": container, "storage": dict(zip(schema.names, schema.types, strict=True))}


def _scan(dataset: pads.Dataset, fields: dict[str, pads.Expression] | None, rows: int) -> Iterator[pa.RecordBatch]:
    scanner = dataset.scanner(columns=fields, batch_size=rows, batch_readahead=2, fragment_readahead=1)
    yield from scanner.to_batches()


def _spooled(batches: Batches, schema: pa.Schema, label: str, chunk_rows: int) -> SpooledSource:
    plain = plain_schema(schema)
    spool = Spool(label, lambda path: write_batches(batches, plain, path, chunk_rows=chunk_rows))
    return SpooledSource(label=label, **_columns(plain, label, "pyarrow"), chunk_rows=chunk_rows, spool=spool)


def _open_dataset(dataset: pads.Dataset, chunk_rows: int) -> Source:
    label = "the pyarrow dataset"
    if isinstance(dataset, pads.InMemoryDataset):  # it may hold a reader, which is read once
        return _spooled(_scan(dataset, None, chunk_rows), dataset.schema, label, chunk_rows)
    columns = _columns(dataset.schema, label, "parquet")
    return DatasetSource(label=label, **columns, chunk_rows=chunk_rows, dataset=dataset)


def _open_lazy(frame: pl.LazyFrame, chunk_rows: int) -> SpooledSource:
    """Take the columns of a lazy frame; it is computed in the first pass, in polars' own streaming engine."""
    import polars as pl

    label = "the polars lazy frame"
    what = f"Cannot tell the columns of {label}. Collect it, and pass the data frame."
    schema = attempt(frame.collect_schema, what)
    empty = attempt(lambda: pl.DataFrame(schema=schema).to_arrow().schema, what)

    def write(path: Path) -> None:
        frame.sink_ipc(path)

    columns = _columns(empty, label, "polars")
    dtypes = {name: str(dtype.base_type()) for name, dtype in schema.items()}
    return SpooledSource(label=label, **columns, dtypes=dtypes, chunk_rows=chunk_rows, spool=Spool(label, write))


def _open_made(make: Callable[[], Batches], chunk_rows: int) -> MadeSource:
    label = "the function's batches"
    batches = attempt(make, f"Cannot call the function for {label}: it failed. It takes no argument.")
    schema = getattr(batches, "schema", None)
    if not isinstance(schema, pa.Schema):
        what = "a pyarrow RecordBatchReader, or at least one record batch in an iterable"
        first: Any = None
        if isinstance(batches, Iterable):
            first = attempt(lambda: next(iter(batches), None), f"Cannot read {label}: the function's iterable failed.")
        if not isinstance(first, pa.RecordBatch | pa.Table):
            raise ConfigError(f"Expected a function that returns {what}, got something else. Make Arrow batches of it.")
        schema = cast("Any", first).schema
    return MadeSource(label=label, **_columns(schema, label, "pyarrow"), chunk_rows=chunk_rows, make=make)
