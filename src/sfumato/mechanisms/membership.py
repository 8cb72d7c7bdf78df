"""Who is in a sample: sparse draws with the law of independent coins, or of uniform subsets, from secret bits.

A sample of independent coins of probability p over n units is drawn in two steps of exactly its law: how many, from the
Binomial(n, p) law, and then which, a uniform subset of that many. That takes about np words of bits instead of n. The
Binomial law is tabulated to 128 bits, of which 64 are drawn only where the first 64 leave a doubt: a sample's law is
exact up to 2^-110 in total variation, which no number of samples adds up to anything.
Subsets are drawn uniformly by rejection: what comes twice is drawn again.

`sfumato.mechanisms.noise` is the one caller of these: it holds the bits.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from scipy import sparse

Bits = Callable[[int], np.ndarray]

_DIGITS = 80
_WORD, _PAIR = 64, 128
_LEAST = Decimal(2) ** -150


@lru_cache(maxsize=8)
def binomial_table(n: int, probability: float) -> tuple[int, np.ndarray, tuple[int, ...]]:
    """Return (first, words, ends): K ~ Binomial(n, p) is first + the number of ends that are ≤ 128 random bits.

    Args:
        n: number of coins, at least 1.
        probability: p in (0, 1), taken as the exact value of its float.

    Returns:
        The least value that is not left out; the first 64 bits of the ends, uint64; and the ends, P(K ≤ first + i)
        times 2^128.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        p = Decimal(probability)
        ratio = p / (1 - p)
        mode = min(int((n + 1) * probability), n)
        # from the mode outwards, relative to it, until what is left is far below 2^-128
        weights = {mode: Decimal(1)}
        k = mode
        while k < n and weights[k] > _LEAST:
            weights[k + 1] = weights[k] * (n - k) / (k + 1) * ratio
            k += 1
        last, k = k, mode
        while k > 0 and weights[k] > _LEAST:
            weights[k - 1] = weights[k] * k / (n - k + 1) / ratio
            k -= 1
        total = sum(weights.values())
        ends, below = [], Decimal(0)
        for value in range(k, last):
            below += weights[value]
            ends.append(min(int(below / total * 2**_PAIR), 2**_PAIR - 1))
    return k, np.array([end >> _WORD for end in ends], dtype=np.uint64), tuple(ends)


def binomial_counts(bits: Bits, n: int, probability: float, size: int) -> np.ndarray:
    """Return `size` independent Binomial(n, p) counts, int64."""
    if n == 0 or probability == 1:
        return np.full(size, n, dtype=np.int64)
    first, words, ends = binomial_table(n, probability)
    draws = bits(size)
    counts = np.searchsorted(words, draws, side="right").astype(np.int64)
    for i in np.flatnonzero(words[np.maximum(counts - 1, 0)] == draws):  # as good as never: 64 bits leave a doubt
        counts[i] = bisect_right(ends, (int(draws[i]) << _WORD) | int(bits(1)[0]))
    return first + counts


def uniform_below(bits: Bits, n: int, size: int) -> np.ndarray:
    """Return `size` independent uniform whole numbers in [0, n), int64, by rejection."""
    shift = np.uint64(64 - max((n - 1).bit_length(), 1))
    result = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        words = (bits(max(16, math.ceil(1.1 * (size - filled) * 2 ** int(64 - shift) / n))) >> shift).astype(np.int64)
        words = words[words < n][: size - filled]
        result[filled : filled + words.size] = words
        filled += words.size
    return result


def uniform_subsets(bits: Bits, n: int, sizes: np.ndarray) -> sparse.csr_array:
    """Return independent uniform subsets of [0, n) as rows of a sparse matrix of ones.

    Args:
        bits: source of 64-bit words.
        n: number of units.
        sizes: size of each subset, in [0, n], shape (b,).

    Returns:
        Shape (b, n), float64, indices sorted; row i has sizes[i] ones.
    """
    # of a subset of more than half, the rest is drawn: otherwise nearly all draws would come twice
    inverted = 2 * sizes > n
    wanted = np.where(inverted, n - sizes, sizes)
    keys = _distinct_keys(bits, n, wanted)
    if inverted.any():
        rest = _rows(keys, n, len(sizes)).toarray().astype(bool)[inverted]
        rows, columns = np.nonzero(~rest)
        upright = keys[~inverted[keys // max(n, 1)]]
        keys = np.sort(np.concatenate([upright, np.flatnonzero(inverted)[rows] * n + columns]))
    return _rows(keys, n, len(sizes))


def _distinct_keys(bits: Bits, n: int, wanted: np.ndarray) -> np.ndarray:
    """Return row·n + unit of every member, sorted: per row the first `wanted` distinct ones of uniform draws."""
    keys = np.empty(0, dtype=np.int64)
    missing = wanted
    while missing.any():
        # no more than are missing, so that no draw is ever dropped for another reason than coming twice
        rows = np.repeat(np.arange(len(wanted), dtype=np.int64), missing)
        keys = np.unique(np.concatenate([keys, rows * n + uniform_below(bits, n, rows.size)]))
        missing = wanted - np.bincount(keys // n, minlength=len(wanted))
    return keys


def _rows(keys: np.ndarray, n: int, size: int) -> sparse.csr_array:
    counts = np.bincount(keys // max(n, 1), minlength=size)
    starts = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((np.ones(keys.size), keys % max(n, 1), starts), shape=(size, n))
