"""Packed CSV files, JSON lines and Arrow files: text or types as they stand, one record by itself."""

import gzip
import json
import random
import time
import traceback
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from fixtures.cells import read_cells as read
from sfumato.columns.kinds import Categorical, Continuous, Integer
from sfumato.columns.sets import ItemSet
from sfumato.desk.drafting import draft_schema
from sfumato.errors import DataError, SchemaError
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

SECRET = "Xanthippe-4711"
TEXT = b'\xef\xbb\xbfname,note\nJ\xf6rg,"two\nlines"\nNA,\n'
CELLS = {"name": ["Jörg", "NA"], "note": ["two\nlines", ""]}


def pack(path, content: bytes):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content))
    elif path.suffix == ".zst":
        path.write_bytes(pa.compress(content, codec="zstd", asbytes=True))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("people.csv", content)
    else:
        path.write_bytes(content)
    return path


class TestPacked:
    @pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.zst", "csv.zip", "CSV.GZ"])
    def test_the_same_cells(self, tmp_path, suffix):
        path = tmp_path / f"t.{suffix}"
        content = gzip.compress(TEXT) if suffix == "CSV.GZ" else None
        path = pack(path, TEXT) if content is None else path
        if content:
            path.write_bytes(content)
        source = open_source(path, chunk_rows=1)
        assert (source.label, source.container) == (path.name, "csv")
        assert read(source) == read(source) == CELLS

    def test_several_gzip_members_are_one_file(self, tmp_path):
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n1\n") + gzip.compress(b"2\n"))
        assert read(open_source(tmp_path / "t.csv.gz")) == {"a": ["1", "2"]}

    @pytest.mark.parametrize("suffix", ["gz", "zst", "zip"])
    def test_a_truncated_file_is_refused_in_silence(self, tmp_path, suffix):
        rng = random.Random(0)
        lines = "".join(f"{SECRET}{rng.random()}\n" for _ in range(200_000))
        path = pack(tmp_path / f"t.csv.{suffix}", f"a\n{lines}".encode())
        path.write_bytes(path.read_bytes()[:-5000])
        with pytest.raises(DataError, match=r"t\.csv") as failure:
            read(open_source(path))
        assert SECRET not in "".join(traceback.format_exception(failure.value))

    def test_an_archive_of_two_files(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "t.csv.zip", "w") as archive:
            archive.writestr("__MACOSX/a.csv", "")
            archive.writestr("a.csv", "x\n1\n")
        assert read(open_source(tmp_path / "t.csv.zip")) == {"x": ["1"]}
        with zipfile.ZipFile(tmp_path / "u.csv.zip", "w") as archive:
            archive.writestr("a.csv", "x\n1\n")
            archive.writestr(f"{SECRET}.csv", "x\n1\n")
        with pytest.raises(DataError, match=r"one file in the archive u\.csv\.zip"):
            open_source(tmp_path / "u.csv.zip")

    def test_other_packed_files(self, tmp_path):
        (tmp_path / "t.parquet.gz").write_bytes(b"x")
        with pytest.raises(DataError, match=r"\.csv\.gz.*got t\.parquet\.gz"):
            open_source(tmp_path / "t.parquet.gz")


def lines(path, *records):
    return pack(path, "\n".join(r if isinstance(r, str) else json.dumps(r) for r in records).encode())


KINDS = {
    "n": Continuous(lower=0, upper=9, resolution=0.5),
    "w": Categorical(categories=("a", "true")),
    "i": Integer(lower=0, upper=9),
}


