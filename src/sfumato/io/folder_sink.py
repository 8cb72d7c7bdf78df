"""Images as a folder of PNG files: `folder/LABEL/000001.png`, or `folder/000001.png` without labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import plain
from sfumato.columns.levels import canonical_text
from sfumato.errors import ConfigError
from sfumato.io.arrays import array_of
from sfumato.io.chunks import Column
from sfumato.io.pictures import SUFFIX, folder_of_label, png_bytes, require_pillow

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
    made = 0
    for batch in batches:
        images, labels = _parts(batch)
        if not made and not folder.exists():
            folder.mkdir()
            (folder / MARKER).touch()
        for image, label in zip(images, labels, strict=True):
            if label is not None and label not in places:
                places[label] = folder / folder_of_label(label)
                places[label].mkdir()
            made += 1
            (places[label] / f"{made:06d}{SUFFIX}").write_bytes(png_bytes(image))


def _parts(batch: Mapping[str, Column]) -> tuple[np.ndarray, list[str | None]]:
    images = [name for name, column in batch.items() if _is_image(column)]
    others = [name for name in batch if name not in images]
    if len(images) != 1 or len(others) > 1:
        raise ConfigError(
            "Expected one image column and at most one label column to write a folder of images, got "
            f"{', '.join(map(repr, batch))}. Write a .csv, .parquet or .npz file."
        )
    pixels = array_of(batch[images[0]])
    return pixels, _labels(batch[others[0]]) if others else [None] * len(pixels)


def _is_image(column: Column) -> bool:
    return isinstance(column, np.ndarray) or isinstance(column.type, pa.FixedShapeTensorType)


def _labels(column: Column) -> list[str | None]:
    assert not isinstance(column, np.ndarray)  # it would be an image
    cells = plain(column.combine_chunks())
    if pa.types.is_dictionary(cells.type):
        cells = plain(cells.dictionary_decode())
    return canonical_text(cells).to_pylist()
