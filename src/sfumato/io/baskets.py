"""Files that hold nothing but sets of items: FIMI `.dat` and CSR `.npz`.

Either has the one column `items`. A FIMI file has one set per line, its items as text between white space; an empty
line is the empty set. A CSR file has `indptr` and `indices`, where set i is `indices[indptr[i] : indptr[i + 1]]`, and
`n_items`, which is public knowledge and stands in the schema.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, final

import numpy as np
import pyarrow as pa

from sfumato.columns.kind import ColumnKind
from sfumato.columns.sets import ItemSet, is_set_storage, list_parts
from sfumato.columns.storage import text_of
from sfumato.errors import ConfigError, DataError, SchemaError
from sfumato.io.chunks import Chunk, Note, Source, batched, guarded, table_chunks
from sfumato.io.csv import open_utf8
from sfumato.io.stored import bounded_lines, open_member
from sfumato.io.untrusted import UntrustedZip

ITEMS = "items"
SET_KEYS: Mapping[str, str] = {ITEMS: "indices"}
CSR_KEYS = frozenset({"indptr", "indices"})

_PART_BYTES = 16 << 20  # of lines that are not yet a table


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BasketSource(Source):
    """A FIMI file, read a line at a time; one longer than 4 MiB is left out."""

    path: Path

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the source itself, if its format can hold such items."""
        kind = columns.get(ITEMS)
        for item in (kind.labels or ()) if isinstance(kind, ItemSet) else ():
            if item.split() != [item]:
                raise SchemaError(f"Column {ITEMS!r}: expected items without white space in a .dat file, got {item!r}.")
        return self

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the lines that are too long. Not private."""
        numbered = guarded(enumerate(self._lines(), start=1), self.unreadable)
        return (f"line {number}" for number, line in numbered if line is None and what == "skipped")

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        lines = ((line, len(line)) for line in self._lines() if line is not None)
        tables = map(_as_sets, batched(lines, self.chunk_rows, _PART_BYTES))
        yield from table_chunks(tables, columns, self.chunk_rows)

    def _lines(self) -> Iterator[bytes | None]:
        with open_utf8(self.path.open("rb")) as stream:
            yield from bounded_lines(stream)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class CsrSource(Source):
    """Sets in CSR form, in an `.npz` file or in memory.

    Attributes:
        arrays: `indptr` and `indices`, or None where they are read from `path`, a chunk at a time.
        path: the file.
    """

    counts_entries: ClassVar[bool] = True

    arrays: Mapping[str, np.ndarray] | None = None
    path: Path | None = None

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        if self.arrays is not None:
            pointers = self.arrays["indptr"]
            parts = (pointers[i : i + self.chunk_rows + 1] for i in range(0, len(pointers) - 1, self.chunk_rows))
            whole = self.arrays["indices"]
            yield from _csr_chunks(parts, lambda start, stop: whole[start:stop], len(whole), self._items_type)
            return
        assert self.path is not None
        with (
            UntrustedZip(self.path) as archive,
            open_member(archive, archive.getinfo("indptr.npy")) as pointers,
            open_member(archive, archive.getinfo("indices.npy")) as indices,
        ):
            values = _Stream(indices)
            parts = _overlapping(_Stream(pointers), self.chunk_rows)
            yield from _csr_chunks(parts, lambda start, stop: values.read(stop - start), values.size, self._items_type)

    @property
    def _items_type(self) -> pa.DataType:
        return self.storage[ITEMS].value_type


def open_baskets(path: Path, *, chunk_rows: int) -> BasketSource:
    """Open a FIMI file; nothing in it is looked at."""
    return BasketSource(
        label=path.name, container="fimi", storage={ITEMS: pa.list_(pa.string())}, chunk_rows=chunk_rows, path=path
    )


def csr_source(members: Mapping[str, Any], label: str, *, chunk_rows: int, path: Path | None = None) -> CsrSource:
    """Return the source of sets in CSR form.

    Args:
        members: by key, arrays or what their headers say (`shape`, `dtype`).
        label: what messages call the source.
        chunk_rows: the most sets of one chunk.
        path: the file, if `members` are headers.

    Raises:
        DataError: the arrays are no whole numbers, or of a wrong shape.
    """
    for key in ("indptr", "indices"):
        if len(members[key].shape) != 1 or members[key].dtype.kind not in "iu":
            raise DataError(f"Expected {key!r} of {label} to be whole numbers of shape (n,). Convert it.")
    if members["indptr"].shape[0] < 1:
        raise DataError(f"Expected 'indptr' of {label} to begin with 0, got none. Save the sets in CSR form.")
    items = pa.from_numpy_dtype(members["indices"].dtype.newbyteorder("="))
    arrays = None if path is not None else {key: np.asarray(members[key]) for key in ("indptr", "indices")}
    return CsrSource(
        label=label,
        container="arrays" if path is None else "npz",
        storage={ITEMS: pa.list_(items)},
        keys=SET_KEYS,
        chunk_rows=chunk_rows,
        arrays=arrays,
        path=path,
    )


def _as_sets(lines: list[bytes]) -> pa.Table:
    tokens = [line.decode("utf-8", "replace").split() for line in lines]
    lengths = np.fromiter(map(len, tokens), dtype=np.int32, count=len(tokens))
    items = pa.array([token for words in tokens for token in words], pa.string())
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, items)
    return pa.table({ITEMS: lists})


class NpyHeader(NamedTuple):
    """The header of a stored array."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]


