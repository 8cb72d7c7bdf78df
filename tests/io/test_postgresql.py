"""PostgreSQL, a server of the tests' own: each type as it is, one snapshot, nothing of it in any error."""

import shutil
import tempfile
from datetime import UTC, date, datetime, time
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from fixtures import postgresql
from fixtures.cells import read_cells as read
from fixtures.silence import SECRET, silent
from sfumato.io.sources import open_source

pytestmark = pytest.mark.usefixtures("temporary")


@pytest.fixture(scope="module")
def folder():
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # one that another user can enter
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def host(folder):
    reason = postgresql.why_not()
    if reason is not None:
        pytest.skip(reason)
    pytest.importorskip("adbc_driver_postgresql", reason="the extra databases is not installed")
    with postgresql.server(folder, SECRET) as place:
        execute(
            place,
            "CREATE TABLE people (age integer, town text, pay numeric(9,2), born date, ok boolean)",
            "INSERT INTO people SELECT i, 'town ' || i % 3, i * 1.5, '2000-01-01', i % 2 = 0"
            " FROM generate_series(0, 99) i",
        )
        yield place


def execute(place, *statements):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(f"postgresql://{place}/postgres") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


class TestTablesAndQueries:
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


TYPES = {
    "money": ("'12.34'", "12.34"),
    "uuid": ("'475c85fc-2232-4bd9-b40b-45340aaf235a'", "475c85fc-2232-4bd9-b40b-45340aaf235a"),
    "bytea": (r"'\xff0941'", r"\xff0941"),
    "inet": ("'10.0.0.9'", "10.0.0.9"),
    "cidr": ("'10.0.0.0/8'", "10.0.0.0/8"),
    "macaddr": ("'08:00:2b:01:02:03'", "08:00:2b:01:02:03"),
    "int4range": ("'[1,5)'", "[1,5)"),
    "int4multirange": ("'{[1,5)}'", "{[1,5)}"),
    "interval": ("'26 hours'", "PT26H"),
    "json": ("'{\"a\":1}'", '{"a":1}'),
    "jsonb": ("'{\"a\":1}'", '{"a": 1}'),
    "mood": ("'ok'", "ok"),
    "pair": ("ROW(1, 'x')", "(1,x)"),
    "share": ("0.5", "0.5"),
    "wage": ("'7.50'", "7.50"),
    "small": ("7", 7),
    "int[]": ("'{1,2}'", [1, 2]),
    "text[]": ("'{a,b}'", ["a", "b"]),
    "money[]": ("'{1.5}'", ["1.50"]),
    "numeric[]": ("'{1.5}'", ["1.5"]),
    "bigint[]": ("'{{1,2},{3,4}}'", None),
    "uuid[]": ("'{475c85fc-2232-4bd9-b40b-45340aaf235a}'", "{475c85fc-2232-4bd9-b40b-45340aaf235a}"),
    "smallint[]": ("'[5:6]={1,2}'", [1, 2]),
    "boolean[]": ("'[0:1]={t,f}'", [True, False]),
    "real[]": ("'[-1:-1]={1.5}'", [1.5]),
    "double precision[]": ("'[2:3]={1.5,NULL}'", [1.5, None]),
    "varchar(3)[]": ("'[7:7]={a}'", ["a"]),
    "bpchar[]": ("'[7:7]={a}'", "[7:7]={a}"),
    "numeric(5,1)[]": ("'[3:3]={7}'", ["7.0"]),
    "date[]": ("'[5:5]={2020-02-29}'", "[5:5]={2020-02-29}"),
    "int2vector": ("'1 2'", "1 2"),
    "numeric": ("'NaN'", None),
    "numeric(10,2)": ("1.5", "1.50"),
    "numeric(40,0)": ("12345678901234567890123456789", "12345678901234567890123456789"),
    "timestamp": ("'2020-01-01 10:00'", datetime(2020, 1, 1, 10)),
    "timestamptz": ("'2020-01-01 10:00+09'", datetime(2020, 1, 1, 1, tzinfo=UTC)),
    "timestamp(0)": ("'infinity'", None),
    "timestamptz(0)": ("'-infinity'", None),
    "date": ("'2020-02-29'", date(2020, 2, 29)),
    "day": ("'infinity'", None),
    "timetz": ("'10:00+02'", "10:00:00+02"),
    "time": ("'10:00'", time(10)),
    "bit(3)": ("'101'", "101"),
    "xml": ("'<a/>'", "<a/>"),
    "point": ("'(1,2)'", "(1,2)"),
    "oid": ("4294967295", 4294967295),
    "char(5)": ("'ab'", "ab   "),
    "varchar(5)": ("'ab'", "ab"),
    "boolean": ("true", True),
    "smallint": ("-3", -3),
    "bigint": ("9007199254740993", 9007199254740993),
    "real": ("1.5", 1.5),
    "double precision": ("'-infinity'", float("-inf")),
    "tsvector": ("'a b'", "'a' 'b'"),
    "regclass": ("'pg_class'", "pg_class"),
}


