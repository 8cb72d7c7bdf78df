"""The public grids on which numbers and years of open columns are counted. They do not depend on the data.

A cell for 0 and, for either sign, the octaves [2^e, 2^(e+1)) from 2^-20 to 2^53, each cut into four; of dates, years.
"""

from __future__ import annotations

import numpy as np

_FIRST, _LAST = -20, 53  # octaves of the grid: from 2^-20 to 2^53
_LARGEST = 2.0**_LAST
PARTS = 4  # cells of an octave
SIDE = (_LAST - _FIRST) * PARTS
N_CELLS = 2 * SIDE + 1  # negative numbers, 0, positive numbers
BEYOND, MISSING = N_CELLS, N_CELLS + 1
"""The cells behind the grid: values beyond it, and what is no value."""
MIDDLE_YEAR = 2000  # of the grid of years, which has as many cells as that of numbers


OPEN_COUNTS = "counts of the open column "
OPEN_UNITS = "number of units whose open columns were counted"
"""Under which a release holds a noisy number of units, where of each one row was counted."""


def counts_name(column: str) -> str:
    """Return the name under which a release holds the noisy counts of an open column's cells."""
    return f"{OPEN_COUNTS}{column!r}"


def cells_of(values: np.ndarray) -> np.ndarray:
    """Return the cell of each number on the public grid, int64; what is no finite number is in cell `MISSING`.

    Cell `SIDE` holds 0. Numbers from 2^53 on, which float64 does not tell apart, are in cell `BEYOND`, and those nearer
    to 0 than 2^-20 in the cells beside that of 0.
    """
    size = np.abs(values)
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, size, 1.0))  # size = mantissa · 2^exponent, mantissa in [0.5, 1)
    place = (exponent - 1 - _FIRST) * PARTS + np.floor((2 * mantissa - 1) * PARTS).astype(np.int64)
    place = np.clip(place, 0, SIDE - 1) + 1
    signed = SIDE + np.where(values < 0, -place, place)
    cells = np.where(size == 0, SIDE, np.where(size >= _LARGEST, BEYOND, signed))
    return np.where(finite, cells, MISSING).astype(np.int64)


def cell_span(cell: int) -> tuple[float, float]:
    """Return the lower and upper edge of a cell of the grid of numbers."""
    if cell == SIDE:
        return 0.0, 0.0
    octave, part = divmod(abs(cell - SIDE) - 1, PARTS)
    near, far = (2.0 ** (octave + _FIRST) * (1 + (part + i) / PARTS) for i in (0, 1))
    near = near if octave or part else 0.0  # the innermost cell also takes what is nearer to 0
    return (near, far) if cell > SIDE else (-far, -near)


def number_edges() -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and the upper edges of the cells of numbers, shape (N_CELLS,) each."""
    edges = np.array([cell_span(cell) for cell in range(N_CELLS)])
    return edges[:, 0], edges[:, 1]


def year_edges() -> tuple[np.ndarray, np.ndarray]:
    """Return the first day of the cells' years, in years, and of the years after, shape (N_CELLS,) each."""
    years = np.arange(N_CELLS) - SIDE + float(MIDDLE_YEAR)
    return years, years + 1


def open_edges(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of the cells that an open column is counted in: of dates, of years; else of numbers."""
    return year_edges() if kind == "datetime" else number_edges()


def year_cells(years: np.ndarray) -> np.ndarray:
    """Return the cell of each year on the public grid of years, int64; NaN is in cell `MISSING`.

    Years beyond the grid, as of 9999-12-31, are in cell `BEYOND`.
    """
    known = ~np.isnan(years)
    place = np.where(known, years, 0) - MIDDLE_YEAR + SIDE
    place = np.where((place < 0) | (place >= N_CELLS), BEYOND, place)
    return np.where(known, place, MISSING).astype(np.int64)
