"""Histories: the line through the values of a unit's rows, by least squares on the numbers of the rows.

A row is drawn given the line through it and all rows after it: of a unit whose mean and change are known, what the rows
before have left. So rows scatter around a level without making it up anew.

A function of the unit's own rows, summed in their order: other units move no bit of it.
"""

from __future__ import annotations

import numpy as np

from sfumato.schema.linked import MOST_CHANGE

_GRAIN = 2.0**30  # of codes in sums


def history(codes: np.ndarray, units: np.ndarray, numbers: np.ndarray, n_units: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of units' means and changes, each of shape (n_units,); NaN where there are too few values.

    Args:
        codes: of rows, NaN where missing, shape (n,).
        units: the unit of each row, not decreasing.
        numbers: the number of each row in its unit, from 1.
        n_units: how many units there are.
    """
    there = np.flatnonzero(~np.isnan(codes))
    codes, units, numbers = codes[there], units[there], numbers[there].astype(np.float64)
    count = np.bincount(units, minlength=n_units)
    some = np.maximum(count, 1)
    mean = np.bincount(units, codes, minlength=n_units) / some
    center = np.bincount(units, numbers, minlength=n_units) / some
    apart = numbers - center[units]
    square = np.bincount(units, apart**2, minlength=n_units)
    rise = np.bincount(units, apart * (codes - mean[units]), minlength=n_units) / np.where(square > 0, square, 1.0)
    span = np.zeros(n_units)
    np.maximum.at(span, units, numbers)
    first = np.full(n_units, np.inf)
    np.minimum.at(first, units, numbers)
    change = np.clip(rise * np.where(count > 1, span - first, 0.0) / (2 * MOST_CHANGE) + 0.5, 0.0, 1.0)
    return np.where(count > 0, np.clip(mean, 0.0, 1.0), np.nan), np.where(count > 1, change, np.nan)


def line(mean: np.ndarray, change: np.ndarray, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the code of where the line is at rows of these numbers, of units of so many rows, shape (n,)."""
    return mean + _rise(change) * ((numbers - 1) / np.maximum(sizes - 1, 1) - 0.5)


def lines_ahead(codes: np.ndarray, units: np.ndarray, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return where the line through a row and those after it is at the row: a code, shape (n,).

    A missing value counts as one on the line through all rows. Sums are of whole numbers, modulo 2^64, so that no unit
    moves a bit of another's.
    """
    mean, change = history(codes, units, numbers, sizes.size)
    on_line = line(mean[units], change[units], numbers, sizes[units])
    whole = np.rint(np.nan_to_num(np.where(np.isnan(codes), on_line, codes)) * _GRAIN).astype(np.int64)
    ends = np.cumsum(sizes)[units]
    left = [
        (total[ends] - total[:-1]) / _GRAIN
        for total in (np.append(0, np.cumsum(terms)) for terms in (whole, whole * numbers))
    ]
    ahead = ahead_at(left[0], left[1], numbers, sizes[units])
    return np.where(np.isnan(mean)[units], np.nan, ahead)


def ahead_at(total: np.ndarray, moment: np.ndarray, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return where the line through rows is at the first of them, within the bounds, shape (n,).

    Args:
        total: sum of the codes of rows of these numbers to the last.
        moment: sum of codes times their numbers.
        numbers: of the first of these rows.
        sizes: number of the last.
    """
    count = sizes - numbers + 1.0
    square = count * (count**2 - 1) / 12
    rise = np.where(square > 0, moment - total * (numbers + sizes) / 2, 0.0) / np.where(square > 0, square, 1.0)
    return np.clip(total / np.maximum(count, 1) - rise * (count - 1) / 2, 0.0, 1.0)


class Ahead:
    """Where the lines of units are at their next row, as rows are drawn: what is left of level and trend.

    Args:
        mean: codes of the units' means, shape (units,).
        change: of their changes.
        sizes: numbers of rows.
    """

    def __init__(self, mean: np.ndarray, change: np.ndarray, sizes: np.ndarray) -> None:
        self._mean, self._change, self._sizes = mean, change, sizes
        square = sizes * (sizes**2 - 1.0) / 12
        self._total = sizes * mean
        self._moment = self._total * (sizes + 1) / 2 + _rise(change) / np.maximum(sizes - 1, 1) * square

    def take(self, units: np.ndarray, codes: np.ndarray, number: int) -> None:
        """Take in the rows of this number that some units have."""
        on_line = line(self._mean[units], self._change[units], np.full(units.size, number), self._sizes[units])
        codes = np.where(np.isnan(codes), on_line, codes)
        self._total[units] -= codes
        self._moment[units] -= codes * number

    def at(self, units: np.ndarray, number: int) -> np.ndarray:
        """Return where the lines of units are at the row of this number, NaN without one."""
        numbers = np.full(units.size, number)
        return ahead_at(self._total[units], self._moment[units], numbers, self._sizes[units])


def _rise(change: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(change), 0.0, (change - 0.5) * 2 * MOST_CHANGE)
