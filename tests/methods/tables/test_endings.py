"""What values end in: digits, zeros, days of the month, weekdays, hours and minutes."""

import numpy as np
import pytest

from sfumato.columns.kinds import Continuous, DateTime, Integer
from sfumato.columns.wall_clock import MICROSECONDS, moments_of
from sfumato.methods.tables.atoms import endings_of, n_endings


def ending_of(kind, *values):
    lower, upper = kind.bounds
    return endings_of(kind)[0][kind.steps.at((np.array(values) - lower) / (upper - lower))]


def test_an_ending_is_what_values_of_one_size_end_in():
    kind = Continuous(lower=-50, upper=1000, resolution=0.01)
    for one, other in ((3.99, 5.99), (30.99, 57.99), (300, 400), (350, 450), (20, 30), (-3.99, 4.99)):
        assert len(set(ending_of(kind, one, other))) == 1, (one, other)
    for one, other in ((3.99, 3.98), (3.99, 35.99), (300, 350), (300, 310), (20, 20.5), (0, 0.01), (1, 0)):
        assert len(set(ending_of(kind, one, other))) == 2, (one, other)
    few = Integer(lower=0, upper=120)
    assert len(set(ending_of(few, 43, 53))) == len(set(ending_of(few, 20, 40))) == len(set(ending_of(few, 45, 95))) == 1
    for one, other in ((43, 44), (20, 50), (20, 100), (3, 43)):
        assert len(set(ending_of(few, one, other))) == 2, (one, other)


def test_endings_of_a_date_are_its_day_of_the_month_and_weekday():
    kind = DateTime(lower="2019-11-20", upper="2023-04-10")
    days = np.arange(np.datetime64("2019-11-20"), np.datetime64("2023-04-11"))
    found, weekdays = endings_of(kind)
    np.testing.assert_array_equal(weekdays, (days.astype(int) - days[0].astype(int) + weekdays[0]) % 7)
    assert found.size == days.size
    in_month = (days - days.astype("M8[M]")).astype(int)
    first = days == days.astype("M8[Y]")
    assert (found[first] == 0).all()
    assert (np.bincount(found)[1:] > 0).all()
    np.testing.assert_array_equal(found[~first], 1 + in_month[~first])


@pytest.mark.parametrize("resolution", ["month", "week", "hour"])
def test_other_steps_of_dates_are_of_the_day_they_begin(resolution):
    kind = DateTime(lower="2019-01-01", upper="2023-04-10", resolution=resolution)
    values = kind.decoded(kind.steps.codes(np.arange(kind.steps.last + 1)))[0].astype(np.int64)
    days = moments_of(values, resolution).astype("M8[us]").astype("M8[D]")
    in_month = 1 + (days - days.astype("M8[M]")).astype(int)
    np.testing.assert_array_equal(endings_of(kind)[0], np.where(days == days.astype("M8[Y]"), 0, in_month))


DATES, CLOCK = ("2019-01-01", "2019-12-31"), ("00:00", "23:59:59.999999")


@pytest.mark.parametrize(
    ("bounds", "resolution", "sizes"),
    [
        (DATES, "month", [13]), (DATES, "week", [32]), (DATES, "day", [32, 7]), (DATES, "hour", [32, 7, 24]),
        (DATES, "minute", [32, 7, 24, 60]), (CLOCK, "minute", [24, 60]), (CLOCK, "second", [24, 60, 60]),
    ],
)  # fmt: skip
def test_dates_and_times_end_in_all_that_is_coarser_than_their_resolution(bounds, resolution, sizes):
    form = "%H:%M:%S" if bounds == CLOCK else None
    kind = DateTime(lower=bounds[0], upper=bounds[1], resolution=resolution, format=form)
    endings = endings_of(kind)
    assert n_endings(kind) == len(endings) == len(sizes)
    assert all(ending.min() >= 0 and ending.max() < size for ending, size in zip(endings, sizes, strict=True))
    moments = moments_of(kind.decoded(kind.steps.codes(np.arange(kind.steps.last + 1)))[0].astype(np.int64), resolution)
    if resolution in ("minute", "second"):
        np.testing.assert_array_equal(endings[sizes.index(24)], moments // MICROSECONDS["hour"] % 24)
        np.testing.assert_array_equal(endings[sizes.index(60)], moments // MICROSECONDS["minute"] % 60)


def test_numbers_have_one_list():
    assert n_endings(Integer(lower=0, upper=999)) == len(endings_of(Integer(lower=0, upper=999))) == 1
