"""Dates and times in any type, text included, as wall-clock microseconds, and these as steps, and back.

Every cell becomes a whole number of microseconds since 1970-01-01 on the wall clock: a column with
a time zone is read in that zone's local time, so that a day is the day people there lived. The
hour that daylight saving repeats comes back as its first occurrence. Text is read by `date_text`.

Months are of the calendar, and weeks begin on Monday; all others are so many microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.canonical import canonical
from sfumato.columns.cells import is_text, looked_up, plain, read_text, valid_mask
from sfumato.columns.date_text import has_date, has_digits_alone, parse_dates
from sfumato.columns.facts import EPOCH

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
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_OF_YEARS_1_TO_9999 = (-62_135_596_800, 253_402_300_799)


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


def read_microseconds(
    cells: pa.Array, missing: Sequence[str], format: str | None, *, strict: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return cells of any type as wall-clock microseconds, and a mask of those that are dates.

    Text is read by the format, or else by ISO 8601 unless strict: one odd cell makes pandas store dates as objects.
    A moment that a missing token reads as, such as 9999-12-31, is no date, however its column stores it.
    """
    micros, valid = _moments(cells, format, strict=strict)
    tokens = _token_moments(tuple(missing), format)
    return micros, valid & ~np.isin(micros, tokens) if tokens else valid


def _moments(cells: pa.Array, format: str | None, *, strict: bool) -> tuple[np.ndarray, np.ndarray]:
    cells = plain(cells)
    storage = cells.type
    if types.is_dictionary(storage):
        micros, valid = _moments(cells.dictionary, format, strict=strict)
        return looked_up(micros, cells, 0), looked_up(valid, cells, False)
    if is_text(storage):
        text = read_text(cells)
        if format is not None and has_digits_alone(format):
            text = pc.coalesce(canonical(text), text)
        micros, valid = parse_dates(text, format)
        rest = ~valid & valid_mask(text)
        if format is not None and not strict and rest.any():
            micros[rest], valid[rest] = parse_dates(text.filter(pa.array(rest)), None)
        return micros, valid
    if types.is_date32(storage):
        per_second, seconds_per_unit, cells = 1, 86_400, cells.cast(pa.int32())
    elif types.is_date64(storage):
        per_second, seconds_per_unit = 10**3, 1
    elif types.is_time(storage) and format is not None and not has_date(format):
        per_second, seconds_per_unit = _PER_SECOND[storage.unit], 1
        cells = cells.cast(pa.int32() if storage.bit_width == 32 else pa.int64())
    elif types.is_timestamp(storage):
        per_second, seconds_per_unit = _PER_SECOND[storage.unit], 1
        cells = pc.local_timestamp(cells) if storage.tz is not None and _is_known_zone(storage.tz) else cells
    else:
        return np.zeros(len(cells), dtype=np.int64), np.zeros(len(cells), dtype=bool)
    valid = valid_mask(cells)
    units = cells.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if per_second > 10**6:
        return units // (per_second // 10**6), valid
    earliest, latest = _SECONDS_OF_YEARS_1_TO_9999  # outside them the product would overflow
    units = np.clip(units, earliest * per_second // seconds_per_unit, latest * per_second // seconds_per_unit)
    return units * (seconds_per_unit * 10**6 // per_second), valid


@lru_cache(maxsize=256)
def _token_moments(missing: tuple[str, ...], format: str | None) -> tuple[int, ...]:
    """Return the moments that missing tokens read as."""
    micros, valid = _moments(pa.array(missing, pa.string()), format, strict=False)
    return tuple(micros[valid].tolist())


def store_dates(micros: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
    """Return wall-clock microseconds as an array of a date, timestamp or time type."""
    if types.is_date32(storage):
        return pa.array((micros // MICROSECONDS["day"]).astype(np.int32), mask=absent).cast(storage)
    if types.is_date64(storage):
        return pa.array(micros // MICROSECONDS["day"] * 86_400_000, mask=absent).cast(storage)
    if types.is_time(storage):
        return pa.array(micros % MICROSECONDS["day"], mask=absent).cast(pa.time64("us")).cast(storage, safe=False)
    per_second = _PER_SECOND[storage.unit]
    finer, coarser = max(per_second // 10**6, 1), max(10**6 // per_second, 1)
    units = micros * finer // coarser
    wall = pa.array(units, mask=absent).cast(pa.timestamp(storage.unit))
    if storage.tz is None:
        return wall
    if not _is_known_zone(storage.tz):
        return wall.cast(storage)
    return pc.assume_timezone(wall, storage.tz, ambiguous="earliest", nonexistent="latest")


def wall_clock_text(cells: pa.Array) -> pa.Array:
    """Return dates or times as ISO text with all that they hold, without the time where it is midnight."""
    micros, valid = read_microseconds(cells, (), None)
    moments = [EPOCH + timedelta(microseconds=micro) for micro in micros.tolist()]
    finer = np.zeros(len(micros), dtype=np.int64)
    if types.is_timestamp(cells.type) and cells.type.unit == "ns":
        finer = cells.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) % 1000
    words = [wall_clock_of(moment, nanosecond) for moment, nanosecond in zip(moments, finer.tolist(), strict=True)]
    return pa.array(words, pa.string(), mask=~valid)


def wall_clock_of(moment: datetime, nanosecond: int = 0) -> str:
    """Return a moment as ISO text without its zone, and without the time at midnight.

    Args:
        moment: to the microsecond, or one of pandas, which knows its nanoseconds.
        nanosecond: those beyond the microsecond.
    """
    exact = datetime(*moment.timetuple()[:6], microsecond=moment.microsecond)
    finer = getattr(moment, "nanosecond", nanosecond)
    if finer:
        return f"{exact.isoformat(' ', 'microseconds')}{finer:03}"
    return str(exact).removesuffix(" 00:00:00")


@lru_cache(maxsize=256)
def _is_known_zone(zone: str) -> bool:
    """Whether this machine knows a time zone; one it does not know is read and written as UTC."""
    try:
        pc.local_timestamp(pa.array([0], pa.timestamp("s", zone)))
    except pa.ArrowException:
        return False
    return True
