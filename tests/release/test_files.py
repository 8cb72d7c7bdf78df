"""Releases on disk: what is loaded is what was saved, and nothing half-written is ever left."""

import json
import os
import zipfile

import numpy as np
import pandas as pd
import pytest

import sfumato
from fixtures import tables
from fixtures.releases import SMALL, small_frame
from sfumato import MaxEntropy
from sfumato.errors import ConfigError, OutputError, ReleaseError
from sfumato.privacy.budget import EstimateCount
from sfumato.release import files
from sfumato.release_front import load

NAMES = ("release", "release.sfm")


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


def same(first, second):
    assert first.schema == second.schema
    assert first.sampler == second.sampler
    assert first.certificate == second.certificate
    assert first.form == second.form
    assert first.parameters.keys() == second.parameters.keys()
    for name, array in first.parameters.items():
        assert array.dtype == second.parameters[name].dtype
        np.testing.assert_array_equal(array, second.parameters[name])
    for a, b in zip(first.measurements, second.measurements, strict=True):
        assert (a.name, a.noise_std, a.symmetric) == (b.name, b.noise_std, b.symmetric)
        assert np.shape(a.value) == np.shape(b.value)
        np.testing.assert_array_equal(a.value, b.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["small", "people", "pictures"])
def test_what_is_loaded_samples_as_what_was_saved(which, name, request, tmp_path):
    release = request.getfixturevalue(which)
    release.save(tmp_path / name)
    loaded = sfumato.load(tmp_path / name)
    same(release, loaded)
    first, second = release.sample(300, seed=8), loaded.sample(300, seed=8)
    if which == "pictures":
        for key, array in first.items():
            np.testing.assert_array_equal(array, second[key])
    else:
        pd.testing.assert_frame_equal(first, second)
    assert repr(release) == repr(loaded)
    assert names(tmp_path) == [name]


def test_a_directory_and_an_archive_hold_the_same_bytes_and_are_reproducible(small, tmp_path):
    for name in (*NAMES, "again.sfm"):
        small.save(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "release.sfm") as archive:
        for member in ("manifest.json", "arrays.safetensors"):
            assert archive.read(member) == (tmp_path / "release" / member).read_bytes()
    assert (tmp_path / "release.sfm").read_bytes() == (tmp_path / "again.sfm").read_bytes()
    sfumato.load(tmp_path / "release").save(tmp_path / "third.sfm")
    assert (tmp_path / "third.sfm").read_bytes() == (tmp_path / "again.sfm").read_bytes()


def test_the_manifest_is_plain_json_with_every_measurement(small, tmp_path):
    small.save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text("utf-8"))
    assert list(manifest) == [
        "format_version", "schema", "sampler", "certificate", "measurements", "form", "arrays",
    ]  # fmt: skip
    assert manifest["format_version"] == 3
    assert manifest["certificate"]["private"] is False
    assert all(entry["noise_std"] > 0 for entry in manifest["measurements"])
    assert {entry["name"] for entry in manifest["measurements"]} == {
        "counts of runs", "counts of cells", "second moments",
    }  # fmt: skip


def test_a_bought_count_comes_back(tmp_path):
    schema = type(SMALL)(columns=SMALL.columns)
    synthesizer = MaxEntropy(epsilon=1.0, delta=1e-5)
    release = synthesizer.fit(small_frame(), schema=schema, n_public=EstimateCount(), seed=1)
    release.save(tmp_path / "r.sfm")
    same(release, load(tmp_path / "r.sfm"))


def test_names_of_any_script_come_back(tmp_path):
    columns = {"größe\u2028": SMALL.columns["age"], "'; --": SMALL.columns["label"]}
    frame = small_frame()[["age", "label"]].set_axis(list(columns), axis=1)
    release = MaxEntropy(epsilon=1.0).fit(frame, schema=type(SMALL)(columns=columns, rows=200), seed=1)
    release.save(tmp_path / "r.sfm")
    assert list(load(tmp_path / "r.sfm").sample(3).columns) == list(columns)


