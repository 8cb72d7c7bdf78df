"""Histories: the line through the values of a unit's rows, by least squares on the numbers of the rows.

A function of the unit's own rows, summed in their order: other units move no bit of it.
"""

from __future__ import annotations

import numpy as np

from sfumato.schema.linked import MOST_CHANGE


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
    rise = np.where(np.isnan(change), 0.0, (change - 0.5) * 2 * MOST_CHANGE)
    return np.clip(mean + rise * ((numbers - 1) / np.maximum(sizes - 1, 1) - 0.5), 0.0, 1.0)
