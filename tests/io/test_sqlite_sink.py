"""Why a table of an SQLite file could not be written: what the system says, and no guess."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import textwrap

import pyarrow as pa
import pytest

from sfumato.errors import ConfigError, OutputError
from sfumato.io.sqlite_sink import sqlite_target, sqlite_targets, write_sqlite


def batches(n=1):
    for _ in range(n):
        yield pa.table({"age": list(range(5000)), "name": ["a private text"] * 5000})


def write(path, n=1, **options):
    target = sqlite_target(f"sqlite:///{path}?table=people")
    write_sqlite(({"": part} for part in batches(n)), {"": target}, **{"overwrite": False, **options})


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
    targets = sqlite_targets(url, ["persons", "visits"])
    rows = {"persons": pa.table({"age": [1]}), "visits": pa.table({"day": ["a", "b"]})}
    with pytest.raises(ConfigError, match="plain columns"):
        write_sqlite([rows, {"visits": pa.table({"day": [[1]]})}], targets, overwrite=False)
    assert not (tmp_path / "out.db").exists()
    write_sqlite([rows, rows], targets, overwrite=False)
    with contextlib.closing(sqlite3.connect(tmp_path / "out.db")) as connection:
        assert connection.execute("SELECT count(*) FROM visits").fetchone() == (4,)
    with pytest.raises(OutputError, match="no table persons of sqlite database yet"):
        write_sqlite([rows], targets, overwrite=False)
    for other in (f"{url}?table=persons", "duckdb:///x.duckdb"):
        with pytest.raises(ConfigError, match="several tables to as sqlite:///file"):
            sqlite_targets(other, ["persons"])
