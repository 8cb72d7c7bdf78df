"""Globs, URLs and standard input as DATA; standard output, folders and databases as outputs of `sample`."""

import io
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fixtures import tables
from sfumato.cli.app import run as main
from sfumato.release_front import load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    Path("schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    frame = tables.frame()
    frame.to_csv("people.csv", index=False)
    frame.to_parquet("people.parquet")
    Path("ds").mkdir()
    frame[:100].to_parquet("ds/1.parquet")
    frame[100:].to_parquet("ds/2.parquet")
    frame.astype(object).where(frame.notna(), None).to_json(
        "people.jsonl", orient="records", lines=True, date_format="iso"
    )
    with sqlite3.connect("people.db") as connection:
        frame.astype(str).where(frame.notna(), None).to_sql("people", connection, index=False)
    connection.close()
    return tmp_path


FIT = ("--schema", "schema.yaml", "--epsilon", "1", "--seed", "1", "--out", "r")


class Piped(io.TextIOWrapper):
    def isatty(self):
        return False


def pipe(monkeypatch, content: bytes):
    monkeypatch.setattr(sys, "stdin", Piped(io.BytesIO(content)))


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
class TestData:
    @pytest.mark.parametrize("data", ["ds/*.parquet", "ds", "people.jsonl", "sqlite:///people.db?table=people"])
    def test_the_same_release(self, folder, data, capsys):
        assert main(["fit", "people.parquet", *FIT[:-1], "plain"]) == 0
        assert main(["fit", data, *FIT]) == 0
        mine, other = load("r"), load("plain")
        for name, value in other.parameters.items():
            assert pa.array(value.ravel()).equals(pa.array(mine.parameters[name].ravel())), name

    def test_standard_input(self, folder, monkeypatch, capsys):
        pipe(monkeypatch, Path("people.csv").read_bytes())
        assert main(["fit", "-", *FIT]) == 0
        pipe(monkeypatch, Path("people.parquet").read_bytes())
        assert main(["fit", "-", "--input-format", "parquet", *FIT[:-1], "q"]) == 0
        assert load("q").parameters.keys() == load("r").parameters.keys()
        pipe(monkeypatch, Path("people.csv").read_bytes())
        assert main(["schema", "validate", "-", "--schema", "schema.yaml"]) == 0
        pipe(monkeypatch, Path("people.jsonl").read_bytes())
        assert main(["schema", "draft", "-", "--input-format", "jsonl", "--out", "draft.yaml"]) == 0
        pipe(monkeypatch, Path("people.csv").read_bytes())
        assert main(["evaluate", "table", "-", "people.parquet", "--schema", "schema.yaml", "--json"]) == 0
        assert not list((folder / "temporary").iterdir())

    def test_scores_of_json_lines(self, folder, capsys):
        assert main(["evaluate", "table", "people.jsonl", "people.parquet", "--json"]) == 0
        assert main(["fit", "people.jsonl", *FIT]) == 0
        assert main(["evaluate", "table", "people.jsonl", "r", "--json"]) == 0

    def test_what_is_refused(self, folder, monkeypatch, capsys):
        pipe(monkeypatch, b"")
        calls = [
            (["fit", "-", *FIT], 1, "empty file"),
            (["fit", "-", "--input-format", "doc", *FIT], 2, "--input-format"),
            (["fit", "people.csv", "--input-format", "csv", *FIT], 2, "beside - alone"),
            (["fit", "people.jsonl", "--epsilon", "1", "--out", "r"], 2, "--schema"),
            (["evaluate", "table", "-", "-"], 2, "got it for several"),
            (["fit", "ds/*.parquet", *FIT[:-1], "ds", "--overwrite"], 2, "of its own"),
            (["fit", "sqlite:///people.db?table=people", *FIT[:-1], "people.db", "--overwrite"], 2, "of its own"),
            (["fit", "nostore://x/y.csv", *FIT], 2, "installed"),
        ]
        for arguments, code, words in calls:
            assert main(arguments) == code, arguments
            assert words in capsys.readouterr().err, arguments
        assert not list((folder / "temporary").iterdir())


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")
class TestSample:
    @pytest.fixture(autouse=True)
    def _fitted(self, folder, capsys):
        assert main(["fit", "people.parquet", *FIT]) == 0
        capsys.readouterr()

    def call(self, *arguments):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        code = "import sys; from sfumato.cli import main; sys.exit(main())"
        found = subprocess.run(
            [sys.executable, "-c", code, "sample", "r", "-n", "50", "--seed", "3", *arguments],
            capture_output=True, check=False, env=environment, timeout=120,
        )  # fmt: skip
        return found.returncode, found.stdout, found.stderr.decode()

    @pytest.mark.slow
    def test_standard_output(self):
        code, out, err = self.call("--out", "-")
        assert (code, err.strip()) == (0, "Wrote the sample to standard output.")
        assert self.call("--out", "s.csv")[0] == 0
        assert out == Path("s.csv").read_bytes()
        code, out, _ = self.call("--out", "-", "--format", "parquet")
        assert code == 0
        assert self.call("--out", "s.parquet")[0] == 0
        assert pq.read_table(io.BytesIO(out)).equals(pq.read_table("s.parquet"))
        code, out, _ = self.call("--out", "-", "--format", "json")
        assert code == 0
        rows = [{**row, "seen": row["seen"].isoformat()} for row in pq.read_table("s.parquet").to_pylist()]
        assert [json.loads(line) for line in out.splitlines()] == rows

    def test_a_folder_of_parts(self, monkeypatch):
        arguments = ["sample", "r", "-n", "50", "--seed", "3", "--out", "parts", "--format", "parquet"]
        assert main(arguments) == 0
        assert main(["sample", "r", "-n", "50", "--seed", "3", "--out", "s.parquet"]) == 0
        assert sorted(p.name for p in Path("parts").iterdir()) == [".sfumato", "part-00000.parquet"]
        assert pq.read_table("parts/part-00000.parquet").equals(pq.read_table("s.parquet"))
        assert main(arguments) == 2
        assert main([*arguments, "--overwrite"]) == 0

    @pytest.mark.slow
    def test_without_unique_rows(self, capsys):
        chosen = ["--unique-rows", "drop", "--unique-on", "sex", "--unique-on", "grade"]
        assert main(["sample", "r", "-n", "50", "--seed", "3", "--out", "seen.csv", *chosen]) == 0
        frame = pd.read_csv("seen.csv")
        assert len(frame) == 50
        assert frame.duplicated(["sex", "grade"], keep=False).all()
        told = capsys.readouterr().out.strip().splitlines()[-1]
        assert told == "Unique rows of the sample were dropped: for eyes, NOT part of the guarantee."
        code, out, err = self.call("--out", "-", *chosen)
        assert code == 0
        assert self.call("--out", "again.csv", *chosen)[0] == 0
        assert out == Path("again.csv").read_bytes()
        assert err.strip().splitlines()[-1] == told
        for more in (chosen[2:], [*chosen, "--class-count", "m=3"], ["--unique-rows", "drop", "--unique-on", "none"]):
            assert main(["sample", "r", "--out", "refused.csv", *more]) == 2
            assert not Path("refused.csv").exists()

    @pytest.mark.slow
    def test_too_few_rows_that_repeat_are_told(self):
        code, _, err = self.call("--out", "few.csv", "--unique-rows", "drop")
        assert code == 0
        assert "Expected 50 rows without unique ones, got" in err
        assert len(pd.read_csv("few.csv")) < 50

    def test_what_is_refused(self, capsys):
        for more in (
            ["--out", "s.csv", "--format", "csv"],
            ["--out", "folder", "--format", "csv"],
            ["--out", "folder", "--format", "json"],
            ["--out", "-", "--format", "json", "--spreadsheet-safe"],
            ["--out", "folder", "--format", "parquet", "--spreadsheet-safe"],
        ):
            assert main(["sample", "r", *more]) == 2, more

    def test_a_url_is_refused_and_not_repeated(self, capsys):
        for url in ("sqlite:///people.db?table=made", "postgresql://me:word@h/d", "duckdb:///x.duckdb", "s3://b/x.csv"):
            assert main(["sample", "r", "--out", url]) == 2
            told = " ".join(capsys.readouterr().err.split())
            assert "got a URL: write CSV or Parquet, and load that." in told
            assert url not in told
        assert not Path("x.duckdb").exists()
