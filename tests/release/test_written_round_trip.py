"""Tables as people have them: drafted, fitted, sampled, and written in the form that they came in."""

from __future__ import annotations

import dataclasses
import random
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import MaxEntropy, load
from sfumato.columns import Boolean, Continuous, Integer
from sfumato.desk.drafting import draft_schema
from sfumato.errors import ConfigError
from sfumato.io.sources import open_source
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

ROWS = 300


def _german(number: float) -> str:
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


TABLES = {
    # name: header, one row, delimiter, encoding, a pattern per column
    "decimal commas": (
        "gewicht;mitglied",
        lambda r: f"{r.uniform(40, 180):.1f}".replace(".", ",") + ";" + r.choice(["Ja", "Nein"]),
        ";", "utf-8", [r"\d+,\d", r"Ja|Nein"],
    ),
    "thousands": (
        "betrag;am;straße",
        lambda r: f"{_german(r.uniform(0, 9000))};{r.randint(10, 28)}.06.2020;{r.choice(['süd', 'ost'])}",
        ";", "cp1252", [r"\d{1,3}(\.\d{3})?,\d\d", r"\d\d\.\d\d\.2020", "süd|ost"],
    ),
    "dollars": (
        "price,level",
        lambda r: f'"${r.uniform(0, 5000):,.2f}",{r.choice(["None", "None", "Norm", ">200"])}',
        ",", "utf-8", [r"\$(\d,)?\d{1,3}\.\d\d", "None|Norm|>200"],
    ),
    "percent": (
        "share\tdose",
        lambda r: f"{r.uniform(0, 100):.1f}%\t{r.choice(['?', str(r.randint(1, 90)), str(r.randint(1, 90))])}",
        "\t", "utf-8", [r"\d+\.\d%", r"\d+|\?"],  # what stood for no value is written so
    ),
    "accounts": (
        "balance;saldo",
        lambda r: f"({r.uniform(1, 900):.2f});{r.randint(1, 90)}-" if r.random() < 0.5 else f"{r.uniform(1, 9):.2f};7",
        ";", "utf-8", [r"\(\d+\.\d\d\)|\d+\.\d\d", r"\d+-?"],
    ),
    "wide": (
        "größe;preis",
        lambda r: f"{r.randint(100, 200)};{_german(r.uniform(0, 90))} €",
        ";", "utf-16", [r"\d+", r"\d+,\d\d €"],
    ),
}  # fmt: skip


def _written(tmp_path, name):
    header, row, _, encoding, _ = TABLES[name]
    generator = random.Random(7)
    path = tmp_path / "real.csv"
    path.write_bytes("\n".join([header, *(row(generator) for _ in range(ROWS)), ""]).encode(encoding))
    return path


def _declared(path) -> Schema:
    """The draft, as the holder leaves it."""
    schema = draft_schema(open_source(path), exact=True).schema
    return dataclasses.replace(schema, draft=False, rows=ROWS)


@pytest.mark.parametrize("name", TABLES)
def test_samples_have_the_form_of_the_source(tmp_path, name):
    header, _, delimiter, encoding, patterns = TABLES[name]
    schema = _declared(_written(tmp_path, name))
    assert Schema.from_dict(schema.to_dict()) == schema
    release = MaxEntropy(epsilon=20.0).fit(tmp_path / "real.csv", schema=schema)
    release.save(tmp_path / "release")
    for spreadsheet_safe in (False, True):
        load(tmp_path / "release").write_sample(
            tmp_path / "out.csv", 50, seed=1, overwrite=True, spreadsheet_safe=spreadsheet_safe
        )
        lines = (tmp_path / "out.csv").read_bytes().decode(encoding).splitlines()
        assert lines[0] == header
        assert len(lines) == 51
        for line in lines[1:]:
            cells = [c.strip('"') for c in re.split(rf"{delimiter}(?![0-9]{{3}}\.)", line)]
            for cell, pattern in zip(cells, patterns, strict=True):
                assert re.fullmatch(pattern, cell), line


@pytest.mark.parametrize("name", TABLES)
def test_a_draft_holds_numbers_and_can_be_read_back(tmp_path, name):
    path = _written(tmp_path, name)
    draft = draft_schema(open_source(path))
    (tmp_path / "draft.yaml").write_text(draft.to_yaml(), encoding="utf-8")
    assert OpenSchema.load(tmp_path / "draft.yaml") == draft.schema
    _, _, delimiter, encoding, _ = TABLES[name]
    found = draft.schema.reader
    assert (found.delimiter or ",", found.encoding or "utf-8") == (delimiter, encoding)
    first = next(kind for column, kind in _declared(path).columns.items() if column not in ("größe", "am"))
    assert isinstance(first, Continuous | Integer)


