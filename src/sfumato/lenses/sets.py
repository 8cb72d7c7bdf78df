"""Sets beside other columns as a lens: each item's truth value is a column, and sets are made of these.

Proof: docs/proofs/sets_beside_columns.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.columns.kind import ColumnKind, GivenValue
from sfumato.lenses.lens import Around, Sampler, Units, UnitSampler, UnitsAround, given_values
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
            rows |= column.truth_values(rows.pop(name))
        return rows

    def rows(self, inner: Sampler) -> Sampler:
        """Rows, or units with rows, whose sets hold the items that are drawn."""
        return SetUnits(self.sets, inner) if isinstance(inner, UnitSampler) else SetRows(self.sets, inner)


class SetRows(Around):
    """Rows whose sets hold the items that a sampler draws, at most `max_length` of them.

    Args:
        sets: the columns of sets.
        inner: a sampler of rows with a truth value for each item.
        given: codes of what all rows have, by columns of `inner`.
    """

    def __init__(self, sets: Mapping[str, SetColumn], inner: Sampler, given: Mapping[str, float] | None = None) -> None:
        super().__init__(inner, sum(len(column.items) for column in sets.values()))
        self.sets, self._fixed = sets, _given_items(sets, given or {})

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded rows with `CodedSets`."""
        return _with_sets(self._inner.rows(n, rng, classes), self.sets, rng, self._fixed)

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes, of items by the names of their columns."""
        return SetRows(self.sets, self._inner.given(codes), codes)

    def given_values(self, values: Mapping[str, GivenValue]) -> Sampler:
        """Return the sampler given these values, of items by the names of their columns."""
        inner = given_values(self._inner, values)
        return SetRows(self.sets, inner, {name: value.code for name, value in values.items()})


class SetUnits(UnitsAround):
    """Units in whose rows sets hold the items that a sampler draws, at most `max_length` of them.

    Args:
        sets: the columns of sets.
        inner: a sampler of units whose rows have a truth value for each item.
    """

    def __init__(self, sets: Mapping[str, SetColumn], inner: UnitSampler) -> None:
        super().__init__(inner, sum(len(column.items) for column in sets.values()))
        self.sets = sets

    def units(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Units:
        """Return n units, numbered from 0, and coded rows with `CodedSets`."""
        return self._with_sets(self._inner.units(n, rng, classes), rng)

    def below(self, context: Mapping[str, np.ndarray], rng: np.random.Generator) -> Units:
        """Return units that have these coded constants, in their order, and coded rows with `CodedSets`."""
        return self._with_sets(self._inner.below(context, rng), rng)

    def _with_sets(self, units: Units, rng: np.random.Generator) -> Units:
        return units._replace(rows=_with_sets(units.rows, self.sets, rng, _given_items(self.sets, {})))

    def given(self, codes: Mapping[str, float]) -> SetUnits:
        """Return the sampler given the codes of constants, none of which is a set."""
        return SetUnits(self.sets, self._inner.given(codes))

    def given_values(self, values: Mapping[str, GivenValue]) -> SetUnits:
        """Return the sampler given the values of constants, none of which is a set."""
        inner = given_values(self._inner, values)
        assert isinstance(inner, UnitSampler)
        return SetUnits(self.sets, inner)


def _given_items(sets: Mapping[str, SetColumn], given: Mapping[str, float]) -> dict[str, frozenset[int]]:
    """Return the items that are given to be in each set."""
    return {
        name: frozenset(code for code, item in enumerate(column.items) if given.get(item) == IN)
        for name, column in sets.items()
    }


def _with_sets(
    rows: Mapping[str, Any],
    sets: Mapping[str, SetColumn],
    rng: np.random.Generator,
    fixed: Mapping[str, frozenset[int]],
) -> dict[str, Any]:
    """Return rows whose truth values are sets, which hold the fixed items whatever is left out of those too long."""
    whole = dict(rows)
    for name, column in sets.items():
        items = {item: whole.pop(item) for item in column.items}
        whole[name] = column.sets(items, rng, fixed[name])
    return whole
