"""Dates and times to codes in [0, 1] and back.

Every cell becomes a whole number of microseconds since 1970-01-01 on the wall clock: a column with
a time zone is read in that zone's local time, so that a day is the day people there lived. The
hour that daylight saving repeats comes back as its first occurrence.
"""

# pyright: reportAttributeAccessIssue=false
# pyarrow.compute makes its functions at run time, where pyright cannot see them.

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.cells import (
    dictionary_indices,
    is_text,
    plain,
    read_text,
    valid_mask,
    without_tokens,
)
from sfumato.columns.date_text import parse_dates
from sfumato.columns.facts import EPOCH
from sfumato.columns.kinds import MICROSECONDS, DateTime, tick_range
from sfumato.columns.numbers import code_whole, decode_whole

_DAY = MICROSECONDS["day"]
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_OF_YEARS_1_TO_9999 = (-62_135_596_800, 253_402_300_799)


def default_format(kind: DateTime) -> str:
    """Return the strftime format in which a column without one is written as text."""
    if kind.resolution == "day":
        return "%Y-%m-%d"
    fraction = ".%f" if kind.resolution in ("millisecond", "microsecond") else ""
    return f"%Y-%m-%d %H:%M:%S{fraction}"


def code_dates(kind: DateTime, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    """Return codes of a date or time column stored in any type."""
    micros, valid = read_microseconds(cells, missing, kind.format)
    first, last = tick_range(kind)
    ticks = micros // MICROSECONDS[kind.resolution]
    return code_whole(ticks, valid, lower=first, upper=last, nullable=kind.nullable)


def decode_dates(kind: DateTime, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return wall-clock microseconds of codes, and a mask of the missing ones."""
    first, last = tick_range(kind)
    ticks, absent = decode_whole(codes, lower=first, upper=last, nullable=kind.nullable)
    return ticks * MICROSECONDS[kind.resolution], absent


def read_microseconds(cells: pa.Array, missing: Sequence[str], format: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return cells of any type as wall-clock microseconds, and a mask of those that are dates."""
    cells = plain(cells)
    storage = cells.type
    if types.is_dictionary(storage):
        micros, valid = read_microseconds(cells.dictionary, missing, format)
        places = dictionary_indices(cells)
        return np.append(micros, 0)[places], np.append(valid, False)[places]
    if is_text(storage):
        return parse_dates(without_tokens(read_text(cells), missing), format)
    if types.is_date32(storage):
        per_second, seconds_per_unit, cells = 1, 86_400, cells.cast(pa.int32())
    elif types.is_date64(storage):
        per_second, seconds_per_unit = 10**3, 1
    elif types.is_timestamp(storage):
        per_second, seconds_per_unit = _PER_SECOND[storage.unit], 1
        cells = _on_the_wall(cells)
    else:
        return np.zeros(len(cells), dtype=np.int64), np.zeros(len(cells), dtype=bool)
    valid = valid_mask(cells)
    units = cells.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if per_second > 10**6:
        return units // (per_second // 10**6), valid
    earliest, latest = _SECONDS_OF_YEARS_1_TO_9999  # outside them the product would overflow
    units = np.clip(units, earliest * per_second // seconds_per_unit, latest * per_second // seconds_per_unit)
    return units * (seconds_per_unit * 10**6 // per_second), valid


def store_dates(micros: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
    """Return wall-clock microseconds as an array of a date or timestamp type."""
    if types.is_date32(storage):
        return pa.array((micros // _DAY).astype(np.int32), mask=absent).cast(storage)
    if types.is_date64(storage):
        return pa.array(micros // _DAY * 86_400_000, mask=absent).cast(storage)
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
    """Return dates or times as ISO text, without the time where it is midnight."""
    micros, valid = read_microseconds(cells, (), None)
    moments = [EPOCH + timedelta(microseconds=micro) for micro in micros.tolist()]
    words = [str(moment).removesuffix(" 00:00:00") for moment in moments]
    return pa.array(words, pa.string(), mask=~valid)


def _on_the_wall(cells: pa.Array) -> pa.Array:
    zone = cells.type.tz
    if zone is None or not _is_known_zone(zone):
        return cells
    return pc.local_timestamp(cells)


@lru_cache(maxsize=256)
def _is_known_zone(zone: str) -> bool:
    """Whether this machine knows a time zone; one it does not know is read and written as UTC."""
    try:
        pc.local_timestamp(pa.array([0], pa.timestamp("s", zone)))
    except pa.ArrowException:
        return False
    return True
