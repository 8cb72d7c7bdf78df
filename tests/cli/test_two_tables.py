"""Two tables with a key on the command line: two files in, two files out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from fixtures.two_tables import joined, schema, tables
from sfumato.cli.app import run

FEW = 300
DATA = ("persons=persons.csv", "visits=visits.csv")


def write_files():
    schema(FEW).save("schema.yaml")
    for name, table in tables(FEW).items():
        table.to_csv(f"{name}.csv", index=False)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files()


@pytest.fixture(scope="module")
def fitted(small_simulations, remembered_accounts, tmp_path_factory):
    """The file of a release, which tests copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("fitted"))
        write_files()
        fit = ("fit", *DATA, "--schema", "schema.yaml", "--epsilon", "2", "--seed", "1", "--out", "r.sfm")
        assert run([*fit, "--set", "calibration_rows=300"]) == 0
        return Path("r.sfm").resolve()


@pytest.fixture
def release(files, fitted):
    shutil.copy(fitted, "r.sfm")


def test_from_check_to_samples(release, call):
    checked = call("schema", "check", "schema.yaml", *DATA)
    assert checked.code == 0
    assert f"Units, each with its rows: {FEW}, public" in checked.out
    assert "sfumato fit persons=FILE visits=FILE --schema" in checked.out
    made = call("sample", "r.sfm", "-n", 40, "--seed", 1, "--given", "sex=f", "--out", "out")
    assert made.code == 0
    assert "Wrote out/persons.csv and out/visits.csv" in made.out.replace("\\", "/")
    found = {name: pd.read_csv(Path("out") / f"{name}.csv") for name in ("persons", "visits")}
    assert found["persons"]["patient"].tolist() == list(range(1, 41))
    assert set(found["persons"]["sex"]) == {"f"}
    assert (joined(found).groupby("patient")["day"].diff().dropna() >= 0).all()


def test_persons_of_each_class_and_without_unique_rows(files, call):
    fit = ("fit", *DATA, "--schema", "schema.yaml", "--epsilon", 2, "--seed", 1, "--out", "r.sfm", "--target", "sex")
    assert call(*fit, "--set", "calibration_rows=300").code == 0
    assert call("sample", "r.sfm", "--class-count", "f=7", "--class-count", "m=30", "--out", "out").code == 0
    assert pd.read_csv("out/persons.csv")["sex"].value_counts().to_dict() == {"f": 7, "m": 30}
    made = call("sample", "r.sfm", "-n", 20, "--unique-rows", "drop", "--unique-on", "state", "--out", "others")
    assert "NOT part of the guarantee" in made.out
    assert len(pd.read_csv("others/persons.csv")) == 20
    assert call("sample", "r.sfm", "--replicates", 2, "--out", "third").code != 0


def test_samples_in_parquet_with_workers_are_those_of_csv(release, call):
    assert call("sample", "r.sfm", "-n", 30, "--seed", 1, "--out", "csv").code == 0
    assert call("sample", "r.sfm", "-n", 30, "--seed", 1, "--out", "parts", "--format", "parquet").code == 0
    for name in ("persons", "visits"):
        written = pd.read_parquet(Path("parts") / f"{name}.parquet")
        again = pd.read_csv(Path("csv") / f"{name}.csv")
        pd.testing.assert_frame_equal(written.astype(again.dtypes), again)


