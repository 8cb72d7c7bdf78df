"""Dates and times as text, by formats in the directives of strftime, in English whatever the machine's language.

    %Y %y %m %d %j   %b %B %a %A   %G %V %u   %H %I %p %M %S %f   %%
    %-d %-m %-H %-I      without a zero before one digit
    %^b %^B              in capitals
    %3f                  milliseconds

A format names a moment: what it leaves out is the first there is (of a month its first day, of a week its Monday, of a
time of day 1970-01-01). An offset from UTC is a part of the format, as it stands (`%H:%M:%S+02:00`): the clock on the
wall is what is read, and the offset is written back.

A format whose fields all have a fixed place is a matrix of bytes. Other texts are read by a pattern, each distinct one
once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.cells import dictionary_indices
from sfumato.columns.facts import microseconds_since_epoch

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = tuple(month[:3] for month in MONTHS)
_DIRECTIVE = re.compile(r"%([-^]?)(3f|[A-Za-z%])")
_DAY = 86_400_000_000
_WIDTHS = {
    **{"Y": 4, "y": 2, "m": 2, "d": 2, "j": 3, "H": 2, "I": 2, "M": 2, "S": 2, "f": 6, "3f": 3},
    **{"G": 4, "V": 2, "u": 1, "p": 2, "b": 3},
}
_DIGITS = frozenset({"Y", "m", "d", "j", "H", "M", "S", "f", "3f"})
_FIXED = _DIGITS - {"j"} | {"y", "b"}  # with a place in a layout
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 to 9999
_CENTURY = 69  # two digits from here on are of the twentieth century, as in POSIX
_NAMES = {
    **{"p": ("AM", "PM"), "b": _SHORT, "B": MONTHS},
    **{"a": tuple(day[:3] for day in WEEKDAYS), "A": WEEKDAYS, "%": ("%",)},
}
_PATTERNS = {
    **{letter: rf"(?P<{letter}>[0-9]{{1,2}})" for letter in "mdHIMSV"},
    **{letter: rf"(?P<{letter}>[0-9]{{4}})" for letter in "YG"},
    **{"y": r"(?P<y>[0-9]{2})", "j": r"(?P<j>[0-9]{1,3})", "u": r"(?P<u>[1-7])"},
    **{"f": r"(?P<f>[0-9]{1,6})", "3f": r"(?P<f>[0-9]{3})"},
    **{letter: rf"(?P<{letter}>{'|'.join(_NAMES[letter])})" for letter in "pbB"},
    **{letter: rf"(?:{'|'.join(_NAMES[letter])})" for letter in "aA%"},
}
_ISO_FORMATS = (
    "%Y-%m-%d",
    *(f"%Y-%m-%d{mark}{clock}" for clock in ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f") for mark in " T"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a format: a directive, or what stands as it is.

    Attributes:
        directive: its letters; empty for text.
        flag: `-` or `^`, or empty.
        text: what stands as it is.
    """

    directive: str = ""
    flag: str = ""
    text: str = ""


@lru_cache(maxsize=1024)
def parts_of(format: str) -> tuple[Part, ...]:
    """Return the parts of a format.

    Example:
        >>> [part.directive or part.text for part in parts_of("%-d.%m. %Y")]
        ['d', '.', 'm', '. ', 'Y']
    """
    parts, place = [], 0
    for match in _DIRECTIVE.finditer(format):
        parts += [Part(text=format[place : match.start()])] if match.start() > place else []
        parts.append(Part(directive=match[2], flag=match[1]))
        place = match.end()
    return (*parts, Part(text=format[place:])) if place < len(format) else tuple(parts)


def format_fault(format: str) -> str | None:
    """Return why a format cannot be used; None if it can.

    Example:
        >>> format_fault("%Y-%m-%dT%H:%M:%S+02:00")
        >>> format_fault("%Y-%m-%d %H:%M%z")
        'Expected the offset itself in place of %z, such as %H:%M+02:00 or %H:%MZ: it is written back as it stands.'
    """
    letters = [part.directive for part in parts_of(format) if part.directive]
    if "z" in letters or "Z" in letters:
        return (
            "Expected the offset itself in place of %z, such as %H:%M+02:00 or %H:%MZ: it is written back as it stands."
        )
    unknown = [letter for letter in letters if letter not in _WIDTHS | _NAMES]
    if unknown:
        return f"Expected the directives {' '.join('%' + key for key in _WIDTHS | _NAMES)}, got %{unknown[0]}."
    if not letters or len(set(letters)) < len(letters):
        return "Expected each field of a date once, as in %Y-%m-%d."
    return None


