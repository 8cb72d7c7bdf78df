"""A release that is a data set: noisy mixtures of records, features and soft labels, given back whole or in part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import ndimage

from sfumato.columns.kinds import Image, LevelKind, level_labels, n_levels
from sfumato.errors import ConfigError, ReleaseError
from sfumato.maths.arrays import require_array
from sfumato.maths.streams import public_stream
from sfumato.models.images.coefficients import ImageLayout
from sfumato.models.table import Block, TableEncoder
from sfumato.schema.schema import Schema

_WIDEST_DENOISING = 100.0


def mixture_columns(schema: Schema) -> list[str]:
    """Return the names of a table of mixtures' columns, one per entry: `age`, `sex=f`, `grade missing`.

    Raises:
        ConfigError: two of them are the same.
    """
    names = [name for block in TableEncoder.of(schema).blocks for name in _entry_names(block)]
    if len(set(names)) != len(names):
        raise ConfigError("Expected columns and labels whose names COLUMN=LABEL differ. Rename a column.")
    return names


def _entry_names(block: Block) -> list[str]:
    if not isinstance(block.kind, LevelKind):
        return [block.name, f"{block.name} missing"][: 1 + block.kind.nullable]
    names = [f"{block.name}={label}" for label in level_labels(block.kind)]
    return [*names, f"{block.name} missing"][: n_levels(block.kind)]


class MixtureSet:
    """Mixtures in the encoder's coordinates, as they were released.

    Of a table: a column per entry, in [0, 1] before mixing and noise; a number is its position between its bounds. Of
    images: pixels as positions between the bounds, in their shape, and a vector of soft labels.

    Parameters, of T mixtures: features (T, d_X), labels (T, d_Y), both float32.

    Settings: target, whose entries are the labels (of a table; of images it is the label column); denoise, the standard
    deviation in pixels of a Gaussian filter of images, 0 for none.
    """

    name = "mixtures"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        self._features = require_array(parameters, "features", np.float32, (None, None))
        self._labels = require_array(parameters, "labels", np.float32, (len(self._features), None))
        self._schema, self._layout = schema, None
        denoise = settings.get("denoise", 0.0)
        if isinstance(denoise, bool) or not isinstance(denoise, int | float) or not 0 <= denoise <= _WIDEST_DENOISING:
            raise ReleaseError(f"Expected denoise between 0 and {_WIDEST_DENOISING:g} in the release.")
        self._denoise = float(denoise)
        if any(isinstance(schema.columns[name], Image) for name in schema.released):
            self._layout = ImageLayout.of(schema)
            sizes = self._layout.dimension, self._layout.n_classes if self._layout.label else 0
        else:
            sizes = self._tabular(schema, settings.get("target"))
        if (self._features.shape[1], self._labels.shape[1]) != sizes or not len(self._features):
            raise ReleaseError("Expected mixtures of the schema's columns in the release.")

    def _tabular(self, schema: Schema, target: object) -> tuple[int, int]:
        if target is not None and target not in schema.released:
            raise ReleaseError("Expected the release's target to be one of its columns.")
        self._names = mixture_columns(schema)
        encoder = TableEncoder.of(schema)
        labels = [range(encoder.dimension)[b.entries] for b in encoder.blocks if b.name == target]
        self._is_label = np.zeros(encoder.dimension, dtype=bool)
        for entries in labels:
            self._is_label[list(entries)] = True
        return int((~self._is_label).sum()), int(self._is_label.sum())

    @property
    def n_mixtures(self) -> int:
        """T, how many there are."""
        return len(self._features)

    @property
    def width(self) -> int:
        """Numbers of one mixture."""
        return self._features.shape[1] + self._labels.shape[1]

    def batches(self, n: int, seed: int, size: int) -> Iterator[pa.Table]:
        """Yield n of the mixtures, in an order that the seed says, `size` at a time; the first do not depend on n.

        Raises:
            ConfigError: there are not so many.
        """
        if n > self.n_mixtures:
            raise ConfigError(
                f"Expected n of at most {self.n_mixtures}, got {n=}. This release is a data set of that many mixtures, "
                "not a model: more cannot be drawn from it. Sample fewer, or fit with more n_mixtures."
            )
        order = public_stream(seed).permutation(self.n_mixtures)[:n]
        return (self.table(order[start : start + size]) for start in range(0, max(n, 1), size))

    def table(self, chosen: np.ndarray) -> pa.Table:
        """Return the mixtures of these numbers, as `sample` shows them."""
        features, labels = self._features[chosen], self._labels[chosen]
        if self._layout is not None:
            columns = {self._layout.image: self._pictures(features)}
            if self._layout.label is not None:
                columns[self._layout.label] = labels
            return pa.table({n: pa.FixedShapeTensorArray.from_numpy_ndarray(c) for n, c in columns.items()})
        entries = np.empty((len(chosen), len(self._names)), dtype=np.float32)
        entries[:, ~self._is_label], entries[:, self._is_label] = features, labels
        return pa.table({name: np.ascontiguousarray(entries[:, j]) for j, name in enumerate(self._names)})

    def _pictures(self, features: np.ndarray) -> np.ndarray:
        assert self._layout is not None
        channels, height, width = self._layout.picture
        pictures = features.reshape(len(features), channels, height, width)
        if self._denoise:
            pictures = ndimage.gaussian_filter(pictures, self._denoise, axes=(2, 3))
        return self._layout.pixels(pictures)
