"""Sources: what comes out is what was written, whatever the container; errors carry no cell."""

import datetime
import io
import pickle
import traceback
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import ConfigError, DataError, SchemaError
from sfumato.io import csv as text_source
from sfumato.io.chunks import attempt
from sfumato.io.sources import Chunk, Source, open_source, to_container

SECRET = "Xanthippe-4711"


def read(source: Source, columns=None) -> dict[str, list]:
    """All cells of a source as Python values."""
    cells: dict[str, list] = {name: [] for name in (columns or source.names)}
    for chunk in source.chunks(columns):
        assert chunk.n_rows > 0
        assert list(chunk.columns) == list(cells)
        for name, column in chunk.columns.items():
            assert len(column) == chunk.n_rows
            cells[name] += column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return cells


def csv_source(tmp_path, text, **options) -> Source:
    path = tmp_path / "people.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_source(path, **options)


def assert_carries_nothing(error: BaseException, *secrets: str) -> None:
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = "".join(traceback.format_exception(error)) + repr(error)
    for secret in secrets:
        assert secret not in shown


class TestCsv:
    def test_cells_are_the_text_of_the_file(self, tmp_path):
        source = csv_source(tmp_path, b'name,note\n J\xf6rg ,"a ""b"", c"\nNA,\n"","two\nlines"\n')
        assert source.storage == {"name": pa.string(), "note": pa.string()}
        assert source.container == "csv"
        assert read(source) == {
            "name": [" Jörg ", "NA", ""],
            "note": ['a "b", c', "", "two\nlines"],
        }

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_line_ends(self, tmp_path, newline):
        source = csv_source(tmp_path, newline.join(["a,b", "1,2", "3,4", ""]))
        assert read(source) == {"a": ["1", "3"], "b": ["2", "4"]}

    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_the_delimiter_comes_from_the_header_alone(self, tmp_path, delimiter):
        # the cells are full of other delimiters, and so is a quoted name
        rows = [["a", '",;,;|\t"', "c"], ["1", '"2,;|\t"', "3"]]
        source = csv_source(tmp_path, "\n".join(delimiter.join(row) for row in rows))
        assert source.names == ("a", ",;,;|\t", "c")
        assert read(source)["c"] == ["3"]

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
    def test_byte_order_marks(self, tmp_path, encoding):
        mark = "\ufeff" if encoding.endswith(("le", "be")) else ""
        text = (mark + 'größe,"b\n1"\n日本,2\n').encode(encoding)
        source = csv_source(tmp_path, text)
        assert source.names == ("größe", "b\n1")
        assert read(source) == {"größe": ["日本"], "b\n1": ["2"]}

    def test_broken_utf_16_is_replaced_not_refused(self, tmp_path):
        text = "a,b\n1,2\n".encode("utf-16") + b"\x00\xd8,\x00" + "x\n3,4\n".encode("utf-16-le")
        rows = read(csv_source(tmp_path, text))
        assert rows["a"][0] == "1"
        assert rows["a"][-1] == "3"

    def test_windows_1252_where_it_is_no_utf_8(self, tmp_path):
        text = "é,名\n".encode() + b"Andr\xe9,\x80\xe2\x82\nu\xcc\x88,\x81\nb,\xe2\x82"
        expected = {"é": ["André", "u\u0308", "b"], "名": ["€â‚", "\ufffd", "â‚"]}
        assert read(csv_source(tmp_path, text)) == expected
        legacy = csv_source(tmp_path, "größe;b\n1;ß".encode("cp1252"))
        assert read(legacy) == {"größe": ["1"], "b": ["ß"]}

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_reading_in_small_pieces_changes_nothing(self, tmp_path, monkeypatch, encoding):
        monkeypatch.setattr(text_source, "_READ_BYTES", 3)
        text = "é,b\n日本,𝄞\n".encode(encoding)
        assert read(csv_source(tmp_path, text)) == {"é": ["日本"], "b": ["𝄞"]}

    def test_a_skipped_record_is_printed_nowhere(self, tmp_path, capfd):
        source = csv_source(tmp_path, b"a,b\n1\n\xe9" + SECRET.encode() + b"\xff\n\xe9,\xff,3\n5,6\n")
        assert read(source) == {"a": ["5"], "b": ["6"]}
        assert capfd.readouterr() == ("", "")

    def test_stopping_early_is_quiet(self, tmp_path, capfd):
        source = csv_source(tmp_path, "a,b\n" + "1,2\n" * 3_000_000, chunk_rows=10)
        chunks = source.chunks()
        assert next(chunks).n_rows == 10
        chunks.close()
        assert capfd.readouterr() == ("", "")

    def test_utf_16_longer_than_a_block(self, tmp_path):
        lines = ["a,b"] + [f"{i},ü{i}" for i in range(200_000)]
        source = csv_source(tmp_path, "\n".join(lines).encode("utf-16"))
        assert read(source)["b"] == [f"ü{i}" for i in range(200_000)]

    def test_ragged_rows_and_empty_lines_are_skipped(self, tmp_path):
        source = csv_source(tmp_path, "\n\na,b\n\n1\n2,3\n4,5,6\n\n7,8\n")
        assert read(source) == {"a": ["2", "7"], "b": ["3", "8"]}

    @pytest.mark.parametrize("text", ["a,b", "a,b\n", "a,b\r\n\r\n", "\ufeffa,b\n", "a,b\n1\n"])
    def test_no_rows_are_no_chunks(self, tmp_path, text):
        assert list(csv_source(tmp_path, text).chunks()) == []

    def test_nul_and_unclosed_quote_do_not_fail(self, tmp_path):
        source = csv_source(tmp_path, b'a,b\n\x00,1\n2,"unclosed\n3,4\n')
        assert read(source)["a"] == ["\x00", "3"]  # the line of the open quote alone is left out

    @pytest.mark.slow
    @pytest.mark.audit
    def test_a_quote_that_nobody_closes_takes_no_line_along(self, tmp_path):
        text = 'a,b\n1,2\n3,"' + f"{SECRET}\n" * 600_000 + "4,5\n"
        source = csv_source(tmp_path, text)
        assert read(source) == {"a": ["1", "4"], "b": ["2", "5"]}
        first, second, *_ = source.notes("skipped")
        assert (first, second) == ("record 2: a quote that is not closed, or more than 4 MiB", "record 3: 1 cells")

    def test_a_header_of_too_many_columns(self, tmp_path):
        with pytest.raises(DataError, match="at most 100,000 columns"):
            csv_source(tmp_path, "," * 200_000 + "\n1,2\n")

    @pytest.mark.parametrize("end", ["", '"'])
    def test_a_record_too_long_for_the_parser_is_left_out_alone(self, tmp_path, end):
        text = 'a,b\n1,2\n3,"' + "x" * 6_000_000 + f'{end}\n4,"5"\n'
        assert read(csv_source(tmp_path, text)) == {"a": ["1", "4"], "b": ["2", "5"]}

    def test_many_columns(self, tmp_path):
        names = [f"column_{i}" for i in range(20_000)]
        source = csv_source(tmp_path, ",".join(names) + "\n" + ",".join(["7"] * len(names)))
        assert source.names == tuple(names)
        assert read(source, ["column_19999"]) == {"column_19999": ["7"]}

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (b"", "empty file"),
            (b"\n\r\n", "header line"),
            (b"\xef\xbb\xbf", "header line"),
            (b"column_2,\n1,2\n", "columns 1 and 2"),
            (b"a,b,a\n1,2,3\n", "columns 1 and 3"),
            ("a,b\n1,2\n".encode("utf-16-le"), "in UTF-8"),
            (b"a,\x81\n1,2\n", "in UTF-8"),
            (b"PK\x03\x04,b\n1,2\n", "in UTF-8"),
            (b'a,"b\n1,2\n', r"quotes of the header line of people\.csv"),
        ],
    )
    def test_bad_headers(self, tmp_path, text, message):
        with pytest.raises(DataError, match=message) as caught:
            csv_source(tmp_path, text)
        assert_carries_nothing(caught.value)

    def test_a_file_without_header_does_not_show_its_first_record(self, tmp_path):
        with pytest.raises(DataError) as caught:
            csv_source(tmp_path, f"{SECRET},39,{SECRET}\n1,2,3\n")
        assert_carries_nothing(caught.value, SECRET)


