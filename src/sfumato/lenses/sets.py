"""Sets beside other columns as a lens: each item's truth value is a column, and sets are made of these.

Proof: docs/proofs/sets_beside_columns.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.columns.kind import ColumnKind, GivenValue
from sfumato.lenses.lens import Sampler, given_values
from sfumato.schema.set_columns import IN, SetColumn, with_items


@dataclass(frozen=True, slots=True)
class SetsLens:
    """Columns of sets beside others.

    Attributes:
        sets: the columns, with those of their items.
    """

    sets: Mapping[str, SetColumn]

    def columns(self, columns: Mapping[str, ColumnKind]) -> dict[str, ColumnKind]:
        """Columns with those of items in the place of sets."""
        return with_items(columns, self.sets)

    def code(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Records with truth values."""
        for name, column in self.sets.items():
            rows |= column.held(rows.pop(name))
        return rows

    def rows(self, inner: Sampler) -> Sampler:
        """Rows whose sets hold the items that are drawn."""
        return SetRows(self.sets, inner)


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

    def given_values(self, values: Mapping[str, GivenValue]) -> Sampler:
        """Return the sampler given these values, of items by the names of their columns."""
        inner = given_values(self._inner, values)
        return SetRows(self.sets, inner, {name: value.code for name, value in values.items()})
