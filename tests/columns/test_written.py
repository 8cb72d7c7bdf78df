"""Numbers as people write them: what one text reads as, how numbers are written, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.columns import Continuous, Integer
from sfumato.columns.written import Written
from sfumato.errors import SchemaError
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema

GERMAN = Written(decimal=",", thousands=".")
NAN = float("nan")


@pytest.mark.parametrize(
    ("written", "cells", "numbers"),
    [
        (Written(decimal=","), ["162,9", "-0,5", "7", ",5", "1,2,3", "162.9"], [162.9, -0.5, 7, 0.5, NAN, 162.9]),
        (GERMAN, ["3.668,35", "1.234.567", "12", "12.34,5", "3668,35"], [3668.35, 1234567, 12, NAN, 3668.35]),
        (
            Written(thousands=",", prefix="$"),
            ["$1,234.50", "-$5", "$-5", "$ 7", "8", "$", "-$-5"],
            [1234.5, -5, -5, 7, 8, NAN, NAN],
        ),
        (Written(suffix="%"), ["21.0%", "21.0 %", "21", "%", "2%1"], [21, 21, 21, NAN, NAN]),
        (Written(thousands="\u00a0"), ["1\u00a0234", "1 234", "12 34"], [1234, 1234, NAN]),
        (Written(thousands="'", suffix=" CHF"), ["1'234 CHF", "1\u2019234.5CHF"], [1234, 1234.5]),
        (
            Written(thousands=",", prefix="$", negative="parentheses"),
            ["($1,234.50)", "$(7)", "( $ 12 )", "-3", "4", "(-12)", "((12))", "(12", "12)", "()", "5(12)", "(5)6"],
            [-1234.5, -7, -12, -3, 4, *[NAN] * 7],
        ),
        (
            Written(decimal=",", thousands=".", suffix=" EUR", negative="trailing"),
            ["1.234,50-", "12- EUR", "12 EUR-", "-3", "4,5", "12-3", "1-2-", "-3-", "-", "--"],
            [-1234.5, -12, -12, -3, 4.5, *[NAN] * 5],
        ),
    ],
)  # fmt: skip
def test_a_cell_is_read_as_declared_or_as_a_plain_number(written, cells, numbers):
    kind = Continuous(lower=-1e7, upper=1e7, nullable=True, written=written)
    read, valid = kind.read(pa.array(cells), ())
    np.testing.assert_allclose(read, numbers)
    np.testing.assert_array_equal(valid, ~np.isnan(numbers))


@pytest.mark.parametrize(
    ("written", "plain", "text"),
    [
        (GERMAN, "-3668.35", "-3.668,35"),
        (GERMAN, "999.50", "999,50"),
        (Written(thousands=",", prefix="$"), "-1234567.5", "-$1,234,567.5"),
        (Written(decimal=",", suffix=" %"), "21.0", "21,0 %"),
        (Written(), "1234.5", "1234.5"),
        (Written(thousands=",", prefix="$", negative="parentheses"), "-1234.5", "($1,234.5)"),
        (Written(suffix=" EUR", negative="trailing"), "-0.5", "0.5- EUR"),
        (Written(suffix=" EUR", negative="trailing"), "0.5", "0.5 EUR"),
    ],
)
def test_a_number_is_written_so_that_it_reads_back(written, plain, text):
    assert written.text(plain) == text
    assert float(written.number(text)) == float(plain)


def test_columns_of_numbers_give_their_text_back():
    cells = pa.array(["$1,234.50", "-$7.00", "$0.25", None])
    kind = Continuous(lower=-1e4, upper=1e4, resolution=0.01, nullable=True, written=Written(thousands=",", prefix="$"))
    assert kind.decode(kind.code(cells, missing=()), pa.string()).equals(cells)
    whole = Integer(lower=0, upper=10**7, written=Written(decimal=",", thousands="."))
    assert whole.decode(whole.code(pa.array(["1.234.567"]), missing=()), pa.string()).to_pylist() == ["1.234.567"]


def test_numbers_that_are_stored_as_such_are_read_as_they_are():
    kind = Continuous(lower=0, upper=10, written=GERMAN)
    assert kind.read(pa.array([1.234]), ())[0].tolist() == [1.234]


def test_one_cell_changes_no_other_code():
    written = Written(decimal=",", thousands=".", suffix="%")
    kinds = [
        Continuous(lower=0, upper=9999, nullable=True, written=written),
        Integer(lower=0, upper=9999, written=written),
    ]
    cells = ["162,9", "3.668,35%", "12.5", "x", "?", "1e3"]
    for kind in kinds:
        before = kind.code(pa.array(cells), missing=("?",))
        for place in range(len(cells)):
            for other in ("", "1,234.50", "inf", "true", "Ja", "\ufffd", "9" * 400):
                changed = [*cells[:place], other, *cells[place + 1 :]]
                after = kind.code(pa.array(changed), missing=("?",))
                np.testing.assert_array_equal(np.delete(after, place), np.delete(before, place))


def test_given_values_may_be_written_so():
    kind = Continuous(lower=0, upper=9999, resolution=0.01, written=GERMAN)
    assert kind.given("rent", "3.668,35", pa.float64()).stored.to_pylist() == [3668.35]


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        ({"decimal": ",", "thousands": ","}, "thousands other than decimal"),
        ({"decimal": ";"}, "decimal"),
        ({"thousands": "x"}, "thousands"),
        ({"prefix": "=A"}, "prefix"),
        ({"suffix": "1"}, "suffix"),
        ({"prefix": "-"}, "prefix"),
        ({"percent": "yes"}, "percent"),
        ({"percent": True, "suffix": " %"}, "percent or suffix"),
        ({"currency": "$", "prefix": "$"}, "currency or prefix"),
        ({"colour": 1}, "'colour'"),
        ("a comma", "written to be a mapping"),
    ],
)
def test_what_cannot_be_is_refused(facts, named):
    with pytest.raises(SchemaError, match=named):
        Continuous(lower=0, upper=1, written=facts)


@pytest.mark.parametrize("kind", [Continuous(lower=0, upper=5000, written={"decimal": ",", "thousands": "."})])
@pytest.mark.parametrize("odd", ["3.668,35", "x", None, "1.234"])
def test_numbers_of_a_pandas_column_are_read_alike_whatever_stands_among_them(kind, odd):
    """One cell of text makes a column of floats one of objects: the floats in it stay what they were."""
    schema = Schema(columns={"a": kind}, rows=4)
    numbers = [1.234, 17.0, 1234.5]
    plain = PrivateData(open_source(pd.DataFrame({"a": [*numbers, 2.0]})), schema)
    mixed = PrivateData(open_source(pd.DataFrame({"a": pd.Series([*numbers, odd], dtype=object)})), schema)
    codes = [next(iter(data.coded()))["a"][:3] for data in (plain, mixed)]
    np.testing.assert_array_equal(*codes)
