"""The entries of a record's vector: features of all columns, one after the other, and the blocks their pairs make.

Moments of two columns and two kinds of features are one block: these are shrunk together, and missed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.methods.tables.features import N_KINDS, SCORE, ColumnShares
from sfumato.methods.tables.pair_laws import Copy


@dataclass(frozen=True, slots=True)
class Entries:
    """What the entries of a record's vector are.

    Attributes:
        roots: of their weights, shape (d,).
        owner: column of each, shape (d,).
        kinds: kind of feature of each, shape (d,).
        hermite: per column, `hermite_coefficients`; None for labels.
        values: per column, the features of its runs, shape (r, q).
        shares: per column, P(run), shape (r,).
        copies: columns of labels that may be kept from one to the other.
    """

    roots: np.ndarray
    owner: np.ndarray
    kinds: np.ndarray
    hermite: tuple[np.ndarray | None, ...]
    values: tuple[np.ndarray, ...]
    shares: tuple[np.ndarray, ...]
    copies: tuple[Copy, ...] = ()

    @classmethod
    def of(cls, columns: Sequence[ColumnShares], copies: Sequence[Copy] = ()) -> Entries:
        """Lay out the features of columns."""
        features = [column.features for column in columns]
        return cls(
            np.sqrt(np.concatenate([f.weights for f in features])),
            np.repeat(np.arange(len(features)), [f.size for f in features]),
            np.concatenate([f.kinds for f in features]),
            tuple(column.hermite() for column in columns),
            tuple(f.values for f in features),
            tuple(column.pooled() for column in columns),
            tuple(copies),
        )

    def block(self, column: int) -> slice:
        """Return the places of a column's entries."""
        start, stop = np.searchsorted(self.owner, [column, column + 1])
        return slice(int(start), int(stop))

    @property
    def groups(self) -> np.ndarray:
        """Block of each pair of entries: two columns and two kinds, shape (d, d)."""
        return feature_groups(self.owner, self.kinds)

    @property
    def scores(self) -> dict[int, int]:
        """Place of the score of each column that has one."""
        return {int(self.owner[place]): int(place) for place in np.flatnonzero(self.kinds == SCORE)}


def feature_groups(owner: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Return the block of each pair of features, by their columns and kinds, shape (d, d)."""
    pairs = owner[:, None] * (int(owner.max(initial=-1)) + 1) + owner
    return (pairs * N_KINDS + kinds[:, None]) * N_KINDS + kinds