def test_a_draft_takes_marks_for_missing_and_none_for_a_label(tmp_path):
    assert any("?" in texts for texts in _declared(_written(tmp_path, "percent")).missing_of.values())
    schema = _declared(_written(tmp_path, "dollars"))
    assert "None" not in schema.missing_of["level"]
    assert "None" in schema.columns["level"].labels


def test_frames_and_parquet_hold_numbers(tmp_path):
    path = _written(tmp_path, "thousands")
    release = MaxEntropy(epsilon=20.0).fit(path, schema=_declared(path))
    release.write_sample(tmp_path / "out.parquet", 5, seed=1)
    for table in (pq.read_table(tmp_path / "out.parquet"), release.sample(5, seed=1)):
        assert table.schema.field("betrag").type == pa.float64()
        assert table.schema.field("am").type == pa.string()


def test_a_frame_and_its_text_give_one_release_and_one_file(tmp_path):
    kind = {"kind": "continuous", "lower": 0, "upper": 5000, "resolution": 0.01, "written": {"thousands": "."}}
    schema = Schema.from_dict({"rows": ROWS, "reader": {"decimal": ","}, "columns": {"betrag": kind}})
    numbers = [round(random.Random(3).uniform(0, 5000), 2) for _ in range(ROWS)]
    tables = [pa.table({"betrag": numbers}), pa.table({"betrag": [_german(number) for number in numbers]})]
    for place, table in enumerate(tables):
        release = MaxEntropy(epsilon=5.0).fit(table, schema=schema, seed=1)
        release.write_sample(tmp_path / f"{place}.csv", 20, seed=1)
    first, second = ((tmp_path / f"{place}.csv").read_bytes() for place in (0, 1))
    assert first == second
    assert b"," in first


@pytest.mark.slow
def test_what_is_to_be_discovered_is_read_and_written_so(tmp_path):
    path = _written(tmp_path, "thousands")
    columns = {"betrag": {"kind": "unknown", "discover": True, "written": {"thousands": "."}}}
    schema = OpenSchema.from_dict({"rows": ROWS, "reader": {"decimal": ","}, "columns": columns})
    release = MaxEntropy(epsilon=50.0).fit(path, schema=schema)
    assert isinstance(release.schema.columns["betrag"], Continuous)
    release.write_sample(tmp_path / "out.csv", 20, seed=1)
    cells = (tmp_path / "out.csv").read_text().split("\n")[1:-1]
    assert all(re.fullmatch(r'"?\d{1,3}(\.\d{3})?,\d+"?', cell) for cell in cells)


def test_a_declared_form_is_read_where_nothing_tells_it(tmp_path):
    (tmp_path / "real.csv").write_bytes("名前:年\nはい:1\nいいえ:2\n".encode("utf-16-le"))
    columns = {
        "名前": {"kind": "boolean", "text": ["いいえ", "はい"]},
        "年": {"kind": "integer", "lower": 0, "upper": 3},
    }
    schema = Schema.from_dict({"reader": {"encoding": "utf-16-le", "delimiter": ":"}, "columns": columns})
    source = open_source(tmp_path / "real.csv", csv=schema.reader.csv)
    assert source.names == ("名前", "年")
    assert [chunk.columns["名前"].to_pylist() for chunk in source.chunks(source.names)] == [["はい", "いいえ"]]


def test_letters_that_the_encoding_lacks_leave_the_file_as_it_was(tmp_path):
    schema = Schema(columns={"tak": Boolean(text=("nie", "część"))}, rows=ROWS)
    schema = Schema.from_dict({**schema.to_dict(), "reader": {"encoding": "latin-1"}})
    release = MaxEntropy(epsilon=5.0).fit(pa.table({"tak": ["nie", "część"] * 150}), schema=schema)
    (tmp_path / "out.csv").write_text("before")
    with pytest.raises(ConfigError, match="encoding iso8859-1"):
        release.write_sample(tmp_path / "out.csv", 50, seed=1, overwrite=True)
    assert (tmp_path / "out.csv").read_text() == "before"