@pytest.mark.parametrize(("error", "raised"), [(ValueError, DataError), (MemoryError, MemoryError)])
def test_what_fails_as_records_are_read_says_nothing_of_them(error, raised):
    def reading():
        raise error("could not read Smith")

    with pytest.raises(raised) as caught:
        attempt(reading, "Cannot read it.")
    assert "Smith" not in str(caught.value)
    assert caught.value.__context__ is None


class TestParquet:
    def test_types_and_dotted_names(self, tmp_path):
        table = pa.table(
            {
                "a": pa.array([1, None], pa.int16()),
                "a.b": ["x", "y"],
                "d": pa.array(["u", "v"]).dictionary_encode(),
                "t": pa.array([datetime.date(2020, 1, 1), None]),
            }
        )
        pq.write_table(table, tmp_path / "t.parquet")
        source = open_source(str(tmp_path / "t.parquet"))
        assert source.storage == dict(zip(table.schema.names, table.schema.types, strict=True))
        assert read(source, ["t", "a.b"]) == {"t": table["t"].to_pylist(), "a.b": ["x", "y"]}
        assert read(source, ["a"]) == {"a": [1, None]}

    def test_damage_in_the_middle_is_found_without_cells(self, tmp_path):
        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"a": [f"{SECRET}{i}" for i in range(50_000)]}), path, compression="zstd")
        data = bytearray(path.read_bytes())
        data[1000:60_000] = b"\xff" * 59_000
        path.write_bytes(data)
        source = open_source(path)
        with pytest.raises(DataError, match=r"t\.parquet") as caught:
            read(source)
        assert_carries_nothing(caught.value, SECRET)

    def test_duplicate_columns(self, tmp_path):
        table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
        with pytest.raises(DataError, match="columns 1 and 2"):
            open_source(table)


