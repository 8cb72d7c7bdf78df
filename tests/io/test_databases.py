"""Tables and queries of databases: one snapshot, no text of theirs in any error, cells of SQLite each by itself."""

import gc
import os
import shutil
import sqlite3
import sys
import tempfile
import traceback
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from fixtures import postgresql
from fixtures.cells import read_cells as read
from sfumato.errors import ConfigError, DataError, SfumatoError
from sfumato.io.sources import open_source

SECRET = "Xanthippe-4711"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    gc.collect()
    assert not list(folder.iterdir())


def silent(call, *secrets):
    with pytest.raises(SfumatoError) as failure:
        call()
    shown = "".join(traceback.format_exception(failure.value))
    for secret in (SECRET, *secrets):
        assert secret not in shown
    return str(failure.value)


@pytest.fixture
def lite(tmp_path):
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "the people" (age INTEGER, town TEXT, share)')
        connection.executemany(
            'INSERT INTO "the people" VALUES (?, ?, ?)',
            [(31, "Riga", 0.5), ("no number", None, 2.0), (2**60, b"\xff\x41", "x"), (None, "Oslo", 1e-7)],
        )
    connection.close()
    return path


CELLS = {
    "age": ["31", "no number", str(2**60), None],
    "town": ["Riga", None, "\ufffdA", "Oslo"],
    "share": ["0.5", "2", "x", "1e-07"],
}


class TestSqlite:
    @pytest.mark.parametrize("rows", [1, 3, 100])
    def test_every_cell_is_text_by_itself(self, lite, rows):
        for what in ("table=the%20people", "query=" + quote('SELECT * FROM "the people" ; ')):
            source = open_source(f"sqlite:///{lite}?{what}", chunk_rows=rows)
            assert source.storage == dict.fromkeys(CELLS, pa.string())
            assert (source.container, source.counts_entries) == ("csv", False)
            assert read(source) == read(source) == CELLS
            assert read(source, ["share"]) == {"share": CELLS["share"]}

    def test_a_relative_path(self, lite, monkeypatch):
        monkeypatch.chdir(lite.parent)
        assert read(open_source("sqlite:///people.db?table=the people")) == CELLS

    def test_all_passes_see_one_snapshot(self, lite):
        source = open_source(f"sqlite:///{lite}?table=the people")
        assert read(source) == CELLS
        with sqlite3.connect(lite) as connection:
            connection.execute('DELETE FROM "the people"')
        connection.close()
        assert read(source) == CELLS

    def test_no_statement_changes_anything(self, lite):
        before = lite.read_bytes()
        for query in (
            'DELETE FROM "the people"',
            'SELECT 1 AS a; DELETE FROM "the people"',
            "DROP TABLE x",
            "nonsense",
        ):
            message = silent(lambda query=query: open_source(f"sqlite:///{lite}?query={quote(query)}"), query)
            assert "the query of sqlite database" in message
        assert lite.read_bytes() == before

    def test_what_is_not_there(self, lite):
        assert "table people of sqlite" in silent(lambda: open_source(f"sqlite:///{lite}?table=people"))
        assert "exists, got absent.db" in silent(lambda: open_source("sqlite:///absent.db?table=people"))
        lite.write_text(SECRET * 100)
        silent(lambda: open_source(f"sqlite:///{lite}?table=people"))

    @pytest.mark.parametrize(
        "url",
        ["sqlite:///f", "sqlite://f?table=t", "sqlite:///f?table=t&query=q", "sqlite:///f?table=", "sqlite:///?table=t",
         "sqlite:///f?table=t&table=u", "sqlite:///f?table=t&mode=rw", "postgresql://host/db", "sqlite://[?table=t"],
    )  # fmt: skip
    def test_other_forms(self, url):
        with pytest.raises(ConfigError, match=r"\?table=NAME"):
            open_source(url)

    def test_two_columns_of_one_name(self, lite):
        query = quote('SELECT age AS a, age AS "" FROM "the people"')
        with pytest.raises(DataError, match="name"):
            open_source(f"sqlite:///{lite}?query={query}")


