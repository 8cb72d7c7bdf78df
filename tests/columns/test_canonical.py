"""The canonical text of a cell: one for all that programs write of one value, and of each text by itself."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.columns import Categorical, DateTime, ItemSet
from sfumato.columns.canonical import BEYOND, canonical, form_text
from sfumato.columns.levels import MISSING, UNKNOWN
from sfumato.errors import SchemaError
from sfumato.records.units import unit_names

SAME = [
    ("7", "7.0", "7.00", "7.", "7e+00", "7.0e+00"),
    ("0", "-0", "0.0", "-0.0"),
    ("-12", "-12.0", "-1.2e+01"),
    ("100000", "1e+05", "1.0E+05", "100000.0"),
    ("0.00001", "1e-05", "1.0e-05")[1:],
    ("0.1", "0.10000000149011612", "0.100000001490116"),
    ("true", "True", "TRUE"),
    ("1.5", "1.50", "1.500"),
    ("10000000", "1.0E7", "1.0e+07"),
    (
        "2021-01-01",
        "2021-01-01 00:00",
        "2021-01-01 00:00:00",
        "2021-01-01T00:00:00.000",
        "2021-01-01 00:00:00.000000000",
    ),
    ("2021-01-01 08:30:00", "2021-01-01 08:30", "2021-01-01T08:30:00.000000", "2021-01-01 08:30:00.0"),
    ("2021-01-01 08:30:00.500", "2021-01-01 08:30:00.5", "2021-01-01 08:30:00.500000", "2021-01-01T08:30:00.500000000"),
    ("2021-01-01 00:00:00+01:00", "2021-01-01 00:00:00.000+01:00", "2021-01-01T00:00:00+01:00"),
    ("1 day", "1 days", "1 days 00:00:00", "1 day, 0:00:00", "24:00:00", "1 days 00:00:00.000000"),
    ("08:15:00", "8:15:00", "0 days 08:15:00", "0 days 08:15:00.000000"),
    ("00:00:00", "0 days", "0:00:00", "0 days 00:00:00"),
    ("-1 days 23:00:00", "-1 days +23:00:00", "-1 day, 23:00:00"),
    ("2 days 00:00:00.25", "2 days, 0:00:00.250000", "2 days 00:00:00.250000000"),
    ("(0, 10]", "(0.0, 10.0]"),
    ("[2021-01-01, 2021-01-02)", "[2021-01-01 00:00:00, 2021-01-02 00:00:00)"),
]
APART = [
    "007",
    "7",
    "7.5",
    "007.50",
    "1E5",
    "1e5",
    "12345e67",
    "12:30",
    "1 week",
    "5 days later",
    "(a",
    "V57",
    "2021-01",
    "T",
    "2021-01-01T08",
]
ROUNDED = [
    "9007199254740992",
    "110101199003070000",
    "1.1010119900307e+17",
    "1.10101E+17",
    "1e20",
    "110101199003070000.0",
]


@pytest.mark.parametrize("texts", SAME, ids=lambda texts: texts[0])
def test_what_programs_write_of_one_value_has_one_text(texts):
    assert set(canonical(pa.array(texts)).to_pylist()) == {texts[0]}


def test_a_text_is_read_alike_beside_one_of_another_form():
    texts = pa.array(["2021-01-01T08", "2021-01-01T08:30", "2021-01-01T083000"])
    assert canonical(texts).to_pylist() == ["2021-01-01T08", "2021-01-01 08:30:00", "2021-01-01T083000"]


def test_an_interval_whose_end_has_no_text_has_none():
    assert canonical(pa.array(["(110101199003070011, 2)"])).to_pylist() == [None]


def test_codes_and_words_stay_as_they_are():
    assert canonical(pa.array(APART)).to_pylist() == APART
    assert len(set(APART)) == len(APART)


def test_numbers_that_a_float_may_have_rounded_have_none():
    assert canonical(pa.array(ROUNDED)).to_pylist() == [None] * len(ROUNDED)
    assert canonical(pa.array(["9007199254740991"])).to_pylist() == ["9007199254740991"]
    assert form_text(pa.array(ROUNDED)).to_pylist() == [BEYOND] * len(ROUNDED)


def test_what_was_text_from_the_start_stays_letter_by_letter():
    texts = ["110101199003070000", "7.0", "250.00", "2021-01-01 00:00:00", "True", "1E20"]
    assert canonical(pa.array(texts), exact=True).to_pylist() == texts
    assert canonical(pa.array(ROUNDED[2:]), exact=True).to_pylist() == [None] * 4


PIECES = [
    "7",
    "0",
    "08",
    ":30",
    "-",
    ".",
    "e+",
    "E",
    " days",
    " day, ",
    ":",
    "00:00",
    "2021-01-01",
    " ",
    "T",
    "(",
    ", ",
    "]",
    "True",
    "9" * 17,
    "x",
]


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=7).map("".join) | st.text(max_size=12), max_size=8))
def test_each_text_by_itself_and_once_for_all(texts):
    whole = canonical(pa.array(texts, pa.string())).to_pylist()
    assert whole == [canonical(pa.array([text])).to_pylist()[0] for text in texts]
    known = [text for text in whole if text is not None]
    assert canonical(pa.array(known, pa.string())).to_pylist() == known


@pytest.mark.parametrize(
    "text", ["9" * 10**6, "-" + "9" * 10**6 + ".0", "(" * 10**5, "0." + "1" * 10**6, "9" * 9 + ":00:00"]
)
def test_no_text_is_too_long(text):
    assert len(canonical(pa.array([text])).to_pylist()) == 1


# where kinds, units, keys and items meet it


def test_parents_and_categories_are_different_values():
    with pytest.raises(SchemaError, match="different values"):
        Categorical(categories=("1.0", "a"), parents=("x", "1"))
    assert Categorical(categories=("1.0", "a"), parents=("x", "1"), exact=True).labels == ("x", "1")


@pytest.mark.parametrize("token", ["-99", "99999999999999999999", "2021-01-01"])
@pytest.mark.parametrize("exact", [False, True])
def test_a_token_beside_labels(token, exact):
    """Whole numbers of 2^53 and more may all be the token; what is exact is compared letter by letter."""
    kind = Categorical(categories=("a", "b"), exact=exact)
    alike = {"-99": "-99.0", "99999999999999999999": "1e+20", "2021-01-01": "2021-01-01 00:00:00"}[token]
    found = kind.find(pa.array([token, alike, "a", "c"]), (token,)).tolist()
    assert found == [MISSING, UNKNOWN if exact else MISSING, 0, UNKNOWN]


@pytest.mark.parametrize("exact", [False, True])
def test_a_token_beside_units(exact):
    names = unit_names(pa.array(["-99", "-99.0", "7", "7.0"]), ("-99",), exact=exact).to_pylist()
    assert names == ([None, "-99.0", "7", "7.0"] if exact else [None, None, "7", "7"])


def test_a_set_is_parted_after_its_cell_is_read():
    """`1.5` is one value to the program that wrote the column, as `1.50`, whatever stands between items."""
    kind = ItemSet(items=("1", "5", "50"), max_length=2, separator=".")
    codes = kind.code(pa.array(["1.5", "1.50"]), missing=())
    assert kind.decode(codes, pa.string()).to_pylist() == ["1.5", "1.5"]


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64(), pa.string()])
def test_the_type_of_a_column_of_sets_refuses_nothing(type_):
    assert ItemSet(items=("1", "2"), max_length=2, separator=";").reading_fault(type_) is None


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_duration_is_named_alike_in_any_unit(unit):
    spans = pa.array([86_400 * 10**9, 3_600 * 10**9], pa.duration("ns")).cast(pa.duration(unit))
    assert unit_names(spans, ()).to_pylist() == ["1 day", "01:00:00"]


def test_moments_written_without_marks_are_dates_to_the_last_digit():
    """A form of 17 digits, which is a whole number of 2^53 or more, is still read as the moment that it says."""
    kind = DateTime(lower="2020-01-01", upper="2022-01-01", format="%Y%m%d%H%M%S%3f", resolution="second")
    codes = kind.code(pa.array(["20210101083000000", "20210102000000000"]), missing=())
    assert kind.decode(codes, pa.string()).to_pylist() == ["20210101083000000", "20210102000000000"]