@pytest.mark.parametrize("name", NAMES)
def test_an_existing_release_is_replaced_only_on_request(small, people, name, tmp_path):
    path = tmp_path / name
    small.save(path)
    with pytest.raises(OutputError, match="--overwrite"):
        people.save(path)
    same(load(path), small)
    people.save(path, overwrite=True)
    same(load(path), people)
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", ["x.csv", "x.CSV.gz", "x.parquet", "x.xlsx", "x.jsonl"])
def test_a_name_of_rows_is_refused_before_anything_is_written(small, name, tmp_path):
    with pytest.raises(OutputError, match=rf"ends in \.sfm for a release, got '{name}', a name of rows.*write_sample"):
        small.save(tmp_path / name, overwrite=True)
    assert names(tmp_path) == []
    small.save(tmp_path / "x.csv.sfm")
    same(load(tmp_path / "x.csv.sfm"), small)


def test_an_archive_may_take_the_place_of_a_directory_and_back(small, people, tmp_path):
    small.save(tmp_path / "r.sfm")
    (tmp_path / "r.sfm").rename(tmp_path / "r")
    people.save(tmp_path / "r", overwrite=True)
    same(load(tmp_path / "r"), people)
    (tmp_path / "r").rename(tmp_path / "s.sfm")
    small.save(tmp_path / "s.sfm", overwrite=True)
    same(load(tmp_path / "s.sfm"), small)
    assert names(tmp_path) == ["s.sfm"]


def test_what_is_no_release_is_never_replaced(small, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(OutputError):
            small.save(mine, overwrite=overwrite)
    assert names(mine) == ["thesis.txt"]
    assert names(tmp_path) == ["mine"]


@pytest.mark.parametrize("path", ["nowhere/r", "nowhere/r.sfm", "file.txt/r"])
def test_a_place_that_cannot_be_written_is_an_output_error(small, tmp_path, path):
    (tmp_path / "file.txt").write_text("")
    with pytest.raises(OutputError):
        small.save(tmp_path / path)
    assert names(tmp_path) == ["file.txt"]


class Stop(BaseException):
    """Not an Exception, as KeyboardInterrupt is none."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [Stop, RuntimeError, MemoryError])
@pytest.mark.parametrize("exists", [False, True])
def test_an_interrupted_save_leaves_things_as_they_were(small, people, name, error, exists, tmp_path, monkeypatch):
    if exists:
        small.save(tmp_path / name)

    def half(contents, partial, *, archive):
        if not archive:
            partial.mkdir()
            partial = partial / files.MANIFEST
        partial.write_bytes(contents[files.MANIFEST][:100])
        raise error

    monkeypatch.setattr(files, "_write", half)
    with pytest.raises(error):
        people.save(tmp_path / name, overwrite=True)
    assert names(tmp_path) == [name] * exists
    if exists:
        same(load(tmp_path / name), small)


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_is_an_output_error_and_leaves_nothing(small, name, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_write", full)
    with pytest.raises(OutputError, match="No space left"):
        small.save(tmp_path / name)
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        small.save(tmp_path / name)
    assert names(tmp_path) == []


def test_what_is_not_there_or_may_not_be_read_is_a_release_error(small, tmp_path):
    for path in (tmp_path / "none", tmp_path, tmp_path / "a\x00b", "", "/dev/null", "/dev/zero"):
        with pytest.raises(ReleaseError, match="Cannot read the release"):
            load(path)
    small.save(tmp_path / "r")
    (tmp_path / "r" / "manifest.json").chmod(0)
    if not os.access(tmp_path / "r" / "manifest.json", os.R_OK):
        with pytest.raises(ReleaseError, match="Permission denied"):
            load(tmp_path / "r")


def test_a_release_without_polars_can_still_be_loaded_and_written(tmp_path, monkeypatch):
    import polars as pl

    frame = pl.from_pandas(tables.frame()[["age", "income"]])
    schema = tables.schema()
    columns = {name: schema.columns[name] for name in ("age", "income")}
    release = MaxEntropy(epsilon=1.0).fit(frame, schema=type(schema)(columns=columns, rows=240), seed=1)
    release.save(tmp_path / "r.sfm")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    loaded = load(tmp_path / "r.sfm")
    loaded.write_sample(tmp_path / "rows.csv", 10)
    with pytest.raises(ConfigError, match=r"sfumato\[polars\]"):
        loaded.sample(10)


@pytest.mark.parametrize("path", [None, 3, b"r.sfm"])
def test_a_path_is_text(small, path):
    with pytest.raises(ConfigError, match="path to be a path"):
        small.save(path)