class TestNpz:
    @pytest.fixture
    def images(self):
        rng = np.random.default_rng(0)
        return rng.integers(0, 256, (100, 6, 5, 3), dtype=np.uint8), np.arange(100) % 10

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    @pytest.mark.parametrize("suffix", ["", "_train"])
    def test_images_and_labels(self, tmp_path, images, save, suffix):
        x, y = images
        save(tmp_path / "i.npz", **{f"x{suffix}": x, f"y{suffix}": y, "x_test": x[:3]})
        source = open_source(tmp_path / "i.npz", chunk_rows=33)
        assert source.keys == {"x": f"x{suffix}", "y": f"y{suffix}"}
        assert source.storage == {
            "x": pa.fixed_shape_tensor(pa.uint8(), (6, 5, 3)),
            "y": pa.int64(),
        }
        chunks = list(source.chunks())
        assert [chunk.n_rows for chunk in chunks] == [33, 33, 33, 1]
        np.testing.assert_array_equal(np.concatenate([c.columns["x"] for c in chunks]), x)
        assert read(source, ["y"]) == {"y": y.tolist()}

    def test_fortran_order_and_byte_order(self, tmp_path, images):
        x = np.asfortranarray(images[0].astype(">u2"))
        with zipfile.ZipFile(tmp_path / "i.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in (("x", x), ("y", images[1].astype(">i4"))):
                stream = io.BytesIO()
                np.lib.format.write_array(stream, array)
                archive.writestr(f"{name}.npy", stream.getvalue())
        source = open_source(tmp_path / "i.npz", chunk_rows=40)
        assert source.storage["x"] == pa.fixed_shape_tensor(pa.uint16(), (6, 5, 3))
        parts = [chunk.columns["x"] for chunk in source.chunks()]
        assert {part.dtype for part in parts} == {np.dtype(np.uint16)}
        np.testing.assert_array_equal(np.concatenate(parts), images[0])
        assert read(source, ["y"])["y"] == images[1].tolist()

    def test_labels_of_text_and_column_shape(self, tmp_path, images):
        np.savez(tmp_path / "i.npz", x=images[0], y=np.array([["cat"], ["ü"]] * 50))
        source = open_source(tmp_path / "i.npz")
        assert source.storage["y"] == pa.string()
        assert read(source, ["y"])["y"] == ["cat", "ü"] * 50

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"z": np.zeros((2, 2))}, "'x' or 'x_train'"),
            ({"x": np.zeros(3)}, "shape"),
            ({"x": np.zeros((3, 0))}, "shape"),
            ({"x": np.array([["a", "b"]])}, "numbers"),
            ({"x": np.zeros((3, 2)), "y": np.zeros(2)}, "one for each image"),
            ({"x": np.zeros((3, 2)), "y": np.zeros((3, 2))}, "one for each image"),
            ({"x": np.array([[SECRET, 1]], dtype=object)}, "pickled"),
        ],
    )
    def test_unusable_arrays(self, tmp_path, arrays, message):
        np.savez(tmp_path / "i.npz", **arrays)
        for data in (tmp_path / "i.npz", arrays):
            with pytest.raises(DataError, match=message) as caught:
                open_source(data)
            assert_carries_nothing(caught.value, SECRET)

    def test_a_pickle_is_never_opened(self, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (pytest.fail, ("the pickle was opened",))

        with zipfile.ZipFile(tmp_path / "i.npz", "w") as archive:
            archive.writestr("x.npy", pickle.dumps(Bomb()))
        with pytest.raises(DataError):
            open_source(tmp_path / "i.npz")

    def test_cut_short(self, tmp_path, images):
        stream = io.BytesIO()
        np.lib.format.write_array(stream, images[0])
        with zipfile.ZipFile(tmp_path / "i.npz", "w") as archive:
            archive.writestr("x.npy", stream.getvalue()[:-7])
        with pytest.raises(DataError, match=r"i\.npz"):
            read(open_source(tmp_path / "i.npz"))

    @pytest.mark.parametrize(
        ("shape", "order"),
        [
            ("(1000000000000, 28, 28)", "False"),
            ("(1000000, 1000, 1000)", "True"),
            ("(2, 1000000, 1000000)", "False"),
            (f"({10**30}, 28, 28)", "False"),
            ("(-1, 28, 28)", "False"),
        ],
    )
    @pytest.mark.parametrize("says", [False, True])
    def test_a_header_that_says_more_than_there_is(self, tmp_path, shape, order, says):
        header = f"{{'descr': '<f8', 'fortran_order': {order}, 'shape': {shape}}}".encode().ljust(117) + b"\n"
        content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)
        path = tmp_path / "i.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", content)
            if says:  # the archive confirms it
                archive.infolist()[0].file_size = archive.infolist()[0].compress_size = 1 << 50
        with pytest.raises(DataError, match=r"i\.npz"):
            open_source(path)

    def test_packing_that_may_ask_for_gigabytes_is_refused(self, tmp_path):
        for suffix, name in ((".npz", "x.npy"), (".csv.zip", "a.csv")):
            path = tmp_path / f"i{suffix}"
            with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
                archive.writestr(name, "a,b\n1,2\n")
            with pytest.raises(DataError, match="packed by deflate"):
                open_source(path)

    def test_chunks_of_large_images_are_shorter(self, tmp_path, images, monkeypatch):
        monkeypatch.setattr("sfumato.io.image_arrays._CHUNK_BYTES", 1000)
        np.savez_compressed(tmp_path / "i.npz", x=images[0], y=images[1])
        chunks = list(open_source(tmp_path / "i.npz").chunks())
        assert [chunk.n_rows for chunk in chunks] == [11] * 9 + [1]
        np.testing.assert_array_equal(np.concatenate([chunk.columns["x"] for chunk in chunks]), images[0])

    def test_arrays_in_memory(self, images):
        x, y = images
        for data in ((x, y), {"x": x, "y": y}, {"x_train": x, "y_train": y}):
            source = open_source(data, chunk_rows=64)
            assert source.container == "arrays"
            assert not source.dtypes, "the dtype of text labels would tell the longest one"
            assert read(source) == {"x": x.tolist(), "y": y.tolist()}
        assert open_source(x).names == ("x",)


