"""Tables of database files: all or none, and why one could not be written: what the system says, and no guess."""

import contextlib
import datetime as dt
import os
import sqlite3
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest

from sfumato.errors import ConfigError, OutputError
from sfumato.io.database_sink import database_target, database_targets, write_database
from sfumato.io.sources import open_source


def batches(n=1):
    for _ in range(n):
        yield pa.table({"age": list(range(5000)), "name": ["a private text"] * 5000})


def write(path, n=1, **options):
    target = database_target(f"sqlite:///{path}?table=people")
    write_database(({"": part} for part in batches(n)), {"": target}, **{"overwrite": False, **options})


def small_disk(path, limit):
    """Write in a process whose files may not grow beyond a limit; return what it says."""
    script = textwrap.dedent(f"""
        import importlib.util, resource, signal
        spec = importlib.util.spec_from_file_location("writing", {__file__!r})
        writing = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(writing)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        try:
            writing.write({str(path)!r}, 20)
        except writing.OutputError as error:
            print(error)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(os.name == "nt", reason="needs limits of the system")
def test_a_file_that_may_not_grow_is_said_to_be_that(tmp_path):
    said = small_disk(tmp_path / "out.db", 100_000)
    assert "as on a full or damaged disk" in said or "no space is left" in said
    assert "another program" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_to_be_full(tmp_path, monkeypatch):
    """SQLite's own limit of pages says the same as a disk without room."""
    connect = sqlite3.connect

    def small(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 10")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(OutputError, match=r"^Cannot write .*: no space is left for it\.$"):
        write(tmp_path / "out.db")
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_stays_when_the_disk_is_full(tmp_path, monkeypatch):
    write(tmp_path / "out.db")
    before = (tmp_path / "out.db").read_bytes()
    connect = sqlite3.connect

    def small(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 1")  # no more than there are
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(OutputError, match="no space is left"):
        write(tmp_path / "out.db", 5, overwrite=True)
    monkeypatch.undo()
    assert (tmp_path / "out.db").read_bytes() == before


def test_another_program_holds_it(tmp_path, monkeypatch):
    write(tmp_path / "out.db")
    connect = sqlite3.connect
    with contextlib.closing(connect(tmp_path / "out.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, **{**o, "timeout": 0.05}))
        with pytest.raises(OutputError, match="another program holds it"):
            write(tmp_path / "out.db", overwrite=True)


def test_what_is_no_database(tmp_path):
    (tmp_path / "out.db").write_text(
        "a note that is no database, and longer than its header is, which is 100 bytes" * 3
    )
    with pytest.raises(OutputError, match="it is no SQLite database"):
        write(tmp_path / "out.db")


def test_it_may_not_be_written(tmp_path, monkeypatch):
    write(tmp_path / "out.db")
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **o: connect(f"file:{path}?mode=ro", uri=True, **o))
    with pytest.raises(OutputError, match="it may not be written"):
        write(tmp_path / "out.db", overwrite=True)


def test_several_tables_are_there_all_or_none(tmp_path):
    url = f"sqlite:///{tmp_path / 'out.db'}"
    targets = database_targets(url, ["persons", "visits"])
    rows = {"persons": pa.table({"age": [1]}), "visits": pa.table({"day": ["a", "b"]})}
    with pytest.raises(ConfigError, match="plain columns"):
        write_database([rows, {"visits": pa.table({"day": [[1]]})}], targets, overwrite=False)
    assert not (tmp_path / "out.db").exists()
    write_database([rows, rows], targets, overwrite=False)
    with contextlib.closing(sqlite3.connect(tmp_path / "out.db")) as connection:
        assert connection.execute("SELECT count(*) FROM visits").fetchone() == (4,)
    with pytest.raises(OutputError, match="no table persons of sqlite database yet"):
        write_database([rows], targets, overwrite=False)
    for other in (f"{url}?table=persons", "postgresql://host/db"):
        with pytest.raises(ConfigError, match="several tables to as sqlite:///file"):
            database_targets(other, ["persons"])


def test_duckdb_has_them_too_with_their_types(tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="the extra databases is not installed")
    place = tmp_path / "out.duckdb"
    url = f"duckdb:///{place}"
    targets = database_targets(url, ["persons", "visits"])
    days = pa.array([dt.date(2024, 1, 2), None])
    labels = pa.array(["a", "b"]).dictionary_encode()
    rows = {
        "persons": pa.table({"Age": [1.5, None], "ok": [True, None]}),
        "visits": pa.table({"day": days, "x": labels}),
    }
    with pytest.raises(ConfigError, match="plain columns"):
        write_database([rows, {"visits": pa.table({"day": [[1]]})}], targets, overwrite=False)
    assert list(tmp_path.iterdir()) == []
    more = {**rows, "visits": pa.table({"day": days, "x": pa.array(["c", "a"]).dictionary_encode()})}
    write_database([rows, more], targets, overwrite=False)
    with duckdb.connect(str(place), read_only=True) as connection:
        assert connection.execute("SELECT * FROM persons").fetchall() == 2 * [(1.5, True), (None, None)]
        assert connection.execute("SELECT x FROM visits").fetchall() == [("a",), ("b",), ("c",), ("a",)]
        assert connection.execute("SELECT day FROM visits").fetchone() == (dt.date(2024, 1, 2),)
    assert list(open_source(f"{url}?table=persons").names) == ["Age", "ok"]
    with pytest.raises(OutputError, match="no table persons of duckdb database yet"):
        write_database([rows], targets, overwrite=False)
    with pytest.raises(OutputError, match="DuckDB refused"):
        write_database([rows, {"persons": pa.table({"Age": ["text", "x"], "ok": ["y", "z"]})}], targets, overwrite=True)
    with duckdb.connect(str(place), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM visits").fetchone() == (4,)
    write_database([rows], targets, overwrite=True)
    with duckdb.connect(str(place), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM visits").fetchone() == (2,)


def test_duckdb_says_why_not(tmp_path, monkeypatch):
    pytest.importorskip("duckdb", reason="the extra databases is not installed")
    (tmp_path / "note.duckdb").write_text("no database" * 30)
    target = database_target(f"duckdb:///{tmp_path / 'note.duckdb'}?table=people")
    with pytest.raises(OutputError, match=r"note\.duckdb to be a duckdb database that can be read: another program"):
        write_database([{"": next(batches())}], {"": target}, overwrite=False)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ConfigError, match="duckdb"):
        database_target("duckdb:///x.duckdb?table=people")
