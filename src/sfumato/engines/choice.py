"""Which workers a call runs on: those it names, those its data frame belongs to, or none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from sfumato.engines.passes import called
from sfumato.engines.processes import Processes
from sfumato.errors import ConfigError
from sfumato.extras import import_extra
from sfumato.io.chunks import Source
from sfumato.io.lazy_frames import DaskSource, SparkSource
from sfumato.records.engine import Engine

ADDRESSES = "dask://HOST:PORT, spark://HOST:PORT or sc://HOST:PORT"


@contextlib.contextmanager
def engine_for(source: Source, workers: int | None, engine: Engine | None) -> Iterator[Engine | None]:
    """Give the engine that sums over a source; processes end with the block, a cluster is left as it is.

    Args:
        source: where the records lie.
        workers: how many processes of this machine.
        engine: `Dask(client)`, `Spark(session)` or `Processes(n)`, not beside workers: `FitOptions` checks both.

    Raises:
        ConfigError: the workers of a cluster cannot read the source.
    """
    if workers is not None:
        with Processes(workers) as processes:
            yield processes
        return
    engine = _own_engine(source) if engine is None else engine
    if engine is not None:
        engine.check(source)  # before anything is charged
    yield engine


def _own_engine(source: Source) -> Engine | None:
    """Return the cluster that a data frame belongs to."""
    if isinstance(source, SparkSource):
        from sfumato.engines.spark import Spark

        return Spark(source.frame.sparkSession)
    if isinstance(source, DaskSource):
        client = _current_client()
        if client is not None:
            from sfumato.engines.dask import Dask

            return Dask(client)
    return None


def _current_client() -> Any:  # noqa: ANN401
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):  # without a cluster, partitions are computed here
        return None


@contextlib.contextmanager
def engine_at(address: str | None) -> Iterator[Engine | None]:
    """Connect to a cluster for a block.

    Args:
        address: such as `dask://10.0.0.5:8786`; None for none.

    Raises:
        ConfigError: no such address, its library is not installed, or nothing answers there.
    """
    if address is None:
        yield None
        return
    scheme = address.partition("://")[0]
    if scheme == "dask":
        with _dask_at("tcp://" + address.removeprefix("dask://")) as client:
            from sfumato.engines.dask import Dask

            yield Dask(client)
        return
    if scheme not in ("spark", "sc"):
        raise ConfigError(f"Expected --workers to be a number or {ADDRESSES}, got another address.")
    from sfumato.engines.spark import Spark

    session = _spark_at(address)
    try:
        yield Spark(session)
    finally:
        session.stop()


def _dask_at(address: str) -> Any:  # noqa: ANN401
    distributed = import_extra("distributed", "dask")
    message = "Cannot reach the Dask scheduler at that address. Check host and port, and that it runs."
    return called(lambda: distributed.Client(address, timeout="10s"), message, ConfigError)


def _spark_at(address: str) -> Any:  # noqa: ANN401
    sql = import_extra("pyspark.sql", "spark")

    def session() -> Any:  # noqa: ANN401
        builder = sql.SparkSession.builder.appName("sfumato").config("spark.io.encryption.enabled", "true")
        return (builder.remote if address.startswith("sc://") else builder.master)(address).getOrCreate()

    message = "Cannot start a session of Spark at that address. Check host and port, and that it runs."
    return called(session, message, ConfigError)
