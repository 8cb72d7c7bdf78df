"""Objects that give record batches: every pass sees the same records, and private temporary files are removed."""

import gc
import os
import stat
import tempfile
import traceback
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from fixtures.cells import read_cells as read
from fixtures.costly import slow_after
from sfumato.errors import ConfigError, DataError
from sfumato.io.sources import open_source
from sfumato.io.spool import SpooledSource

SECRET = "Xanthippe-4711"
TABLE = pa.table({"a": list(range(10)), "b": pa.array(["x", None] * 5).dictionary_encode()})
CELLS = TABLE.to_pydict()


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


class Asked:
    """What has an Arrow stream and nothing else."""

    def __init__(self, table=TABLE):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def streams():
    import duckdb

    connection = duckdb.connect()
    yield "reader", TABLE.to_reader(max_chunksize=4)
    yield "object", Asked()
    yield "in-memory data set", pads.dataset(TABLE)
    yield "data set of a reader", pads.dataset(TABLE.to_reader(), schema=TABLE.schema)
    yield "duckdb", connection.from_arrow(TABLE)
    yield "function", lambda: TABLE.to_reader(max_chunksize=3)
    yield "lazy frame", pl.from_arrow(TABLE).lazy()


@pytest.mark.parametrize("rows", slow_after(1, [3, 100]))
@pytest.mark.parametrize("place", range(7))
def test_what_is_read_once_is_kept_for_all_passes(temporary, place, rows):
    pytest.importorskip("duckdb")
    data = list(streams())[place][1]
    source = open_source(data, chunk_rows=rows)
    assert isinstance(source, SpooledSource)
    assert not source.counts_entries
    assert list(source.computing()) == [source.label]
    assert not list(temporary.iterdir())  # no record is read yet
    assert read(source) == read(source) == CELLS
    assert read(source, ["b"]) == {"b": CELLS["b"]}
    assert read(source, ["b", "a"]) == CELLS
    (folder,) = temporary.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()] == [0o600]
    del source, data
    gc.collect()
    assert not list(temporary.iterdir())


def failing():
    yield TABLE.to_batches()[0]
    raise ValueError(SECRET)


def test_a_failure_leaves_no_file_and_says_nothing(temporary):
    source = open_source(pa.RecordBatchReader.from_batches(TABLE.schema, failing()))
    with pytest.raises(DataError, match="Arrow stream") as failure:
        read(source)
    assert SECRET not in "".join(traceback.format_exception(failure.value))
    assert not list(temporary.iterdir())
    with pytest.raises(DataError, match="again after a failure"):  # and never the rest of the reader alone
        read(source)


def test_a_lazy_frame_is_polars_and_is_computed_once(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    calls = []
    frame = pl.scan_parquet(path).with_columns(
        pl.col("a").map_batches(lambda s: calls.append(1) or s, return_dtype=pl.Int64, is_elementwise=False)
    )
    source = open_source(frame)
    assert (source.container, source.dtypes["a"]) == ("polars", "Int64")
    assert read(source) == read(source) == CELLS
    assert len(calls) == 1


def test_a_data_set_is_scanned_in_order_of_its_files(tmp_path):
    for i in range(5):
        pq.write_table(pa.table({"a.b": [2 * i, 2 * i + 1]}), tmp_path / f"{i}.parquet")
    source = open_source(pads.dataset(tmp_path), chunk_rows=3)
    assert read(source) == {"a.b": list(range(10))}
    assert read(source, ["a.b"]) == {"a.b": list(range(10))}
    assert [chunk.n_rows for chunk in source.chunks()] == [3, 3, 3, 1]


def test_a_record_batch_is_a_table():
    source = open_source(TABLE.to_batches()[0])
    assert not source.computed
    assert read(source) == CELLS


@pytest.mark.parametrize("form", ["file", "filter", "union"])
def test_a_data_set_with_a_filter_or_rows_in_memory_is_computed(tmp_path, form):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    files = pads.dataset(tmp_path / "t.parquet")
    data = {
        "file": lambda: files,
        "filter": lambda: files.filter(pads.field("a") < 100),
        "union": lambda: pads.dataset([files, pads.dataset(TABLE.slice(0, 0))]),
    }[form]()
    source = open_source(data)
    assert source.computed == (form != "file")
    assert read(source) == CELLS


class TestFunctions:
    def test_called_once(self):
        calls = []

        def make():
            calls.append(1)
            return TABLE.to_reader(max_chunksize=3)

        source = open_source(make, chunk_rows=4)
        assert read(source) == read(source) == CELLS
        assert len(calls) == 1

    def test_batches_and_tables_in_an_iterable(self):
        assert read(open_source(TABLE.to_batches)) == CELLS
        assert read(open_source(lambda: TABLE)) == CELLS
        assert read(open_source(lambda: iter([TABLE, TABLE]))) == {n: c * 2 for n, c in CELLS.items()}

    @pytest.mark.parametrize("made", [None, [], [1], iter([pd.DataFrame({"a": [SECRET]})])])
    def test_anything_else_is_refused(self, made):
        with pytest.raises(ConfigError, match="function"):
            open_source(lambda: made)

    def test_batches_of_other_columns(self):
        source = open_source(lambda: [TABLE, TABLE.select(["a"])])
        with pytest.raises(DataError, match="the function's batches"):
            source.keep()

    def test_batches_have_types_of_their_own(self):
        source = open_source(lambda: [pa.table({"a": [None], "b": ["x"]}), pa.table({"b": [1], "a": [2]})])
        assert set(source.storage.values()) == {pa.null()}
        assert source.measured().storage == {"a": pa.null(), "b": pa.string()}
        assert [chunk.columns["b"].to_pylist() for chunk in source.chunks()] == [["x"], [1]]
        assert [chunk.columns["a"].to_pylist() for chunk in source.chunks(["a"])] == [[None], [2]]

    def test_no_batch(self):
        source = open_source(lambda: pa.RecordBatchReader.from_batches(TABLE.schema, []))
        assert list(source.chunks()) == []

    def test_a_function_that_fails(self):
        def fail():
            raise ValueError(SECRET)

        with pytest.raises(DataError, match="it failed") as failure:
            open_source(fail)
        assert SECRET not in "".join(traceback.format_exception(failure.value))


def test_what_is_no_table(tmp_path):
    with pytest.raises(DataError, match="Arrow stream"):
        open_source(pa.chunked_array([[1]]))
    with pytest.raises(ConfigError, match="got one of type int"):
        open_source(3)
    with pytest.raises(ConfigError, match="got one of type type"):
        open_source(Asked)
    with pytest.raises(DataError, match="name"):
        open_source(Asked(pa.table([[1], [2]], names=["a", "a"])))


def test_a_copy_of_the_process_removes_nothing(temporary):
    source = open_source(Asked())
    read(source)
    (folder,) = temporary.iterdir()
    child = os.fork()
    if not child:
        del source
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert Path(folder).is_dir()
    assert read(source) == CELLS
