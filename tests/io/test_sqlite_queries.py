"""SQLite: cells are text, each by itself, and no cell stops a statement."""

import os
import sqlite3
from urllib.parse import quote

import pyarrow as pa
import pytest

from fixtures.cells import read_cells as read
from fixtures.costly import slow_after
from fixtures.silence import SECRET, silent
from sfumato.errors import ConfigError, DataError
from sfumato.io.databases import TOTAL
from sfumato.io.sources import open_source

pytestmark = pytest.mark.usefixtures("temporary")


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


class TestTablesAndQueries:
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


class TestFunctions:
    """A function that one cell can stop is refused, whatever the cells are; a cast or arithmetic stops at none."""

    @pytest.fixture(params=["tame", "wild"])
    def numbers(self, request, tmp_path):
        path = tmp_path / "numbers.db"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (a)")
            connection.executemany("INSERT INTO t VALUES (?)", [(1,), ("2.5",)])
            if request.param == "wild":
                cells = [(-(2**63),), (2**63 - 1,), ("no JSON {",), (b"\xff",), (None,), ("",), (1e308,)]
                connection.executemany("INSERT INTO t VALUES (?)", cells)
        connection.close()
        return f"sqlite:///{path}"

    @pytest.mark.parametrize(
        ("call", "cure"),
        slow_after(
            3,
            [
                ("abs(a)", "CASE WHEN"), ("sum(a)", "total"), ("json_extract(a, '$.x')", "leave"),
                ("a -> 'x'", "leave"), ("printf('%*d', a, 1)", "round"), ("sum(a) OVER ()", "total"),
                ("ntile(a) OVER ()", "leave"),
            ],
        ),
    )  # fmt: skip
    def test_refused_by_name(self, numbers, call, cure):
        message = silent(lambda: open_source(f"{numbers}?query=SELECT {call} AS b FROM t"))
        assert "one cell can stop" in message
        assert cure in message

    def test_none_that_is_taken_stops_at_a_cell(self, numbers):
        values = ("a", "CAST(a AS TEXT)", "a * 3", "'%' || a")
        calls = [f"CAST(a AS {kind})" for kind in ("INTEGER", "REAL", "NUMERIC", "TEXT", "BLOB")] + [
            "a + a",
            "1 / a",
            "-a",
        ]
        calls += ["a LIKE '%x%'", "a GLOB '*x*'", "CASE WHEN a < 0 THEN -a ELSE a END"]
        for name in sorted(TOTAL):
            calls += [_called(name, value) for value in values]
        with sqlite3.connect(":memory:") as connection:
            known = {name for (name,) in connection.execute("SELECT name FROM pragma_function_list")}
        calls = [call for call in calls if not (name := call.partition("(")[0]).islower() or name in known]
        assert len(calls) > 250
        for call in calls:
            source = open_source(f"{numbers}?query=" + quote(f"SELECT {call} AS b FROM t"))
            assert source.storage == {"b": pa.string()}
            read(source)

    def test_a_column_computed_by_casts(self, numbers):
        cells = read(open_source(f"{numbers}?query=SELECT CAST(a AS INTEGER)+1 AS b, total(a) OVER () > 0 AS c FROM t"))
        assert cells["b"][:2] == ["2", "3"]
        assert set(cells["c"]) == {"1"}


_WINDOWS = ("cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "percent_rank", "rank", "row_number")
_WITHOUT = {"changes", "current_date", "current_time", "current_timestamp", "pi", "random", "sqlite_version"}
_ARGUMENTS = {"atan2": 2, "glob": 2, "ifnull": 2, "if": 3, "iif": 3, "instr": 2, "like": 2, "likelihood": 0, "mod": 2,
              "nullif": 2, "pow": 2, "power": 2, "replace": 3, "strftime": 2, "substr": 3, "substring": 3,
              "coalesce": 2, "timediff": 2, "string_agg": 2, "concat_ws": 2}  # fmt: skip


def _called(name, value):
    if name.startswith("current"):
        return name
    if name in _WITHOUT or name in ("cume_dist", "dense_rank", "percent_rank", "rank", "row_number"):
        return f"{name}()" + (" OVER (ORDER BY a)" if name in _WINDOWS else "")
    if name in _WINDOWS:
        return f"{name}({value}) OVER (ORDER BY a)"
    if name == "likelihood":
        return f"likelihood({value}, 0.5)"
    return f"{name}({', '.join([value] * _ARGUMENTS.get(name, 1))})"


def test_rights_of_the_temporary_file(lite, temporary):
    if os.name != "posix":
        pytest.skip("rights of files are those of POSIX")
    source = open_source(f"sqlite:///{lite}?table=the people")
    assert not list(temporary.iterdir())
    read(source)
    (file,) = (path for path in temporary.rglob("*") if path.is_file())
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0
