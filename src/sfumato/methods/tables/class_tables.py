"""Every column's law in every class, from noisy counts of runs by class and from noisy means of features.

First a class shifts and stretches a number's normal scores, whose location and scale all columns tell together; labels
start at their pooled law. What that does not explain is added as far as it stands above its noise. Free: uses released
values only.

Class-conditional tables of ordered cells, when noise hides all but location and scale.

A column's normal score, taken over all classes, is standard normal by construction. Within a class it is modelled as
N(m, s²), so that a class's table is known from two numbers: the shape comes from the pooled table, which is known best.
A table is the posterior mean over a grid of m and s; the prior is fitted to all columns (empirical Bayes, by
expectation-maximisation), so that the more columns there are, the better each is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from sfumato.maths.constants import CLASSES
from sfumato.maths.shrinkage import posteriors
from sfumato.methods.tables.features import ColumnShares


def normal_cuts(pooled: np.ndarray) -> np.ndarray:
    """Return the normal quantiles at the edges of cells, from −∞ to ∞, shape (cells + 1,)."""
    edges = np.concatenate([[0.0], np.cumsum(pooled)])
    return special.ndtri(edges / edges[-1])


def normal_table(mean: np.ndarray | float, scale: np.ndarray | float, cuts: np.ndarray) -> np.ndarray:
    """Return the mass of N(mean, scale²) between neighbouring cuts, shape (..., cells)."""
    places = (cuts - np.asarray(mean)[..., None]) / np.asarray(scale)[..., None]
    # ndtr is not monotone to the last bit
    return np.maximum(np.diff(special.ndtr(places), axis=-1), 0.0)


@dataclass(frozen=True, slots=True)
class Locations:
    """Where one class's scores lie.

    Attributes:
        posterior: of every point of the grid, shape (columns, grid).
    """

    posterior: np.ndarray

    @classmethod
    def of(cls, evidence: np.ndarray) -> Locations:
        """Return the posterior under the prior that suits all columns best.

        Args:
            evidence: log-likelihood of every point of the grid, shape (columns, grid).
        """
        evidence = evidence - evidence.max(axis=1, keepdims=True)
        return cls(posteriors(np.exp(evidence), CLASSES.prior_rounds, flat=CLASSES.flat_share))

    @property
    def means(self) -> np.ndarray:
        """Posterior means of the location, shape (columns,)."""
        return self.posterior @ _locations()[0]

    @property
    def scales(self) -> np.ndarray:
        """Posterior means of the scale, shape (columns,)."""
        return self.posterior @ _locations()[1]

    def table(self, column: int, cuts: np.ndarray) -> np.ndarray:
        """Return the posterior mean of a column's mass between cuts, shape (cells,)."""
        return self.posterior[column] @ grid_tables(cuts)


def _locations() -> tuple[np.ndarray, np.ndarray]:
    """Return the locations and scales of all points of the grid, densest about 0, where a large class lies."""
    farthest, dense, number = CLASSES.locations
    means = farthest * np.sinh(dense * np.linspace(-1.0, 1.0, number)) / np.sinh(dense)
    means, widths = np.meshgrid(means, np.geomspace(*CLASSES.scales), indexing="ij")
    return means.ravel(), widths.ravel()


def grid_tables(cuts: np.ndarray) -> np.ndarray:
    """Return the mass between cuts at every point of the grid of locations and scales, shape (grid, cells)."""
    return normal_table(*_locations(), cuts)


def locate(expected: np.ndarray, counts: np.ndarray, noise_std: float) -> np.ndarray:
    """Return the log-likelihood of noisy counts, shape (c,), where these are expected, shape (grid, c)."""
    inner = expected @ counts - np.einsum("ij,ij->i", expected, expected) / 2
    return inner / max(noise_std, CLASSES.least_noise) ** 2


@dataclass(frozen=True, slots=True)
class ClassEvidence(ColumnShares):
    """One column, and its features by class, as released.

    Attributes:
        means: of the features, shape (k, q).
        variances: of their noise, shape (k, q).
    """

    means: np.ndarray
    variances: np.ndarray


def class_tables(columns: Sequence[ClassEvidence], class_counts: np.ndarray) -> list[np.ndarray]:
    """Return P(run | class) of every column, shape (k, r); their mean over classes is the pooled law."""
    bases = [np.tile(column.pooled(), (class_counts.size, 1)) for column in columns]
    numeric = [j for j, column in enumerate(columns) if column.ordered > 1]
    for k, count in enumerate(class_counts):
        locations = Locations.of(np.array([_evidence(columns[j], k, count) for j in numeric])) if numeric else None
        for place, j in enumerate(numeric):
            pooled = columns[j].pooled()[: columns[j].ordered]
            moved = locations.table(place, normal_cuts(_positive(pooled)))  # type: ignore[union-attr]
            bases[j][k, : columns[j].ordered] = pooled.sum() * moved
    return [_column_table(column, base, class_counts) for column, base in zip(columns, bases, strict=True)]


