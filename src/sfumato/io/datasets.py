"""`pyarrow.dataset.Dataset`: every file by the types of its own, as if it were read alone.

A data set has the types of its first file, and stops at a cell of another file that they do not hold. Whether there is
such a cell must not decide whether there is a release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa

from sfumato._lazy import later
from sfumato.errors import DataError
from sfumato.io.chunks import Chunk, Column, Source, attempt, check_names, table_chunks
from sfumato.io.csv import open_csv
from sfumato.io.csv_form import CsvForm
from sfumato.io.origins import as_inferred, pandas_columns
from sfumato.io.spool import spooled
from sfumato.io.stored import stored_file

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
