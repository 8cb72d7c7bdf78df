"""The parts of an Excel workbook (`.xlsx`): its first sheet, the texts that cells share, and which styles are dates.

XML is read as a stream of events, in little memory. What no XML may hold (control characters, halves of pairs) is taken
out before the parser sees it: it stands in the cell of one record, and must not stop the others from being read.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import struct
import tempfile
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, final
from xml.parsers import expat

from sfumato.columns.cells import valid_text
from sfumato.errors import DataError
from sfumato.io.csv import open_utf8
from sfumato.io.stored import open_member
from sfumato.io.untrusted import UntrustedZip

_BLOCK_BYTES = 1 << 16
_LONGEST_TAG = 1 << 22
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r")
_REFERENCE = re.compile(rb"&#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_TAIL = 12  # bytes of the longest such reference
LONGEST_CELL = 32_767
"""Characters of the longest text that a cell of Excel has."""

_MOST_ENTRIES = 65_536  # of sheets, styles and formats
_IN_MEMORY = 16 << 20
_CACHE_SIZE, _CACHE_LENGTH = 1 << 16, 64
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_ASIDE = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\]]*\]', re.IGNORECASE | re.DOTALL)
_DATES = {*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)}
_DURATION = 46


def read_markup(
    stream: IO[bytes],
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], object],
) -> Iterator[None]:
    """Parse XML and call back for elements and text; yields after every block, so that the caller can take what came.

    Args:
        stream: in UTF-8, or in UTF-16 after its mark.
        start: called with an element's name, as it is written, and its attributes.
        end: called with its name.
        text: called with pieces of text.

    Raises:
        DataError: it declares a document type, or one tag is longer than 4 MiB.
        expat.ExpatError: it is not well formed.
    """
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = _refuse
    fed = 0
    with open_utf8(stream) as valid:
        for block in _characters(valid):
            parser.Parse(block, False)
            fed += len(block)
            if fed - parser.CurrentByteIndex > _LONGEST_TAG:
                _refuse()
            yield
    parser.Parse(b"", True)
    yield


def _refuse(*_: object) -> None:
    raise DataError("Expected XML without a document type and with short tags, got others.")


def _characters(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a text in blocks, without what XML does not allow; a reference is never cut in two."""
    rest = b""
    while block := stream.read(_BLOCK_BYTES):
        block = rest + block.translate(None, _CONTROLS)
        cut = max(block.rfind(b"&", -_TAIL), block.rfind(b"\xef", -2))
        cut = len(block) if cut < 0 or b";" in block[cut:] else cut
        block, rest = block[:cut], block[cut:]
        if b"&#" in block:
            block = _REFERENCE.sub(_allowed, block)
        yield block.replace(b"\xef\xbf\xbe", b"").replace(b"\xef\xbf\xbf", b"")
    yield rest


def _allowed(reference: re.Match[bytes]) -> bytes:
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    sound = code in (9, 10, 13) or 32 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    return reference[0] if sound else b""


@final
@dataclass(slots=True)
class Styles:
    """Which styles of cells are dates and durations, by their number; `from_1904` says where days are counted from."""

    dates: set[int] = field(default_factory=set)
    durations: set[int] = field(default_factory=set)
    from_1904: bool = False


