"""Whole numbers with the law of a rounded normal variable: round(cZ), drawn exactly from random bits.

    |Z| is drawn by rejection under a staircase:  cell j = [jw, (j+1)w) with probability ∝ e^{−(jw)²/2},
    a place u in the cell, accepted with probability e^{−w²u(j + u/2)},    w = 2^k/(2c) in (1/32, 1/16]

A cell is 2^k half steps wide, so the first k bits of the place say which half step it is: no real number is ever
rounded, however large c. Comparisons of random reals look at 64 bits; where these leave a doubt, they look at 64 more.
The law is that of round(cZ) up to 2^-100 per number in total variation. Proof: docs/proofs/grid.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import final

import numpy as np

Bits = Callable[[int], np.ndarray]

LEAST_SCALE, LARGEST_SCALE = 1.0, 2.0**55
_FARTHEST = 14  # P(|Z| > 14) < 2^-143
_DIGITS = 50
_DOUBT = 2.0**-40  # far above the rounding errors of a probability in 64-bit floats, below 2^-48
_WORD, _PAIR = 64, 128
_BLOCK = 1 << 14  # numbers at a time: the work arrays stay in the processor's cache


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
