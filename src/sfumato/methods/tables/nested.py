"""Pairs of a label and the one before it: features of the label first, counts that agree with those of a row later.

Free: uses released values only.
"""

from __future__ import annotations

import numpy as np

from sfumato.maths.constants import VECTORS
from sfumato.maths.shrinkage import toward
from sfumato.methods.tables.features import Features, level_features, orthonormal


def sums_of(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the sums of rows of consecutive groups, shape (groups, ...)."""
    return np.add.reduceat(values, np.flatnonzero(np.diff(groups, prepend=-1)))


def nested_features(shares: np.ndarray, groups: np.ndarray, weight: float) -> Features:
    """Return the features of groups of labels, of their last cells, of none before, and then of labels within a group.

    Second moments hardly see those within: these are counted with the label that follows, and nothing else is.
    """
    known = max(float(shares[:-1].sum()), VECTORS.least_known)
    coarse = level_features(sums_of(shares, groups), weight, hidden=True)
    none, rare_first = np.diff(groups) > 0, np.eye(shares.size - 1)[:, np.argsort(shares[:-1], kind="stable")]
    columns = np.hstack([coarse.values[groups[:-1]], none[:, None], rare_first])
    values, new = orthonormal(columns, shares[:-1] / known)
    values = np.append(values, np.zeros((1, new.size)), axis=0) / np.sqrt(known)
    first = float(shares[:-1] @ none)
    weights = np.full(columns.shape[1], weight * VECTORS.least_weight)
    weights[: coarse.size + 1] = *coarse.weights, max(weight * first * (1 - first), VECTORS.least_weight)
    return Features(values, weights[new], values, groups, int((new > coarse.size).sum()))


def agreeing(counts: np.ndarray, std: float, later: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return counts of pairs moved toward those of a row later, and the noise left, shapes (c,).

    What was a label and the one before it has been a label and the one after it: far less noise is in the latter.

    Args:
        counts: of pairs, that without a label last.
        std: of their noise.
        later: counts of each label and the label after it, shape (labels and none, labels of a row).
        groups: the label of each pair.
    """
    n, total = int(groups[-1]), max(float(counts.sum()), 1.0)
    shares, left = counts / total, np.full(counts.size, (std / total) ** 2)
    pairs = np.arange(n * (n + 1)).reshape(n, n + 1)[:, :n]
    centre = np.maximum(later[:n, :n].T, 0.0)
    sums = np.maximum(shares[pairs].sum(axis=1), 0.0)
    centre *= (sums / np.maximum(centre.sum(axis=1), VECTORS.least_mass))[:, None]
    same, pairs = np.zeros(n * n, dtype=np.int64), pairs.ravel()
    shares[pairs], left[pairs] = toward(shares[pairs], left[pairs], same, centre.ravel())
    return shares * total, np.sqrt(left) * total


def raked(shares: np.ndarray, counts: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return shares of pairs that have the groups' shares as counted: noise of many cells is little in their sum."""
    sums = np.maximum(sums_of(counts, groups), 0.0)
    scaled = shares * (sums / np.maximum(sums_of(shares, groups), VECTORS.least_mass))[groups]
    return scaled / scaled.sum() if scaled.any() else shares
