"""Globs, lists, folders and stores of files: one table, in the order of their paths, each file by its own types."""

import datetime as dt
import sys
import traceback

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures.cells import read_cells as read
from sfumato.columns.kinds import Categorical, Integer, ItemSet
from sfumato.errors import ConfigError, DataError, SchemaError
from sfumato.io.folders import FolderSource
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema

DAY = dt.date(2020, 2, 3)
SECRET = "Xanthippe-4711"


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def ds(tmp_path):
    for i in range(3):
        write(tmp_path / "ds" / f"p{i}.parquet", a=[2 * i, 2 * i + 1], b=[f"x{i}", None])
    return tmp_path / "ds"


ALL = {"a": [0, 1, 2, 3, 4, 5], "b": ["x0", None, "x1", None, "x2", None]}


@pytest.mark.parametrize("rows", [1, 4, 100])
def test_a_glob_a_list_and_a_folder_are_the_same_table(ds, rows):
    names = [ds / f"p{i}.parquet" for i in (2, 0, 1)]
    for data in (str(ds / "*.parquet"), ds / "p?.parquet", names, tuple(map(str, names)), ds, str(ds)):
        source = open_source(data, chunk_rows=rows)
        assert read(source) == ALL
        assert read(source, ["b"]) == {"b": ALL["b"]}
        assert [chunk.n_rows for chunk in source.chunks()][:-1] == [rows] * ((6 - 1) // rows)
        assert source.container == "parquet"
        assert source.counts_entries


def test_csv_files_are_joined_too_but_not_with_others(tmp_path, ds):
    for i in range(2):
        (tmp_path / f"t{i}.csv").write_text(f"a,b\n{i},z\n")
    source = open_source(tmp_path / "*.csv")
    assert read(source) == {"a": ["0", "1"], "b": ["z", "z"]}
    assert source.container == "csv"
    assert not source.counts_entries
    with pytest.raises(DataError, match="one format"):
        open_source([tmp_path / "t0.csv", ds / "p0.parquet"])


def test_one_file_of_a_glob_is_that_file(ds):
    assert type(open_source(ds / "p0*")) is type(open_source(ds / "p0.parquet"))


def test_a_file_whose_name_holds_a_wildcard(tmp_path):
    write(tmp_path / "a[1].parquet", a=[1])
    assert read(open_source(tmp_path / "a[1].parquet")) == {"a": [1]}


def test_hive_folders_are_columns_of_text(tmp_path):
    write(tmp_path / "ds" / "year=2024" / "town=S%C3%A3o" / "x.parquet", a=[1])
    write(tmp_path / "ds" / "year=2023" / "town=__HIVE_DEFAULT_PARTITION__" / "x.parquet", a=[2])
    write(tmp_path / "ds" / "_temporary" / "x.parquet", a=[3])
    (tmp_path / "ds" / "_SUCCESS").touch()
    for data in (tmp_path / "ds", tmp_path / "ds/year=*/*/x.parquet", tmp_path / "ds/y*/**/x.parquet"):
        source = open_source(data)
        assert source.storage == {"a": pa.int64(), "year": pa.string(), "town": pa.string()}
        assert read(source) == {"a": [2, 1], "year": ["2023", "2024"], "town": [None, "São"]}
        assert read(source, ["year"]) == {"year": ["2023", "2024"]}
    (tmp_path / "ds" / "loose.parquet").write_bytes((tmp_path / "ds/_temporary/x.parquet").read_bytes())
    with pytest.raises(DataError, match="folders of the same columns"):
        open_source(tmp_path / "ds")


def test_files_of_other_types_are_read_each_by_its_own(tmp_path):
    write(tmp_path / "1.parquet", v=[1, 2], s=pa.array([[1], None]), d=pa.array(["x"] * 2).dictionary_encode())
    write(tmp_path / "2.parquet", v=[1.0, None], s=pa.array([[], ["b"]]), d=["y", None])
    write(tmp_path / "3.parquet", v=pa.nulls(1), s=pa.array([[]], pa.list_(pa.null())), d=pa.nulls(1))
    source = open_source(tmp_path / "*.parquet")
    assert source.storage["v"] == pa.string()
    assert source.storage["s"] == pa.large_list(pa.string())
    assert read(source) == {
        "v": [1, 2, 1.0, None, None],
        "s": [[1], None, [], ["b"], []],
        "d": ["x", "x", "y", None, None],
    }


def test_one_missing_cell_in_a_file_does_not_change_the_codes(tmp_path):
    schema = Schema(columns={"v": Integer(lower=0, upper=9)}, rows=4)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder, last in ((whole, 4), (broken, None)):
        folder.mkdir()
        pd.DataFrame({"v": [1, 2]}).to_parquet(folder / "1.parquet")
        pd.DataFrame({"v": [3, last]}).to_parquet(folder / "2.parquet")

    def codes(folder):
        return np.concatenate([rows["v"] for rows in PrivateData(open_source(folder), schema).coded()])

    assert codes(whole)[:3].tolist() == codes(broken)[:3].tolist()


@pytest.mark.parametrize("odd", [[SECRET], {"x": SECRET}, dt.timedelta(1)])
def test_a_cell_of_a_type_of_its_own_is_missing_and_stops_nothing(tmp_path, odd):
    write(tmp_path / "1.parquet", v=[1])
    write(tmp_path / "2.parquet", v=[odd])
    source = open_source(tmp_path / "*.parquet")
    records = PrivateData(source, Schema(columns={"v": Integer(lower=0, upper=9, nullable=True)}, rows=2))
    codes = np.concatenate([rows["v"] for rows in records.coded()])
    assert codes[0] == 1 / 9
    assert np.isnan(codes[1])


# How text of a column is written says nothing of the numbers and dates of a file that has them as such.
DECLARED = {
    "number": ({"kind": "continuous", "lower": 0, "upper": 2000, "written": {"decimal": ",", "thousands": "."}}, 1.234),
    "date": ({"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31", "format": "%Y-%d-%m"}, DAY),
    "clock": (
        {"kind": "datetime", "lower": "00:00", "upper": "23:59", "format": "%H:%M", "resolution": "minute"},
        dt.time(9, 30),
    ),
}


@pytest.mark.parametrize("odd", ["x", True, 7, b"x"])
@pytest.mark.parametrize("name", DECLARED)
def test_a_record_of_another_type_leaves_the_forms_of_others(tmp_path, name, odd):
    entry, cell = DECLARED[name]
    write(tmp_path / "1.parquet", v=[cell])
    alone = PrivateData(open_source(tmp_path / "1.parquet"), Schema.from_dict({"columns": {"v": entry}, "rows": 2}))
    write(tmp_path / "2.parquet", v=[odd])
    both = PrivateData(open_source(tmp_path / "*.parquet"), Schema.from_dict({"columns": {"v": entry}, "rows": 2}))
    (before, *_), (after, *_) = (np.concatenate([rows["v"] for rows in records.coded()]) for records in (alone, both))
    assert before == after


def test_of_sets_what_is_no_list_is_missing(tmp_path):
    write(tmp_path / "1.parquet", v=[[1, 2]])
    write(tmp_path / "2.parquet", v=[7])
    for names in (["1.parquet", "2.parquet"], ["2.parquet", "1.parquet"]):
        source = open_source([tmp_path / name for name in names])
        records = PrivateData(source, Schema(columns={"v": ItemSet(n_items=9, max_length=3)}, rows=2))
        sets = [rows["v"] for rows in records.coded()]
        assert sorted(length for part in sets for length in part.lengths) == [0, 2]


def test_a_column_that_one_file_lacks(tmp_path):
    write(tmp_path / "1.parquet", v=[1], w=[1])
    write(tmp_path / "2.parquet", v=[1])
    source = open_source(tmp_path / "*.parquet")
    assert source.names == ("v",)
    assert read(source) == {"v": [1, 1]}
    with pytest.raises(SchemaError, match=r"'w', got none in 2\.parquet"):
        PrivateData(source, Schema(columns={"w": Integer(lower=0, upper=9)}, rows=2))
    assert PrivateData(source, Schema(columns={"v": Integer(lower=0, upper=9)}, rows=2)).coded()


def test_a_folder_of_images_stays_one(tmp_path):
    pytest.importorskip("PIL")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.png").touch()
    write(tmp_path / "index.parquet", a=[1])
    assert isinstance(open_source(tmp_path), FolderSource)


def test_nothing_matches(tmp_path):
    with pytest.raises(DataError, match=r"match x\*\.parquet, got none"):
        open_source(tmp_path / "x*.parquet")
    with pytest.raises(DataError, match=r"exist, got absent\.parquet"):
        open_source([tmp_path / "absent.parquet"])
    (tmp_path / "a.npz").touch()
    with pytest.raises(DataError, match=r"got a\.npz"):
        open_source(tmp_path / "*.npz")


def test_a_file_that_changes_between_passes_is_noticed(ds):
    for data in (ds / "p1.parquet", ds):
        source = open_source(data)
        assert len(read(source)["a"])
        write(ds / "p1.parquet", a=[7, 8, 9], b=["", "", ""])
        with pytest.raises(DataError, match=r"p1\.parquet to stay as it was"):
            read(source)
        write(ds / "p1.parquet", a=[2, 3], b=["x1", None])


def test_a_damaged_piece_says_nothing(ds):
    (ds / "p1.parquet").write_bytes(b"PAR1" + SECRET.encode() + b"PAR1")
    with pytest.raises(DataError, match=r"p1\.parquet") as failure:
        open_source(ds)
    assert SECRET not in "".join(traceback.format_exception(failure.value))


class TestStores:
    @pytest.fixture(params=["memory", "file"])
    def base(self, request, tmp_path):
        if request.param == "file":
            base, root = f"file://{tmp_path}/store", tmp_path / "store"
            root.mkdir()
            yield base
        else:
            yield "memory://store"
            fsspec.filesystem("memory").rm("/store", recursive=True)

    @pytest.fixture
    def store(self, base):
        for i in range(2):
            with fsspec.open(f"{base}/ds/year=202{i}/x.parquet", "wb", auto_mkdir=True) as file:
                pq.write_table(pa.table({"a": [i, 9]}), file)
        with fsspec.open(f"{base}/t.csv", "wb") as file:
            file.write(b"a,b\n1,2\n")
        return base

    def test_one_file_a_glob_and_a_folder(self, store):
        assert read(open_source(f"{store}/ds/year=2020/x.parquet")) == {"a": [0, 9]}
        expected = {"a": [0, 9, 1, 9], "year": ["2020"] * 2 + ["2021"] * 2}
        for place in ("ds", "ds/", "ds/*/x.parquet", "ds/**/*.parquet", "ds/year=202[01]/?.parquet"):
            assert read(open_source(f"{store}/{place}")) == expected, place
        source = open_source(f"{store}/t.csv")
        assert read(source) == read(source) == {"a": ["1"], "b": ["2"]}

    def test_what_is_not_there(self, store):
        for place in ("absent.csv", "ds/*.csv", "absent/"):
            with pytest.raises(DataError):
                open_source(f"{store}/{place}")


def test_an_address_is_not_shown_and_a_library_is_asked_for(monkeypatch):
    with pytest.raises(ConfigError, match="installed") as failure:
        open_source(f"nostore://user:{SECRET}@host/people.parquet?key={SECRET}")
    assert SECRET not in "".join(traceback.format_exception(failure.value))
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises((ConfigError, DataError)) as failure:
        open_source(f"https://127.0.0.1:1/people.parquet?key={SECRET}")
    assert SECRET not in "".join(traceback.format_exception(failure.value))


def test_categories_of_partitions_are_read(tmp_path):
    write(tmp_path / "sex=f" / "1.parquet", a=[1])
    write(tmp_path / "sex=m" / "1.parquet", a=[1])
    (rows,) = PrivateData(
        open_source(tmp_path), Schema(columns={"sex": Categorical(categories=("f", "m"))}, rows=2)
    ).coded()
    assert rows["sex"].tolist() == [0, 1]


def _texts(data, rows=3):
    source = open_source(data, chunk_rows=rows).with_dictionaries()
    chunks = [chunk.columns["a"] for chunk in source.chunks()]
    return [cell for column in chunks for cell in column.to_pylist()], {str(column.type) for column in chunks}


def test_text_of_parquet_may_come_as_dictionaries(tmp_path):
    words = ["x", None, "y", "x", "z", " x "]
    pq.write_table(pa.table({"a": words}), tmp_path / "0.parquet", row_group_size=2)
    pq.write_table(pa.table({"a": words[::-1]}), tmp_path / "1.parquet")
    for data, expected in (("0.parquet", words), ("*.parquet", words + words[::-1])):
        found, types = _texts(str(tmp_path / data))
        assert found == expected
        assert types == {"dictionary<values=string, indices=int32, ordered=0>"}


@pytest.mark.parametrize(
    "other",
    [pa.array(["u", None], pa.large_string()), pa.array([1, None]), pa.array(["u", None]).dictionary_encode()],
    ids=["large text", "numbers", "dictionary"],
)
def test_dictionaries_beside_other_types_are_read_alike(tmp_path, other):
    pq.write_table(pa.table({"a": ["x", None, "y"]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": other}), tmp_path / "1.parquet")
    plain = [c for chunk in open_source(str(tmp_path / "*.parquet")).chunks() for c in chunk.columns["a"].to_pylist()]
    assert _texts(str(tmp_path / "*.parquet"))[0] == plain


def test_parquet_beside_arrow_files_is_read_alike(tmp_path):
    table = pa.table({"a": ["x", None, "y"]})
    pq.write_table(table, tmp_path / "0.parquet")
    with pa.OSFile(str(tmp_path / "1.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert _texts([tmp_path / "0.parquet", tmp_path / "1.arrow"])[0] == ["x", None, "y"] * 2
