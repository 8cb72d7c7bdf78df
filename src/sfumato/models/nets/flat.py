"""Any records as flat vectors in [0, 1], and back: images with their label, tables under released marginals, sets.

Images are their values scaled to [0, 1], line by line, then the label one-hot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from sfumato.maths.arrays import shares_among
from sfumato.models.images.coefficients import ImageLayout
from sfumato.models.sets import SetEncoder
from sfumato.schema.grid import ColumnGrid, Grid

_MISSING_ABOVE = 0.5
TYPICAL_SHARE = 1 / 3  # norm of a typical image ÷ the largest norm an image may have


@final
@dataclass(frozen=True, slots=True)
class Part:
    """Consecutive entries of a vector that belong together.

    Attributes:
        entries: where they are.
        levels: whether they are one-hot; if not, each is a number in [0, 1].
        missing: whether it is the indicator of a missing number, which is missing above 1/2.
    """

    entries: slice
    levels: bool
    missing: bool = False


@final
@dataclass(frozen=True, slots=True)
class ImageVectors:
    """Images and their label as vectors.

    Attributes:
        layout: the image column and the label column.
    """

    layout: ImageLayout

    @property
    def dimension(self) -> int:
        """Number of entries: values of an image, and one per label."""
        return self.layout.dimension + (0 if self.layout.label is None else self.layout.n_classes)

    @property
    def typical_norm(self) -> float:
        """What a clip norm is set to without looking: a third of the largest norm of an image, and the label."""
        return float(np.sqrt(self.layout.dimension * TYPICAL_SHARE**2 + (self.layout.label is not None)))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The image, then the label if there is one."""
        d = self.layout.dimension
        image = Part(slice(0, d), levels=False)
        return (image,) if self.layout.label is None else (image, Part(slice(d, self.dimension), levels=True))

    def encode(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return coded rows as vectors, shape (n, dimension), float32; total, and row by row."""
        d = self.layout.dimension
        pictures = self.layout.pictures(rows[self.layout.image])
        vectors = np.zeros((len(pictures), self.dimension), dtype=np.float32)
        vectors[:, :d] = pictures.reshape(len(pictures), d)
        if self.layout.label is not None:
            vectors[:, d:] = self.layout.classes(rows)[:, None] == np.arange(self.layout.n_classes)
        return vectors

    def decode(self, vectors: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return coded rows for vectors of any floats: values clamped to [0, 1], the largest label entry."""
        d = self.layout.dimension
        channels, height, width = self.layout.picture
        shares = np.clip(np.nan_to_num(vectors[:, :d]), 0.0, 1.0)
        pictures = shares.reshape(-1, channels, height, width)
        rows = {self.layout.image: self.layout.stored(pictures)}
        if self.layout.label is not None:
            rows[self.layout.label] = np.nan_to_num(vectors[:, d:]).argmax(axis=1).astype(np.int32)
        return rows


@final
@dataclass(frozen=True, slots=True)
class RankVectors:
    """Rows of a table as vectors: levels one-hot, a hidden one zeros, numbers by their rank under released marginals.

    A number is the middle of its cell's part of the cumulated marginal, in [0, 1]; in a nullable column, an indicator
    of missing stands beside it, and a missing number's rank is 1/2. So columns of any bounds and shape spread alike.

    Attributes:
        grid: the cells.
        shares: per column, released P(cell), each ≥ 0 and of sum 1.
    """

    grid: Grid
    shares: tuple[np.ndarray, ...]

    def _columns(self) -> Iterator[tuple[ColumnGrid, np.ndarray, slice]]:
        """Each column with its shares and the entries that it has."""
        start = 0
        for column, shares in zip(self.grid.columns, self.shares, strict=True):
            stop = start + (1 + column.kind.nullable if column.numeric else column.shown)
            yield column, shares, slice(start, stop)
            start = stop

    @property
    def parts(self) -> tuple[Part, ...]:
        """One per level column and per number or indicator."""
        parts: list[Part] = []
        for column, _, entries in self._columns():
            if not column.numeric:
                parts.append(Part(entries, levels=True))
                continue
            start = entries.start
            parts.append(Part(slice(start, start + 1), levels=False))
            if column.kind.nullable:
                parts.append(Part(slice(start + 1, start + 2), levels=False, missing=True))
        return tuple(parts)

    @property
    def dimension(self) -> int:
        """Number of entries."""
        return [entries.stop for _, _, entries in self._columns()][-1]

    @property
    def typical_norm(self) -> float:
        """The norm of a vector by the released marginals: its root mean square."""
        squares = 0.0
        for column, shares, _ in self._columns():
            squares += float(shares @ _ranks(column, shares) ** 2) if column.numeric else 1.0
        return float(np.sqrt(squares))

    def encode(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return coded rows as vectors, shape (n, dimension), float32; total, and row by row."""
        cells = self.grid.cells(rows)
        vectors = np.zeros((len(cells), self.dimension), dtype=np.float32)
        for (column, shares, entries), codes in zip(self._columns(), cells.T, strict=True):
            if not column.numeric:
                vectors[:, entries] = codes[:, None] == np.arange(column.shown)
                continue
            vectors[:, entries.start] = _ranks(column, shares)[codes]
            if column.kind.nullable:
                vectors[:, entries.start + 1] = codes == column.n_cells - 1
        return vectors

    def decode(self, vectors: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return coded rows for vectors of any floats: a rank's cell, the largest level, missing above 1/2."""
        cells = np.empty((len(vectors), len(self.grid.columns)), dtype=np.int64)
        vectors = np.nan_to_num(vectors)
        for j, (column, shares, entries) in enumerate(self._columns()):
            own = vectors[:, entries]
            if not column.numeric:
                cells[:, j] = own.argmax(axis=1)
                continue
            present = shares[:-1] if column.kind.nullable else shares
            ends = np.cumsum(present) / max(float(present.sum()), 1e-300)
            cells[:, j] = np.minimum(np.searchsorted(ends, own[:, 0], side="right"), len(present) - 1)
            if column.kind.nullable:
                cells[own[:, 1] > _MISSING_ABOVE, j] = column.n_cells - 1
        return self.grid.rows(cells, rng)

    def levels_of(self, name: str) -> slice | None:
        """Return where a column's levels are; None if it has numbers."""
        places = {column.name: None if column.numeric else entries for column, _, entries in self._columns()}
        return places[name]

    def targets(self) -> np.ndarray:
        """Return the mean vector that the released marginals say, shape (dimension,)."""
        means = []
        for column, shares, _ in self._columns():
            if not column.numeric:
                means += list(shares_among(shares, np.arange(shares.size) < column.shown)[: column.shown])
                continue
            means.append(0.5)
            if column.kind.nullable:
                means.append(float(shares[-1]))
        return np.array(means)


@final
@dataclass(frozen=True, slots=True)
class SetVectors:
    """Sets of items as vectors of 0 and 1.

    Attributes:
        encoder: the column of sets.
        typical_length: items of a typical set, public or noisy.
    """

    encoder: SetEncoder
    typical_length: float = 1.0

    @property
    def dimension(self) -> int:
        """Number of items."""
        return self.encoder.dimension

    @property
    def norm_bound(self) -> float:
        """Largest ℓ2 norm of a vector."""
        return self.encoder.norm_bound

    @property
    def typical_norm(self) -> float:
        """The norm of a set of typical length."""
        return float(np.sqrt(self.typical_length))

    @property
    def parts(self) -> tuple[Part, ...]:
        """All items, each on its own."""
        return (Part(slice(0, self.dimension), levels=False),)

    def encode(self, rows: Mapping[str, Any]) -> np.ndarray:
        """Return coded sets as vectors, shape (n, dimension), float32; total, and row by row."""
        return self.encoder.encode(rows)

    def decode(self, vectors: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
        """Return coded sets drawn from the probabilities of items; too long ones lose random items."""
        members = rng.random(vectors.shape, dtype=np.float32) < np.nan_to_num(vectors)
        entries = members.astype(np.float32)
        # of a set that is too long, the encoder keeps the largest entries: random ones
        long = np.flatnonzero(members.sum(axis=1) > self.encoder.kind.longest)
        entries[long] *= 0.75 + 0.25 * rng.random((long.size, self.dimension), dtype=np.float32)
        return self.encoder.decode(entries)


def _ranks(column: ColumnGrid, shares: np.ndarray) -> np.ndarray:
    """Return the rank of each cell of a numeric column, shape (cells,)."""
    present = shares[:-1] if column.kind.nullable else shares
    ends = np.cumsum(present)
    ranks = (ends - present / 2) / max(float(ends[-1]), 1e-300)
    return np.append(ranks, 0.5) if column.kind.nullable else ranks


Vectors: TypeAlias = ImageVectors | RankVectors
AnyVectors: TypeAlias = ImageVectors | RankVectors | SetVectors
