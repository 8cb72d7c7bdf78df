"""Rows of a table as vectors of a public bounded domain, and back, for methods that work on vectors.

A level column is one-hot, its missing level included. A numeric column is its code in [0, 1], and in
a nullable column an indicator of missing beside it, with 0 for the code. So every column's entries
have norm at most 1, whatever is in the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.columns.kinds import DateTime, LevelKind, NumericKind, kind_name, n_levels, tick_range
from sfumato.errors import ConfigError
from sfumato.schema.grid import TabularKind
from sfumato.schema.schema import Schema

_MISSING_ABOVE = 0.5


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
        constant = isinstance(self.kind, NumericKind) and _is_constant(self.kind)
        return 0.0 if constant and not self.kind.nullable else 1.0

    def encode(self, codes: np.ndarray, into: np.ndarray) -> None:
        """Write the entries of n codes, float64, into zeros of shape (n, entries)."""
        finite = np.isfinite(codes)
        values = np.where(finite, codes, 0.0)
        if isinstance(self.kind, LevelKind):
            levels = np.clip(values, 0, into.shape[1] - 1).astype(np.int64)
            members = np.flatnonzero(finite)
            into[members, levels[members]] = 1.0
            return
        into[:, 0] = np.clip(values, 0.0, 0.0 if _is_constant(self.kind) else 1.0)
        if self.kind.nullable:
            into[:, 1] = np.isnan(codes)

    def decode(self, vectors: np.ndarray) -> np.ndarray:
        """Return n codes for entries of shape (n, entries), of any values."""
        if isinstance(self.kind, LevelKind):
            comparable = np.where(np.isnan(vectors), -np.inf, vectors)
            return comparable.argmax(axis=1).astype(np.int32)
        values = np.where(np.isnan(vectors[:, 0]), 0.0, vectors[:, 0])
        codes = np.clip(values, 0.0, 0.0 if _is_constant(self.kind) else 1.0)
        if self.kind.nullable:
            codes[vectors[:, 1] > _MISSING_ABOVE] = np.nan
        return codes


@final
@dataclass(frozen=True, slots=True)
class TableEncoder:
    """The map between coded rows and vectors; a function of the schema alone.

    Attributes:
        blocks: the entries of every released column, in schema order.

    Example:
        >>> from sfumato.columns.kinds import Boolean, Integer
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
        start = 0
        for name in schema.released:
            kind = schema.columns[name]
            if isinstance(kind, LevelKind):
                width = n_levels(kind)
            elif isinstance(kind, NumericKind):
                width = 1 + kind.nullable
            else:
                raise ConfigError(
                    "Expected columns of a table, "
                    f"got {name!r} of kind {kind_name(kind)}. "
                    "Declare it as identifier to leave it out."
                )
            blocks.append(Block(name=name, kind=kind, entries=slice(start, start + width)))
            start += width
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
            rows: n codes per column, as `sfumato.columns.coding.code_column` gives them.

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

    def decode(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        """Return coded rows for vectors; the inverse of `encode`, and total.

        The largest entry says the level, the first of equals; numbers are clamped to [0, 1], and
        missing where their indicator is above ½. NaN counts as the smallest value.

        Args:
            vectors: shape (n, dimension), any floats.

        Raises:
            ConfigError: the shape is another.
        """
        vectors = np.asarray(vectors, dtype=np.float64)
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise ConfigError(f"Expected vectors of shape (n, {self.dimension}), got {vectors.shape}.")
        return {block.name: block.decode(vectors[:, block.entries]) for block in self.blocks}


def _is_constant(kind: NumericKind) -> bool:
    if isinstance(kind, DateTime):
        first, last = tick_range(kind)
        return first == last
    return kind.lower == kind.upper
