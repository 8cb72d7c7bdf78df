"""DuckDB: what is stored, types that Arrow does not have, relations as they are."""

import contextlib
import sys
from datetime import date, datetime
from decimal import Decimal
from urllib.parse import quote

import pyarrow as pa
import pytest

from fixtures.cells import read_cells as read
from fixtures.silence import SECRET, silent
from sfumato.errors import ConfigError
from sfumato.io.sources import open_source

duckdb = pytest.importorskip("duckdb", reason="the extra databases is not installed")
pytestmark = pytest.mark.usefixtures("temporary")


class TestTablesAndQueries:
    @pytest.fixture
    def duck(self, tmp_path):
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
        query = quote(f"SELECT error(town || '{SECRET}') AS a FROM s.people")
        source = open_source(f"duckdb:///{duck}?query={query}")
        assert "the query of duckdb database" in silent(lambda: read(source), "".join(["Ri", "ga"]))

    def test_without_the_library(self, duck, monkeypatch):
        monkeypatch.setitem(sys.modules, "duckdb", None)
        with pytest.raises(ConfigError, match=r"sfumato\[databases\]"):
            open_source(f"duckdb:///{duck}?table=s.people")


TYPES = {
    "u": ("uuid '475c85fc-2232-4bd9-b40b-45340aaf235a'", "475c85fc-2232-4bd9-b40b-45340aaf235a"),
    "h": ("170141183460469231731687303715884105727::hugeint", "170141183460469231731687303715884105727"),
    "i": ("interval 26 hours", "26:00:00"),
    "b": ("'101'::bit", "101"),
    "j": ("'{\"a\": 1}'::json", '{"a": 1}'),
    "z": ("'10:00:00+02'::timetz", "10:00:00+02"),
    "o": ("'\\xFF\\x41'::blob", "\\xFFA"),
    "s": ("{'a': 1}", "{'a': 1}"),
    "m": ("map {'a': 1}", "{a=1}"),
    "l": ("[1, 2]", [1, 2]),
    "lu": ("[170141183460469231731687303715884105727::hugeint]", ["170141183460469231731687303715884105727"]),
    "d": ("1.5::decimal(9, 2)", Decimal("1.50")),
    "e": ("'b'::enum('a', 'b')", "b"),
    "day": ("date '2020-02-29'", date(2020, 2, 29)),
    "never": ("'infinity'::date", None),
    "ever": ("'-infinity'::timestamp", None),
    "far": ("date '5881580-07-10'", None),
    "ns": ("'infinity'::timestamp_ns", None),
    "t": ("'2020-01-01 10:00:00'::timestamp", datetime(2020, 1, 1, 10)),
    "f": ("1.5::float", 1.5),
    "n": ("NULL", None),
}


class TestTypes:
    def test_each_is_as_it_is_or_text(self):
        query = ", ".join(f"{value} AS {name}" for name, (value, _) in TYPES.items())
        found = read(open_source(duckdb.connect().sql(f"SELECT {query}")))
        assert {name: cell for name, (cell,) in found.items()} == {name: cell for name, (_, cell) in TYPES.items()}

    def test_moments_are_in_utc_whatever_the_zone_of_the_session(self):
        connection = duckdb.connect()
        with contextlib.suppress(duckdb.Error):  # an extension that may have to be downloaded
            connection.execute("SET TimeZone = 'Asia/Tokyo'")
        source = open_source(connection.sql("SELECT '2020-01-01 10:00:00+09'::timestamptz AS t"))
        assert source.storage == {"t": pa.timestamp("us", "UTC")}
        assert read(source)["t"][0].hour == 1


STORED = {
    "t": True,
    "T": True,
    "main.t": True,
    "s.t": True,
    "v": False,
    "s.v": False,
    "g": False,
    "duckdb_tables": False,
}


class TestWhatIsStored:
    @pytest.mark.parametrize("name", STORED)
    def test_the_catalogue_tells(self, tmp_path, name):
        path = tmp_path / "people.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                "CREATE TABLE t (a int); CREATE VIEW v AS SELECT a > avg(a) OVER () AS b FROM t; CREATE SCHEMA s;"
                "CREATE TABLE s.t (a int); CREATE VIEW s.v AS SELECT 1 AS a;"
                "CREATE TABLE g (a int, b int GENERATED ALWAYS AS (a + 1))"
            )
        source = open_source(f"duckdb:///{path}?table={name}")
        assert list(source.computing()) == ([] if STORED[name] else [f"table {name} of duckdb database"])


class TestRelations:
    def test_each_is_run_as_it_is(self, tmp_path):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE t AS SELECT i::varchar AS a FROM range(5) r(i)").fetchall()
        relation = connection.table("t").project("CAST(a AS tinyint) AS b").filter("b > 1").order("b DESC").limit(2)
        source = open_source(relation)
        assert source.computed
        assert read(source) == {"b": [4, 3]}
        assert read(open_source(connection.from_arrow(pa.table({"a": [1, 2]})))) == {"a": [1, 2]}
        (tmp_path / "t.csv").write_text("a\n1\n")
        assert read(open_source(connection.sql(f"FROM '{tmp_path}/t.csv'"))) == {"a": [1]}

    def test_what_stops_one_is_not_shown(self):
        relation = duckdb.connect().sql("SELECT CAST(a AS int) AS a FROM (VALUES ('1'), ('no number')) t(a)")
        assert "the DuckDB relation" in silent(open_source(relation).keep, "no number")

    def test_a_closed_connection(self):
        connection = duckdb.connect()
        relation = connection.sql("SELECT 1 AS a")
        connection.close()
        assert "connection is open" in silent(lambda: open_source(relation))
