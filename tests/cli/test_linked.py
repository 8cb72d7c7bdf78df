"""Linked rows on the command line, from the check of a schema to samples of units."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fixtures.linked import schema, visits

FEW = 300


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema(units=FEW).save("schema.yaml")
    visits(FEW).to_csv("visits.csv", index=False)


def test_from_check_to_samples(files, call):
    checked = call("schema", "check", "schema.yaml", "visits.csv")
    assert checked.code == 0
    assert f"Units, each with its rows: {FEW}, public" in checked.out
    assert call("schema", "validate", "visits.csv", "--schema", "schema.yaml", "--json").json["findings"] == []
    stages = call("plan", "--schema", "schema.yaml", "--epsilon", 2, "--json").json["stages"]
    assert [stage["name"] for stage in stages][2:] == ["steps: marginals", "steps: second moments"]
    fit = ("fit", "visits.csv", "--schema", "schema.yaml", "--epsilon", 2, "--seed", 1, "--out", "r.sfm")
    assert call(*fit, "--set", "calibration_rows=300").code == 0
    assert call("sample", "r.sfm", "-n", 40, "--seed", 1, "--given", "sex=f", "--out", "rows.csv").code == 0
    rows = pd.read_csv("rows.csv")
    assert rows["patient"].nunique() == 40
    assert set(rows["sex"]) == {"f"}
    assert (rows.groupby("patient")["day"].diff().dropna() >= 0).all()


def test_columns_that_vary_cannot_be_given(files, call):
    fit = ("fit", "visits.csv", "--schema", "schema.yaml", "--epsilon", 2, "--seed", 1, "--out", "r.sfm")
    call(*fit, "--set", "calibration_rows=300")
    refused = call("sample", "r.sfm", "-n", 4, "--given", "state=a", "--out", "rows.csv")
    assert refused.code != 0
    assert "'state', which varies from row to row" in refused.err
    assert not Path("rows.csv").exists()


def test_units_of_each_class_and_units_without_unique_rows(files, call):
    fit = ("fit", "visits.csv", "--schema", "schema.yaml", "--epsilon", 2, "--seed", 1, "--out", "r.sfm")
    assert "'state' a constant of the unit" in call(*fit, "--target", "state").err
    assert call(*fit, "--target", "sex", "--set", "calibration_rows=300").code == 0
    classes = ("--class-count", "f=7", "--class-count", "m=30")
    assert call("sample", "r.sfm", *classes, "--seed", 1, "--out", "rows.csv").code == 0
    assert pd.read_csv("rows.csv").drop_duplicates("patient")["sex"].value_counts().to_dict() == {"f": 7, "m": 30}
    unique = ("--unique-rows", "drop", "--unique-on", "sex", "--unique-on", "state")
    made = call("sample", "r.sfm", "-n", 20, *unique, "--seed", 1, "--out", "others.csv")
    assert "NOT part of the guarantee" in made.out
    assert pd.read_csv("others.csv").groupby(["sex", "state"])["patient"].nunique().min() > 1


def test_validate_counts_constants_that_vary_and_units_of_too_many_rows(files, call):
    frame = visits(FEW)
    twice = frame[frame["patient"] == frame["patient"].iloc[0]].iloc[:1].assign(sex=lambda f: "m", day=0)
    other = twice.assign(sex="f")
    many = pd.concat([other.assign(patient=-1)] * 9)
    pd.concat([frame, twice, other, many]).to_csv("visits.csv", index=False)
    found = call("schema", "validate", "visits.csv", "--schema", "schema.yaml", "--json").json["findings"]
    assert [(f["column"], f["problem"]) for f in found if f["problem"] in ("varies", "too_many")] == [
        ("patient", "too_many"), ("sex", "varies")
    ]  # fmt: skip
    assert next(f["count"] for f in found if f["problem"] == "varies") == 1
