"""The records of a CSV file without those that are too long: a parser would give up on the file for one of them.

A quote opens a quoted cell at the beginning of a cell only, and two in it are one, as for the parser. Where every quote
of a block opens or closes such a cell, numpy finds the ends of records; else a slower search does.
"""

from __future__ import annotations

import io
import re
from typing import IO, TYPE_CHECKING, final

import numpy as np

from sfumato.io.text_lines import LONGEST_LINE

if TYPE_CHECKING:
    from typing_extensions import Buffer

_READ_BYTES = 1 << 20
_START, _CELL, _QUOTED, _AFTER_QUOTE = range(4)  # before a cell, in one, within quotes, after a quote within quotes
_QUOTE, _LINE_FEED, _RETURN = b'"\n\r'


@final
class BoundedRecords(io.RawIOBase):
    """A stream of CSV text without records longer than `LONGEST_LINE`.

    Args:
        text: valid UTF-8, after the header.
        delimiter: one character of ASCII.

    Attributes:
        left_out: how many records were too long so far.
    """

    def __init__(self, text: IO[bytes], delimiter: str) -> None:
        self.left_out = 0
        self._text = text
        self._ends = RecordEnds(delimiter)
        self._begun: list[bytes] = []  # of a record whose end is not yet read
        self._length = 0
        self._pending = memoryview(b"")

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer as far as there is text; return how many bytes."""
        ended = False
        while not self._pending and not ended:
            block = self._text.read(_READ_BYTES)
            ended = not block
            self._pending = memoryview(self._whole(block) if block else self._last())
        target = memoryview(buffer)
        count = min(len(target), len(self._pending))
        target[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        return count

    def _whole(self, block: bytes) -> bytes:
        """Return the records that end in a block, from their beginning."""
        first, last = self._ends.within(block)
        if first is None or last is None:
            self._begin(block)
            return b""
        self._begin(block[:first])
        head = self._last()
        self._begin(block[last:])
        return head + block[first:last]

    def _begin(self, part: bytes) -> None:
        self._length += len(part)
        self._begun = [*self._begun, part] if self._length <= LONGEST_LINE else []

    def _last(self) -> bytes:
        """Return the record that was begun, nothing if it is too long."""
        self.left_out += self._length > LONGEST_LINE
        record = b"".join(self._begun)
        self._begun, self._length = [], 0
        return record


@final
class RecordEnds:
    """Where records end in a text that comes in blocks.

    Args:
        delimiter: one character of ASCII.
    """

    def __init__(self, delimiter: str) -> None:
        self._delimiter = ord(delimiter)
        self._end_of_cell = re.compile(b"[" + re.escape(delimiter.encode()) + rb"\r\n]")
        self._state = _START

    def within(self, block: bytes) -> tuple[int | None, int | None]:
        """Return the places after the first and the last end of a record in a block; None if there is none."""
        if b'"' not in block and self._state != _QUOTED:
            self._state = _START if block[-1] in (self._delimiter, _LINE_FEED, _RETURN) else _CELL
            firsts = [place for place in (block.find(b"\n"), block.find(b"\r")) if place >= 0]
            return (min(firsts) + 1, max(block.rfind(b"\n"), block.rfind(b"\r")) + 1) if firsts else (None, None)
        ends = self._regular(block)
        if ends is None:
            ends = self._searched(block)
        return (int(ends[0]) + 1, int(ends[-1]) + 1) if len(ends) else (None, None)

    def _regular(self, block: bytes) -> np.ndarray | None:
        """Return the ends of records; None where a quote neither opens nor closes a cell."""
        codes = np.frombuffer(block, np.uint8)
        quotes = np.flatnonzero(codes == _QUOTE)
        quoted = self._state == _QUOTED
        opening = quotes[int(quoted) :: 2]
        inner = opening[opening > 0]
        before = codes[inner - 1]
        fits = (before == self._delimiter) | (before == _LINE_FEED) | (before == _RETURN) | (before == _QUOTE)
        if not fits.all() or (inner.size < opening.size and self._state == _CELL):
            return None
        lines = np.flatnonzero((codes == _LINE_FEED) | (codes == _RETURN))
        outside = (np.searchsorted(quotes, lines) + quoted) % 2 == 0
        if (quotes.size + quoted) % 2:
            self._state = _QUOTED
        elif block[-1] == _QUOTE:
            self._state = _AFTER_QUOTE
        else:
            self._state = _START if block[-1] in (self._delimiter, _LINE_FEED, _RETURN) else _CELL
        return lines[outside]

    def _searched(self, block: bytes) -> list[int]:
        """Return the ends of records, cell by cell."""
        ends: list[int] = []
        place, state = 0, self._state
        while place < len(block):
            code = block[place]
            if state == _QUOTED:
                quote = block.find(b'"', place)
                place, state = (len(block), _QUOTED) if quote < 0 else (quote + 1, _AFTER_QUOTE)
            elif code == _QUOTE and state in (_START, _AFTER_QUOTE):
                place, state = place + 1, _QUOTED
            else:
                end = self._end_of_cell.search(block, place)
                if end is None:
                    place, state = len(block), _CELL
                else:
                    place, state = end.end(), _START
                    if block[place - 1] != self._delimiter:
                        ends.append(place - 1)
        self._state = state
        return ends
