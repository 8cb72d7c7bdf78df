"""Sinks: what is written can be read back, and a failed or killed write leaves nothing behind."""

import csv
import datetime
import io
import os
import signal
import stat
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import ConfigError, OutputError
from sfumato.io.sinks import atomic_path, refuse_existing, write_stream, write_table
from sfumato.io.sources import Chunk, open_source

TABLE = pa.table({"a": [1, 2, None], "s": ["x", "y, z", 'q"q']})


def rows_of(path) -> list[list[str]]:
    """A CSV file as Python's own reader sees it."""
    return list(csv.reader(io.StringIO(path.read_bytes().decode(), newline=""), strict=True))


class TestJson:
    def test_an_object_a_line_with_dates_as_text_and_missing_cells_as_null(self):
        stream, day = io.BytesIO(), datetime.date(2026, 1, 31)
        write_stream([TABLE.append_column("d", pa.array([day, None, day]))], stream, "json")
        assert stream.getvalue().decode().splitlines() == [
            '{"a": 1, "s": "x", "d": "2026-01-31"}',
            '{"a": 2, "s": "y, z", "d": null}',
            '{"a": null, "s": "q\\"q", "d": "2026-01-31"}',
        ]

    def test_cells_that_json_has_not_are_refused(self):
        with pytest.raises(ConfigError, match="JSON"):
            write_stream([pa.table({"b": [b"x"]})], io.BytesIO(), "json")


class TestCsv:
    def test_quoting_against_python_and_pandas(self, tmp_path):
        cells = [
            "plain",
            "a,b",
            'a "b"',
            "two\nlines",
            "two\r\nlines",
            "",
            " spaced ",
            '"',
            "ü日",
            None,
        ]
        table = pa.table({"first, name": cells, 'q"': cells[::-1]})
        write_table([table.slice(0, 4), table.slice(4)], tmp_path / "t.csv")
        expected = [["" if c is None else c for c in row.values()] for row in table.to_pylist()]
        assert rows_of(tmp_path / "t.csv") == [["first, name", 'q"'], *expected]
        frame = pd.read_csv(tmp_path / "t.csv", keep_default_na=False, lineterminator="\n")
        assert frame.columns.tolist() == table.column_names

    def test_every_plain_type(self, tmp_path):
        moment = datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)
        table = pa.table(
            {
                "i": pa.array([2**53 + 1, None], pa.int64()),
                "f": pa.array([0.1, float("nan")]),
                "b": [True, None],
                "d": pa.array([datetime.date(2020, 1, 2), None]),
                "t": pa.array([moment, None], pa.timestamp("us")),
                "m": pa.array([Decimal("1.50"), None]),
                "c": pa.array(["u,v", None]).dictionary_encode(),
            }
        )
        write_table([table], tmp_path / "t.csv")
        assert rows_of(tmp_path / "t.csv")[1:] == [
            ["9007199254740993", "0.1", "true", "2020-01-02", str(moment), "1.50", "u,v"],
            [""] * 7,
        ]

    def test_one_column_keeps_its_missing_rows(self, tmp_path):
        write_table([pa.table({"only": ["x", None, "z"]})], tmp_path / "t.csv")
        assert (tmp_path / "t.csv").read_bytes() == b'only\nx\n""\nz\n'
        cells = [c.columns["only"].to_pylist() for c in open_source(tmp_path / "t.csv").chunks()]
        assert cells == [["x", "", "z"]]

    def test_sliced_and_empty_batches(self, tmp_path):
        table = pa.table({"a": [f"r{i}" for i in range(100)], "b": range(100)})
        batches = [table.slice(0, 0), table.slice(0, 33), table.slice(33, 0), table.slice(33)]
        write_table(batches, tmp_path / "t.csv")
        assert rows_of(tmp_path / "t.csv") == [
            ["a", "b"],
            *[[f"r{i}", str(i)] for i in range(100)],
        ]

    @pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
    def test_no_rows(self, tmp_path, name):
        write_table([TABLE.slice(0, 0)], tmp_path / name)
        source = open_source(tmp_path / name)
        assert source.names == ("a", "s")
        assert list(source.chunks()) == []

    def test_columns_that_are_no_cells(self, tmp_path):
        for column in (
            pa.array([[1], [2]]),
            pa.FixedShapeTensorArray.from_numpy_ndarray(np.ones((2, 2))),
        ):
            with pytest.raises(ConfigError, match="'lists'"):
                write_table([pa.table({"lists": column})], tmp_path / "t.csv")
        assert os.listdir(tmp_path) == []


