"""Samples with sets beside other columns: a sampler of each item's truth value, and sets made of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.release.samplers import Sampler
from sfumato.schema.set_columns import IN, SetColumn


class SetRows:
    """Rows whose sets hold the items that a sampler draws, at most `max_length` of them.

    Args:
        sets: the columns of sets.
        inner: a sampler of rows with a truth value for each item.
        given: codes of what all rows have, by columns of `inner`.
    """

    def __init__(self, sets: Mapping[str, SetColumn], inner: Sampler, given: Mapping[str, float] | None = None) -> None:
        self.sets, self._inner = sets, inner
        self._kept = {
            name: frozenset(code for code, item in enumerate(column.items) if (given or {}).get(item) == IN)
            for name, column in sets.items()
        }
        self.width = inner.width + sum(len(column.items) for column in sets.values())
        self.class_column = inner.class_column

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have."""
        return self._inner.possible

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded rows with `CodedSets`."""
        rows = dict(self._inner.rows(n, rng, classes))
        for name, column in self.sets.items():
            items = {item: rows.pop(item) for item in column.items}
            rows[name] = column.sets(items, rng, self._kept[name])
        return rows

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes, of items by the names of their columns."""
        return SetRows(self.sets, self._inner.given(codes), codes)


class ItemRows:
    """Rows with sets as truth values of items: as records are coded for a fit."""

    def __init__(self, rows: SetRows) -> None:
        self._rows = rows
        self.width, self.class_column = rows.width, rows.class_column

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have."""
        return self._rows.possible

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows."""
        rows = self._rows.rows(n, rng, classes)
        for name, column in self._rows.sets.items():
            rows |= column.held(rows.pop(name))
        return rows

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes."""
        return self._rows.given(codes)
