"""How many sets hold each pair of watched items, each of them beside how many others, and how many have which size.

    counts of pairs    G(σ)    C·e_x                                              of a set of at most one item
                               u(s)·(1 per pair; 1 per item and rest; 1 by both sizes)    of a longer one

s is how many watched items a set holds, and the rest, in bins, how many others. A set of at most a watched items
counts in full, u = 1; a longer one counts less, so that no set adds a vector longer than C, that of a items:
u(s)²·(1 + s(s + 1)/2) ≤ 1 + a(a + 1)/2 = C². Sets that hold no pair count C times in a cell of their own, which costs
nothing. Proof: docs/proofs/item_pairs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from sfumato.measurements.item_queries import WEIGHT_PARTS, ItemPairQuery, SetsOf
from sfumato.mechanisms.queries import Noisy
from sfumato.mechanisms.statistics import NonNegativeSum
from sfumato.models.sets import SetEncoder
from sfumato.records.engine import Rows

_PARTS = WEIGHT_PARTS  # weights are rounded down to whole 64ths
_GROWTH = 1.4


def size_bins(longest: int) -> np.ndarray:
    """Return where bins of sizes start: 0 to 5 on their own, then wider ones; shape (bins,), from 0, public.

    Args:
        longest: the most items of a set.

    Example:
        >>> size_bins(12)
        array([ 0,  1,  2,  3,  4,  5,  7, 10])
    """
    starts = list(range(min(longest, 5) + 1))
    while starts[-1] < (after := round(starts[-1] * _GROWTH)) <= longest:
        starts.append(after)
    return np.array(starts)


def squared_length(n_watched: int) -> int:
    """Return how many ones a set of so many watched items adds: its pairs, its items, and itself."""
    return 1 + n_watched * (n_watched + 1) // 2


def most_in_full(noise_multiplier: float, n_public: float, longest: int, *, noise_to_sampling: float) -> int:
    """Return a: how many watched items a set may hold and count in full. From public facts.

    The most for which the noise of a count is at most so many times √n, which is what a count's sampling error grows
    by. At least 3, or what sets mostly hold would count less; at most the longest set.
    """
    best = min(3, longest)
    for n_watched in range(best, longest + 1):
        if noise_multiplier * math.sqrt(squared_length(n_watched)) > noise_to_sampling * math.sqrt(n_public):
            break
        best = n_watched
    return best


@final
@dataclass(frozen=True, eq=False)
class ItemPairCounts(NonNegativeSum):
    """Weighted counts of sets of at most one item, of pairs of watched items, of items by size, and of sizes.

    Norm at most C = √(1 + a(a + 1)/2). No entry is negative, so two records are at most √2·C apart. Value: as of
    `ItemPairQuery`.

    Attributes:
        encoder: of the column of sets.
        watched: codes of the watched items, ascending, shape (F,); a function of what was released before.
        in_full: a.
    """

    encoder: SetEncoder
    watched: np.ndarray
    in_full: int
    name: str = "counts of pairs of items"
    step: float = 1 / _PARTS

    @property
    def norm_bound(self) -> float:
        """C."""
        return math.sqrt(squared_length(self.in_full))

    @cached_property
    def bins(self) -> np.ndarray:
        """Where bins of the rest's sizes start, shape (B,); one bin where every item is watched."""
        rest = self.encoder.dimension - self.watched.size
        return size_bins(min(self.encoder.kind.longest, rest))

    @cached_property
    def held_bins(self) -> np.ndarray:
        """Where bins of the number of watched items start, shape (H,)."""
        return size_bins(self._most)

    @property
    def _most(self) -> int:
        """The most watched items of a set."""
        return min(self.encoder.kind.longest, self.watched.size)

    @property
    def few_weight(self) -> float:
        """What a set of at most one item adds to its cell: C, rounded down."""
        return math.isqrt(_PARTS**2 * squared_length(self.in_full)) / _PARTS

    @cached_property
    def weights(self) -> np.ndarray:
        """u(s) for s from 0 to the most watched items of a set, shape (most + 1,)."""
        return self._whole / _PARTS

    @cached_property
    def _whole(self) -> np.ndarray:
        """64·u(s): whole numbers, whose squares times the number of ones stay below the bound exactly."""
        bound = _PARTS**2 * squared_length(self.in_full)
        return np.array(
            [min(_PARTS, math.isqrt(bound // squared_length(s))) for s in range(self._most + 1)], dtype=float
        )

    @cached_property
    def query(self) -> ItemPairQuery:
        """What is summed, as data."""
        return ItemPairQuery(
            SetsOf.of(self.encoder.name, self.encoder.kind),
            np.asarray(self.watched, dtype=np.int64),
            self.bins.astype(np.int64),
            self.held_bins.astype(np.int64),
            self._whole.astype(np.int64),
            round(_PARTS * self.few_weight),
        )

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(self.query.shape)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some sets."""
        self.query.add(total, self.encoder.sets(rows))

    def read(self, noisy: Noisy) -> CountedPairs:
        """Return what a release of it says. Free."""
        few, upper, by_size, sizes = self.query.split(noisy.value)
        f = self.watched.size
        pairs = np.zeros((f, f))
        pairs[np.triu_indices(f, 1)] = upper
        return CountedPairs(
            few=few / self.few_weight,
            few_std=noisy.noise_std / self.few_weight,
            pairs=pairs + pairs.T,
            by_size=by_size,
            sizes=sizes,
            held_bins=self.held_bins,
            noise_std=noisy.noise_std,
            weights=self.weights,
        )


@final
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CountedPairs:
    """What noisy counts of pairs say.

    Attributes:
        few: numbers of empty sets, and of sets of each item alone, shape (1 + m,).
        few_std: their standard deviation.
        pairs: weighted numbers of sets that hold both items, shape (F, F), symmetric, 0 on the diagonal.
        by_size: weighted numbers of longer sets that hold an item, by size of the rest, shape (F, B).
        sizes: weighted numbers of longer sets, by size of the rest and bin of the watched ones, shape (B, H).
        held_bins: where bins of the number of watched items start, shape (H,).
        noise_std: of each entry of these three.
        weights: u(s), shape (most + 1,).
    """

    few: np.ndarray
    few_std: float
    pairs: np.ndarray
    by_size: np.ndarray
    sizes: np.ndarray
    held_bins: np.ndarray
    noise_std: float
    weights: np.ndarray

    def thinned(self, rng: np.random.Generator, share: float) -> tuple[CountedPairs, CountedPairs]:
        """Return two independent readings of the same counts, of variances 1 + share² and 1 + 1/share² times its own.

        y + t·σ·g and y − σ·g/t have independent normal noise, as y has that of standard deviation σ. The second judges
        what was learnt from the first. Sets of at most one item stay as they are.
        """
        f = len(self.pairs)
        draw = np.triu(rng.standard_normal((f, f)), 1)
        g = (draw + draw.T, rng.standard_normal(self.by_size.shape), rng.standard_normal(self.sizes.shape))
        readings = []
        for factor in (share, -1 / share):
            moved = [
                a + factor * self.noise_std * b for a, b in zip((self.pairs, self.by_size, self.sizes), g, strict=True)
            ]
            noise_std = self.noise_std * math.sqrt(1 + factor**2)
            readings.append(replace(self, pairs=moved[0], by_size=moved[1], sizes=moved[2], noise_std=noise_std))
        return readings[0], readings[1]
