"""Workers of a Dask cluster."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, final

from sfumato.engines.passes import Cluster, Pass, called, shares
from sfumato.engines.work import answered, work
from sfumato.errors import ConfigError, EngineError
from sfumato.io.lazy_frames import DaskSource
from sfumato.records.engine import SplitRecords

_RETRIES = 3
_MOST = 8  # parts per worker
_CLOSED = "Expected a Dask client whose cluster runs, got one that nothing answers. Open a client anew."


@final
class Dask(Cluster):
    """Workers of a Dask cluster, which read files that they all see, or hold the partitions of a Dask data frame.

    Every worker needs this version of Sfumato.

    Args:
        client: a `distributed.Client`.

    Raises:
        ConfigError: it is none.

    Example:
        >>> from sfumato.engines import Dask
        >>> release = method.fit("people/*.parquet", schema=schema, engine=Dask(client))  # doctest: +SKIP
    """

    frames = DaskSource
    silent = _CLOSED

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - distributed is an extra
        if not all(hasattr(client, name) for name in ("submit", "compute", "scheduler_info")):
            raise ConfigError(f"Expected client to be a distributed.Client, got a {type(client).__name__}.")
        self._client = client

    def _ping(self) -> object:
        return self._client.scheduler_info(n_workers=1)

    def _answers(self, summing: Pass, records: SplitRecords) -> tuple[Iterator[bytes], int]:
        source = records.source
        if isinstance(source, DaskSource):
            futures = called(lambda: self._on_partitions(summing, records, source), _CLOSED)
        else:
            futures = called(lambda: self._on_files(summing, records), _CLOSED)
        return _gathered(futures), len(futures)

    def _on_files(self, summing: Pass, records: SplitRecords) -> list[Any]:
        threads = sum(worker["nthreads"] for worker in self._client.scheduler_info(n_workers=-1)["workers"].values())
        parts = shares(records, records.source.pieces(), _MOST * max(threads, 1))
        # keys of their own: an answer of another pass must not be taken for one of this
        return [
            self._client.submit(
                work, summing.shared, number, pickle.dumps(part, protocol=5), pure=False, retries=_RETRIES
            )
            for number, part in enumerate(parts)
        ]

    def _on_partitions(self, summing: Pass, records: SplitRecords, source: DaskSource) -> list[Any]:
        from dask.delayed import delayed

        on_worker = delayed(_on_partition, pure=False)
        parts = [
            on_worker(summing.shared, number, pickle.dumps(records.over(source.like), protocol=5), partition)
            for number, partition in enumerate(source.partitions())
        ]
        return self._client.compute(parts, retries=_RETRIES)


def _on_partition(shared: tuple[bytes, bytes, str], piece: int, records: bytes, frame: Any) -> bytes:  # noqa: ANN401
    """Answer for a partition, a pandas data frame."""
    return answered(shared, piece, lambda: (part := pickle.loads(records)).over(part.source.of(frame)))


def _gathered(futures: list[Any]) -> Iterator[bytes]:
    """Yield the answers as they come; each is let go on the cluster.

    Raises:
        EngineError: a piece was lost with its workers. What Dask says of it is not passed on.
    """
    from distributed import as_completed

    lost = None
    try:
        for future in as_completed(futures):
            yield future.result()
            future.release()
    except EngineError:
        raise
    except Exception:  # noqa: BLE001 - it may hold what a worker printed
        lost = EngineError(
            "Dask's workers ended before a piece of the records was summed, or lack Sfumato. See that it is installed "
            "on all of them, and that they have memory for a piece."
        )
    if lost is not None:
        raise lost
