"""Exact draws from random bits: whole numbers with the law of a rounded normal variable, and who is in a sample.

    |Z| is drawn by rejection under a staircase:  cell j = [jw, (j+1)w) with probability ∝ e^{−(jw)²/2},
    a place u in the cell, accepted with probability e^{−w²u(j + u/2)},    w = 2^k/(2c) in (1/32, 1/16]

A cell is 2^k half steps wide, so the first k bits of the place say which half step it is: no real number is ever
rounded, however large c. Comparisons of random reals look at 64 bits; where these leave a doubt, they look at 64 more.
The law is that of round(cZ) up to 2^-100 per number in total variation. Proof: docs/proofs/grid.md.

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
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import final

import numpy as np
from scipy import sparse

Bits = Callable[[int], np.ndarray]

LEAST_SCALE, LARGEST_SCALE = 1.0, 2.0**55
_FARTHEST = 14  # P(|Z| > 14) < 2^-143
_DIGITS = 50
_DOUBT = 2.0**-40  # far above the rounding errors of a probability in 64-bit floats, below 2^-48
_WORD, _PAIR = 64, 128
_BLOCK = 1 << 14  # numbers at a time: the work arrays stay in the processor's cache
_TABLE_DIGITS = 80
_LEAST = Decimal(2) ** -150


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """The staircase for one width.

    Attributes:
        width: w.
        first_words: of the cells' cumulative probabilities the first 64 bits, all but the last, shape (cells − 1,).
        ends: the same to 128 bits.
    """

    width: float
    first_words: np.ndarray
    ends: tuple[int, ...]


@lru_cache(maxsize=256)
def _cells(width: float) -> _Cells:
    with localcontext() as context:
        context.prec = _DIGITS
        exact = Decimal(width)
        heights = [(-((j * exact) ** 2) / 2).exp() for j in range(math.ceil(_FARTHEST / width))]
        total, below, ends = sum(heights, Decimal(0)), Decimal(0), []
        for height in heights[:-1]:
            below += height
            ends.append(int(below / total * 2**_PAIR))
    first_words = np.array([end >> _WORD for end in ends], dtype=np.uint64)
    return _Cells(width, first_words, tuple(ends))


def rounded_normals(bits: Bits, size: int, scale: float) -> np.ndarray:
    """Return independent draws of round(cZ), int64, Z standard normal.

    Args:
        bits: source of words of 64 random bits.
        size: how many.
        scale: c, in [1, 2^55]; up to a factor of 1 ± 2^-52, which a caller allows for.
    """
    # an integer number of half steps is drawn, floor(2cZ): round(x) = floor((floor(2x) + 1)/2)
    exponent = math.frexp(2 * scale)[1] - 5
    finer = max(0, 1 - exponent)  # cells are at least two half steps wide: below, steps are cut
    cells = _cells(math.ldexp(0.5 / scale, exponent))
    halves = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        block = halves[start : start + _BLOCK]
        waiting = np.arange(block.size)
        while waiting.size:
            values, accepted = _propose(bits, waiting.size, cells, exponent + finer)
            block[waiting[accepted]] = values[accepted]
            waiting = waiting[~accepted]
    halves >>= finer
    halves += 1
    halves >>= 1
    return halves


def _propose(bits: Bits, size: int, cells: _Cells, exponent: int) -> tuple[np.ndarray, np.ndarray]:
    """Return floor(Z·2^exponent/w) of proposals, and which of them are accepted."""
    words = bits(3 * size)
    choices, places, heights = words[:size], words[size : 2 * size], words[2 * size :]
    cell = _chosen(bits, choices, cells)
    result = cell << exponent
    result |= (places >> np.uint64(_WORD - exponent)).view(np.int64)
    # the last bit of the height is the sign: −x lies in the half step below −floor(x)
    result ^= -((heights & np.uint64(1)).view(np.int64))
    place = places * 2.0**-_WORD
    probability = np.exp(-(cells.width**2) * place * (cell + 0.5 * place))
    probability -= (heights >> np.uint64(1)) * 2.0 ** -(_WORD - 1)
    accepted = probability > 0
    for i in np.flatnonzero(np.abs(probability) < _DOUBT):
        accepted[i] = _accepted(bits, int(places[i]), int(heights[i]) >> 1, int(cell[i]), cells.width)
    return result, accepted


def _chosen(bits: Bits, words: np.ndarray, cells: _Cells) -> np.ndarray:
    """Return the cell that each word falls into; where 64 bits do not tell, by 64 more."""
    cell = np.searchsorted(cells.first_words, words, side="right")
    below = cells.first_words[np.maximum(cell - 1, 0)]
    for i in np.flatnonzero(below == words):
        word = (int(words[i]) << _WORD) | int(bits(1)[0])
        cell[i] = sum(word >= end for end in cells.ends)
    return cell


def _accepted(bits: Bits, place: int, height: int, cell: int, width: float) -> bool:
    """Compare a height with the probability, both to 64 more bits."""
    more = bits(2)
    with localcontext() as context:
        context.prec = _DIGITS
        u = Decimal((place << _WORD) | int(more[0])) / 2**_PAIR
        v = Decimal((height << _WORD) | int(more[1])) / 2 ** (_PAIR - 1)
        return v < (-(Decimal(width) ** 2) * u * (cell + u / 2)).exp()


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
        context.prec = _TABLE_DIGITS
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
