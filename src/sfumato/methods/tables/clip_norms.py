"""Clip norms of a table's records, by simulated rows: noise and bias together are least. Free: released values only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from sfumato.maths.constants import VECTORS
from sfumato.maths.streams import public_stream


def clip_norm_of(vectors: Sequence[np.ndarray], shares: Sequence[np.ndarray], *, noisy: bool) -> float:
    """Return the clip norm: that of a record of mean squared length, or without noise of the longest.

    What clipping takes off is known of the law that is fitted, and put back (`Evidence.unclipped`): so the norm may be
    short, and noise small. Free: uses released shares only.

    Args:
        vectors: per column, the entries of each cell, shape (c, q).
        shares: per column, P(cell), shape (c,).
        noisy: whether there is noise.
    """
    if noisy:
        return float(np.sqrt(max(mean_square(vectors, shares), VECTORS.least_norm**2)))
    most = sum(float((entries**2).sum(axis=1).max(initial=0.0)) for entries in vectors)
    return float(np.sqrt(max(most, VECTORS.least_norm**2)))


def mean_square(vectors: Sequence[np.ndarray], shares: Sequence[np.ndarray]) -> float:
    """Return the mean squared norm of rows as the released shares make them; arguments as `clip_norm_of`.

    Not of simulated rows: a cell of a nearly constant number is so long that one such row would be most of their mean.
    """
    of_columns = zip(vectors, shares, strict=True)
    return sum(float(share @ (entries**2).sum(axis=1) / share.sum()) for entries, share in of_columns)


def simulated_squares(vectors: Sequence[np.ndarray], shares: Sequence[np.ndarray]) -> np.ndarray:
    """Return the squared norms of rows as the released shares make them, shape (rows,); arguments as `clip_norm_of`."""
    rng, n_rows, together = public_stream(VECTORS.norm_seed), VECTORS.norm_rows, VECTORS.together
    common = np.sqrt(together) * rng.standard_normal(n_rows)
    squares = np.zeros(n_rows)
    for entries, share in zip(vectors, shares, strict=True):
        ranks = special.ndtr(common + np.sqrt(1 - together) * rng.standard_normal(n_rows)) * share.sum()
        cells = np.minimum(np.searchsorted(np.cumsum(share), ranks, side="right"), share.size - 1)
        squares += (entries[cells] ** 2).sum(axis=1)
    return squares


def least_cost_norm(squares: np.ndarray, noise: float, mean: float) -> float:
    """Return the norm whose noise and bias together are least, for records of these squared norms, of this mean."""
    mean = max(mean, VECTORS.least_norm**2)
    tried = np.geomspace(*VECTORS.norms) * mean
    costs = [noise * c / np.sqrt(2) + VECTORS.clipped * np.maximum(squares - c, 0.0).mean() / mean for c in tried]
    return float(np.sqrt(tried[int(np.argmin(costs))]))
