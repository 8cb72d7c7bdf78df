"""Samples of a database: units, and table after table the rows below them, given all that came before."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.errors import ConfigError, ReleaseError
from sfumato.lenses.lens import Units
from sfumato.records.context import Level, Levels, at_distances, before, between, earlier
from sfumato.release.linked import LinkedTable
from sfumato.rules.cells import to_codes
from sfumato.schema.branch_schemas import BranchView, branch_views
from sfumato.schema.schema import Schema


class TableRows(NamedTuple):
    """Rows of a table.

    Attributes:
        above: the row above of each, or the unit itself, shape (n,), not decreasing.
        numbers: its place among those of the row above, from 0.
        rows: coded rows, or values.
    """

    above: np.ndarray
    numbers: np.ndarray
    rows: Mapping[str, Any]


class DatabaseTables:
    """Units with the rows that all tables hold of them.

    Attributes:
        width: numbers that drawing a unit with all its rows takes.
        class_column: None: classes are not modelled apart.
        possible: which classes units can have: the one.
    """

    name = "database"
    class_column: str | None = None

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        if schema.tree is None:
            raise ReleaseError("Expected a schema of several tables in the release.")
        self._schema, self._database = schema, schema.tree
        self._views, self._parts = branch_views(schema), dict[str, LinkedTable]()
        branches = settings.get("branches")
        if not isinstance(branches, Mapping) or set(branches) != set(self._views):
            raise ReleaseError("Expected a chain of every table of the schema in the release.")
        for name, view in self._views.items():
            own, part = branches[name], f"{name}."
            if not isinstance(own, Mapping) or own.get("name") != LinkedTable.name:
                raise ReleaseError("Expected settings of linked rows for every table in the release.")
            arrays = {key.removeprefix(part): a for key, a in parameters.items() if key.startswith(part)}
            self._parts[name] = LinkedTable(view.schema, own, arrays)
            self._parts[name].require_context()
        self._first = next(iter(self._views))
        self.possible = np.ones(1, dtype=bool)
        self.width = sum(
            part.width * self._database.most_rows(self._views[name].branch.of) for name, part in self._parts.items()
        )

    def given(self, codes: Mapping[str, float]) -> DatabaseTables:
        """Return the sampler given these columns of units.

        Raises:
            ConfigError: a column is of another table, or the release gives such units probability 0.
        """
        constant = () if self._schema.unit is None else self._schema.unit.constant
        others = [name for name in codes if name not in constant]
        if others:
            raise ConfigError(
                f"Expected given columns of the table {self._database.units!r}, got {others[0]!r} of another one. Give "
                f"some of {', '.join(map(repr, constant)) or 'none'}."
            )
        sampler = copy.copy(self)
        sampler._parts = {**self._parts, self._first: self._parts[self._first].given(codes)}
        return sampler

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return the coded columns of n units."""
        del classes
        return self.tables(n, rng)[self._database.units].rows

    def tables(self, n: int, rng: np.random.Generator) -> dict[str, TableRows]:
        """Return the rows of n units by table, that of units first."""
        levels, written = Levels(self._schema), dict[str, Mapping[str, Any]]()
        constant = () if self._schema.unit is None else self._schema.unit.constant
        units = self._parts[self._first].units(n, rng)
        starts = np.searchsorted(units.owners, np.arange(n))
        own = {name: np.asarray(units.rows[name])[starts] for name in constant}
        levels.put(self._database.units, Level(np.arange(n), np.arange(n), own))
        for name, view in self._views.items():
            if name != self._first:
                units = self._below(view, levels, rng)
            written[name] = self._put(view, levels, units)
        tables = {self._database.units: TableRows(np.arange(n), np.zeros(n, dtype=np.int64), own)}
        for name in self._views:
            level = levels[name]
            tables[name] = TableRows(level.above, level.numbers, {**level.codes, **written[name]})
        return tables

    def _put(self, view: BranchView, levels: Levels, units: Units) -> dict[str, Values]:
        """Add the rows of a branch; return what is written of them in place of codes."""
        branch, present = view.branch, ~units.without
        above = levels[branch.of]
        owners = units.owners[present]
        codes = {name: np.asarray(units.rows[name])[present] for name in branch.columns}
        kinds = self._schema.of_kind(NumericKind)
        written = at_distances(view, codes)
        codes |= {name: to_codes(kinds[name], values) for name, values in written.items()}
        if branch.within is not None and branch.order is not None:
            ends = {name: np.asarray(units.rows[name])[present] for name in branch.within}
            values = between(self._schema, view, ends, codes[branch.order])
            written[branch.order], codes[branch.order] = values, to_codes(kinds[branch.order], values)
        levels.put(branch.name, Level(owners, above.owners[owners], codes))
        return written

    def _below(self, view: BranchView, levels: Levels, rng: np.random.Generator) -> Units:
        """Return the rows of a branch below all rows above; of a nested one, a unit's rows above in their turn."""
        part, branch = self._parts[view.branch.name], view.branch
        above, context = levels[branch.of], levels.context(view)
        if not self._database.is_nested(branch.name):
            return part.below(context, rng)
        turn = before(np.ones(above.size), above.owners)
        parts: list[Units] = []
        for place in range(int(turn.max(initial=-1)) + 1):
            so_far = _together(parts, branch.columns)
            level = Level(so_far.owners, above.owners[so_far.owners], so_far.rows)
            known = {**context, **earlier(view, above, level)}
            mine = np.flatnonzero(turn == place)
            below = part.below({name: codes[mine] for name, codes in known.items()}, rng)
            parts.append(Units(mine[below.owners], below.rows, below.without))
        return _together(parts, tuple(view.schema.released), without=True)


def _together(parts: list[Units], columns: tuple[str, ...], *, without: bool = False) -> Units:
    """Return units of several draws in order; unless `without`, but for those that stand for none."""
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Units(empty, {name: np.zeros(0) for name in columns}, empty.astype(bool))
    owners, absent = (np.concatenate(arrays) for arrays in ([u.owners for u in parts], [u.without for u in parts]))
    order = np.argsort(owners, kind="stable")
    order = order if without else order[~absent[order]]
    rows = {name: np.concatenate([np.asarray(u.rows[name]) for u in parts])[order] for name in columns}
    return Units(owners[order], rows, absent[order])
