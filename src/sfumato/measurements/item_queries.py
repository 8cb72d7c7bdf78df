"""Queries of sets of items: sums over records of functions of the items that a record's set holds, as data.

A set is taken as it is read: items of the schema's list, each once, the first `max_length` of them. Each counts once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sfumato._lazy import later
from sfumato.columns.sets import CodedSets, ItemSet

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = later("scipy.sparse")

WEIGHT_PARTS = 64
"""Weights are whole numbers of 1 ÷ so many."""


@dataclass(frozen=True, slots=True)
class SetsOf:
    """The sets that a query is about.

    Attributes:
        column: its name.
        n_items: m, the number of items.
        longest: the most items of a set.
    """

    column: str
    n_items: int
    longest: int

    @classmethod
    def of(cls, column: str, kind: ItemSet) -> SetsOf:
        """Those of a column of the schema."""
        return cls(column, kind.size, kind.longest)

    def fault(self, kinds: Mapping[str, object]) -> str | None:
        """The fault for columns of these kinds; None without."""
        kind = kinds.get(self.column)
        if not isinstance(kind, ItemSet):
            return f"asks of the items of {self.column!r}, which is no column of sets of the schema"
        if (self.n_items, self.longest) != (kind.size, kind.longest):
            return f"asks of other items of {self.column!r} than the schema's column has"
        return None


@dataclass(frozen=True, slots=True)
class ItemQuery:
    """How many sets hold each item.

    Value: shape (m,). A record adds its binary vector.

    Attributes:
        sets: that it is about.
    """

    kind: ClassVar[str] = "items"
    weight: ClassVar[str] = ""
    whole_rows: ClassVar[int] = 0

    sets: SetsOf

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return (self.sets.n_items,)

    def add(self, total: np.ndarray, sets: CodedSets) -> None:
        """Add some sets to a sum of this shape."""
        total += np.bincount(sets.codes, minlength=total.size)

    def fault(self, kinds: Mapping[str, object]) -> str | None:
        """The fault for columns of these kinds; None without."""
        return self.sets.fault(kinds)


@dataclass(frozen=True, eq=False)
class ItemPairQuery:
    """Weighted counts of sets of at most one item, of pairs of watched items, of items by size, and of sizes.

    With s the watched items of a set and its *rest* the others, value: shape (1 + m + F(F − 1)/2 + F·B + B·H,): the
    empty set and each item alone, then of longer sets pairs i < j line by line, items by sizes of the rest, and sizes
    of the rest by numbers of watched items. A set of at most one item adds `few_weight` to its cell, a longer one
    `weights[s]` to each of its own, both in whole 64ths: the sum is one of whole numbers.

    Attributes:
        sets: that it is about.
        watched: codes of the watched items, ascending, int64, shape (F,).
        bins: where bins of the rest's sizes start, from 0, int64, shape (B,).
        held_bins: where bins of s start, from 0, int64, shape (H,).
        weights: by s, from 0 to the most watched items of a set, in 64ths, int64, shape (most + 1,).
        few_weight: in 64ths.
    """

    kind: ClassVar[str] = "item pairs"
    weight: ClassVar[str] = ""
    whole_rows: ClassVar[int] = 0

    sets: SetsOf
    watched: np.ndarray
    bins: np.ndarray
    held_bins: np.ndarray
    weights: np.ndarray
    few_weight: int

    @cached_property
    def ends(self) -> np.ndarray:
        """Where the four parts of the value end, int64, shape (4,)."""
        f, b = self.watched.size, self.bins.size
        return np.cumsum([1 + self.sets.n_items, f * (f - 1) // 2, f * b, b * self.held_bins.size])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return (int(self.ends[-1]),)

    @cached_property
    def places(self) -> np.ndarray:
        """Place of each item among the watched ones, -1 of others, int64, shape (m,)."""
        places = np.full(self.sets.n_items, -1)
        places[self.watched] = np.arange(self.watched.size)
        return places

    def split(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Parts of a value, shapes (1 + m,), (F(F − 1)/2,), (F, B), (B, H): views where the value is contiguous."""
        few, pairs, by_size, sizes = np.split(value, self.ends[:-1])
        return few, pairs, by_size.reshape(self.watched.size, -1), sizes.reshape(self.bins.size, -1)

    def pair_of(self, first: int, second: int) -> int:
        """Place of a pair of watched items, first < second by their places, among all pairs."""
        f = self.watched.size
        return first * (2 * f - first - 1) // 2 + second - first - 1

    def add(self, total: np.ndarray, sets: CodedSets) -> None:
        """Add some sets to a sum of this shape, in 64ths."""
        few, pairs, by_size, sizes = np.split(total, self.ends[:-1])
        alone = sets.codes[sets.offsets[:-1][sets.lengths == 1]]
        cells = np.concatenate([np.zeros(int((sets.lengths == 0).sum()), dtype=np.int64), 1 + alone])
        few += self.few_weight * np.bincount(cells, minlength=few.size)
        members, bins = self._members(sets[sets.lengths > 1])
        numbers = np.diff(members.indptr)
        weights = self.weights[numbers].astype(np.float64)
        weighted = (sparse.diags_array(weights) @ members).T
        pairs += (weighted @ members).toarray()[np.triu_indices(self.watched.size, 1)]
        member = sparse.csr_array((np.ones(bins.size), (np.arange(bins.size), bins)), (bins.size, self.bins.size))
        by_size += (weighted @ member).toarray().ravel()
        cells = bins * self.held_bins.size + np.searchsorted(self.held_bins, numbers, side="right") - 1
        sizes += np.bincount(cells, weights=weights, minlength=sizes.size)

    def _members(self, sets: CodedSets) -> tuple[sparse.csr_array, np.ndarray]:
        """Which watched items each set holds, shape (n, F), and the bin of how many others."""
        places = self.places[sets.codes]
        among = places >= 0
        owners = sets.owners[among]
        members = sparse.csr_array((np.ones(owners.size), (owners, places[among])), (len(sets), self.watched.size))
        others = sets.lengths - np.bincount(owners, minlength=len(sets))
        return members, np.searchsorted(self.bins, others, side="right") - 1

    def watched_of(self, sets: CodedSets) -> np.ndarray:
        """How many watched items each set holds, int64, shape (n,)."""
        return np.bincount(sets.owners, self.places[sets.codes] >= 0, minlength=len(sets)).astype(np.int64)

    def fault(self, kinds: Mapping[str, object]) -> str | None:
        """The fault for columns of these kinds, or of parts that do not fit each other; None without."""
        if fault := self.sets.fault(kinds):
            return fault
        most = min(self.sets.longest, self.watched.size)
        inside = self.watched.size > 0 and self.watched[0] >= 0 and self.watched[-1] < self.sets.n_items
        inside = inside and bool((np.diff(self.watched) > 0).all())
        binned = all(b.size > 0 and b[0] == 0 and bool((np.diff(b) > 0).all()) for b in (self.bins, self.held_bins))
        binned = binned and self.held_bins[-1] <= most and self.bins[-1] <= self.sets.longest
        weighted = self.weights.shape == (most + 1,) and bool((self.weights > 0).all()) and self.few_weight > 0
        weighted = weighted and bool((self.weights <= WEIGHT_PARTS).all())
        return None if inside and binned and weighted else f"asks of pairs of items of {self.sets.column!r} in no order"
