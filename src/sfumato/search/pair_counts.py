"""How far samples are from the records: counts of pairs of coarse cells, from one Gaussian release.

Whatever is compared with the same noisy counts shares their noise. With shares a of the records, ã = a + ξ as released
and s, t of two samples, the difference of squared distances is

    ‖ã − s‖² − ‖ã − t‖² = ‖a − s‖² − ‖a − t‖² − 2⟨ξ, s − t⟩

so ‖ξ‖², which is most of either distance's noise, cancels. Proof: docs/proofs/tune.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.lenses.weights import WEIGHT_BITS, whole_weights
from sfumato.mechanisms.queries import Noisy
from sfumato.records.engine import Rows
from sfumato.records.sequences import AS_ONE, FINER_BITS, flattened, weighted_steps
from sfumato.records.sequences import WEIGHT_BITS as SHARE_BITS
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema
from sfumato.search.marginal_counts import PAIR_CELLS, MarginalCounts, MarginalLayout, coarse_size

_MOST_NUMBERS = 1 << 18


def pair_layout(schema: Schema, target: str | None, weight: str | None = None) -> MarginalLayout:
    """Return the tables of all pairs of columns; where these are too many, of each with the target, or the next one.

    One column is paired with itself. A column of weights is in none: samples have no weights.

    Raises:
        ConfigError: a column is no column of a table.
    """
    every = Grid.of(schema, numeric_cells=PAIR_CELLS).columns
    columns = tuple(column for column in every if column.name != weight)
    sizes = [coarse_size(column) for column in columns]
    pairs = list(combinations(range(len(columns)), 2))
    if sum(sizes[i] * sizes[j] for i, j in pairs) > _MOST_NUMBERS:
        hub = next((j for j, column in enumerate(columns) if column.name == target), None)
        others = [j for j in range(len(columns)) if j != hub]
        pairs = [(j, (j + 1) % len(columns) if hub is None else hub) for j in others]
    return MarginalLayout(columns, tuple(pairs or [(0, 0)]))


@dataclass(frozen=True)
class CoarsePairCounts(MarginalCounts):
    """For every pair of columns, how many records lie in each pair of coarse cells."""

    name: str = "counts of pairs of cells"


@dataclass(frozen=True)
class WeightedPairCounts(CoarsePairCounts):
    """For every pair of columns, the weights of the records in each pair of coarse cells, ÷ the bound.

    A record of weight k/2^20 of the bound adds k to one cell of each of the t tables, in steps of 2^-20: norm
    (k/2^20)·√t, at most that of an unweighted one, and no entry is negative. Proof: docs/proofs/weights.md.
    """

    step: float = 2.0**-WEIGHT_BITS
    column: str = ""

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records by their weights."""
        self.layout.count(total, rows, whole_weights(rows, self.column).astype(np.float64))


@dataclass(frozen=True)
class StepPairCounts(CoarsePairCounts):
    """For every pair of columns, how many steps lie in each pair of coarse cells; a unit's steps count as one together.

    A unit of k steps adds w(k) ≤ 2^10/k to one cell of each of the t tables for each step, in steps of 2^-10, or, if
    weighted, at most that: in each table entries are not negative and add up to 1 at most, so the norm is √t at most,
    and two units are at most √(2t) apart, however their steps lie. One `Gaussian` event. Proof: docs/proofs/tune.md.
    """

    step: float = 2.0 ** -(SHARE_BITS + FINER_BITS)
    column: str = ""
    name: str = "counts of steps in pairs of cells"

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count the steps of some units."""
        flat, owners, steps = flattened(rows)
        shared = AS_ONE.weights(steps)[owners]
        counted = weighted_steps(shared, flat, self.column) if self.column else shared << FINER_BITS
        self.layout.count(total, flat, counted.astype(np.float64))


def pair_counts(schema: Schema, layout: MarginalLayout) -> CoarsePairCounts:
    """Statistic of a schema's records, as it was declared: of weighted ones, by weight."""
    weight = schema.weight
    return CoarsePairCounts(layout) if weight is None else WeightedPairCounts(layout, column=weight.column)


def squared_distance(noisy: Noisy, counts: np.ndarray, layout: MarginalLayout) -> float:
    """Return the mean over pairs of ‖shares of the records − shares of the samples‖², without bias. Free.

    Args:
        noisy: released `CoarsePairCounts` of the records. Their number of records is estimated by the mean of the
            tables' sums, and is at least 1 and the noise of such a sum.
        counts: exact counts of samples, same shape; of samples without a record, as of steps there may be, all 0.
        layout: of both.

    Returns:
        The noise's part of ‖ã − s‖² is taken off, so values just below 0 are possible.
    """
    n_tables = len(layout.tables)
    n = max(1.0, noisy.noise_std * np.sqrt(noisy.value.size / n_tables), float(noisy.value.sum()) / n_tables)
    m = max(1.0, float(counts.sum()) / n_tables)
    difference = noisy.value / n - counts / m
    noise = noisy.value.size * (noisy.noise_std / n) ** 2
    return float(difference @ difference - noise) / n_tables
