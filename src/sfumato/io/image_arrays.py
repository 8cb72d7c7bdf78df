"""Stacks of images: `.npz` files and numpy arrays, with optional labels."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast, final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import valid_text
from sfumato.columns.sets import is_set_storage
from sfumato.errors import DataError
from sfumato.io.baskets import CSR_KEYS, NpyHeader, csr_arrays, csr_source, read_npy_header
from sfumato.io.chunks import Chunk, Column, Source, attempt
from sfumato.io.stored import most_bytes, open_member
from sfumato.io.untrusted import UntrustedZip

_MOST_ARRAYS = 100
_MOST_VALUES = 1 << 31  # of one image; Arrow's tensors have no more
_CHUNK_BYTES = 128 << 20
KEYS = ({"x": "x", "y": "y"}, {"x": "x_train", "y": "y_train"})


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class NpzSource(Source):
    """An `.npz` file, decompressed a chunk at a time."""

    counts_entries: ClassVar[bool] = True

    path: Path

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        with UntrustedZip(self.path) as archive:
            members = [archive.getinfo(f"{self.keys[name]}.npy") for name in columns]
            headers = [_header_of(archive, member) for member in members]
            row_bytes = max(1, *(math.prod(header.shape[1:]) * header.dtype.itemsize for header in headers))
            rows = max(1, min(self.chunk_rows, _CHUNK_BYTES // row_bytes))
            readers = [_read_member(archive, member, rows) for member in members]
            for parts in zip(*readers, strict=True):
                yield _as_chunk(columns, parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ArraySource(Source):
    """Numpy arrays in memory."""

    counts_entries: ClassVar[bool] = True

    arrays: Mapping[str, np.ndarray]

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        for start in range(0, len(self.arrays[columns[0]]), self.chunk_rows):
            parts = [self.arrays[name][start : start + self.chunk_rows] for name in columns]
            yield _as_chunk(columns, parts)


def open_npz(path: Path, *, chunk_rows: int) -> Source:
    """Read the headers of images `x` and optional labels `y` (or `x_train`, `y_train`), or of sets in CSR form.

    Raises:
        DataError: the file is damaged, has no such arrays, pickles objects, or has labels for
            other images.
    """
    message = f"Expected {path.name} to be an .npz file, got another or a damaged one."
    headers = attempt(lambda: _read_headers(path), message)
    if headers.keys() >= CSR_KEYS:
        return csr_source(headers, path.name, chunk_rows=chunk_rows, path=path)
    keys = _find_keys(headers, path.name)
    storage = _image_storage({name: headers[key] for name, key in keys.items()}, path.name)
    return NpzSource(label=path.name, container="npz", storage=storage, keys=keys, chunk_rows=chunk_rows, path=path)


def open_arrays(arrays: Mapping[str, np.ndarray], *, chunk_rows: int) -> Source:
    """Wrap arrays named as in an `.npz` file; they are not copied.

    Raises:
        DataError: there are no images, an array holds Python objects, or there are labels for
            other images.
    """
    label = "the arrays"
    if arrays.keys() >= CSR_KEYS:
        _require_arrays(arrays, sorted(CSR_KEYS))
        return csr_source(arrays, label, chunk_rows=chunk_rows)
    keys = _find_keys(arrays, label)
    _require_arrays(arrays, keys.values())
    named = {name: np.asarray(arrays[key]) for name, key in keys.items()}
    storage = _image_storage(named, label)
    return ArraySource(label=label, container="arrays", storage=storage, keys=keys, chunk_rows=chunk_rows, arrays=named)


def _require_arrays(arrays: Mapping[str, object], keys: Iterable[str]) -> None:
    for key in keys:
        if not isinstance(arrays[key], np.ndarray):
            # numpy would choose a type by looking at the values
            raise DataError(
                f"Expected {key!r} to be a numpy array, got a {type(arrays[key]).__name__}. Convert it first."
            )


def to_arrays(table: pa.Table, keys: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Turn a table into arrays under their keys; image columns are `pa.fixed_shape_tensor`, sets become CSR."""
    if len(table.column_names) == 1 and is_set_storage(table.schema.field(0).type):
        return csr_arrays(table)
    return {keys.get(name, name): array_of(table.column(name)) for name in table.column_names}


