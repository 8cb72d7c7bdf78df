"""Samples of linked rows: units with their constants and first row, and walks from each row to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.errors import ConfigError, ReleaseError
from sfumato.release.table_samplers import Sampler, TableSoftmax
from sfumato.rules.cells import to_codes
from sfumato.schema.linked import LinkedTables, linked_tables
from sfumato.schema.schema import Schema


class LinkedTable:
    """Units and their rows, as coded rows: each row is drawn given the one before it and the unit's constants."""

    name = "linked_table"
    class_column: str | None = None

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        if not schema.linked:
            raise ReleaseError("Expected a schema of linked rows in the release.")
        self._tables, self._columns = linked_tables(schema), schema.released
        self._units: Sampler = _part(self._tables.units, "units", settings, parameters)
        self._steps: TableSoftmax | None = None
        if self._tables.steps is not None:
            self._steps = _part(self._tables.steps.modelled, "steps", settings, parameters)
            self._steps.require_first(self._tables.n_fixed)
        later = 0 if self._steps is None else self._steps.width + self._tables.max_rows * len(self._columns)
        self.width = self._units.width + later
        self.possible = np.ones(1, dtype=bool)

    @property
    def fixed(self) -> tuple[str, ...]:
        """The columns that no row may have otherwise once a unit is drawn: constants and order."""
        return (*self._tables.constants, *([] if self._tables.order is None else [self._tables.order]))

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return the coded rows of n units, unit after unit."""
        del classes
        return self.units(n, rng)[1]

    def units(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the unit of each row, 0 to n − 1, and coded rows: unit after unit, each unit's in order."""
        first = dict(self._units.rows(n, rng))
        sizes = np.ones(n, dtype=np.int64)
        if self._steps is not None:
            count = first.pop(self._tables.count)
            sizes = 1 + np.rint(count * (self._tables.max_rows - 1)).astype(np.int64)
        owners, rows = [np.arange(n)], [first]
        last, left = first, np.arange(n)
        for place in range(2, self._tables.max_rows + 1):
            going = np.flatnonzero(sizes[left] >= place)
            if not going.size:
                break
            left = left[going]
            last = self._following({name: codes[going] for name, codes in last.items()}, sizes[left], place, rng)
            owners.append(left)
            rows.append(last)
        whose = np.concatenate(owners)
        order = np.argsort(whose, kind="stable")
        return whose[order], {name: np.concatenate([part[name] for part in rows])[order] for name in self._columns}

    def _following(
        self, last: Mapping[str, np.ndarray], sizes: np.ndarray, place: int, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Return the rows after these, of units with so many rows."""
        tables, most = self._tables, max(self._tables.max_rows - 2, 1)
        known = {name: last[name] for name in tables.constants}
        known[tables.count] = (sizes - 2) / most
        known[tables.place] = np.full(sizes.size, (place - 2) / most)
        known |= {before: last[name] for name, before in tables.before.items()}
        assert self._steps is not None
        found = self._steps.followed(known, rng)
        rows = {name: found[name] for name in self._columns}
        if tables.order is not None:
            rows[tables.order] = later_order(tables, found)
        return rows

    def given(self, codes: Mapping[str, float]) -> LinkedTable:
        """Return the sampler given these constants.

        Raises:
            ConfigError: a column is not constant, or the release gives such units probability 0.
        """
        others = [name for name in codes if name not in self._tables.constants]
        if others:
            known = ", ".join(map(repr, self._tables.constants)) or "none"
            raise ConfigError(
                f"Expected given columns that are constant, got {others[0]!r}, which varies from row to row. Constant: "
                f"{known}."
            )
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__)
        found._units = self._units.given(codes)
        return found


def later_order(tables: LinkedTables, steps: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the codes of the order of coded steps: its distance from the row before, put behind that."""
    plan = None if tables.steps is None else tables.steps.rule_plan
    assert plan is not None
    assert tables.order is not None
    column = plan.assembled(steps)[tables.order]
    kind = plan.kinds[tables.order]
    assert isinstance(kind, NumericKind)
    assert isinstance(column, Values)
    return np.where(np.isnan(steps[tables.before[tables.order]]), np.nan, to_codes(kind, column))


def _part(schema: Schema, name: str, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> TableSoftmax:
    """Return the sampler of one of the tables."""
    own = settings.get(name)
    if not isinstance(own, Mapping) or own.get("name") != TableSoftmax.name or own.get("target") is not None:
        raise ReleaseError(f"Expected settings of a chain of {name} in the release.")
    arrays = {key.removeprefix(f"{name}."): a for key, a in parameters.items() if key.startswith(f"{name}.")}
    return TableSoftmax(schema, own, arrays)
