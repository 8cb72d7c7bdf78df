"""Rows that a program computes: refused before a charge without the holder's word, and on the certificate with it."""

import sqlite3
import traceback
from urllib.parse import quote

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import sfumato
from sfumato import DPMix, MaxEntropy, create_ledger, load, read_ledger, tune, verify_finding
from sfumato.cli.app import run
from sfumato.errors import ConfigError, DataError, SchemaError
from sfumato.estimators import DPKMeans
from sfumato.fitting.contents import COMPUTED
from sfumato.io.chunks import Source, table_chunks
from sfumato.report import write_report
from sfumato.schema.schema import Schema

SECRET = "Xanthippe-4711"
METHOD = MaxEntropy(epsilon=1.0, delta=1e-5, calibration_rows=60)
DOCUMENT = {"columns": {"x": {"kind": "continuous", "lower": 0, "upper": 1}, "above": "boolean"}, "rows": 400}
SCHEMA = Schema.from_dict({**DOCUMENT, "columns": {**DOCUMENT["columns"], "above": {"kind": "boolean"}}})
FRAME = pd.DataFrame({"x": np.arange(400) / 400})
WHOLE = FRAME.assign(above=FRAME["x"] > FRAME["x"].mean())
QUERY = quote("SELECT x, CASE WHEN x > avg(x) OVER () THEN 'true' ELSE 'false' END AS above FROM t")


class Stream:
    """What has an Arrow stream and nothing else."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.Table.from_pandas(WHOLE).__arrow_c_stream__(requested_schema)


class Strange(Source):
    """A source of the caller's own, of no installed package."""

    def _read(self, columns):
        yield from table_chunks(pa.Table.from_pandas(WHOLE).to_batches(), columns, self.chunk_rows)


def sqlite_file(folder):
    with sqlite3.connect(folder / "t.db") as connection:
        FRAME.to_sql("t", connection, index=False)
        connection.execute(f"CREATE VIEW v AS {QUERY_TEXT}")
    connection.close()
    return f"sqlite:///{folder}/t.db"


QUERY_TEXT = "SELECT x, CASE WHEN x > avg(x) OVER () THEN 'true' ELSE 'false' END AS above FROM t"


def duckdb_file(folder):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("frame", FRAME)
        connection.execute(f"CREATE TABLE t AS SELECT * FROM frame; CREATE VIEW v AS {QUERY_TEXT}")
    return f"duckdb:///{folder}/t.duckdb"


def duckdb_relation(folder):
    return pytest.importorskip("duckdb").connect().from_arrow(pa.Table.from_pandas(FRAME)).query("t", QUERY_TEXT)


def dask_frame(folder):
    return pytest.importorskip("dask.dataframe").from_pandas(WHOLE, npartitions=3)


def lazy(folder):
    return pl.from_pandas(FRAME).lazy().with_columns(above=pl.col("x") > pl.col("x").mean())


def scanned(folder):
    pl.from_pandas(WHOLE).write_parquet(folder / "t.parquet")
    return pl.scan_parquet(folder / "t.parquet")


def filtered(folder):
    pq.write_table(pa.Table.from_pandas(WHOLE), folder / "t.parquet")
    return pads.dataset(folder / "t.parquet").filter(pads.field("x") >= 0)


def strange(folder):
    table = pa.Table.from_pandas(WHOLE)
    return Strange(
        label="strange", container="pyarrow", storage=dict(zip(table.column_names, table.schema.types, strict=True))
    )


COMPUTING = {
    "SQLite query": lambda folder: f"{sqlite_file(folder)}?query={QUERY}",
    "SQLite view": lambda folder: f"{sqlite_file(folder)}?table=v",
    "DuckDB query": lambda folder: f"{duckdb_file(folder)}?query={QUERY}",
    "DuckDB view": lambda folder: f"{duckdb_file(folder)}?table=v",
    "DuckDB relation": duckdb_relation,
    "Arrow stream": lambda folder: Stream(),
    "reader": lambda folder: pa.Table.from_pandas(WHOLE).to_reader(),
    "function": lambda folder: lambda: pa.Table.from_pandas(WHOLE).to_reader(),
    "function of batches": lambda folder: lambda: iter([pa.Table.from_pandas(WHOLE)]),
    "lazy frame": lazy,
    "scan": scanned,
    "Dask frame": dask_frame,
    "filtered data set": filtered,
    "data set of a reader": lambda folder: pads.dataset(pa.Table.from_pandas(WHOLE).to_reader()),
    "source of a caller": strange,
}


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "l"
    create_ledger(path, epsilon=9.0, delta=1e-3)
    return path


