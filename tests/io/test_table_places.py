"""Where several tables of one place lie: files of a folder, tables of a database."""

import sqlite3

import pytest

from fixtures.silence import SECRET
from sfumato.errors import ConfigError, DataError
from sfumato.io.databases import table_names
from sfumato.io.table_folders import holds_tables, tables_in

NAMES = ("persons", "visits")


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "data"
    place.mkdir()
    for name in ("persons.csv", "visits.jsonl.gz", ".hidden.csv", "_part.csv", "notes.md"):
        (place / name).write_text(f"person\n{SECRET}\n")
    (place / "others").mkdir()
    return place


def test_each_table_has_its_file(folder):
    places = {"persons": str(folder / "persons.csv"), "visits": str(folder / "visits.jsonl.gz")}
    assert tables_in(str(folder), NAMES) == places == tables_in(str(folder))
    assert list(tables_in(str(folder), NAMES[::-1])) == ["visits", "persons"], "in the order of the schema"
    (folder / "visits.jsonl.gz").unlink()
    (folder / "visits").mkdir()
    assert tables_in(str(folder), NAMES)["visits"] == str(folder / "visits"), "a folder of Parquet parts"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda place: (place / "persons.csv").unlink(), "a file of the table 'persons' in the folder data, got none"),
        (
            lambda place: (place / "visits.parquet").touch(),
            "file of the table 'visits' in the folder data, got two",
        ),
        (lambda place: (place / "visit.CSV").touch(), r"got visit\.CSV, which is of none\. Did you mean 'visits'"),
        (lambda place: [path.unlink() for path in place.iterdir() if path.is_file()], "'persons' in the folder data"),
    ],
)
def test_a_folder_has_one_file_of_each_table_and_no_other(folder, change, message):
    change(folder)
    with pytest.raises(DataError, match=message) as raised:
        tables_in(str(folder), NAMES)
    assert SECRET not in str(raised.value)


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(DataError, match="a file of tables in the folder"):
        tables_in(str(tmp_path))


@pytest.mark.parametrize("place", ["nowhere", "s3://bucket/folder", "duckdb:///x.duckdb?table=persons"])
def test_other_places_are_refused(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        tables_in(place, NAMES)


def test_tables_of_a_database_are_named_by_its_url(tmp_path):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    assert tables_in(url, ["per sons"]) == {"per sons": f"{url}?table=per%20sons"}
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE visits (id INTEGER PRIMARY KEY AUTOINCREMENT)")
        connection.execute("CREATE TABLE persons (name TEXT)")
    connection.close()
    assert table_names(url) == ["persons", "visits"]
    assert list(tables_in(url)) == ["persons", "visits"]
    with sqlite3.connect(tmp_path / "empty.db"):
        pass
    with pytest.raises(DataError, match="Expected tables in the sqlite database, got none"):
        tables_in(f"sqlite:///{tmp_path / 'empty.db'}")


def test_tables_of_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="the extra databases is not installed")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE visits (day INTEGER); CREATE TABLE persons (age INTEGER)")
    assert table_names(f"duckdb:///{tmp_path / 'x.duckdb'}") == ["persons", "visits"]


def test_folders_of_parquet_and_of_images_are_one_table(folder):
    assert holds_tables(str(folder))
    (folder / "others" / "face.png").touch()
    assert not holds_tables(str(folder))
    (folder / "others" / "face.png").unlink()
    for name in ("persons.csv", "visits.jsonl.gz"):
        (folder / name).unlink()
    assert not holds_tables(str(folder))
    (folder / "persons.parquet").touch()
    assert not holds_tables(str(folder))
    assert not holds_tables(str(folder / "persons.parquet"))
    assert holds_tables("sqlite:///x.db")
    assert not holds_tables("sqlite:///x.db?table=t")
    assert not holds_tables("s3://bucket/folder")
