"""A public release of the same schema as the prior of the next one: what its model says of counts and of moments.

Rows of the earlier model are tilted to what this year's counts say of all columns together, then compared with what was
measured, column by column and block by block: the deviations are shrunk by empirical Bayes with the known noise. Where
they are large, as of a wrong prior, a measurement stays as it was; where there is no noise, always.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from sfumato.lenses.lens import DataSet, Sampler
from sfumato.maths.constants import PRIOR
from sfumato.maths.shrinkage import toward
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import CELL_STEP, RUN_STEP, CellCounts
from sfumato.methods.tables.features import ColumnShares
from sfumato.schema.grid import Grid

_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class RunShares:
    """Noisy shares of the public runs of every column, from both counts of them.

    Attributes:
        runs: of each cell, per column.
        values: shape (r,) per column.
        variances: of their noise.
    """

    runs: Sequence[np.ndarray]
    values: Sequence[np.ndarray]
    variances: Sequence[np.ndarray]

    @classmethod
    def of(cls, noisy: Noisy, statistic: CellCounts, total: float) -> RunShares:
        """Read them off the first release; `total` is the number of records, estimated."""
        counts, cells = statistic.split(noisy.value)
        coarse, fine = (noisy.noise_std / RUN_STEP) ** 2 * statistic.n_classes, (noisy.noise_std / CELL_STEP) ** 2
        values, variances = [], []
        for of_runs, own, runs in zip(counts, cells, statistic.runs, strict=True):
            spread, sums = fine * np.bincount(runs), np.bincount(runs, own)
            values.append((of_runs * spread + sums * coarse) / (spread + coarse) / total)
            variances.append(spread * coarse / (spread + coarse) / total**2)
        return cls(statistic.runs, values, variances)


@dataclass(frozen=True, slots=True)
class PriorRows:
    """Rows of an earlier release's model in this year's cells.

    Attributes:
        codes: of each row, shape (N,) per column.
        cells: cell of each row in each column, shape (N,) each.
        weights: of the rows, shape (N,), sum 1.
        seen: what they were tilted to.
    """

    codes: Mapping[str, np.ndarray]
    cells: tuple[np.ndarray, ...]
    weights: np.ndarray
    seen: RunShares | None = None

    @classmethod
    def of(cls, sampler: Sampler, grid: Grid) -> PriorRows:
        """Draw them from a public stream."""
        assert not isinstance(sampler, DataSet)
        n = min(PRIOR.rows, PRIOR.most_cells // len(grid.columns))
        return cls(sampler.rows(n, public_stream(PRIOR.seed)), (), np.full(n, 1 / n)).cut(grid)

    def cut(self, grid: Grid) -> PriorRows:
        """Return them in the cells of a grid."""
        return replace(self, cells=tuple(column.cells(self.codes[column.name]) for column in grid.columns))

    def tilted(self, runs: RunShares) -> PriorRows:
        """Return the rows with weights that follow noisy shares of all columns' runs as far as these are known.

        The law of this year is that of the rows times 1 + h, h white with a variance that makes the shares likeliest:
        columns that go together move together. Best linear prediction of every row's weight from the shares.
        """
        columns = [of_cell[cells] for of_cell, cells in zip(runs.runs, self.cells, strict=True)]
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
        values, variances = (np.concatenate(part) for part in (self.seen.values, self.seen.variances))
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

    def raked(self, columns: Sequence[ColumnShares]) -> PriorRows:
        """Return the rows with weights that have this year's shares of every column's runs."""
        weights = self.weights.copy()
        wanted = [(c.drawn[cells], c.pooled()) for c, cells in zip(columns, self.cells, strict=True) if c.features.size]
        for _ in range(PRIOR.rounds):
            for places, shares in wanted:
                now = np.bincount(places, weights, shares.size)
                weights *= np.where(now > 0, shares / np.maximum(now, 1e-300), 0.0)[places]
            weights = np.minimum(weights, PRIOR.largest_weight / weights.size)
            weights /= weights.sum()
        return replace(self, weights=weights)

    def moments(self, columns: Sequence[ColumnShares]) -> np.ndarray:
        """What the rows say of the features of columns: E[φ φᵀ], shape (d, d)."""
        d = sum(column.features.size for column in columns)
        moments = np.zeros((d, d))
        for start in range(0, self.weights.size, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            own = zip(columns, self.cells, strict=True)
            parts = [column.features.values[column.drawn[cells[some]]] for column, cells in own]
            features = np.concatenate(parts, axis=1).astype(np.float32)
            moments += features.T @ (features * self.weights[some, None].astype(np.float32))
        return moments


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
