"""A third release of tables: whole tables of the pairs of labels that the noise of moments leaves least known.

Moments measure every pair of columns alike. Where a table of two labels has many cells, and these go together, its
error is the noise of all cells; where they hardly do, the moments are noise, and dropped. So a few tables say more than
as much of the budget would for all moments:

    tables of few pairs of labels   p   → the law of each, from that of the moments; moments of the features of these

Which pairs: those whose error a table lessens most, by what the two releases before say. Numbers are left to their
polynomials: runs of a number's cells would be most of such a table's noise, and lose where a value lies in its run.

Proof: docs/proofs/class_cell_counts.md. Everything after the noise is free. Choice: decision 91.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from sfumato.columns.kinds import TabularKind
from sfumato.fitting.driver import Fit
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import LABEL_PAIRS, PAIRS
from sfumato.maths.gaussian import project_to_simplex
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.mechanisms.queries import Noisy
from sfumato.mechanisms.statistics import QueryCounts
from sfumato.methods.tables.cross_moments import CrossMoments
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.pair_laws import lawful_table, raked
from sfumato.methods.tables.second_stage import FirstRelease
from sfumato.methods.tables.settings import TableFacts, counted_rows, entry_noise
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share

NAME = "tables of label pairs"
"""Of the stage, and of its measurement."""


def pair_stage(facts: Facts, share: float, level_groups: int, moment_noise: float) -> list[Stage]:
    """The event, at a part of the table's squared budget; none where no table's cells add up to noise that matters.

    Args:
        facts: public; of them the number of rows, and how many levels columns have.
        share: of the squared budget.
        level_groups: most levels of a column that keep an indicator of their own.
        moment_noise: noise multiplier of the second moments.
    """
    if not share or facts.described.weight is not None:
        return []
    levels = sorted(
        min(kind.n_levels, level_groups)
        for name, kind in facts.schema.of_kind(TabularKind).items()
        # a column that is not known yet has one level, and may turn out to be no labels
        if not kind.is_numeric and kind.n_levels > 1 and name != facts.class_column
    )
    products = (first * second for first, second in combinations(levels, 2))
    cells = max((cells for cells in products if cells <= LABEL_PAIRS.most_cells), default=0)
    entry = entry_noise(moment_noise, TableFacts.of(facts, level_groups), counted_rows(facts))
    if cells < LABEL_PAIRS.least_cells or cells * entry < LABEL_PAIRS.least_noise:
        return []
    return [
        Stage(
            name=NAME,
            noise_multiplier=multiplier_for_share(share),
            replace_distance=float(np.sqrt(2)),
            measures="how many rows have each two labels, of a few pairs of columns",
        )
    ]


def pair_forecast(plan: Plan, facts: Facts) -> dict[str, str]:
    """Say what the noise of the stage means at `n_public`, from public facts alone; nothing without it."""
    if not is_planned(plan):
        return {}
    error = plan[NAME].noise_multiplier * facts.unit_rows / facts.rows
    return {NAME: f"standard error of a share of one table ±{error:.2g}, of t tables √t times as much"}


def is_planned(plan: Plan) -> bool:
    """Whether the stage is one of a plan's."""
    return any(stage.name == NAME for stage in plan.stages)


@dataclass(frozen=True, slots=True)
class LabelPair:
    """Two columns of labels, as the moments say how they go together.

    Attributes:
        columns: their places.
        counts: of rows with each two groups of levels, shape (r₁, r₂).
        stds: standard errors of these, shape (r₁, r₂): at most what they are.
    """

    columns: tuple[int, int]
    counts: np.ndarray
    stds: np.ndarray

    def gains(self, std: float, most: int) -> np.ndarray:
        """By how many rows a table lessens the error of all cells, if 1, 2 … `most` are counted, shape (most,).

        Args:
            std: noise of a count where one table is counted.
            most: of tables.
        """
        noise = std * np.sqrt(np.arange(1, most + 1))[:, None]
        left = self.stds.ravel() * noise / np.maximum(np.hypot(self.stds.ravel(), noise), 1e-300)
        return np.sqrt(2 / np.pi) * (self.stds.ravel() - left).sum(axis=1)  # of normal laws


def with_label_pairs(fit: Fit, first: FirstRelease, moments: CrossMoments) -> tuple[CrossMoments, tuple[str, Noisy]]:
    """Count the tables of a few pairs; return the moments with what they say, and the measurement.

    Statistic: t tables, to each of which a record adds one 1: `QueryCounts`. Which they are is a function of released
    values. One `Gaussian` event.

    Args:
        fit: of which the two stages before are charged.
        first: the first release.
        moments: by both stages.
    """
    columns, total = first.columns, float(first.class_counts.sum())
    std = 0.0 if fit.noise.silent else fit.plan[NAME].noise_multiplier * fit.facts.unit_rows
    pairs = [label_pair(*places, columns, moments, total) for places in chosen_pairs(columns, moments, total, std)]
    axes = {j: Cells.of(first.layout.features[j], columns[j].drawn) for pair in pairs for j in pair.columns}
    query = MarginalQuery(tuple((axes[i], axes[j]) for i, j in (pair.columns for pair in pairs)))
    noisy = fit.measure(NAME, QueryCounts(query, NAME))
    counted = zip(pairs, query.split(noisy.value), strict=True)
    laws = {
        pair.columns: law_of(pair, table, noisy.noise_std, *(columns[j].pooled() for j in pair.columns))
        for pair, table in counted
    }
    centred = first.low_rank or first.prior is not None
    return with_laws(moments, columns, laws, noisy.noise_std / total, centred=centred), (NAME, noisy)


