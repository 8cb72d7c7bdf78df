"""What a text is: numbers, decimals, codes, odd numbers."""

import math

import numpy as np
import pyarrow as pa
import pytest

from sfumato.columns import text_forms

# text, decimals (-1: no number), a code, an odd number
TEXTS = [
    ("7", 0, False, None),
    ("7.0", 0, False, None),
    ("7.00", 0, False, None),
    ("7.50", 2, False, None),
    ("-0", 0, False, None),
    ("+5", 0, False, None),
    (".5", 1, False, None),
    ("5.", 0, False, None),
    ("1e3", 0, False, None),
    ("1.5E-3", 4, False, None),
    ("1.25e1", 1, False, None),
    ("0e-9", 0, False, None),
    ("0.5", 1, False, None),
    ("\u22125", 0, False, None),
    ("\uff17", 0, False, None),
    ("\u0667\u066b\u0665", 1, False, None),
    ("9" * 300, 0, False, None),
    ("007", 0, True, None),
    ("00", 0, True, None),
    ("-01", 0, True, None),
    ("+49301234567", 0, True, None),
    ("A12", -1, True, None),
    ("12a", -1, True, None),
    ("12-345", -1, True, None),
    ("(030) 123", -1, True, None),
    ("1.2.3", -1, True, None),
    ("<5", -1, False, "limit"),
    ("90+", -1, False, "limit"),
    (">= 100", -1, False, "limit"),
    ("\u2265100", -1, False, "limit"),
    ("inf", -1, False, "infinite"),
    ("-Infinity", -1, False, "infinite"),
    ("#DIV/0!", -1, False, "error"),
    ("1,5", -1, False, None),
    ("--1", -1, False, None),
    ("+-1", -1, False, None),
    (".", -1, False, None),
    ("e5", -1, True, None),
    ("red", -1, False, None),
    ("", -1, False, None),
    (None, -1, False, None),
]


@pytest.mark.parametrize(("text", "decimals", "is_code", "odd"), TEXTS)
def test_a_text_is_what_it_is_whatever_stands_beside_it(text, decimals, is_code, odd):
    for cells in (pa.array([text], pa.string()), pa.array(["1", text, "x"], pa.large_string())):
        place = len(cells) // 2
        assert text_forms.decimals(cells)[place] == decimals
        assert text_forms.is_number(cells)[place] == (decimals >= 0)
        assert text_forms.is_whole(cells)[place] == (decimals == 0)
        assert text_forms.is_code(cells)[place] == is_code
        assert text_forms.odd_numbers(cells)[place].as_py() == odd


def test_no_text_at_all():
    nothing = pa.array([], pa.string())
    assert len(text_forms.decimals(nothing)) == len(text_forms.odd_numbers(nothing)) == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9007199254740993", 2**53 + 1), ("+9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)),
        ("9007199254740993.0", 2**53 + 1), ("9.007199254740993e15", 2**53 + 1), ("1e30", 2**63 - 1), ("7.0", 7),
        ("99999999999999999999999", 2**63 - 1), ("\u22129007199254740993", -(2**53) - 1), ("true", 1),
    ],
)  # fmt: skip
def test_whole_numbers_are_exact(text, value):
    values, valid = text_forms.integers(pa.array([text, "red"]))
    assert (values[0], valid.tolist()) == (value, [True, False])


@pytest.mark.parametrize(
    ("text", "value"), [("-inf", -math.inf), ("\u221e", math.inf), ("NaN", math.nan), ("+.5", 0.5)]
)
def test_numbers(text, value):
    np.testing.assert_array_equal(text_forms.floats(pa.array([text])), [value])
