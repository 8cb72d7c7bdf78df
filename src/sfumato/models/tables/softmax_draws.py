"""Runs drawn by a softmax whose logits are linear in features: p(run) ∝ exp(t(run) + φ(run)ᵀ predictor).

Runs come before rows: sums and comparisons over few runs are several times as fast along the first axis, and rows come
in blocks that a processor's cache holds. A run is the first whose cumulated chance exceeds a uniform number's part of
the last one, so that one of probability 0 is never drawn.

Draws are systematic: rows of like predictors share out the unit interval, so that a block of rows has the shares that
the model says, up to one row. Each row has its own law, but for what raking moves: of many rows, next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from sfumato.maths.constants import SAMPLING

_CACHED_ROWS = 2_048
_LARGEST_LOGIT = 1e30
_LEAST_SUM, _LARGEST_SUM = 1e-20, 1e20  # of exponentials: factors below keep 32-bit numbers far from their bounds
_SMALLEST = 1e-30
_GOLDEN = (np.sqrt(5) - 1) / 2
_UINT16 = np.iinfo(np.uint16).max


@dataclass(frozen=True, slots=True)
class Chances:
    """What the runs of each row are drawn by.

    Attributes:
        blocks: P(run) times a number of each row, float32, shape (r, rows) each.
        sums: over the runs, shape (rows,) each.
    """

    blocks: tuple[np.ndarray, ...]
    sums: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, predictor: np.ndarray, values: np.ndarray, tilts: np.ndarray) -> Self:
        """Return the chances of rows.

        Args:
            predictor: shape (q, n), float32.
            values: features of each run, shape (r, q).
            tilts: shape (r,).
        """
        n = predictor.shape[1]
        with np.errstate(all="ignore"):
            values, tilts = values.astype(np.float32), (tilts - tilts.max()).astype(np.float32)[:, None]
            large, blocks = False, []  # logits are small until some are not
            for start in range(0, n, _CACHED_ROWS):
                some = predictor[:, start : start + _CACHED_ROWS]
                block, sums = _exponentials(some, values, tilts, less_largest=large)
                if not (large or ((sums > _LEAST_SUM) & (sums < _LARGEST_SUM)).all()):
                    large = True
                    block, sums = _exponentials(some, values, tilts, less_largest=True)
                blocks.append((block, sums))
        return cls(tuple(block for block, _ in blocks), tuple(sums for _, sums in blocks))

    def sums_with(self, factors: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the sums over the runs once each run's chance is multiplied, shape (rows,) each."""
        factors = factors.astype(np.float32)
        return (factors @ block for block in self.blocks)

    def of_run(self, run: int) -> np.ndarray:
        """Return P(run) of one run, shape (n,)."""
        return np.concatenate([block[run] / sums for block, sums in zip(self.blocks, self.sums, strict=True)])

    def raking(self, shares: np.ndarray) -> np.ndarray:
        """Return factors that bring the rows to these shares, shape (r,): the more rows there are, the nearer.

        Few rows are left as they are: their own columns would decide the factors, and weaken what goes with them.

        What earlier columns happen to be in a block moves this column's shares from the law's; one step of iterative
        proportional fitting and another take most of that out, which halves the error of samples' 1-way tables.
        """
        n = sum(sums.size for sums in self.sums)
        if n < SAMPLING.fewest_raked:
            return np.ones(shares.size)
        damping = n / (n + SAMPLING.raking_rows * shares.size)
        factors, most = np.ones(shares.size), SAMPLING.largest_ratio
        for _ in range(SAMPLING.raking_rounds):
            means = np.zeros(shares.size)
            for block, sums in zip(self.blocks, self.sums_with(factors), strict=True):
                means += block @ (1 / sums)
            ratio = shares / np.maximum(factors * means / n, _SMALLEST)
            factors *= np.clip(ratio, 1 / most, most) ** damping
        return factors

    def without(self, runs: np.ndarray) -> Self:
        """Return the chances of the other runs; of a row that has no other, what they were.

        Args:
            runs: that no row takes, shape (m,).
        """
        blocks, sums = [], []
        for block, total in zip(self.blocks, self.sums, strict=True):
            left = block.copy()
            left[runs] = 0
            others = left.sum(axis=0)
            none = ~(others > 0)
            left[:, none], others[none] = block[:, none], total[none]
            blocks.append(left)
            sums.append(others)
        return type(self)(tuple(blocks), tuple(sums))

    def drawn(self, numbers: np.ndarray, factors: np.ndarray | None = None) -> np.ndarray:
        """Return the run of each row by its uniform number, shape (n,); the chances are used up.

        Args:
            numbers: in [0, 1), shape (n,).
            factors: of each run's chance, shape (r,).
        """
        runs, start = np.empty(numbers.size, dtype=np.int64), 0
        narrow = None if factors is None else factors.astype(np.float32)[:, None]
        for block in self.blocks:
            rows = slice(start, start := start + block.shape[1])
            if narrow is not None:
                block *= narrow
            for before, run in pairwise(block):
                run += before
            # rounded to 32 bits, a number's part of the sum may be the sum
            bounds = np.minimum(numbers[rows].astype(np.float32) * block[-1], np.nextafter(block[-1], np.float32(0)))
            size = np.uint8 if len(block) <= np.iinfo(np.uint8).max else np.int64
            runs[rows] = (block <= bounds).view(np.uint8).sum(axis=0, dtype=size)
        return runs


