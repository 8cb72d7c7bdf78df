"""A release that is a data set: noisy mixtures of records, features and soft labels, given back whole or in part.

Rows of a table as vectors of a public bounded domain, for methods that work on vectors.

A level column is one-hot, its missing level included; a hidden level is zeros. A numeric column is its code in [0,
1], and in a nullable column an indicator of missing beside it, with 0 for the code. So every column's entries have
norm at most 1, whatever is in the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa

from sfumato.columns.kind import TabularKind
from sfumato.errors import ConfigError, ReleaseError
from sfumato.lenses.lens import DataSet
from sfumato.maths.arrays import require_array
from sfumato.maths.streams import public_stream
from sfumato.models.images.coefficients import ImageLayout
from sfumato.schema.schema import Schema


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The entries of one column in a vector.

    Attributes:
        name: column name.
        kind: its kind.
        entries: where they are: one per level; or the code, then for a nullable column the
            indicator of missing.
    """

    name: str
    kind: TabularKind
    entries: slice

    @property
    def norm_bound(self) -> float:
        """Largest norm of these entries: 1, or 0 if the bounds leave only one value."""
        return 0.0 if self.kind.is_constant and not self.kind.nullable else 1.0

    def encode(self, codes: np.ndarray, into: np.ndarray) -> None:
        """Write the entries of n codes, float64, into zeros of shape (n, entries)."""
        finite = np.isfinite(codes)
        values = np.where(finite, codes, 0.0)
        if not self.kind.is_numeric:
            levels = np.where(finite, np.clip(values, 0, self.kind.n_levels - 1), self.kind.n_levels - 1)
            into[:] = levels[:, None].astype(np.int64) == np.arange(into.shape[1])
            return
        into[:, 0] = np.clip(values, 0.0, 0.0 if self.kind.is_constant else 1.0)
        if self.kind.nullable:
            into[:, 1] = np.isnan(codes)


