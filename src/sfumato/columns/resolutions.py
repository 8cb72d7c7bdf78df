"""Steps of dates: whole numbers of months, weeks, days, hours, … since 1970, and back.

Months are of the calendar, and weeks begin on Monday; all others are so many microseconds.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

Resolution: TypeAlias = Literal["month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"]

MICROSECONDS: dict[Resolution, int] = {
    "month": 28 * 86_400_000_000,  # at least
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""Microseconds in the shortest step of each resolution, the coarsest first."""

_FIRST_MONDAY = -3 * MICROSECONDS["day"]  # 1970-01-01 was a Thursday


def steps_of(micros: np.ndarray, resolution: Resolution) -> np.ndarray:
    """Return the step that each moment lies in, int64.

    Args:
        micros: microseconds since 1970-01-01, int64 of shape (n,).
        resolution: how long a step is.

    Example:
        >>> steps_of(np.array([0, 40 * MICROSECONDS["day"]]), "month").tolist()
        [0, 1]
    """
    if resolution == "month":
        return micros.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    first = _FIRST_MONDAY if resolution == "week" else 0
    return (micros - first) // MICROSECONDS[resolution]


def moments_of(steps: np.ndarray, resolution: Resolution) -> np.ndarray:
    """Return the first microsecond of each step, int64.

    Example:
        >>> steps_of(moments_of(np.array([-5, 0, 7]), "week"), "week").tolist()
        [-5, 0, 7]
    """
    if resolution == "month":
        return steps.astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)
    first = _FIRST_MONDAY if resolution == "week" else 0
    return steps * MICROSECONDS[resolution] + first


def step_of(micros: int, resolution: Resolution) -> int:
    """Return the step of one moment.

    Example:
        >>> step_of(86_400_000_000, "day")
        1
    """
    return int(steps_of(np.array([micros], dtype=np.int64), resolution)[0])


def moment_of(step: int, resolution: Resolution) -> int:
    """Return the first microsecond of one step.

    Example:
        >>> moment_of(1, "hour")
        3600000000
    """
    return int(moments_of(np.array([step], dtype=np.int64), resolution)[0])
