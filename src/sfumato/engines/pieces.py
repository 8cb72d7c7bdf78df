"""The parts of the records that workers get: files to read, or chunks and batches that were read for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pyarrow as pa

from sfumato.io.chunks import Chunk, Source, table_chunks
from sfumato.records.engine import Records, Rows, SplitRecords


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ChunkSource(Source):
    """One chunk of another source.

    Attributes:
        chunk: its cells.
    """

    chunk: Chunk

    @classmethod
    def of(cls, chunk: Chunk, source: Source) -> ChunkSource:
        """Wrap a chunk of a source."""
        return cls(**source.outline(), chunk=chunk)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield Chunk(columns={name: self.chunk.columns[name] for name in columns}, n_rows=self.chunk.n_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the rows of the chunk alone: Arrow would take along what a slice is of."""
        cells = self.chunk.columns
        arrays = {name: column for name, column in cells.items() if isinstance(column, np.ndarray)}
        table = pa.table({name: column for name, column in cells.items() if name not in arrays})
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        outline = self.outline(storage=dict(self.storage))
        return _unpacked, (outline, list(cells), self.chunk.n_rows, stream.getvalue().to_pybytes(), arrays)


def _unpacked(
    outline: dict[str, Any], names: list[str], n_rows: int, stream: bytes, arrays: dict[str, Any]
) -> ChunkSource:
    table = pa.ipc.open_stream(stream).read_all()
    cells = {name: arrays[name] if name in arrays else table.column(name) for name in names}
    return ChunkSource(**outline, chunk=Chunk(columns=cells, n_rows=n_rows))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BatchSource(Source):
    """Record batches that come once, as an engine hands them to a worker.

    Attributes:
        batches: an iterator; a second pass over it finds nothing.
    """

    batches: Iterator[pa.RecordBatch]

    def like(self, source: Source) -> BatchSource:
        """Return these batches as rows of another source."""
        return replace(
            self,
            label=source.label,
            container=source.container,
            storage=source.storage,
            missing_as_text=source.missing_as_text,
        )

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield from table_chunks(self.batches, columns, self.chunk_rows)


@final
@dataclass(frozen=True, slots=True)
class Several:
    """Parts of the records that one worker sums, one after the other."""

    parts: tuple[Records, ...]

    @property
    def max_rows_per_unit(self) -> int:
        """Most records that one unit contributes."""
        return self.parts[0].max_rows_per_unit

    def coded(self) -> Iterator[Rows]:
        """Yield the chunks of all parts."""
        for part in self.parts:
            yield from part.coded()


def shares(records: SplitRecords, pieces: Sequence[Source], most: int) -> list[Records]:
    """Return the records of pieces in at most so many parts, of neighbouring pieces each."""
    parts = [records.over(piece) for piece in pieces]
    n = min(most, len(parts))
    bounds = [len(parts) * i // n for i in range(n + 1)]
    return [Several(tuple(parts[low:high])) for low, high in itertools.pairwise(bounds)]
