"""Forms of dates: which one a text has, and which one a column has."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from sfumato.columns.date_forms import DATE_FORMS, chosen_form, date_forms
from sfumato.columns.date_text import format_dates, format_fault, has_date, parse_dates, written
from sfumato.columns.dates import is_zero_date
from sfumato.columns.wall_clock import MICROSECONDS, moments_of, steps_of

DAYS = [dt.datetime(2020, 1, 1) + dt.timedelta(days=day) for day in range(0, 900, 7)]
TIMES = [day + dt.timedelta(minutes=577 * i) for i, day in enumerate(DAYS)]

COLUMNS = {
    **dict.fromkeys(
        [
            "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%-d/%-m/%Y", "%-m/%-d/%Y", "%d.%m.%Y", "%-d.%-m.%y", "%m-%d-%y",
            "%d-%b-%Y", "%-d-%b-%y", "%b %-d %Y", "%b %d, %Y", "%-d %B %Y", "%B %-d, %Y", "%d%^b%Y", "%Y%m%d",
            "%Y/%-m/%-d", "%G-W%V-%u", "%-d. %B %Y", "%Y-%j", "%a, %d %b %Y",
            "%A, %-d %B %Y", "%A %B %-d, %Y", "%Y-%b-%d", "%d.%b.%Y", "%b-%-d-%Y", "%B-%d-%Y",
        ],
        ("day", DAYS),
    ),
    **dict.fromkeys(["%Y-%m", "%m/%Y", "%b %Y", "%B %Y", "%Y%m", "%b-%y", "%m-%Y", "%YM%m"], ("month", DAYS)),
    **dict.fromkeys(["%G-W%V"], ("week", DAYS)),
    **dict.fromkeys(
        [
            "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%3f", "%Y-%m-%d %H:%M:%S.%f", "%d/%m/%Y %H:%M",
            "%-m/%-d/%Y %-I:%M %p", "%-d.%-m.%Y %-H:%M", "%H:%M", "%-H:%M", "%H:%M:%S", "%Y%m%d%H%M%S", "%I:%M %p",
            "%Y%m%d %H:%M", "%d.%m.%Y, %H:%M", "%Y-%m-%d %I:%M:%S %p", "%d/%b/%Y:%H:%M:%S", "%a %b %d %H:%M:%S %Y",
            "%Y-%m-%d %H:%M:%S GMT",
        ],
        ("minute", TIMES),
    ),
    "%Y-%m-%dT%H:%M:%S+02:00": ("minute", TIMES),
    "%Y-%m-%dT%H:%M:%SZ": ("minute", TIMES),
    "%Y-%m-%d %H:%M:%S UTC": ("minute", TIMES),
    "%Y-%m-%dT%H:%M-0530": None,
}  # fmt: skip


@pytest.mark.parametrize(("format", "column"), COLUMNS.items())
def test_a_column_has_the_form_that_it_was_written_in(format, column):
    if column is None:  # no clock shows that
        assert date_forms(pa.array([written(TIMES[1], format)]))[0] == -1
        return
    resolution, moments = column
    text = pa.array([written(moment, format) for moment in moments])
    places = date_forms(text)
    assert (places >= 0).all()
    form = chosen_form(np.bincount(places, minlength=len(DATE_FORMS)))
    assert (form.format, form.resolution) == (format, resolution)
    micros, valid = parse_dates(text, format)
    assert valid.all()
    assert format_dates(micros, ~valid, format).to_pylist() == text.to_pylist()


@pytest.mark.parametrize(
    "format",
    [
        "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%SZ", "%-m/%-d/%Y %-H:%M", "%d.%m.%Y %H:%M",
        "%m/%d/%Y %I:%M:%S %p", "%Y%m%dT%H%M%S",
    ],
)  # fmt: skip
def test_midnights_are_days_however_they_are_written(format):
    for moments, resolution in ((DAYS, "day"), ([day + dt.timedelta(hours=3) for day in DAYS], "hour")):
        text = pa.array([written(moment, format) for moment in moments])
        form = chosen_form(np.bincount(date_forms(text), minlength=len(DATE_FORMS)))
        assert (form.format, form.resolution) == (format, resolution)


def test_a_time_of_day_has_no_days():
    form = chosen_form(np.bincount(date_forms(pa.array(["00:00:00"])), minlength=len(DATE_FORMS)))
    assert (form.format, form.resolution) == ("%H:%M:%S", "hour")


def test_offsets_of_summer_and_winter_are_one_column():
    text = ["2021-01-01T08:00:00+01:00"] * 7 + ["2021-07-01T08:00:00+02:00"] * 5
    form = chosen_form(np.bincount(date_forms(pa.array(text)), minlength=len(DATE_FORMS)))
    assert form.format == "%Y-%m-%dT%H:%M:%S+01:00"


@pytest.mark.parametrize(
    "text", ["12:61", "99999999", "31/02/2021", "2021-13-01", "1.2.3", "192.168.1.1", "2021", "elm 12", "7", "", None]
)
def test_what_is_no_date(text):
    assert date_forms(pa.array([text], pa.string()))[0] == -1


def test_what_a_text_is_depends_on_it_alone():
    texts = ["2021-07-16", "5-Jan-2021", "red", None, "2022-W05", "x" * 300, "\u0661", "08:15"]
    alone = [int(date_forms(pa.array([text], pa.string()))[0]) for text in texts]
    assert date_forms(pa.array(texts)).tolist() == alone
    assert date_forms(pa.array(texts, pa.large_string())).tolist() == alone


@pytest.mark.parametrize("some", [slice(5, None, 40), pytest.param(slice(None), marks=pytest.mark.slow)])
def test_every_form_reads_what_it_writes(some):
    moment = dt.datetime(2011, 12, 25, 23, 58, 57, 123456)
    for form in DATE_FORMS[some]:
        assert format_fault(form.format) is None
        text = written(moment, form.format)
        micros, valid = parse_dates(pa.array([text]), form.format)
        assert valid[0]
        assert format_dates(micros, ~valid, form.format).to_pylist() == [text]
        assert date_forms(pa.array([text]))[0] >= 0


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("%d-%b-%Y", "05-jan-2021"), ("%d %B %Y", "5 JANUARY 2021"), ("%j %Y", "5 2021"),
        ("%A, %d %b %Y", "Tuesday, 5 Jan 2021"),
        ("%I:%M %p on %d/%m/%y", "12:00 am on 5/1/21"), ("%d/%m/%Y", "5/1/2021"), ("100%% %Y%m%d", "100% 20210105"),
    ],
)  # fmt: skip
def test_texts_in_a_declared_format(format, text):
    micros, valid = parse_dates(pa.array([text]), format)
    assert valid[0]
    assert dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(micros[0])) == dt.datetime(2021, 1, 5)


@pytest.mark.parametrize(
    ("format", "text"),
    [("%d-%b-%Y", "05-01-2021"), ("%j %Y", "366 2021"), ("%I:%M", "13:00"), ("%d %b %Y", "31 Feb 2021")],
)
def test_texts_that_are_not_in_a_format(format, text):
    assert not parse_dates(pa.array([text]), format)[1][0]


@pytest.mark.parametrize("format", ["%z", "%H:%M %Z", "%Q", "plain", "%Y %Y"])
def test_formats_that_cannot_be(format):
    assert format_fault(format)


def test_times_of_day_have_no_date():
    assert [has_date(format) for format in ("%H:%M", "%I:%M %p", "%Y", "%H:%M %d/%m/%Y")] == [False, False, True, True]


def test_zero_dates():
    texts = ["0000-00-00", "0000-00-00 00:00:00", "00.00.0000", "00000000", "2000-01-01", "0", None]
    assert is_zero_date(pa.array(texts)).tolist() == [True, True, True, True, False, False, False]


@pytest.mark.parametrize("resolution", list(MICROSECONDS))
def test_steps_and_their_moments(resolution):
    steps = np.arange(-50, 50)
    first = moments_of(steps, resolution)
    assert (steps_of(first, resolution) == steps).all()
    assert (steps_of(first - 1, resolution) == steps - 1).all()
    if resolution == "week":
        assert all((dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=int(m))).weekday() == 0 for m in first)