def test_an_output_is_replaced_only_if_asked_and_only_if_ours(release, call):
    sample = ("sample", "r.sfm", "-n", 5, "--seed", 1, "--out")
    assert call(*sample, "out").code == 0
    before = Path("out/persons.csv").read_bytes()
    assert call(*sample, "out").code != 0
    assert Path("out/persons.csv").read_bytes() == before
    assert call(*sample, "out", "--overwrite").code == 0
    Path("mine").mkdir()
    Path("mine/diary.txt").write_text("mine")
    assert call(*sample, "mine", "--overwrite").code != 0
    assert [item.name for item in Path("mine").iterdir()] == ["diary.txt"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--out", "rows.csv"), "a folder without a suffix"),
        (("--out", "-"), "to name a folder"),
        (("--out", "sqlite:///x.db?table=t"), "got a URL: write CSV or Parquet, and load that."),
        (("--out", "sqlite:///x.db", "--format", "csv"), "got a URL: write CSV or Parquet, and load that."),
        (("--out", "out", "--replicates", 2), "got one of linked rows"),
        (("--out", "out", "--unique-rows", "drop", "--unique-on", "patient"), "of the release, got 'patient'"),
        (("--out", "out", "--given", "state=a"), "which varies from row to row"),
    ],
)
def test_what_does_not_go_is_refused_before_anything_is_written(release, call, options, message):
    refused = call("sample", "r.sfm", "-n", 4, *options)
    assert refused.code != 0
    assert message in " ".join(refused.err.split())
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "data",
    [
        ("persons.csv", "visits.csv"),
        ("persons=persons.csv",),
        ("persons=persons.csv", "people=visits.csv"),
        ("persons=persons.csv", "persons=persons.csv"),
        (*DATA, "visits=visits.csv"),
    ],
)
def test_other_files_than_the_two_tables_are_refused(files, call, data):
    refused = call("fit", *data, "--schema", "schema.yaml", "--epsilon", 2, "--out", "r.sfm")
    assert refused.code != 0
    assert "persons=FILE visits=FILE as DATA" in refused.err
    assert not Path("r.sfm").exists()


def test_two_files_for_one_table_are_refused(files, call):
    Path("one.yaml").write_text("rows: 300\ncolumns:\n  born: {kind: integer, lower: 1920, upper: 2010}\n")
    refused = call("fit", "persons.csv", "visits.csv", "--schema", "one.yaml", "--epsilon", 2, "--out", "r.sfm")
    assert refused.code != 0
    assert "Expected one DATA, got 2" in refused.err


def test_the_inputs_are_not_written_over(files, call):
    before = Path("visits.csv").read_bytes()
    fit = ("fit", *DATA, "--schema", "schema.yaml", "--epsilon", 2, "--overwrite", "--out")
    assert call(*fit, "visits.csv").code != 0
    assert Path("visits.csv").read_bytes() == before


def test_validate_counts_keys(files, call):
    both = tables(FEW)
    twice = both["persons"].iloc[:1]
    orphan = both["visits"].iloc[:2].assign(patient=10**6)
    pd.concat([both["persons"], twice]).to_csv("persons.csv", index=False)
    pd.concat([both["visits"], orphan]).to_csv("visits.csv", index=False)
    found = call("schema", "validate", *DATA, "--schema", "schema.yaml", "--json").json["findings"]
    assert {(f["column"], f["problem"], f["count"]) for f in found} == {
        ("persons.patient", "repeated", 1),
        ("visits.patient", "no_rows", FEW - both["visits"]["patient"].nunique()),
        ("visits.patient", "orphans", 2),
    }


def test_a_table_may_come_on_standard_input(files, call):
    refused = call("fit", "persons=-", "visits=-", "--schema", "schema.yaml", "--epsilon", 2, "--out", "r.sfm")
    assert "Expected one table on standard input, got several" in refused.err


def test_both_may_lie_in_a_folder(files, call):
    Path("both").mkdir()
    for name in ("persons", "visits"):
        Path(f"{name}.csv").rename(f"both/{name}.csv")
    fit = ("--schema", "schema.yaml", "--epsilon", 2, "--seed", 1, "--out", "r.sfm")
    assert call("fit", "both", *fit, "--set", "calibration_rows=300").code == 0
    assert call("sample", "r.sfm", "-n", 40, "--seed", 1, "--out", "out").code == 0
    assert call("evaluate", "table", "both", "out", "--schema", "schema.yaml", "--json").json["units"]["real"] == FEW
    assert call("report", "r.sfm", "--real", "both", "--out", "page.html").code == 0
    assert Path("page.html").exists()
    assert call("schema", "draft", "both", "--out", "draft.yaml").code == 0
    assert call("schema", "check", "draft.yaml", "both").code == 0
