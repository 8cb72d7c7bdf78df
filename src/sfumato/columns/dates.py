"""Columns of dates and times, on the wall clock."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.bounded import WholeKind
from sfumato.columns.cells import is_text, values_of
from sfumato.columns.facts import (
    EPOCH,
    flag,
    is_bare_date,
    label_text,
    microseconds_since_epoch,
    moment_text,
    shown,
)
from sfumato.columns.kind import refuse, settle
from sfumato.columns.moments import format_dates, parse_dates, read_microseconds, store_dates
from sfumato.columns.storage import from_text

Resolution: TypeAlias = Literal["day", "hour", "minute", "second", "millisecond", "microsecond"]

MICROSECONDS: dict[str, int] = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""Microseconds in one step of each datetime resolution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DateTime(WholeKind):
    """A date or a time of a calendar, without daylight saving: wall-clock time.

    Attributes:
        lower: earliest value, ISO 8601; earlier ones are clamped to it.
        upper: latest value, ISO 8601; later ones are clamped to it. A bare date is a whole day.
        resolution: times are cut down to a whole number of these since 1970-01-01.
        format: strftime format of the column where it is stored as text; None means ISO 8601.
        nullable: whether a missing cell stays missing, rather than becoming the midpoint.

    Example:
        >>> first, last = DateTime(lower="2024-01-01", upper="2024-12-31").bounds
        >>> last - first + 1  # days
        366
    """

    name: ClassVar[str] = "datetime"

    lower: str
    upper: str
    resolution: Resolution = "day"
    format: str | None = None
    nullable: bool = False

    def __post_init__(self) -> None:
        faults: list[str] = []
        lower = moment_text("lower", self.lower, faults)
        upper = moment_text("upper", self.upper, faults)
        if self.resolution not in get_args(Resolution):
            known = ", ".join(get_args(Resolution))
            faults.append(f"Expected resolution to be one of {known}, got {shown(self.resolution)}.")
        if self.format is not None:
            label_text("format", self.format, faults)
        nullable = flag(self.nullable, faults)
        refuse(faults)
        settle(self, lower=lower, upper=upper, nullable=nullable)
        first, last = self.bounds
        if first > last:
            faults.append(f"Expected lower <= upper, got lower={lower}, upper={upper}. Swap them.")
        elif self.format is not None:
            _check_format(self.format, (first, last), MICROSECONDS[self.resolution], faults)
        refuse(faults)

    @property
    def cell_bytes(self) -> int:
        """A date by its format, of which a directive of two letters is a word at most."""
        return 64 + 8 * len(self.format or "")

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last step, counted in the resolution from 1970-01-01."""
        step = MICROSECONDS[self.resolution]
        upper = microseconds_since_epoch(datetime.fromisoformat(self.upper))
        if is_bare_date(self.upper):
            upper += MICROSECONDS["day"] - 1
        return microseconds_since_epoch(datetime.fromisoformat(self.lower)) // step, upper // step

    @property
    def zero_code(self) -> float | None:
        """None: no date is nothing."""
        return None

    @property
    def sample_type(self) -> pa.DataType:
        """Text where it is declared how it is written, else days, or timestamps in microseconds."""
        if self.format is not None:
            return pa.string()
        return pa.date32() if self.resolution == "day" else pa.timestamp("us")

    def reading_fault(self, storage: pa.DataType) -> str | None:
        """Return why no cell of a type can be a date."""
        values = values_of(storage)
        timely = is_text(values) or types.is_null(values) or types.is_date(values) or types.is_timestamp(values)
        return None if timely else self._value_fault(values)

    def read(self, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return cells as steps since 1970-01-01, and a mask of those that are dates."""
        micros, valid = read_microseconds(cells, missing, self.format)
        return micros // MICROSECONDS[self.resolution], valid

    def store(self, values: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
        """Return steps in a storage type."""
        micros = values * MICROSECONDS[self.resolution]
        if is_text(storage):
            return from_text(format_dates(micros, absent, self.format or self._default_format), storage)
        return store_dates(micros, absent, storage)

    @property
    def _default_format(self) -> str:
        """The strftime format in which a column without one is written as text."""
        if self.resolution == "day":
            return "%Y-%m-%d"
        fraction = ".%f" if self.resolution in ("millisecond", "microsecond") else ""
        return f"%Y-%m-%d %H:%M:%S{fraction}"

    def _value_fault(self, storage: pa.DataType) -> str | None:
        if types.is_date(storage):
            return None
        if not types.is_timestamp(storage):
            return (
                f"Expected dates, times or text for kind datetime, got a column of type {storage}. "
                "Declare integer or continuous, or store the column as timestamps."
            )
        step = MICROSECONDS[self.resolution]
        limit = 2**63 // 1000 - 2 * MICROSECONDS["day"]  # leaves room for the offset of any zone
        if storage.unit == "ns" and any(abs(tick) * step > limit for tick in self.bounds):
            return (
                f"Expected bounds within the years 1678 to 2261 for type {storage}, "
                f"got lower={self.lower}, upper={self.upper}. Store the column in microseconds."
            )
        return None

    def whole_of(self, column: str, value: object, faults: list[str]) -> int | None:
        """Return the step of a date, a time, or text that reads as one."""
        micros, step = _microseconds(value, self.format), MICROSECONDS[self.resolution]
        if micros is None:
            faults.append(f"Expected {column} to be a date or time without offset, got {column}={shown(value)}.")
            return None
        first, last = self.bounds
        if micros % step and first <= micros // step <= last:
            faults.append(f"Expected {column} to be a whole {self.resolution}, got {column}={shown(value)}.")
        return micros // step

    def parts(self, n: int) -> list[str]:
        """Return the bounds of each part."""
        first, last = self.bounds
        step = MICROSECONDS[self.resolution]
        moments = [EPOCH + timedelta(microseconds=(first + (last - first) * i // n) * step) for i in range(n + 1)]
        if step >= MICROSECONDS["day"]:
            edges = [moment.isoformat(" ")[:10] for moment in moments]
        else:
            long = (last - first) * step >= n * MICROSECONDS["second"]
            precision = "seconds" if long else "microseconds"  # short spans show parts of seconds
            edges = [moment.isoformat(" ", precision) for moment in moments]
        return [f"{low} to {high}" for low, high in itertools.pairwise(edges)]


def _microseconds(value: object, format: str | None) -> int | None:
    """Return wall-clock microseconds since 1970, or None if the value is no date."""
    if isinstance(value, str):
        for form in {format, None}:
            micros, valid = parse_dates(pa.array([value.strip()]), form)
            if valid[0]:
                return int(micros[0])
        return None
    if isinstance(value, datetime):
        return microseconds_since_epoch(value) if value.tzinfo is None else None
    if isinstance(value, date):
        return microseconds_since_epoch(datetime(value.year, value.month, value.day))
    return None


def _check_format(text: str, ticks: tuple[int, int], step: int, faults: list[str]) -> None:
    """Refuse a format that loses part of the resolution, or that Python cannot read back."""
    first, last = ticks
    steps = {first, min(first + 1, last), (first + last) // 2, max(last - 1, first), last}
    for tick in sorted(steps):
        moment = EPOCH + timedelta(microseconds=tick * step)
        try:
            back = datetime.strptime(moment.strftime(text), text).replace(tzinfo=None)
        except (ValueError, OverflowError, re.error):  # a field given twice is an error of `re`
            back = None
        if back is None or microseconds_since_epoch(back) // step != tick:
            faults.append(
                f"Expected a format that keeps every step exactly, got format={text!r}. "
                "Add the missing fields, as in %Y-%m-%d %H:%M:%S, or make the resolution coarser."
            )
            return
