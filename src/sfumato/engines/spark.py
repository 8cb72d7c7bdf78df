"""Workers of a Spark cluster, through `mapInArrow`: the one way that classic Spark and Spark Connect have in common.

No accumulators are used: a task that is tried again would count twice in one.
"""

from __future__ import annotations

import contextlib
import importlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa

from sfumato.engines.passes import BatchSource, Cluster, Pass, called, shares
from sfumato.engines.work import answered, work
from sfumato.errors import ConfigError
from sfumato.io.lazy_frames import SparkSource, in_utc
from sfumato.records.engine import SplitRecords

_MOST = 64  # parts of files
_ANSWER = "answer binary"
_STOPPED = "Expected a session of Spark that runs, got one that does nothing. Start it, and make the data frame, anew."
_LOST = (
    "Spark's executors ended before a piece of the records was summed, could not read the data frame, or lack Sfumato. "
    "See that it is installed on all of them, and that they have memory for a piece."
)


@final
class Spark(Cluster):
    """Executors of a Spark cluster, which read files that they all see, or the partitions of a Spark data frame.

    Every executor needs this version of Sfumato. Set `spark.io.encryption.enabled`: Spark may spill rows to disk.

    Args:
        session: a `pyspark.sql.SparkSession`.

    Raises:
        ConfigError: it is none.

    Example:
        >>> from sfumato.engines import Spark
        >>> release = method.fit("s3://people/*.parquet", schema=schema, engine=Spark(session))  # doctest: +SKIP
    """

    frames = SparkSource
    silent = _STOPPED

    def __init__(self, session: Any) -> None:  # noqa: ANN401 - pyspark is an extra
        if not all(hasattr(session, name) for name in ("range", "sql", "createDataFrame")):
            raise ConfigError(f"Expected session to be a pyspark.sql.SparkSession, got a {type(session).__name__}.")
        self._session = session

    def _ping(self) -> object:
        return self._session.range(0, 1, 1, 1).collect()

    def _answers(self, summing: Pass, records: SplitRecords) -> tuple[list[bytes], int]:
        source = records.source
        if isinstance(source, SparkSource):
            emptied = BatchSource(
                label=source.label, container=source.container, storage=source.storage, batches=iter(())
            )
            answering = _OnPartition(summing.shared, pickle.dumps(records.over(emptied), protocol=5))
            columns = tuple(records.read_columns)
            return _collected(called(lambda: source.selected(columns).mapInArrow(answering, _ANSWER), _STOPPED))
        bodies = tuple(pickle.dumps(part, protocol=5) for part in shares(records, source.pieces(), _MOST))
        numbers = called(lambda: self._session.range(0, len(bodies), 1, len(bodies)), _STOPPED)
        rows, _ = _collected(numbers.mapInArrow(_OnFiles(summing.shared, bodies), _ANSWER))
        return rows, len(bodies)


@final
@dataclass(frozen=True, slots=True, repr=False)
class _OnFiles:
    """Answers for the parts whose numbers come."""

    shared: tuple[bytes, bytes, str]
    bodies: tuple[bytes, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _row(work(self.shared, number, self.bodies[number]))


@final
@dataclass(frozen=True, slots=True, repr=False)
class _OnPartition:
    """Answers for the partition that comes, under its number."""

    shared: tuple[bytes, bytes, str]
    body: bytes

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = importlib.import_module("pyspark").TaskContext.get()
        number = 0 if task is None else task.partitionId()
        source = BatchSource(label="the Spark data frame", container="pandas", storage={}, batches=map(in_utc, batches))
        yield _row(
            answered(self.shared, number, lambda: (part := pickle.loads(self.body)).over(source.like(part.source)))
        )


def _row(answer: bytes) -> pa.RecordBatch:
    return pa.record_batch({"answer": pa.array([answer], pa.binary())})


def _collected(frame: Any) -> tuple[list[bytes], int]:  # noqa: ANN401
    """Return the answers, and how many partitions were to answer.

    Raises:
        EngineError: Spark gave up.
    """
    rows, n = called(lambda: _run(frame), _LOST)
    return [bytes(row["answer"]) for row in rows], n


def _run(frame: Any) -> tuple[list[Any], int]:  # noqa: ANN401
    plan = None
    with contextlib.suppress(Exception):  # Spark Connect has no RDD, and says nothing of partitions
        plan = frame.rdd
    if plan is not None:
        return plan.collect(), plan.getNumPartitions()
    rows = frame.collect()
    return rows, len(rows)
