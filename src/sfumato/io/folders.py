"""Folders of images: `folder/LABEL/NAME.png`, or `folder/NAME.png` without labels.

Whatever lies in the folder, the source has the columns `x` and `y`; an image that lies in no sub-folder has no label.
Shape and dtype of the images are not looked for in the files, where one record could change them: they are what the
schema declares (`Source.under`). Only a draft, which is private, reads them off (`Source.measured`).

A file that holds no image of the declared size contributes nothing, like a ragged row of a CSV file: a stand-in
would be counted in a class and drawn into its mean. Which files those are depends, file by file, on that file alone,
so that adding or removing a record adds or removes at most one row.

Names of files and sub-folders are of the records: no message holds them.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import plain
from sfumato.columns.images import Image
from sfumato.columns.kind import ColumnKind
from sfumato.columns.storage import text_of
from sfumato.errors import ConfigError, DataError
from sfumato.io.chunks import Chunk, Column, Note, Source, attempt
from sfumato.io.image_arrays import array_of
from sfumato.io.pictures import (
    SUFFIX,
    SUFFIXES,
    check_picture,
    folder_of_label,
    label_of_folder,
    png_bytes,
    read_header,
    read_picture,
    require_pillow,
    unheard,
)

_CHUNK_BYTES = 1 << 26
_KEYS = {"x": "x", "y": "y"}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FolderSource(Source):
    """A folder of images, decoded a chunk at a time; of the rest, the names of one sub-folder are in memory.

    Attributes:
        path: the folder.
        image: the declared kind of the images; None until a schema declares it, and `x` is then null.
    """

    path: Path
    image: Image | None = None

    def under(self, columns: Mapping[str, ColumnKind]) -> Source:
        """Return the source of the images that the schema declares."""
        kind = columns.get("x")
        if not isinstance(kind, Image):
            return self
        check_picture("x", kind)
        tensor = pa.fixed_shape_tensor(pa.from_numpy_dtype(np.dtype(kind.dtype)), kind.shape)
        return replace(self, image=kind, storage={**self.storage, "x": tensor})

    def measured(self) -> Source:
        """Return the source of images of the most frequent size and type. Not private: it is read off the files."""
        return attempt(self._measured, f"Cannot read {self.label}: it changed while it was read.")

    def _measured(self) -> Source:
        with unheard():
            headers = Counter(read_header(file) for file, _ in self._files())
        del headers[None]
        if not headers:
            raise DataError(
                f"Expected images in {self.label} or its folders, files of {', '.join(SUFFIXES)}, got none that can be "
                "read. Convert them."
            )
        # of equally many, whichever: the same at every call
        return self.under({"x": max(headers, key=lambda kind: (headers[kind], repr(kind)))})  # type: ignore[dict-item]

    def notes(self, what: Note) -> Iterator[str]:
        """Yield the files that contribute nothing, and folders of folders. Not private."""
        if what != "skipped":
            return
        for folder in (self.path, *_entries(self.path, folders=True)):
            with os.scandir(folder) as entries:
                others = [entry for entry in entries if not entry.name.startswith(".") and not _wanted(entry)]
            deeper = folder != self.path
            names = [e.name for e in others if deeper or not e.is_dir(follow_symlinks=False)]
            yield from (str((folder / name).relative_to(self.path)) for name in sorted(names))
        if self.image is None:
            return
        for file, _ in self._files():
            with unheard():
                image = read_picture(file, self.image)
            if image is None:
                yield str(file.relative_to(self.path))

    def _read(self, columns: tuple[str, ...]) -> Iterator[Chunk]:
        files = self._files()
        rows = self.chunk_rows
        if self.image is not None:
            rows = max(1, min(rows, _CHUNK_BYTES // (2 * math.prod(self.image.shape))))
        while part := list(islice(files, rows)):
            chunk = self._chunk(part, columns)
            if chunk.n_rows:
                yield chunk

    def _chunk(self, files: list[tuple[Path, str | None]], columns: tuple[str, ...]) -> Chunk:
        """Decode some files, for their labels too: rows are the same whichever columns are asked for."""
        labels = [label for _, label in files]
        cells: dict[str, Column] = {"x": pa.chunked_array([pa.nulls(len(files))])}
        if self.image is not None:
            pixels = np.empty((len(files), *self.image.shape), dtype=self.image.dtype)
            readable = []
            with unheard():
                for file, label in files:
                    image = read_picture(file, self.image)
                    if image is not None:
                        pixels[len(readable)] = image
                        readable.append(label)
            labels = readable
            cells["x"] = pixels[: len(readable)]
        cells["y"] = pa.chunked_array([pa.array(labels, pa.string())])
        return Chunk(columns={name: cells[name] for name in columns}, n_rows=len(labels))

    def _files(self) -> Iterator[tuple[Path, str | None]]:
        """Yield files of images with their labels, sorted; no link is followed, and deeper folders are not entered."""
        folders = _entries(self.path, folders=True)
        for file in _entries(self.path, folders=False):
            yield file, None
        for folder in folders:
            label = label_of_folder(folder.name)
            for file in _entries(folder, folders=False):
                yield file, label


def open_folder(path: Path, *, chunk_rows: int) -> FolderSource:
    """Open a folder of images; nothing in it is looked at.

    Raises:
        ConfigError: Pillow is not installed.
    """
    require_pillow()
    return FolderSource(
        label=path.name or "the folder",
        container="folder",
        storage={"x": pa.null(), "y": pa.string()},
        keys=_KEYS,
        chunk_rows=chunk_rows,
        path=path,
    )


def _entries(folder: Path, *, folders: bool) -> list[Path]:
    """Return the sub-folders or the images of a folder in the order of their names, without hidden ones."""

    def listed(entry: os.DirEntry[str]) -> bool:
        return entry.is_dir(follow_symlinks=False) if folders else _wanted(entry)

    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if not entry.name.startswith(".") and listed(entry)]
    return [folder / name for name in sorted(names)]


def _wanted(entry: os.DirEntry[str]) -> bool:
    """Whether a file is read as an image, by its name."""
    return entry.name.lower().endswith(SUFFIXES) and entry.is_file(follow_symlinks=False)


MARKER = ".sfumato"
"""A file by which such a folder is known as ours; hidden, so it is no record."""


def write_pictures(batches: Iterator[Mapping[str, Column]], folder: Path) -> None:
    """Write batches of images and labels to a new folder, in memory bounded by a batch.

    Files are numbered through, so that the order of the rows is kept. An image without a label lies in no sub-folder.

    Raises:
        ConfigError: a batch has not one image column and at most one other, its images are no PNG pictures, or Pillow
            is not installed.
        OSError: the folder cannot be written, or its file system holds two labels to be the same.
    """
    require_pillow()
    places: dict[str | None, Path] = {None: folder}
    number = 0
    for batch in batches:
        images, labels = _parts(batch)
        if not number and not folder.exists():
            folder.mkdir()
            (folder / MARKER).touch()
        for image, label in zip(images, labels, strict=True):
            if label is not None and label not in places:
                places[label] = folder / folder_of_label(label)
                places[label].mkdir()
            number += 1
            (places[label] / f"{number:06d}{SUFFIX}").write_bytes(png_bytes(image))


def _parts(batch: Mapping[str, Column]) -> tuple[np.ndarray, list[str | None]]:
    images = [n for n, c in batch.items() if isinstance(c, np.ndarray) or isinstance(c.type, pa.FixedShapeTensorType)]
    others = [name for name in batch if name not in images]
    if len(images) != 1 or len(others) > 1:
        raise ConfigError(
            "Expected one image column and at most one label column to write a folder of images, got "
            f"{', '.join(map(repr, batch))}. Write a .csv, .parquet or .npz file."
        )
    pixels = array_of(batch[images[0]])
    return pixels, _labels(batch[others[0]]) if others else [None] * len(pixels)


def _labels(column: Column) -> list[str | None]:
    assert not isinstance(column, np.ndarray)  # it would be an image
    cells = plain(column.combine_chunks())
    if pa.types.is_dictionary(cells.type):
        cells = plain(cells).dictionary_decode()
    return text_of(cells).to_pylist()
