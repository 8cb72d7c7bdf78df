"""Columns of dates and times, on the wall clock."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from functools import lru_cache
from typing import ClassVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sfumato.columns.bounded import WholeKind
from sfumato.columns.cells import is_scalar, is_text, plain, read_floats, read_integers, read_text, values_of
from sfumato.columns.date_text import (
    default_format,
    format_dates,
    format_fault,
    has_date,
    has_digits_alone,
    parse_dates,
    written,
)
from sfumato.columns.facts import EPOCH, flag, label_text, microseconds_since_epoch, moment_text, shown
from sfumato.columns.kind import Fault, refuse, settle
from sfumato.columns.storage import from_text, number_fault, store_integer, type_words
from sfumato.columns.wall_clock import MICROSECONDS, Resolution, moments_of, read_microseconds, steps_of, store_dates

_ZERO_DATE = r"^0{4}[-/.]?00[-/.]?00(?:[ T]00:00(?::00(?:\.0+)?)?)?$|^00[-/.]00[-/.]0{4}$"
_DATES = ("month", "week", "day")
_CLOCK = re.compile(r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


def is_zero_date(text: pa.Array) -> np.ndarray:
    """Return which texts are the date of day 0, which databases write for no date.

    Example:
        >>> is_zero_date(pa.array(["0000-00-00", "0000-00-00 00:00:00", "00/00/0000", "2000-01-01"])).tolist()
        [True, True, True, False]
    """
    mask = pc.match_substring_regex(text, _ZERO_DATE)
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DateTime(WholeKind):
    """A date or a time of a calendar, without daylight saving: wall-clock time.

    Attributes:
        lower: earliest value, ISO 8601; earlier ones are clamped to it.
        upper: latest value, ISO 8601; later ones are clamped to it. A bare date is a whole day.
        resolution: times are cut down to a whole number of these since 1970-01-01; months are of the calendar, and
            weeks begin on Monday.
        format: how the column is written where it is stored as text, in the directives of `date_text`; None means
            ISO 8601. One of times alone (`%H:%M`) makes times of day of it, and so of the bounds. An offset from UTC
            stands as it is (`%H:%M:%S+02:00`): the clock on the wall is modelled.
        nullable: whether a missing cell stays missing, rather than becoming the midpoint.
        atoms: words beside all dates, such as `pending`.

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
    atoms: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        faults: list[str] = []
        lower = _bound_text("lower", self.lower, self.format, faults)
        upper = _bound_text("upper", self.upper, self.format, faults)
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
            _check_format(self.format, (first, last), self.resolution, faults)
        refuse(faults)
        self._settle_atoms(self.atoms)

    @property
    def cell_bytes(self) -> int:
        """A date by its format, of which a directive of two letters is a word at most."""
        return 64 + 8 * len(self.format or "")

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last step, counted in the resolution from 1970-01-01."""
        lower, upper = (microseconds_since_epoch(_bound(bound)) for bound in (self.lower, self.upper))
        if not any(sign in self.upper for sign in ":T "):  # a day without a time
            upper += MICROSECONDS["day"] - 1
        first, last = steps_of(np.array([lower, upper]), self.resolution).tolist()
        return first, last

    @property
    def is_clock(self) -> bool:
        """Whether values are times of day: the format has no field of a date."""
        return self.format is not None and not has_date(self.format)

    @property
    def microseconds(self) -> int:
        """Length of a step, of months on average."""
        return 2_629_746_000_000 if self.resolution == "month" else MICROSECONDS[self.resolution]

    @property
    def is_digits(self) -> bool:
        """Whether values are written in digits alone, as `20210716`: then numbers hold them too."""
        return self.format is not None and has_digits_alone(self.format)

    @property
    def zero_code(self) -> float | None:
        """None: no date is nothing."""
        return None

    @property
    def sample_type(self) -> pa.DataType:
        """Text where it is declared how it is written (numbers, if that is digits), else days, or microseconds.

        Where words may stand in their place, text.
        """
        if self.words:
            return pa.string()
        if self.format is not None:
            return pa.int64() if self.is_digits else pa.string()
        return pa.date32() if self.resolution in _DATES else pa.timestamp("us")

    def reading_fault(self, storage: pa.DataType) -> str | None:
        """Return why no cell of a type can be a date."""
        values = values_of(storage)
        if is_text(values) or types.is_null(values):
            return None
        if self.is_digits and is_scalar(values) and not types.is_boolean(values):
            return None
        timely = types.is_time(values) if self.is_clock else types.is_date(values) or types.is_timestamp(values)
        return None if timely else self._value_fault(values)

    def read(self, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return cells as steps since 1970-01-01, and a mask of those that are dates."""
        values = values_of(plain(cells).type)
        if self.is_digits and is_scalar(values) and not is_text(values):
            numbers, valid = read_integers(cells, ())  # what stands for no date is told from its text
            exact = read_floats(cells, ())
            is_whole = valid & (exact == np.rint(exact))  # a fraction is no date, as it is none in text
            cells = pa.array(numbers, mask=~is_whole).cast(pa.string())
        micros, valid = read_microseconds(cells, missing, self.format)
        return steps_of(micros, self.resolution), valid

    def faults(self, cells: pa.Array, missing: Sequence[str]) -> dict[Fault, np.ndarray]:
        """Return which cells have no value, `0000-00-00` among them, which one outside the bounds, and no date."""
        masks = super(DateTime, self).faults(cells, missing)
        cells = plain(cells)
        if is_text(cells.type):
            zero = is_zero_date(read_text(cells))
            masks["missing"] |= zero
            masks["unparseable"] &= ~zero
        return masks

    def store(self, values: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
        """Return steps in a storage type."""
        micros = moments_of(values, self.resolution)
        if not (is_text(storage) or (self.is_digits and is_scalar(storage))):
            return store_dates(micros, absent, storage)
        text = format_dates(micros, absent, self.format or default_format(self.resolution))
        if is_text(storage):
            return from_text(text, storage)
        return store_integer(text.cast(pa.int64()).fill_null(0).to_numpy(), absent, storage)

    def cell_text(self, cell: date | time) -> str:
        """Return a date or a time of Python as text that this column reads as it: a date in ISO 8601, whole.

        A time is in the format, and so is a date where the format would read that text, perhaps as another one.

        Raises:
            ValueError: the cell is no value of its type.
        """
        wall = datetime.combine(EPOCH.date(), cell) if isinstance(cell, time) else cell
        # pandas' own have more digits, and days have none
        exact = datetime(*wall.timetuple()[:6], microsecond=getattr(wall, "microsecond", 0))
        in_format = isinstance(cell, time) or _reads_iso(self.format)
        return written(exact, self.format or "") if in_format else exact.isoformat(timespec="microseconds")

    def _value_fault(self, storage: pa.DataType) -> str | None:
        if self.is_clock and types.is_time(storage):
            return None
        if self.is_digits and is_scalar(storage):
            ends = moments_of(np.array(self.bounds), self.resolution)
            first, last = format_dates(ends, np.zeros(2, dtype=bool), self.format or "").to_pylist()
            return number_fault(self.name, int(first), int(last), storage)
        if types.is_time(storage):
            return f"Expected a format of times of day for type {storage}, such as %H:%M:%S, got {shown(self.format)}."
        if not self.is_clock and types.is_date(storage):
            return None
        if self.is_clock or not types.is_timestamp(storage):
            return (
                f"Expected {'times of day' if self.is_clock else 'dates, times'} or text for kind datetime, got a "
                f"column of {type_words(storage)}. Declare integer or continuous, or store the column as timestamps."
            )
        limit = 2**63 // 1000 - 2 * MICROSECONDS["day"]  # leaves room for the offset of any zone
        if storage.unit == "ns" and np.abs(moments_of(np.array(self.bounds), self.resolution)).max() > limit:
            return (
                f"Expected bounds within the years 1678 to 2261 for type {storage}, "
                f"got lower={self.lower}, upper={self.upper}. Store the column in microseconds."
            )
        return None

    def whole_of(self, column: str, value: object, faults: list[str]) -> int | None:
        """Return the step of a date, a time, or text that reads as one."""
        micros = _microseconds(value, self.format)
        if micros is None:
            faults.append(f"Expected {column} to be a date or time without offset, got {column}={shown(value)}.")
            return None
        first, last = self.bounds
        steps = steps_of(np.array([micros]), self.resolution)
        if moments_of(steps, self.resolution)[0] != micros and first <= steps[0] <= last:
            faults.append(f"Expected {column} to be a whole {self.resolution}, got {column}={shown(value)}.")
        return int(steps[0])

    def parts(self, n: int) -> list[str]:
        """Return the bounds of each part."""
        first, last = self.bounds
        steps = [first + (last - first) * i // n for i in range(n + 1)]
        moments = moments_of(np.array(steps), self.resolution)
        form = default_format("second" if moments[-1] - moments[0] >= n * 10**6 else "microsecond")
        form = default_format("day") if self.resolution in _DATES else form  # short spans show parts of seconds
        form = self.format if self.is_clock and self.format is not None else form
        edges = format_dates(moments, np.zeros(n + 1, dtype=bool), form).to_pylist()
        return [f"{low} to {high}" for low, high in itertools.pairwise(edges)]


@lru_cache(maxsize=256)
def _reads_iso(format: str | None) -> bool:
    return bool(parse_dates(pa.array(["2001-02-03T04:05:06.000007"]), format)[1][0])


def _microseconds(value: object, format: str | None) -> int | None:
    """Return wall-clock microseconds since 1970, or None if the value is no date."""
    if isinstance(value, str):
        parsed = (parse_dates(pa.array([value.strip()]), form) for form in {format, None})
        return next((int(micros[0]) for micros, valid in parsed if valid[0]), None)
    if isinstance(value, datetime):
        return microseconds_since_epoch(value) if value.tzinfo is None else None
    if isinstance(value, date):
        return microseconds_since_epoch(datetime(value.year, value.month, value.day))
    return None


def _check_format(text: str, ticks: tuple[int, int], resolution: Resolution, faults: list[str]) -> None:
    """Refuse a format that loses part of the resolution, or that cannot be read back."""
    fault = format_fault(text)
    if fault is not None:
        faults.append(f"{fault} Got format={text!r}.")
        return
    if not has_date(text) and resolution in _DATES:
        faults.append(f"Expected a resolution of hour, minute or finer beside a time of day, got {resolution}.")
        return
    first, last = ticks
    steps = np.unique([first, min(first + 1, last), (first + last) // 2, max(last - 1, first), last])
    moments = moments_of(steps, resolution)
    back, valid = parse_dates(format_dates(moments, np.zeros(len(moments), dtype=bool), text), text)
    if not valid.all() or (steps_of(back, resolution) != steps).any():
        faults.append(
            f"Expected a format that keeps every step exactly, got format={text!r}. "
            "Add the missing fields, as in %Y-%m-%d %H:%M:%S, or make the resolution coarser."
        )


def _bound(text: str) -> datetime:
    """Return the moment of a bound; of a time of day, on 1970-01-01."""
    if _CLOCK.fullmatch(text):
        return datetime.combine(EPOCH.date(), time.fromisoformat(text))
    return datetime.fromisoformat(text)


def _bound_text(name: str, value: object, format: object, faults: list[str]) -> str:
    """Return a bound as ISO text: a month as its first day, a time of day as it is where that is what is declared."""
    if isinstance(value, time):
        value = value.isoformat()
    if isinstance(value, str) and isinstance(format, str) and not has_date(format):
        text = value.strip().rjust(5, "0")
        with contextlib.suppress(ValueError):
            _bound(text)
            return text
    if isinstance(value, str) and _MONTH.fullmatch(value.strip()):
        value = f"{value.strip()}-01"
    return moment_text(name, value, faults)
