"""Databases on the command line: folders and databases in, folders and databases out."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from fixtures.database import document, hospital, ruled_document, ruled_hospital, schema
from sfumato import create_ledger, read_ledger
from sfumato.cli.app import run
from sfumato.records.database_records import DatabaseData
from sfumato.records.table_sources import TableSources, open_records

FEW = 150
NAMES = ("persons", "visits", "measurements", "drugs")
FIT = ("--schema", "schema.yaml", "--epsilon", 2, "--delta", 1e-6, "--seed", 1, "--set", "calibration_rows=60")


def write_files() -> dict[str, pd.DataFrame]:
    schema(FEW).save("schema.yaml")
    tables = hospital(FEW, 1)
    Path("data").mkdir()
    for name, table in tables.items():
        table.to_csv(f"data/{name}.csv", index=False)
    with sqlite3.connect("data.db") as connection:
        for name, table in tables.items():
            table.to_sql(name, connection, index=False)
    connection.close()
    return tables


@pytest.fixture
def data(tmp_path, monkeypatch) -> dict[str, pd.DataFrame]:
    monkeypatch.chdir(tmp_path)
    return write_files()


@pytest.fixture(scope="module")
def fitted(small_simulations, remembered_accounts, tmp_path_factory):
    """The file of a release, which tests copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("fitted"))
        write_files()
        assert run([*map(str, ("fit", "data", *FIT, "--out", "r.sfm"))]) == 0
        return Path("r.sfm").resolve()


@pytest.fixture
def release(data, fitted):
    shutil.copy(fitted, "r.sfm")


def read_all(place) -> dict[str, dict[str, list[float]]]:
    """Every table as a fit reads it: the row above of each row, and its codes."""
    source, known = open_records(place, schema(FEW)), schema(FEW)
    assert isinstance(source, TableSources)
    levels = {name: DatabaseData(source, known).level(name) for name in NAMES}
    return {
        name: {"above": level.above.tolist(), **{column: codes.tolist() for column, codes in level.codes.items()}}
        for name, level in levels.items()
    }


def test_folders_databases_and_files_are_the_same_tables(data, tmp_path):
    files = {name: Path("data") / f"{name}.csv" for name in NAMES}
    cells = read_all(files)
    assert read_all("data") == read_all(Path("data")) == read_all("sqlite:///data.db") == cells
    Path("mixed").mkdir()
    for name, table in data.items():
        table.astype(str).to_parquet(f"mixed/{name}.parquet", index=False)
    assert read_all("mixed") == cells


def test_duckdb_too(data):
    duckdb = pytest.importorskip("duckdb", reason="the extra databases is not installed")
    with duckdb.connect("data.duckdb") as connection:
        for name in NAMES:
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_csv('data/{name}.csv', all_varchar=true)")
    assert read_all("duckdb:///data.duckdb") == read_all("data")


def test_samples_open_again_with_the_same_schema(release, call):
    made = call("sample", "r.sfm", "-n", 60, "--seed", 1, "--out", "csv")
    assert made.code == 0
    assert "Wrote csv/persons.csv and csv/visits.csv" in made.out.replace("\\", "/")
    assert call("sample", "r.sfm", "-n", 60, "--seed", 1, "--out", "parts", "--format", "parquet").code == 0
    cells = read_all("csv")
    assert read_all("parts") == cells
    assert call("fit", "csv", *FIT, "--rows", 60, "--out", "again.sfm").code == 0
    assert call("schema", "validate", "parts", "--schema", "schema.yaml").code == 0


def test_scores_of_a_folder(release, call):
    assert call("sample", "r.sfm", "-n", FEW, "--out", "csv").code == 0
    for synthetic in ("csv", "r.sfm"):
        scores = call("evaluate", "table", "data", synthetic, "--schema", "schema.yaml", "--json").json
        assert scores["units"] == {"real": FEW, "synthetic": FEW}
        assert list(scores["tables"]) == list(NAMES[1:])
    printed = call("evaluate", "table", "sqlite:///data.db", "r.sfm")
    assert "measurements: scores" in printed.out
    assert "--runs" in call("evaluate", "table", "data", "r.sfm", "--runs", 2).err


