"""What stands for no value: where a source has a null, a text says what it says; what was declared is written back."""

import dataclasses
import json
import pickle

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.columns import Categorical, Integer
from sfumato.errors import SchemaError
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData
from sfumato.schema.open_schema import OpenSchema

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
    [
        (None, None),
        (["N", ""], "N"),
        (["", "N"], None),
        (["-9"], "-9"),
        (["NA"], "NA"),
        (["ZA", "N"], None),
        ([], None),
    ],
)
def test_the_text_that_is_written_back(missing, written):
    """The first; empty where it is a label."""
    options = {} if missing is None else {"missing": tuple(missing)}
    assert Schema(columns={"iso": ISO}, **options).csv_output.missing.get("iso") == written


DOCUMENT = {
    "missing": ["", "NA"],
    "columns": {
        "age": {"kind": "integer", "lower": 0, "upper": 120, "nullable": True, "missing": ["-99", ""]},
        "income": {"kind": "integer", "lower": -100, "upper": 9_000, "nullable": True},
        "iso": {"kind": "categorical", "discover": True, "missing": ["k.A."]},
        "who": {"kind": "identifier", "missing": ["0"]},
    },
}


class TestOfAColumn:
    """A text stands for no value in the column that says so, and is a value in others."""

    SCHEMA = OpenSchema.from_dict(DOCUMENT)

    def test_a_document_has_it_in_the_entry(self):
        assert self.SCHEMA.missing_of == {"age": ("-99", ""), "iso": ("k.A.",), "who": ("0",)}
        assert self.SCHEMA.to_dict() == DOCUMENT
        assert pickle.loads(pickle.dumps(self.SCHEMA)) == self.SCHEMA
        with pytest.raises(SchemaError, match="missing of column 'age' to be a list of texts"):
            Schema.from_dict({"columns": {"age": {"kind": "integer", "lower": 0, "upper": 9, "missing": "-9"}}})

    def test_a_column_that_goes_takes_it_along(self):
        columns = {name: kind for name, kind in self.SCHEMA.columns.items() if name != "age"}
        assert "age" not in dataclasses.replace(self.SCHEMA, columns=columns).missing_of

    @pytest.mark.parametrize("name", SOURCES)
    def test_it_holds_in_any_source(self, tmp_path, name):
        codes = _codes(SOURCES[name](tmp_path), missing=("",), missing_of={"iso": ("NA", "ZA", "")})
        assert codes == [NONE, 0, NONE, NONE, 1, ELSEWHERE], "what is a label is one"

    def test_no_value_of_one_is_none_of_another(self, tmp_path):
        cells = ["-99", "5", "", "7"] * 100
        pd.DataFrame({"age": cells, "income": cells}).to_csv(tmp_path / "t.csv", index=False)
        columns = {name: DOCUMENT["columns"][name] for name in ("age", "income")}
        schema = {"rows": 400, "missing": [""], "columns": columns}
        release = sfumato.fit(tmp_path / "t.csv", schema, method=MaxEntropy(epsilon=NonPrivate()))
        assert release.missing("age", target="table").value == pytest.approx(0.5, abs=0.01)
        assert release.missing("income", target="table").value == pytest.approx(0.25, abs=0.01)
        release.write_sample(tmp_path / "s.csv", 400)
        text = pd.read_csv(tmp_path / "s.csv", dtype=str, keep_default_na=False)
        assert "" not in set(text["age"])
        assert (text["age"] == "-99").mean() == pytest.approx(0.5, abs=0.1)
        assert (text["income"] == "").mean() == pytest.approx(0.25, abs=0.1)

    def test_an_open_column_has_it_too(self, tmp_path):
        cells = ["k.A.", "red", "blue", "green"] * 500
        pd.DataFrame({"iso": cells, "plain": cells}).to_csv(tmp_path / "t.csv", index=False)
        entry = {"kind": "categorical", "discover": True}
        schema = OpenSchema.from_dict(
            {"rows": 2_000, "columns": {"iso": {**entry, "missing": ["k.A."]}, "plain": entry}}
        )
        found = MaxEntropy(epsilon=20.0, delta=1e-6).fit(tmp_path / "t.csv", schema=schema, seed=0).schema
        assert (found.columns["iso"].nullable, found.columns["plain"].nullable) == (True, False)
        assert found.missing_of == {"iso": ("k.A.",)}
        assert "k.A." in found.columns["plain"].labels
        assert "k.A." not in found.columns["iso"].labels

    def test_it_names_no_unit(self):
        frame = pd.DataFrame({"who": ["0"] * 900 + ["1", "2"] * 50, "age": np.arange(1_000) % 90})
        columns = {"who": DOCUMENT["columns"]["who"], "age": DOCUMENT["columns"]["age"]}
        schema = Schema.from_dict({"rows": 100, "unit": {"column": "who", "max_rows": 90}, "columns": columns})
        rows = sum(part["age"].size for part in PrivateData(open_source(frame), schema).coded())
        assert rows == 100, "those of nobody are left out"


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
