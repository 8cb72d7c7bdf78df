"""Records of CSV that are too long are left out, wherever they stand: no other is, and none stops a file."""

import gzip
import io
import random

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from fixtures.cells import read_cells as read
from sfumato.io import csv_bounds
from sfumato.io.csv_bounds import BoundedRecords, RecordEnds
from sfumato.io.sources import open_source

PIECES = ['"', '""', ",", "\n", "\r\n", "a", "b c", '"x"', '"x,\ny"', '"x""y"', 'a"b', '"a"b', '"a"b"c']


@pytest.mark.parametrize("seed", range(300))
def test_ends_are_those_of_every_way_of_looking(seed):
    """In blocks of any size, by numpy or cell by cell: the same records end at the same places."""
    rng = random.Random(seed)
    text = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 60))).encode()
    slow = RecordEnds(",")
    expected = slow._searched(text)
    for size in (1, 2, 3, 7, 1000):
        ends = RecordEnds(",")
        places = set()
        for start in range(0, len(text), size):
            first, last = ends.within(text[start : start + size])
            places |= {start + place - 1 for place in (first, last) if place is not None}
        assert places <= set(expected)
        assert bool(places) == bool(expected)
        assert size > 1 or places == set(expected)
        assert ends._state == slow._state


@pytest.mark.parametrize("seed", range(60))
def test_records_are_those_of_the_parser(seed, monkeypatch):
    """The parser reads the filtered text as it reads the text itself, but for records that are too long."""
    rng = random.Random(seed)
    cells = ["1", "x y", '"q"', '"two\nlines"', '"a ""b"" c"', 'in"ch', "", '"' + "z" * 50 + '\n"', "z" * 60]
    records = [f"{rng.choice(cells)},{rng.choice(cells)}\n".encode() for _ in range(40)]
    monkeypatch.setattr(csv_bounds, "LONGEST_LINE", 40)
    for size in (1, 5, 17, 40):  # a block is no longer than a record may be
        monkeypatch.setattr(csv_bounds, "_READ_BYTES", size)
        bounded = BoundedRecords(io.BytesIO(b"".join(records)), ",")
        short = [record for record in records if len(record) <= 40]
        assert bounded.read() == b"".join(short)
        assert bounded.left_out == len(records) - len(short)
        parsed = pa_csv.read_csv(
            pa.BufferReader(b"a,b\n" + b"".join(short)), parse_options=pa_csv.ParseOptions(newlines_in_values=True)
        )
        assert parsed.num_rows == len(short)


@pytest.mark.parametrize("length", [3 << 20, 5 << 20, 7 << 20, 20 << 20])
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("before", [1, 800_000])
def test_a_giant_cell_decides_nothing(tmp_path, length, quote, before):
    giant = f"2,{quote}{'y' * length}{quote}\n"
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(("a,b\n" + "1,x\n" * before + giant + "3,z\n").encode(), 1))
    source = open_source(path)
    kept = ["2"] if length < 4 << 20 else []
    assert read(source, ["a"])["a"][before:] == [*kept, "3"]
    assert list(source.skipped()) == ([] if kept else ["a record longer than 4 MiB"])


def test_a_giant_record_of_many_cells_or_lines(tmp_path):
    for giant in ("," * (9 << 20), '"' + "y\n" * (5 << 20) + '"', '2,"' + "y," * (5 << 20)):
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress(("a,b\n1,x\n" + giant + "\n3,z\n").encode(), 1))
        found = read(open_source(path))
        assert found["a"][0] == "1"
        assert found["a"][1:] == ([] if giant.count('"') % 2 else ["3"])
