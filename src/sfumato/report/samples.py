"""Sampled pictures as PNG sheets inside the page. Pictures of records are never shown."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.columns.kinds import Image, LevelKind
from sfumato.io.pictures import channels_of, png_bytes, require_pillow
from sfumato.release.model import ReleaseValue

PER_CLASS, MOST_CLASSES = 8, 12


@dataclass(frozen=True, slots=True)
class Sheet:
    """Pictures side by side: a data URI, its size in pixels, and what it shows."""

    uri: str
    width: int
    height: int
    shows: str


def image_column(release: ReleaseValue) -> str | None:
    """Return the name of the column of images, or None."""
    return next(iter(release.schema.images), None)


def sheets(release: ReleaseValue, *, seed: int) -> list[Sheet]:
    """Draw a few pictures per class, or a few if there are no classes; none of shapes that are no pictures.

    Raises:
        ConfigError: Pillow is not installed.
    """
    name = image_column(release)
    kind = None if name is None else release.schema.of_kind(Image)[name]
    if name is None or kind is None or len(kind.shape) not in {2, 3} or channels_of(kind.shape) > 3:
        return []
    if channels_of(kind.shape) == 2 or release.is_data_set:
        return []
    require_pillow()
    labels = next(iter(release.schema.of_kind(LevelKind).values()), None)
    if labels is None:
        return [_sheet(_draw(release, name, PER_CLASS, None, seed), kind, "samples")]
    return [
        _sheet(_draw(release, name, PER_CLASS, label, seed), kind, f"samples of class {label}")
        for label in labels.labels[:MOST_CLASSES]
    ]


def _draw(release: ReleaseValue, name: str, n: int, label: str | None, seed: int) -> np.ndarray:
    counts = None if label is None else {label: n}
    table = pa.concat_tables(release.batches(n if label is None else None, seed=seed, class_counts=counts))
    return np.concatenate([chunk.to_numpy_ndarray() for chunk in table[name].chunks])


def _sheet(images: np.ndarray, kind: Image, shows: str) -> Sheet:
    scaled = (np.asarray(images, dtype=np.float64) - kind.lower) / (kind.upper - kind.lower)
    pixels = np.round(255 * np.clip(scaled, 0, 1)).astype(np.uint8)
    strip = np.concatenate(list(pixels), axis=1)
    uri = "data:image/png;base64," + base64.b64encode(png_bytes(strip)).decode("ascii")
    return Sheet(uri, strip.shape[1], strip.shape[0], f"{len(images)} {shows}")
