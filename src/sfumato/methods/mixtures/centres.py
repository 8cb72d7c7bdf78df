"""Centres of clusters: the nearest of them, and where they start.

Pure functions of public facts and released values; nothing here reads a record or spends budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.errors import require_integer
from sfumato.maths.fourier import fixed_product
from sfumato.models.mixtures.covariances import distances_apart

_RESTARTS, _ROUNDS = 10, 25
_CELLS_PER_AXIS = {1: 256, 2: 64, 3: 16}
_FEWEST_PER_AXIS = 4
_ENOUGH = 0.8  # of the records in cells that stand out of the noise


def squared_distances(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return ‖x − c‖², shape (n, k)."""
    return distances_apart(points, centres, np.ones((len(centres), 1)))


def nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the index of the nearest centre of each point, the first of equals, shape (n,).

    A row's answer does not depend on the other rows, to the last bit: the rule is a step, and a rounding that changed
    with the neighbours of a record could move many records across it.
    """
    scores = fixed_product(points, centres.T) - 0.5 * np.einsum("ij,ij->i", centres, centres)
    return np.argmax(scores, axis=1)


def random_directions(n_clusters: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Return random vectors of norm 1, shape (k, q)."""
    directions = rng.standard_normal((n_clusters, dimension))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def random_centres(n_clusters: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Return centres drawn uniformly from the unit ball: a start that uses no record."""
    return random_directions(n_clusters, dimension, rng) * rng.random((n_clusters, 1)) ** (1 / dimension)


def into_ball(vectors: np.ndarray) -> np.ndarray:
    """Return vectors brought to norm at most 1."""
    return vectors / np.maximum(1.0, np.linalg.norm(vectors, axis=1, keepdims=True))


@dataclass(frozen=True)
class CentreGrid:
    """Cells of equal width over the cube [−1, 1]^q, for few dimensions.

    Attributes:
        dimension: q.
        per_axis: cells along each axis.
    """

    dimension: int
    per_axis: int

    def __post_init__(self) -> None:
        require_integer(at_least=1, dimension=self.dimension)
        require_integer(at_least=1, per_axis=self.per_axis)

    @classmethod
    def of(cls, dimension: int) -> CentreGrid | None:
        """Return the default grid, or None if there are too many dimensions for one."""
        per_axis = _CELLS_PER_AXIS.get(dimension)
        return None if per_axis is None else cls(dimension, per_axis)

    @property
    def n_cells(self) -> int:
        """Return how many cells there are."""
        return self.per_axis**self.dimension

    def cells(self, points: np.ndarray) -> np.ndarray:
        """Return the cell of each point, shape (n,)."""
        indices = np.clip(((points + 1) / 2 * self.per_axis).astype(np.intp), 0, self.per_axis - 1)
        return indices @ self.per_axis ** np.arange(self.dimension - 1, -1, -1)

    @cached_property
    def middles(self) -> np.ndarray:
        """Return the middles of the cells, shape (cells, q)."""
        axes = np.indices((self.per_axis,) * self.dimension).reshape(self.dimension, -1).T
        return (axes + 0.5) / self.per_axis * 2 - 1

    def centres(self, counts: np.ndarray, noise_std: float, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
        """Return the best of several runs of k-means++ and Lloyd's iterations on the middles, weighted by counts. Free.

        Args:
            counts: noisy counts of the cells, shape (cells,).
            noise_std: counts below three of them are taken for noise.
            n_clusters: k.
            rng: public randomness.

        Reference: Su, Cao, Li, Bertino and Jin 2016 run k-means on a noisy grid alone.
        """
        points, weights = self._heavy_cells(counts, noise_std)
        if len(points) < n_clusters:
            return random_centres(n_clusters, self.dimension, rng)
        runs = (_weighted_kmeans(points, weights, n_clusters, rng) for _ in range(_RESTARTS))
        centres = min(runs, key=lambda run: run[1])[0]
        return into_ball(centres)

    def _heavy_cells(self, counts: np.ndarray, noise_std: float) -> tuple[np.ndarray, np.ndarray]:
        """Return middles and counts of the cells that stand out of the noise.

        Where the noise swallows most of the records, neighbouring cells are joined, two by two along every axis: their
        counts add up faster than their noise.
        """
        grid, total = self, float(counts.sum())
        best: tuple[float, np.ndarray, np.ndarray] | None = None
        while True:
            heavy = np.flatnonzero((counts > 3 * noise_std) & (counts > 0))
            mass = float(counts[heavy].sum())
            if best is None or mass > best[0]:
                best = mass, grid.middles[heavy], counts[heavy]
            if mass >= _ENOUGH * total or grid.per_axis % 2 or grid.per_axis <= _FEWEST_PER_AXIS:
                return best[1], best[2]
            half = grid.per_axis // 2
            counts = counts.reshape((half, 2) * self.dimension).sum(axis=tuple(range(1, 2 * self.dimension, 2))).ravel()
            noise_std *= 2 ** (self.dimension / 2)
            grid = CentreGrid(self.dimension, half)


def _weighted_kmeans(
    points: np.ndarray, weights: np.ndarray, k: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Return centres and their weighted squared error, after k-means++ (Arthur and Vassilvitskii 2007) and Lloyd."""
    centres = points[rng.choice(len(points), p=weights / weights.sum())][None]
    while len(centres) < k:
        errors = weights * squared_distances(points, centres).min(axis=1)
        total = errors.sum()
        chances = errors / total if total > 0 else weights / weights.sum()
        centres = np.concatenate([centres, points[rng.choice(len(points), p=chances)][None]])
    for _ in range(_ROUNDS):
        clusters = nearest(points, centres)
        masses = np.bincount(clusters, weights=weights, minlength=k)
        sums = np.stack([np.bincount(clusters, weights * column, k) for column in points.T], axis=1)
        centres = np.where(masses[:, None] > 0, sums / np.maximum(masses, 1e-300)[:, None], centres)
    return centres, float(weights @ squared_distances(points, centres).min(axis=1))
