"""`fit --workers`, of processes and of clusters: the release of one process, or one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.engine_cases import SCHEMA, bits, folder_of, table
from sfumato import load

FIT = ("--epsilon", 1, "--target", "place", "--seed", 3)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    SCHEMA.save(tmp_path / "schema.yaml")
    return folder_of(table(), tmp_path / "people"), tmp_path / "schema.yaml"


@pytest.mark.slow
def test_a_fit_on_workers_is_that_of_one_process(call, files, tmp_path):
    folder, schema = files
    for name, options in (("one", ()), ("two", ("--workers", 2))):
        done = call("fit", folder, "--schema", schema, "--out", tmp_path / name, *FIT, *options)
        assert done.code == 0, done.err
    assert bits(load(tmp_path / "one")) == bits(load(tmp_path / "two"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_fit_on_a_dask_cluster_is_that_of_one_process(call, files, tmp_path):
    distributed = pytest.importorskip("distributed")
    folder, schema = files
    assert call("fit", folder, "--schema", schema, "--out", tmp_path / "one", *FIT).code == 0
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        done = call("fit", folder, "--schema", schema, "--out", tmp_path / "two", *FIT, "--workers", address)
        assert done.code == 0, done.err
    assert bits(load(tmp_path / "one")) == bits(load(tmp_path / "two"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workers", 0), "workers"),
        (("--workers", "two"), "a whole number or dask://HOST:PORT"),
        (("--workers", "ray://localhost:1"), "dask://HOST:PORT"),
        (("--workers", "localhost:8786"), "dask://HOST:PORT"),
    ],
)
def test_other_workers_are_refused_before_anything_is_read(call, files, tmp_path, options, said):
    folder, schema = files
    done = call("fit", folder, "--schema", schema, "--out", tmp_path / "out", *FIT, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_does_not_answer_is_one_clear_error(call, files, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    folder, schema = files
    real = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda address, timeout: real(address, timeout="1s"))
    done = call("fit", folder, "--schema", schema, "--out", tmp_path / "out", *FIT, "--workers", "dask://127.0.0.1:1")
    assert done.code == 2
    assert "Cannot reach the Dask scheduler" in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "out").exists()
