"""Records kept for the passes of one call in a private temporary file: what can be read only once, or not twice alike.

The folder belongs to its owner alone (rights 0700, the file 0600) and goes when the source does, at the latest when the
program ends. A process that is killed leaves it: set `TMPDIR` to a place where such a file may lie.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, final

import pyarrow as pa

from sfumato.errors import DataError
from sfumato.io.arrow import read_batches
from sfumato.io.atomic import SECRET
from sfumato.io.chunks import Chunk, Source, attempt, check_names, pandas_columns, table_chunks
from sfumato.io.picture_cells import holds_files

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
        first: types of the first batch, where others may have other ones, for drafts.
    """

    spool: Spool
    first: Mapping[str, pa.DataType] = field(default_factory=dict)

    def measured(self) -> Source:
        """Return the source with the types of the first batch. Not private."""
        return replace(self, storage={**self.storage, **self.first})

    def keep(self) -> None:
        """Write the file now."""
        attempt(self.spool.path, self.unreadable)

    @property
    def unreadable(self) -> str:
        """The message of a source that cannot be read."""
        return f"Cannot read {self.label}: what gives its rows failed or changed, or the disk is full."

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        batches = read_batches(str(self.spool.path()), sorted(map(self.names.index, columns)))
        yield from table_chunks(batches, columns, self.chunk_rows)


def write_batches(batches: Batches, names: Sequence[str], path: Path, *, chunk_rows: int) -> None:
    """Write batches of these columns as IPC streams, one for those of one schema, in batches of `chunk_rows` rows."""
    options = pa.ipc.IpcWriteOptions(compression="lz4", unify_dictionaries=False)
    tables = (part if isinstance(part, pa.Table) else pa.Table.from_batches([part]) for part in batches)
    with pa.OSFile(str(path), "wb") as file:
        chosen = (table.select(names) for table in tables)
        for schema, same in itertools.groupby(chosen, lambda table: plain_schema(table.schema)):
            with pa.ipc.new_stream(file, schema, options=options) as writer:
                for table in same:
                    writer.write_table(table.cast(schema), max_chunksize=chunk_rows)


def spooled(batches: Batches, schema: pa.Schema, label: str, *, chunk_rows: int, one: bool = True) -> SpooledSource:
    """Return the source of batches that a program gives once; none is taken yet.

    Args:
        batches: of the same columns.
        schema: of the first.
        label: what messages call them.
        chunk_rows: the most rows of one chunk.
        one: whether all have this schema. Else the types of each follow from its cells, and each is read by its own.
    """
    types = plain_schema(schema)
    check_names(types.names, label)
    first = dict(zip(types.names, types.types, strict=True))
    # cells of another batch have the type of files of pictures too, which are declared
    unknown = [
        n for n, kind in first.items() if not (one or holds_files(kind) or isinstance(kind, pa.BaseExtensionType))
    ]
    return SpooledSource(
        label=label,
        container="pyarrow",
        storage={**first, **dict.fromkeys(unknown, pa.null())},
        chunk_rows=chunk_rows,
        inferred=pandas_columns(schema) if one else frozenset(first),
        computed=True,
        first={name: first[name] for name in unknown},
        spool=Spool(label, lambda path: write_batches(batches, types.names, path, chunk_rows=chunk_rows)),
    )


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return names and types alone, without dictionaries, which a file holds once for all batches."""
    kinds = (kind.value_type if isinstance(kind, pa.DictionaryType) else kind for kind in schema.types)
    return pa.schema(list(zip(schema.names, kinds, strict=True)))


def _remove(folder: Path, owner: int) -> None:
    """Remove the folder, unless this is a copy of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
