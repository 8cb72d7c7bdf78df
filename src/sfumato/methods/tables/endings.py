"""What values end in: heaps of prices, incomes, days and hours show there before any single value is seen.

Of numbers the last two digits, in steps, or of few values the last one; of what has only zeros there how many these
are, and whether 5 stands before them; each by the number of digits. Of dates the day of the month, 1 January apart, and
the weekday; of times the hour, the minute and the second. Each is a list of endings, a function of a column's kind.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from sfumato.columns.kinds import DateTime, NumericKind
from sfumato.columns.wall_clock import MICROSECONDS, moments_of
from sfumato.maths.constants import ATOMS

_DAY = MICROSECONDS["day"]


def n_endings(kind: NumericKind) -> int:
    """Return how many lists of endings there are."""
    return len(_of_dates(kind)) if isinstance(kind, DateTime) else 1


def endings_of(kind: NumericKind) -> tuple[np.ndarray, ...]:
    """Return of each list the ending of each value: a number from 0 on, shape (values,)."""
    steps = kind.steps
    numbers = np.asarray(kind.decoded(steps.codes(np.arange(steps.last + 1)))[0])
    if isinstance(kind, DateTime):
        moments = moments_of(numbers.astype(np.int64), kind.resolution)
        return tuple(ending(moments) for ending in _of_dates(kind))
    lower, upper = kind.bounds
    whole = np.abs(np.rint(numbers.astype(np.float64) * (steps.scale / (upper - lower)))).astype(np.int64)
    base = 10 if steps.last < ATOMS.few_values else 100
    zeros = sum((whole % (base * 10**more) == 0).astype(np.int64) for more in range(ATOMS.most_zeros))
    five = whole // (base * 10 ** np.maximum(zeros - 1, 0)) % 10 == 5
    ending = np.where(zeros > 0, base + 2 * zeros + five, whole % base)
    digits = np.searchsorted(10 ** np.arange(1, ATOMS.most_digits), whole, side="right")
    return (np.unique(ending * (digits.max() + 1) + digits, return_inverse=True)[1].reshape(-1),)


def _of_dates(kind: DateTime) -> list[Callable[[np.ndarray], np.ndarray]]:
    """Return what moments of a resolution end in, int64 of microseconds each."""
    step = MICROSECONDS[kind.resolution]
    endings = [] if kind.is_clock else [_day_of_month]
    if step == _DAY or (step < _DAY and not kind.is_clock):
        endings.append(lambda moments: moments // _DAY % 7)
    units = [MICROSECONDS[unit] for unit in ("day", "hour", "minute", "second")]
    for whole, unit in pairwise(units):
        if step <= unit:
            endings.append(lambda moments, whole=whole, unit=unit: moments % whole // unit)
    return endings


def _day_of_month(moments: np.ndarray) -> np.ndarray:
    days = moments.astype("M8[us]").astype("M8[D]")
    return np.where(days == days.astype("M8[Y]"), 0, 1 + (days - days.astype("M8[M]")).astype(np.int64))