def _positive(shares: np.ndarray) -> np.ndarray:
    return shares if shares.sum() > 0 else np.ones_like(shares)


def _evidence(column: ClassEvidence, k: int, count: float) -> np.ndarray:
    """Return the log-likelihood of every location and scale of a class's scores, shape (grid,)."""
    pooled = column.pooled()[: column.ordered]
    tables = grid_tables(normal_cuts(_positive(pooled)))
    expected = pooled.sum() * tables @ column.features.values[: column.ordered]
    if column.ordered < len(column.features.values):
        expected += column.pooled()[column.ordered :] @ column.features.values[column.ordered :]
    errors = (column.means[k] - expected) ** 2 / np.maximum(column.variances[k], CLASSES.least_mean_variance)
    by_count = np.zeros((column.ordered, column.counts.shape[1]))
    inside = column.drawn < column.ordered
    np.add.at(by_count, (column.drawn[inside], column.counted[inside]), column.shares[inside])
    within = by_count / np.maximum(pooled, 1e-300)[:, None]
    return locate(tables @ within * pooled.sum() * count, column.counts[k], column.counts_std) - errors.sum(axis=1) / 2


def _column_table(column: ClassEvidence, base: np.ndarray, class_counts: np.ndarray) -> np.ndarray:
    """Return the posterior mean law in every class, raked to the pooled one."""
    width = int(column.counted.max()) + 1
    pieces, place = np.unique(column.drawn * width + column.counted, return_inverse=True)
    of_run, of_count = pieces // width, pieces % width
    pooled = column.pooled()
    within = np.bincount(place, column.shares, pieces.size) / np.maximum(pooled[of_run], 1e-300)
    features = column.features.values[of_run]
    counting = (np.arange(column.counts.shape[1])[:, None] == of_count).astype(np.float64)
    design = np.concatenate([counting, features.T])
    observed = np.concatenate([column.counts / class_counts[:, None], column.means], axis=1)
    counts_variance = np.broadcast_to(((column.counts_std / class_counts) ** 2)[:, None], column.counts.shape)
    noise = np.maximum(np.concatenate([counts_variance, column.variances], axis=1), 1e-12)
    parts = [_Posterior.of(row[of_run] * within, features, design) for row in base]
    known = list(zip(parts, observed, noise, strict=True))
    scale = max(CLASSES.deviations, key=lambda s: sum(part.evidence(s, y, v) for part, y, v in known))
    laws = [part.mean(scale, y, v) for part, y, v in known]
    by_run = np.stack([np.bincount(of_run, row, len(pooled)) for row in laws])
    return _raked(by_run, pooled, class_counts / class_counts.sum())


@dataclass(frozen=True, slots=True)
class _Posterior:
    """A class's law about its base: deviations N(0, scale · (features' part + a rough one))."""

    base: np.ndarray
    design: np.ndarray
    cross: np.ndarray
    shape: np.ndarray

    @classmethod
    def of(cls, base: np.ndarray, features: np.ndarray, design: np.ndarray) -> _Posterior:
        directions = base[:, None] * features
        weights = np.maximum(CLASSES.decay ** np.arange(features.shape[1]), CLASSES.least_decay)
        prior_cross = (CLASSES.rough * base[:, None]) * design.T + (directions * weights) @ (directions.T @ design.T)
        return cls(base, design, prior_cross, design @ prior_cross)

    def _solved(self, scale: float, y: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        error = y - self.design @ self.base
        covariance = scale * self.shape
        # without noise the prior alone may be singular; a fit whose budget is spent must not end there
        covariance[np.arange(y.size), np.arange(y.size)] += variance + CLASSES.jitter * np.trace(covariance) / y.size
        factor = linalg.cho_factor(covariance, check_finite=False)
        return linalg.cho_solve(factor, error, check_finite=False), error, float(np.log(np.diagonal(factor[0])).sum())

    def evidence(self, scale: float, y: np.ndarray, variance: np.ndarray) -> float:
        """Return the log-likelihood of a scale."""
        solved, error, log_root = self._solved(scale, y, variance)
        return -0.5 * float(error @ solved) - log_root

    def mean(self, scale: float, y: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Return the posterior mean, kept positive."""
        law = self.base + scale * (self.cross @ self._solved(scale, y, variance)[0])
        return np.maximum(law, CLASSES.least_part * self.base)


def _raked(tables: np.ndarray, pooled: np.ndarray, class_shares: np.ndarray) -> np.ndarray:
    """Return tables whose rows sum to 1 and whose mean over classes is the pooled law."""
    pooled = pooled / pooled.sum()
    for _ in range(CLASSES.raking_rounds):
        tables = tables / np.maximum(tables.sum(axis=1, keepdims=True), 1e-300)
        mean = class_shares @ tables
        tables = tables * np.where(mean > 0, pooled / np.maximum(mean, 1e-300), 0.0)
    return tables / np.maximum(tables.sum(axis=1, keepdims=True), 1e-300)
