"""XML of office files as a stream of events: in little memory, whatever a stranger wrote and however it is packed.

What no XML may hold (control characters, halves of pairs) is taken out before the parser sees it: it stands in the
cell of one record, and must not stop the others from being read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO
from xml.parsers import expat

from sfumato.errors import DataError
from sfumato.io.csv import open_utf8

_BLOCK_BYTES = 1 << 16
_LONGEST_TAG = 1 << 22
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r")
_REFERENCE = re.compile(rb"&#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_TAIL = 12  # bytes of the longest such reference


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
