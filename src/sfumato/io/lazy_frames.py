"""Frames that are plans: polars LazyFrames, and those of a cluster, Dask's and Spark's.

A plan is the holder's own program: that each of its rows is made of one record is the holder's word. A lazy frame is
computed once, before anything is charged. Rows of a cluster are read here only where a method samples or looks at
them. Its frame is computed anew in every pass, the first of which comes before the charge. It has to give the same rows
each time: a query of files or of a table's version does; one that draws at random does not, unless it is persisted.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa

from sfumato.columns.kind import ColumnKind
from sfumato.io.chunks import Chunk, Source, attempt, check_names, table_chunks
from sfumato.io.frames import PandasSource, arrow_columns, index_names, open_pandas
from sfumato.io.spool import Spool, SpooledSource

if TYPE_CHECKING:
    import polars as pl


_LABEL = "the polars lazy frame"


def open_lazy(frame: pl.LazyFrame, *, chunk_rows: int) -> Source:
    """Take the columns of a lazy frame; it is computed once, by polars' own streaming engine.

    Raises:
        DataError: its columns cannot be told, or have unusable names.
    """
    import polars as pl

    message = f"Cannot tell the columns of {_LABEL}. Collect it, and pass the data frame."
    schema = attempt(frame.collect_schema, message)
    frame = frame.select(arrow_columns(schema, schema.names()))
    empty = attempt(lambda: pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema, message)
    check_names(empty.names, _LABEL)
    return SpooledSource(
        label=_LABEL,
        container="polars",
        storage=dict(zip(empty.names, empty.types, strict=True)),
        dtypes={name: str(dtype.base_type()) for name, dtype in schema.items()},
        chunk_rows=chunk_rows,
        computed=True,
        spool=Spool(_LABEL, frame.sink_ipc),
    )


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
    """A Dask data frame, a partition at a time; each is read as `like` is, which has no rows."""

    frame: Any
    like: PandasSource

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the source whose partitions are read as these kinds declare."""
        like = self.like.under(columns)
        return replace(self, like=like, storage=like.storage, dtypes=like.dtypes)

    def keep(self) -> None:
        """Compute every partition once, where they lie: what may stop one stops it before anything is charged."""
        attempt(lambda: self.frame.map_partitions(_no_rows, meta=self.like.frame).compute(), self.unreadable)

    def partitions(self, columns: tuple[str, ...] | None = None) -> list[Any]:
        """Return the partitions, delayed."""
        frame = self.frame if columns is None else self.frame[[name for name in columns if name in self.frame.columns]]
        return frame.to_delayed()

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        for partition in self.partitions(columns):
            yield from self.like.of(partition.compute()).chunks(columns)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SparkSource(Source):
    """A Spark data frame, read as Arrow record batches, a partition at a time; moments in UTC, whatever its session."""

    frame: Any

    def keep(self) -> None:
        """Compute every partition once, where they lie: what may stop one stops it before anything is charged."""
        rows = self.selected(self.names).mapInArrow(_no_batches, "batch binary")
        attempt(rows.collect, self.unreadable)

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
    mro = type(data).__mro__ if "pyspark" in sys.modules else ()
    # of classic Spark and of Spark Connect alike
    if any(kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame" for kind in mro):
        return _open_spark(data, chunk_rows)
    return None


def _open_dask(frame: Any, chunk_rows: int) -> DaskSource:  # noqa: ANN401
    label = "the Dask data frame"
    check_names([*index_names(frame._meta, label).values(), *frame.columns], label)
    like = open_pandas(frame._meta, chunk_rows=chunk_rows)
    return DaskSource(
        label=label,
        container="pandas",
        storage=like.storage,
        dtypes=like.dtypes,
        chunk_rows=chunk_rows,
        computed=True,
        frame=frame,
        like=like,
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
        computed=True,
        frame=frame,
    )


def _as_bytes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack batches as Arrow IPC streams, one a row."""
    for batch in batches:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, batch.schema) as writer:
            writer.write_batch(batch)
        yield pa.record_batch({"batch": pa.array([stream.getvalue().to_pybytes()], pa.binary())})


def _no_rows(partition: Any) -> Any:  # noqa: ANN401 - a pandas frame
    return partition.iloc[:0]


def _no_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take all batches of a partition, and give none."""
    for _ in batches:
        pass
    yield from ()
