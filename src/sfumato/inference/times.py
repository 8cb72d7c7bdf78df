"""Numbers of steps since 1970 as moments and lengths of time, and how these are shown."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from sfumato.columns.facts import grouped
from sfumato.columns.wall_clock import Resolution, moment_of, step_of

Value = Any
"""A number; of dates a `pandas.Timestamp`, and as an error or a difference a `pandas.Timedelta`."""
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_000_000  # microseconds of the years 1 to 9999
_LONGEST = 10**17
_UNITS = (("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000), ("second", 1_000_000))


def moment(steps: float, resolution: Resolution) -> pd.Timestamp:
    """Return the moment so many steps after 1970, within the years 1 to 9999; a part of a month is that part of it."""
    ends = (step_of(end, resolution) for end in (_FIRST, _LAST))
    whole = math.floor(min(max(steps, next(ends)), next(ends)))
    first, following = (moment_of(step, resolution) for step in (whole, whole + 1))
    microseconds = min(max(first + (steps - whole) * (following - first), _FIRST), _LAST)
    return pd.Timestamp(np.datetime64(round(microseconds), "us"))


def length(steps: float, microseconds: int) -> pd.Timedelta:
    """Return the time that so many steps take."""
    return pd.Timedelta(np.timedelta64(round(min(steps * microseconds, _LONGEST)), "us"))


def shown(value: Value, digits: int = 5, *, error: Value = None) -> str:
    """Return a value as it is printed; a moment to the day where its error is of days, a number in so many digits."""
    if value is None or pd.isna(value) or value in (np.inf, -np.inf):
        return "–"
    if isinstance(value, pd.Timestamp):
        exact = isinstance(error, pd.Timedelta) and error < pd.Timedelta(1, "D")
        return value.isoformat(" ", "minutes" if exact else "auto")[: None if exact else 10]
    if not isinstance(value, pd.Timedelta):
        return grouped(float(f"{value:.{digits}g}"), ".10g")  # 23,810, and no 2.381e+04
    micros = value / pd.Timedelta(1, "us")
    name, size = next((unit for unit in _UNITS if abs(micros) >= unit[1]), _UNITS[-1])
    return f"{grouped(float(f'{micros / size:.2g}'), '.10g')} {name}s"


def plain(value: Value) -> Value:
    """Return a value as JSON has it: of times ISO 8601."""
    return value.isoformat() if isinstance(value, pd.Timestamp | pd.Timedelta) else value


def figure(value: Value) -> float:
    """Return a value as a number, for pictures: of times in days."""
    if isinstance(value, pd.Timestamp):
        value = value - pd.Timestamp(np.datetime64(0, "us"))
    return value / pd.Timedelta(1, "D") if isinstance(value, pd.Timedelta) else float(value)
