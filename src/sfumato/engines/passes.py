"""The driver's side of a pass: pieces of the records, calls to a cluster, and answers that make one sum.

Whatever is wrong ends the fit before the mechanism of the pass charges its stage.
"""

from __future__ import annotations

import itertools
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar, final

import numpy as np
import pyarrow as pa

from sfumato.engines.work import Answer, Outcome, new_key, shared_part, unmasked
from sfumato.errors import ConfigError, DataError, EngineError, SfumatoError
from sfumato.io.chunks import Chunk, Source, table_chunks
from sfumato.records.engine import Records, Rows, SplitRecords, Statistic

_REASONS: dict[Outcome, str] = {
    Outcome.NO_MEMORY: "a worker had too little memory. Take fewer workers, or smaller pieces",
    Outcome.OTHER_VERSION: "a worker has another version of Sfumato. Install the driver's everywhere",
    Outcome.FAILED: (
        "a worker failed; it does not say more, because that may hold a record. Fit a few rows of your own making "
        "without workers, to see the cause"
    ),
}
T = TypeVar("T")


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


@final
class Pass:
    """One pass of a statistic over the records, in pieces.

    Args:
        statistic: what is summed.
        width: as of `InParts`.
        label: what messages call the records.
    """

    def __init__(self, statistic: Statistic, width: int | None, label: str) -> None:
        self._key = new_key()
        self._shape = (getattr(statistic, "compact", None) or statistic).zero().shape
        self._label = label
        self._total: np.ndarray | None = None
        self._pieces: list[int] = []
        self._machine: bytes | None = None
        self.shared = shared_part(self._key, statistic, width)

    @classmethod
    def of(cls, statistic: Statistic, records: SplitRecords, width: int | None) -> Pass | None:
        """Begin a pass; None if its statistic cannot be sent, such as one of another package that holds a function."""
        try:
            return cls(statistic, width, records.source.label)
        except (pickle.PicklingError, AttributeError, TypeError):
            return None

    def take(self, packed: bytes) -> None:
        """Add a worker's answer.

        Raises:
            DataError: the worker could not read its piece.
            EngineError: it failed otherwise, or is of another kind than the workers before it.
        """
        answer = Answer.of(packed)
        if answer.outcome == Outcome.UNREADABLE:
            raise DataError(
                f"Cannot read {self._label} on a worker: it is damaged, it changed while it was read, or the worker "
                "cannot reach it."
            )
        if answer.outcome != Outcome.DONE:
            raise EngineError(f"Cannot sum over {self._label}: {_REASONS[answer.outcome]}.")
        if self._machine not in (None, answer.machine):
            raise EngineError(
                "Expected workers of one kind, got different processors or versions of Python, numpy, scipy or its "
                "linear algebra: which worker reads a record would change what it adds. Take workers of one kind."
            )
        self._machine = answer.machine
        self._pieces.append(answer.piece)
        if self._total is None:
            self._total = np.zeros(answer.words.size, dtype=np.uint64)
        if self._total.size != answer.words.size:
            raise self._torn()
        self._total += answer.words

    def total(self, expected: Iterable[int]) -> np.ndarray:
        """Return the sum, if the pieces that came are the expected ones, each once.

        Args:
            expected: numbers of the pieces that were handed out.

        Raises:
            EngineError: they are not, or one is of another pass.
        """
        expected = sorted(expected)
        if not expected:
            return np.zeros(self._shape, dtype=np.int64)
        whole = None
        if self._total is not None and sorted(self._pieces) == expected:
            whole = unmasked(self._total, self._key, expected)
        if whole is None or whole.size != np.prod(self._shape, dtype=np.int64):
            raise self._torn()
        return whole.reshape(self._shape)

    def _torn(self) -> EngineError:
        return EngineError(
            f"Expected every piece of {self._label} once, got one lost, doubled, or of another pass. Nothing was drawn "
            "from this pass. Fit again."
        )


def called(call: Callable[[], T], message: str, kind: type[SfumatoError] = EngineError) -> T:
    """Return the result of a call.

    Raises:
        EngineError: with the message, or of another kind, if the cluster fails; nothing of the failure is carried on.
    """
    failure = kind(message)
    try:
        return call()
    except SfumatoError:
        raise
    except Exception:  # noqa: BLE001
        pass
    raise failure


class Cluster(ABC):
    """Workers of a cluster, which read files that they all see, or hold the parts of a data frame of their own."""

    frames: ClassVar[type[Source]]
    silent: ClassVar[str]  # what is said where nothing answers

    def check(self, source: Source) -> None:
        """Refuse data that the workers cannot read, and a cluster that does not run.

        Raises:
            ConfigError: says what they can read.
            EngineError: nothing answers.
        """
        if not self._reads(source):
            raise ConfigError(
                f"Expected data that the workers can read themselves, got {source.label}. Pass a path or URL of "
                "Parquet, CSV, JSON lines or Arrow files that all of them see, or a data frame of the cluster; or take "
                "processes of this machine: workers=... (--workers)."
            )
        called(self._ping, self.silent)

    def summed(self, statistic: Statistic, records: SplitRecords, width: int | None) -> np.ndarray | None:
        """Return the sum over the records, whole numbers modulo 2^64; None if they are summed by the caller."""
        summing = Pass.of(statistic, records, width) if self._reads(records.source) else None
        if summing is None:
            return None
        answers, n = self._answers(summing, records)
        for packed in answers:
            summing.take(packed)
        return summing.total(range(n))

    def _reads(self, source: Source) -> bool:
        return source.in_files or isinstance(source, self.frames)

    @abstractmethod
    def _ping(self) -> object:
        """Do something on the cluster."""

    @abstractmethod
    def _answers(self, summing: Pass, records: SplitRecords) -> tuple[Iterable[bytes], int]:
        """Return the answers to a pass, and how many there are to be."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
