"""A second stage: tables of selected pairs of columns, in place of second moments.

counts of every column's cells      → cells of about equal share, and which columns vary most
tables of the P pairs of these      → moments of features, by `counted_moments`; other pairs were not measured
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sfumato.plugins import Cells, MarginalQuery, QueryCounts, Stage, multiplier_for_share
from sfumato.two_stages import SecondRelease, TwoStageTables, counted_moments

PAIRS = "tables of pairs"


@dataclass(frozen=True)
class SelectedPairs:
    """The tables of pairs of those columns that vary most by the first release, in at most `bins` cells a column."""

    most_columns: int
    bins: int
    name: str = PAIRS

    def stage(self, share):
        """A record adds P ones, P the number of pairs: norm √P, and two are √(2P) apart."""
        multiplier = multiplier_for_share(share)
        return Stage(name=PAIRS, noise_multiplier=multiplier, replace_distance=2**0.5, measures="selected pairs")

    def release(self, fit, first):
        """Count the pairs; what follows is a function of the counts."""
        axes = [self.cells(*pair) for pair in zip(first.grid.columns, first.columns, strict=True)]
        spread = [1 - (np.bincount(a.groups, c.shares) ** 2).sum() for a, c in zip(axes, first.columns, strict=True)]
        chosen = sorted(np.argsort(spread)[::-1][: self.most_columns].tolist())
        pairs = [(axes[i], axes[j]) for i, j in combinations(chosen, 2)]
        pairs = pairs or [(axes[0], Cells.all_rows())]  # of one column there is no pair
        noisy = fit.measure(PAIRS, QueryCounts(MarginalQuery(tuple(pairs)), PAIRS))
        return SecondRelease(((PAIRS, noisy),), counted_moments(first, noisy))

    def cells(self, column, known):
        """Neighbouring cells of about the same released share together; of labels, the last ones."""
        middles = np.cumsum(known.shares) - known.shares / 2
        groups = np.minimum((middles * self.bins).astype(np.int64), self.bins - 1)
        if column.kind.is_numeric and column.kind.nullable:
            groups[-1] = groups.max() + 1
        if not column.kind.is_numeric:
            groups = np.minimum(np.arange(column.n_cells), self.bins)
        return Cells.of(column, np.unique(groups, return_inverse=True)[1].astype(np.int64))


@dataclass(frozen=True, kw_only=True)
class PairTables(TwoStageTables):
    """The default method with tables of selected pairs as its second stage. Tables of few columns, in seconds."""

    method = "pair-tables"
    most_columns: int = 6
    bins: int = 8

    def second_stage(self, facts):
        return SelectedPairs(self.most_columns, self.bins)
