"""A public release of the same schema as the prior of the next one: what its model says of counts and of moments.

Rows of the earlier model are tilted to what this year's counts say of all columns together, then compared with what was
measured, column by column and block by block: the deviations are shrunk by empirical Bayes with the known noise. Where
they are large, as of a wrong prior, a measurement stays as it was; where there is no noise, always.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sfumato.lenses.lens import DataSet, Sampler
from sfumato.maths.constants import PRIOR
from sfumato.maths.shrinkage import shrunk
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import CELL_STEP, RUN_STEP, TwoResolutionCounts
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.layout import TableLayout

_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class PriorMoments:
    """What an earlier release says of the features of this one.

    Attributes:
        pooled: E[φ φᵀ], shape (d, d).
        means: E[φ | class], shape (k, d).
        by_class: E[φ φᵀ | class], shape (k, d, d).
    """

    pooled: np.ndarray
    means: np.ndarray
    by_class: np.ndarray


@dataclass(frozen=True, slots=True)
class PriorRows:
    """Rows of an earlier release's model in this year's cells.

    Attributes:
        layout: the cells.
        classes: class of each row, shape (N,).
        cells: cell of each row in each column but the target, shape (N,) each.
        weights: of the rows, shape (N,), sum 1.
    """

    layout: TableLayout
    classes: np.ndarray
    cells: tuple[np.ndarray, ...]
    weights: np.ndarray

    @classmethod
    def of(cls, sampler: Sampler, layout: TableLayout) -> PriorRows:
        """Draw them from a public stream."""
        assert not isinstance(sampler, DataSet)
        codes = sampler.rows(PRIOR.rows, public_stream(PRIOR.seed))
        cells = tuple(column.cells(codes[column.name]) for column in layout.features)
        return cls(layout, layout.classes(codes), cells, np.full(PRIOR.rows, 1 / PRIOR.rows))

    def tilted(self, noisy: Noisy, statistic: TwoResolutionCounts, total: float) -> PriorRows:
        """Return the rows with weights that follow noisy counts of all columns' runs as far as these are known.

        The law of this year is that of the rows times 1 + h, h white with a variance that makes the counts likeliest:
        counts of columns that go together move together. Best linear prediction of every row's weight from the counts.
        """
        tables, cells = statistic.split(noisy.value)
        columns = []
        values, variances = [], []
        coarse = (noisy.noise_std / RUN_STEP) ** 2 * len(tables[0])
        fine = (noisy.noise_std / CELL_STEP) ** 2
        for table, own, runs, of_rows in zip(tables, cells, statistic.runs, self.cells, strict=True):
            sizes = np.bincount(runs)
            sums, spread = np.bincount(runs, own), fine * sizes
            columns.append(runs[of_rows])
            values.append((table.sum(axis=0) * spread + sums * coarse) / (spread + coarse) / total)
            variances.append(spread * coarse / (spread + coarse) / total**2)
        if self.layout.n_classes > 1:
            per_table = np.array([1 / t.shape[1] for t in tables])
            columns.append(self.classes)
            values.append(np.average([t.sum(axis=1) for t in tables], axis=0, weights=per_table) / total)
            variances.append(np.full(len(tables[0]), (noisy.noise_std / RUN_STEP / total) ** 2 / per_table.sum()))
        noise = np.concatenate(variances)
        sizes = [v.size for v in values]
        covariance, means = _joint(columns, sizes, self.weights)
        missed = np.concatenate(values) - means
        roots = np.sqrt(noise)
        lengths, vectors = linalg.eigh(covariance / np.outer(roots, roots))
        lengths = np.maximum(lengths, 0.0)
        whitened = vectors.T @ (missed / roots)
        scale = min(PRIOR.tilts, key=lambda s: float((np.log1p(s * lengths) + whitened**2 / (1 + s * lengths)).sum()))
        solved = scale * (vectors @ (whitened / (1 + scale * lengths))) / roots
        starts = np.cumsum([0, *sizes])
        powers = sum(solved[start + places] for start, places in zip(starts, columns, strict=False)) - means @ solved
        weights = self.weights * np.maximum(1 + powers, PRIOR.least_weight)
        return PriorRows(self.layout, self.classes, self.cells, weights / weights.sum())

    def shares(self, column: int, n_cells: int) -> np.ndarray:
        """P(cell) of a column, shape (c,)."""
        return np.bincount(self.cells[column], self.weights, n_cells)

    def counts(
        self, counts: Sequence[np.ndarray], stds: np.ndarray, total: float
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return every column's noisy counts with what the rows say of them, and the noise left, shape (c,) each."""
        shares = np.concatenate([self.shares(j, own.size) for j, own in enumerate(counts)])
        blocks = np.repeat(np.arange(len(counts)), [own.size for own in counts])
        units = total * np.sqrt(np.maximum(shares, 1 / total))
        means, left = toward(np.concatenate(counts), stds[blocks] ** 2, total * shares, blocks, units)
        left = np.maximum(left, PRIOR.least_variance * stds[blocks] ** 2)
        ends = np.cumsum([own.size for own in counts])[:-1]
        return np.split(means, ends), np.split(np.sqrt(left), ends)

    def raked(self, columns: Sequence[ColumnShares], class_shares: np.ndarray) -> PriorRows:
        """Return the rows with weights that have this year's shares of every column's runs, and of classes."""
        weights = self.weights.copy()
        wanted = [(c.drawn[cells], c.pooled()) for c, cells in zip(columns, self.cells, strict=True) if c.features.size]
        wanted.append((self.classes, class_shares))
        for _ in range(PRIOR.rounds):
            for places, shares in wanted:
                now = np.bincount(places, weights, shares.size)
                weights *= np.where(now > 0, shares / np.maximum(now, 1e-300), 0.0)[places]
            weights = np.minimum(weights, PRIOR.largest_weight / weights.size)
            weights /= weights.sum()
        return PriorRows(self.layout, self.classes, self.cells, weights)

    def moments(self, columns: Sequence[ColumnShares], by_class: bool) -> PriorMoments:
        """What the rows say of the features of columns."""
        k = self.layout.n_classes
        ends = np.cumsum([0, *(column.features.size for column in columns)])
        d = int(ends[-1])
        sums, means = np.zeros((k, d, d)), np.zeros((k, d))
        for c in range(k):
            members = np.flatnonzero(self.classes == c)
            for start in range(0, members.size, _AT_ONCE):
                some = members[start : start + _AT_ONCE]
                parts = [column.features.values[column.drawn[cells[some]]] for column, cells in zip(columns, self.cells, strict=True)]
                features = np.concatenate(parts, axis=1).astype(np.float32)
                weighted = features * self.weights[some, None].astype(np.float32)
                sums[c] += features.T @ weighted
                means[c] += weighted.sum(axis=0)
        mass = np.maximum(np.bincount(self.classes, self.weights, k), 1e-12)
        own = sums / mass[:, None, None] if by_class else np.zeros((0, d, d))
        return PriorMoments(sums.sum(axis=0), means / mass[:, None], own)


def _joint(columns: Sequence[np.ndarray], sizes: Sequence[int], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance of indicators of all columns' runs, and their means."""
    starts = np.cumsum([0, *sizes])
    joint = np.zeros((starts[-1], starts[-1]))
    for i, first in enumerate(columns):
        for j, second in enumerate(columns[: i + 1]):
            table = np.bincount(first * sizes[j] + second, weights, sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])
            rows, others = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            joint[rows, others] = table
            joint[others, rows] = table.T
    means = np.diagonal(joint).copy()
    return joint - np.outer(means, means), means


def toward(
    values: np.ndarray, variances: np.ndarray, centres: np.ndarray, blocks: np.ndarray, units: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy values with what their centres say, and the variances left of them: blocks of one kind.

    Args:
        values: noisy, shape (e,).
        variances: of their noise.
        centres: of the prior.
        blocks: block of each.
        units: in which deviations of all are alike.
    """
    units = np.ones_like(values) if units is None else units
    deviations, left = shrunk((values - centres) / units, variances / units**2, blocks)
    return centres + deviations * units, left * units**2
