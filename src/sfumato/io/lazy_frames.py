"""Frames that are plans: polars LazyFrames, and those of a cluster, Dask's and Spark's.

Rows of a cluster are read here only where a method samples or looks at them. Its frame is computed anew in every pass.
It has to give the same rows each time: a query of files or of a table's version does; one that draws at random does
not, unless it is persisted.

A lazy frame is computed once. Where it would stop at a cell, it is changed so that this cell alone is missing: casts
and dates are no longer strict. A plan that only scans CSV files is read by the paths of these. Where the types of a
file follow from its rows, or from those of several files, no change of the plan helps, and it is refused by its form,
whatever the files hold. What a plan may do besides (functions of Python, say) is not known: docs/sharp_edges.md.
"""

from __future__ import annotations

import importlib
import inspect
import io
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa

from sfumato.columns.kind import ColumnKind
from sfumato.errors import DataError
from sfumato.io.chunks import Chunk, Source, attempt, check_names, table_chunks
from sfumato.io.csv_form import CsvForm
from sfumato.io.frames import PandasSource, arrow_columns, index_names, open_pandas
from sfumato.io.spool import Spool, SpooledSource
from sfumato.io.strict_json import mappings_in

if TYPE_CHECKING:
    import polars as pl


_LABEL = "the polars lazy frame"
_MAY_STOP = ("strict_cast", "strptime")
_TEXT = ("csv scan", "json scan")
_SEVERAL = re.compile(r"^\s*(?:Parquet|IPC) SCAN \[[^\]]*, ", re.MULTILINE)
_IN_MEMORY = "DF ["


def open_lazy(
    frame: pl.LazyFrame, *, chunk_rows: int, open_paths: Callable[[Sequence[str], CsvForm], Source]
) -> Source:
    """Take the columns of a lazy frame; it is computed in the first pass, in polars' own streaming engine.

    Args:
        frame: the plan.
        chunk_rows: the most rows of one chunk.
        open_paths: opens files by their paths: those of a plan that does nothing but to scan CSV files.

    Raises:
        DataError: its columns cannot be told, or have unusable names; or its types follow from cells.
    """
    import polars as pl

    message = f"Cannot tell the columns of {_LABEL}. Collect it, and pass the data frame."
    scanned = attempt(lambda: _scanned_csv(frame), message)
    if scanned is not None:
        return replace(open_paths(*scanned), container="polars")
    frame = attempt(lambda: _without_stops(frame), message)
    schema = attempt(frame.collect_schema, message)
    frame = frame.select(arrow_columns(schema, schema.names()))
    empty = attempt(lambda: pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema, message)
    check_names(empty.names, _LABEL)

    def write(path: Path) -> None:
        frame.sink_ipc(path)

    return SpooledSource(
        label=_LABEL,
        container="polars",
        storage=dict(zip(empty.names, empty.types, strict=True)),
        dtypes={name: str(dtype.base_type()) for name, dtype in schema.items()},
        chunk_rows=chunk_rows,
        spool=Spool(_LABEL, write),
    )


def _without_stops(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the plan in which no cell stops the others from being read.

    Raises:
        DataError: it cannot be changed so.
    """
    import polars as pl

    shown = frame.explain(optimized=False)
    if _SEVERAL.search(shown):
        raise DataError(
            f"Expected {_LABEL} of one file a scan, got several, whose types may differ. Pass their paths, such as "
            "'ds/*.parquet'."
        )
    if any(word in shown.lower() for word in _TEXT):
        raise DataError(
            f"Expected {_LABEL} of files whose types are declared, got one of text, in which one cell may decide them. "
            "Pass the path of the file and leave the rest to the schema, or collect it and pass the data frame."
        )
    if not any(word in shown for word in _MAY_STOP):
        return frame
    if _IN_MEMORY in shown:  # which its text would hold once more
        raise DataError(
            f"Expected {_LABEL} of files alone, or without strict casts, got a data frame beside them. Cast with "
            "strict=False, or collect it and pass the data frame."
        )
    plan = _plan(frame)
    for node in mappings_in(plan):
        for key, value in node.items():
            if value == "Strict" or (key == "strict" and value is True):
                node[key] = "NonStrict" if value == "Strict" else False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pl.LazyFrame.deserialize(io.StringIO(json.dumps(plan)), format="json")


def _plan(frame: pl.LazyFrame) -> Any:  # noqa: ANN401 - a value of JSON
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # polars may change the form: then reading it fails, and the frame is refused
        return json.loads(frame.serialize(format="json"))


def _scanned_csv(frame: pl.LazyFrame) -> tuple[list[str], CsvForm] | None:
    """Return the files of a plan that is nothing but a scan of CSV files with a header, and their form; else None."""
    if not frame.explain(optimized=False).startswith("Csv SCAN"):
        return None
    scan = next(node["Scan"] for node in mappings_in(_plan(frame)) if isinstance(node.get("Scan"), dict))
    arguments, options = scan["unified_scan_args"], scan["scan_type"]["Csv"]["options"]
    parse = options["parse_options"]
    usual = (
        options["has_header"]
        and not any(options[key] for key in ("skip_rows", "skip_lines", "skip_rows_after_header", "n_rows"))
        and not any(options[key] for key in ("columns", "projection", "column_names_overwrite", "row_index"))
        and not any(arguments[key] for key in ("projection", "column_mapping", "row_index", "pre_slice"))
        and arguments["include_file_paths"] is None
        and (parse["quote_char"], parse["eol_char"], parse["comment_prefix"]) == (ord('"'), ord("\n"), None)
    )
    paths = [path.get("inner") for path in scan["sources"].get("Paths", [])]
    if not usual or not paths or not all(isinstance(path, str) for path in paths):
        return None
    return paths, CsvForm(delimiter=chr(parse["separator"]))


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
    check_names([*index_names(frame._meta, label).values(), *frame.columns], label)
    like = open_pandas(frame._meta, chunk_rows=chunk_rows)
    return DaskSource(
        label=label,
        container="pandas",
        storage=like.storage,
        dtypes=like.dtypes,
        chunk_rows=chunk_rows,
        frame=frame,
        like=like,
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