def chosen_pairs(
    columns: Sequence[ColumnShares], moments: CrossMoments, total: float, std: float
) -> list[tuple[int, int]]:
    """Return the pairs of columns whose tables lessen the error of all pairs most together, at least one.

    Args:
        columns: shares and features of each; at least two are of labels.
        moments: of all features.
        total: number of records, estimated.
        std: noise of a count where one table is counted.
    """
    labels = [j for j, column in enumerate(columns) if not column.ordered]
    pairs = [(i, j) for i, j in combinations(labels, 2) if _cells(columns, i, j) <= LABEL_PAIRS.most_cells]
    most = min(LABEL_PAIRS.most, len(pairs))
    gains = np.array([label_pair(*pair, columns, moments, total).gains(std, most) for pair in pairs])
    best = -np.sort(-gains, axis=0)
    number = 1 + int(np.argmax([best[: k + 1, k].sum() for k in range(most)]))
    return [pairs[place] for place in np.argsort(-gains[:, number - 1], kind="stable")[:number]]


def _cells(columns: Sequence[ColumnShares], i: int, j: int) -> int:
    return len(columns[i].features.values) * len(columns[j].features.values)


def label_pair(i: int, j: int, columns: Sequence[ColumnShares], moments: CrossMoments, total: float) -> LabelPair:
    """Return what moments say of two columns of labels. Arguments as of `chosen_pairs`."""
    ends = np.cumsum([0, *(column.features.size for column in columns)])
    here = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
    values = columns[i].features.values, columns[j].features.values
    shares = columns[i].pooled(), columns[j].pooled()
    spreads = np.maximum(moments.spreads[here], PAIRS.least_variance * moments.variances[here])
    counts = total * lawful_table(moments.means[here], shares, values)
    stds = total * np.outer(*shares) * np.sqrt(np.maximum(values[0] ** 2 @ spreads @ (values[1] ** 2).T, 0.0))
    return LabelPair((i, j), counts, np.minimum(stds, counts))


def law_of(pair: LabelPair, table: np.ndarray, noise_std: float, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return P(a, b), of sum 1, from noisy counts and from what the moments say of them, shape (r₁, r₂).

    Each count is the best linear prediction from both, where the moments' errors are as their standard errors say but
    for a factor, which differences show; then counts are projected onto what counts can be, and brought to the columns'
    own shares. Without noise they are what was counted, but for these shares.

    Args:
        pair: by the moments.
        table: noisy counts, shape (r₁, r₂).
        noise_std: of each.
        first: shares of the groups of levels, shape (r₁,).
        second: the same of the other column, shape (r₂,).
    """
    if noise_std:
        difference, variances = table - pair.counts, pair.stds**2
        variances = np.maximum(variances, LABEL_PAIRS.least_variance * variances.mean())
        variances = variances * _factor(difference, variances, noise_std)
        table = pair.counts + difference * variances / (variances + noise_std**2)
    total, alone = float(pair.counts.sum()), np.outer(first, second)
    counts = project_to_simplex(table.ravel(), total).reshape(table.shape)
    return raked(np.maximum(counts, LABEL_PAIRS.least_share * total * alone), first, second)


def _factor(difference: np.ndarray, variances: np.ndarray, noise_std: float) -> float:
    """Return by how much squared differences, less their noise, are beside what is expected: near 1 if noise hides it.

    The factor is N(1, 1) before anything is counted; differences say it with the error of a sum of squared noise.
    """
    expected, noise = float(variances.sum()), noise_std**2
    error = np.sqrt(2 * difference.size) * noise / max(expected, 1e-300)
    factor = (float((difference**2).sum()) - difference.size * noise) / max(expected, 1e-300)
    return max((factor + error**2) / (1 + error**2), LABEL_PAIRS.least_factor)


def with_laws(
    moments: CrossMoments,
    columns: Sequence[ColumnShares],
    laws: Mapping[tuple[int, int], np.ndarray],
    noise_std: float,
    *,
    centred: bool,
) -> CrossMoments:
    """Return the moments with those of laws of pairs of columns, which a fit need not allow for noise in.

    Args:
        moments: of all features.
        columns: shares and features of each.
        laws: P(a, b) of the groups of levels, by the places of two columns.
        noise_std: of a cell's counted share.
        centred: whether moments of classes are deviations about the pooled ones, as far as these are known.
    """
    ends = np.cumsum([0, *(column.features.size for column in columns)])
    variances, means, spreads, by_class = (
        array.copy() for array in (moments.variances, moments.means, moments.spreads, moments.by_class)
    )
    for (i, j), law in laws.items():
        here, values = (slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])), [c.features.values for c in columns]
        known = values[i].T @ law @ values[j]
        noise = noise_std**2 * np.outer((values[i] ** 2).sum(axis=0), (values[j] ** 2).sum(axis=0))
        if centred:
            by_class[:, here[0], here[1]] += known - means[here]
            by_class[:, here[1], here[0]] += (known - means[here]).T
        for array, block in (variances, noise), (means, known), (spreads, PAIRS.least_variance * noise):
            array[here], array[here[::-1]] = block, block.T
    return replace(moments, variances=variances, means=means, spreads=spreads, by_class=by_class)