def read_npy_header(stream: IO[bytes]) -> NpyHeader:
    """Return the header of a stored array."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    return NpyHeader(*readers[version](stream))


class _Stream:
    """A stored array of one axis, read from front to back."""

    def __init__(self, stream: IO[bytes]) -> None:
        (self.size,), _, self._dtype = read_npy_header(stream)
        self._stream = stream

    def read(self, n: int) -> np.ndarray:
        """Return the next n numbers."""
        content = self._stream.read(n * self._dtype.itemsize)
        if len(content) != n * self._dtype.itemsize:
            raise EOFError
        return np.frombuffer(content, dtype=self._dtype)


def _overlapping(pointers: _Stream, rows: int) -> Iterator[np.ndarray]:
    """Yield pointers of `rows` sets at a time; the last of one part is the first of the next."""
    last, left = pointers.read(1), pointers.size - 1
    while left:
        part = np.concatenate([last, pointers.read(min(rows, left))])
        left -= part.size - 1
        last = part[-1:]
        yield part


def _csr_chunks(parts: Iterator[np.ndarray], read: Any, size: int, items: pa.DataType) -> Iterator[Chunk]:  # noqa: ANN401
    """Yield sets for their pointers; pointers that lead back or out are damage, not a record."""
    at = 0
    for part in parts:
        pointers = part.astype(np.int64)
        if pointers[0] != at or (np.diff(pointers) < 0).any() or pointers[-1] > size:
            raise EOFError
        values = read(at, int(pointers[-1]))
        values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
        lists = pa.LargeListArray.from_arrays(pa.array(pointers - at), pa.array(values, items))
        at = int(pointers[-1])
        yield Chunk(columns={ITEMS: pa.chunked_array([lists])}, n_rows=len(lists))


N_ITEMS = b"n_items"
"""Key of a field's metadata: the public number of items, which no sample tells."""


def csr_arrays(table: pa.Table) -> dict[str, np.ndarray]:
    """Return the one column of a table, which holds sets, as arrays.

    Raises:
        ConfigError: the items are no whole numbers.
    """
    field = table.schema.field(0)
    parts = [csr_part(field, chunk) for chunk in table.column(0).chunks]
    lengths = np.concatenate([np.zeros(0, np.int64), *(lengths for lengths, _ in parts)])
    items = field.type.value_type.to_pandas_dtype()
    indices = np.concatenate([np.zeros(0, items), *(values for _, values in parts)])
    return {
        "indptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "indices": indices,
        "n_items": np.array(n_items_of(field, [indices]), dtype=np.int64),
    }


def csr_part(field: pa.Field, lists: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return lengths and items of some sets.

    Raises:
        ConfigError: the items are no whole numbers.
    """
    if not pa.types.is_integer(field.type.value_type):
        raise ConfigError(
            f"Expected items that are whole numbers in an .npz file, got type {field.type.value_type} in column "
            f"{field.name!r}. Write .parquet or .dat."
        )
    lengths, values = list_parts(lists)
    return lengths, values.to_numpy(zero_copy_only=False)


def n_items_of(field: pa.Field, parts: Iterable[np.ndarray]) -> int:
    """Return the public number of items if the column says it, else that of the items there are."""
    if field.metadata and N_ITEMS in field.metadata:
        return int(field.metadata[N_ITEMS])
    return max((int(part.max()) + 1 for part in parts if part.size), default=0)


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
        for batch in itertools.chain([first], rest):
            for chunk in batch.column(0).chunks:
                counts, values = csr_part(field, chunk)
                lengths.write((np.cumsum(counts) + n_entries).astype("<i8").tobytes())
                items.write(np.ascontiguousarray(values).tobytes())
                n_sets, n_entries, dtype = n_sets + counts.size, n_entries + values.size, values.dtype
                largest = max(largest, n_items_of(field, [values]))
        archive = stack.enter_context(zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED))
        write_npy(archive, "indptr", np.dtype("<i8"), (n_sets + 1,), lengths, np.zeros(1, "<i8").tobytes())
        write_npy(archive, "indices", dtype, (n_entries,), items)
        write_npy(archive, "n_items", np.dtype("<i8"), (), None, np.array(largest, "<i8").tobytes())


def write_npy(
    archive: zipfile.ZipFile,
    name: str,
    dtype: np.dtype,
    shape: tuple[int, ...],
    spool: IO[bytes] | None,
    start: bytes = b"",
) -> None:
    """Write an array to an archive: its header, the bytes of `start`, then those of a spool."""
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
    words = np.array([*text_of(coded.dictionary).to_pylist(), ""], dtype=object)
    if any(word.split() != [word] for word in words[:-1]):
        raise ConfigError(f"Expected items without white space to write a .dat file, got others in column {name!r}.")
    tokens = words[coded.indices.to_numpy(zero_copy_only=False)].tolist()
    ends = [0, *np.cumsum(lengths).tolist()]
    return "".join(" ".join(tokens[start:end]) + "\n" for start, end in pairwise(ends)).encode()
