"""What the first release says of every column: shares of cells, runs in which it is drawn, features, class counts.

Free: uses released values and public facts only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sfumato.lenses.date_columns import idle_distances
from sfumato.maths.constants import SIZES, VECTORS
from sfumato.maths.shrinkage import shrunk_together
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.atoms import with_atoms
from sfumato.methods.tables.cell_counts import CELL_STEP, RUN_STEP, CellCounts
from sfumato.methods.tables.features import ColumnShares, Features, Waves, level_features, number_features
from sfumato.methods.tables.histograms import estimated_shares
from sfumato.methods.tables.nested import agreeing, nested_features, raked, sums_of
from sfumato.methods.tables.prior_rows import PriorRows
from sfumato.methods.tables.tails import Axis, NoisyCounts, with_normal_tails
from sfumato.schema.distances import Distance
from sfumato.schema.grid import ColumnGrid, Grid, single_codes


@dataclass(frozen=True, slots=True)
class Resolution:
    """How finely columns are modelled.

    Attributes:
        most_runs: about the most runs of cells of a number.
        waves: functions of a number's rank.
        level_groups: most levels with a feature of their own.
        weights: of columns that count for more than others.
        narrow: columns that vary far less than their bounds allow.
    """

    most_runs: int
    waves: Waves
    level_groups: int
    weights: Mapping[str, float]
    narrow: Collection[str] = ()


def released_total(noisy: Noisy, statistic: CellCounts) -> float:
    """Return the number of records, by all columns' runs."""
    every, _ = statistic.split(noisy.value)
    runs = [every[j] for j in statistic.alone]
    total = np.average([counts.sum() for counts in runs], weights=[1 / counts.size for counts in runs])
    # below its own noise it is kept at what this could have hidden
    hidden = noisy.noise_std / RUN_STEP * np.sqrt(statistic.n_classes) * _total_noise(runs)
    return float(max(total, statistic.least, hidden))


def _total_noise(runs: Sequence[np.ndarray]) -> float:
    """Return the noise of the number of records, by all columns' runs, in that of a count."""
    return float(sum(1 / counts.size for counts in runs)) ** -0.5


def column_shares(
    noisy: Noisy,
    statistic: CellCounts,
    total: float,
    resolution: Resolution,
    prior: PriorRows | None = None,
) -> tuple[Grid, list[ColumnShares]]:
    """Return what is known of each column, and what an earlier release says of it; the grid with atoms as cells."""
    runs, cells = statistic.split(noisy.value)
    features, cells_std = statistic.grid.columns, noisy.noise_std / CELL_STEP
    runs_std = noisy.noise_std / RUN_STEP * float(np.sqrt(statistic.n_classes))
    alone, cells_stds = statistic.alone, statistic.deviations(noisy.noise_std)
    total_std, runs_stds = runs_std * _total_noise([runs[j] for j in alone]), SIZES.uncounted * cells_stds
    for counts, left, std in ((cells, cells_stds, cells_std), (runs, runs_stds, runs_std)):
        own, left[alone] = shrunk_together([counts[j] for j in alone], std, [features[j].kind for j in alone])
        for j, better in zip(alone, own, strict=True):
            counts[j] = better
    own_stds: list[float | np.ndarray] = [*cells_stds.tolist()]
    for (i, _), table in statistic.tables_of_pairs(noisy.value).items():
        if (own := statistic.nested.get(i)) is not None:
            cells[i], own_stds[i] = agreeing(cells[i], cells_stds[i], sums_of(table, own), own)
    stds: Sequence[float | np.ndarray] = own_stds
    if prior is not None and noisy.noise_std:
        cells, stds = prior.counts(cells, cells_stds, total)
    grids, columns, values = [], [], statistic.values(noisy)
    for j, (column, run_of_cell) in enumerate(zip(features, statistic.runs, strict=True)):
        counts = NoisyCounts(cells[j], stds[j], runs[j], runs_stds[j], run_of_cell)
        shares = smoothed_shares(column, resolution, total_std, counts, total)
        if j in values:
            smooth = partial(smoothed_shares, column, resolution, total_std)
            column, shares, run_of_cell = with_atoms(column, shares, counts, values[j], total, smooth)
        shares = raked(shares, cells[j], statistic.nested[j]) if j in statistic.nested else shares
        grids.append(column)
        columns.append(drawn_shares(column, shares, run_of_cell, resolution, runs_std / total))
    for j, other in statistic.alike.items():
        grids[j], columns[j] = replace(grids[other], name=grids[j].name), columns[other]
    return Grid(tuple(grids)), columns


def unsaid_distances(
    distances: Mapping[str, Distance],
    grid: Grid,
    columns: Sequence[ColumnShares],
    noisy: Noisy,
    n_classes: int,
    total: float,
) -> frozenset[str]:
    """Return the columns of distances between dates that say nothing which the dates do not."""
    if not distances:
        return frozenset()
    public_cells = max(1.0, float(np.mean([column.shares.size / (column.counted.max() + 1) for column in columns])))
    variances = (noisy.noise_std / CELL_STEP) ** 2, (noisy.noise_std / RUN_STEP) ** 2 * n_classes / public_cells
    variance = variances[0] * variances[1] / max(sum(variances), 1e-300)
    return idle_distances(distances, grid.columns, [column.shares for column in columns], variance, total)