def _exponentials(
    predictor: np.ndarray, values: np.ndarray, tilts: np.ndarray, *, less_largest: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return exponentials of the logits, less each row's largest or not, and their sums over the runs."""
    logits = values @ predictor
    logits += tilts
    if less_largest:
        largest = logits.max(axis=0)
        if not np.isfinite(largest).all():
            # a stranger's arrays may overflow: what is no number counts as no logit at all
            np.nan_to_num(logits, copy=False, nan=0.0, posinf=_LARGEST_LOGIT, neginf=-_LARGEST_LOGIT)
            largest = logits.max(axis=0)
        logits -= largest
    np.exp(logits, out=logits)
    return logits, logits.sum(axis=0)


def chosen(
    predictor: np.ndarray,
    values: np.ndarray,
    tilts: np.ndarray,
    rng: np.random.Generator,
    shares: np.ndarray | None = None,
    never: np.ndarray | None = None,
) -> np.ndarray:
    """Return a run for each row, drawn systematically among rows of like predictors, shape (n,).

    Args:
        predictor: shape (q, n), float32, of at most `SAMPLING.block_rows` rows.
        values: features of each run, shape (r, q).
        tilts: shape (r,).
        rng: source of (public) randomness.
        shares: P(run) that the rows are raked to, shape (r,); by default they are not.
        never: runs that are left out, shape (m,), but of rows whose chance is all theirs.
    """
    chances = Chances.of(predictor, values, tilts)
    if never is not None:
        chances = chances.without(never)
    numbers = systematic(np.zeros(predictor.shape[1], dtype=np.int64), rng, likeness(predictor))
    with np.errstate(all="ignore"):
        return chances.drawn(numbers, None if shares is None else chances.raking(shares))


def likeness(predictor: np.ndarray) -> np.ndarray | None:
    """Return the predictor's feature that varies most, by which rows are neighbours, shape (n,); None of none."""
    if not predictor.size:
        return None
    with np.errstate(all="ignore"):
        spread = predictor.var(axis=1)
    return predictor[int(np.argmax(np.nan_to_num(spread, nan=0.0)))]


def _order(keys: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """Return the order by keys and, where these are equal, by ties: `np.lexsort((ties, keys))`, several times faster.

    Most keys differ: a plain sort puts them in order, and only those that are equal are sorted by both.
    """
    order = np.argsort(keys)
    ordered = keys[order]
    equal = ordered[1:] == ordered[:-1]
    if not equal.any():
        return order
    places = np.flatnonzero(np.concatenate([equal, [False]]) | np.concatenate([[False], equal]))
    rows = order[places]
    rows = rows[np.argsort(ties[rows])]
    order[places] = rows[np.argsort(keys[rows], kind="stable")]
    return order


def systematic(groups: np.ndarray, rng: np.random.Generator, keys: np.ndarray | None = None) -> np.ndarray:
    """Return a uniform number for each row; rows of one group share out [0, 1), and so do neighbours by their key.

    The rows of a group, in order of their keys, get the places of a Kronecker sequence with the golden ratio from a
    random start: each number is uniform, and any stretch of rows fills the interval as evenly as there is room.

    Args:
        groups: shape (n,), whole numbers ≥ 0.
        keys: of rows, shape (n,); by default the order is random.
        rng: source of (public) randomness.
    """
    n = groups.size
    ties = rng.random(n)
    most = int(groups.max(initial=0))
    order = np.argsort(ties) if keys is None else _order(keys, ties)
    if most:
        narrow = groups[order].astype(np.uint16) if most <= _UINT16 else groups[order]  # sorted by radix
        order = order[np.argsort(narrow, kind="stable")]
    starts = rng.random(most + 1)
    places = starts[groups[order]] + _GOLDEN * np.arange(n)
    numbers = np.empty(n)
    numbers[order] = places - np.floor(places)
    return numbers
