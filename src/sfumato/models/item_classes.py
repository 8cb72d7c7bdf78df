"""Samples of sets by latent classes: watched items independent given the class, the rest by their number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.maths.arrays import add_to_one, require_array, require_well_formed
from sfumato.models.sets import SetSampler, shortened
from sfumato.schema.schema import Schema

_PAIR = 2
_LARGEST = 1e15
_ROUNDS = 8  # in which items that a set was given twice are drawn again


class ItemClasses(SetSampler):
    """Sets of latent classes (`sfumato.methods.sets.recipe`).

    A set is empty, or one item, with the probability that the release says; else it has a class and a number of items
    that are not watched, and holds two at least. Arrays of a release: `few_shares` (1 + m,), of the empty set and of
    each item alone; `class_shares` (K,), of sets that are drawn until they hold two; `watched` (F,), codes of items;
    `item_shares` (K, F), of these by class; `rest_weights` (m,), how likely each other item is to be drawn, 0 for
    watched ones; `size_starts` (B + 1,), where bins of the number of other items start, and the end of the last;
    `size_shares` (K, B).
    """

    name = "item_classes"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__(schema)
        m = self._encoder.dimension
        self._items = require_array(parameters, "item_shares", np.float64, (None, None))
        require_well_formed(bool(((self._items >= 0) & (self._items <= 1)).all()), "item_shares")
        k, f = self._items.shape
        self._watched = require_array(parameters, "watched", np.int64, (f,))
        inside = (self._watched >= 0).all() and (self._watched < m).all() and (np.diff(self._watched) > 0).all()
        require_well_formed(bool(inside), "watched")
        rest = require_array(parameters, "rest_weights", np.float64, (m,))
        require_well_formed(bool((rest >= 0).all() and (rest <= _LARGEST).all()), "rest_weights")
        rest = rest.copy()
        self._starts = require_array(parameters, "size_starts", np.int64, (None,))
        b = self._starts.size - 1
        single = min(b, _PAIR)  # bins of one number each: what is drawn depends on it
        rising = b >= 1 and (np.diff(self._starts) > 0).all() and self._starts[-1] <= m + 1
        rising = rising and (self._starts[:single] == np.arange(single)).all()
        require_well_formed(bool(rising), "size_starts")
        sizes = require_array(parameters, "size_shares", np.float64, (k, b))
        require_well_formed(add_to_one(sizes), "size_shares")
        self._few_and_many(parameters, sizes)
        # what can never be drawn asks for no draws
        rest[self._watched] = 0.0
        self._others = np.flatnonzero(rest > 0)
        self._cumulated = np.cumsum(rest[self._others])
        self.width = max(1, 2 * f + int(self._starts[-1]))

    def _few_and_many(self, parameters: Mapping[str, np.ndarray], sizes: np.ndarray) -> None:
        """Read the laws of short sets and of longer ones."""
        few = require_array(parameters, "few_shares", np.float64, (1 + self._encoder.dimension,))
        shares = require_array(parameters, "class_shares", np.float64, (len(self._items),))
        require_well_formed(bool((few >= 0).all() and (few <= 2).all()), "few_shares")
        require_well_formed(bool((shares >= 0).all() and (shares <= _LARGEST).all()), "class_shares")
        self._reach = reach(self._items)
        many = drawn_shares(shares, sizes, self._reach)
        law = np.concatenate([few, many.ravel()])
        require_well_formed(bool(law.sum() > 0), "class_shares")
        self._law = np.cumsum(law)
        self._n_few, self._n_bins = few.size, many.shape[1]

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded sets."""
        chosen = np.searchsorted(self._law, rng.random(n) * self._law[-1], side="right")
        chosen = np.minimum(chosen, self._law.size - 1)
        alone = np.flatnonzero((chosen > 0) & (chosen < self._n_few))
        many = np.flatnonzero(chosen >= self._n_few)
        of_class, bins = np.divmod(chosen[many] - self._n_few, self._n_bins)
        low, high = self._starts[bins], self._starts[bins + 1]
        numbers = low + (rng.random(many.size) * (high - low)).astype(np.int64)
        watched_owners, places = self._watched_items(of_class, np.maximum(_PAIR - numbers, 0), rng)
        other_owners, others = self._other_items(np.minimum(numbers, self._others.size), rng)
        owners = np.concatenate([alone, many[watched_owners], many[other_owners]])
        codes = np.concatenate([chosen[alone] - 1, self._watched[places], others])
        order = np.lexsort((codes, owners))
        return {self._encoder.name: shortened(owners[order], codes[order], n, self._encoder.kind.longest, rng)}

    def _watched_items(
        self, classes: np.ndarray, needed: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return owners and places of the watched items of sets of these classes that hold so many at least.

        One item after the other: it is there with the probability that it is, given how many are still needed.
        """
        members = np.zeros((self._watched.size, classes.size), dtype=bool)
        needed = needed.copy()
        for i, share in enumerate(self._items.T):
            reach, after = self._reach[:, i], self._reach[:, i + 1]
            p = share[classes] * after[np.maximum(needed - 1, 0), classes]
            p = np.where(needed == 0, share[classes], p / np.maximum(reach[needed, classes], 1e-300))
            members[i] = rng.random(classes.size) < p
            needed -= members[i] & (needed > 0)
        places, owners = np.nonzero(members)
        return owners, places

    def _other_items(self, numbers: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return owners and codes of so many different other items a set.

        Drawn by their weights, some twice, which are drawn again; after a few rounds what is missing stays missing.
        """
        m = self._encoder.dimension
        pairs = np.zeros(0, dtype=np.int64)
        missing = numbers
        for _ in range(_ROUNDS):
            if not missing.any():
                break
            owners = np.repeat(np.arange(numbers.size), missing)
            places = np.searchsorted(self._cumulated, rng.random(owners.size) * self._cumulated[-1], side="right")
            codes = self._others[np.minimum(places, self._others.size - 1)]
            pairs = np.union1d(pairs, owners * m + codes)
            missing = numbers - np.bincount(pairs // m, minlength=numbers.size)
        return pairs // m, pairs % m


def reach(items: np.ndarray) -> np.ndarray:
    """Return the probability that items i, i + 1, … together come at least t times, shape (3, F + 1, K), t = 0, 1, 2.

    Args:
        items: shares of independent items by class, shape (K, F).

    Example:
        >>> reach(np.array([[0.5, 0.5]]))[:, 0, 0]
        array([1.  , 0.75, 0.25])
    """
    k, f = items.shape
    reached = np.zeros((_PAIR + 1, f + 1, k))
    reached[0] = 1.0
    for i in range(f - 1, -1, -1):
        for t in range(1, _PAIR + 1):
            reached[t, i] = items[:, i] * reached[t - 1, i + 1] + (1 - items[:, i]) * reached[t, i + 1]
    return reached


def drawn_shares(shares: np.ndarray, sizes: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Return the shares of sets of two items or more by class and size of the rest, shape (K, B).

    Args:
        shares: of classes, sets of less than two items counted, shape (K,).
        sizes: by class, shape (K, B).
        reached: of the classes' items, as `reach` says.
    """
    many = shares[:, None] * sizes
    for size in range(min(_PAIR, many.shape[1])):
        many[:, size] *= reached[_PAIR - size, 0]
    return many
