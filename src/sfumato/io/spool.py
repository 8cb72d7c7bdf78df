"""Records kept for the passes of one call in a private temporary file: what can be read only once, or not twice alike.

The folder belongs to its owner alone (rights 0700, the file 0600) and goes when the source does, at the latest when the
program ends. A process that is killed leaves it: set `TMPDIR` to a place where such a file may lie.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, final

import pyarrow as pa

from sfumato.errors import DataError
from sfumato.io.arrow import read_batches
from sfumato.io.atomic import SECRET
from sfumato.io.chunks import Chunk, Source, attempt, check_names, pandas_columns, table_chunks

Batches: TypeAlias = Iterable[pa.RecordBatch | pa.Table]


@final
class Spool:
    """A private temporary file that is written when it is first asked for.

    Args:
        label: what messages call the records.
        write: writes the file at a path, where an empty one is; called once.
        name: of the file.
    """

    def __init__(self, label: str, write: Callable[[Path], None], name: str = "records.arrow") -> None:
        self._label = label
        self._write: Callable[[Path], None] | None = write
        self._name = name
        self._path: Path | None = None
        self._lock = threading.Lock()

    def path(self) -> Path:
        """Return the path of the written file.

        Raises:
            DataError: it could not be written in an earlier call: what is read only once is then lost.
        """
        with self._lock:
            if self._path is not None:
                return self._path
            if self._write is None:
                raise DataError(f"Cannot read {self._label} again after a failure. Open it anew.")
            write, self._write = self._write, None
            folder = Path(tempfile.mkdtemp(prefix="sfumato-"))
            clear = weakref.finalize(self, _remove, folder, os.getpid())
            path = folder / self._name
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, SECRET))
                write(path)
            except BaseException:
                clear()
                raise
            self._path = path
            return path


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class SpooledSource(Source):
    """Records that are written to a private temporary file, as Arrow IPC, and read from there.

    A fit has it written before anything is charged; else the first pass does.

    Attributes:
        spool: the file.
    """

    spool: Spool

    def keep(self) -> None:
        """Write the file now."""
        attempt(self.spool.path, self.unreadable)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        batches = read_batches(str(self.spool.path()), columns)
        yield from table_chunks(batches, columns, self.chunk_rows)


def write_batches(batches: Batches, schema: pa.Schema, path: Path, *, chunk_rows: int) -> None:
    """Write batches of one schema as an Arrow IPC file whose batches have at most `chunk_rows` rows."""
    options = pa.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=False)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema, options=options) as writer:
        for batch in batches:
            table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
            writer.write_table(table.cast(schema), max_chunksize=chunk_rows)


def spooled(batches: Batches, schema: pa.Schema, label: str, *, chunk_rows: int) -> SpooledSource:
    """Return the source of batches of one schema that a program gives once; none is taken yet."""
    plain = plain_schema(schema)
    check_names(plain.names, label)
    return SpooledSource(
        label=label,
        container="pyarrow",
        storage=dict(zip(plain.names, plain.types, strict=True)),
        chunk_rows=chunk_rows,
        inferred=pandas_columns(schema),
        computed=True,
        spool=Spool(label, lambda path: write_batches(batches, plain, path, chunk_rows=chunk_rows)),
    )


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema without dictionaries, which a file holds once for all batches."""
    kinds = (kind.value_type if isinstance(kind, pa.DictionaryType) else kind for kind in schema.types)
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def _remove(folder: Path, owner: int) -> None:
    """Remove the folder, unless this is a copy of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
