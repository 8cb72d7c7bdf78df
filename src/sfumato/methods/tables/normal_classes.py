"""Class-conditional tables of ordered cells, when noise hides all but location and scale.

A column's normal score, taken over all classes, is standard normal by construction. Within a class it is modelled as
N(m, s²), so that a class's table is known from two numbers: the shape comes from the pooled table, which is known best.
A table is the posterior mean over a grid of m and s; the prior is fitted to all columns (empirical Bayes, by
expectation-maximisation), so that the more columns there are, the better each is known.

Everything here is a function of released values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

_MEANS = 3.5 * np.sinh(3 * np.linspace(-1.0, 1.0, 57)) / np.sinh(3.0)  # densest about 0, where a large class lies
_SCALES = np.geomspace(0.2, 3.0, 17)
_PRIOR_ROUNDS = 30
_FLAT_SHARE = 0.01
_LEAST_NOISE = 1.0  # of a count, so that tables without noise, or with next to none, still have a posterior
_GRID_MEANS, _GRID_SCALES = (axis.ravel() for axis in np.meshgrid(_MEANS, _SCALES, indexing="ij"))


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
        likelihood = np.exp(evidence)
        flat = 1 / evidence.shape[1]
        prior = np.full(evidence.shape[1], flat)
        posterior = likelihood
        for _ in range(_PRIOR_ROUNDS):
            posterior = likelihood * prior
            posterior /= posterior.sum(axis=1, keepdims=True)
            # never 0, so that a column unlike all others has a posterior
            prior = (1 - _FLAT_SHARE) * posterior.mean(axis=0) + _FLAT_SHARE * flat
        return cls(posterior)

    @property
    def means(self) -> np.ndarray:
        """Posterior means of the location, shape (columns,)."""
        return self.posterior @ _GRID_MEANS

    @property
    def scales(self) -> np.ndarray:
        """Posterior means of the scale, shape (columns,)."""
        return self.posterior @ _GRID_SCALES

    def table(self, column: int, cuts: np.ndarray) -> np.ndarray:
        """Return the posterior mean of a column's mass between cuts, shape (cells,)."""
        return self.posterior[column] @ grid_tables(cuts)


def grid_tables(cuts: np.ndarray) -> np.ndarray:
    """Return the mass between cuts at every point of the grid of locations and scales, shape (grid, cells)."""
    return normal_table(_GRID_MEANS, _GRID_SCALES, cuts)


def locate(expected: np.ndarray, counts: np.ndarray, noise_std: float) -> np.ndarray:
    """Return the log-likelihood of noisy counts, shape (c,), where these are expected, shape (grid, c)."""
    inner = expected @ counts - np.einsum("ij,ij->i", expected, expected) / 2
    return inner / max(noise_std, _LEAST_NOISE) ** 2
