"""One table in every form that can be read gives one release: equal bits, whatever types and pieces it came in."""

import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from fixtures import postgresql, tables
from sfumato.io.sources import open_source
from sfumato.methods.max_entropy import MaxEntropy

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")


def table() -> pa.Table:
    frame = tables.frame()
    frame["seen"] = pd.to_datetime(frame["seen"]).dt.date
    for name in ("sex", "grade", "income"):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), None)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _csv(folder, suffix=""):
    path = folder / f"t.csv{suffix}"
    content = table().to_pandas().to_csv(index=False).encode()
    if suffix:
        content = pa.compress(content, codec={".gz": "gzip", ".zst": "zstd"}[suffix], asbytes=True)
    path.write_bytes(content)
    return path


def _parquet(folder):
    pq.write_table(table(), folder / "t.parquet")
    return folder / "t.parquet"


def _pieces(folder):
    (folder / "ds").mkdir()
    whole = table()
    for i, start in enumerate(range(0, tables.ROWS, 100)):
        pq.write_table(whole.slice(start, 100), folder / "ds" / f"{i}.parquet")
    return folder / "ds"


def _list(folder):
    return sorted(_pieces(folder).iterdir(), reverse=True)


def _hive(folder):
    pq.write_to_dataset(table(), folder / "ds", partition_cols=["sex"])
    return folder / "ds"


def _json(folder):
    cells = tables_cells()
    cells.to_json(folder / "t.jsonl", orient="records", lines=True)
    return folder / "t.jsonl"


def tables_cells() -> pd.DataFrame:
    frame = table().to_pandas()
    frame["seen"] = frame["seen"].astype(str).where(frame["seen"].notna(), None)
    return frame.astype(object).where(frame.notna(), None)


def _feather(folder):
    pyarrow.feather.write_feather(table(), folder / "t.feather")
    return folder / "t.feather"


def _sqlite(folder):
    with sqlite3.connect(folder / "t.db") as connection:
        tables_cells().to_sql("people", connection, index=False)
    connection.close()
    return f"sqlite:///{folder}/t.db?table=people"


def _duckdb(folder):
    duckdb = pytest.importorskip("duckdb", reason="the extra databases is not installed")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", table())
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return f"duckdb:///{folder}/t.duckdb?table=people"


def _relation(folder):
    duckdb = pytest.importorskip("duckdb", reason="the extra databases is not installed")
    return duckdb.connect().from_arrow(table())


@pytest.fixture(scope="module")
def host():
    reason = postgresql.why_not()
    if reason is not None:
        pytest.skip(reason)
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the extra databases is not installed")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    try:
        with postgresql.server(folder, "a password") as place:
            address = f"postgresql://{place.replace(' ', '%20')}/postgres"
            with dbapi.connect(address) as connection, connection.cursor() as cursor:
                cursor.adbc_ingest("people", table(), mode="create")
                connection.commit()
            yield address
    finally:
        shutil.rmtree(folder, ignore_errors=True)


FORMS = {
    "pandas": lambda folder: table().to_pandas(),
    "polars": lambda folder: pl.from_arrow(table()),
    "polars lazy": lambda folder: pl.scan_parquet(_parquet(folder)),
    "CSV": _csv,
    "CSV.gz": lambda folder: _csv(folder, ".gz"),
    "CSV.zst": lambda folder: _csv(folder, ".zst"),
    "JSON lines": _json,
    "Feather": _feather,
    "Parquet": _parquet,
    "glob": lambda folder: _pieces(folder) / "*.parquet",
    "list": _list,
    "folder": _pieces,
    "hive": _hive,
    "dataset": lambda folder: pads.dataset(_pieces(folder)),
    "SQLite": _sqlite,
    "DuckDB": _duckdb,
    "DuckDB relation": _relation,
    "Arrow stream": lambda folder: table().to_reader(max_chunksize=50),
    "function": lambda folder: lambda: table().to_reader(max_chunksize=50),
}


def fitted(data):
    return MaxEntropy(epsilon=1.0).fit(data, schema=tables.schema(), target="income", seed=7, rows_are_records=True)


@pytest.fixture(scope="module")
def expected():
    return fitted(table())


def assert_equal(release, expected):
    assert release.parameters.keys() == expected.parameters.keys()
    for name, array in expected.parameters.items():
        assert np.asarray(release.parameters[name]).tobytes() == np.asarray(array).tobytes(), name
    assert len(release.measurements) == len(expected.measurements)
    for mine, other in zip(release.measurements, expected.measurements, strict=True):
        assert mine.name == other.name
        assert np.asarray(mine.value).tobytes() == np.asarray(other.value).tobytes(), mine.name


@pytest.mark.parametrize("form", FORMS)
def test_one_release(form, tmp_path, expected):
    assert_equal(fitted(FORMS[form](tmp_path)), expected)


def test_one_release_from_postgresql(host, expected):
    assert_equal(fitted(f"{host}?table=people"), expected)


def test_chunks_change_nothing(tmp_path, expected):
    for rows in (7, 64):
        assert_equal(fitted(open_source(_hive(tmp_path / str(rows)), chunk_rows=rows)), expected)
