"""Cells of text by form: some odd ones leave a column what the others are, and are said."""

import numpy as np
import pyarrow as pa
import pytest

from fixtures.workbooks import workbook
from sfumato.columns.kinds import Categorical, Continuous, DateTime, Identifier, Integer
from sfumato.columns.open import Open
from sfumato.columns.written import Written
from sfumato.desk.drafting import draft_schema
from sfumato.desk.validation import validate
from sfumato.errors import DataError
from sfumato.io.sources import open_source
from sfumato.schema.schema import Schema

N = 600
AGES = [str(i % 73 + 18) for i in range(N)]
AMOUNTS = [f"{i * i % 9973 / 7:.2f}" for i in range(N)]
DAYS = np.datetime64("2021-01-01") + np.arange(N) % 300


def _with(values, odd, every=10):
    return [odd if i % every == 0 else value for i, value in enumerate(values)]


def _draft(values, chunk_rows=97, *, exact=True, name="x"):
    table = pa.table({name: values, "flag": [True, False] * (N // 2)})
    return draft_schema(open_source(table, chunk_rows=chunk_rows), exact=exact)


@pytest.mark.parametrize("write", ["{:.17g}", "{:.7f}", "{:.2e}", "{:.3E}"])
def test_numbers_of_many_decimals_are_numbers(write):
    values = [write.format((i * i % 9973 + 1) / 7e6) for i in range(N)]
    kind = _draft(values).schema.columns["x"]
    assert isinstance(kind, Continuous)
    assert kind.resolution is None
    assert (kind.lower, kind.upper) == (min(map(float, values)), max(map(float, values)))
    assert _draft(values, exact=False).schema.columns["x"] == Open(kind="continuous")


def test_numbers_of_many_decimals_after_a_comma_are_numbers():
    values = [f"{(i * i % 9973 + 1) / 7e4:.9f}".replace(".", ",") for i in range(N)]
    assert _draft(values).schema.reader.written.decimal == ","
    assert isinstance(_draft(values).schema.columns["x"], Continuous)


@pytest.mark.parametrize("odd", ["<5", "90+", ">=100", "unknown", "*", "#DIV/0!", "refused", "inf"])
@pytest.mark.parametrize("every", [3, 10])
def test_odd_cells_leave_numbers_numbers(odd, every):
    draft = _draft(_with(AGES, odd, every))
    kind = draft.schema.columns["x"]
    assert isinstance(kind, Integer)
    assert (kind.lower, kind.upper, kind.nullable) == (18, 90, True)
    assert f"{odd!r} ({len(AGES[::every])} cells)" in draft.to_yaml()
    assert (odd in draft.schema.missing_of.get("x", ())) == (odd in ("unknown", "*", "#DIV/0!", "refused"))
    assert _draft(_with(AGES, odd, every), exact=False).schema.columns["x"] == Open(kind="integer")


def test_limits_that_many_rows_share_are_values():
    values = [
        "<5" if i % 10 == 0 else "90+" if i % 60 == 1 else ">100" if i < 30 else age for i, age in enumerate(AGES)
    ]
    draft = _draft(values)
    assert draft.schema.columns["x"].atoms == ("<5", ">100", "90+")
    assert "values of their own where `atoms` lists them" in draft.to_yaml()
    assert "atoms: [<5, '>100', 90+]" in draft.to_yaml()
    assert not validate(open_source(pa.table({"x": values, "flag": [True, False] * (N // 2)})), draft.schema)
    assert _draft(values, exact=False).schema.columns["x"] == Open(kind="integer")
    rare = ["<5" if i < 9 else age for i, age in enumerate(AGES)]
    assert not _draft(rare).schema.columns["x"].atoms
    many = [f"<{i % 14 + 1}" if i % 3 == 0 else age for i, age in enumerate(AGES)]
    assert not _draft(many).schema.columns["x"].atoms
    dates = _draft([f"<{i % 3}" if i % 9 == 0 else str(day) for i, day in enumerate(DAYS)])
    assert not dates.schema.columns["x"].atoms


@pytest.mark.parametrize("form", ["~{}", "ca. {}", "{}*", "{} H"])
def test_marked_numbers_leave_numbers_numbers(form):
    draft = _draft([form.format(age) if i % 10 == 0 else age for i, age in enumerate(AGES)])
    assert isinstance(draft.schema.columns["x"], Integer)
    assert "no plain numbers, so read as missing. To keep them, take the mark out" in draft.to_yaml()
    assert not draft.schema.missing_of
    assert not isinstance(_draft([form.format(age) for age in AGES]).schema.columns["x"], Integer)


def test_a_word_that_another_column_answers_is_missing_where_it_is_odd():
    words = ["unknown" if i % 2 else "known" for i in range(N)]
    table = pa.table({"age": _with(AGES, "unknown"), "status": words})
    assert list(draft_schema(open_source(table)).schema.missing_of) == ["age"]


@pytest.mark.parametrize(
    "values",
    [
        [["250", "401", "V57", "E888"][i % 4] for i in range(N)],  # codes
        [["0", "1", "2", "3+"][i % 4] for i in range(N)],  # answers
        _with(AGES, "red", 2),  # as many words
    ],
)
def test_few_numbers_beside_words_are_labels(values):
    assert isinstance(_draft(values).schema.columns["x"], Categorical | Identifier)


def test_many_different_words_are_no_slips():
    values = [f"x{i}" if i % 5 == 0 else age for i, age in enumerate(AGES)]
    assert not isinstance(_draft(values).schema.columns["x"], Integer)
    slips = [f"x{i}" if i % 100 == 0 else age for i, age in enumerate(AGES)]
    assert isinstance(_draft(slips).schema.columns["x"], Integer)


NUMBERS = {
    "thousands": ([f"{n:,}" for n in (900, 79_000, 1_234_567)], Integer, Written(decimal=".", thousands=",")),
    "thousands alone": ([f"{n}000" for n in ("79,", "12,", "55,")], Integer, Written(decimal=".", thousands=",")),
    "points of thousands": (["900", "1.234", "12.345.678"], Integer, Written(decimal=",", thousands=".")),
    "cents": (["-$1,234.50", "$7.25", "$900.00"], Continuous, Written(decimal=".", thousands=",", prefix="$")),
    "euros": (["1.234,50 €", "7,25 €", "900,00"], Continuous, Written(decimal=",", thousands=".", suffix=" €")),
    "units": (["7.5 kg", "81 kg", "9.25 kg"], Continuous, Written(decimal=".", suffix=" kg")),
    "whole, as pandas writes": (["7.0", "12.0", "900.0"], Integer, None),
    "accounts": (
        ["(1,234.50)", "7.25", "900.00"], Continuous,
        Written(decimal=".", thousands=",", negative="parentheses"),
    ),
    "minus behind": (["12,50-", "7,25", "900,00"], Continuous, Written(decimal=",", negative="trailing")),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("chunk_rows", [7, 100])
def test_how_numbers_are_written(name, chunk_rows):
    words, kind, written = NUMBERS[name]
    values = [words[i % 3] for i in range(N)] + ([] if written else [f"{i}.0" for i in range(N)])
    table = pa.table({"x": values[-N:], "flag": [True, False] * (N // 2)})
    found = draft_schema(open_source(table, chunk_rows=chunk_rows), exact=True).schema.columns["x"]
    assert isinstance(found, kind)
    assert found.written == written
    if kind is Continuous:
        assert found.resolution == 0.01


@pytest.mark.parametrize("form", ["({})", "{}-"])
def test_labels_that_all_look_negative_are_none(form):
    for many in (3, 50):  # of many a column of numbers was drafted, which read every cell as missing
        kind = _draft([form.format(i % many) for i in range(N)], exact=True).schema.columns["x"]
        assert isinstance(kind, Categorical | Identifier)


@pytest.mark.parametrize("mark", [".", ","])
@pytest.mark.parametrize("decimals", [6, 7, 12, 17])
def test_numbers_with_many_decimals_are_numbers(mark, decimals):
    words = [f"{n / 7:.{decimals}f}".replace(".", mark) for n in range(-N // 2, N // 2)]
    draft = _draft(words)
    kind = draft.schema.columns["x"]
    assert isinstance(kind, Continuous)
    assert kind.resolution == (1e-6 if decimals == 6 else None)
    assert (draft.schema.reader.written.decimal or ".") == mark
    assert _draft(words, exact=False).schema.columns["x"].kind == "continuous"


def test_points_that_may_part_thousands_are_said(tmp_path):
    path = tmp_path / "t.csv"
    values = [f"{i % 90 + 10}.{i % 900 + 100}" for i in range(N)]
    for header, kind in (("x,y", Continuous), ("x;y", Integer)):  # a table with semicolons has decimal commas
        path.write_text("\n".join([header, *(f"{value}{header[1]}a" for value in values)]))
        draft = draft_schema(open_source(path), exact=True)
        assert isinstance(draft.schema.columns["x"], kind)
        assert "may part thousands or be decimal" in draft.to_yaml()


def _texts(format):
    return [f"{day.astype(object):{format}}" for day in DAYS]


DATES = {
    "english month": (_texts("%d-%b-%Y"), "%d-%b-%Y", "day"),
    "weeks": (_texts("%G-W%V"), "%G-W%V", "week"),
    "months": (_texts("%Y-%m"), "%Y-%m", "month"),
    "compact": (_texts("%Y%m%d"), "%Y%m%d", "day"),
    "offset": ([f"{text}T08:15:30+02:00" for text in _texts("%Y-%m-%d")], "%Y-%m-%dT%H:%M:%S+02:00", "second"),
    "time of day": ([f"{i % 24:02}:{i % 60:02}" for i in range(N)], "%H:%M", "minute"),
    "day first": (_texts("%d/%m/%Y"), "%d/%m/%Y", "day"),
}


@pytest.mark.parametrize("name", DATES)
def test_dates_with_some_zero_dates(name):
    texts, format, resolution = DATES[name]
    draft = _draft(_with(texts, "0000-00-00"))
    kind = draft.schema.columns["x"]
    assert isinstance(kind, DateTime)
    assert (kind.format, kind.resolution, kind.nullable) == (format, resolution, True)
    assert draft.schema.missing_of["x"][0] == "0000-00-00"
    proposed = _draft(texts, exact=False).schema.columns["x"]
    if name == "time of day":  # the whole day is public
        assert (proposed.lower, proposed.upper) == ("00:00", "23:59:59.999999")
    else:
        assert proposed == Open(kind="datetime", format=format, resolution=resolution)


def test_another_format_is_named_where_it_reads_too():
    texts = [f"{i % 12 + 1:02}/{i % 11 + 1:02}/2021" for i in range(N)]
    assert "the format could also be %m/%d/%Y" in _draft(texts).to_yaml()
    assert "could also be" not in _draft(DATES["months"][0]).to_yaml()


@pytest.mark.parametrize("odd", ["99991231", "99999999", "00000000"])
def test_digits_that_stand_for_no_date(odd):
    days = [str(day).replace("-", "") for day in DAYS]
    draft = _draft(_with(days, odd))
    kind = draft.schema.columns["x"]
    assert isinstance(kind, DateTime)
    assert (kind.format, kind.nullable, kind.upper < "2022") == ("%Y%m%d", True, True)
    assert draft.schema.missing_of["x"][0] == odd
    assert f"'{odd}' ({N // 10} cells): read as missing" in draft.to_yaml()


def test_digits_are_dates_only_if_all_are():
    assert isinstance(_draft(_with(DATES["compact"][0], "99")).schema.columns["x"], Integer)
    assert isinstance(_draft(["20210101", "20210203"] * (N // 2)).schema.columns["x"], Categorical)


def test_zeros_before_digits_are_codes():
    assert isinstance(_draft([f"{i % 40:03}" for i in range(N)]).schema.columns["x"], Categorical)


@pytest.mark.parametrize("write", ["{} days 00:15:00", "{}:20:00"])
def test_durations_are_said(write):
    text = _draft([write.format(30 + i) for i in range(N)]).to_yaml()
    assert "x: {kind: identifier}" in text
    assert "They are durations, which have no kind" in text
    assert "durations" not in _draft([f"ward {i}" for i in range(N)]).to_yaml()


def test_rows_above_the_names_of_a_workbook_are_said(tmp_path):
    rows = [[30 + i, "f" if i % 2 else "m"] for i in range(40)]
    titled = workbook(tmp_path / "titled.xlsx", ["Report of 2021"], ["age", "sex"], *rows)
    with pytest.raises(DataError, match=r"titled.xlsx .* name every column, got cells under no name"):
        draft_schema(open_source(titled))
    noted = workbook(tmp_path / "noted.xlsx", ["age", "sex"], [*rows[0], "see below"], *rows[1:])
    draft = draft_schema(open_source(noted))
    assert "cells under no name beside 1 records are not read (row 1 below the header, ...)" in draft.to_yaml()
    assert list(draft.schema.columns) == ["age", "sex"]
    sex = {"kind": "categorical", "categories": ["f", "m"]}
    schema = Schema.from_dict({"columns": {"age": {"kind": "integer", "lower": 0, "upper": 99}, "sex": sex}})
    assert [(found.problem, found.count) for found in validate(open_source(noted), schema)] == [("shortened", 1)]
    plain = workbook(tmp_path / "plain.xlsx", ["age", "sex"], *rows)
    assert not validate(open_source(plain), schema)


def test_lines_that_are_not_read_are_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",a;b\n".replace(",", "") + "".join(f"{age};x;\n" for age in AGES) + "1\n2;3;4\n")
    text = draft_schema(open_source(path)).to_yaml()
    assert "# In the file: 2 records cannot be read (record 601: 1 cells, ...)" in text
    assert "# In the file: empty cells beyond the header at the end of 600 records" in text
    path.write_text(",age\n" + "".join(f"{i},{age}\n" for i, age in enumerate(AGES)))
    assert "perhaps an index" in draft_schema(open_source(path)).to_yaml()
    path.write_text("Register of 2021\n\nage;sex\n" + "".join(f"{age};f\n" for age in AGES))
    with pytest.raises(DataError, match="take them out"):
        draft_schema(open_source(path))
