"""Python objects that give Arrow record batches: data sets, readers, query results, functions that make them.

What can be read once, or has no order of its own (a query, a lazy frame), is written to a private temporary file in the
first pass, and the later passes read that: every pass has to see the same records.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast, final

import pyarrow as pa

from sfumato.errors import ConfigError, DataError
from sfumato.io.chunks import Chunk, Source, attempt, check_names, table_chunks
from sfumato.io.csv_form import CsvForm
from sfumato.io.datasets import open_dataset
from sfumato.io.duckdb_queries import open_relation
from sfumato.io.lazy_frames import open_lazy
from sfumato.io.origins import pandas_columns
from sfumato.io.picture_cells import holds_files
from sfumato.io.spool import Batches, spooled

if TYPE_CHECKING:
    import polars as pl


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
