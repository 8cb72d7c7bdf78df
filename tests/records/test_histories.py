"""Histories of numbers: the line through a unit's rows, beside least squares by numpy."""

import numpy as np
import pytest

from sfumato.records.histories import Ahead, history, line, lines_ahead, off_lines, offsets
from sfumato.schema.linked import MOST_CHANGE


def rows(seed: int, n: int = 40, missing: float = 0.2) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 7, n)
    units = np.repeat(np.arange(n), sizes)
    numbers = np.arange(units.size) - (np.cumsum(sizes) - sizes)[units] + 1
    codes = np.where(rng.random(units.size) < missing, np.nan, rng.random(units.size))
    return codes, units, numbers, sizes


def test_mean_and_change_are_those_of_least_squares():
    codes, units, numbers, sizes = rows(1)
    mean, change = history(codes, units, numbers, sizes.size)
    for unit in range(sizes.size):
        mine = (units == unit) & ~np.isnan(codes)
        if not mine.any():
            assert np.isnan(mean[unit])
            continue
        assert mean[unit] == pytest.approx(codes[mine].mean())
        if mine.sum() < 2:
            assert np.isnan(change[unit])
            continue
        rise = np.polyfit(numbers[mine], codes[mine], 1)[0] * np.ptp(numbers[mine])
        assert (change[unit] - 0.5) * 2 * MOST_CHANGE == pytest.approx(rise, abs=1e-9)


def test_no_line_rises_more_than_the_most():
    rng = np.random.default_rng(2)
    for size in (2, 3, 4, 7, 50, 200):
        codes = (np.arange(size) >= size / 2).astype(float)
        for values in (codes, rng.integers(0, 2, size).astype(float)):
            _, change = history(values, np.zeros(size, dtype=int), np.arange(1, size + 1), 1)
            assert 0 < change[0] < 1


@pytest.mark.parametrize("seed", range(4))
def test_a_unit_is_the_same_alone(seed):
    """To the last bit, whatever other units have."""
    codes, units, numbers, sizes = rows(seed)
    mean, change = history(codes, units, numbers, sizes.size)
    ahead = lines_ahead(codes, units, numbers, sizes)
    for unit in range(sizes.size):
        mine = units == unit
        own = codes[mine], np.zeros(mine.sum(), dtype=int), numbers[mine]
        alone = history(*own, 1)
        assert np.array_equal([mean[unit], change[unit]], np.concatenate(alone), equal_nan=True)
        assert np.array_equal(ahead[mine], lines_ahead(*own, sizes[unit : unit + 1]), equal_nan=True)


def test_the_last_row_is_what_is_left():
    codes, units, numbers, sizes = rows(5, missing=0)
    ahead = lines_ahead(codes, units, numbers, sizes)
    last = numbers == sizes[units]
    assert np.allclose(ahead[last], codes[last], atol=1e-8)


def test_rows_drawn_one_by_one_have_the_lines_of_whole_units():
    codes, units, numbers, sizes = rows(6)
    keep = np.bincount(units, ~np.isnan(codes), minlength=sizes.size)[units] > 0
    codes, units, numbers = codes[keep], units[keep], numbers[keep]
    mean, change = history(codes, units, numbers, sizes.size)
    ahead, whole = Ahead(mean, change, sizes), lines_ahead(codes, *_compact(units, numbers))
    for number in range(1, int(sizes.max()) + 1):
        mine = np.flatnonzero(numbers == number)
        assert np.allclose(ahead.at(units[mine], number), whole[mine], atol=1e-7)
        ahead.take(units[mine], codes[mine], number)


def _compact(units: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    own = np.unique(units, return_inverse=True)[1]
    return own, numbers, np.bincount(own)


def test_a_line_goes_through_its_mean():
    mean, change = np.array([0.4]), np.array([0.6])
    at = [line(mean, change, np.array([t]), np.array([5]))[0] for t in range(1, 6)]
    assert np.mean(at) == pytest.approx(0.4)
    assert at[-1] - at[0] == pytest.approx(0.1 * 2 * MOST_CHANGE)


def test_values_are_their_lines_and_offsets_and_last_rows_lie_on_the_line():
    codes, units, numbers, sizes = rows(7, missing=0)
    codes = 0.4 + 0.2 * codes  # whose offsets are within the bounds
    left = sizes[units] - numbers + 1
    ahead = lines_ahead(codes, units, numbers, sizes)
    offset = offsets(codes, ahead, left)
    assert np.array_equal(np.isnan(offset), left == 1)
    assert np.allclose(off_lines(offset, ahead, left), codes, atol=1e-7)


def test_offsets_spread_alike_however_many_rows_are_left():
    rng = np.random.default_rng(8)
    for size in (2, 3, 8):
        codes = 0.5 + 0.05 * rng.standard_normal((20_000, size))
        line_at = codes.mean(axis=1)  # of a unit without a change
        offset = offsets(codes[:, 0], line_at, np.full(20_000, size))
        assert (2 * offset - 1).std() == pytest.approx(0.05, rel=0.02)
