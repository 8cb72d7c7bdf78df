"""Columns of tables whose cells are files of pictures: bytes, or `{bytes, path}` as Hugging Face writes them.

A schema that declares such a column an image has its cells decoded. A row whose cell holds no picture of the declared
size is left out, like such a file in a folder. Only a draft, which is private, looks at cells to see whether they are
pictures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import is_bytes
from sfumato.columns.images import Image
from sfumato.columns.kind import ColumnKind
from sfumato.io.chunks import Chunk, Column, Note, Source
from sfumato.io.pictures import check_picture, read_picture, require_pillow, unheard

_CHUNK_BYTES = 1 << 26
_FIELD = "bytes"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PictureCells(Source):
    """A table some of whose columns are pictures, decoded a few rows at a time.

    Attributes:
        table: with the cells as they are stored.
        images: the declared kinds of the pictures.
    """

    table: Source
    images: Mapping[str, Image]

    @property
    def in_files(self) -> bool:
        """Whether other processes can read it."""
        return self.table.in_files

    def size(self) -> int:
        """Bytes of the table."""
        return self.table.size()

    def pieces(self) -> Sequence[Source]:
        """Return the pieces of the table, each with its pictures."""
        return [replace(self, table=piece) for piece in self.table.pieces()]

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the rows without a picture of the declared size, by their number, and what the table says."""
        yield from self.table.notes(what)
        before = 0
        for rows in self._rows(tuple(self.images)) if what == "skipped" else ():
            _, mask = self._decoded(rows)
            yield from (f"row {before + int(row) + 1}" for row in np.flatnonzero(~mask))
            before += len(mask)

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        # rows are the same whichever columns are asked for
        for rows in self._rows(tuple(dict.fromkeys([*columns, *self.images]))):
            pixels, mask = self._decoded(rows)
            if mask.any():
                cells = {name: pixels[name] if name in pixels else _filtered(rows[name], mask) for name in columns}
                yield Chunk(columns=cells, n_rows=int(mask.sum()))

    def _rows(self, columns: tuple[str, ...]) -> Iterator[Mapping[str, Column]]:
        """Yield cells of so few rows that their pixels do not take much memory."""
        most = max(math.prod(kind.shape) for kind in self.images.values())
        few = max(1, min(self.chunk_rows, _CHUNK_BYTES // (2 * most)))
        for chunk in self.table.chunks(columns):
            for start in range(0, chunk.n_rows, few):
                yield {name: column[start : start + few] for name, column in chunk.columns.items()}

    def _decoded(self, rows: Mapping[str, Column]) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the pixels of the rows that have all their pictures, and which rows these are."""
        read: dict[str, list[np.ndarray | None]] = {}
        with unheard():
            for name, kind in self.images.items():
                read[name] = [None if file is None else read_picture(file, kind) for file in files_in(rows[name])]
        mask = np.array([all(image is not None for image in images) for images in zip(*read.values(), strict=True)])
        pixels = {}
        for name, kind in self.images.items():
            arrays = [image for image, keep in zip(read[name], mask, strict=True) if keep]
            pixels[name] = np.array(arrays, dtype=kind.dtype).reshape(len(arrays), *kind.shape)
        return pixels, mask


def holds_files(storage: pa.DataType) -> bool:
    """Whether cells of a type are bytes, or have a field `bytes` of bytes: what a file may be stored as.

    Example:
        >>> holds_files(pa.binary()), holds_files(pa.struct({"bytes": pa.binary(), "path": pa.string()}))
        (True, True)
    """
    if pa.types.is_struct(storage):
        place = storage.get_field_index(_FIELD)
        return place >= 0 and is_bytes(storage.field(place).type)
    return is_bytes(storage)


def with_pictures(source: Source, columns: Mapping[str, ColumnKind]) -> Source:
    """Return a source in which columns of files that a schema declares images are decoded.

    Raises:
        SchemaError: a declared image is none that a file can hold.
        ConfigError: Pillow is needed, and not installed.
    """
    stored = source.storage
    images = {
        name: kind
        for name, kind in columns.items()
        if isinstance(kind, Image) and name in stored and holds_files(stored[name])
    }
    if not images:
        return source
    require_pillow()
    for name, kind in images.items():
        check_picture(name, kind)
    tensors = {
        name: pa.fixed_shape_tensor(pa.from_numpy_dtype(np.dtype(kind.dtype)), kind.shape)
        for name, kind in images.items()
    }
    dtypes = {name: dtype for name, dtype in source.dtypes.items() if name not in images}
    outline = source.outline(storage={**stored, **tensors}, dtypes=dtypes)
    return PictureCells(**outline, table=source, images=images)


def files_in(column: Column) -> list[bytes | None]:
    """Return the bytes in the cells of a column."""
    assert not isinstance(column, np.ndarray)  # it would be an image
    cells = column.to_pylist()
    if pa.types.is_struct(column.type):
        cells = [None if cell is None else cell[_FIELD] for cell in cells]
    return cells


def _filtered(column: Column, mask: np.ndarray) -> Column:
    return column[mask] if isinstance(column, np.ndarray) else column.filter(pa.array(mask))
