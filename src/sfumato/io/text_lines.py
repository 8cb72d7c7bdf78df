"""The lines of a text file, each of them read by itself: one that is too long is none, and stops no other.

Blocks of text as a file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, final

if TYPE_CHECKING:
    from typing_extensions import Buffer

LONGEST_LINE = 4 << 20
"""Bytes of the longest line that is read, in UTF-8: as of a record of CSV."""


def bounded_lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Yield lines without their ends, and None for one that is longer than `LONGEST_LINE`, in its place."""
    while line := stream.readline(LONGEST_LINE + 1):
        if line.endswith(b"\n"):
            yield line[:-1]
        elif len(line) <= LONGEST_LINE:  # the last
            yield line
        else:
            while line and not line.endswith(b"\n"):
                line = stream.readline(LONGEST_LINE + 1)
            yield None


@final
class BlockStream(io.RawIOBase):
    """Blocks of bytes as a file to read; closing it closes the file that they come from."""

    def __init__(self, file: IO[bytes], blocks: Iterator[bytes]) -> None:
        self._file, self._blocks = file, blocks
        self._pending = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer; return how many bytes it got."""
        while not self._pending:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._pending = memoryview(block)
        target = memoryview(buffer)
        count = min(len(target), len(self._pending))
        target[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        return count

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()