@pytest.mark.parametrize("kind", COMPUTING)
def test_it_is_refused_before_any_charge_and_taken_on_the_holders_word(tmp_path, ledger, kind):
    before = ledger.read_bytes()
    data = COMPUTING[kind](tmp_path)
    for call in (
        lambda: METHOD.fit(data, schema=SCHEMA, ledger=ledger),
        lambda: sfumato.fit(data, epsilon=1.0, delta=1e-6, ledger=ledger),
        lambda: tune(data, SCHEMA, method=[METHOD], ledger=ledger),
    ):
        with pytest.raises(ConfigError, match=r"rows that a program computes.*rows_are_records=True"):
            call()
    assert (ledger.read_bytes(), read_ledger(ledger).fits) == (before, ())
    again = COMPUTING[kind](tmp_path) if kind in ("reader", "data set of a reader") else data
    release = METHOD.fit(again, schema=SCHEMA, ledger=ledger, rows_are_records=True)
    assert COMPUTED in release.certificate.assumptions
    assert len(read_ledger(ledger).fits) == 1


def test_tables_and_files_need_no_word(tmp_path):
    WHOLE.to_csv(tmp_path / "t.csv", index=False)
    stored = Schema.from_dict({"columns": {"x": (0, 1)}, "rows": 400})
    release = METHOD.fit(f"{sqlite_file(tmp_path)}?table=t", schema=stored)
    assert COMPUTED not in release.certificate.assumptions
    for data in (WHOLE, pl.from_pandas(WHOLE), pa.Table.from_pandas(WHOLE), tmp_path / "t.csv"):
        assert COMPUTED not in METHOD.fit(data, schema=SCHEMA).certificate.assumptions


def test_a_schema_may_say_it_and_keeps_it(tmp_path):
    said = Schema.from_dict({**SCHEMA.to_dict(), "source": {"rows_are_records": True, "rows": "law"}})
    said.save(tmp_path / "s.yaml")
    release = METHOD.fit(lazy(tmp_path), schema=tmp_path / "s.yaml")
    assert COMPUTED in release.certificate.assumptions
    assert Schema.load(tmp_path / "s.yaml").rows_are_records
    with pytest.raises(ConfigError, match="a program computes"):
        METHOD.fit(lazy(tmp_path), schema=Schema.from_dict({**SCHEMA.to_dict(), "source": {"rows_are_records": False}}))
    with pytest.raises(SchemaError, match="rows_are_records of the source"):
        Schema.from_dict({**SCHEMA.to_dict(), "source": {"rows_are_records": "law"}})
    with pytest.raises(ConfigError, match="True or False"):
        METHOD.fit(lazy(tmp_path), schema=SCHEMA, rows_are_records="yes")


def test_certificate_card_and_page_say_it(tmp_path):
    release = METHOD.fit(lazy(tmp_path), schema=SCHEMA, rows_are_records=True)
    release.save(tmp_path / "r.sfm")
    assert COMPUTED in load(tmp_path / "r.sfm").certificate.assumptions
    assert "computed from one record alone" in release.certificate._repr_html_()
    write_report(release, tmp_path / "r.html")
    assert "computed from one record alone" in (tmp_path / "r.html").read_text()