@pytest.fixture(scope="module")
def typed(host):
    columns = ", ".join(f'"c{i}" {kind}' for i, kind in enumerate(TYPES))
    execute(
        host,
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE DOMAIN share AS numeric CHECK (VALUE < 1)",
        "CREATE DOMAIN pay AS money",
        "CREATE DOMAIN wage AS pay",
        "CREATE DOMAIN small AS int",
        "CREATE DOMAIN day AS date",
        f"CREATE TABLE typed ({columns})",
        f"INSERT INTO typed VALUES ({', '.join(value for value, _ in TYPES.values())})",
        f"INSERT INTO typed VALUES ({', '.join('NULL' for _ in TYPES)})",
    )
    return host


class TestTypes:
    def test_each_is_as_it_is_or_the_servers_text(self, typed):
        for what in ("table=typed", "query=SELECT * FROM typed"):
            found = read(open_source(f"postgresql://{typed}/postgres?{what}"))
            cells = {kind: found[f"c{i}"] for i, kind in enumerate(TYPES)}
            assert cells == {kind: [cell, None] for kind, (_, cell) in TYPES.items()}

    def test_no_column_of_a_release_is_of_bytes(self, typed):
        storage = open_source(f"postgresql://{typed}/postgres?table=typed").storage
        assert not [kind for kind in storage.values() if pa.types.is_binary(kind) or isinstance(kind, pa.ExtensionType)]

    def test_settings_of_the_server_change_nothing(self, typed):
        before = read(open_source(f"postgresql://{typed}/postgres?table=typed"))
        settings = ["timezone = 'Asia/Tokyo'", "datestyle = 'German'", "intervalstyle = 'postgres_verbose'",
                    "bytea_output = 'escape'", "lc_monetary = 'C'", "extra_float_digits = -5"]  # fmt: skip
        try:
            execute(typed, *(f"ALTER ROLE clerk SET {setting}" for setting in settings))
            assert read(open_source(f"postgresql://{typed}/postgres?table=typed")) == before
        finally:
            execute(typed, "ALTER ROLE clerk RESET ALL")


STORED = {**dict.fromkeys(("people", "public.people", "parts", "guarded"), True),
          **dict.fromkeys(("seen", "kept", "pg_settings"), False)}  # fmt: skip


@pytest.fixture(scope="module")
def several(host):
    execute(
        host,
        "CREATE VIEW seen AS SELECT age > avg(age) OVER () AS above FROM people",
        "CREATE MATERIALIZED VIEW kept AS SELECT rank() OVER (ORDER BY age) AS r FROM people",
        "CREATE TABLE parts (a int) PARTITION BY RANGE (a)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (9)",
        "CREATE TABLE guarded (a int)",
        "CREATE POLICY older ON guarded USING (a > (SELECT avg(age) FROM people))",
        "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY",
        f"CREATE ROLE reader LOGIN PASSWORD '{SECRET}'",
        "GRANT SELECT ON guarded, people TO reader",
    )
    return host


class TestWhatIsStored:
    @pytest.mark.parametrize("name", STORED)
    def test_the_catalogue_tells(self, several, name):
        source = open_source(f"postgresql://{several}/postgres?table={name}")
        assert source.computed != STORED[name]

    def test_a_policy_that_holds_for_who_reads_computes_rows(self, several):
        assert open_source(f"postgresql://{several.replace('clerk', 'reader')}/postgres?table=guarded").computed

    def test_a_query_is_none(self, several):
        assert open_source(f"postgresql://{several}/postgres?query=SELECT * FROM people").computed


class TestAddresses:
    def test_a_socket(self, host, folder):
        port = host.rpartition(":")[2]
        place = quote(f"{folder}/socket", safe="")
        for address in (
            f"/postgres?host={folder}/socket&port={port}&user=clerk&password={SECRET}",
            f"clerk:{SECRET}@{place}:{port}/postgres?connect_timeout=9",
        ):
            assert len(read(open_source(f"postgresql://{address}&table=people"))["age"]) == 100

    def test_a_query_is_read_as_it_is_typed(self, host):
        address = f"postgresql://{host}/postgres?query="
        for query in (
            "SELECT age+1 AS a FROM people WHERE town LIKE 'town 1%' -- one\n AND age > 90",
            "SELECT%20age%2B1%20AS%20a FROM people WHERE town LIKE 'town 1%25'\nAND age > 90 -- # end;",
        ):
            assert read(open_source(address + query))["a"] == [92, 95, 98]
