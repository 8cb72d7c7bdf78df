"""Second moments of features from noisy tables of two columns: E[φ_i φ_jᵀ] = Σ P(a, b) φ_i(a) φ_j(b)ᵀ.

A pair of columns that was not counted together has a moment of infinite variance. Within a cell of a table nothing is
known of what goes together: a feature that tells its rows apart counts by its mean there.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from sfumato.inference.noisy_totals import CountTable, pool_tables
from sfumato.measurements.queries import Measurement
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.evidence import Evidence
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.second_stage import FirstRelease


def pair_tables(names: Sequence[str], tables: Sequence[CountTable]) -> dict[tuple[int, int], CountTable]:
    """The finest table of every pair of columns that was measured, its axes in the order of the columns."""
    pairs = {}
    for (i, one), (j, other) in combinations(enumerate(names), 2):
        candidates = pool_tables(t.over({one, other}) for t in tables if {one, other} <= t.columns)
        if candidates:
            table = max(candidates, key=lambda t: t.value.size)
            if table.axes[0].column != one:
                table = CountTable(table.axes[::-1], table.value.T, table.variance)
            pairs[i, j] = table
    return pairs


def counted_moments(first: FirstRelease, noisy: Noisy) -> Evidence:
    """The moments of features that follow from noisy tables of two columns; of other pairs nothing was measured.

    Args:
        first: the first release, whose columns they are.
        noisy: measured by a `QueryCounts` of tables of two columns.
    """
    tables = CountTable.all_of(Measurement("", noisy.value, noisy.noise_std, query=noisy.query))
    pairs = pair_tables([column.name for column in first.grid.columns], tables)
    return pair_moments(first.columns, pairs, first.total)


def pair_moments(columns: Sequence[ColumnShares], pairs: Mapping[tuple[int, int], CountTable], n: float) -> Evidence:
    """The moments of features of the measured pairs.

    Args:
        columns: shares and features of each column.
        pairs: tables of two columns, by the places of these, the first one first.
        n: number of rows that were counted.
    """
    ends = np.cumsum([0, *(column.features.size for column in columns)])
    d = int(ends[-1])
    values, variances = np.zeros((d, d)), np.full((d, d), np.inf)
    for (i, j), table in pairs.items():
        groups = [
            (columns[k], axis.grouped(np.arange(axis.base)), axis.size)
            for k, axis in zip((i, j), table.axes, strict=True)
        ]
        first, second = (column.means_in(cells, size) for column, cells, size in groups)
        here = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        values[here] = first.T @ table.value @ second / n
        # Var Σ z(a, b) φ(a) φ(b) = σ² Σ φ(a)² Σ φ(b)²
        variances[here] = np.outer((first**2).sum(axis=0), (second**2).sum(axis=0)) * table.variance / n**2
    upper = np.triu(np.ones((d, d), dtype=bool))
    return Evidence(np.where(upper, values, values.T), np.where(upper, variances, variances.T), columns)
