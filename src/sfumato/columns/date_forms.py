"""The forms in which people write dates and times: a public list, and which of them the texts of a column have.

A text *has* a form if writing what was read gives it back, to the letter. One text may have several (`03/04/2021`), so
forms are listed in families, in each of which what is particular comes last: a column has the last form of its family
that a few of its texts ask for (`13/04/2021` has a day first, `4/13/2021` has not, and no zero either).

All functions are elementwise: what a text is never depends on the texts beside it.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.columns.date_text import MONTHS, WEEKDAYS, format_dates, has_date, parse_dates, parts_of
from sfumato.columns.wall_clock import MICROSECONDS, Resolution

OFFSETS = (
    *("Z", " UTC", " GMT", "-02:30", "-03:30", "-09:30"),
    *(f"{sign}{hour:02}:00" for sign, last in (("-", 12), ("+", 14)) for hour in range(last + 1)),
    *("+03:30", "+04:30", "+05:30", "+05:45", "+06:30", "+08:45", "+09:30", "+10:30", "+12:45", "+13:45"),
)
"""Offsets from UTC that clocks show somewhere."""

_YEARS = (1800, 2199)  # of dates without a mark between their digits, which may be any numbers
_LONGEST = 40
_SHARE = 0.01  # of a family's texts that a particular form has to have


@dataclass(frozen=True, slots=True)
class DateForm:
    """A way of writing dates.

    Attributes:
        family: what forms that one column may mix have in common.
        format: the format of `date_text`.
        resolution: the coarsest that all texts counted for this form are multiples of.
        offset: the offset from UTC at its end; empty without.
    """

    family: str
    format: str
    resolution: Resolution
    offset: str = ""


def _days() -> Iterator[tuple[str, str]]:
    """Yield family and format of days without a time, but for those of ISO 8601."""
    for mark in "/.":
        yield from ((f"y{mark}m", f) for f in (f"%Y{mark}%m{mark}%d", f"%Y{mark}%-m{mark}%-d"))
    for mark, year in itertools.product("/.-", "Yy"):
        for day, month in (("%d", "%m"), ("%-d", "%-m")):
            for first, second in ((day, month), (month, day)):
                yield f"d{mark}{year}", f"{first}{mark}{second}{mark}%{year}"
    for (mark, second), year in itertools.product({"-": "-", " ": " ", "": "", "/": "/", ". ": " "}.items(), "Yy"):
        for name, day in itertools.product(("%b", "%^b", "%B"), ("%d", "%-d")):
            if mark or day == "%d":
                yield f"d{mark}b{year}", f"{day}{mark}{name}{second}%{year}"
    for mark in (", ", " ", "-"):
        for name, day in itertools.product(("%b", "%B"), ("%d", "%-d")):
            yield f"b d{mark}", f"{name}{mark[-1]}{day}{mark}%Y"
    yield from ((f"named {format}", format) for format in ("%Y-%b-%d", "%d.%b.%Y"))
    yield "compact", "%Y%m%d"


_TIMES: dict[Resolution, str] = {
    "hour": " %H",
    "minute": " %H:%M",
    "second": " %H:%M:%S",
    "millisecond": " %H:%M:%S.%3f",
    "microsecond": " %H:%M:%S.%f",
}
_LADDER: tuple[Resolution, ...] = ("day", *_TIMES)
_CLOCKS: list[tuple[Resolution, str]] = [
    (finest, f"{_TIMES[finest]} %p".replace("%H", hour)) for finest in _LADDER[2:4] for hour in ("%I", "%-I")
]


def _ladder(family: str, format: str, finest: Resolution, offset: str = "") -> Iterator[DateForm]:
    """Yield a form with every resolution that its texts may show: days are often written to the second."""
    for resolution in _LADDER[0 if has_date(format) else 1 : _LADDER.index(finest) + 1]:
        yield DateForm(family, format, resolution, offset)


def _iso() -> Iterator[DateForm]:
    yield DateForm("iso", "%Y-%m-%d", "day")
    for mark in " T":
        for finest in _LADDER[2:]:
            format = "%Y-%m-%d" + _TIMES[finest].replace(" ", mark)
            yield from _ladder("iso", format, finest)
            for offset in OFFSETS:
                for written in dict.fromkeys((offset, offset.replace(":", ""))):
                    yield from _ladder(f"iso{mark}z".strip(), format + written, finest, written)


_MONTHS = (
    *("%Y-%m", "%m/%Y", "%Y/%m", "%m.%Y", "%Y%m", "%b %Y", "%B %Y"),
    *("%b-%Y", "%B-%Y", "%b-%y", "%Y-%b", "%m-%Y", "%YM%m", "%B-%y"),
)
_LOGGED: tuple[tuple[str, Resolution], ...] = (
    ("%Y%m%d %H:%M", "minute"),
    ("%d.%m.%Y, %H:%M", "minute"),
    ("%Y-%m-%d %I:%M %p", "minute"),
    ("%Y-%m-%d %I:%M:%S %p", "second"),
    ("%d/%b/%Y:%H:%M:%S", "second"),
    ("%a %b %d %H:%M:%S %Y", "second"),
)


def _rarer() -> Iterator[DateForm]:
    """Yield moments as programs log them, and days with their place in a week or a year."""
    for format, finest in _LOGGED:
        yield from _ladder(f"logged {format}", format, finest)
    yield DateForm("week day", "%G-W%V-%u", "day")
    yield DateForm("year day", "%Y-%j", "day")
    for names, mark, day in itertools.product(("%a %b", "%A %B"), (", ", " "), ("%d", "%-d")):
        weekday, month = names.split()
        yield DateForm(f"{weekday}{mark}d b", f"{weekday}{mark}{day} {month} %Y", "day")
        yield DateForm(f"{weekday}{mark}b d", f"{weekday}{mark}{month} {day}, %Y", "day")


def _forms() -> Iterator[DateForm]:
    yield from _iso()
    for family, format in _days():
        yield DateForm(family, format, "day")
        if family == "compact":
            continue
        for finest, hour in itertools.product(_LADDER[2:4], ("%H", "%-H")):
            yield from _ladder(f"{family} t", format + _TIMES[finest].replace("%H", hour), finest)
        for finest, clock in _CLOCKS if family in ("d/Y", "d/y", "d-Y", "b d, ") else ():
            yield from _ladder(f"{family} p", format + clock, finest)
    yield from _ladder("compact t", "%Y%m%dT%H%M%S", "second")
    yield from _ladder("compact s", "%Y%m%d%H%M%S", "second")
    for format in _MONTHS:
        yield DateForm(f"month {format.replace('B', 'b')}", format, "month")
    for format in ("%G-W%V", "%GW%V"):
        yield DateForm(f"week {format}", format, "week")
    yield from _rarer()
    for finest, hour in itertools.product(_LADDER[2:4], ("%H", "%-H")):
        family = "time" if finest == "minute" else "time s"
        yield from _ladder(family, _TIMES[finest].strip().replace("%H", hour), finest)
    for finest, clock in _CLOCKS:
        yield from _ladder("time p", clock.strip(), finest)


DATE_FORMS = tuple(_forms())
"""Every form; of a family, what is particular comes last."""

_BY_FORMAT: defaultdict[str, list[int]] = defaultdict(list)
_FAMILIES: defaultdict[str, list[int]] = defaultdict(list)
for _number, _form in enumerate(DATE_FORMS):
    _BY_FORMAT[_form.format].append(_number)
    _FAMILIES[_form.family].append(_number)
_NAME, _HALF, _WEEKDAY = "\x01", "\x02", "\x03"
_SHAPES = dict.fromkeys("bB", _NAME) | dict.fromkeys("aA", _WEEKDAY) | {"p": _HALF, "u": "9", "j": "999", "f": "9" * 6}
_SHAPES |= dict.fromkeys("ymdHIMSV", "99") | dict.fromkeys("YG", "9999") | {"3f": "999"}
_MONTH = rf"(?i)(?:{'|'.join(MONTHS)}|{'|'.join(month[:3] for month in MONTHS if month != 'May')})"
_DAY_NAME = rf"(?i)^(?:{'|'.join(WEEKDAYS)}|{'|'.join(day[:3] for day in WEEKDAYS)})"


def date_forms(text: pa.Array) -> np.ndarray:
    """Return of each text the first of `DATE_FORMS` that it has, with its own resolution; -1 for no date.

    Example:
        >>> places = date_forms(pa.array(["2021-07-16", "5-Jan-2021", "2021-07-16T08:00:00+02:00", "2022-W05", "red"]))
        >>> [DATE_FORMS[place].format if place >= 0 else None for place in places.tolist()]
        ['%Y-%m-%d', '%-d-%b-%Y', '%Y-%m-%dT%H:%M:%S+02:00', '%G-W%V', None]
    """
    places = np.full(len(text), -1, dtype=np.int64)
    shapes = _formats_by_shape()
    known = pc.index_in(_shapes_of(text), value_set=pa.array(list(shapes), text.type))
    which = known.fill_null(-1).to_numpy(zero_copy_only=False)
    formats = list(shapes.values())
    for i in np.unique(which[which >= 0]).tolist():
        here = np.flatnonzero(which == i)
        _place(places, here, text.take(pa.array(here)), formats[i])
    return places


def chosen_form(counts: np.ndarray, least: float = 0.0) -> DateForm | None:
    """Return the form of a column by how many of its texts have each of `DATE_FORMS` first; None if none stands out.

    Args:
        counts: shape (forms,), exact or noisy.
        least: counts up to here may be noise.

    Example:
        >>> texts = pa.array(["03/04/2021", "04/13/2021"])
        >>> chosen_form(np.bincount(date_forms(texts), minlength=len(DATE_FORMS))).format
        '%m/%d/%Y'
    """
    weight = {name: float(np.where(counts[some] > least, counts[some], 0.0).sum()) for name, some in _FAMILIES.items()}
    name = max(weight, key=lambda family: weight[family])
    if weight[name] <= 0:
        return None
    some = _FAMILIES[name]
    offsets: defaultdict[str, float] = defaultdict(float)
    for i in some:
        offsets[DATE_FORMS[i].offset] += max(float(counts[i]) - least, 0.0)
    offset = max(offsets, key=lambda key: offsets[key])
    present = [i for i in some if DATE_FORMS[i].offset == offset and counts[i] > max(least, _SHARE * weight[name])]
    if not present:
        return None
    last = DATE_FORMS[present[-1]]
    finest = min((DATE_FORMS[i] for i in present), key=lambda form: MICROSECONDS[form.resolution])
    return DateForm(name, last.format, finest.resolution, offset)


def _shapes_of(text: pa.Array) -> pa.Array:
    """Return texts with 9 for each digit and a mark for a month's name and half of a day; null for what is too long."""
    none = pa.scalar(None, text.type)
    short = pc.less_equal(pc.binary_length(text), _LONGEST)
    shape = pc.if_else(pc.fill_null(short, False), text, none)
    shape = pc.if_else(pc.fill_null(pc.match_substring_regex(shape, "[0-9]"), False), shape, none)
    shape = pc.replace_substring_regex(shape, pattern=_MONTH, replacement=_NAME)
    shape = pc.replace_substring_regex(shape, pattern=_DAY_NAME, replacement=_WEEKDAY)
    shape = pc.replace_substring_regex(shape, pattern="[AP]M$", replacement=_HALF)
    return pc.replace_substring_regex(shape, pattern="[0-9]", replacement="9")


