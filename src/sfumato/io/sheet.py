"""The rows of a sheet of an Excel workbook, each cell read by itself; what cannot be read is an empty text.

Cells outside the header's columns are not read: they are notes. So a cell at the far end of a sheet costs nothing.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import IO, final

from sfumato.columns.wall_clock import wall_clock_of
from sfumato.io.markup import read_markup
from sfumato.io.workbook import LONGEST_CELL, SharedTexts, Styles, plain_text

MOST_COLUMNS, MOST_ROWS = 16_384, 1_048_576
"""Of a sheet of Excel."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"-?[0-9]+")
_LONGEST_NUMBER = 400
_TRUTH = {"1": "true", "0": "false", "true": "true", "false": "false"}
_DAY, _LAST_DAY = 86_400_000, 2_958_466  # milliseconds; the first of 10000-01-01
_FAKE_DAY = 60  # 1900-02-29, which was none


def sheet_rows(
    stream: IO[bytes], texts: SharedTexts, styles: Styles, *, first: int = 0, width: int = MOST_COLUMNS
) -> Iterator[list[str]]:
    """Yield the rows of a sheet that hold something in these columns, as `width` texts each.

    Args:
        stream: the XML of the sheet, which is closed at the end.
        texts: that cells share.
        styles: which cells are dates.
        first: the first column.
        width: the number of columns.
    """
    rows = _Rows(texts, styles, first, width)
    for _ in read_markup(stream, rows.start, rows.end, rows.pieces.append):
        yield from rows.ready
        rows.ready.clear()
        rows.shorten()
        if rows.ended:
            return


@final
class _Rows:
    """Handlers of the parser; rows that are whole wait in `ready`, the text since the last tag in `pieces`."""

    def __init__(self, texts: SharedTexts, styles: Styles, first: int, width: int) -> None:
        self.ready: list[list[str]] = []
        self.pieces: list[str] = []
        self.ended = False
        self._cells = _Cells(texts, styles)
        self._first, self._width = first, width
        self._names = _Names()
        self._places = _Places()
        self._row: list[str] | None = None
        self._column = 0
        self._kind = self._style = self._value = ""
        self._in_cell = self._reading = self._aside = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = self._names[name]
        if name == "c":
            place = attributes.get("r")
            self._column = self._column + 1 if place is None else self._places[place.rstrip("0123456789")]
            self._in_cell = self._row is not None and 0 <= self._column - self._first < self._width
            if self._in_cell:
                self._kind, self._style, self._value = attributes.get("t", "n"), attributes.get("s", ""), ""
        elif name in ("v", "t"):
            self.pieces.clear()
            self._reading = self._in_cell and not self._aside and (name == "v") == (self._kind != "inlineStr")
        elif name == "row":
            number = attributes.get("r", "")
            beyond = number.isdecimal() and (len(number) > 7 or int(number) > MOST_ROWS)
            self._row = None if beyond or self.ended else [""] * self._width
            self._column = -1
        elif name == "rPh":
            self._aside = True

    def end(self, name: str) -> None:
        name = self._names[name]
        if name in ("v", "t"):
            if self._reading and len(self._value) <= LONGEST_CELL:
                self._value += "".join(self.pieces)
            self._reading = False
        elif name == "c":
            if self._in_cell and self._row is not None and 0 < len(self._value) <= LONGEST_CELL:
                self._row[self._column - self._first] = self._cells.text(self._kind, self._style, self._value)
            self._in_cell = False
        elif name == "row":
            if self._row is not None and any(self._row):
                self.ready.append(self._row)
            self._row = None
        elif name == "rPh":
            self._aside = False
        elif name == "sheetData":
            self.ended = True

    def shorten(self) -> None:
        """Keep no more of a text than tells that it is too long for a cell."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)[: LONGEST_CELL + 1]]


class _Names(dict[str, str]):
    """Names of elements without their prefixes; a dictionary, because it is asked millions of times."""

    def __missing__(self, name: str) -> str:
        known = name.rpartition(":")[2]
        if len(self) < MOST_COLUMNS:
            self[name] = known
        return known


class _Places(dict[str, int]):
    """The number of a column, from 0, by its letters; -1 where they name none."""

    def __missing__(self, letters: str) -> int:
        if not (1 <= len(letters) <= 3 and letters.isascii() and letters.isalpha()):
            return -1
        number = 0
        for letter in letters.upper():
            number = 26 * number + ord(letter) - ord("A") + 1
        self[letters] = number - 1
        return number - 1


@final
class _Cells:
    """From what a cell holds to its text."""

    def __init__(self, texts: SharedTexts, styles: Styles) -> None:
        self._texts = texts
        self._dates = {str(number) for number in styles.dates}
        self._durations = {str(number) for number in styles.durations}
        self._moments = self._dates | self._durations
        self._from_1904 = styles.from_1904

    def text(self, kind: str, style: str, raw: str) -> str:
        """Return the text of a cell; errors, and what the cell's type does not allow, have none."""
        if kind == "n":
            return self._number(style, raw.strip())
        if kind in ("inlineStr", "str"):
            return plain_text(raw)
        raw = raw.strip()
        if kind == "s":
            return self._texts.get(int(raw)) if raw.isdecimal() and len(raw) < 12 else ""
        if kind == "b":
            return _TRUTH.get(raw, "")
        return _iso_text(raw) if kind == "d" else ""

    def _number(self, style: str, raw: str) -> str:
        if style not in self._moments and raw.isdecimal() and raw.isascii() and raw[0] != "0":
            return raw if len(raw) <= _LONGEST_NUMBER else ""
        if len(raw) > _LONGEST_NUMBER or not _NUMBER.fullmatch(raw):
            return ""
        if style not in self._moments:
            # all digits of a whole number, of which a float keeps 15
            return str(int(raw)) if _WHOLE.fullmatch(raw) else _float_text(float(raw))
        number = float(raw)
        if not 0 <= number < _LAST_DAY - (1462 if self._from_1904 else 0):  # a negative date is none
            return _float_text(number)
        return _moment_text(number, self._from_1904) if style in self._dates else _duration_text(number)


@lru_cache(maxsize=1 << 16)
def _moment_text(number: float, from_1904: bool) -> str:
    milliseconds = round(number * _DAY)
    if milliseconds < _DAY and not from_1904:
        return (dt.datetime.min + dt.timedelta(milliseconds=milliseconds)).time().isoformat()
    start = dt.datetime(1904, 1, 1) if from_1904 else dt.datetime(1899, 12, 31 if number < _FAKE_DAY else 30)
    return wall_clock_of(start + dt.timedelta(milliseconds=milliseconds))


def _float_text(number: float) -> str:
    if not math.isfinite(number):
        return ""
    return str(int(number)) if number.is_integer() else repr(number)


def _duration_text(number: float) -> str:
    seconds, milliseconds = divmod(round(number * _DAY), 1000)
    minutes, seconds = divmod(seconds, 60)
    text = f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    return f"{text}.{milliseconds:03d}" if milliseconds else text


def _iso_text(raw: str) -> str:
    try:
        return wall_clock_of(dt.datetime.fromisoformat(raw))
    except ValueError:
        pass
    try:
        return dt.time.fromisoformat(raw).isoformat()
    except ValueError:
        return ""
