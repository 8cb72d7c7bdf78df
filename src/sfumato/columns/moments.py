"""Dates and times in any type, text included, as wall-clock microseconds, and back.

Every cell becomes a whole number of microseconds since 1970-01-01 on the wall clock: a column with
a time zone is read in that zone's local time, so that a day is the day people there lived. The
hour that daylight saving repeats comes back as its first occurrence.

Dates and times as text: strftime formats read and written without a call per cell.

A format whose fields all have a fixed place is a matrix of digits. What does not fit one (month
names, single-digit days, offsets) is read by Python, each distinct text once.
"""

# pyarrow makes these kernels at import, where no type checker sees them
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
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
from sfumato.columns.facts import EPOCH, microseconds_since_epoch

_DAY = 86_400_000_000
_WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "f": 6}
_ISO_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S.%f",
)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A strftime format whose fields all have a fixed place."""

    width: int
    fields: tuple[tuple[str, int], ...]  # field letter, first byte
    literals: tuple[tuple[int, int], ...]  # byte, place


def parse_dates(text: pa.Array, format: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return text cells as wall-clock microseconds, and a mask of the cells that are dates."""
    micros = np.zeros(len(text), dtype=np.int64)
    valid = np.zeros(len(text), dtype=bool)
    lengths = pc.binary_length(text).fill_null(-1).to_numpy(zero_copy_only=False)
    for layout in _layouts(format):
        _parse_layout(text, layout, lengths, micros, valid)
    rest = (lengths >= 0) & ~valid
    if rest.any():
        micros[rest], valid[rest] = _parse_each(text.filter(pa.array(rest)), format)
    return micros, valid


def format_dates(micros: np.ndarray, absent: np.ndarray, format: str) -> pa.Array:
    """Return wall-clock microseconds as text."""
    layout = _layout(format)
    if layout is not None and layout.width * len(micros) < 2**31:
        return _format_layout(micros, absent, layout)
    distinct, places = np.unique(micros, return_inverse=True)
    words = [(EPOCH + timedelta(microseconds=m)).strftime(format) for m in distinct.tolist()]
    return pa.array(words, pa.string()).take(pa.array(places, mask=absent))


@lru_cache(maxsize=256)
def _layouts(format: str | None) -> tuple[_Layout, ...]:
    layouts = (_layout(f) for f in (_ISO_FORMATS if format is None else (format,)))
    return tuple(layout for layout in layouts if layout is not None)


@lru_cache(maxsize=256)
def _layout(format: str) -> _Layout | None:
    """Return the fixed places of a format's fields, or None if they depend on the date."""
    fields: list[tuple[str, int]] = []
    literals: list[tuple[int, int]] = []
    place, rest = 0, format.encode()
    while rest:
        if rest[:1] == b"%":
            letter = rest[1:2].decode("ascii", "replace")
            if letter not in _WIDTHS or letter in dict(fields):
                return None
            fields.append((letter, place))
            place, rest = place + _WIDTHS[letter], rest[2:]
        else:
            literals.append((rest[0], place))
            place, rest = place + 1, rest[1:]
    if not {"Y", "m", "d"} <= set(dict(fields)):
        return None
    return _Layout(place, tuple(fields), tuple(literals))


def _parse_layout(
    text: pa.Array,
    layout: _Layout,
    lengths: np.ndarray,
    micros: np.ndarray,
    valid: np.ndarray,
) -> None:
    """Fill in the cells that match a layout exactly and name a day of the calendar."""
    chosen = (lengths == layout.width) & ~valid
    if not chosen.any():
        return
    picked = text.filter(pa.array(chosen)).cast(pa.large_binary())
    _, offsets, data = picked.buffers()
    start = int(np.frombuffer(offsets, dtype=np.int64, count=1, offset=8 * picked.offset)[0])
    size = len(picked) * layout.width
    grid = np.frombuffer(data, dtype=np.uint8, count=size, offset=start).reshape(-1, layout.width)
    fits = np.ones(len(grid), dtype=bool)
    for byte, place in layout.literals:
        fits &= grid[:, place] == byte
    zero = np.zeros(len(grid), dtype=np.int64)
    parts = dict.fromkeys("HMSf", zero)
    for letter, place in layout.fields:
        number = np.zeros(len(grid), dtype=np.int64)
        for digit in range(_WIDTHS[letter]):
            value = grid[:, place + digit] - np.uint8(48)  # bytes below "0" wrap above 9
            fits &= value <= 9
            number = number * 10 + value
        parts[letter] = number
    days, in_calendar = _days(parts["Y"], parts["m"], parts["d"])
    fits &= in_calendar & (parts["H"] <= 23) & (parts["M"] <= 59) & (parts["S"] <= 59)
    seconds = (parts["H"] * 60 + parts["M"]) * 60 + parts["S"]
    here = np.flatnonzero(chosen)[fits]
    micros[here] = (days * _DAY + seconds * 10**6 + parts["f"])[fits]
    valid[here] = True