def test_rules_are_counted_on_the_own_screen(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    tables = ruled_hospital(FEW, 1)
    tables["measurements"].loc[:2, "reported"] = 0
    Path("data").mkdir()
    for name, table in tables.items():
        table.to_csv(f"data/{name}.csv", index=False)
    Path("schema.yaml").write_text(json.dumps(ruled_document(FEW)))
    found = call("schema", "validate", "data", "--schema", "schema.yaml", "--json").json
    assert found["rules"]["{order: [end, reported]}"] == 3
    assert sum(found["rules"].values()) == 3
    tables["drugs"].drop(columns="drug").to_csv("data/drugs.csv", index=False)
    lacking = call("schema", "validate", "data", "--schema", "schema.yaml")
    assert "got none named 'drug'" in " ".join(lacking.err.split())


def test_from_a_draft_to_its_questions(data, call):
    assert call("schema", "draft", "data", "--out", "draft.yaml").code == 0
    text = Path("draft.yaml").read_text()
    assert "# measurements is of visits: visit says of which row" in text
    assert "A DRAFT" in call("schema", "check", "draft.yaml", "sqlite:///data.db").out
    assert "draft" in call("fit", "data", "--schema", "draft.yaml", *FIT[2:], "--out", "r.sfm").err
    keys = [entry["key"] for entry in call("schema", "review", "draft.yaml", "--json").json["questions"]]
    assert keys[:3] == ["table drugs", "table visits", "table measurements"]
    assert call("schema", "draft", "sqlite:///data.db", "--out", "again.yaml").code == 0
    files = [f"{name}=data/{name}.csv" for name in NAMES]
    assert call("schema", "draft", *files, "--out", "files.yaml").code == 0
    assert Path("files.yaml").read_text() == text
    for wrong in (["data/persons.csv", "data/visits.csv"], ["persons=-", files[1]], [files[0], files[0]]):
        assert "NAME=FILE for each of several tables" in call("schema", "draft", *wrong, "--out", "x.yaml").err
    assert "--suggest-rules" in call("schema", "draft", "data", "--suggest-rules", "--out", "x.yaml").err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: Path("data/drugs.csv").unlink(), "a file of the table 'drugs' in the folder data, got none"),
        (
            lambda: Path("data/drugs.tsv").write_text("person\n"),
            "file of the table 'drugs' in the folder data, got two",
        ),
        (lambda: Path("data/wards.csv").write_text("ward\n"), "got wards.csv, which is of none"),
        (lambda: Path("data/drugs.csv").write_text("person\n1\n"), "(the table 'drugs') to have every column"),
        (lambda: Path("data/drugs.csv").write_text(""), "data in drugs.csv, got an empty file"),
    ],
)
def test_a_folder_that_is_not_the_tables_is_refused_before_a_charge(data, call, change, message):
    create_ledger("data.ledger", epsilon=3.0, delta=1e-5)
    change()
    refused = call("fit", "data", *FIT, "--ledger", "data.ledger", "--out", "r.sfm")
    assert refused.code != 0
    assert message in " ".join(refused.err.split())
    assert not Path("r.sfm").exists()
    assert not read_ledger("data.ledger").fits


def test_other_places_are_refused(data, call):
    Path("empty").mkdir()
    cases = {
        "empty": "a file of the table 'persons' in the folder empty",
        "nowhere": "a folder with a file of each, or in a database",
        "schema.yaml": "a folder with a file of each, or in a database",
        "sqlite:///data.db?table=visits": "without a table or a query",
        "sqlite:///nowhere.db": "a sqlite file that exists",
    }
    for place, message in cases.items():
        assert message in " ".join(call("fit", place, *FIT, "--out", "r.sfm").err.split())
    with sqlite3.connect("data.db") as connection:
        connection.execute("DROP TABLE drugs")
    connection.close()
    assert "Cannot read table drugs of sqlite database" in call("fit", "sqlite:///data.db", *FIT, "--out", "r.sfm").err


def test_several_tables_need_a_schema(data, call):
    for place in ("data", "sqlite:///data.db"):
        assert "Expected --schema for several tables" in call("fit", place, "--epsilon", 1, "--out", "r.sfm").err


def test_labels_are_not_read_from_a_table(data, call):
    described = document(FEW)
    listed = {"kind": "categorical", "categories": {"file": "data/drugs.csv", "column": "drug"}}
    described["columns"] = {**described["columns"], "drug": listed}
    Path("schema.yaml").write_text(json.dumps(described))
    for place in (["data"], [f"{name}=data/{name}.csv" for name in NAMES]):
        refused = call("fit", *place, *FIT, "--out", "r.sfm")
        assert "the labels of column 'drug' from a file of its own" in " ".join(refused.err.split())


def test_an_output_is_no_input(data, call):
    for out in ("data", "data.db"):
        place = "data" if out == "data" else "sqlite:///data.db"
        assert "an output of its own" in call("fit", place, *FIT, "--overwrite", "--out", out).err
