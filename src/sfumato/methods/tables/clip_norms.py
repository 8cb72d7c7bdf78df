"""Clip norms of a table's records, by their mean squared length. Free: released values only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.maths.constants import VECTORS


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