def has_date(format: str) -> bool:
    """Whether a format has any field of a date, and not of a time of day alone.

    Example:
        >>> has_date("%d.%m.%Y"), has_date("%H:%M")
        (True, False)
    """
    return not {part.directive for part in parts_of(format)} <= {"", "H", "I", "p", "M", "S", "f", "3f", "%"}


def has_digits_alone(format: str) -> bool:
    """Whether all texts of a format are digits, as many each: whole numbers, as which they may be stored.

    Example:
        >>> [has_digits_alone(format) for format in ("%Y%m%d", "%Y", "%Y-%m", "%b", "%d%m%Y")]
        [True, True, False, False, False]
    """
    parts = parts_of(format)
    return format.startswith("%Y") and all(not part.flag and part.directive in _DIGITS for part in parts)


def default_format(resolution: str) -> str:
    """Return the format in which dates without one are written as text: ISO 8601, with a space before the time.

    Example:
        >>> default_format("day"), default_format("hour")
        ('%Y-%m-%d', '%Y-%m-%d %H:%M:%S')
    """
    if resolution in ("month", "week", "day"):
        return "%Y-%m-%d"
    return f"%Y-%m-%d %H:%M:%S{'.%f' if resolution in ('millisecond', 'microsecond') else ''}"


def parse_dates(text: pa.Array, format: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return text cells as wall-clock microseconds since 1970-01-01, and a mask of the cells that are dates.

    Args:
        text: of any length n.
        format: a format; None for ISO 8601.

    Example:
        >>> micros, valid = parse_dates(pa.array(["2 Jan 1970", "35 Jan 1970"]), "%-d %b %Y")
        >>> int(micros[0]) // 3_600_000_000, valid.tolist()
        (24, [True, False])
    """
    micros = np.zeros(len(text), dtype=np.int64)
    valid = np.zeros(len(text), dtype=bool)
    lengths = pc.binary_length(text).fill_null(-1).to_numpy(zero_copy_only=False)
    for layout in map(_layout, _ISO_FORMATS if format is None else (format,)):
        if layout is not None:
            _parse_layout(text, layout, lengths, micros, valid)
    rest = (lengths >= 0) & ~valid
    if rest.any():
        micros[rest], valid[rest] = _parse_each(text.filter(pa.array(rest)), format)
    return micros, valid


def format_dates(micros: np.ndarray, absent: np.ndarray, format: str) -> pa.Array:
    """Return wall-clock microseconds as text, null where absent.

    Example:
        >>> format_dates(np.array([0]), np.array([False]), "%-d %^b %Y, %H:%M").to_pylist()
        ['1 JAN 1970, 00:00']
    """
    fields, words = _fields(micros), []
    for part in parts_of(format):
        if not part.directive:
            words.append(pa.scalar(part.text))
            continue
        number = pa.array(fields[part.directive])
        if part.directive in _NAMES:
            word = pa.array(_NAMES[part.directive]).take(number)
        else:
            width = 1 if part.flag == "-" else _WIDTHS[part.directive]
            word = pc.utf8_lpad(number.cast(pa.string()), width=width, padding="0")
        words.append(pc.utf8_upper(word) if part.flag == "^" else word)
    return pc.if_else(pa.array(absent), pa.scalar(None, pa.string()), pc.binary_join_element_wise(*words, ""))


def written(moment: datetime, format: str) -> str:
    """Return one moment as text.

    Example:
        >>> written(datetime(2024, 3, 5), "%G-W%V")
        '2024-W10'
    """
    return format_dates(np.array([microseconds_since_epoch(moment)]), np.array([False]), format)[0].as_py()


class _Layout(NamedTuple):
    """A format whose fields all have a fixed place: the first byte of each directive, and the place of other bytes."""

    width: int
    fields: dict[str, int]
    literals: list[tuple[int, int]]


@lru_cache(maxsize=1024)
def _layout(format: str) -> _Layout | None:
    """Return the fixed places of a format's fields, or None if they depend on the date."""
    fields: dict[str, int] = {}
    literals: list[tuple[int, int]] = []
    place = 0
    for part in parts_of(format):
        if part.directive:
            if part.directive not in _FIXED or part.flag == "-" or part.directive in fields:
                return None
            fields[part.directive] = place
            place += _WIDTHS[part.directive]
        else:
            literals += [(byte, place + i) for i, byte in enumerate(part.text.encode())]
            place += len(part.text.encode())
    letters = set(fields)
    dated = ("Y" in letters) != ("y" in letters) and ("m" in letters) != ("b" in letters)
    if not (dated or (letters and letters <= {"H", "M", "S", "f", "3f"})):
        return None
    return _Layout(place, fields, literals)


def _parse_layout(text: pa.Array, layout: _Layout, lengths: np.ndarray, micros: np.ndarray, valid: np.ndarray) -> None:
    """Fill in the cells that match a layout exactly and name a moment of the calendar."""
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
    numbers = {letter: _field(grid, letter, place, fits) for letter, place in layout.fields.items()}
    moments, within = _moments(numbers, len(grid))
    fits &= within
    here = np.flatnonzero(chosen)[fits]
    micros[here] = moments[fits]
    valid[here] = True


def _field(grid: np.ndarray, letter: str, place: int, fits: np.ndarray) -> np.ndarray:
    """Return a field of each row, int64; note in `fits` where it has none."""
    width = _WIDTHS[letter]
    if letter == "b":
        names = grid[:, place : place + width] | np.uint8(32)
        known = np.array([list(month.lower().encode()) for month in _SHORT], dtype=np.uint8)
        same = (names[:, None, :] == known[None]).all(axis=2)
        fits &= same.any(axis=1)
        return same.argmax(axis=1).astype(np.int64) + 1
    number = np.zeros(len(grid), dtype=np.int64)
    for digit in range(width):
        value = grid[:, place + digit] - np.uint8(48)  # bytes below "0" wrap above 9
        fits &= value <= 9
        number = number * 10 + value
    return number


def _moments(numbers: dict[str, np.ndarray], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return microseconds since 1970 of fields, and whether there is such a moment."""
    zero, one = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
    days, within = _days(numbers, zero, one)
    hour, minute, second = (numbers.get(letter, zero) for letter in "HMS")
    if "I" in numbers:
        hour = numbers["I"] % 12 + 12 * numbers.get("p", zero)
        within &= (numbers["I"] >= 1) & (numbers["I"] <= 12)
    within &= (hour <= 23) & (minute <= 59) & (second <= 59) & (days >= _FIRST_DAY) & (days <= _LAST_DAY)
    fraction = numbers["3f"] * 1000 if "3f" in numbers else numbers.get("f", zero)
    return np.where(within, days * _DAY + ((hour * 60 + minute) * 60 + second) * 10**6 + fraction, 0), within


def _days(numbers: dict[str, np.ndarray], zero: np.ndarray, one: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return days since 1970-01-01 of the fields of a date, and whether that day is in the calendar."""
    if "G" in numbers:
        year, week = numbers["G"], numbers.get("V", one)
        first, following = _first_monday(year), _first_monday(year + 1)
        day = first + (week - 1) * 7 + numbers.get("u", one) - 1
        return day, (day >= first) & (day < following)
    year = numbers.get("Y", zero + 1970)
    if "y" in numbers:
        year = numbers["y"] + np.where(numbers["y"] >= _CENTURY, 1900, 2000)
    if "j" in numbers:
        first, following = (_first_of_month(each, one) for each in (year, year + 1))
        return first + numbers["j"] - 1, (numbers["j"] >= 1) & (first + numbers["j"] <= following)
    month, day = numbers.get("b", numbers.get("B", numbers.get("m", one))), numbers.get("d", one)
    in_calendar = (month >= 1) & (month <= 12) & (day >= 1)
    first, following = (_first_of_month(year, np.where(in_calendar, month, 1) + i) for i in (0, 1))
    return first + day - 1, in_calendar & (first + day <= following)


def _first_of_month(year: np.ndarray, month: np.ndarray) -> np.ndarray:
    """Return the first day of each month, since 1970-01-01."""
    return ((year - 1970) * 12 + month - 1).view("M8[M]").astype("M8[D]").view(np.int64)


def _first_monday(year: np.ndarray) -> np.ndarray:
    """Return the Monday of the first week of each year by ISO 8601, in which 4 January lies."""
    day = _first_of_month(year, np.ones_like(year)) + 3
    return day - (day + 3) % 7  # 1970-01-01 was a Thursday


def _fields(micros: np.ndarray) -> dict[str, np.ndarray]:
    """Return what each directive says of moments: a number, or the place of a name."""
    days, within = np.divmod(micros, _DAY)
    seconds, fraction = np.divmod(within, 10**6)
    calendar = days.view("M8[D]").astype("M8[M]")
    months, weekday, hour = calendar.view(np.int64), (days + 3) % 7, seconds // 3600
    year, one = 1970 + months // 12, np.ones_like(days)
    of_week = 1970 + (days - weekday + 3).view("M8[D]").astype("M8[Y]").view(np.int64)  # the year of its Thursday
    numbers = {
        "Y": year, "y": year % 100, "m": 1 + months % 12, "d": 1 + days - calendar.astype("M8[D]").view(np.int64),
        "j": 1 + days - _first_of_month(year, one), "H": hour, "I": (hour - 1) % 12 + 1, "M": seconds // 60 % 60,
        "S": seconds % 60, "f": fraction, "3f": fraction // 1000, "G": of_week,
        "V": (days - _first_monday(of_week)) // 7 + 1, "u": weekday + 1, "p": hour // 12, "%": 0 * one,
    }  # fmt: skip
    return numbers | dict.fromkeys("bB", months % 12) | dict.fromkeys("aA", weekday)


def _parse_each(text: pa.Array, format: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Parse the cells that no fixed layout fits, each distinct one once."""
    coded = text.dictionary_encode()
    words, places = coded.dictionary.to_pylist(), dictionary_indices(coded)
    if format is None:
        moments = pa.array(map(_iso_moment, words), pa.int64()).take(coded.indices)
        return moments.fill_null(0).to_numpy(), moments.is_valid().to_numpy(zero_copy_only=False)
    pattern = _pattern(format)
    rows = [None if pattern is None else pattern.fullmatch(word) for word in words]
    matched = np.flatnonzero([row is not None for row in rows])
    micros, valid = np.zeros(len(words), dtype=np.int64), np.zeros(len(words), dtype=bool)
    if pattern is not None and matched.size:
        fields = {key: [_number(key, row[key]) for row in rows if row is not None] for key in pattern.groupindex}
        numbers = {key: np.array(each, dtype=np.int64) for key, each in fields.items()}
        micros[matched], valid[matched] = _moments(numbers, matched.size)
    return micros[places], valid[places]


def _iso_moment(word: str) -> int | None:
    """Return the microseconds since 1970 of a text of ISO 8601, on the wall."""
    try:
        return microseconds_since_epoch(datetime.fromisoformat(word).replace(tzinfo=None))
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=1024)
def _pattern(format: str) -> re.Pattern[str] | None:
    """Return the pattern of a format's texts; None for a format that has a fault."""
    if format_fault(format) is not None:
        return None
    words = []
    for part in parts_of(format):
        words.append(_PATTERNS[part.directive] if part.directive else re.sub(r"(\\\s)+", r"\\s+", re.escape(part.text)))
    return re.compile("".join(words), re.IGNORECASE)


def _number(field: str, word: str) -> int:
    """Return the number of a field: of a month's name its place, of half of a day 0 or 1."""
    if field in "bB":
        return _SHORT.index(word[:3].title()) + 1
    if field == "p":
        return int(word.lower() == "pm")
    return int(word.ljust(6, "0") if field == "f" else word)
