"""SQLite: cells are text, each by itself, and the catalogue says what is a table as it is stored."""

import os
import sqlite3
from urllib.parse import quote

import pyarrow as pa
import pytest

from fixtures.cells import read_cells as read
from fixtures.silence import SECRET, silent
from sfumato.errors import ConfigError, DataError
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


STORED = {"plain": True, "PLAIN": True, "kept": True, "keyed": True, "seen": False, "told": False, "words": False,
          "sqlite_master": False, "pragma_database_list": False}  # fmt: skip


class TestWhatIsStored:
    @pytest.fixture
    def several(self, tmp_path):
        path = tmp_path / "several.db"
        with sqlite3.connect(path) as connection:
            connection.executescript(
                "CREATE TABLE plain (a, b); INSERT INTO plain VALUES (-9223372036854775808, x'ff'), (1, 'x');"
                "CREATE TABLE kept (a, b GENERATED ALWAYS AS (a + 1) STORED); CREATE TABLE keyed (a PRIMARY KEY)"
                " WITHOUT ROWID; CREATE VIEW seen AS SELECT a > avg(a) OVER () AS b FROM plain;"
                "CREATE TABLE told (a, b GENERATED ALWAYS AS (abs(a)) VIRTUAL);"
                "CREATE VIRTUAL TABLE words USING fts5(a);"
            )
        connection.close()
        return f"sqlite:///{path}"

    @pytest.mark.parametrize("name", STORED)
    def test_the_catalogue_tells(self, several, name):
        source = open_source(f"{several}?table={name}")
        assert list(source.computing()) == ([] if STORED[name] else [f"table {name} of sqlite database"])

    def test_a_query_is_run_as_it_is_and_what_stops_it_is_not_shown(self, several):
        source = open_source(f"{several}?query=SELECT a IS 1 AS b FROM plain")
        assert source.computed
        assert read(source) == {"b": ["0", "1"]}
        source = open_source(f"{several}?query=SELECT abs(a) AS b FROM plain")
        assert "the query of sqlite database" in silent(source.keep, "overflow")

    def test_a_view_in_place_of_the_table(self, several, tmp_path):
        source = open_source(f"{several}?table=plain")
        with sqlite3.connect(tmp_path / "several.db") as connection:
            connection.executescript("ALTER TABLE plain RENAME TO p; CREATE VIEW plain AS SELECT * FROM p")
        connection.close()
        assert "changed" in silent(source.keep)


def test_rights_of_the_temporary_file(lite, temporary):
    if os.name != "posix":
        pytest.skip("rights of files are those of POSIX")
    source = open_source(f"sqlite:///{lite}?table=the people")
    assert not list(temporary.iterdir())
    read(source)
    (file,) = (path for path in temporary.rglob("*") if path.is_file())
    assert file.stat().st_mode & 0o077 == 0
    assert file.parent.stat().st_mode & 0o077 == 0