def failure_of(path) -> DataError | None:
    try:
        read(open_source(path))
    except DataError as error:
        return error
    return None


@pytest.mark.parametrize("name", ["d.csv", "d.parquet", "d.npz"])
def test_garbage_files_of_every_kind(tmp_path, name):
    rng = np.random.default_rng(5)
    for size in (1, 3, 100, 5000):
        (tmp_path / name).write_bytes(rng.bytes(size))
        error = failure_of(tmp_path / name)
        if name != "d.csv":  # almost anything is some CSV file
            assert error is not None
        if error is not None:
            assert_carries_nothing(error)
            assert name in str(error)


def test_paths_that_are_no_data_files(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "notes.md").write_text("a,b")
    (tmp_path / "empty.parquet").touch()
    for path, message in [
        (tmp_path / "folder.csv", "directory"),
        (tmp_path / "absent.csv", "exists"),
        (tmp_path / "notes.md", r"\.csv, \.parquet, \.npz"),
        (tmp_path / "empty.parquet", "empty file"),
    ]:
        with pytest.raises(DataError, match=message):
            open_source(path)


@pytest.mark.parametrize("data", [None, 3, [1, 2], (1, 2, 3), object()])
def test_objects_that_are_no_data(data):
    with pytest.raises(ConfigError, match="type"):
        open_source(data)


