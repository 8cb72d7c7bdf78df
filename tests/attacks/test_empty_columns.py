"""An empty column, and the same with one value: its type, which that value decides, changes nothing that a fit says."""

import datetime as dt
import warnings

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato
from sfumato.errors import SchemaWarning, SfumatoError

N = 400
ALONE = {
    "a whole number": 3, "a long number": 2**60, "a number": 1.5, "a text": "x", "true": True, "bytes": b"a",
    "a date": dt.date(2020, 1, 1), "a moment": dt.datetime(2020, 1, 1, 8), "a time": dt.time(8),
    "a duration": dt.timedelta(1), "a list": [1, 2], "a list of texts": ["a"], "a mapping": {"a": 1},
    "a list of lists": [[1]],
}  # fmt: skip


def cells(value):
    return {"age": [20 + i % 50 for i in range(N)], "x": [*[None] * (N - 1), value]}


def parquet(table, path):
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path)
    return path


def glob(value, folder):
    """Two files, of which the first has nothing in the column; each has the types of its own cells."""
    whole = cells(value)
    for i, part in enumerate((slice(0, N // 2), slice(N // 2, N))):
        parquet(pa.table({name: column[part] for name, column in whole.items()}), folder / "parts" / f"{i}.parquet")
    return str(folder / "parts" / "*.parquet")


def of_pandas(value, folder):
    pd.DataFrame(cells(value)).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


DOORS = {
    "pyarrow": lambda value, folder: pa.table(cells(value)),
    "polars": lambda value, folder: pl.DataFrame(cells(value)),
    "pandas": lambda value, folder: pd.DataFrame(cells(value)),
    "Parquet": lambda value, folder: parquet(pa.table(cells(value)), folder / "t.parquet"),
    "Parquet of pandas": of_pandas,
    "glob": glob,
    "function": lambda value, folder: lambda: pa.table(cells(value)).to_batches(50),
}


def said(data):
    """Everything that leaves a fit without a schema beside noise: its warnings, its refusal, or its schema and cost."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            release = sfumato.fit(data, epsilon=1.0, delta=1e-6, seed=1, rows_are_records=True)
        except SfumatoError as error:
            return str(error), None, None
    texts = sorted(str(warning.message) for warning in warned if issubclass(warning.category, SchemaWarning))
    return texts, release.schema.to_yaml(), release.certificate.events


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return {door: said(make(None, tmp_path_factory.mktemp("empty"))) for door, make in DOORS.items()}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("value", ALONE)
def test_one_value_in_an_empty_column_decides_nothing(tmp_path, empty, door, value):
    assert said(DOORS[door](ALONE[value], tmp_path)) == empty[door]
    assert "x: {kind: identifier" in empty[door][1]


@pytest.mark.parametrize("door", DOORS)
def test_a_schema_that_names_it_reads_all_cells_as_missing(tmp_path, door):
    for entry in ({"kind": "integer", "lower": 0, "upper": 9, "nullable": True}, {"kind": "boolean", "nullable": True},
                  {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31", "nullable": True},
                  {"kind": "categorical", "categories": ["a", "b"], "nullable": True}):  # fmt: skip
        schema = {"columns": {"age": (0, 99), "x": entry}, "rows": N}
        data = DOORS[door](None, tmp_path)
        release = sfumato.fit(data, schema, epsilon=50.0, delta=1e-6, seed=1, rows_are_records=True)
        assert pd.isna(pa.table({"x": release.sample(200, seed=1)["x"]}).column("x").to_pandas()).mean() > 0.9
