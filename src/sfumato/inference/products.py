"""Noisy second moments of features that a release measured: pooled and, where classes were told apart, of each.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sfumato.measurements.cells import ALL_ROWS, BaseCells, Cells
from sfumato.measurements.measurement import Measurement
from sfumato.measurements.queries import CellEntries, MomentQuery


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Noisy sums of the products of two features.

    Attributes:
        query: of the pooled sum.
        pooled: over all records, shape (d, d).
        variance: of its noise on the diagonal; half of it off the diagonal.
        by: the column whose cells have sums of their own, if there is one.
        by_class: these sums, shape (k, d, d).
        class_variance: likewise of their noise.
        class_column: the column of classes, whether they have sums of their own or not.
    """

    query: MomentQuery
    pooled: np.ndarray
    variance: float
    by: Cells | None = None
    by_class: np.ndarray | None = None
    class_variance: float = 0.0
    class_column: str | None = None

    @classmethod
    def of(cls, measurements: Iterable[Measurement], class_column: str | None, weight: str = "") -> Products | None:
        """The first pooled sum among measurements, with that by class of the same features; None without.

        Args:
            measurements: of a table.
            class_column: whose classes its model tells apart.
            weight: the column by which the table's rows count: other sums are left out; "" where each counts once.
        """
        moments = ((m, m.query) for m in measurements if isinstance(m.query, MomentQuery))
        queries = [(m, query) for m, query in moments if not query.whole_rows and query.weight == weight]
        first = next(((m, query) for m, query in queries if not query.by), None)
        if first is None:
            return None
        pooled, query = first
        variance = pooled.noise_std**2
        second = next(((m, q) for m, q in queries if q.by and _same(q.features, query.features)), None)
        if second is None:
            return cls(query, pooled.value, variance, class_column=class_column)
        by, matrices = second[1].by[0], second[0]
        return cls(query, pooled.value, variance, by, matrices.value, matrices.noise_std**2, by.column)

    @property
    def columns(self) -> dict[str, int]:
        """The place of each column's features."""
        return {entries.cells.column: j for j, entries in enumerate(self.query.features)}

    @property
    def features(self) -> dict[str, int]:
        """The places of `columns` without that of `classes`."""
        return {name: place for name, place in self.columns.items() if place != self.classes}

    @property
    def classes(self) -> int | None:
        """The place of an indicator of the class, or of all rows; None where there is none."""
        places = self.columns
        return places.get(self.class_column or ALL_ROWS, places.get(ALL_ROWS))

    def matrices(self, *, by_class: bool) -> int:
        """How many sums there are, of which those by class count where they are asked for."""
        return 1 + len(self.by_class) if by_class and self.by_class is not None else 1

    @property
    def ends(self) -> np.ndarray:
        """Where the entries of each column begin, and the last end."""
        return np.cumsum([0, *(entries.whole.shape[1] for entries in self.query.features)])

    def width(self, place: int) -> int:
        """Number of entries of a column."""
        return self.query.features[place].whole.shape[1]

    def vectors(self, place: int) -> np.ndarray:
        """CellEntries of each cell of a column, as they are summed, shape (cells, q)."""
        return self.query.features[place].whole * self.query.unit

    def clipping(self, base: BaseCells) -> np.ndarray:
        """By how much clipping weighs each row down, shape (N,)."""
        u = self.query.clipping([base.of(entries.cells) for entries in self.query.features])
        return u * 2.0**-self.query.bits.weights


def _same(one: tuple[CellEntries, ...], other: tuple[CellEntries, ...]) -> bool:
    return len(one) == len(other) and all(
        a.cells.same(b.cells) and np.array_equal(a.whole, b.whole) for a, b in zip(one, other, strict=True)
    )
