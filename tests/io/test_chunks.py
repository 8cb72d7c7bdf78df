"""Batches as chunks: of so many rows, or fewer where these are large."""

import pyarrow as pa

from sfumato.io.chunks import table_chunks


def _sizes(batches, rows):
    return [chunk.n_rows for chunk in table_chunks(batches, ("a",), rows)]


def test_chunks_of_large_rows_are_shorter(monkeypatch):
    table = pa.table({"a": ["x" * 1000] * 10, "b": ["y"] * 10})
    assert _sizes([table] * 3, 25) == [25, 5]
    monkeypatch.setattr("sfumato.io.chunks._CHUNK_BYTES", 15_000)
    assert _sizes([table] * 3, 25) == [20, 10]
    assert _sizes([table] * 3, 4) == [4, 4, 4, 4, 4, 4, 4, 2]
    assert _sizes([table.slice(0, 0)] * 3, 4) == []