def test_of_several_tables_one_is_enough(tmp_path):
    persons = pd.DataFrame({"id": range(50), "sex": ["f", "m"] * 25})
    visits = pd.DataFrame({"id": np.arange(100) % 50, "score": np.arange(100) % 9})
    schema = {
        "tables": {"persons": {"key": "id", "rows": 50, "columns": ["sex"]},
                   "visits": {"of": "persons", "max_rows": 2, "columns": ["score"]}},
        "columns": {"id": {"kind": "identifier"}, "sex": {"kind": "categorical", "categories": ["f", "m"]},
                    "score": {"kind": "integer", "lower": 0, "upper": 9}},
    }  # fmt: skip
    data = {"persons": persons, "visits": pl.from_pandas(visits).lazy()}
    with pytest.raises(ConfigError, match="the polars lazy frame"):
        METHOD.fit(data, schema=schema)
    assert COMPUTED in METHOD.fit(data, schema=schema, rows_are_records=True).certificate.assumptions


@pytest.mark.parametrize("kind", ["lazy frame", "DuckDB relation", "query", "function", "Dask frame"])
def test_what_stops_a_program_stops_it_before_the_charge(tmp_path, ledger, kind):
    cells = [*["1"] * 399, SECRET]
    frame = pd.DataFrame({"x": cells, "above": [True, False] * 200})

    def batches():
        yield pa.Table.from_pandas(WHOLE)
        raise ValueError(SECRET)

    def relation():
        frame = pytest.importorskip("duckdb").connect().from_arrow(pa.Table.from_pandas(pd.DataFrame({"x": cells})))
        return frame.query("t", "SELECT CAST(x AS DOUBLE) AS x, true AS above FROM t")

    def dask():
        frames = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2)
        return frames.map_partitions(lambda part: part.assign(x=part["x"].astype(float)), meta=WHOLE.iloc[:0])

    data = {
        "lazy frame": lambda: pl.from_pandas(frame).lazy().with_columns(pl.col("x").cast(pl.Float64)),
        "DuckDB relation": relation,
        "query": lambda: (
            f"{sqlite_file(tmp_path)}?query=" + quote("SELECT x, abs(-9223372036854775808) AS above FROM t")
        ),
        "function": lambda: batches,
        "Dask frame": dask,
    }[kind]()
    before = ledger.read_bytes()
    with pytest.raises(DataError, match="Cannot read the") as failure:
        METHOD.fit(data, schema=SCHEMA, ledger=ledger, rows_are_records=True)
    assert SECRET not in "".join(traceback.format_exception(failure.value))
    assert (ledger.read_bytes(), read_ledger(ledger).fits) == (before, ())


def test_everything_else_that_charges_asks_too(tmp_path, ledger):
    before = ledger.read_bytes()
    release = METHOD.fit(WHOLE, schema=SCHEMA)
    term = release.ols("x ~ above").params.index[1]
    numbers = pa.table({"x": FRAME["x"].to_numpy()})
    means = DPKMeans(2, epsilon=1.0, n_public=400, bounds=([0.0], [1.0]))
    calls = {
        "finding": lambda **word: verify_finding(
            release, lazy(0), "x ~ above", term, epsilon=0.1, ledger=ledger, **word
        ),
        "estimator": lambda **word: means.fit(numbers.to_reader(), ledger=ledger, **word),
        "mixtures": lambda **word: DPMix(epsilon=1.0).fit(
            lazy(0), schema=SCHEMA, target="above", ledger=ledger, **word
        ),
    }
    for name, call in calls.items():
        with pytest.raises(ConfigError, match="a program computes"):
            call()
        assert ledger.read_bytes() == before, name
    for call in calls.values():
        call(rows_are_records=True)
    assert len(read_ledger(ledger).fits) == len(calls)
    assert COMPUTED in means.certificate_.assumptions


def test_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("s.yaml")
    create_ledger("l", epsilon=9.0, delta=1e-3)
    data = f"{sqlite_file(tmp_path)}?table=v"
    fit = ["fit", data, "--schema", "s.yaml", "--epsilon", "1", "--ledger", "l", "--out", "r.sfm"]
    assert run(fit) == 2
    assert "--rows-are-records" in capsys.readouterr().err
    assert not read_ledger("l").fits
    assert run([*fit, "--rows-are-records"]) == 0
    assert COMPUTED in load("r.sfm").certificate.assumptions


def test_the_holders_own_screen_asks_nothing(tmp_path):
    assert sfumato.describe(lazy(tmp_path)).columns.keys() == {"x", "above"}
