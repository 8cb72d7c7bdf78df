"""A third release of tables: whole tables of the pairs of labels that the noise of moments leaves least known.

Moments measure every pair of columns alike. Where a table of two labels has many cells, and these go together, its error
is the noise of all cells; where they hardly do, the moments are noise, and dropped. So a few tables, counted with the
budget of a tenth, say more than that tenth of all moments:

    tables of few pairs of labels   p   → the law of each, from that of the moments; moments of the features of these

Which pairs: those whose error a table lessens most, by what the two releases before say. Numbers are left to their
polynomials: runs of a number's cells would be most of such a table's noise, and lose where a value lies in its run.

Proof: docs/proofs/class_cell_counts.md. Everything after the noise is free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from sfumato.methods.tables.layout import TableLayout
from sfumato.methods.tables.pair_laws import lawful_table, raked
from sfumato.methods.tables.settings import TableFacts, counted_rows, entry_noise
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share

NAME = "tables of label pairs"
"""Of the stage, and of its measurement."""

_MEAN_ERROR = float(np.sqrt(2 / np.pi))  # of a normal law, in its deviation


def pair_stage(facts: Facts, share: float, level_groups: int, moment_noise: float) -> list[Stage]:
    """The event, at a part of the table's squared budget; none where no table's cells add up to noise that matters.

    Args:
        facts: public; of them the number of rows, and how many levels columns have.
        share: of the squared budget.
        level_groups: most levels of a column that keep an indicator of their own.
        moment_noise: noise multiplier of the second moments.
    """
    if not share or facts.n_public is None or facts.described.weight is not None:
        return []
    levels = sorted(
        min(kind.n_levels, level_groups)
        for name, kind in facts.schema.of_kind(TabularKind).items()
        if not kind.is_numeric and name != facts.class_column
    )
    entry = entry_noise(moment_noise, TableFacts.of(facts, level_groups), counted_rows(facts))
    cells = math.prod(levels[-2:]) if len(levels) > 1 else 0
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
    of_stage = [stage for stage in plan.stages if stage.name == NAME]
    return {
        NAME: f"standard error of a share of one table ±{stage.noise_multiplier * facts.unit_rows / facts.rows:.2g}, "
        "of t tables √t times as much"
        for stage in of_stage
    }


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

    def gain(self, std: float) -> float:
        """By how many rows a table with noise of this deviation lessens the error of all cells."""
        left = self.stds * std / np.maximum(np.hypot(self.stds, std), 1e-300)
        return float(_MEAN_ERROR * (self.stds - left).sum())


def with_label_pairs(
    fit: Fit, layout: TableLayout, columns: Sequence[ColumnShares], moments: CrossMoments, total: float
) -> tuple[CrossMoments, tuple[str, Noisy]]:
    """Count the tables of a few pairs; return the moments with what they say, and the measurement.

    Statistic: t tables, to each of which a record adds one 1: `QueryCounts`. Which they are is a function of released
    values. One `Gaussian` event.

    Args:
        fit: of which the two stages before are charged.
        layout: the cells of the columns.
        columns: shares and features of each.
        moments: by both stages.
        total: number of records, estimated.
    """
    std = 0.0 if fit.noise.silent else fit.plan[NAME].noise_multiplier * fit.facts.unit_rows
    pairs = chosen_pairs(list(_label_pairs(columns, moments, total)), lambda tables: std * float(np.sqrt(tables)))
    axes = {j: Cells.of(layout.features[j], columns[j].drawn) for pair in pairs for j in pair.columns}
    query = MarginalQuery(tuple((axes[i], axes[j]) for i, j in (pair.columns for pair in pairs)))
    noisy = fit.measure(NAME, QueryCounts(query, NAME))
    counted = zip(pairs, query.split(noisy.value), strict=True)
    laws = {
        pair.columns: law_of(pair, table, noisy.noise_std, *(columns[j].pooled() for j in pair.columns))
        for pair, table in counted
    }
    return with_laws(moments, columns, laws, noisy.noise_std / total), (NAME, noisy)


def chosen_pairs(pairs: Sequence[LabelPair], std_of: Callable[[int], float]) -> list[LabelPair]:
    """Return the pairs whose tables lessen the error of all pairs most together, at least one.

    Args:
        pairs: at least one.
        std_of: noise of a count where so many tables are counted.
    """
    best: tuple[float, list[LabelPair]] = (-1.0, [])
    for number in range(1, min(LABEL_PAIRS.most, len(pairs)) + 1):
        gains = np.array([pair.gain(std_of(number)) for pair in pairs])
        order = np.argsort(-gains, kind="stable")[:number]
        if (together := float(gains[order].sum())) > best[0]:
            best = together, [pairs[k] for k in order]
    return best[1]


def _label_pairs(columns: Sequence[ColumnShares], moments: CrossMoments, total: float) -> Iterator[LabelPair]:
    ends = np.cumsum([0, *(column.features.size for column in columns)])
    spreads = np.maximum(moments.spreads, PAIRS.least_variance * moments.variances)
    for i, j in combinations([j for j, column in enumerate(columns) if not column.ordered], 2):
        first, second = columns[i], columns[j]
        rows, others = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        values, shares = (first.features.values, second.features.values), (first.pooled(), second.pooled())
        counts = total * lawful_table(moments.means[rows, others], shares, values)
        variances = values[0] ** 2 @ spreads[rows, others] @ (values[1] ** 2).T
        stds = total * np.outer(*shares) * np.sqrt(np.maximum(variances, 0.0))
        yield LabelPair((i, j), counts, np.minimum(stds, counts))


def law_of(
    pair: LabelPair, table: np.ndarray, noise_std: float, first: np.ndarray, second: np.ndarray
) -> np.ndarray:
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
    difference, variances = table - pair.counts, pair.stds**2
    excess = float((difference**2).sum()) - table.size * noise_std**2
    variances = variances * max(excess, 0.0) / max(float(variances.sum()), 1e-300)
    weights = variances / np.maximum(variances + noise_std**2, 1e-300)
    counts = project_to_simplex((pair.counts + weights * difference).ravel(), float(pair.counts.sum()))
    return raked(counts.reshape(table.shape), first, second)


def with_laws(
    moments: CrossMoments, columns: Sequence[ColumnShares], laws: Mapping[tuple[int, int], np.ndarray], noise_std: float
) -> CrossMoments:
    """Return the moments with those of laws of pairs of columns, which a fit need not allow for noise in.

    Args:
        moments: of all features.
        columns: shares and features of each.
        laws: P(a, b) of the groups of levels, by the places of two columns.
        noise_std: of a cell's counted share.
    """
    ends = np.cumsum([0, *(column.features.size for column in columns)])
    noisy, variances, means, spreads = (
        array.copy() for array in (moments.noisy, moments.variances, moments.means, moments.spreads)
    )
    for (i, j), law in laws.items():
        here, values = (slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])), [c.features.values for c in columns]
        known = values[i].T @ law @ values[j]
        noise = noise_std**2 * np.outer((values[i] ** 2).sum(axis=0), (values[j] ** 2).sum(axis=0))
        arrays = (noisy, known), (variances, noise), (means, known), (spreads, PAIRS.least_variance * noise)
        for array, block in arrays:
            array[here], array[here[::-1]] = block, block.T
    return replace(moments, noisy=noisy, variances=variances, means=means, spreads=spreads)
