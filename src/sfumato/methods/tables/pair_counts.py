"""The law of two columns from a noisy count of each two runs, and from what noisy moments say of these counts.

A count is either near what the moments say, with an error of some size, or some multiple of what columns that do not go
together have: 0 in most cells and many times it in a few, where one column is nearly a function of the other. How
likely each size and multiple is, all counts of a table say together (nonparametric maximum likelihood: Jiang and Zhang
2009, Ann. Statist. 37(4)). Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.maths.constants import PAIR_TABLES, PAIRS
from sfumato.maths.gaussian import project_to_simplex
from sfumato.maths.shrinkage import posteriors
from sfumato.methods.tables.cross_moments import CrossMoments
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.pair_laws import lawful_table, raked


@dataclass(frozen=True, slots=True)
class MomentTable:
    """Two columns, as moments say how they go together.

    Attributes:
        columns: their places.
        counts: of rows with each two runs, shape (r₁, r₂).
        stds: standard errors of these, shape (r₁, r₂).
    """

    columns: tuple[int, int]
    counts: np.ndarray
    stds: np.ndarray


def pair_counts(i: int, j: int, columns: Sequence[ColumnShares], moments: CrossMoments, total: float) -> MomentTable:
    """Return what moments say of two columns. What noise leaves open of a count is at most that count.

    Args:
        i: place of a column.
        j: place of another one.
        columns: shares and features of each.
        moments: of all features.
        total: number of records, estimated.
    """
    ends = np.cumsum([0, *(column.features.size for column in columns)])
    here = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
    values = columns[i].features.values, columns[j].features.values
    shares = columns[i].pooled(), columns[j].pooled()
    spreads = np.maximum(moments.spreads[here], PAIRS.least_variance * moments.variances[here])
    counts = total * lawful_table(moments.means[here], shares, values)
    stds = total * np.outer(*shares) * np.sqrt(np.maximum(values[0] ** 2 @ spreads @ (values[1] ** 2).T, 0.0))
    stds = np.minimum(stds, counts)
    if columns[j].ordered:
        stds = np.hypot(stds, total * _beyond_features(moments.means[here], columns[i], columns[j]))
    elif columns[i].ordered:
        stds = np.hypot(stds, total * _beyond_features(moments.means[here].T, columns[j], columns[i]).T)
    return MomentTable((i, j), counts, stds)


def _beyond_features(means: np.ndarray, label: ColumnShares, number: ColumnShares) -> np.ndarray:
    """Return how far shares are from what features of a number can tell of them, shape (r₁, r₂).

    It is taken from a law that has the label's means of the score, and is normal about them.
    """
    values, shares = (label.features.values, number.features.values), (label.pooled(), number.pooled())
    place = number.score()
    if place is None:
        return np.zeros((shares[0].size, shares[1].size))
    scores, centres = values[1][:, place], values[0] @ means[:, place]
    left = float(np.clip(1 - shares[0] @ centres**2, PAIR_TABLES.least_left, 1.0))
    logs = scores**2 / 2 - (scores - centres[:, None]) ** 2 / (2 * left)
    law = raked(np.exp(logs - logs.max()) * np.outer(*shares), *shares)
    return np.abs(law - lawful_table(values[0].T @ law @ values[1], shares, values))


def law_of(
    pair: MomentTable, table: np.ndarray, noise_std: float, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return P(a, b), of sum 1, from noisy counts and from what moments say of them, and variances, shapes (r₁, r₂).

    Counts are their posterior means, projected onto what counts can be, and brought to the columns' own shares. Without
    noise they are what was counted, but for these shares.

    Args:
        pair: by the moments.
        table: noisy counts, shape (r₁, r₂).
        noise_std: of each.
        first: shares of the runs, shape (r₁,).
        second: the same of the other column, shape (r₂,).
    """
    total, alone, variances = float(pair.counts.sum()), np.outer(first, second), np.zeros(table.shape)
    if noise_std:
        table, variances = _posterior(pair, table, noise_std, total * alone)
    counts = project_to_simplex(table.ravel(), total).reshape(table.shape)
    return raked(np.maximum(counts, PAIR_TABLES.least_share * total * alone), first, second), variances / total**2


def _posterior(
    pair: MomentTable, table: np.ndarray, noise_std: float, alone: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means and variances of counts, where columns that do not go together have `alone`."""
    noisy, near, noise = table.reshape(-1, 1), pair.counts.reshape(-1, 1), noise_std**2
    errors = pair.stds.reshape(-1, 1) ** 2
    errors = np.maximum(errors, PAIR_TABLES.least_variance * errors.mean()) * np.array(PAIR_TABLES.factors)
    least, most = PAIR_TABLES.multiples
    multiples = np.concatenate([[0.0], np.geomspace(least, most, PAIR_TABLES.places)])
    multiples = np.maximum(alone.reshape(-1, 1), PAIR_TABLES.least_share) * multiples
    spread = errors + noise
    logs = np.concatenate(
        [
            -((noisy - multiples) ** 2) / (2 * noise) - np.log(noise) / 2,
            -((noisy - near) ** 2) / (2 * spread) - np.log(spread) / 2,
        ],
        axis=1,
    )
    weights = posteriors(np.exp(logs - logs.max(axis=1, keepdims=True)), PAIR_TABLES.rounds)
    means = np.concatenate([multiples, np.maximum(near + (noisy - near) * errors / spread, 0.0)], axis=1)
    within = np.concatenate([np.zeros_like(multiples), errors * noise / spread], axis=1)
    mean = (weights * means).sum(axis=1)
    variance = np.maximum((weights * (within + means**2)).sum(axis=1) - mean**2, 0.0)
    return mean.reshape(table.shape), variance.reshape(table.shape)
