"""Parquet files and pyarrow tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import pyarrow as pa
import pyarrow.parquet as pq

from sfumato.io.chunks import Chunk, Source, attempt, check_names, table_chunks

_BUFFER_BYTES = 1 << 20


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ParquetSource(Source):
    """A Parquet file, read a buffer at a time: a row group need not fit into memory."""

    path: Path

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        with _open(self.path) as file:
            batches = file.iter_batches(batch_size=self.chunk_rows, columns=list(columns))
            yield from table_chunks(batches, columns, self.chunk_rows)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ArrowSource(Source):
    """A pyarrow table in memory."""

    table: pa.Table

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        table = self.table.select(columns)
        yield from table_chunks(table.to_batches(self.chunk_rows), columns, self.chunk_rows)


def open_parquet(path: Path, *, chunk_rows: int) -> ParquetSource:
    """Read the footer of a Parquet file.

    Raises:
        DataError: the file is no Parquet file or is damaged, or two columns have one name.
    """
    message = f"Expected {path.name} to be a Parquet file, got another or a damaged one."
    names, types = attempt(lambda: _read_schema(path), message)
    check_names(names, path.name)
    return ParquetSource(
        label=path.name,
        container="parquet",
        storage=dict(zip(names, types, strict=True)),
        chunk_rows=chunk_rows,
        path=path,
    )


def open_arrow(table: pa.Table, *, chunk_rows: int) -> ArrowSource:
    """Wrap a pyarrow table; its cells are not copied."""
    label = "the pyarrow table"
    check_names(table.column_names, label)
    storage = dict(zip(table.schema.names, table.schema.types, strict=True))
    return ArrowSource(label=label, container="pyarrow", storage=storage, chunk_rows=chunk_rows, table=table)


def _open(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER_BYTES)


def _read_schema(path: Path) -> tuple[list[str], list[pa.DataType]]:
    with _open(path) as file:
        schema = file.schema_arrow
        return schema.names, schema.types