def test_chunk_rows_is_checked():
    with pytest.raises(ConfigError, match="chunk_rows=0"):
        open_source(pa.table({"a": [1]}), chunk_rows=0)


FRAME = {
    "i": pd.Series([1, 2, -3], dtype="int16"),
    "u": pd.Series([1, 2, 2**64 - 1], dtype="UInt64"),
    "f": pd.Series([0.5, np.nan, np.inf], dtype="float32"),
    "b": pd.Series([True, False, True]),
    "s": pd.Series(["x", None, "z"], dtype="str"),
    "o": pd.Series(["x", None, "z"], dtype=object),
    "string": pd.Series(["x", None, "z"], dtype="string"),
    "c": pd.Series(["lo", "hi", None], dtype=pd.CategoricalDtype(["lo", "hi"], ordered=True)),
    "ci": pd.Series([10, 20, 10], dtype="category"),
    "t": pd.Series(pd.to_datetime(["2020-01-01", None, "1677-09-22"])),
    "tz": pd.Series(pd.to_datetime(["2020-01-01", None, "2021-06-01"]).tz_localize("Europe/Paris")),
    "I": pd.Series([1, None, 2**53 + 1], dtype="Int64"),
    "F": pd.Series([1.5, None, 2], dtype="Float64"),
    "B": pd.Series([True, None, False], dtype="boolean"),
    "arrow": pd.Series([1, None, 3], dtype="int32[pyarrow]"),
    "arrow_s": pd.Series(["a", None, "c"], dtype="string[pyarrow]"),
}


def as_table(source: Source) -> pa.Table:
    """All of a source as one table of its storage types."""
    parts: dict[str, list] = {name: [] for name in source.names}
    for chunk in source.chunks():
        for name, column in chunk.columns.items():
            parts[name] += column.chunks
    schema = pa.schema(list(source.storage.items()))
    return pa.table({n: pa.chunked_array(p, source.storage[n]) for n, p in parts.items()}, schema)


