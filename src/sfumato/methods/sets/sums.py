"""Laws of how many of some independent items there are, in several classes at once, and their derivatives. Free.

A number S is a sum of independent items (a Poisson binomial variable). Its law is computed item by item: `prefixes`
from the first, `suffixes` of a function from the last; both together give what one item changes, exactly. Numbers above
the most of a set count as the most.
"""

from __future__ import annotations

import numpy as np


def prefixes(items: np.ndarray, most: int) -> np.ndarray:
    """Return the law of how many of the items before i there are, shape (F + 1, K, most + 1).

    Args:
        items: shares of independent items by class, shape (K, F).
        most: numbers above it count as it.

    Example:
        >>> prefixes(np.array([[0.5, 0.5]]), 2)[-1]
        array([[0.25, 0.5 , 0.25]])
    """
    k, f = items.shape
    laws = np.zeros((f + 1, k, most + 1))
    laws[0, :, 0] = 1.0
    for i in range(f):
        moved = laws[i] * items[:, i, None]
        np.subtract(laws[i], moved, out=laws[i + 1])
        laws[i + 1, :, 1:] += moved[:, :-1]
        laws[i + 1, :, -1] += moved[:, -1]
    return laws


def suffixes(items: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the expected value where s of the items before i are there, shape (F + 1, K, most + 1).

    Args:
        items: shares of independent items by class, shape (K, F).
        values: by number of items, shape (K, most + 1).

    Example:
        >>> suffixes(np.array([[0.5, 0.5]]), np.array([[0.0, 1.0, 2.0]]))[0, 0, 0]
        np.float64(1.0)
    """
    k, f = items.shape
    expected = np.empty((f + 1, k, values.shape[1]))
    expected[f] = values
    for i in range(f - 1, -1, -1):
        after = expected[i + 1]
        np.copyto(expected[i], after)
        expected[i, :, :-1] += items[:, i, None] * (after[:, 1:] - after[:, :-1])
    return expected


def slopes(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return the derivatives of expected values by the items' shares, shape (K, F).

    Args:
        before: `prefixes`.
        after: `suffixes` of the same items.
    """
    risen = after[1:, :, 1:] - after[1:, :, :-1]
    return np.einsum("fks,fks->kf", before[:-1, :, :-1], risen)


def without_each(before: np.ndarray, items: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the expected values of how many there are but for one item, for each, shape (K, F).

    Args:
        before: `prefixes` of the items.
        items: their shares by class, shape (K, F).
        values: by number of items, shape (most + 1,).
    """
    after = suffixes(items, np.tile(values, (len(items), 1)))
    return np.einsum("fks,fks->kf", before[:-1], after[1:])