@final
@dataclass(frozen=True, slots=True)
class TableEncoder:
    """The map between coded rows and vectors; a function of the schema alone.

    Attributes:
        blocks: the entries of every released column, in schema order.

    Example:
        >>> from sfumato.columns import Boolean, Integer
        >>> schema = Schema(columns={"member": Boolean(), "age": Integer(lower=0, upper=100)})
        >>> encoder = TableEncoder.of(schema)
        >>> encoder.encode({"member": np.array([1, 0]), "age": np.array([0.25, 1.0])})
        array([[0.  , 1.  , 0.25],
               [1.  , 0.  , 1.  ]])
    """

    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, schema: Schema) -> TableEncoder:
        """Lay out the released columns of a schema.

        Raises:
            ConfigError: a column is an image.
        """
        blocks: list[Block] = []
        start, kinds = 0, schema.of_kind(TabularKind)
        for name in schema.released:
            if name not in kinds:
                raise ConfigError(
                    f"Expected columns of a table, got {name!r} of kind {schema.columns[name].name}. "
                    "Declare it as identifier to leave it out."
                )
            end = start + kinds[name].width
            blocks.append(Block(name=name, kind=kinds[name], entries=slice(start, end)))
            start = end
        return cls(tuple(blocks))

    @property
    def dimension(self) -> int:
        """Number of entries of a vector."""
        return self.blocks[-1].entries.stop

    @property
    def norm_bound(self) -> float:
        """Largest ℓ2 norm that `encode` can give a row."""
        return float(np.sqrt(sum(block.norm_bound**2 for block in self.blocks)))

    def encode(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return coded rows as vectors, shape (n, dimension), float64.

        Privacy: none (pure function); vector i depends on row i alone, and its norm is at most
        `norm_bound` for any codes. A code outside the domain is clamped; one that is not finite
        gives zeros, but NaN in a nullable numeric column is a missing value.

        Args:
            rows: n codes per column, as the columns' kinds give them.

        Raises:
            ConfigError: a column is not there, or is not as long as the others.
        """
        lengths = {len(rows[block.name]) if block.name in rows else -1 for block in self.blocks}
        if len(lengths) != 1 or -1 in lengths:
            raise ConfigError("Expected codes of every released column, equally many of each.")
        vectors = np.zeros((lengths.pop(), self.dimension))
        for block in self.blocks:
            codes = np.asarray(rows[block.name], dtype=np.float64)
            block.encode(codes, vectors[:, block.entries])
        return vectors


@final
@dataclass(frozen=True, slots=True)
class SplitEncoder:
    """The map from coded records to their features and labels; a function of the schema and the target alone.

    Attributes:
        images: the layout of images, whose labels are the label column; None of a table.
        table: the encoder of a table, whose labels are the entries of the target; None of images.
        is_label: which entries of a table's vectors these are, shape (dimension,).
    """

    images: ImageLayout | None
    table: TableEncoder | None
    is_label: np.ndarray

    @classmethod
    def of(cls, schema: Schema, target: object) -> SplitEncoder:
        """Read it off a schema.

        Raises:
            ConfigError: images with other columns than one label.
        """
        if schema.images:
            return cls(ImageLayout.of(schema), None, np.zeros(0, dtype=bool))
        table = TableEncoder.of(schema)
        is_label = np.zeros(table.dimension, dtype=bool)
        for block in table.blocks:
            is_label[block.entries] = block.name == target
        return cls(None, table, is_label)

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of features d_X and of labels d_Y."""
        if self.images is not None:
            return self.images.dimension, self.images.n_classes if self.images.label else 0
        return int((~self.is_label).sum()), int(self.is_label.sum())

    def encode(self, rows: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return features (n, d_X) and labels (n, d_Y) of some rows, all ≥ 0; each row depends on itself alone."""
        if self.images is not None:
            pictures, n_labels = self.images.pictures(rows[self.images.image]), self.sizes[1]
            one_hot = np.eye(n_labels + 1)[self.images.classes(rows)][:, :n_labels]
            return pictures.reshape(len(pictures), -1), one_hot
        assert self.table is not None
        vectors = self.table.encode(rows)
        return vectors[:, ~self.is_label], vectors[:, self.is_label]


_WIDEST_DENOISING = 100.0


def mixture_columns(schema: Schema) -> list[str]:
    """Return the names of a table of mixtures' columns, one per entry: `age`, `sex=f`, `grade missing`.

    Raises:
        ConfigError: two of them are the same.
    """
    names = []
    for block in TableEncoder.of(schema).blocks:
        own = [block.name] if block.kind.is_numeric else [f"{block.name}={label}" for label in block.kind.labels]
        names += [*own, f"{block.name} missing"][: block.kind.width]
    if len(set(names)) != len(names):
        raise ConfigError("Expected columns and labels whose names COLUMN=LABEL differ. Rename a column.")
    return names


class MixtureSet(DataSet):
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
        denoise = settings.get("denoise")
        if isinstance(denoise, bool) or not isinstance(denoise, int | float) or not 0 <= denoise <= _WIDEST_DENOISING:
            raise ReleaseError(f"Expected denoise between 0 and {_WIDEST_DENOISING:g} in the release.")
        self._denoise = float(denoise)
        self.width = self._features.shape[1] + self._labels.shape[1]
        target = settings.get("target")
        if not schema.images:
            if target is not None and target not in schema.released:
                raise ReleaseError("Expected the release's target to be one of its columns.")
            self._names = mixture_columns(schema)
        self._split = SplitEncoder.of(schema, target)
        if (self._features.shape[1], self._labels.shape[1]) != self._split.sizes or not len(self._features):
            raise ReleaseError("Expected mixtures of the schema's columns in the release.")

    @property
    def n_rows(self) -> int:
        """T, how many mixtures there are."""
        return len(self._features)

    def batches(self, n: int, seed: int, size: int) -> Iterator[pa.Table]:
        """Yield n of the mixtures."""
        if n > self.n_rows:
            raise ConfigError(
                f"Expected n of at most {self.n_rows}, got {n=}. This release is a data set of that many mixtures, "
                "not a model: more cannot be drawn from it. Sample fewer, or fit with more n_mixtures."
            )
        order = public_stream(seed).permutation(self.n_rows)[:n]
        return (self.table(order[start : start + size]) for start in range(0, max(n, 1), size))

    def table(self, chosen: np.ndarray) -> pa.Table:
        """Return the mixtures of these numbers, as `sample` shows them."""
        features, labels = self._features[chosen], self._labels[chosen]
        layout, is_label = self._split.images, self._split.is_label
        if layout is not None:
            columns = {layout.image: self._pictures(features, layout)}
            if layout.label is not None:
                columns[layout.label] = labels
            return pa.table({n: pa.FixedShapeTensorArray.from_numpy_ndarray(c) for n, c in columns.items()})
        entries = np.empty((len(chosen), len(self._names)), dtype=np.float32)
        entries[:, ~is_label], entries[:, is_label] = features, labels
        return pa.table({name: np.ascontiguousarray(entries[:, j]) for j, name in enumerate(self._names)})

    def _pictures(self, features: np.ndarray, layout: ImageLayout) -> np.ndarray:
        channels, height, width = layout.picture
        pictures = features.reshape(len(features), channels, height, width)
        if self._denoise:
            from scipy import ndimage

            pictures = ndimage.gaussian_filter(pictures, self._denoise, axes=(2, 3))
        return layout.pixels(pictures)
