"""What stands for no value: where a source has a null, a text says what it says; what was declared is written back."""

import json

import numpy as np
import pandas as pd
import pytest

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns import Categorical, Integer
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData

ISO = Categorical(categories=("ZA", "BW"), other="elsewhere", nullable=True)
CELLS = ["NA", "ZA", None, "", "BW", "."]


def _frame():
    return pd.DataFrame({"iso": pd.Series(CELLS, dtype=object)})


def _json(folder):
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps({"iso": cell}) + "\n" for cell in CELLS))
    return path


def _parquet(folder):
    _frame().to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def _csv(folder):
    _frame().to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def _joined(folder):
    _csv(folder)
    return str(folder / "*.csv")


SOURCES = {"frame": lambda _: _frame(), "json": _json, "parquet": _parquet, "csv": _csv, "several": _joined}
ELSEWHERE, NONE = 2, 3


def _codes(source, **options):
    data = PrivateData(open_source(source), Schema(columns={"iso": ISO}, **options))
    return np.concatenate([rows["iso"] for rows in data.coded()]).tolist()


@pytest.mark.parametrize("name", SOURCES)
def test_namibia_is_a_text_where_there_is_a_null(tmp_path, name):
    usual = NONE if name in ("csv", "several") else ELSEWHERE
    assert _codes(SOURCES[name](tmp_path)) == [usual, 0, NONE, NONE, 1, ELSEWHERE]


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_declared_applies_everywhere(tmp_path, name):
    assert _codes(SOURCES[name](tmp_path), missing=("", "NA", ".")) == [NONE, 0, NONE, NONE, 1, NONE]


@pytest.mark.parametrize(
    ("missing", "written"),
    [(None, ""), (["", "N"], "N"), (["-9"], "-9"), (["NA"], "NA"), (["", "NA", "N/A", "."], "."), (["", "NA"], ""),
     ([], "")],
)  # fmt: skip
def test_the_text_that_is_written_back(missing, written):
    options = {} if missing is None else {"missing": tuple(missing)}
    assert Schema(columns={"iso": ISO}, **options).missing_written == written


def test_samples_are_written_as_they_were_read(tmp_path):
    cells = np.random.default_rng(0).choice([".", "ZA", "BW"], 400)
    frame = pd.DataFrame({"iso": cells, "age": pd.Series(np.arange(400) % 9).astype(str).where(cells != "BW", ".")})
    frame["mark"] = np.where(cells == ".", ".", "x")
    frame.to_csv(tmp_path / "t.csv", index=False)
    columns = {
        "iso": Categorical(categories=("ZA", "BW"), nullable=True),
        "age": Integer(lower=0, upper=8, nullable=True),
        "mark": Categorical(categories=(".", "x"), nullable=True),
    }
    schema = Schema(columns=columns, rows=400, missing=(".",))
    release = MaxEntropy(epsilon=NonPrivate()).fit(tmp_path / "t.csv", schema=schema)
    release.write_sample(tmp_path / "s.csv", 300)
    text = pd.read_csv(tmp_path / "s.csv", dtype=str, keep_default_na=False)
    assert set(text["iso"]) == {".", "ZA", "BW"}
    assert "." in set(text["age"])
    assert set(text["mark"]) <= {".", "x", ""}
    assert release.sample(50)["iso"].null_count > 0