def smoothed_shares(
    column: ColumnGrid, resolution: Resolution, total_std: float, counts: NoisyCounts, total: float,
    widths: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Return P(cell) of one column, shape (c,).

    Args:
        column: its cells.
        resolution: how finely it is modelled.
        total_std: of the noise of the number of records; infinite where it is a declared one.
        counts: of cells and of their runs.
        total: number of records, estimated.
        widths: of cells, by default how many steps each holds.
    """
    ordered, steps = _on_curve(column)
    axis, widths = _axis(column), steps if widths is None else widths
    shares = estimated_shares(counts, total, ordered, widths, axis, total_std=total_std)
    if axis is not None and column.name in resolution.narrow and counts.stds.any():
        shares = with_normal_tails(shares, counts, total, ordered, axis)
    if axis is None and counts.stds.any():  # rows may be asked for of a label that noise hides
        shares = np.maximum(shares, VECTORS.least_share) / np.maximum(shares, VECTORS.least_share).sum()
    return shares


def drawn_shares(
    column: ColumnGrid, shares: np.ndarray, runs: np.ndarray, resolution: Resolution, share_std: float
) -> ColumnShares:
    """One column's shares and features, by the public run of each cell and the noise of a run's share."""
    run_of_cell, features = _drawn(column, shares, resolution)
    in_order = 0 if column.edges is None else len(features.values) - column.kind.nullable
    return ColumnShares(shares, runs, run_of_cell, features, share_std, in_order, column.n_cells > column.shown)


def _on_curve(column: ColumnGrid) -> tuple[np.ndarray, np.ndarray]:
    """Return which cells lie on a smooth curve, and how many steps each holds."""
    ordered = np.zeros(column.n_cells, dtype=bool)
    widths = np.ones(column.n_cells)
    if column.edges is not None:
        n = len(column.edges) - 1
        ordered[:n] = True
        widths[:n] = np.diff(column.edges)
        single = single_codes(column.kind)  # type: ignore[arg-type] - of numbers
        ordered[[cell for cell, code in column.alone.items() if code in single]] = False
    return ordered, widths


def _axis(column: ColumnGrid) -> Axis | None:
    """Return where the cells of a number lie; half a step to either side of its steps."""
    if column.edges is None or column.steps is None:
        return None
    edges = column.edges.astype(np.float64) - 0.5
    beyond = np.full(column.n_cells - len(edges) + 1, edges[-1])  # of the missing cell, which is not ordered
    code = column.kind.zero_code  # type: ignore[attr-defined] - of numbers
    zero = None if code is None else float(column.steps.at(np.array(code)))
    return Axis(np.append(edges[:-1], beyond), np.append(edges[1:], beyond), zero)


def _drawn(column: ColumnGrid, shares: np.ndarray, resolution: Resolution) -> tuple[np.ndarray, Features]:
    """Return the run of each cell in which a column is drawn, and the features of the runs."""
    weight, level_groups = resolution.weights.get(column.name, 1.0), resolution.level_groups
    if column.groups is not None:
        return np.arange(column.n_cells), nested_features(shares, column.groups, weight)
    if column.edges is None:
        n, hidden = column.shown, column.n_cells > column.shown
        groups = np.arange(n)
        if n > level_groups:
            rank = np.empty(n, dtype=np.int64)
            rank[np.argsort(-shares[:n], kind="stable")] = np.arange(n)
            groups = np.minimum(rank, level_groups - 1)
        groups = np.append(groups, groups.max() + 1) if hidden else groups
        return groups, level_features(np.bincount(groups, shares), weight, hidden=hidden)
    n = len(column.edges) - 1
    middles = (column.edges[:-1] + column.edges[1:] - 1) / 2.0
    runs = _runs(shares[:n], middles, resolution.most_runs)
    missing = column.n_cells > n
    if missing:
        runs = np.append(runs, runs[-1] + 1)
    masses, places = np.bincount(runs, shares), np.append(middles, 0.0)[: shares.size]
    values = np.bincount(runs, shares * places) / np.maximum(masses, 1e-300)
    return runs, number_features(masses, missing, resolution.waves, weight, values)


def _runs(shares: np.ndarray, middles: np.ndarray, most: int) -> np.ndarray:
    """Cut ordered cells into runs of at most an even share, and of little of the column's spread."""
    if shares.size <= most:
        return np.arange(shares.size)
    total = max(shares.sum(), 1e-300)
    mean = shares @ middles / total
    variance = max(shares @ (middles - mean) ** 2 / total, 1e-300)
    runs = np.zeros(shares.size, dtype=np.int64)
    run, mass, first = 0, 0.0, 0
    for cell, share in enumerate(shares / total):
        joined = mass + share
        span = middles[cell] - middles[first]
        full = joined > 1 / most or joined * span**2 > SIZES.run_spread * variance
        if full and cell > first:
            run, mass, first = run + 1, 0.0, cell
            joined = share
        runs[cell], mass = run, joined
    return runs
