"""DuckDB: casts that do not fail, types that Arrow does not have, relations."""

import contextlib
import sys
from datetime import date, datetime
from decimal import Decimal
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet
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


class TestRelations:
    """Cells decide nothing: neither whether there are records, nor of which type."""

    @pytest.mark.parametrize("odd", ["7", "no number"])
    @pytest.mark.parametrize(
        "query",
        ["SELECT CAST(a AS INTEGER) AS a FROM t", "SELECT a::int AS a FROM (SELECT a::int AS a FROM t)",
         "WITH w AS (SELECT a::date AS b, a FROM t) SELECT a::int AS a FROM w WHERE b IS NULL"],
    )  # fmt: skip
    def test_a_cell_that_does_not_cast_is_missing(self, odd, query, tmp_path):
        path = tmp_path / "t.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t (a VARCHAR)").fetchall()
            connection.executemany("INSERT INTO t VALUES (?)", [["1"], [odd]])
            relation = connection.sql(query)
            for _ in range(2):  # nothing of a first reading is in the way
                source = open_source(relation)
                assert source.storage == {"a": pa.int32()}
                assert read(source)["a"] == read(source)["a"] == [1, 7 if odd == "7" else None]
            assert connection.execute("SELECT count(*) FROM t").fetchall() == [(2,)]
        source = open_source(f"duckdb:///{path}?query={quote(query)}")
        assert read(source)["a"] == [1, 7 if odd == "7" else None]

    def test_relations_made_step_by_step(self):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE t AS SELECT i::varchar AS a FROM range(5) r(i)").fetchall()
        relation = connection.table("t").project("CAST(a AS tinyint) AS b").filter("b > 1").order("b DESC").limit(2)
        assert read(open_source(relation)) == {"b": [4, 3]}
        assert read(open_source(connection.from_arrow(pa.table({"a": [1, 2]})))) == {"a": [1, 2]}

    @pytest.mark.parametrize("odd", ["7", "no number"])
    @pytest.mark.parametrize(
        "query", ["'FILE'", "read_csv('FILE')", "(SELECT a + 1 FROM read_csv_auto('FILE', columns={'a': 'INTEGER'}))"]
    )
    def test_files_of_inferred_types_are_refused(self, odd, query, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text("a\n" + "1\n" * 30_000 + f"{odd}\n")
        relation = duckdb.connect().sql("SELECT * FROM " + query.replace("FILE", str(path)))
        for data in (relation, duckdb.connect().read_csv(str(path))):
            assert "Pass the file itself" in silent(lambda data=data: open_source(data))

    def test_parquet_is_read(self, tmp_path):
        pa.parquet.write_table(pa.table({"a": [1, None]}), tmp_path / "t.parquet")
        assert read(open_source(duckdb.connect().sql(f"FROM '{tmp_path}/t.parquet'"))) == {"a": [1, None]}

    def test_a_closed_connection(self):
        connection = duckdb.connect()
        relation = connection.sql("SELECT 1 AS a")
        connection.close()
        assert "connection is open" in silent(lambda: open_source(relation))
