"""Arrow IPC, in files (`.feather`, `.arrow`) and streams, read one record batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, ClassVar, final

import pyarrow as pa

from sfumato.io.arrow_layout import sound_batches
from sfumato.io.chunks import Chunk, attempt, check_names, table_chunks
from sfumato.io.origins import pandas_columns
from sfumato.io.stored import FileSource, StoredFile

_MAGIC = b"ARROW1"  # a file begins with it, a stream does not


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class IpcSource(FileSource):
    """A file of Arrow record batches, one of which has to fit into memory."""

    counts_entries: ClassVar[bool] = True

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        places = sorted(self.names.index(name) for name in columns)
        with self.file.reading() as raw:
            yield from table_chunks(sound_batches(_batches(raw, places)), columns, self.chunk_rows)


def open_ipc(file: StoredFile, *, chunk_rows: int) -> IpcSource:
    """Read the schema of a file or stream of record batches.

    Raises:
        DataError: it is none or is damaged, or two columns have one name.
    """
    message = f"Expected {file.name} to be an Arrow IPC file or stream (Feather version 2), got another or damaged one."
    schema = attempt(lambda: _read_schema(file), message)
    check_names(schema.names, file.name)
    storage = dict(zip(schema.names, schema.types, strict=True))
    return IpcSource(
        label=file.name,
        container="parquet",
        storage=storage,
        chunk_rows=chunk_rows,
        inferred=pandas_columns(schema),
        file=file,
    )


def read_batches(path: str, columns: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of an IPC file of this machine, with these columns alone."""
    with pa.OSFile(path) as raw:
        with pa.ipc.open_file(raw) as reader:
            names = reader.schema.names
        raw.seek(0)
        yield from _batches(raw, sorted(names.index(name) for name in columns))


def _read_schema(file: StoredFile) -> pa.Schema:
    with file.reading() as raw, _reader(raw, None) as reader:
        return reader.schema


def _batches(raw: IO[bytes], places: list[int]) -> Iterator[pa.RecordBatch]:
    with _reader(raw, places) as reader:
        if isinstance(reader, pa.RecordBatchFileReader):
            yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
        else:
            yield from reader


def _reader(raw: IO[bytes], places: list[int] | None) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    options = pa.ipc.IpcReadOptions(included_fields=places)
    start = raw.read(len(_MAGIC))
    raw.seek(0)
    return (pa.ipc.open_file if start == _MAGIC else pa.ipc.open_stream)(raw, options=options)
