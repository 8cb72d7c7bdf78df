"""Records of CSV files end where they say so themselves."""

import gzip
import io
import itertools
import random
import tracemalloc

import pytest

from fixtures.cells import read_cells
from fixtures.costly import slow_after
from sfumato.io import csv_record_ends
from sfumato.io.csv_record_ends import record_stream
from sfumato.io.sources import open_source

WHOLE = [b"1,2,3\n", b'"a","b""c",d\r\n', b'x,"p\nq",z\n', b'"",,""\n', b'5" pipe,a"b,c\n', b'1,",x\n\n",2\n', b",,\r"]
LEFT_OUT = b",,,,x"


def read(text: bytes) -> bytes:
    return io.BufferedReader(record_stream(io.BytesIO(text), ",", 3)).read()


@pytest.mark.parametrize("line", WHOLE)
def test_whole_records_stay_as_they_are(line):
    assert read(line) == line
    assert read(line * 3 + b"1,2,3") == line * 3 + b"1,2,3"


@pytest.mark.parametrize(
    "line", [b'7,"x,9', b'"', b'7,8,"', b'1,"a"b,"c', b'"a,b,c""', b"1," + b"z" * 300 + b",2", b'1,"' + b"z" * 300]
)
@pytest.mark.parametrize("seed", range(30))
def test_a_broken_record_takes_no_other_along(monkeypatch, line, seed):
    """Wherever it stands, and wherever blocks end."""
    draw = random.Random(seed)
    monkeypatch.setattr(csv_record_ends, "LONGEST", draw.choice([40, 64, 200]))
    monkeypatch.setattr(csv_record_ends, "_PART", draw.choice([8, 50, 1000]))
    lines = [draw.choice(WHOLE) for _ in range(40)]
    place = draw.randrange(41)
    assert read(b"".join(lines)) == b"".join(lines)
    before, after = b"".join(lines[:place]), b"".join(lines[place:])
    if b'"' in line and after.lstrip(b"\r\n").startswith((b'1,",x', b'"",,""')):
        return  # the quote is closed by that of the next record: docs/sharp_edges.md
    assert read(before + line + b"\n" + after) == before + LEFT_OUT + b"\n" + after


def test_a_cell_over_many_blocks():
    text = b"1,2,3\n" + b'1,"' + b"f\n" * 300_000 + b'",3\n4,5,6\n'
    assert read(text) == text
    longer = b"1,2,3\n" + b"1," + b"f" * 5_000_000 + b",3\n4,5,6\n"
    assert read(longer) == b"1,2,3\n" + LEFT_OUT + b"\n4,5,6\n"


class Endless(io.RawIOBase):
    """A line of 100 MiB that is never whole in memory."""

    def __init__(self):
        self.left = 100

    def read(self, size=-1):
        self.left -= 1
        return b"x" * size if self.left >= 0 else b"\n1,2,3\n" if self.left == -1 else b""


def test_a_line_of_any_length_takes_the_memory_of_the_longest_record():
    tracemalloc.start()
    try:
        text = record_stream(Endless(), ",", 3).readall()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert text == LEFT_OUT + b"\n1,2,3\n"
    assert peak < 5 * csv_record_ends.LONGEST


LENGTHS, QUOTES = [3 << 20, 5 << 20, 7 << 20, 20 << 20], ["", '"']
LATE = [(800_000, *case) for case in itertools.product(QUOTES, LENGTHS)]


@pytest.mark.parametrize(
    ("before", "quote", "length"),
    [
        *((1, *case) for case in itertools.product(QUOTES, LENGTHS)),
        *slow_after(2, dict.fromkeys([LATE[1], LATE[7], *LATE])),
    ],
)
def test_a_giant_cell_decides_nothing(tmp_path, length, quote, before):
    """Packed a thousand times smaller; where it begins within the parser's blocks does not matter."""
    giant = f"2,{quote}{'y' * length}{quote}\n"
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(("a,b\n" + "1,x\n" * before + giant + "3,z\n").encode(), 1))
    source = open_source(path)
    kept = ["2"] if length < 4 << 20 else []
    assert read_cells(source, ["a"])["a"][before:] == [*kept, "3"]
    assert len(list(source.notes("skipped"))) == 1 - len(kept)