@final
class Workbook:
    """A workbook that is open.

    Args:
        raw: its bytes, which can be sought in.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        self._archive = UntrustedZip(raw)
        self._members = {info.filename.replace("\\", "/").lower(): info for info in self._archive.infolist()}
        book = self._related("", "officeDocument").get("", "xl/workbook.xml")
        ids: list[str] = []
        self.styles = Styles()

        def start(name: str, attributes: dict[str, str]) -> None:
            if local(name) == "sheet" and len(ids) < _MOST_ENTRIES:
                ids.append(next((value for key, value in attributes.items() if local(key) == "id"), ""))
            elif local(name) == "workbookPr":
                self.styles.from_1904 = attributes.get("date1904") in ("1", "true")

        self._read(book, start)
        sheets = self._related(book, "worksheet")
        first = next((sheets[key] for key in ids if key in sheets), None)
        if first is None:
            raise DataError("Expected a sheet in the workbook, got none.")
        self._sheet = first
        self._texts = next(iter(self._related(book, "sharedStrings").values()), None)
        style = next(iter(self._related(book, "styles").values()), None)
        if style is not None and style.lower() in self._members:
            self._read_styles(style)

    def sheet(self) -> IO[bytes]:
        """Open the first sheet."""
        return self._open(self._sheet)

    @contextlib.contextmanager
    def texts(self) -> Iterator[SharedTexts]:
        """Read the texts that cells share."""
        with contextlib.closing(SharedTexts()) as texts:
            if self._texts is not None and self._texts.lower() in self._members:
                texts.read(self._open(self._texts))
            yield texts

    def _open(self, name: str) -> IO[bytes]:
        return open_member(self._archive, self._members[name.lower()])

    def _read(self, name: str, start: object) -> None:
        for _ in read_markup(self._open(name), start, _nothing, _nothing):  # pyright: ignore[reportArgumentType]
            pass

    def _related(self, part: str, kind: str) -> dict[str, str]:
        """Return the parts of a kind that belong to a part, by their identity there; the package itself has one."""
        folder, name = posixpath.split(part)
        place = posixpath.join(folder, "_rels", f"{name}.rels")
        targets: dict[str, str] = {}

        def start(name: str, attributes: dict[str, str]) -> None:
            of_kind = local(name) == "Relationship" and attributes.get("Type", "").endswith(f"/{kind}")
            if of_kind and len(targets) < _MOST_ENTRIES:
                target = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
                targets[attributes.get("Id", "") if part else ""] = target.lstrip("/")

        if place.lower() in self._members:
            self._read(place, start)
        return targets

    def _read_styles(self, part: str) -> None:
        formats: dict[str, str] = {}
        in_cells, number = False, 0

        def start(name: str, attributes: dict[str, str]) -> None:
            nonlocal in_cells, number
            name = local(name)
            if name in ("cellXfs", "cellStyleXfs"):
                in_cells = name == "cellXfs"
            elif name == "numFmt" and len(formats) < _MOST_ENTRIES:
                formats[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")[:256]
            elif name == "xf" and in_cells and number < _MOST_ENTRIES:
                self._add_style(number, attributes.get("numFmtId", ""), formats)
                number += 1

        self._read(part, start)

    def _add_style(self, number: int, identity: str, formats: dict[str, str]) -> None:
        if identity in formats:
            code = _ASIDE.sub("", formats[identity]).split(";")[0].lower()
            is_duration = "[" in code
            is_date = any(letter in code for letter in "dmyhs")
        else:
            known = int(identity) if identity.isdecimal() and len(identity) < 4 else 0
            is_duration, is_date = known == _DURATION, known in _DATES
        if is_duration:
            self.styles.durations.add(number)
        elif is_date:
            self.styles.dates.add(number)


@final
class SharedTexts:
    """Texts by their number, beyond 16 MiB in a temporary file that has no name: memory does not grow with them."""

    def __init__(self) -> None:
        self._texts = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by close
        self._ends = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._count = self._length = 0
        self._cache: dict[int, str] = {}

    def close(self) -> None:
        """Remove the texts."""
        self._texts.close()
        self._ends.close()

    def read(self, stream: IO[bytes]) -> None:
        """Add the texts of the part that has them; one that is longer than a cell of Excel is empty."""
        items = _Items()
        for _ in read_markup(stream, items.start, items.end, items.text):
            self._add(items.ready)
            items.ready.clear()

    def get(self, number: int) -> str:
        """Return a text; one that is not there is empty."""
        known = self._cache.get(number)
        if known is not None:
            return known
        if not 0 <= number < self._count:
            return ""
        self._ends.seek(8 * number)
        start, end = struct.unpack("=QQ", self._ends.read(16))
        self._texts.seek(start)
        text = self._texts.read(end - start).decode()
        if len(text) <= _CACHE_LENGTH and len(self._cache) < _CACHE_SIZE:
            self._cache[number] = text
        return text

    def _add(self, texts: list[bytes]) -> None:
        ends = array("Q") if self._count else array("Q", [0])
        for text in texts:
            self._length += len(text)
            ends.append(self._length)
        if texts:
            self._count += len(texts)
            self._texts.write(b"".join(texts))
            self._ends.write(ends.tobytes())


@final
class _Items:
    """Handlers of the parser for the texts that cells share; those that are whole wait in `ready`."""

    def __init__(self) -> None:
        self.ready: list[bytes] = []
        self._reading = self._aside = False
        self._size = 0
        self._parts: list[str] = []

    def start(self, name: str, _: dict[str, str]) -> None:
        name = local(name)
        if name == "si":
            self._size = 0
            self._parts.clear()
        elif name == "rPh":
            self._aside = True
        self._reading = name == "t" and not self._aside

    def end(self, name: str) -> None:
        name = local(name)
        self._reading = False
        if name == "rPh":
            self._aside = False
        elif name == "si":
            self.ready.append(plain_text("".join(self._parts)).encode() if self._size <= LONGEST_CELL else b"")

    def text(self, data: str) -> None:
        if self._reading:
            self._size += len(data)
            if self._size <= LONGEST_CELL:
                self._parts.append(data)


def local(name: str) -> str:
    """Return an element's name without the prefix of its namespace."""
    return name.rpartition(":")[2]


def plain_text(text: str) -> str:
    """Return a text as its cell shows it: `_x000D_` stands for a character that XML does not have."""
    return valid_text(_ESCAPE.sub(lambda code: chr(int(code[1], 16)), text)) if "_x" in text else text


def _nothing(*_: object) -> None:
    pass
