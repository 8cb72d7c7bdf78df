"""A third release of tables: whole tables of the pairs of columns that the noise of moments leaves least known.

Moments measure every pair of columns alike. Where a table of two labels has many cells, and these go together, its
error is the noise of all cells; where they hardly do, the moments are noise, and dropped. And where a number is nearly
a function of a label, as a distance is of an airport, polynomials of the number cannot say which. So a few tables say
more than as much of the budget would for all moments:

    tables of few pairs   p   → the law of each, from that of the moments; moments of the features of these

Which pairs: those whose error a table lessens most, by what the two releases before say; one of the two is of labels.
Pairs of numbers are left to their polynomials: runs of both would be most of such a table's noise.

A number in a table gets features of its runs, of which nothing is known beside other columns.

Proof: docs/proofs/class_cell_counts.md. Everything after the noise is free. Choice: decisions 91 and 92.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from sfumato.columns.kinds import TabularKind
from sfumato.fitting.driver import Fit
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import PAIR_TABLES, PAIRS
from sfumato.measurements.cells import Cells
from sfumato.measurements.queries import MarginalQuery
from sfumato.mechanisms.statistics import QueryCounts
from sfumato.methods.tables.cross_moments import CrossMoments
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.moment_entries import feature_groups
from sfumato.methods.tables.pair_counts import MomentTable, law_of, pair_counts
from sfumato.methods.tables.second_stage import FirstRelease, SecondRelease
from sfumato.methods.tables.settings import TableFacts, counted_rows, entry_noise
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share

NAME = "tables of pairs"
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
    kinds = [kind for name, kind in facts.schema.of_kind(TabularKind).items() if name != facts.class_column]
    # a column that is not known yet has one level, and may turn out to be no labels
    levels = sorted(min(kind.width, level_groups) for kind in kinds if not kind.is_numeric and kind.width > 1)
    products = [first * second for first, second in combinations(levels, 2)]
    if any(kind.is_numeric for kind in kinds):
        products += [n * PAIR_TABLES.runs for n in levels if n >= PAIR_TABLES.least_levels]
    cells = max((cells for cells in products if cells <= PAIR_TABLES.most_cells), default=0)
    entry = entry_noise(moment_noise, TableFacts.of(facts, level_groups), counted_rows(facts))
    if cells < PAIR_TABLES.least_cells or cells * entry < PAIR_TABLES.least_noise:
        return []
    return [
        Stage(
            name=NAME,
            noise_multiplier=multiplier_for_share(share),
            replace_distance=float(np.sqrt(2)),
            measures="how many rows have each two labels, or a label and a number, of a few pairs of columns",
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


def gains_of(pair: MomentTable, std: float, most: int) -> np.ndarray:
    """Return by how many rows a table lessens the error of all counts, if 1, 2 … `most` are counted, shape (most,).

    Args:
        pair: by the moments.
        std: noise of a count where one table is counted.
        most: of tables.
    """
    noise, stds = std * np.sqrt(np.arange(1, most + 1))[:, None], pair.stds.ravel()
    left = stds * noise / np.maximum(np.hypot(stds, noise), 1e-300)
    return np.sqrt(2 / np.pi) * (stds - left).sum(axis=1)  # of normal laws


def with_pair_tables(
    fit: Fit, first: FirstRelease, released: SecondRelease
) -> tuple[Sequence[ColumnShares], SecondRelease]:
    """Count the tables of a few pairs; return the columns and the release with what they say.

    Statistic: t tables, to each of which a record adds one 1: `QueryCounts`. Which they are is a function of released
    values. Norm √t; replace-one √(2t); a unit of m records m times both. One `Gaussian` event.

    Args:
        fit: of which the two stages before are charged.
        first: the first release.
        released: the second one.
    """
    columns, total, moments = first.columns, float(first.class_counts.sum()), released.moments
    std = 0.0 if fit.noise.silent else fit.plan[NAME].noise_multiplier * fit.facts.unit_rows
    pairs = chosen_pairs(columns, moments, total, std)
    cells = {
        j: Cells.of(first.layout.features[j], columns[j].drawn) for j in {j for pair in pairs for j in pair.columns}
    }
    tables = tuple((cells[i], cells[j]) for i, j in (pair.columns for pair in pairs))
    # a number that discovery had yet to read may be no column: then no pair is left, and one column is counted alone
    query = MarginalQuery(tables or ((Cells.of(first.layout.features[0], columns[0].drawn),),))
    noisy = fit.measure(NAME, QueryCounts(query, NAME))
    laws = {
        pair.columns: law_of(pair, table, noisy.noise_std, *(columns[j].pooled() for j in pair.columns))
        for pair, table in zip(pairs, query.split(noisy.value), strict=False)
    }
    finer, moments = with_runs(columns, moments, {j for pair in laws for j in pair if columns[j].ordered})
    centred = first.low_rank or first.prior is not None
    moments = with_laws(moments, finer, laws, noisy.noise_std / total, total, centred=centred)
    return finer, SecondRelease((*released.measurements, (NAME, noisy)), moments)


def chosen_pairs(columns: Sequence[ColumnShares], moments: CrossMoments, total: float, std: float) -> list[MomentTable]:
    """Return the pairs of columns whose tables lessen the error of all pairs most together; one at least if there is.

    Args:
        columns: shares and features of each.
        moments: of all features.
        total: number of records, estimated.
        std: noise of a count where one table is counted.
    """
    pairs = [pair_counts(i, j, columns, moments, total) for i, j in _candidates(columns, moments)]
    if not pairs:
        return []
    most = min(PAIR_TABLES.most, len(pairs))
    gains = np.array([gains_of(pair, std, most) for pair in pairs])
    best = -np.sort(-gains, axis=0)
    number = 1 + int(np.argmax([best[: k + 1, k].sum() for k in range(most)]))
    return [pairs[place] for place in np.argsort(-gains[:, number - 1], kind="stable")[:number]]


def _candidates(columns: Sequence[ColumnShares], moments: CrossMoments) -> list[tuple[int, int]]:
    """The pairs of columns of which one is of labels at least, and whose table is not too large.

    Of numbers of which one says the other, the one that a label says best stands for both beside that label.
    """
    sizes = [PAIR_TABLES.runs if column.ordered else len(column.features.values) for column in columns]
    starts = np.cumsum([0, *(column.features.size for column in columns)])
    scores = {j: int(starts[j]) + place for j, c in enumerate(columns) if (place := c.score()) is not None}

    def strength(label: int, number: int) -> float:
        here = slice(starts[label], starts[label + 1]), slice(starts[number], starts[number + 1])
        return float((moments.means[here] ** 2).sum())

    def second(i: int, j: int) -> bool:
        label, number = (i, j) if j in scores else (j, i)
        if number not in scores:
            return False
        tied = (k for k in scores if k != number and abs(moments.means[scores[k], scores[number]]) >= PAIRS.strong)
        return any(strength(label, k) > strength(label, number) for k in tied)

    return [
        (i, j)
        for i, j in combinations(range(len(columns)), 2)
        if not (columns[i].ordered and columns[j].ordered)
        and sizes[i] * sizes[j] <= PAIR_TABLES.most_cells
        and not second(i, j)
    ]


def with_runs(
    columns: Sequence[ColumnShares], moments: CrossMoments, places: Collection[int]
) -> tuple[list[ColumnShares], CrossMoments]:
    """Return the columns with features of all runs of some, and moments of which those of the new ones are not known.

    Args:
        columns: shares and features of each.
        moments: of all features.
        places: of the columns.
    """
    finer = [
        replace(column, features=column.features.with_runs(column.pooled())) if j in places else column
        for j, column in enumerate(columns)
    ]
    starts = np.cumsum([0, *(column.features.size for column in finer)])
    places_before = np.concatenate(
        [start + np.arange(c.features.size) for start, c in zip(starts, columns, strict=False)]
    )
    d = int(starts[-1])

    def wider(array: np.ndarray, unknown: float) -> np.ndarray:
        whole = np.full((*array.shape[:-2], d, d), unknown)
        whole[..., places_before[:, None], places_before] = array
        return whole

    def longer(array: np.ndarray, unknown: float) -> np.ndarray:
        whole = np.full((*array.shape[:-1], d), unknown)
        whole[..., places_before] = array
        return whole

    kinds = np.concatenate([column.features.kinds for column in finer])
    owner = np.repeat(np.arange(len(finer)), [column.features.size for column in finer])
    means, variances = longer(moments.classes.means, 0.0), longer(moments.classes.variances, PAIRS.unmeasured)
    return finer, replace(
        moments,
        offsets=longer(moments.offsets, 0.0),
        noisy=wider(moments.noisy, 0.0),
        variances=wider(moments.variances, np.inf),
        means=wider(moments.means, 0.0),
        spreads=wider(moments.spreads, np.inf),
        classes=replace(moments.classes, means=means, variances=variances),
        by_class=wider(moments.by_class, 0.0),
        class_variances=wider(moments.class_variances, PAIRS.unknown),
        groups=feature_groups(owner, kinds),
        kinds=kinds,
    )


def with_laws(
    moments: CrossMoments,
    columns: Sequence[ColumnShares],
    laws: Mapping[tuple[int, int], tuple[np.ndarray, np.ndarray]],
    noise_std: float,
    total: float,
    *,
    centred: bool,
) -> CrossMoments:
    """Return the moments with those of laws of pairs of columns, which a fit need hardly allow for noise in.

    Args:
        moments: of all features.
        columns: shares and features of each.
        laws: P(a, b) of the runs and its variances, by the places of two columns.
        noise_std: of a counted share.
        total: number of records, estimated.
        centred: whether moments of classes are deviations about the pooled ones, as far as these are known.
    """
    ends = np.cumsum([0, *(column.features.size for column in columns)])
    variances, means, spreads, by_class = (
        array.copy() for array in (moments.variances, moments.means, moments.spreads, moments.by_class)
    )
    for (i, j), (law, law_variances) in laws.items():
        here, values = (slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])), [c.features.values for c in columns]
        known = values[i].T @ law @ values[j]
        noise = noise_std**2 * np.outer((values[i] ** 2).sum(axis=0), (values[j] ** 2).sum(axis=0))
        left = PAIRS.least_variance * noise
        if columns[i].ordered or columns[j].ordered:
            # of next to no noise in most counts, and in a fit's rows what so many records would have
            open_part = PAIRS.least_variance * law_variances + PAIR_TABLES.sampled * law / total
            left = (values[i] ** 2).T @ open_part @ values[j] ** 2
        if centred:
            by_class[:, here[0], here[1]] += known - means[here]
            by_class[:, here[1], here[0]] += (known - means[here]).T
        for array, block in (variances, noise), (means, known), (spreads, left):
            array[here], array[here[::-1]] = block, block.T
    tables = {pair: law for pair, (law, _) in laws.items()}
    return replace(moments, variances=variances, means=means, spreads=spreads, by_class=by_class, laws=tables)
