"""A public release of the same schema as the prior of the next one: what its model says of counts and of moments.

Rows of the earlier model are tilted to what this year's counts say of all columns together, then compared with what was
measured, column by column and block by block: the deviations are shrunk by empirical Bayes with the known noise. Where
they are large, as of a wrong prior, a measurement stays as it was; where there is no noise, always.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from sfumato.lenses.lens import DataSet, Sampler
from sfumato.maths.constants import PRIOR
from sfumato.maths.shrinkage import toward
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
class RunShares:
    """Noisy shares of the public runs of every column, from both counts of them, and of classes where there are any.

    Attributes:
        runs: of each cell, per column.
        values: shape (r,) per column, then of the classes.
        variances: of their noise.
    """

    runs: Sequence[np.ndarray]
    values: Sequence[np.ndarray]
    variances: Sequence[np.ndarray]

    @classmethod
    def of(cls, noisy: Noisy, statistic: TwoResolutionCounts, total: float) -> RunShares:
        """Read them off the first release; `total` is the number of records, estimated."""
        tables, cells = statistic.split(noisy.value)
        tables = [table[: statistic.layout.n_classes] for table in tables]
        coarse, fine = (noisy.noise_std / RUN_STEP) ** 2 * len(tables[0]), (noisy.noise_std / CELL_STEP) ** 2
        values, variances = [], []
        for table, own, runs in zip(tables, cells, statistic.runs, strict=True):
            spread, sums = fine * np.bincount(runs), np.bincount(runs, own)
            values.append((table.sum(axis=0) * spread + sums * coarse) / (spread + coarse) / total)
            variances.append(spread * coarse / (spread + coarse) / total**2)
        if len(tables[0]) > 1:
            parts = np.array([1 / table.shape[1] for table in tables])
            values.append(np.average([table.sum(axis=1) for table in tables], axis=0, weights=parts) / total)
            variances.append(np.full(len(tables[0]), coarse / len(tables[0]) / parts.sum() / total**2))
        return cls(statistic.runs, values, variances)


@dataclass(frozen=True, slots=True)
class PriorRows:
    """Rows of an earlier release's model in this year's cells.

    Attributes:
        layout: the cells.
        classes: class of each row, shape (N,).
        cells: cell of each row in each column but the target, shape (N,) each.
        weights: of the rows, shape (N,), sum 1.
        seen: what they were tilted to.
    """

    layout: TableLayout
    classes: np.ndarray
    cells: tuple[np.ndarray, ...]
    weights: np.ndarray
    seen: RunShares | None = None

    @classmethod
    def of(cls, sampler: Sampler, layout: TableLayout) -> PriorRows:
        """Draw them from a public stream."""
        assert not isinstance(sampler, DataSet)
        n = min(PRIOR.rows, PRIOR.most_cells // (len(layout.features) + 1))
        codes = sampler.rows(n, public_stream(PRIOR.seed))
        classes = layout.classes(codes)
        known = np.flatnonzero(classes < layout.n_classes)
        cells = tuple(column.cells(codes[column.name])[known] for column in layout.features)
        return cls(layout, classes[known], cells, np.full(known.size, 1 / max(known.size, 1)))

    def tilted(self, runs: RunShares) -> PriorRows:
        """Return the rows with weights that follow noisy shares of all columns' runs as far as these are known.

        The law of this year is that of the rows times 1 + h, h white with a variance that makes the shares likeliest:
        columns that go together move together. Best linear prediction of every row's weight from the shares.
        """
        columns = [of_cell[cells] for of_cell, cells in zip(runs.runs, self.cells, strict=True)]
        columns += [self.classes] if len(runs.values) > len(columns) else []
        sizes = [values.size for values in runs.values]
        if sum(sizes) > PRIOR.most_runs:  # time grows with the cube, when the fit is charged
            return replace(self, seen=runs)
        covariance, means = _joint(columns, sizes, self.weights)
        roots = np.sqrt(np.concatenate(runs.variances))
        lengths, vectors = linalg.eigh(covariance / np.outer(roots, roots))
        lengths = np.maximum(lengths, 0.0)
        whitened = vectors.T @ ((np.concatenate(runs.values) - means) / roots)
        scale = min(PRIOR.tilts, key=lambda s: float((np.log1p(s * lengths) + whitened**2 / (1 + s * lengths)).sum()))
        if scale > PRIOR.most_tilt:  # a wrong prior would follow the noise: what it says is judged as it is
            return replace(self, seen=runs)
        solved = scale * (vectors @ (whitened / (1 + scale * lengths))) / roots
        starts = np.cumsum([0, *sizes])
        powers = sum(solved[start + places] for start, places in zip(starts, columns, strict=False)) - means @ solved
        weights = self.weights * np.maximum(1 + powers, PRIOR.least_weight)
        return replace(self, weights=weights / weights.sum(), seen=runs)

    def shares(self, column: int, n_cells: int) -> np.ndarray:
        """P(cell) of a column, shape (c,)."""
        return np.bincount(self.cells[column], self.weights, n_cells)

    def counts(
        self, counts: Sequence[np.ndarray], stds: np.ndarray, total: float
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return every column's noisy counts with what the rows say of them, and the noise left, shape (c,) each.

        How far a column is off is seen in its runs, of which noise hides less; in units of √P, cells and runs are off
        alike.
        """
        assert self.seen is not None
        shares = [self.shares(j, own.size) for j, own in enumerate(counts)]
        of_runs = [np.bincount(runs, own) for runs, own in zip(self.seen.runs, shares, strict=True)]
        values, variances = (np.concatenate(part[: len(counts)]) for part in (self.seen.values, self.seen.variances))
        least = np.maximum(values - PRIOR.stands_out * np.sqrt(variances), 1 / total)  # that the rows may not have
        run_shares = np.concatenate(of_runs)
        run_units = np.sqrt(np.maximum(run_shares, least))
        ends = np.cumsum([own.size for own in of_runs])[:-1]
        spread = [
            part[runs] / np.bincount(runs)[runs]
            for part, runs in zip(np.split(least, ends), self.seen.runs, strict=True)
        ]
        blocks, run_blocks = (np.repeat(np.arange(len(counts)), [p.size for p in parts]) for parts in (shares, of_runs))
        sums = (values / run_units, variances / run_units**2, run_blocks, run_shares / run_units)
        expected = np.concatenate(shares)
        units = total * np.sqrt(np.maximum(expected, np.concatenate(spread)))
        noise = stds[blocks] ** 2 / units**2
        means, left = toward(np.concatenate(counts) / units, noise, blocks, total * expected / units, sums=sums)
        means, left = means * units, np.maximum(left, PRIOR.least_variance * noise) * units**2
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
        return replace(self, weights=weights)

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
                parts = [
                    column.features.values[column.drawn[cells[some]]]
                    for column, cells in zip(columns, self.cells, strict=True)
                ]
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
