"""The lines of a text file, each of them read by itself: one that is too long is none, and stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

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
