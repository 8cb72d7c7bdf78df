"""Sets of items as FIMI `.dat` text or as CSR `.npz` arrays, a batch at a time."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from sfumato.columns.levels import canonical_text
from sfumato.columns.set_codes import is_set_storage, list_parts
from sfumato.errors import ConfigError
from sfumato.io.set_arrays import csr_part, n_items_of

_COPY_BYTES = 1 << 20


def holds_sets(batch: pa.Table) -> bool:
    """Whether a table is one column of sets."""
    return len(batch.column_names) == 1 and is_set_storage(batch.schema.field(0).type)


def write_dat(batches: Iterator[pa.Table], path: Path) -> None:
    """Write sets as lines of items with spaces between them; the empty set is an empty line.

    Raises:
        ConfigError: a batch is not one column of sets, or an item holds white space.
    """
    with path.open("xb") as file:
        for batch in batches:
            if not holds_sets(batch):
                names = ", ".join(map(repr, batch.column_names))
                raise ConfigError(
                    f"Expected one column of sets to write a .dat file, got {names}. Write .csv or .parquet."
                )
            for chunk in batch.column(0).chunks:
                file.write(_dat_lines(chunk, batch.column_names[0]))


def write_csr(first: pa.Table, rest: Iterator[pa.Table], path: Path) -> None:
    """Write sets as `indptr`, `indices` and `n_items`, spooled until their number is known.

    Raises:
        ConfigError: the items are no whole numbers.
    """
    field = first.schema.field(0)
    with contextlib.ExitStack() as stack:
        lengths, items = (stack.enter_context(tempfile.TemporaryFile(dir=path.parent)) for _ in range(2))
        n_sets = n_entries = largest = 0
        dtype = np.dtype(np.int64)
        for batch in _all(first, rest):
            for chunk in batch.column(0).chunks:
                counts, values = csr_part(field, chunk)
                lengths.write((np.cumsum(counts) + n_entries).astype("<i8").tobytes())
                items.write(np.ascontiguousarray(values).tobytes())
                n_sets, n_entries, dtype = n_sets + counts.size, n_entries + values.size, values.dtype
                largest = max(largest, n_items_of(field, [values]))
        archive = stack.enter_context(zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED))
        _member(archive, "indptr", np.dtype("<i8"), (n_sets + 1,), np.zeros(1, "<i8").tobytes(), lengths)
        _member(archive, "indices", dtype, (n_entries,), b"", items)
        _member(archive, "n_items", np.dtype("<i8"), (), np.array(largest, "<i8").tobytes(), None)


def _all(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    yield from rest


def _member(
    archive: zipfile.ZipFile, name: str, dtype: np.dtype, shape: tuple[int, ...], start: bytes, spool: IO[bytes] | None
) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        member.write(start)
        if spool is not None:
            spool.seek(0)
            shutil.copyfileobj(spool, member, _COPY_BYTES)


def _dat_lines(lists: pa.Array, name: str) -> bytes:
    lengths, values = list_parts(lists)
    coded = values if isinstance(values, pa.DictionaryArray) else values.dictionary_encode()
    words = np.array([*canonical_text(coded.dictionary).to_pylist(), ""], dtype=object)
    if any(word.split() != [word] for word in words[:-1]):
        raise ConfigError(f"Expected items without white space to write a .dat file, got others in column {name!r}.")
    tokens = words[coded.indices.to_numpy(zero_copy_only=False)].tolist()
    ends = [0, *np.cumsum(lengths).tolist()]
    return "".join(" ".join(tokens[start:end]) + "\n" for start, end in pairwise(ends)).encode()