def _days(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return days since 1970-01-01, and whether that day is in the calendar."""
    in_calendar = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(in_calendar, (year - 1970) * 12 + month - 1, 0)
    first = months.view("M8[M]").astype("M8[D]").view(np.int64)
    following = (months + 1).view("M8[M]").astype("M8[D]").view(np.int64)
    return first + day - 1, in_calendar & (first + day <= following)


def _format_layout(micros: np.ndarray, absent: np.ndarray, layout: _Layout) -> pa.Array:
    grid = np.empty((len(micros), layout.width), dtype=np.uint8)
    for byte, place in layout.literals:
        grid[:, place] = byte
    parts = _parts(micros)
    for letter, place in layout.fields:
        number = parts[letter]
        for digit in reversed(range(_WIDTHS[letter])):
            number, last = np.divmod(number, 10)
            grid[:, place + digit] = last + 48
    offsets = np.arange(len(micros) + 1, dtype=np.int32) * np.int32(layout.width)
    present = np.packbits(~absent, bitorder="little")
    buffers = [pa.py_buffer(present), pa.py_buffer(offsets), pa.py_buffer(grid)]
    return pa.Array.from_buffers(pa.string(), len(micros), buffers)


def _parts(micros: np.ndarray) -> dict[str, np.ndarray]:
    days, within = np.divmod(micros, _DAY)
    seconds, fraction = np.divmod(within, 10**6)
    calendar = days.view("M8[D]").astype("M8[M]")
    months = calendar.view(np.int64)
    return {
        "Y": 1970 + months // 12,
        "m": 1 + months % 12,
        "d": 1 + days - calendar.astype("M8[D]").view(np.int64),
        "H": seconds // 3600,
        "M": seconds // 60 % 60,
        "S": seconds % 60,
        "f": fraction,
    }


def _parse_each(text: pa.Array, format: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Parse the cells that no fixed layout fits, each distinct one once."""
    read: Callable[[str], datetime] = datetime.fromisoformat
    if format is not None:
        pattern = format
        read = lambda cell: datetime.strptime(cell, pattern)  # noqa: E731
    coded = text.dictionary_encode()
    moments = [_moment(read, cell) for cell in coded.dictionary.to_pylist()]
    micros = np.array([0 if moment is None else moment for moment in moments], dtype=np.int64)
    valid = np.array([moment is not None for moment in moments], dtype=bool)
    places = dictionary_indices(coded)
    return micros[places], valid[places]


def _moment(read: Callable[[str], datetime], cell: str) -> int | None:
    try:
        moment = read(cell).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return microseconds_since_epoch(moment)


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_OF_YEARS_1_TO_9999 = (-62_135_596_800, 253_402_300_799)


def read_microseconds(
    cells: pa.Array, missing: Sequence[str], format: str | None, *, strict: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return cells of any type as wall-clock microseconds, and a mask of those that are dates.

    Text is read by the format, or else by ISO 8601 unless strict: one odd cell makes pandas store dates as objects.
    """
    cells = plain(cells)
    storage = cells.type
    if types.is_dictionary(storage):
        micros, valid = read_microseconds(cells.dictionary, missing, format, strict=strict)
        places = dictionary_indices(cells)
        return np.append(micros, 0)[places], np.append(valid, False)[places]
    if is_text(storage):
        text = without_tokens(read_text(cells), missing)
        micros, valid = parse_dates(text, format)
        rest = ~valid & valid_mask(text)
        if format is not None and not strict and rest.any():
            micros[rest], valid[rest] = parse_dates(text.filter(pa.array(rest)), None)
        return micros, valid
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
    return pa.array([wall_clock_of(moment) for moment in moments], pa.string(), mask=~valid)


def wall_clock_of(moment: datetime) -> str:
    """Return a moment as ISO text to the microsecond, without its zone, and without the time at midnight."""
    exact = datetime(*moment.timetuple()[:6], microsecond=moment.microsecond)  # pandas' own have more digits
    return str(exact).removesuffix(" 00:00:00")


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
