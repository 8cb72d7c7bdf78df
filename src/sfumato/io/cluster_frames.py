"""Data frames of a cluster: Dask's and Spark's. Their rows are read here only where a method samples or looks at them.

A frame is computed anew in every pass. It has to give the same rows each time: a query of files or of a table's version
does; one that draws at random does not, unless it is persisted.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa

from sfumato.io.chunks import Chunk, Source, attempt, check_names, table_chunks
from sfumato.io.frames import open_pandas


def utc_type(kind: pa.DataType) -> pa.DataType:
    """Return a type whose moments, if it has a zone, are in UTC.

    Example:
        >>> utc_type(pa.timestamp("us", "Asia/Tokyo"))
        TimestampType(timestamp[us, tz=UTC])
    """
    return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def utc_schema(schema: pa.Schema) -> pa.Schema:
    """Return names and types alone, moments in UTC."""
    return pa.schema([(field.name, utc_type(field.type)) for field in schema])


def in_utc(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same moments in UTC."""
    return batch.cast(utc_schema(batch.schema))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DaskSource(Source):
    """A Dask data frame, a partition at a time."""

    frame: Any

    def partitions(self, columns: tuple[str, ...] | None = None) -> list[Any]:
        """Return the partitions, delayed."""
        frame = self.frame if columns is None else self.frame[list(columns)]
        return frame.to_delayed()

    def emptied(self) -> Source:
        """Return a source of these columns without rows, which can be pickled."""
        return open_pandas(self.frame._meta, chunk_rows=self.chunk_rows)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        for partition in self.partitions(columns):
            yield from open_pandas(partition.compute(), chunk_rows=self.chunk_rows).chunks(columns)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SparkSource(Source):
    """A Spark data frame, read as Arrow record batches, a partition at a time; moments in UTC, whatever its session."""

    frame: Any

    def selected(self, columns: tuple[str, ...]) -> Any:  # noqa: ANN401 - pyspark is an extra
        """Return the frame of these columns."""
        return self.frame.select(*(f"`{name.replace('`', '``')}`" for name in columns))

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        rows = self.selected(columns).mapInArrow(_as_bytes, "batch binary").toLocalIterator(prefetchPartitions=True)
        batches = (in_utc(batch) for row in rows for batch in pa.ipc.open_stream(row["batch"]))
        yield from table_chunks(batches, columns, self.chunk_rows)


def open_cluster_frame(data: object, *, chunk_rows: int) -> Source | None:
    """Open a data frame of Dask or Spark; None if it is none.

    Raises:
        DataError: column names are unusable, or a column has a type that Arrow does not have.
    """
    if (dask := sys.modules.get("dask.dataframe")) and isinstance(data, dask.DataFrame):
        return _open_dask(data, chunk_rows)
    if "pyspark" in sys.modules and _is_spark(data):
        return _open_spark(data, chunk_rows)
    return None


def _open_dask(frame: Any, chunk_rows: int) -> DaskSource:  # noqa: ANN401
    label = "the Dask data frame"
    check_names(list(frame.columns), label)
    like = open_pandas(frame._meta, chunk_rows=chunk_rows)
    return DaskSource(
        label=label,
        container="pandas",
        storage=like.storage,
        dtypes=like.dtypes,
        chunk_rows=chunk_rows,
        frame=frame,
    )


def _is_spark(data: object) -> bool:
    # of classic Spark and of Spark Connect alike
    return any(
        kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame" for kind in type(data).__mro__
    )


def _open_spark(frame: Any, chunk_rows: int) -> SparkSource:  # noqa: ANN401
    to_arrow_schema = importlib.import_module("pyspark.sql.pandas.types").to_arrow_schema
    label = "the Spark data frame"
    stopped = f"Cannot tell the columns of {label}. See that its session runs, and that its tables are there."
    described = attempt(lambda: frame.schema, stopped)
    check_names(described.names, label)
    # before Spark 4.1 the zone was UTC of itself
    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    message = f"Expected {label} to have columns of types that Arrow has. Cast the others, or drop them."
    schema = attempt(lambda: utc_schema(to_arrow_schema(described, **zone)), message)
    return SparkSource(
        label=label,
        container="pandas",
        storage=dict(zip(schema.names, schema.types, strict=True)),
        chunk_rows=chunk_rows,
        frame=frame,
    )


def _as_bytes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack batches as Arrow IPC streams, one a row."""
    for batch in batches:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch({"batch": pa.array([stream.getvalue().to_pybytes()], pa.binary())})
