"""Batches of files point into their own buffers; what a cell holds stops none."""

import datetime as dt
import random
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.errors import DataError
from sfumato.io.arrow import sound_batches
from sfumato.io.sources import open_source


def _offsets(*places):
    return pa.py_buffer(struct.pack(f"<{len(places)}i", *places))


WRONG_TEXT = pa.Array.from_buffers(pa.string(), 2, [None, _offsets(0, 1, 3), pa.py_buffer(b"a\xff\xfe")])
ODD_DAY = pa.array([1, 2], pa.int64()).view(pa.date64())
ODD_TIME = pa.array([-5, 2**31 - 1], pa.int32()).view(pa.time32("s"))
LARGE = pa.array([Decimal(99), Decimal(1)], pa.decimal128(38)).view(pa.decimal128(1))
CELLS = [
    WRONG_TEXT,
    WRONG_TEXT.cast(pa.large_binary()).view(pa.large_string()),
    ODD_DAY,
    ODD_TIME,
    LARGE,
    pa.array([1, None], pa.int64()),
    pa.array([dt.datetime(2020, 1, 1), None]),
    pa.array([[["x"]], None]),
    pa.array([[1.5, 2], [3, 4]], pa.list_(pa.float64(), 2)),
    pa.array([{"a": "x", "b": [1]}, None]),
    pa.array(["x", None]).dictionary_encode(),
    pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    pa.array(["x", "longer than twelve bytes"], pa.string_view()),
    pa.nulls(2),
    pa.array([True, None]),
    pa.ListArray.from_arrays([0, 1, 2], WRONG_TEXT),
    pa.DictionaryArray.from_arrays([0, 1], WRONG_TEXT),
    pa.ListArray.from_arrays([0, 1, 2], pa.array(["x", "y"]).dictionary_encode()),
]


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: str(cells.type))
def test_cells_of_any_content_are_sound(cells):
    batch = pa.record_batch([cells], names=["a"])
    assert list(sound_batches([batch])) == [batch]
    assert list(sound_batches([batch.slice(1)])) == [batch.slice(1)]


UNSOUND = {
    "beyond the text": pa.Array.from_buffers(pa.string(), 2, [None, _offsets(0, 1000, 3), pa.py_buffer(b"abc")]),
    "before the text": pa.Array.from_buffers(pa.string(), 2, [None, _offsets(0, -9, 3), pa.py_buffer(b"abc")]),
    "backwards": pa.Array.from_buffers(pa.binary(), 2, [None, _offsets(0, 3, 1), pa.py_buffer(b"abc")]),
    "a list beyond its items": pa.Array.from_buffers(
        pa.list_(pa.int8()), 2, [None, _offsets(0, 1000, 1)], children=[pa.array([1], pa.int8())]
    ),
    "a text in a list": pa.ListArray.from_arrays(
        [0, 2], pa.Array.from_buffers(pa.string(), 2, [None, _offsets(0, 1000, 3), pa.py_buffer(b"abc")])
    ),
    "a label that is not there": pa.DictionaryArray.from_arrays(pa.array([0, 9]), pa.array(["x"]), safe=False),
}


@pytest.mark.parametrize("cells", UNSOUND.values(), ids=UNSOUND)
def test_what_points_elsewhere_is_refused(cells):
    with pytest.raises((pa.ArrowInvalid, pa.ArrowIndexError)):
        list(sound_batches([pa.RecordBatch.from_arrays([cells], names=["a"])]))


@pytest.mark.parametrize("form", ["stream", "file", "lz4", "parquet"])
def test_damaged_files_are_read_or_refused(tmp_path, form):
    """Cells of damaged files are looked at, all of them: before, that ended the process."""
    table = pa.table(
        {
            "a": [f"x{i}" for i in range(100)],
            "b": range(100),
            "c": pa.array(["u", "v"] * 50).dictionary_encode(),
            "d": [["p", "q"], []] * 50,
        }
    )
    path = tmp_path / ("t.parquet" if form == "parquet" else "t.arrow")
    if form == "parquet":
        pq.write_table(table, path)
    else:
        options = pa.ipc.IpcWriteOptions(compression="lz4" if form == "lz4" else None)
        make = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
        with make(str(path), table.schema, options=options) as to:
            to.write_table(table)
    whole, rng, refused = path.read_bytes(), random.Random(form), 0
    for _ in range(150):
        raw = bytearray(whole)
        place = rng.randrange(len(raw) - 8)
        size = rng.choice([1, 4, 8])
        number = rng.choice([2**31 - 1, 2**30, 2**62, rng.getrandbits(64)])
        raw[place : place + size] = number.to_bytes(8, "little")[:size]
        path.write_bytes(raw)
        try:
            for chunk in open_source(path).chunks():
                for column in chunk.columns.values():
                    for cell in column:
                        _ = cell.as_buffer() if pa.types.is_string(column.type) else cell.as_py()
        except (DataError, MemoryError, UnicodeDecodeError):
            refused += 1
    assert 0 < refused < 150
