"""Records of a CSV file: where each ends, told by the record itself, and those with more or fewer cells than names.

A cell in quotes may hold line breaks. A quote that nobody closes would therefore make one cell of all lines up to the
next quote, and a record longer than a block of the parser would stop it. So a record ends with its first line, and is
left out, where

- a cell that begins with a quote has no closing quote that a delimiter or a line end follows,
- with the lines up to that quote it has not as many cells as the header, or
- it has more than `LONGEST` bytes.

What is left out becomes a line of too many cells, which the parser skips and counts. The other bytes stay as they are.

A record whose cells beyond the header are all empty (a delimiter ends each line) is that record without them. Any other
is left out. Which of the two follows from the record and the header alone.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Literal, final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from sfumato.io.stored import LONGEST_LINE, BlockStream

LONGEST = LONGEST_LINE
"""Most bytes of one record, in UTF-8."""
NO_RECORD = f"a quote that is not closed, or more than {LONGEST >> 20} MiB"
"""The fault of a record that is left out here."""
_READ_BYTES = 1 << 20
_PART = 1 << 16  # bytes of which one odd quote makes all be looked at letter by letter
_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'


def record_stream(stream: IO[bytes], delimiter: str, n_columns: int) -> BlockStream:
    """Return the records of a CSV file as text, those that cannot be told apart from the others replaced.

    Args:
        stream: valid UTF-8, from the start of a record; closing this closes it.
        delimiter: one character.
        n_columns: cells of a record.
    """
    return BlockStream(stream, _records(stream, delimiter.encode(), n_columns))


def left_out(delimiter: str, n_columns: int) -> bytes:
    """Return the line that stands for a record that is left out: of too many cells."""
    return (delimiter * (n_columns + 1) + "x").encode()


def _records(stream: IO[bytes], delimiter: bytes, n_columns: int) -> Iterator[bytes]:
    """Yield the text in blocks of whole records."""
    form = _Form(delimiter, n_columns)
    text, ended = b"", False
    while not ended:
        block = stream.read(_READ_BYTES)
        ended = not block
        text += block
        text, ready = _taken(text, form, ended=ended)
        if ready:
            yield ready
        while len(text) > LONGEST and _line_end(text) is None:  # one line, far too long
            ended, text = _rest_of_line(stream)
            yield form.left_out


def _taken(text: bytes, form: _Form, *, ended: bool) -> tuple[bytes, bytes]:
    """Return the rest that has to wait for more text, and whole records."""
    last = len(text) if ended else max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
    done: list[bytes] = []
    start = 0
    while start < last:
        stop = last if last - start <= _PART else max(text.find(b"\n", start + _PART, last) + 1, 0) or last
        if form.closes_all_quotes(text[start:stop]):
            done.append(_short(text[start:stop], form.left_out))
            start = stop
        while start < stop:
            match = form.open_line.search(text, start, stop)
            lines = text[start : stop if match is None else match.start()]
            done.append(_short(lines, form.left_out))
            start += len(lines)
            if match is None:
                break
            whole = form.record.match(text, start, start + LONGEST + 1)  # the last of these is no end, but looked at
            if whole is not None and whole.end() - start <= LONGEST and (whole.end() < len(text) or ended):
                done.append(text[start : whole.end()])
                start = whole.end()
            elif not ended and len(text) - start <= LONGEST:
                return text[start:], b"".join(done)  # it may be closed further on
            else:
                done.append(form.left_out)
                start = match.end()
    return text[start:], b"".join(done)


def _short(lines: bytes, left_out: bytes) -> bytes:
    """Return lines, those that are too long replaced."""
    done: list[bytes] = []
    start = 0
    while len(lines) - start > LONGEST:
        ends = (lines.rfind(end, start, start + LONGEST + 1) for end in (b"\n", b"\r"))
        stop = max(ends) + 1
        if stop:
            done.append(lines[start:stop])
        else:
            done.append(left_out)
            stop = start + (_line_end(lines[start:]) or len(lines) - start)
        start = stop
    return b"".join([*done, lines[start:]])


def _line_end(text: bytes) -> int | None:
    match = re.search(rb"[\r\n]", text)
    return None if match is None else match.start()


def _rest_of_line(stream: IO[bytes]) -> tuple[bool, bytes]:
    """Read on to the end of a line; return whether the text is at its end, and what was read beyond the line."""
    while block := stream.read(_READ_BYTES):
        end = _line_end(block)
        if end is not None:
            return False, block[end:]
    return True, b""


@final
class _Form:
    """How records of one file look.

    Args:
        delimiter: between cells, one byte.
        n_columns: cells of a record.

    Attributes:
        left_out: a line that no record is.
        open_line: a line whose last cell is in quotes and not closed.
        record: a record of as many cells as the header, perhaps with line breaks.
    """

    def __init__(self, delimiter: bytes, n_columns: int) -> None:
        mark = re.escape(delimiter)
        bare = rb"[^\r\n" + mark + rb"]*+"  # a cell without quotes, or what follows them
        inside = rb'(?:[^"\r\n]|"")*+'
        cell = rb'(?:"' + inside + rb'"' + bare + rb'|(?!")' + bare + rb")"
        after = rb"(?=[\r\n" + mark + rb"]|\Z)"
        whole = rb'(?:"(?:[^"]|"")*+"' + after + rb'|(?!")' + bare + rb")"
        self.left_out = delimiter * (n_columns + 1) + b"x"
        self.open_line = re.compile(rb"(?:\A|(?<=[\r\n]))(?:" + cell + mark + rb')*+"' + inside + rb"(?=[\r\n]|\Z)")
        others = b"{%d}" % (n_columns - 1)
        self.record = re.compile(rb"(?:" + whole + mark + rb")" + others + whole + mark + rb"*+(?=[\r\n]|\Z)")
        self._borders = np.isin(np.arange(256), np.frombuffer(delimiter + b"\r\n", np.uint8))

    def closes_all_quotes(self, lines: bytes) -> bool:
        """Whether quotes come in pairs around cells, each in its line: then no line is open. False says nothing."""
        if b'"' not in lines:
            return True
        letters = np.frombuffer(b"\n" + lines + b"\n", np.uint8)
        quotes = np.flatnonzero(letters == _QUOTE)
        if quotes.size % 2:
            return False
        first, second = quotes[::2], quotes[1::2]
        if not (self._borders[letters[first - 1]].all() and self._borders[letters[second + 1]].all()):
            return False
        ends = np.flatnonzero((letters == _LINE_FEED) | (letters == _RETURN))
        return bool((np.searchsorted(ends, first) == np.searchsorted(ends, second)).all())


@dataclass(slots=True, repr=False)
class OddRecords:
    """The records of one pass that have another number of cells than the header.

    Attributes:
        delimiter: what parts the cells.
        names: the columns, in the header's order.
        numbers: the places of these records among all, from 1, in ascending order; those not yet passed.
        cells: of those that can be read, their cells by place.
        notes: if `counts`, the places of all, what is odd about them, and whether they can be read.
        counts: whether to keep that.
    """

    delimiter: str
    names: Sequence[str]
    counts: bool = False
    numbers: list[int] = field(default_factory=list)
    cells: dict[int, list[str]] = field(default_factory=dict)
    notes: list[tuple[int, str, bool]] = field(default_factory=list)
    _passed: int = 0

    def note(self, row: pa_csv.InvalidRow) -> Literal["skip"]:
        """Take note of a record; the parser goes on without it."""
        number = row.number
        self.numbers.append(number)
        cells = read_long(row.text, self.delimiter, len(self.names)) if row.actual_columns > len(self.names) else None
        if cells is not None:
            self.cells[number] = cells
        if self.counts:
            is_none = row.text == left_out(self.delimiter, len(self.names)).decode()
            self.notes.append((number, NO_RECORD if is_none else f"{row.actual_columns} cells", cells is not None))
        return "skip"

    def placed(self, batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the parser's records with those that are read by themselves, all in the order of the file."""
        for batch in batches:
            regular = np.zeros(0, dtype=np.int64)
            if batch.num_rows:
                regular = self._places(batch.num_rows)
                self._passed = int(regular[-1])
            for number in self.numbers:  # go on over the odd records that follow at once
                if number == self._passed + 1:
                    self._passed = number
            yield self._merged(pa.Table.from_batches([batch]), regular, columns)
        self._passed = max([self._passed, *self.numbers])
        rest = self._taken(columns)
        if rest is not None:
            yield rest[0]

    def _places(self, count: int) -> np.ndarray:
        """Return the places of the next records of the right length."""
        ahead = np.array([number for number in self.numbers if number > self._passed], dtype=np.int64)
        candidates = np.arange(self._passed + 1, self._passed + 1 + count + ahead.size)
        return np.setdiff1d(candidates, ahead, assume_unique=True)[:count]

    def _taken(self, columns: Sequence[str]) -> tuple[pa.Table, np.ndarray] | None:
        """Take out the odd records that were passed; return those that can be read, with their places."""
        passed = [number for number in self.numbers if number <= self._passed]
        self.numbers = self.numbers[len(passed) :]
        places = [number for number in passed if number in self.cells]
        if not places:
            return None
        rows = [self.cells.pop(number) for number in places]
        index = {name: place for place, name in enumerate(self.names)}
        cells = {name: pa.array([row[index[name]] for row in rows], pa.string()) for name in columns}
        return pa.table(cells), np.array(places)

    def _merged(self, table: pa.Table, places: np.ndarray, columns: Sequence[str]) -> pa.Table:
        odd = self._taken(columns)
        if odd is None:
            return table
        order = np.argsort(np.concatenate([places, odd[1]]), kind="stable")
        return pa.concat_tables([table.select(columns), odd[0]]).take(pa.array(order))


def read_long(text: str, delimiter: str, columns: int) -> list[str] | None:
    """Return the cells of a record with cells beyond the header's, if those are all empty; else None.

    Example:
        >>> read_long("34;f;", ";", 2), read_long("34;f;note", ";", 2)
        (['34', 'f'], None)
    """
    try:
        cells = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (csv.Error, StopIteration):  # a cell beyond the bound of that parser
        return None
    extra = cells[columns:]
    return cells[:columns] if extra and not any(cell.strip() for cell in extra) else None
