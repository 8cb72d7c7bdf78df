"""A Dask cluster of two processes: the release is that of one, whoever dies; nothing of a record is in its logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.deadly import SECRET, deadly, talkative
from harness.engine_cases import (
    SCHEMA,
    VISITS,
    bits,
    counted,
    fit,
    fit_visits,
    fit_with_deaths,
    folder_of,
    table,
    visits,
)
from sfumato import Schema, create_ledger
from sfumato.columns import Identifier, ItemSet
from sfumato.engines import Dask
from sfumato.engines import dask as dask_module
from sfumato.errors import ConfigError, DataError, EngineError
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData

distributed = pytest.importorskip("distributed")
frames = pytest.importorskip("dask.dataframe")
pytestmark = pytest.mark.filterwarnings("ignore")  # distributed's own, of ports and closing


@pytest.fixture(scope="module")
def cluster_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    import dask

    folder = tmp_path_factory.mktemp("dask")
    with (
        dask.config.set({"temporary-directory": str(folder), "distributed.worker.memory.spill": 0.01}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as found,
    ):
        found.spill_folder = folder
        yield found


@pytest.fixture
def client(cluster_client: Any) -> Any:
    """The cluster with both workers: after a test that kills them, nannies on a busy machine may have given up."""
    try:
        cluster_client.wait_for_workers(2, timeout=30)
    except TimeoutError:
        cluster_client.cluster.scale(0)
        cluster_client.cluster.scale(2)
        cluster_client.wait_for_workers(2, timeout=120)
    return cluster_client


@pytest.mark.slow
def test_release_of_files_is_that_of_one_process(client: Any, local: str, folder: Path):
    assert bits(fit(str(folder), engine=Dask(client))) == local


def test_a_named_index_is_a_column():
    frame = pd.DataFrame({"pulse": [70.5, 61.0, 80.0]}, index=pd.Index([8, 8, 9], name="patient"))
    source = open_source(frames.from_pandas(frame, npartitions=2))
    for names in (("pulse", "patient"), ("patient",)):
        parts = [chunk.columns for chunk in source.chunks(names)]
        assert {name: [cell for part in parts for cell in part[name].to_pylist()] for name in names} == {
            name: frame.reset_index()[name].tolist() for name in names
        }


@pytest.mark.parametrize("n", [1, 5])
def test_release_of_a_dask_frame_is_that_of_pandas(client: Any, local: str, n: int):
    frames = pytest.importorskip("dask.dataframe")
    assert bits(fit(frames.from_pandas(table(), npartitions=n))) == local


@pytest.mark.parametrize("n", [1, 5])
def test_rows_of_a_unit_count_over_all_partitions(client: Any, n: int):
    frames = pytest.importorskip("dask.dataframe")
    expected = counted(visits(), VISITS)
    assert counted(frames.from_pandas(visits(), npartitions=n), VISITS, Dask(client)) == expected


@pytest.mark.slow
def test_a_dask_frame_of_files_needs_no_cluster(client: Any, local: str, folder: Path):
    frames = pytest.importorskip("dask.dataframe")
    source = open_source(frames.read_parquet(folder))
    assert sum(chunk.n_rows for chunk in source.chunks(["age"])) == len(table())
    assert bits(fit(frames.read_parquet(folder))) == local


@pytest.mark.slow
def test_units_are_not_divided_among_workers(client: Any, tmp_path: Path):
    frames = pytest.importorskip("dask.dataframe")
    expected = bits(fit_visits(visits()))
    assert bits(fit_visits(folder_of(visits(), tmp_path / "visits"), engine=Dask(client))) == expected
    assert bits(fit_visits(frames.from_pandas(visits(), npartitions=5))) == expected


def test_samples_of_a_dask_frame_come_as_pandas(client: Any):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    assert isinstance(fit(frames.from_pandas(table(), npartitions=2)).sample(5, seed=1), pandas.DataFrame)


@pytest.mark.slow
def test_a_worker_that_dies_in_every_pass_changes_nothing(client: Any, local: str, folder: Path, tmp_path: Path):
    release, deaths = fit_with_deaths(folder, Dask(client), tmp_path / "armed")
    assert bits(release) == local
    assert deaths == 2


@pytest.mark.slow
def test_a_worker_that_always_dies_is_one_clear_error(client: Any, folder: Path, tmp_path: Path):
    source = deadly(open_source(str(folder)), tmp_path / "armed", always=True)
    with pytest.raises(EngineError, match="Dask's workers ended") as caught:
        fit(source, engine=Dask(client))
    assert caught.value.__context__ is None


@pytest.mark.slow
def test_no_record_is_in_an_error_a_log_or_a_spill_file(client: Any, folder: Path, capfd, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(DataError, match="on a worker") as caught:
        fit(talkative(open_source(str(folder))), engine=Dask(client))
    out, err = capfd.readouterr()
    logs = f"{client.get_worker_logs()}{client.get_scheduler_logs()}{client.get_events()}"
    for said in (f"{caught.value!r}{caught.value.__context__!r}", out, err, caplog.text, logs):
        assert SECRET not in said
    for file in client.spill_folder.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()


def test_a_frame_that_fails_is_one_clear_error(client: Any):
    frames = pytest.importorskip("dask.dataframe")

    def fail(part: Any) -> Any:
        raise ValueError(f"could not convert {SECRET!r}")

    frame = frames.from_pandas(table(), npartitions=2)
    broken = frame.map_partitions(fail, meta=frame._meta)
    with pytest.raises(DataError, match="the Dask data frame") as caught:
        fit(broken)
    assert SECRET not in f"{caught.value!r}{caught.value.__context__!r}{caught.value.__cause__!r}"


@pytest.mark.parametrize("tamper", ["lost", "doubled", "stale"])
def test_lost_doubled_and_stale_pieces_are_refused(client: Any, folder: Path, tamper: str, monkeypatch):
    gathered, kept = dask_module._gathered, []

    def tampered(futures: list[Any]) -> Iterator[bytes]:
        found = list(gathered(futures))
        old, kept[:] = list(kept), found
        if tamper == "lost":
            yield from found[1:]
        elif tamper == "doubled":
            yield from (found[0], *found)
        else:
            yield from (*(old or found)[:1], *found[1:])

    monkeypatch.setattr(dask_module, "_gathered", tampered)
    charged: list[str] = []
    with pytest.raises(EngineError, match="Expected every piece"):
        fit(str(folder), engine=Dask(client), progress=charged.append)
    assert charged == ([] if tamper != "stale" else ["marginals"])  # the first pass has none before it


def test_data_in_memory_is_refused_before_anything_is_charged(client: Any, tmp_path: Path):
    ledger = tmp_path / "people.ledger"
    create_ledger(ledger, epsilon=3.0, delta=1e-5)
    before = ledger.read_bytes()
    with pytest.raises(ConfigError, match="that the workers can read themselves"):
        fit(table(), engine=Dask(client), ledger=ledger)
    assert ledger.read_bytes() == before


def test_a_long_table_is_read_by_the_caller(client: Any, tmp_path: Path):
    """Its records are made of rows from anywhere in the file."""
    path = tmp_path / "long.csv"
    path.write_text("who,item\n" + "".join(f"u{i % 50},{i % 3}\n" for i in range(300)))
    sets = ItemSet(items=("0", "1", "2"), max_length=3, id="who")
    schema = Schema(columns={"who": Identifier(), "item": sets}, rows=50)
    assert counted(str(path), schema, Dask(client)) == 50


@pytest.mark.parametrize("frame", [False, True])
def test_a_client_that_is_closed_is_refused_before_anything_is_charged(folder: Path, frame: bool):
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        client = distributed.Client(cluster)
        data = frames.from_pandas(table(), npartitions=2) if frame else str(folder)
        client.close()
    charged: list[str] = []
    with pytest.raises(EngineError, match="Open a client anew") as caught:
        fit(data, engine=Dask(client), progress=charged.append)
    assert charged == []
    assert caught.value.__context__ is None


def test_a_cluster_that_ends_in_a_fit_is_one_clear_error(folder: Path):
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        client = distributed.Client(cluster)
        with pytest.raises(EngineError, match=r"Open a client anew|workers ended"):
            fit(str(folder), engine=Dask(client), progress=lambda _: client.close())


def test_a_client_that_is_none_is_refused():
    with pytest.raises(ConfigError, match=r"Expected client to be a distributed\.Client, got a str"):
        Dask("tcp://somewhere")


def test_answers_on_the_cluster_are_random_bits(client: Any, folder: Path, monkeypatch):
    """What lies in a worker's memory, hence in its spill files, is under a pad: no count is in it."""
    gathered, seen = dask_module._gathered, []

    def watched(futures: list[Any]) -> Iterator[bytes]:
        for packed in gathered(futures):
            seen.append(packed)
            yield packed

    monkeypatch.setattr(dask_module, "_gathered", watched)
    fit(str(folder), engine=Dask(client))
    words = np.concatenate([np.frombuffer(packed[41:], dtype="<u8") for packed in seen])
    assert words.size > 1000
    assert len(np.unique(words)) == words.size
    assert words.min() > SCHEMA.rows  # of so few words none is as small by chance: 1e-11


@pytest.mark.parametrize("over_workers", [False, True])
def test_one_text_in_a_partition_moves_no_other_record(over_workers):
    import dask

    columns: dict[str, Any] = {
        "x": {"kind": "continuous", "lower": -9, "upper": 9, "written": {"decimal": ",", "thousands": "."}},
        "day": {"kind": "datetime", "lower": "2019-01-01", "upper": "2021-01-01", "format": "%Y-%d-%m"},
    }
    known, days = Schema.from_dict({"columns": columns}), [pd.Timestamp("2020-01-02"), pd.Timestamp("2020-03-04")]
    codes = []
    for words in ([], ["a word"]):
        frame = pd.DataFrame({"x": [1.234, 2.345, *words], "day": [*days, *words]})
        with dask.config.set({"dataframe.convert-string": False}):
            source = open_source(frames.from_pandas(frame, npartitions=1))
        records = PrivateData(source, known)
        if over_workers:
            (partition,) = records.source.partitions()
            records = records.over(records.source.like.of(partition.compute()))
        codes.append({name: np.concatenate([c[name] for c in records.coded()])[:2] for name in columns})
    np.testing.assert_equal(*codes)
