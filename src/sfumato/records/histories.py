"""Histories: the line through the values of a unit's rows, by least squares on the numbers of the rows.

A row is drawn given the line through it and all rows after it: of a unit whose mean and change are known, what the rows
before have left. So rows scatter around a level without making it up anew.

A function of the unit's own rows, summed in their order: other units move no bit of it.
"""

from __future__ import annotations

import numpy as np

from sfumato.schema.linked import MOST_CHANGE

GRAIN = 2.0**30
"""Of what codes are whole numbers in sums over several units: those of 2^32 rows stay below 2^63."""


def history(codes: np.ndarray, units: np.ndarray, numbers: np.ndarray, n_units: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of units' means and changes, each of shape (n_units,); NaN where there are too few values.

    Args:
        codes: of rows, NaN where missing, shape (n,).
        units: the unit of each row, not decreasing.
        numbers: the number of each row in its unit, from 1.
        n_units: how many units there are.
    """
    valid = np.flatnonzero(~np.isnan(codes))
    codes, units, numbers = codes[valid], units[valid], numbers[valid].astype(np.float64)
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
    rise = np.where(np.isnan(change), 0.0, (change - 0.5) * 2 * MOST_CHANGE)
    return mean + rise * ((numbers - 1) / np.maximum(sizes - 1, 1) - 0.5)


def lines_ahead(codes: np.ndarray, units: np.ndarray, numbers: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return where rows are on the line of the unit's change through them and those after: a code, shape (n,).

    It is the unit's line less its share of how far the rows before are above it. A missing value counts as one on the
    line. Sums are of whole numbers, modulo 2^64, so that no unit moves a bit of another's.
    """
    mean, change = history(codes, units, numbers, sizes.size)
    on_line = line(mean[units], change[units], numbers, sizes[units])
    away = np.rint(np.nan_to_num(codes - on_line) * GRAIN).astype(np.int64)
    total = np.append(0, np.cumsum(away))
    before = (total[:-1] - total[(np.cumsum(sizes) - sizes)[units]]) / GRAIN
    return np.clip(on_line - before / (sizes[units] - numbers + 1), 0.0, 1.0)


def offsets(codes: np.ndarray, lines: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return the codes of how far values lie off their lines, times √(r/(r − 1)), NaN of a last row; shape (n,).

    So many rows as are left, r of them with this one, have the line for their mean: the fewer, the less they spread.

    Args:
        codes: of rows.
        lines: codes of where their lines are.
        left: numbers of rows from each on, itself one of them.
    """
    apart = (codes - lines) / np.where(left > 1, _spread(left), np.nan)
    return np.clip((apart + 1) / 2, 0.0, 1.0)


def off_lines(offset: np.ndarray, lines: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return the codes of values at these offsets from their lines; those of last rows lie on them."""
    return np.clip(lines + np.where(left > 1, (2 * offset - 1) * _spread(left), 0.0), 0.0, 1.0)


def _spread(left: np.ndarray) -> np.ndarray:
    return np.sqrt((left - 1) / left)


class Ahead:
    """Where the lines of units are at their next row, as rows are drawn: what is left of level and trend.

    Args:
        mean: codes of the units' means, shape (units,).
        change: of their changes.
        sizes: numbers of rows.
    """

    def __init__(self, mean: np.ndarray, change: np.ndarray, sizes: np.ndarray) -> None:
        self._mean, self._change, self._sizes = mean, change, sizes
        self._left = np.zeros(sizes.size)

    def _line(self, units: np.ndarray, number: int) -> np.ndarray:
        return line(self._mean[units], self._change[units], np.full(units.size, number), self._sizes[units])

    def take(self, units: np.ndarray, codes: np.ndarray, number: int) -> None:
        """Take in the rows of this number that some units have."""
        self._left[units] -= np.nan_to_num(codes - self._line(units, number))

    def at(self, units: np.ndarray, number: int) -> np.ndarray:
        """Return where the lines of units are at the row of this number, NaN without one."""
        return np.clip(self._line(units, number) + self._left[units] / (self._sizes[units] - number + 1), 0.0, 1.0)