def _place(places: np.ndarray, here: np.ndarray, text: pa.Array, formats: list[str]) -> None:
    """Note the first form that each text has."""
    left = np.ones(len(here), dtype=bool)
    for format in formats:
        some = np.flatnonzero(left)
        if not some.size:
            return
        cells = text.take(pa.array(some))
        micros, valid = parse_dates(cells, format)
        back = format_dates(micros, ~valid, format)
        has = valid & pc.fill_null(pc.equal(back, cells.cast(pa.string())), False).to_numpy(zero_copy_only=False)
        if "compact" in DATE_FORMS[_BY_FORMAT[format][0]].family or format == "%Y%m":
            years = micros.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
            has &= (years >= _YEARS[0]) & (years <= _YEARS[1])
        listed = _BY_FORMAT[format]
        rungs = np.array([MICROSECONDS[DATE_FORMS[i].resolution] for i in listed])
        fits = micros[:, None] % rungs == 0 if len(listed) > 1 else np.ones((len(micros), 1), dtype=bool)
        fits[:, -1] = True
        places[here[some[has]]] = np.array(listed)[fits.argmax(axis=1)][has]
        left[some[has]] = False


@lru_cache(maxsize=1)
def _formats_by_shape() -> dict[str, list[str]]:
    """Return each shape that a date may have, with the formats whose texts may have it, in order."""
    formats: dict[str, list[str]] = {}
    for format in _BY_FORMAT:
        parts = []
        for part in parts_of(format):
            shape = _SHAPES[part.directive] if part.directive else re.sub("[0-9]", "9", part.text)
            parts.append(("9", "99") if part.flag == "-" else (shape,))
        for shape in map("".join, itertools.product(*parts)):
            formats.setdefault(shape, []).append(format)
    return formats