class TestDuckdb:
    @pytest.fixture
    def duck(self, tmp_path):
        duckdb = pytest.importorskip("duckdb", reason="the extra databases is not installed")
        path = tmp_path / "people.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                "CREATE SCHEMA s; CREATE TABLE s.people (age INTEGER, town VARCHAR, kind ENUM('a', 'b'))"
            )
            connection.execute("INSERT INTO s.people VALUES (31, 'Riga', 'b'), (NULL, NULL, NULL)")
        return path

    def test_tables_and_queries(self, duck):
        cells = {"age": [31, None], "town": ["Riga", None], "kind": ["b", None]}
        for what in ("table=s.people", "query=" + quote("SELECT * FROM s.people; ")):
            source = open_source(f"duckdb:///{duck}?{what}", chunk_rows=1)
            assert source.storage == {"age": pa.int32(), "town": pa.string(), "kind": pa.string()}
            assert source.container == "parquet"
            assert read(source) == read(source) == cells

    def test_refused(self, duck):
        for query in (
            "DELETE FROM s.people",
            "SELECT 1; SELECT 2",
            "CREATE TABLE x (a INT)",
            "nonsense",
            "SELECT 1 AS a; DROP TABLE s.people",
        ):
            assert "query" in silent(lambda query=query: open_source(f"duckdb:///{duck}?query={quote(query)}"), query)
        assert "table people of duckdb" in silent(lambda: open_source(f"duckdb:///{duck}?table=people"))

    def test_a_cell_that_stops_the_query_is_not_shown(self, duck):
        query = quote(f"SELECT CAST(town || '{SECRET}' AS INTEGER) AS a FROM s.people")
        source = open_source(f"duckdb:///{duck}?query={query}")
        assert "the query of duckdb database" in silent(lambda: read(source), "".join(["Ri", "ga"]))

    def test_without_the_library(self, duck, monkeypatch):
        monkeypatch.setitem(sys.modules, "duckdb", None)
        with pytest.raises(ConfigError, match=r"sfumato\[databases\]"):
            open_source(f"duckdb:///{duck}?table=s.people")


@pytest.fixture(scope="module")
def host():
    reason = postgresql.why_not()
    if reason is not None:
        pytest.skip(reason)
    pytest.importorskip("adbc_driver_postgresql", reason="the extra databases is not installed")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # one that another user can enter
    folder.chmod(0o755)
    try:
        with postgresql.server(folder, SECRET) as place:
            from adbc_driver_postgresql import dbapi

            with dbapi.connect(f"postgresql://{place}/postgres") as connection, connection.cursor() as cursor:
                cursor.execute("CREATE TABLE people (age integer, town text, pay numeric(9,2), born date, ok boolean)")
                cursor.execute(
                    "INSERT INTO people SELECT i, 'town ' || i % 3, i * 1.5, '2000-01-01', i % 2 = 0"
                    " FROM generate_series(0, 99) i"
                )
                connection.commit()
            yield place
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class TestPostgresql:
    def test_tables_and_queries(self, host):
        for what in ("table=people", "table=public.people", "query=" + quote("SELECT * FROM people; ")):
            source = open_source(f"postgresql://{host}/postgres?{what}", chunk_rows=7)
            assert source.container == "parquet"
            assert source.storage["age"] == pa.int32()
            cells = read(source)
            assert cells == read(source)
            assert cells["age"] == list(range(100))
            assert cells["pay"][:3] == ["0.00", "1.50", "3.00"]
            assert cells["ok"][:2] == [True, False]

    def test_all_passes_see_one_snapshot(self, host):
        from adbc_driver_postgresql import dbapi

        source = open_source(f"postgres://{host}/postgres?table=people")
        before = read(source)
        with dbapi.connect(f"postgresql://{host}/postgres") as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE kept AS SELECT * FROM people")
            cursor.execute("DELETE FROM people")
            connection.commit()
            assert read(source) == before
            cursor.execute("INSERT INTO people SELECT * FROM kept")
            cursor.execute("DROP TABLE kept")
            connection.commit()

    def test_nothing_is_written_and_nothing_is_shown(self, host):
        address = f"postgresql://{host}/postgres"
        for query in (
            "DELETE FROM people RETURNING age",
            "SELECT 1; DELETE FROM people",
            "nonsense",
            "WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone",
        ):
            message = silent(lambda query=query: open_source(f"{address}?query={quote(query)}"), query, host)
            assert "the query of postgresql database" in message
        assert "table none of postgresql database" in silent(lambda: open_source(f"{address}?table=none"), host)
        source = open_source(f"{address}?query=" + quote("SELECT CAST(town AS integer) AS a FROM people"))
        silent(lambda: read(source), " ".join(["town", "0"]))
        assert len(read(open_source(f"{address}?table=people"))["age"]) == 100

    def test_unreachable(self, host):
        place = host.rpartition(":")[0]
        assert "Cannot reach" in silent(lambda: open_source(f"postgresql://{place}:1/postgres?table=people"))
        wrong = host.replace(SECRET, "wrong")
        assert "Cannot reach" in silent(lambda: open_source(f"postgresql://{wrong}/postgres?table=people"))
        assert "Cannot reach" in silent(lambda: open_source(f"postgresql://{host}/none?table=people"))


def test_rights_of_the_temporary_file(lite, temporary):
    if os.name != "posix":
        pytest.skip("rights of files are those of POSIX")
    source = open_source(f"sqlite:///{lite}?table=the people")
    assert not list(temporary.iterdir())
    read(source)
    (file,) = (path for path in temporary.rglob("*") if path.is_file())
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0