class TestJsonLines:
    @pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.jsonl.gz", "t.ndjson.zst"])
    def test_cells_are_text_and_a_broken_line_is_left_out(self, tmp_path, name):
        path = lines(
            tmp_path / name,
            {"n": 1.50, "w": "a", "i": 3, "other": {"x": [1]}},
            '{"n": 1e400, "w": true, "i": "4"}',
            "",
            '{"n": NaN, "w": {"a": 1}, "i": [1, null, "x"]',
            '{"n": NaN, "w": {"a": 1}, "i": [1, null, "x"]}',
            "[1]",
            "[" * 100_000,
            '{"w": "\\ud800", "i": 99999999999999999999999999}',
        )
        source = open_source(path, chunk_rows=3)
        assert source.storage == {}
        source = source.under(KINDS)
        assert read(source) == {
            "n": ["1.5", "1e400", None, None],
            "w": ["a", "true", None, "?"],
            "i": ["3", "4", '["1", null, "x"]', "9" * 26],
        }
        assert list(source.notes("skipped")) == ["line 4", "line 6", "line 7"]
        (rows,) = PrivateData(open_source(path), Schema(columns=KINDS, rows=7)).coded()
        assert (rows["i"][:2] * 9).round().tolist() == [3, 4]

    def test_one_odd_line_changes_no_other(self, tmp_path):
        good = [{"n": 1, "w": "a", "i": i} for i in range(5)]
        schema = Schema(columns=KINDS, rows=6)

        def codes(*more):
            path = lines(tmp_path / "t.jsonl", *more, *good)
            return {
                n: np.concatenate([r[n] for r in PrivateData(open_source(path), schema).coded()])[-5:].tolist()
                for n in schema.released
            }

        for odd in ({"n": "x", "w": 3, "i": 1.5}, {"new": 1}, "}{", {"n": [1], "w": [], "i": {}}, "null"):
            assert codes(odd) == codes()

    def test_names_come_from_the_schema_and_a_draft_takes_all_keys(self, tmp_path):
        path = lines(
            tmp_path / "t.jsonl", *[{"a": i % 3, "b": "x"} for i in range(30)], {"c": ["u", "v"], SECRET: None}
        )
        with pytest.raises(SchemaError):
            OpenSchema.of(path)
        assert SECRET not in repr(open_source(path))
        assert {"a", "b"} <= set(draft_schema(open_source(path)).schema.columns)

    def test_arrays_are_sets(self, tmp_path):
        path = lines(tmp_path / "t.jsonl", {"s": ["a", "b"]}, {"s": []}, {"s": "a"}, "{")
        kind = ItemSet(items=("a", "b"), max_length=2)
        source = open_source(path).under({"s": kind})
        assert read(source) == {"s": [["a", "b"], [], None]}
        assert PrivateData(open_source(path), Schema(columns={"s": kind}, rows=4)).coded()

    def test_a_line_without_end(self, tmp_path, monkeypatch):
        monkeypatch.setattr("sfumato.io.stored.LONGEST_LINE", 40)
        path = lines(tmp_path / "t.jsonl", {"a": "1"}, {"a": "x" * 200}, {"a": "2"}, {"a": "y" * 100})
        source = open_source(path).under({"a": KINDS["w"]})
        assert read(source) == {"a": ["1", "2"]}
        assert list(source.notes("skipped")) == ["line 2", "line 4"]

    def test_depth_does_not_depend_on_where_a_line_is_read(self, tmp_path):
        deep = [f'{{"w": "a", "x": {"[" * n}{"]" * n}}}' for n in (10, 99, 100, 400)]
        path = lines(tmp_path / "t.jsonl", *deep, json.dumps({"w": "[" * 500}), '{"w": "' + '\\"[' * 500 + '"}')
        source = open_source(path).under({"w": KINDS["w"]})
        expected = ["a", "a", "[" * 500, '"[' * 500]

        def further_down(calls):
            return further_down(calls - 1) if calls else read(source)["w"]

        assert further_down(0) == further_down(600) == expected
        assert list(source.notes("skipped")) == ["line 3", "line 4"]

    def test_a_hostile_line_takes_no_time(self, tmp_path):
        half = 1 << 20
        hostile = [
            "[" * half,
            '{"a":' * half,
            '{"w": [' + "1," * half + "1]}",
            "[" * 101 + '"\\' * half,
            "[" * 101 + '"' + '\\"' * half + "\\",
        ]
        path = lines(tmp_path / "t.jsonl", '{"w": "a"}', *hostile, '{"w": "b"}')
        before = time.process_time()
        assert read(open_source(path).under({"w": KINDS["w"]})) == {"w": ["a", "b"]}
        assert time.process_time() - before < 5


class TestArrowFiles:
    TABLE = pa.table({"a": list(range(10)), "b": pa.array(["x", None] * 5).dictionary_encode(), "c": [1.5] * 10})

    @pytest.fixture(params=["file", "stream", "feather"])
    def path(self, request, tmp_path):
        path = tmp_path / ("t.feather" if request.param == "feather" else "t.arrow")
        if request.param == "feather":
            pyarrow.feather.write_feather(self.TABLE, path, compression="zstd", chunksize=3)
        else:
            make = pa.ipc.new_file if request.param == "file" else pa.ipc.new_stream
            with make(str(path), self.TABLE.schema) as writer:
                writer.write_table(self.TABLE, max_chunksize=4)
        return path

    def test_cells_and_types(self, path):
        source = open_source(path, chunk_rows=3)
        assert source.storage == dict(zip(self.TABLE.schema.names, self.TABLE.schema.types, strict=True))
        assert source.counts_entries
        assert read(source) == read(source) == self.TABLE.to_pydict()
        assert read(source, ["c", "a"]) == {"c": [1.5] * 10, "a": list(range(10))}

    def test_damaged(self, path):
        whole = path.read_bytes()
        for content in (b"FEA1" + whole[4:], whole[:20], SECRET.encode() * 9):
            path.write_bytes(content)
            with pytest.raises(DataError, match=r"t\.(arrow|feather)") as failure:
                read(open_source(path))
            assert SECRET not in "".join(traceback.format_exception(failure.value))
