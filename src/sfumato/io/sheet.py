"""Excel workbooks (`.xlsx`): the rows of the first sheet, each cell read by itself; what cannot be read is empty.

Cells outside the header's columns are not read: they are notes. So a cell at the far end of a sheet costs nothing.

Every cell is read as text, as a CSV file would hold it: what type Excel gave a cell decides nothing about others. A
sheet is read as a stream, within the columns of the names.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, final

import pyarrow as pa

from sfumato.columns.wall_clock import wall_clock_of
from sfumato.io.chunks import Chunk, Note, Source, attempt, batched, check_names, table_chunks
from sfumato.io.stored import StoredFile
from sfumato.io.workbook import LONGEST_CELL, SharedTexts, Styles, Workbook, plain_text, read_markup

MOST_COLUMNS, MOST_ROWS = 16_384, 1_048_576
"""Of a sheet of Excel."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_WHOLE = re.compile(r"-?[0-9]+")
_LONGEST_NUMBER = 400
_TRUTH = {"1": "true", "0": "false", "true": "true", "false": "false"}
_DAY, _LAST_DAY = 86_400_000, 2_958_466  # milliseconds; the first of 10000-01-01
_FAKE_DAY = 60  # 1900-02-29, which was none
_NEAR = 100  # columns behind those of the header in which other cells are looked for
_PART_CHARACTERS = 16 << 20  # of text in rows that are not yet a table


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
        if len(rows.pieces) > 1:  # no more of a text than tells that it is too long for a cell
            rows.pieces[:] = ["".join(rows.pieces)[: LONGEST_CELL + 1]]
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
    with contextlib.suppress(ValueError):
        return wall_clock_of(dt.datetime.fromisoformat(raw))
    with contextlib.suppress(ValueError):
        return dt.time.fromisoformat(raw).isoformat()
    return ""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ExcelSource(Source):
    """The first sheet of a workbook.

    Attributes:
        file: the workbook.
        first: the number of the first column, from 0.
    """

    file: StoredFile
    first: int

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        yield from table_chunks(self._tables(), columns, self.chunk_rows)

    def _tables(self) -> Iterator[pa.Table]:
        records = _rows(self.file, self.first, len(self.names))
        next(records)
        sized = ((row, sum(map(len, row))) for row in records)
        for rows in batched(sized, self.chunk_rows, _PART_CHARACTERS):
            cells = [pa.array(cells, pa.string()) for cells in zip(*rows, strict=True)]
            yield pa.table(cells, names=list(self.names))

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the rows that hold something near the columns of the header, and under no name. Not private."""
        if what != "beside":
            return
        last = self.first + len(self.names)
        rows = _rows(self.file, 0, last + _NEAR)
        next(rows)
        for number, row in enumerate(rows, 1):
            if any(row[: self.first]) or any(row[last:]):
                yield f"row {number} below the header"

    def size(self) -> int:
        """Bytes of the file."""
        return self.file.size


def open_excel(file: StoredFile, *, chunk_rows: int) -> ExcelSource:
    """Read the names of a workbook's first sheet.

    Raises:
        DataError: it is no workbook, or a column has no name or the name of another.
    """
    message = f"Expected {file.name} to be an Excel workbook without a password, got another or a damaged file."
    header = attempt(lambda: next(_rows(file), []), message)
    first = next((place for place, name in enumerate(header) if name), 0)
    last = max((place for place, name in enumerate(header) if name), default=-1)
    names = header[first : last + 1]
    check_names(names, file.name)
    storage = dict.fromkeys(names, pa.string())
    return ExcelSource(label=file.name, container="csv", storage=storage, chunk_rows=chunk_rows, file=file, first=first)


def _rows(file: StoredFile, *columns: int) -> Iterator[list[str]]:
    """Yield the rows of the first sheet within these columns, the first and how many; within all if none are named."""
    with file.reading() as raw:
        book = Workbook(raw)
        within = dict(zip(("first", "width"), columns, strict=False))
        with book.texts() as texts:
            yield from sheet_rows(book.sheet(), texts, book.styles, **within)