def test_parquet_streams_and_keeps_types(tmp_path):
    table = pa.table({"a": pa.array(range(100), pa.int8()), "t": pa.array(["x"] * 100, pa.large_string())})
    write_table((table.slice(i, 10) for i in range(0, 100, 10)), tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").equals(table)


class TestNpz:
    def test_images_from_chunks_and_tables(self, tmp_path):
        x = np.random.default_rng(0).integers(0, 256, (50, 4, 3), dtype=np.uint8)
        y = np.arange(50, dtype=np.int16)
        chunks = [
            Chunk({"x": x[i : i + 20], "y": pa.chunked_array([pa.array(y[i : i + 20])])}, 20) for i in range(0, 50, 20)
        ]
        tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(x)
        for batches in (chunks, [pa.table({"x": tensors, "y": y})]):
            keys = {"x": "x_train", "y": "y_train"}
            write_table(batches, tmp_path / "i.npz", keys=keys, overwrite=True)
            with np.load(tmp_path / "i.npz", allow_pickle=False) as back:
                assert sorted(back) == ["x_train", "y_train"]
                for name, array in (("x_train", x), ("y_train", y)):
                    assert back[name].dtype == array.dtype
                    np.testing.assert_array_equal(back[name], array)

    def test_text_labels_grow(self, tmp_path):
        labels = [["a", "bb"], ["cccc"], ["d"]]
        batches = [pa.table({"y": cells}) for cells in labels]
        write_table(batches, tmp_path / "i.npz")
        assert np.load(tmp_path / "i.npz")["y"].tolist() == ["a", "bb", "cccc", "d"]

    @pytest.mark.parametrize(
        ("batches", "message"),
        [
            ([pa.table({"y": [1, None]})], "missing"),
            ([pa.table({"y": [1]}), pa.table({"y": ["a"]})], "one type and shape"),
            ([pa.table({"y": [Decimal(1)]})], "objects"),
        ],
    )
    def test_what_numpy_cannot_hold(self, tmp_path, batches, message):
        with pytest.raises(ConfigError, match=message):
            write_table(batches, tmp_path / "i.npz")
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz"])
class TestWholeOrNotAtAll:
    def test_existing_output(self, tmp_path, name):
        (tmp_path / name).write_text("precious")
        table = pa.table({"a": [1]})
        with pytest.raises(OutputError, match="exists"):
            write_table([table], tmp_path / name)
        assert (tmp_path / name).read_text() == "precious"
        write_table([table], tmp_path / name, overwrite=True)
        assert (tmp_path / name).read_bytes() != b"precious"
        assert os.listdir(tmp_path) == [name]

    def test_failure_in_the_middle(self, tmp_path, name):
        (tmp_path / name).write_text("precious")

        def batches():
            yield pa.table({"a": [1]})
            raise RuntimeError

        with pytest.raises(RuntimeError):
            write_table(batches(), tmp_path / name, overwrite=True)
        assert (tmp_path / name).read_text() == "precious"
        assert os.listdir(tmp_path) == [name]

    def test_batches_that_differ_and_none_at_all(self, tmp_path, name):
        with pytest.raises(ConfigError, match="columns"):
            write_table([pa.table({"a": [1]}), pa.table({"b": [1]})], tmp_path / name)
        with pytest.raises(ConfigError, match="at least one batch"):
            write_table([], tmp_path / name)
        assert os.listdir(tmp_path) == []

    def test_a_directory_stands_there(self, tmp_path, name):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").touch()
        with pytest.raises(OutputError, match="did not write"):
            write_table([pa.table({"a": [1]})], tmp_path / name, overwrite=True)
        assert (tmp_path / name / "thesis.tex").exists()

    def test_no_such_folder(self, tmp_path, name):
        with pytest.raises(OutputError, match="folder"):
            write_table([pa.table({"a": [1]})], tmp_path / "absent" / name)

    def test_the_disk_says_no(self, tmp_path, name, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match="No space left"):
            write_table([pa.table({"a": [1]})], tmp_path / name)
        assert os.listdir(tmp_path) == []


def test_unknown_suffix(tmp_path):
    with pytest.raises(ConfigError, match=r"\.csv, \.parquet, \.npz"):
        write_table([TABLE], tmp_path / "t.xlsx")


def test_types_that_change_between_parquet_batches(tmp_path):
    with pytest.raises(OutputError, match="does not fit"):
        write_table([pa.table({"a": [1]}), pa.table({"a": ["x"]})], tmp_path / "t.parquet")
    assert os.listdir(tmp_path) == []


class TestAtomicDirectory:
    def write(self, path, text, **options):
        with atomic_path(path, overwrite=True, **options) as partial:
            assert partial.parent == path.parent
            assert partial.name.startswith(".")
            assert partial.name.endswith(".partial")
            (partial / "deep").mkdir(parents=True)
            (partial / "manifest.json").write_text(text)
            (partial / "deep" / "weights").write_text(text)

    def test_written_and_replaced(self, tmp_path):
        for text in ("one", "two"):
            self.write(tmp_path / "release", text, marker="manifest.json")
            assert (tmp_path / "release" / "deep" / "weights").read_text() == text
            assert os.listdir(tmp_path) == ["release"]

    def test_somebody_elses_directory_is_never_replaced(self, tmp_path):
        (tmp_path / "thesis").mkdir()
        (tmp_path / "thesis" / "chapter").touch()
        for marker in (None, "manifest.json"):
            with pytest.raises(OutputError, match="did not write"):
                self.write(tmp_path / "thesis", "x", marker=marker)
        assert (tmp_path / "thesis" / "chapter").exists()

    def test_what_was_put_into_ours_is_never_lost(self, tmp_path):
        files = ("manifest.json", "deep")
        for text in ("one", "two"):
            self.write(tmp_path / "release", text, marker=files)
            (tmp_path / "release" / ".DS_Store").touch()
        (tmp_path / "release" / "notes.txt").touch()
        with pytest.raises(OutputError, match="did not write"):
            self.write(tmp_path / "release", "three", marker=files)
        assert (tmp_path / "release" / "deep" / "weights").read_text() == "two"
        (tmp_path / "app").mkdir()
        (tmp_path / "app" / "manifest.json").touch()
        with pytest.raises(OutputError, match="did not write"):
            self.write(tmp_path / "app", "x", marker=files)

    def test_an_empty_directory_and_a_file_are_replaced(self, tmp_path):
        (tmp_path / "empty").mkdir()
        (tmp_path / "file").touch()
        for name in ("empty", "file"):
            self.write(tmp_path / name, "x")
            assert (tmp_path / name / "manifest.json").read_text() == "x"

    def test_failure_leaves_the_old_one(self, tmp_path):
        self.write(tmp_path / "release", "old", marker="manifest.json")
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012, SIM117
            with atomic_path(tmp_path / "release", overwrite=True, marker="manifest.json") as partial:
                partial.mkdir()
                raise KeyboardInterrupt
        assert (tmp_path / "release" / "manifest.json").read_text() == "old"
        assert os.listdir(tmp_path) == ["release"]

    def test_an_output_that_appears_meanwhile_is_kept(self, tmp_path):
        with pytest.raises(OutputError, match="exists"):  # noqa: PT012, SIM117
            with atomic_path(tmp_path / "out", overwrite=False) as partial:
                partial.write_text("mine")
                (tmp_path / "out").write_text("theirs")
        assert (tmp_path / "out").read_text() == "theirs"
        assert os.listdir(tmp_path) == ["out"]


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps to the folder's rights")
class TestSecretFiles:
    def test_only_the_owner_may_read_one_from_its_first_byte_on(self, tmp_path):
        (tmp_path / "out").write_text("old")
        (tmp_path / "out").chmod(0o666)
        with atomic_path(tmp_path / "out", overwrite=True, secret=True) as partial:
            assert stat.S_IMODE(partial.stat().st_mode) == 0o600
            partial.write_text("new")
        assert (tmp_path / "out").read_text() == "new"
        assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600

    def test_one_that_fails_leaves_nothing(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):  # noqa: SIM117
            with atomic_path(tmp_path / "out", overwrite=False, secret=True):
                raise KeyboardInterrupt
        assert os.listdir(tmp_path) == []

    def test_others_are_as_the_user_wants_them(self, tmp_path):
        before = os.umask(0o022)
        try:
            with atomic_path(tmp_path / "out", overwrite=False) as partial:
                partial.write_text("new")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o644


def test_an_output_behind_a_link_takes_the_place_of_the_link(tmp_path):
    """What the link names is not written to."""
    (tmp_path / "theirs").write_text("old")
    (tmp_path / "out").symlink_to(tmp_path / "theirs")
    with pytest.raises(OutputError, match="exists"):  # noqa: SIM117
        with atomic_path(tmp_path / "out", overwrite=False):
            pass
    with atomic_path(tmp_path / "out", overwrite=True) as partial:
        partial.write_text("new")
    assert (tmp_path / "theirs").read_text() == "old"
    assert (tmp_path / "out").read_text() == "new"
    assert not (tmp_path / "out").is_symlink()


def test_refuse_existing(tmp_path):
    refuse_existing(tmp_path / "new", overwrite=False)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="exists"):
        refuse_existing(tmp_path / "dangling", overwrite=False)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_write_leaves_no_output_and_a_second_run_works(tmp_path):
    script = f"""
import os, signal, pyarrow as pa
from sfumato.io.sinks import atomic_path, refuse_existing, write_stream, write_table
def batches():
    for _ in range(100):
        yield pa.table({{"a": list(range(1000))}})
    os.kill(os.getpid(), signal.SIGKILL)
write_table(batches(), {str(tmp_path / "t.csv")!r})
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    (left,) = os.listdir(tmp_path)
    assert (tmp_path / left).stat().st_size > 0
    assert left.startswith(".")
    assert left.endswith(".partial")
    write_table([TABLE], tmp_path / "t.csv")
    assert len(rows_of(tmp_path / "t.csv")) == 4


class TestHardening4Formulas:
    """Finding 4 of the review: cells such as `=cmd|…` were written as they are."""

    FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", " =1", "＝1", "-x")
    PLAIN = ("a=b", "-2", "+3.5e7", "", "x", "'=1", "1-2")

    def test_they_are_made_text_on_demand(self, tmp_path):
        cells = [*self.FORMULAS, *self.PLAIN, None]
        table = pa.table({"=name": cells, "n": range(-3, len(cells) - 3), "c": pa.array(cells).dictionary_encode()})
        write_table([table], tmp_path / "safe.csv", spreadsheet=True)
        with (tmp_path / "safe.csv").open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        assert header == ["'=name", "n", "c"]
        expected = [*(f"'{text}" for text in self.FORMULAS), *self.PLAIN, ""]
        assert [row[0] for row in rows] == [row[2] for row in rows] == expected
        assert [row[1] for row in rows] == [str(i) for i in range(-3, len(cells) - 3)]

    def test_elsewhere_they_stay(self, tmp_path):
        table = pa.table({"a": list(self.FORMULAS)})
        write_table([table], tmp_path / "plain.csv")
        with (tmp_path / "plain.csv").open(encoding="utf-8", newline="") as file:
            assert [row[0] for row in csv.reader(file)][1:] == list(self.FORMULAS)
        with pytest.raises(ConfigError, match=r"Expected a \.csv file"):
            write_table([table], tmp_path / "t.parquet", spreadsheet=True)
        assert not (tmp_path / "t.parquet").exists()