class TestPandas:
    @pytest.mark.parametrize("name", FRAME)
    def test_round_trip(self, name):
        frame = pd.DataFrame({name: FRAME[name]})
        source = open_source(frame, chunk_rows=2)
        back = to_container(as_table(source), container=source.container, dtypes=source.dtypes)
        pd.testing.assert_frame_equal(back, frame)

    def test_index_and_order(self):
        frame = pd.DataFrame({"z": [1, 2], "a": ["p", "q"]}, index=[7, 7])
        source = open_source(frame)
        assert source.names == ("z", "a")
        back = to_container(as_table(source), container="pandas", dtypes=source.dtypes)
        pd.testing.assert_frame_equal(back, frame.reset_index(drop=True))

    def test_what_of_an_index_has_a_name_is_a_column(self):
        frame = pd.DataFrame({"pulse": [70.5, 61.0, 80.0]}, index=pd.Index([8, 8, 9], name="patient"))
        source = open_source(frame, chunk_rows=2)
        back = to_container(as_table(source), container="pandas", dtypes=source.dtypes)
        pd.testing.assert_frame_equal(back, frame.reset_index())
        assert (list(frame.columns), frame.index.name) == (["pulse"], "patient")
        several = [pd.Categorical(["a", None, "b"]), [1, 2, 3], pd.date_range("2020-01-31", periods=3, tz="Asia/Tokyo")]
        many = frame.set_index(pd.MultiIndex.from_arrays(several, names=["site", None, "day"]))
        back = to_container(as_table(open_source(many)), container="pandas", dtypes=open_source(many).dtypes)
        pd.testing.assert_frame_equal(back, many.reset_index(["site", "day"]).reset_index(drop=True))
        assert open_source(frame[[]]).names == ("patient",)
        assert open_source(frame.rename_axis(None)).names == ("pulse",)

    @pytest.mark.parametrize("name", ["pulse", 3])
    def test_an_index_that_cannot_be_a_column_is_refused(self, name):
        frame = pd.DataFrame({"pulse": [70.5, 61.0]}).rename_axis(name)
        with pytest.raises(DataError, match=r"index of the pandas data frame to have a name of text.*rename_axis"):
            open_source(frame)

    def test_object_cells_become_text_one_by_one(self):
        class Bad:
            def __str__(self):
                raise ValueError(SECRET)

        cells = [
            "a",
            1,
            2.0,
            2.5,
            True,
            None,
            np.nan,
            pd.NaT,
            pd.NA,
            b"by",
            datetime.date(2020, 1, 2),
        ]
        cells += [np.int8(3), np.float32(0.5), "\ud800", Bad(), float("inf"), [1, 2]]
        text = ["a", "1", "2", "2.5", "true", None, None, None, None, "by", "2020-01-02"]
        text += ["3", "0.5", "?", None, "inf", "[1, 2]"]
        alone = [read(open_source(pd.DataFrame({"o": pd.Series([c], dtype=object)})))["o"][0] for c in cells]
        together = open_source(pd.DataFrame({"o": pd.Series(cells, dtype=object)}))
        assert together.storage == {"o": pa.string()}
        assert alone == text
        assert read(together)["o"] == text

    @pytest.mark.parametrize("dtype", ["string[python]", pd.StringDtype("python", na_value=np.nan)], ids=["NA", "NaN"])
    def test_half_a_surrogate_pair_stops_no_fit(self, dtype):
        cells = pd.Series(["a", "nan", "\ud800b", None, "é\0"], dtype=dtype)
        text = ["a", "nan", "?b", None, "é\0"]
        source = open_source(pd.DataFrame({"s": cells, "c": pd.Categorical(cells)}))
        assert read(source) == {"s": text, "c": text}
        whole = open_source(pd.DataFrame({"s": cells.drop(2)}))
        assert read(whole)["s"] == [text[i] for i in (0, 1, 3, 4)]

    def test_storage_does_not_depend_on_cells(self):
        for cells in ([1, 2], ["a", "b"], [True, None], [None, None]):
            source = open_source(pd.DataFrame({"o": pd.Series(cells, dtype=object)}))
            assert source.storage == {"o": pa.string()}

    def test_dtypes_arrow_does_not_have(self):
        frame = pd.DataFrame({"p": pd.period_range("2020-01", periods=2, freq="M"), "z": [1j, 2j]})
        assert read(open_source(frame)) == {"p": ["2020-01", "2020-02"], "z": ["1j", "2j"]}

    def test_missing_values_an_integer_dtype_cannot_hold(self):
        table = pa.table(
            {
                "i": pa.array([2**53 + 1, None], pa.int64()),
                "u": pa.array([1, None], pa.uint8()),
                "b": pa.array([True, None]),
            }
        )
        back = to_container(table, container="pandas", dtypes={"i": "int64", "u": "uint8", "b": "bool"})
        assert back.dtypes.astype(str).to_dict() == {"i": "Int64", "u": "UInt8", "b": "boolean"}
        assert back["i"][0] == 2**53 + 1
        assert back.isna().sum().tolist() == [1, 1, 1]

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ([1, 2], "int for column 1"),
            (["a", "a"], "columns 1 and 2"),
            ([("a", "b"), "c"], "tuple"),
        ],
    )
    def test_unusable_names(self, columns, message):
        with pytest.raises(DataError, match=message):
            open_source(pd.DataFrame([[1, 2]], columns=pd.Index(columns, tupleize_cols=False)))

    def test_no_columns(self):
        with pytest.raises(DataError, match="columns, got none"):
            open_source(pd.DataFrame(index=[1, 2]))


