"""Sets of items on the command line, from the draft to samples in the form that came in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.schema.schema import Schema

RNG = np.random.default_rng(0)
SETS = [np.flatnonzero(RNG.random(6) < [0.8, 0.5, 0.3, 0.1, 0.02, 0.0]).tolist() for _ in range(800)]
CELLS = "rows: 800\ncolumns:\n  items: {kind: set, n_items: 6, max_length: 5}\n"
LONG = "rows: 800\ncolumns:\n  who: identifier\n  items: {kind: set, n_items: 6, max_length: 5, id: who}\n"
FIT = ("--schema", "schema.yaml", "--epsilon", 2, "--method", "independent-items", "--seed", 1, "--out", "r.sfm")
JOINED = 'rows: 800\ncolumns:\n  items: {kind: set, n_items: 6, max_length: 5, separator: ";"}\n'
FORMS = ["sets.dat", "sets.npz", "sets.parquet", "long.csv", "long.parquet", "joined.csv", "joined.parquet"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lengths = [len(items) for items in SETS]
    flat = np.array([item for items in SETS for item in items])
    Path("sets.dat").write_text("".join(" ".join(map(str, items)) + "\n" for items in SETS))
    np.savez("sets.npz", indptr=np.cumsum([0, *lengths]), indices=flat, n_items=np.array(6))
    pq.write_table(pa.table({"items": SETS}), "sets.parquet")
    long = pd.DataFrame({"who": np.repeat(np.arange(800), lengths), "items": flat})
    long.to_csv("long.csv", index=False)
    long.to_parquet("long.parquet")
    joined = pd.DataFrame({"items": [";".join(map(str, items)) for items in SETS]})
    joined.to_csv("joined.csv", index=False)
    joined.to_parquet("joined.parquet")


def write_schema(data):
    Path("schema.yaml").write_text({"long": LONG, "join": JOINED}.get(data[:4], CELLS))


@pytest.mark.parametrize("data", FORMS)
def test_from_check_to_samples(files, call, data):
    write_schema(data)
    assert call("schema", "check", "schema.yaml", data).code == 0
    assert call("schema", "validate", data, "--schema", "schema.yaml", "--json").json["findings"] == []
    assert call("plan", "--schema", "schema.yaml", "--epsilon", 2, "--method", "independent-items").code == 0
    fitted = call("fit", data, *FIT)
    assert fitted.code == 0
    suggested = fitted.out.partition("Next: sfumato ")[2].split()
    assert call(*suggested).code == 0
    assert Path(suggested[-1]).suffix == Path(data).suffix
    out = f"out{Path(data).suffix}"
    assert call("sample", "r.sfm", "-n", 3000, "--seed", 1, "--out", out).code == 0
    assert call("schema", "check", "schema.yaml", out).code == 0
    assert call("schema", "validate", out, "--schema", "schema.yaml", "--json").json["findings"] == []
    assert call("certificate", "r.sfm").code == 0


def test_the_release_of_text_with_a_separator_is_that_of_lists(files, call):
    counted = []
    for data in ("sets.parquet", "joined.csv", "joined.parquet"):
        write_schema(data)
        assert call("fit", data, *FIT, "--overwrite").code == 0
        assert call("sample", "r.sfm", "-n", 500, "--seed", 1, "--out", f"out.{data}", "--overwrite").code == 0
        cells = (pd.read_csv if data.endswith("csv") else pd.read_parquet)(f"out.{data}")["items"].fillna("")
        counted.append([cell if isinstance(cell, str) else ";".join(map(str, cell)) for cell in cells])
    assert len(counted[0]) == 500
    assert counted[0] == counted[1] == counted[2]


@pytest.mark.parametrize("data", FORMS[:3])
def test_a_draft_is_a_schema_to_edit(files, call, data):
    assert call("schema", "draft", data, "--out", "schema.yaml").code == 0
    assert Schema.load("schema.yaml").to_dict()["columns"] == {
        "items": {"kind": "set", "max_length": max(map(len, SETS)), "n_items": 5}
    }
    assert call("fit", data, *FIT).code == 2
    text = Path("schema.yaml").read_text(encoding="utf-8")
    Path("schema.yaml").write_text(text.replace("draft: true\n", ""), encoding="utf-8")
    assert call("fit", data, *FIT).code == 0


def test_wrong_calls_spend_nothing_and_show_no_item(files, call):
    write_schema("sets.dat")
    for wrong in (
        ("fit", "sets.dat", "--schema", "schema.yaml", "--epsilon", 2, "--out", "r.sfm"),
        ("fit", "sets.dat", *FIT, "--set", "pose=none"),
        ("fit", "sets.dat", *FIT, "--target", "items"),
        ("fit", "long.csv", *FIT),
        ("plan", "--schema", "schema.yaml", "--epsilon", 1),
        ("evaluate", "table", "sets.dat", "sets.dat", "--schema", "schema.yaml"),
    ):
        assert call(*wrong).code == 2
        assert not Path("r.sfm").exists()
    np.savez("sets.npz", indptr=[0, 7, 3], indices=[7654321] * 7, n_items=6)
    result = call("fit", "sets.npz", *FIT)
    assert result.code == 1
    assert "7654321" not in result.err
    assert call("sample", "r.sfm", "--out", "x.dat").code != 0
