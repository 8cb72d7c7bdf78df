"""A file format of another package: records are read, samples written, and nothing of a failure is shown."""

import pandas as pd
import pyarrow as pa
import pytest

from fixtures import tables
from fixtures.packages import install
from sfumato import MaxEntropy, load
from sfumato.errors import ConfigError, DataError
from sfumato.io.sinks import write_table
from sfumato.io.sources import open_source

FORMAT = """
from dataclasses import dataclass
from pathlib import Path
import pyarrow as pa
from sfumato.plugins import DataError, Format, Source, check_names, table_chunks

@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Colons(Source):
    path: Path

    def _read(self, columns):
        rows = [line.split(":") for line in self.path.read_text().splitlines()[1:]]
        cells = {name: [row[i] for row in rows] for i, name in enumerate(self.names)}
        yield from table_chunks([pa.table(cells, pa.schema(self.storage))], columns, self.chunk_rows)

def open_colons(path, chunk_rows):
    names = path.read_text().partition("\\n")[0].split(":")
    if names[0] == "secret":
        raise KeyError("Smith")
    check_names(names, path.name)
    storage = dict.fromkeys(names, pa.string())
    return Colons(label=path.name, container="csv", storage=storage, chunk_rows=chunk_rows, path=path)

def write_colons(batches, path):
    with path.open("x") as file:
        for i, table in enumerate(batches):
            if i == 0:
                file.write(":".join(table.column_names) + "\\n")
            for row in table.to_pylist():
                file.write(":".join("" if cell is None else str(cell) for cell in row.values()) + "\\n")

FORMAT = Format(open=open_colons, write=write_colons)
READING = Format(open=open_colons)
NOTHING = Format(open=lambda path, chunk_rows: path)
"""


@pytest.fixture
def colons(site):
    (site / "colon_files.py").write_text(FORMAT)
    names = {"colons": "FORMAT", "colr": "READING", "coln": "NOTHING"}
    points = {suffix: f"colon_files:{name}" for suffix, name in names.items()}
    install(site, "colon-files", "3.0", {"sfumato.formats": points})
    return site


@pytest.fixture
def people(tmp_path):
    frame = tables.frame(100)
    frame["seen"] = frame["seen"].dt.strftime("%Y-%m-%d")
    path = tmp_path / "people.colons"
    path.write_text(frame.to_csv(index=False, sep=":"))
    return path


def test_there_and_back(colons, people, tmp_path):
    """The codes of the records are those of the CSV file; samples are written by the same suffix."""
    frame = pd.read_csv(people, sep=":", dtype=str, keep_default_na=False)
    found = pa.concat_tables([pa.table(chunk.columns) for chunk in open_source(people, chunk_rows=7).chunks()])
    assert found.to_pylist() == frame.to_dict("records")
    release = MaxEntropy(epsilon=1.0).fit(people, schema=tables.schema(), seed=0)
    assert release.certificate.content["versions"]["colon-files"] == "3.0"
    assert any("read by code of the package colon-files 3.0" in a for a in release.certificate.content["assumptions"])
    release.save(tmp_path / "r.sfm")
    load(tmp_path / "r.sfm").write_sample(tmp_path / "made.colons", 25, seed=0)
    made = pd.read_csv(tmp_path / "made.colons", sep=":", dtype=str)
    assert list(made.columns) == list(tables.RELEASED)
    assert len(made) == 25
    assert open_source(tmp_path / "made.colons").names == tables.RELEASED


def test_the_command_line(colons, people, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(tables.SCHEMA_TEXT)
    assert call("fit", people, "--schema", "s.yaml", "--epsilon", 1, "--out", "r").code == 0
    assert call("sample", "r", "-n", 5, "--out", "made.colons").code == 0
    assert call("sample", "r", "-n", 5, "--out", "made.colons").code == 2
    assert len((tmp_path / "made.colons").read_text().splitlines()) == 6


def test_without_the_package_the_suffix_is_unknown(people, tmp_path):
    with pytest.raises(DataError, match=r"\.csv, \.parquet, \.npz, \.dat file"):
        open_source(people)
    with pytest.raises(ConfigError, match=r"\.dat file to write"):
        write_table([pa.table({"a": [1]})], tmp_path / "x.colons")


def test_other_suffixes_name_those_of_plugins(colons, tmp_path):
    (tmp_path / "x.md").write_text("a")
    with pytest.raises(DataError, match=r"\.dat, \.coln, \.colons, \.colr file"):
        open_source(tmp_path / "x.md")


def test_nothing_of_a_failure_is_shown(colons, tmp_path):
    path = tmp_path / "x.colons"
    path.write_text("secret:b\n1:2\n")
    with pytest.raises(DataError, match=r"Cannot read x\.colons") as caught:
        open_source(path)
    assert caught.value.__context__ is None
    path.write_text("a:b\n1\n")
    with pytest.raises(DataError, match="damaged") as caught:
        list(open_source(path).chunks())
    assert caught.value.__context__ is None
    path.write_text("a:a\n1:2\n")
    with pytest.raises(DataError, match="different names"):
        open_source(path)
    path.write_text("")
    with pytest.raises(DataError, match="empty file"):
        open_source(path)


def test_what_is_for_reading_alone_and_what_opens_nothing(colons, tmp_path):
    with pytest.raises(ConfigError, match="for reading"):
        write_table([pa.table({"a": [1]})], tmp_path / "x.colr")
    assert list(tmp_path.glob("*colr*")) == []
    (tmp_path / "x.coln").write_text("a")
    with pytest.raises(DataError, match="as a Source"):
        open_source(tmp_path / "x.coln")


def test_our_suffixes_are_not_taken(site, tmp_path):
    (site / "colon_files.py").write_text(FORMAT)
    install(site, "colon-files", "3.0", {"sfumato.formats": {"csv": "colon_files:FORMAT"}})
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(ConfigError, match="sfumato and colon-files"):
        open_source(tmp_path / "x.csv")
    with pytest.raises(ConfigError, match="sfumato and colon-files"):
        write_table([pa.table({"a": [1]})], tmp_path / "y.csv")
    write_table([pa.table({"a": [1]})], tmp_path / "y.parquet")