class TestPolars:
    FRAME = pl.DataFrame(
        {
            "i": pl.Series([1, None, 3], dtype=pl.UInt8),
            "f": [0.5, None, float("nan")],
            "s": ["x", None, "z"],
            "c": pl.Series(["u", "v", None], dtype=pl.Categorical),
            "e": pl.Series(["u", "v", None], dtype=pl.Enum(["v", "u"])),
            "d": [datetime.date(2020, 1, 1)] * 3,
            "t": pl.Series([datetime.datetime(2020, 1, 1, 3)] * 3, dtype=pl.Datetime("ms")),
            "z": pl.Series([datetime.datetime(2020, 1, 1)] * 3, dtype=pl.Datetime("us", "UTC")),
            "m": pl.Series(["1.50", None, "2.25"]).cast(pl.Decimal(10, 2)),
            "b": [True, None, False],
        }
    )

    def test_round_trip(self):
        source = open_source(self.FRAME)
        assert source.dtypes["e"] == "Enum"
        back = to_container(as_table(source), container=source.container, dtypes=source.dtypes)
        assert back.schema == self.FRAME.schema
        assert back.equals(self.FRAME, null_equal=True)

    def test_chunks(self):
        source = open_source(self.FRAME, chunk_rows=2)
        assert read(source, ["i", "c"]) == {"i": [1, None, 3], "c": ["u", "v", None]}

    def test_python_objects_and_numbers_that_arrow_lacks_are_text(self):
        objects = pl.Series([1, "x", [1], None, 2.0], dtype=pl.Object)
        frame = pl.DataFrame({"o": objects, "w": pl.Series([2**64, 1, None, -1, 5], dtype=pl.Int128)})
        assert read(open_source(frame, chunk_rows=2)) == {
            "o": ["1", "x", "[1]", None, "2"],
            "w": [str(2**64), "1", None, "-1", "5"],
        }


def every_source(tmp_path, rows) -> list[Source]:
    """One table in every tabular container, read in chunks of 7."""
    table = pa.table({"a": [f"{SECRET}{i}" for i in range(rows)], "n": np.arange(rows)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=10)
    table.to_pandas().to_csv(tmp_path / "t.csv", index=False)
    pieces = pa.concat_tables([table.slice(0, 3), table.slice(3, 1), table.slice(4)])
    data = [
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
        pieces,
        table.to_pandas(),
        pl.from_arrow(table),
    ]
    return [open_source(d, chunk_rows=7) for d in data]


@pytest.mark.parametrize("rows", [0, 1, 7, 50])
def test_every_container_has_the_same_chunks(tmp_path, rows):
    for source in every_source(tmp_path, rows):
        sizes = [chunk.n_rows for chunk in source.chunks()]
        assert sizes == [7] * (rows // 7) + [rows % 7] * (rows % 7 > 0), source
        for _ in range(2):  # it can be read again
            cells = read(source, ["a"])["a"]
            assert cells == [f"{SECRET}{i}" for i in range(rows)]


def test_reprs_and_column_errors_show_no_cell_and_no_count(tmp_path):
    for source in every_source(tmp_path, 37):
        chunk = next(source.chunks())
        shown = repr(source) + str(source) + repr(chunk) + str(chunk)
        assert "'a'" in repr(chunk)
        assert "n: " in repr(source)
        with pytest.raises(SchemaError, match="'absent'") as caught:
            source.chunks(["a", "absent"])
        shown += str(caught.value)
        for secret in (SECRET, "37", "7"):
            assert secret not in shown.replace(type(source).__name__, "")
        with pytest.raises(SchemaError, match="at least one column"):
            source.chunks([])


def test_a_source_is_passed_through_and_chunks_are_plain():
    source = open_source(pa.table({"a": [1]}))
    assert open_source(source) is source
    assert isinstance(next(source.chunks()), Chunk)


def test_a_file_that_goes_away_between_passes(tmp_path):
    source = csv_source(tmp_path, "a,b\n1,2\n")
    read(source)
    (tmp_path / "people.csv").unlink()
    with pytest.raises(DataError, match="changed while it was read") as caught:
        read(source)
    assert_carries_nothing(caught.value)


def test_arrays_come_back_under_their_keys():
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    table = pa.table({"x": pa.FixedShapeTensorArray.from_numpy_ndarray(x), "y": ["cat", "dog"]})
    back = to_container(table, container="npz", keys={"x": "x_train", "y": "y_train"})
    np.testing.assert_array_equal(back["x_train"], x)
    assert back["y_train"].tolist() == ["cat", "dog"]
    assert back["y_train"].dtype.kind == "U"