def array_of(column: Column | pa.Array) -> np.ndarray:
    """Return a column as one numpy array: images in their shape, text as numpy text."""
    if isinstance(column, np.ndarray):
        return column
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.FixedShapeTensorArray):
        return array.to_numpy_ndarray()
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    values = array.to_numpy(zero_copy_only=False)
    text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    return values.astype(np.str_) if text else values


def _read_headers(path: Path) -> dict[str, NpyHeader]:
    with UntrustedZip(path) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
        return {info.filename.removesuffix(".npy"): _header_of(archive, info) for info in members[:_MOST_ARRAYS]}


def _header_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NpyHeader:
    """Return the header of a stored array, if its bytes can be as many as it says."""
    with open_member(archive, member) as stream:
        header = read_npy_header(stream)
    size = math.prod(header.shape) * header.dtype.itemsize
    if min(header.shape, default=0) < 0 or size > most_bytes(archive, member):
        raise EOFError
    return header


def _find_keys(arrays: Mapping[str, object], label: str) -> dict[str, str]:
    for keys in KEYS:
        if keys["x"] in arrays:
            return {name: key for name, key in keys.items() if key in arrays}
    rule = f"Expected {label} to have images under the key 'x' or 'x_train', got neither"
    way = "Save them with `numpy.savez_compressed(path, x=images, y=labels)`; sets of items as indptr, indices, n_items"
    way += "; columns as a table"
    raise DataError(f"{rule}. {way}.")


def _image_storage(headers: Mapping[str, NpyHeader | np.ndarray], label: str) -> dict[str, pa.DataType]:
    if any(header.dtype.hasobject for header in headers.values()):
        raise DataError(f"Expected plain arrays in {label}, got pickled Python objects. They are never opened.")
    x = headers["x"]
    if x.dtype.names:
        rule = f"Expected images of numbers in {label}, got records of named fields"
        raise DataError(f"{rule}. Make a data frame of them: pandas.DataFrame(array).")
    if not (len(x.shape) > 1 and 0 < math.prod(x.shape[1:]) < _MOST_VALUES and x.dtype.kind in "buif"):
        rule = f"Expected the images of {label} to be numbers of shape (n, height, width[, channels])"
        raise DataError(f"{rule} or (n, d). Reshape or convert them.")
    storage: dict[str, pa.DataType] = {
        "x": pa.fixed_shape_tensor(pa.from_numpy_dtype(x.dtype.newbyteorder("=")), x.shape[1:])
    }
    if "y" in headers:
        y = headers["y"]
        if y.shape[:1] != x.shape[:1] or y.shape[1:] not in {(), (1,)} or y.dtype.kind not in "buifUSM":
            raise DataError(f"Expected the labels of {label} to have shape (n,), one for each image. Reshape them.")
        text = y.dtype.kind in "US"
        storage["y"] = pa.string() if text else pa.from_numpy_dtype(y.dtype.newbyteorder("="))
    return storage


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, rows: int) -> Iterator[np.ndarray]:
    """Yield a stored array in slices of `rows`."""
    with open_member(archive, member) as stream:
        header = read_npy_header(stream)
        if header.fortran_order:  # its first axis is scattered over the whole file
            stream.seek(0)
            whole = np.lib.format.read_array(stream, allow_pickle=False)
            yield from (whole[i : i + rows] for i in range(0, len(whole), rows))
            return
        n, *shape = header.shape
        for start in range(0, n, rows):
            part = np.empty((min(rows, n - start), *shape), dtype=header.dtype)
            _fill(cast(io.BufferedIOBase, stream), part)
            yield part


def _fill(stream: io.BufferedIOBase, array: np.ndarray) -> None:
    """Read an array's bytes in place: a chunk of images is held once."""
    target = array.reshape(-1).view(np.uint8).data
    while len(target):
        count = stream.readinto(target)
        if not count:
            raise EOFError
        target = target[count:]


def _as_chunk(columns: tuple[str, ...], parts: list[np.ndarray] | tuple[np.ndarray, ...]) -> Chunk:
    cells: dict[str, Column] = {}
    for name, part in zip(columns, parts, strict=True):
        native = part.astype(part.dtype.newbyteorder("="), copy=False)
        cells[name] = native if name == "x" else pa.chunked_array([_labels(native.reshape(-1))])
    return Chunk(columns=cells, n_rows=len(parts[0]))


def _labels(cells: np.ndarray) -> pa.Array:
    return pa.array(map(valid_text, cells.tolist()), pa.string()) if cells.dtype.kind == "U" else pa.array(cells)
