import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Identifier, Image, Integer
from sfumato.columns.sets import ItemSet
from sfumato.desk.drafting import draft_schema
from sfumato.desk.survey import MOST_DISTINCT
from sfumato.desk.validation import validate
from sfumato.errors import DataError
from sfumato.io.sources import open_source
from sfumato.schema.schema import Schema

N = 600


def _cycle(values, n=N):
    return [values[i % len(values)] for i in range(n)]


def _draft(column, chunk_rows=100):
    """The kind drafted for one column that stands beside a plain one."""
    table = pa.table({"column": column, "other": [True] * len(column)})
    return draft_schema(open_source(table, chunk_rows=chunk_rows), exact=True).schema.columns["column"]


CASES = {
    "codes": (pa.array(_cycle([3, 1, 2])), Categorical(categories=("1", "2", "3"))),
    "integers": (pa.array(range(-5, 100)), Integer(lower=-5, upper=99)),
    "big integers": (pa.array([2**60, 2**60 + 7]), Integer(lower=2**60, upper=2**60 + 7)),
    "integers as float": (
        pa.array([*map(float, range(50)), None]),
        Integer(lower=0, upper=49, nullable=True),
    ),
    "NaN is missing": (
        pa.array([*np.arange(50.0), np.nan]),
        Integer(lower=0, upper=49, nullable=True),
    ),
    "two decimals": (
        pa.array([0.25, 1.5, 2.0]),
        Continuous(lower=0.25, upper=2, resolution=0.01),
    ),
    "float32": (
        pa.array([0.1, 1.7], pa.float32()),
        Continuous(lower=float(np.float32(0.1)), upper=float(np.float32(1.7)), resolution=0.1),
    ),
    "no resolution": (pa.array([0.1, 1 / 3]), Continuous(lower=0.1, upper=1 / 3)),
    "infinities have no bound": (
        pa.array([0.5, 2.5, np.inf]),
        Continuous(lower=0.5, upper=2.5, resolution=0.1),
    ),
    "decimal": (
        pa.array(["1.50", "2.25"]).cast(pa.decimal128(5, 2)),
        Continuous(lower=1.5, upper=2.25, resolution=0.01),
    ),
    "boolean": (pa.array([True, False, None]), Boolean(nullable=True)),
    "true and false": (pa.array(_cycle(["true", "false"])), Boolean()),
    "yes and no": (pa.array(_cycle(["yes", "no"])), Categorical(categories=("no", "yes"))),
    "labels": (
        pa.array(_cycle([" b", "a", "NA", None])),
        Categorical(categories=("NA", "a", "b"), nullable=True),
    ),
    "pandas categories": (
        pa.array(_cycle(["b", "a"])).dictionary_encode(),
        Categorical(categories=("a", "b")),
    ),
    "names": (pa.array([f"name {i}" for i in range(N)]), Identifier()),
    "too many texts": (
        pa.array(_cycle([f"t{i}" for i in range(MOST_DISTINCT + 1)], 3 * MOST_DISTINCT)),
        Identifier(),
    ),
    "integers as text": (pa.array([str(i) for i in range(100)]), Integer(lower=0, upper=99)),
    "decimals as text": (
        pa.array(["1.50", "0.25", ""]),
        Continuous(lower=0.25, upper=1.5, resolution=0.01, nullable=True),
    ),
    "exponents as text": (pa.array(["1e-3", "2.5"]), Continuous(lower=0.001, upper=2.5)),
    "leading zeros": (
        pa.array(_cycle(["007", "010"])),
        Categorical(categories=("007", "010")),
    ),
    "dates": (
        pa.array([dt.date(2020, 1, 31), dt.date(1999, 2, 1)]),
        DateTime(lower="1999-02-01", upper="2020-01-31"),
    ),
    "timestamps": (
        pa.array([dt.datetime(2020, 1, 31), dt.datetime(1999, 2, 1, 3, 4, 5), None]),
        DateTime(
            lower="1999-02-01 03:04:05",
            upper="2020-01-31 00:00:00",
            resolution="second",
            nullable=True,
        ),
    ),
    "dates as text": (
        pa.array(["2020-01-31", "1999-02-01"]),
        DateTime(lower="1999-02-01", upper="2020-01-31"),
    ),
    "dates with a T": (
        pa.array(["2020-01-31T10:00:00", "1999-02-01T00:00:00"]),
        DateTime(
            lower="1999-02-01 00:00:00",
            upper="2020-01-31 10:00:00",
            resolution="hour",
            format="%Y-%m-%dT%H:%M:%S",
        ),
    ),
    "days first": (
        pa.array(["01/02/1999", "31/01/2020"]),
        DateTime(lower="1999-02-01", upper="2020-01-31", format="%d/%m/%Y"),
    ),
    "months first": (
        pa.array(["02/01/1999", "01/31/2020"]),
        DateTime(lower="1999-02-01", upper="2020-01-31", format="%m/%d/%Y"),
    ),
    "no such day": (
        pa.array(_cycle(["2020-02-30", "2020-02-28"])),
        Categorical(categories=("2020-02-28", "2020-02-30")),
    ),
    "constant": (pa.array([7] * N), Categorical(categories=("7",))),
    "nothing": (pa.nulls(9), Identifier()),
    "no number at all": (pa.array([np.nan] * 9), Identifier()),
    "lists": (pa.array([[1], [2]]), ItemSet(n_items=3, max_length=1)),
    "lists of lists": (pa.array([[[1]], [[2]]]), Identifier()),
    "empty lists": (pa.array([[], []], pa.list_(pa.int64())), Identifier()),
    "times of day": (
        pa.array([dt.time(1), dt.time(2)]),
        DateTime(lower="01:00:00", upper="02:00:00", resolution="hour", format="%H:%M:%S.%f"),
    ),
    "beyond int64": (pa.array([2**64 - 1, *range(50)], pa.uint64()), Identifier()),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("chunk_rows", [7, 65_536])
def test_the_kind_of_a_column(name, chunk_rows):
    column, kind = CASES[name]
    if chunk_rows == 7 and len(column) > N:
        return
    assert _draft(column, chunk_rows) == kind


@pytest.mark.parametrize("name", CASES)
def test_a_draft_changes_no_cell(name):
    column, _ = CASES[name]
    source = open_source(pa.table({"column": column, "other": [True] * len(column)}))
    findings = validate(source, draft_schema(source, exact=True).schema)
    harmless = {"infinities have no bound": "clamped"}
    assert {finding.problem for finding in findings} <= {"missing", harmless.get(name)}


def test_late_text_makes_a_column_of_numbers_text():
    column = pa.array(["1"] * 300 + ["x"] * 300)
    assert _draft(column) == Categorical(categories=("1", "x"))


def test_the_file_reads_back_and_warns_at_its_top(tmp_path):
    frame = pd.DataFrame({"age": range(100), "a: b": ["no", "1"] * 50, "when": ["2020-01-01"] * 100})
    draft = draft_schema(open_source(frame), exact=True)
    text = draft.to_yaml()
    assert text.startswith("# A draft")
    assert "READ OFF THE\n# RECORDS" in text
    assert "rows: 100  # counted" in text
    assert "  # whole numbers: replace the bounds\n  age: {" not in text  # every value differs
    assert "kind: identifier\n  age:" in text
    path = tmp_path / "draft.yaml"
    path.write_text(text)
    assert Schema.load(path) == draft.schema
    assert yaml.safe_load(text)["rows"] == 100
    assert next(iter(yaml.safe_load(text))) == "draft"
    assert draft.schema.draft


def test_csv_and_images(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age,sex\n" + "31,f\n44,m\n,f\n" * 20)
    columns = draft_schema(open_source(path), exact=True).schema.columns
    assert columns["age"] == Categorical(categories=("31", "44"), nullable=True)
    assert columns["sex"] == Categorical(categories=("f", "m"))
    images = {"x": np.zeros((60, 4, 4), np.uint8), "y": np.arange(60) % 3}
    columns = draft_schema(open_source(images)).schema.columns
    assert columns["x"] == Image(shape=(4, 4))
    assert columns["y"] == Categorical(categories=("0", "1", "2"))
    floats = {"x": np.full((3, 2, 2), [[np.nan, -2], [0, 9]], np.float32)}
    assert draft_schema(open_source(floats)).schema.columns["x"] == Image(
        shape=(2, 2), dtype="float32", lower=-2, upper=9
    )


def test_nothing_to_draft_from_is_a_data_error():
    with pytest.raises(DataError, match="the pyarrow table"):
        draft_schema(open_source(pa.table({"a": pa.array([], pa.int64())})))


def test_a_draft_is_not_printed_by_accident():
    draft = draft_schema(open_source(pa.table({"a": ["SECRET"] * 9})))
    assert "SECRET" not in repr(draft)
