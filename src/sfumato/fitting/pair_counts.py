"""How far samples are from the records: counts of pairs of coarse cells, bought with one Gaussian release.

Whatever is compared with the same noisy counts shares their noise. With shares a of the records, ã = a + ξ as released
and s, t of two samples, the difference of squared distances is

    ‖ã − s‖² − ‖ã − t‖² = ‖a − s‖² − ‖a − t‖² − 2⟨ξ, s − t⟩

so ‖ξ‖², which is most of either distance's noise, cancels. Proof: docs/proofs/tune.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from sfumato.mechanisms.queries import Noisy
from sfumato.mechanisms.statistics import Counts
from sfumato.records.engine import Rows
from sfumato.schema.grid import ColumnGrid, Grid
from sfumato.schema.schema import Schema

_NUMERIC_CELLS = 8
_MOST_LEVELS = 16
_MOST_NUMBERS = 1 << 18


@dataclass(frozen=True)
class PairLayout:
    """Which pairs of columns are counted, in which cells. Follows from the schema and the target alone.

    Attributes:
        columns: coarse cells of every released column.
        pairs: all pairs of columns; where these are too many, each column with the target, or with the next one.
    """

    columns: tuple[ColumnGrid, ...]
    pairs: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, schema: Schema, target: str | None) -> PairLayout:
        """Lay out a table; one column is paired with itself.

        Raises:
            ConfigError: a column is no column of a table.
        """
        columns = Grid.of(schema, numeric_cells=_NUMERIC_CELLS).columns
        sizes = [coarse_size(column) for column in columns]
        pairs = list(combinations(range(len(columns)), 2))
        if sum(sizes[i] * sizes[j] for i, j in pairs) > _MOST_NUMBERS:
            hub = None if target is None else schema.released.index(target)
            others = [j for j in range(len(columns)) if j != hub]
            pairs = [(j, (j + 1) % len(columns) if hub is None else hub) for j in others]
        return cls(columns, tuple(pairs or [(0, 0)]))

    @cached_property
    def starts(self) -> np.ndarray:
        """Where each pair's table begins in the flat vector, and its end, shape (pairs + 1,)."""
        sizes = [coarse_size(self.columns[i]) * coarse_size(self.columns[j]) for i, j in self.pairs]
        return np.cumsum([0, *sizes])

    def count(self, total: np.ndarray, rows: Rows) -> None:
        """Add the counts of some coded records to `total`, shape (numbers,)."""
        cells = [coarse(column, column.cells(rows[column.name])) for column in self.columns]
        for (i, j), start, end in zip(self.pairs, self.starts, self.starts[1:], strict=False):
            flat = cells[i] * coarse_size(self.columns[j]) + cells[j]
            total[start:end] += np.bincount(flat, minlength=end - start)


@dataclass(frozen=True)
class PairCounts(Counts):
    """For every pair of columns, how many records lie in each pair of coarse cells.

    One record adds a single 1 to each of the t tables: norm √t. Two records are at most √(2t) apart. Value: all tables
    as one vector.
    """

    layout: PairLayout
    name: str = "counts of pairs of cells"
    step: float = 1.0

    @property
    def squares(self) -> float:
        """The number of pairs of columns."""
        return len(self.layout.pairs)

    def zero(self) -> np.ndarray:
        """Return empty tables."""
        return np.zeros(self.layout.starts[-1])

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        self.layout.count(total, rows)


def squared_distance(noisy: Noisy, counts: np.ndarray, layout: PairLayout) -> float:
    """Return the mean over pairs of ‖shares of the records − shares of the samples‖², without bias. Free.

    Args:
        noisy: released `PairCounts` of the records. Their number of records is estimated by the mean of the
            tables' sums.
        counts: exact counts of samples, same shape.
        layout: of both.

    Returns:
        The noise's part of ‖ã − s‖² is taken off, so values just below 0 are possible.
    """
    n_tables = len(layout.pairs)
    n = max(1.0, float(noisy.value.sum()) / n_tables)
    m = float(counts.sum()) / n_tables
    difference = noisy.value / n - counts / m
    noise = noisy.value.size * (noisy.noise_std / n) ** 2
    return float(difference @ difference - noise) / n_tables


def coarse_size(column: ColumnGrid) -> int:
    """Return the number of coarse cells of a column."""
    return column.n_cells if column.numeric else min(column.n_cells, _MOST_LEVELS)


def coarse(column: ColumnGrid, cells: np.ndarray) -> np.ndarray:
    """Merge levels beyond the most into even runs, in the schema's order."""
    return cells if coarse_size(column) == column.n_cells else cells * _MOST_LEVELS // column.n_cells
