"""Cells of data frames: what one cell does to the type of a column changes nothing of the others."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.columns import Categorical, Continuous, DateTime, Integer
from sfumato.columns.written import Written
from sfumato.io.frames import cell_text
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema


def _codes(frame, kind):
    data = PrivateData(open_source(frame), Schema(columns={"v": kind}, rows=3))
    return np.concatenate([rows["v"] for rows in data.coded()])


def test_a_long_fraction_changes_no_other_label_of_decimals():
    kind = Categorical(categories=("1.5", "2"), other="other")
    scales = [pa.decimal128(3, 2), pa.decimal128(12, 6)]
    lasts = [Decimal("1.50"), Decimal("0.000001")]
    tables = [
        pa.table({"v": pa.array([Decimal("1.5"), Decimal(2), last], scale)})
        for scale, last in zip(scales, lasts, strict=True)
    ]
    before, after = (_codes(table.to_pandas(), kind)[:2].tolist() for table in tables)
    assert before == after == [0, 1]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("1.500", "1.5"), ("200", "200"), ("2E+2", "200"), ("-0.00", "0"), ("0E-500", "0"), ("NaN", None),
        ("sNaN", None), ("-Infinity", "-Infinity"), ("1E+999999999", "1E+999999999"), ("1E-9", "0.000000001"),
    ],
)  # fmt: skip
def test_the_text_of_a_decimal_has_no_digits_of_its_column(number, text):
    assert cell_text(Decimal(number)) == text


def test_a_complex_number_makes_no_other_number_missing():
    kind = Integer(lower=0, upper=9, nullable=True)
    before = _codes(pd.DataFrame({"v": [3, 4, 5]}), kind)
    after = _codes(pd.DataFrame({"v": [3, 4, 1 + 2j]}), kind)
    np.testing.assert_array_equal(after[:2], before[:2])
    assert np.isnan(after[2])


def test_one_text_that_is_no_utf_8_refuses_no_frame_of_arrow_types():
    texts = pa.array([b"red", b"blue", b"\xe9"]).buffers()
    table = pa.table({"v": pa.Array.from_buffers(pa.string(), 3, texts)})
    kind = Categorical(categories=("red", "blue", "é"))
    assert _codes(table.to_pandas(types_mapper=pd.ArrowDtype), kind).tolist() == [0, 1, 2]


FORMS = {
    "dates": (
        DateTime(lower="2020-01-01", upper="2020-12-31", format="%Y-%d-%m"),
        [dt.date(2020, 2, 3), dt.date(2020, 11, 12), dt.date(1850, 1, 2)],
    ),
    "moments": (
        DateTime(lower="2020-01-01", upper="2020-12-31", resolution="second", format="%Y-%d-%m %H:%M:%S"),
        [dt.datetime(2020, 2, 3, 4, 5, 6), dt.datetime(2020, 11, 12, 1, 2, 3, 999_999), dt.datetime(2022, 1, 2)],
    ),
    "years of two digits": (
        DateTime(lower="2000-01-01", upper="2030-12-31", format="%d.%m.%y"),
        [dt.date(2020, 2, 3), dt.date(1850, 1, 2), dt.date(2120, 1, 2)],
    ),
    "times of day": (
        DateTime(lower="00:00", upper="23:59", resolution="minute", format="%H:%M"),
        [dt.time(1, 2), dt.time(23, 59, 59), dt.time(0, 0, 30)],
    ),
    "numbers": (
        Continuous(lower=0, upper=2000, written=Written(decimal=",", thousands=".")),
        [1.234, 1234.0, 0.5],
    ),
}


@pytest.mark.parametrize("odd", ["x", None, b"x", {"a": 1}])
@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", FORMS)
def test_an_object_leaves_the_numbers_and_dates_beside_it_as_they_were(name, library, odd):
    kind, cells = FORMS[name]
    expected = _codes(pa.table({"v": cells}), kind)
    assert len(set(expected.tolist())) > 1
    if library == "pandas":
        frame = pd.DataFrame({"v": pd.Series([*cells, odd], dtype=object)})
    else:
        pl = pytest.importorskip("polars")
        frame = pl.DataFrame([pl.Series("v", [*cells, odd], dtype=pl.Object)])
    np.testing.assert_array_equal(_codes(frame, kind)[:-1], expected)
