"""Samples of sets whose items are independent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.columns.set_codes import CodedSets
from sfumato.errors import ConfigError, ReleaseError
from sfumato.models.sets import SetEncoder
from sfumato.schema.schema import Schema


class IndependentItems:
    """Sets of items, each there with its own probability; of more than `max_length`, random ones are left out."""

    name = "independent_items"
    class_column: str | None = None

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        self._encoder = SetEncoder.of(schema)
        probabilities = parameters.get("probabilities")
        if probabilities is None or probabilities.shape != (self._encoder.dimension,):
            raise ReleaseError("Expected one probability per item in the release.")
        if probabilities.dtype.kind != "f" or not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise ReleaseError("Expected probabilities between 0 and 1 in the release.")
        # a double more per item would be drawn for nothing where it is never there
        self._items = np.flatnonzero(probabilities > 0)
        self._probabilities = probabilities[self._items]
        self.width = max(1, self._items.size)
        self.possible = np.ones(1, dtype=bool)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded sets."""
        owners, places = np.nonzero(rng.random((n, self._items.size)) < self._probabilities)
        sets = CodedSets.of(owners, self._items[places], n)
        longest = self._encoder.kind.longest
        if (sets.lengths > longest).any():
            order = np.lexsort((rng.random(owners.size), owners))
            kept = np.sort(order[np.arange(owners.size) - sets.offsets[owners] < longest])
            sets = CodedSets.of(owners[kept], sets.codes[kept], n)
        return {self._encoder.name: sets}

    def given(self, codes: Mapping[str, float]) -> IndependentItems:
        """Refuse: sets are not given."""
        raise ConfigError("Expected no given values for a release of sets. Leave them out.")
