"""Processes of this machine: the release is that of one, whatever the form of the data, and whoever dies."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from harness.deadly import SECRET, deadly, talkative
from harness.engine_cases import SCHEMA, N, bits, fit, fit_visits, fit_with_deaths, folder_of, table, visits
from sfumato import P3GM, IndependentItems, MaxEntropy, Schema
from sfumato.columns import ItemSet
from sfumato.engines import Processes
from sfumato.errors import ConfigError, DataError, EngineError
from sfumato.io.sources import open_source


@pytest.fixture(scope="module")
def engine() -> Iterator[Processes]:
    with Processes(2) as processes:
        yield processes


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "csv", "folder", "glob", "row groups", "stream"])
def test_release_is_that_of_one_process(form: str, engine: Processes, local: str, folder: Path, tmp_path: Path):
    frame = table()
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet", index=False, row_group_size=500)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    data = {
        "pandas": lambda: frame,
        "polars": lambda: pytest.importorskip("polars").from_arrow(arrow),
        "arrow": lambda: arrow,
        "csv": lambda: tmp_path / "table.csv",
        "folder": lambda: folder,
        "glob": lambda: f"{folder}/*.parquet",
        "row groups": lambda: tmp_path / "table.parquet",
        "stream": lambda: arrow.to_reader(),
    }[form]()
    assert bits(fit(open_source(data, chunk_rows=700), engine=engine)) == local


def test_order_and_division_of_the_rows_change_nothing(engine: Processes, local: str, tmp_path: Path):
    shuffled = table().sample(frac=1, random_state=4)
    assert bits(fit(folder_of(shuffled, tmp_path / "other", files=9), engine=engine)) == local


@pytest.mark.slow
@pytest.mark.audit
def test_a_worker_that_dies_in_every_pass_changes_nothing(local: str, folder: Path, tmp_path: Path):
    with Processes(2) as engine:
        release, deaths = fit_with_deaths(folder, engine, tmp_path / "armed")
    assert bits(release) == local
    assert deaths == 2  # one in each pass


@pytest.mark.slow
@pytest.mark.audit
def test_a_worker_that_always_dies_is_one_clear_error(folder: Path, tmp_path: Path):
    source = deadly(open_source(str(folder)), tmp_path / "armed", always=True)
    with Processes(2) as engine, pytest.raises(EngineError, match="ended three times") as caught:
        fit(source, engine=engine)
    assert caught.value.__context__ is None


def test_a_failing_reader_shows_no_record(engine: Processes, folder: Path, capfd):
    with pytest.raises(DataError, match="on a worker") as caught:
        fit(talkative(open_source(str(folder))), engine=engine)
    out, err = capfd.readouterr()
    assert SECRET not in f"{caught.value!r}{caught.value.__context__!r}{out}{err}"


def test_a_file_that_changes_between_passes_is_refused(engine: Processes, tmp_path: Path):
    folder = folder_of(table(), tmp_path / "changing")

    def change(_: str) -> None:
        table().iloc[:100].to_parquet(folder / "0.parquet", index=False)

    with pytest.raises(DataError, match="changed"):
        fit(str(folder), engine=engine, progress=change)


@pytest.mark.slow
@pytest.mark.audit
def test_passes_of_p3gm_are_summed_by_workers(engine: Processes):
    pytest.importorskip("torch")
    method = P3GM(epsilon=2.0, latent_dim=2, hidden=8, epochs=1, batch_size=1000)
    fits = [method.fit(table(), schema=SCHEMA, target="place", seed=1, engine=e) for e in (None, engine)]
    assert bits(fits[0]) == bits(fits[1])


def test_sets_are_summed_by_workers(engine: Processes):
    rng = np.random.default_rng(0)
    sets = [list(map(str, rng.choice(20, rng.integers(1, 6), replace=False))) for _ in range(N)]
    data = pa.table({"items": pa.array(sets)})
    schema = Schema(columns={"items": ItemSet(items=tuple(map(str, range(20))), max_length=6)}, rows=N)
    fits = [
        IndependentItems(epsilon=1.0).fit(open_source(data, chunk_rows=500), schema=schema, seed=1, engine=e)
        for e in (None, engine)
    ]
    assert bits(fits[0]) == bits(fits[1])


def test_images_are_summed_by_workers(engine: Processes):
    rng = np.random.default_rng(0)
    from sfumato.columns import Categorical, Image

    x, y = rng.integers(0, 256, (400, 8, 8), dtype=np.uint8), rng.integers(0, 2, 400)
    schema = Schema(
        columns={"x": Image(shape=(8, 8), dtype="uint8"), "y": Categorical(categories=["0", "1"])}, rows=400
    )
    source = open_source((x, y), chunk_rows=100)
    fits = [MaxEntropy(epsilon=5.0).fit(source, schema=schema, seed=1, engine=e) for e in (None, engine)]
    assert bits(fits[0]) == bits(fits[1])


def test_units_are_not_divided_among_workers(engine: Processes, tmp_path: Path):
    """A unit's rows lie in several files: were each file cut to max_rows by itself, more than max_rows would count."""
    expected = bits(fit_visits(visits()))
    assert bits(fit_visits(folder_of(visits(), tmp_path / "visits"), engine=engine)) == expected


def test_one_worker_is_this_process(local: str):
    assert bits(fit(table(), workers=1)) == local


@pytest.mark.parametrize("workers", [0, -1, 1.5, "2", True])
def test_workers_that_are_no_number_are_refused(workers: object):
    with pytest.raises(ConfigError, match="workers"):
        fit(table(), workers=workers)


def test_workers_and_engine_are_not_both_taken(engine: Processes):
    with pytest.raises(ConfigError, match="got both"):
        fit(table(), workers=2, engine=engine)


def test_an_engine_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="Expected engine to be"):
        fit(table(), engine="dask")


_FIRST_WORKER = """
import signal
from sfumato.engines import Processes
with Processes(1) as engine:
    heard = engine._submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
print(signal.SIGINT in heard, signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


def test_workers_never_hear_an_interrupt():
    """Ctrl-C reaches all processes of a terminal: the caller ends the workers, which say nothing.

    In a process of its own: the first pool of a process starts multiprocessing's tracker of resources, which unblocks
    Ctrl-C, so that only the first worker would hear it.
    """
    done = subprocess.run([sys.executable, "-c", _FIRST_WORKER], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_what_was_handed_out_is_taken_back_when_a_pass_ends(engine: Processes, folder: Path, local: str):
    with pytest.raises(DataError):
        fit(talkative(open_source(str(folder))), engine=engine)
    assert bits(fit(table(), engine=engine)) == local, "the engine goes on"
