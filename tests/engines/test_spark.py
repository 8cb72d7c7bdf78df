"""A Spark cluster of two executors: the release is that of one process, whoever dies; no record is in its logs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.deadly import SECRET, deadly, talkative
from harness.engine_cases import bits, fit, fit_visits, fit_with_deaths, folder_of, table, visits
from sfumato import MaxEntropy, Schema
from sfumato.engines import Spark
from sfumato.engines import spark as spark_module
from sfumato.errors import ConfigError, DataError, EngineError, SfumatoError
from sfumato.io.sources import open_source

sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # pyspark's own warnings


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("spark")
    paths = os.pathsep.join(path for path in sys.path if path)
    settings = {
        "spark.ui.enabled": "false",
        "spark.executor.memory": "512m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder}",
        "spark.local.dir": str(folder),
        "spark.executorEnv.PYTHONPATH": paths,
        "spark.pyspark.python": sys.executable,
        "spark.task.maxFailures": "4",
    }
    builder = sql.SparkSession.builder.master("local-cluster[2,1,512]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.spill_folder = folder
    yield found
    found.stop()


def test_release_of_files_is_that_of_one_process(session: Any, local: str, folder: Path):
    assert bits(fit(str(folder), engine=Spark(session))) == local


@pytest.mark.parametrize("n", [None, 5])
def test_release_of_a_spark_frame_is_that_of_one_process(session: Any, local: str, folder: Path, n: int | None):
    frame = session.read.parquet(str(folder))
    assert bits(fit(frame if n is None else frame.repartition(n))) == local


def test_units_are_not_divided_among_workers(session: Any, tmp_path: Path):
    folder = folder_of(visits(), tmp_path / "visits")
    expected = bits(fit_visits(visits()))
    assert bits(fit_visits(session.read.parquet(str(folder)))) == expected
    assert bits(fit_visits(folder, engine=Spark(session))) == expected


def test_a_worker_that_dies_in_every_pass_changes_nothing(session: Any, local: str, folder: Path, tmp_path: Path):
    release, deaths = fit_with_deaths(folder, Spark(session), tmp_path / "armed", "executor")
    assert bits(release) == local
    assert deaths == 2


def test_a_worker_that_always_dies_is_one_clear_error(session: Any, folder: Path, tmp_path: Path):
    source = deadly(open_source(str(folder)), tmp_path / "armed", always=True)
    with pytest.raises(EngineError, match="Spark's executors ended") as caught:
        fit(source, engine=Spark(session))
    assert caught.value.__context__ is None


def test_no_record_is_in_an_error_a_log_or_a_spill_file(session: Any, folder: Path, capfd):
    with pytest.raises(DataError, match="on a worker") as caught:
        fit(talkative(open_source(str(folder))), engine=Spark(session))
    out, err = capfd.readouterr()
    assert SECRET not in f"{caught.value!r}{caught.value.__context__!r}{out}{err}"
    files = [file for file in session.spill_folder.rglob("*") if file.is_file()]
    assert files  # the event log at least
    assert all(SECRET.encode() not in file.read_bytes() for file in files)


@pytest.mark.parametrize("tamper", ["lost", "doubled", "stale"])
def test_lost_doubled_and_stale_pieces_are_refused(session: Any, folder: Path, tamper: str, monkeypatch):
    collected, kept = spark_module._collected, []

    def tampered(frame: Any) -> tuple[list[bytes], int]:
        found, n = collected(frame)
        old, kept[:] = list(kept), found
        if tamper == "lost":
            return found[1:], n
        if tamper == "doubled":
            return [found[0], *found], n
        return [*(old or found)[:1], *found[1:]], n

    monkeypatch.setattr(spark_module, "_collected", tampered)
    charged: list[str] = []
    with pytest.raises(EngineError, match="Expected every piece"):
        fit(session.read.parquet(str(folder)).repartition(3), progress=charged.append)
    assert charged == ([] if tamper != "stale" else ["marginals"])


def test_rows_of_a_spark_frame_are_read_where_a_method_samples(session: Any, folder: Path):
    source = open_source(session.read.parquet(str(folder)))
    chunks = list(source.chunks(["place", "age"]))
    assert sum(chunk.n_rows for chunk in chunks) == len(table())
    assert list(chunks[0].columns) == ["place", "age"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_moments_are_in_utc_whatever_the_zone_of_the_session(session: Any, tmp_path: Path, zone: str):
    times = pa.array([1_577_836_800_000_000 + 7_200_000_000 * i for i in range(500)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": times, "y": [i % 2 for i in range(500)]}), tmp_path / "times.parquet")
    schema = {"columns": {"at": {"kind": "datetime", "lower": "2020-01-01 00:00", "upper": "2020-03-01 00:00",
                                 "resolution": "hour"}, "y": "boolean"}, "rows": 500}  # fmt: skip
    method = MaxEntropy(epsilon=1)
    expected = method.fit(str(tmp_path / "times.parquet"), schema=Schema.from_dict(schema), seed=1)
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = session.read.parquet(str(tmp_path / "times.parquet"))
        source = open_source(frame)
        assert source.storage["at"] == pa.timestamp("us", "UTC")
        cells = [cell for chunk in source.chunks(["at"]) for cell in chunk.columns["at"].to_pylist()]
        assert sorted(cells) == times.to_pylist()
        assert bits(method.fit(frame, schema=Schema.from_dict(schema), seed=1, rows_are_records=True)) == bits(expected)
    finally:
        session.conf.set("spark.sql.session.timeZone", before)


def test_data_in_memory_is_refused(session: Any):
    with pytest.raises(ConfigError, match="that the workers can read themselves"):
        fit(table(), engine=Spark(session))


def test_a_session_that_is_none_is_refused():
    with pytest.raises(ConfigError, match=r"Expected session to be a pyspark\.sql\.SparkSession, got a str"):
        Spark("local")


def test_a_session_that_was_stopped_is_refused_before_anything_is_charged(session: Any, folder: Path):
    """The last test of this file: a program has one session."""
    frame = session.read.parquet(str(folder))
    session.stop()
    charged: list[str] = []
    for call in (
        lambda: fit(str(folder), engine=Spark(session), progress=charged.append),
        lambda: fit(frame, progress=charged.append),
        lambda: list(open_source(frame).chunks(["age"])),
    ):
        with pytest.raises(SfumatoError, match=r"session|damaged") as caught:
            call()
        assert caught.value.__context__ is None
    assert charged == []
