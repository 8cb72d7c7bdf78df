"""Sets of items as binary vectors, dense or sparse, and back.

A set of at most L of m items is a vector in {0, 1}^m with at most L ones: its norm is at most √min(L, m), a bound that
the schema states.

Samples of sets whose items are independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from scipy import sparse

from sfumato.columns.sets import CodedSets, ItemSet
from sfumato.errors import ConfigError, ReleaseError
from sfumato.schema.schema import Schema


@final
@dataclass(frozen=True, slots=True)
class SetEncoder:
    """The map between coded sets and binary vectors; a function of the schema alone.

    Attributes:
        name: the column of sets.
        kind: its kind.

    Example:
        >>> encoder = SetEncoder("basket", ItemSet(n_items=4, max_length=2))
        >>> encoder.encode({"basket": CodedSets(np.array([0, 2, 2]), np.array([1, 3]))})
        array([[0., 1., 0., 1.],
               [0., 0., 0., 0.]], dtype=float32)
        >>> encoder.norm_bound**2
        2.0000000000000004
    """

    name: str
    kind: ItemSet

    @classmethod
    def of(cls, schema: Schema) -> SetEncoder:
        """Return the encoder of a schema that releases one column, of sets.

        Raises:
            ConfigError: it releases other columns.
        """
        released = schema.released
        kind = schema.of_kind(ItemSet).get(released[0])
        if len(released) != 1 or kind is None:
            raise ConfigError(
                f"Expected a schema that releases one column of kind set and nothing else, got "
                f"{', '.join(map(repr, released[:20]))}. Declare the others as identifier to leave them out."
            )
        return cls(released[0], kind)

    @property
    def dimension(self) -> int:
        """Number of entries of a vector, m."""
        return self.kind.size

    @property
    def norm_bound(self) -> float:
        """Largest ℓ2 norm of a set's vector, √min(L, m)."""
        return float(np.sqrt(self.kind.longest))

    def sets(self, rows: Mapping[str, Any]) -> CodedSets:
        """Return the coded sets of some rows.

        Raises:
            ConfigError: they hold no sets under this column's name.
        """
        sets = rows.get(self.name)
        if not isinstance(sets, CodedSets):
            raise ConfigError(f"Expected coded sets in column {self.name!r}.")
        return sets

    def encode(self, rows: Mapping[str, Any]) -> np.ndarray:
        """Return coded sets as vectors of 0 and 1, shape (n, m), float32.

        Privacy: none (pure function); vector i depends on set i alone, and has norm at most `norm_bound`.
        """
        sets = self.sets(rows)
        vectors = np.zeros((len(sets), self.dimension), dtype=np.float32)
        vectors[sets.owners, sets.codes] = 1
        return vectors

    def encode_sparse(self, rows: Mapping[str, Any]) -> sparse.csr_array:
        """Return coded sets as a sparse matrix of shape (n, m), float32; what `encode` returns, in less memory."""
        sets = self.sets(rows)
        ones = np.ones(sets.codes.size, dtype=np.float32)
        return sparse.csr_array((ones, sets.codes, sets.offsets), shape=(len(sets), self.dimension))

    def decode(self, vectors: np.ndarray) -> dict[str, CodedSets]:
        """Return coded sets for vectors; the inverse of `encode`, and total.

        An item is in the set where its entry is above ½. Of more than L such items the L largest entries are kept, the
        first of equals. NaN is in no set.

        Args:
            vectors: shape (n, m), any floats.

        Raises:
            ConfigError: the shape is another.
        """
        vectors = np.asarray(vectors)
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            raise ConfigError(f"Expected vectors of shape (n, {self.dimension}), got {vectors.shape}.")
        owners, codes = np.nonzero(vectors > 0.5)
        sets = CodedSets.of(owners, codes, len(vectors))
        if (sets.lengths > self.kind.longest).any():
            order = np.lexsort((codes, -vectors[owners, codes], owners))
            rank = np.arange(owners.size) - sets.offsets[owners]
            largest = np.sort(order[rank < self.kind.longest])
            sets = CodedSets.of(owners[largest], codes[largest], len(vectors))
        return {self.name: sets}


def shortened(owners: np.ndarray, codes: np.ndarray, n: int, longest: int, rng: np.random.Generator) -> CodedSets:
    """Return n sets of (owner, code) pairs sorted by both; of one that is too long, random items are left out."""
    sets = CodedSets.of(owners, codes, n)
    if (sets.lengths > longest).any():
        order = np.lexsort((rng.random(owners.size), owners))
        chosen = np.sort(order[np.arange(owners.size) - sets.offsets[owners] < longest])
        sets = CodedSets.of(owners[chosen], sets.codes[chosen], n)
    return sets


class SetSampler:
    """What samplers of sets share: the column, and no classes and no given values."""

    class_column: str | None = None

    def __init__(self, schema: Schema) -> None:
        self._encoder = SetEncoder.of(schema)
        self.possible = np.ones(1, dtype=bool)

    def given(self, codes: Mapping[str, float]) -> Self:
        """Refuse: sets are not given."""
        raise ConfigError("Expected no given values for a release of sets. Leave them out.")


class IndependentItems(SetSampler):
    """Sets of items, each there with its own probability; of more than `max_length`, random ones are left out."""

    name = "independent_items"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__(schema)
        probabilities = parameters.get("probabilities")
        if probabilities is None or probabilities.shape != (self._encoder.dimension,):
            raise ReleaseError("Expected one probability per item in the release.")
        if probabilities.dtype.kind != "f" or not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise ReleaseError("Expected probabilities between 0 and 1 in the release.")
        # a double more per item would be drawn for nothing where it is never there
        self._items = np.flatnonzero(probabilities > 0)
        self._probabilities = probabilities[self._items]
        self.width = max(1, self._items.size)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded sets."""
        owners, places = np.nonzero(rng.random((n, self._items.size)) < self._probabilities)
        return {self._encoder.name: shortened(owners, self._items[places], n, self._encoder.kind.longest, rng)}
