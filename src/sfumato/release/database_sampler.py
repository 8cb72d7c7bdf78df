"""Samples of a database: units, and table after table the rows below them, given all that came before."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from sfumato.columns.bounded import NumericKind
from sfumato.columns.kind import GivenValue, TabularKind
from sfumato.errors import ConfigError, ReleaseError
from sfumato.lenses.chain import plain_schema, shaped
from sfumato.lenses.lens import Units, UnitSampler, given_values
from sfumato.lenses.unit_rules import together
from sfumato.records.context import Level, Levels, before, between, earlier, totals
from sfumato.release.linked import LinkedTable
from sfumato.rules.cells import as_values, codes_of, taken
from sfumato.schema.branch_schemas import BranchView, branch_views, without_totals
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

    Args:
        schema: of the database.
        settings: of a chain for each table.
        parameters: their arrays.
        tables: that are drawn, the first ones of the schema; by default all.

    Attributes:
        width: numbers that drawing a unit with all its rows takes.
        class_column: the column of units whose classes are modelled apart; None without.
        possible: which classes units can have, shape (k,).
    """

    name = "database"

    def __init__(
        self,
        schema: Schema,
        settings: Mapping[str, Any],
        parameters: Mapping[str, np.ndarray],
        tables: Collection[str] | None = None,
    ) -> None:
        if schema.tree is None:
            raise ReleaseError("Expected a schema of several tables in the release.")
        self._kinds, self._totals = schema.of_kind(NumericKind), schema.tree.branches
        self._schema = schema = without_totals(schema)
        assert schema.tree is not None
        self._database, self._constant = schema.tree, () if schema.unit is None else schema.unit.constant
        views = branch_views(schema)
        self._views = views if tables is None else {name: views[name] for name in tables}
        self._parts = dict[str, UnitSampler]()
        branches = settings.get("branches")
        if not isinstance(branches, Mapping) or set(branches) != set(self._views):
            raise ReleaseError("Expected a chain of every table of the schema in the release.")
        for name, view in self._views.items():
            own, part = branches[name], f"{name}."
            if not isinstance(own, Mapping) or own.get("name") != LinkedTable.name:
                raise ReleaseError("Expected settings of linked rows for every table in the release.")
            arrays = {key.removeprefix(part): a for key, a in parameters.items() if key.startswith(part)}
            chain = LinkedTable(plain_schema(view.schema), own, arrays)
            chain.require_context()
            self._parts[name] = shaped(view.schema, chain)  # type: ignore[assignment] - of units, as the chain is
        self._first = next(iter(self._views))
        self.possible, self.class_column = self._parts[self._first].possible, self._parts[self._first].class_column
        # one table's chain is drawn at a time, of a nested one that of one row above; rows stay, coded and as written
        rows = sum(self._database.most_rows(name) * len(_columns(view)) for name, view in self._views.items())
        self.width = max(part.width for part in self._parts.values()) + 2 * rows

    def given(self, codes: Mapping[str, float]) -> DatabaseTables:
        """Return the sampler given the codes of columns of units: see `given_values`."""
        return self._given(codes, lambda first: first.given(codes))

    def given_values(self, values: Mapping[str, GivenValue]) -> DatabaseTables:
        """Return the sampler given these columns of units.

        Raises:
            ConfigError: a column is of another table, or the release gives such units probability 0.
        """
        return self._given(values, lambda first: given_values(first, values))

    def _given(self, names: Iterable[str], fixed: Callable[[UnitSampler], Any]) -> DatabaseTables:
        constant = self._constant
        others = [name for name in names if name not in constant]
        if others:
            raise ConfigError(
                f"Expected given columns of the table {self._database.units!r}, got {others[0]!r}, which is of another "
                f"one or a total. Give some of {', '.join(map(repr, constant)) or 'none'}."
            )
        sampler = copy.copy(self)
        sampler._parts = {**self._parts, self._first: fixed(self._parts[self._first])}
        sampler.possible = sampler._parts[self._first].possible
        return sampler

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return the columns of n units."""
        return self.tables(n, rng, classes)[self._database.units].rows

    def tables(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, TableRows]:
        """Return the rows of n units by table, that of units first. Classes are drawn if not given."""
        levels, written = self._draw(n, rng, classes)
        for branch in reversed(self._totals):  # of rows below before those above
            above, n = levels[branch.name].above, levels[branch.of].size
            for total, column in branch.totals:
                own = as_values(self._kinds[column], written[branch.name][column])
                written[branch.of] = {**written[branch.of], total: totals(self._kinds[total], above, n, own)}
        return {name: TableRows(levels[name].above, levels[name].numbers, rows) for name, rows in written.items()}

    def levels(self, n: int, rng: np.random.Generator) -> Levels:
        """Return the coded rows of n units in all tables, without totals."""
        return self._draw(n, rng, None)[0]

    def _draw(
        self, n: int, rng: np.random.Generator, classes: np.ndarray | None
    ) -> tuple[Levels, dict[str, Mapping[str, Any]]]:
        """Return the rows of n units, coded and as they are written."""
        levels, units = Levels(self._schema), self._parts[self._first].units(n, rng, classes)
        starts = np.searchsorted(units.owners, np.arange(n))
        written: dict[str, Mapping[str, Any]] = {
            self._database.units: taken({name: units.rows[name] for name in self._constant}, starts)
        }
        levels[self._database.units] = Level(np.arange(n), np.arange(n), self._codes(written[self._database.units]))
        for name, view in self._views.items():
            if name != self._first:
                units = self._below(view, levels, rng)
            written[name] = self._put(view, levels, units)
        return levels, written

    def _codes(self, rows: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the codes of columns, of which some are values as they are written."""
        return codes_of(self._schema.of_kind(TabularKind), rows)

    def _put(self, view: BranchView, levels: Levels, units: Units) -> dict[str, Any]:
        """Add the rows of a branch; return them as they are written."""
        branch, present = view.branch, np.flatnonzero(~units.without)
        owners, rows = units.owners[present], taken({name: units.rows[name] for name in _columns(view)}, present)
        if branch.within is not None and branch.order is not None:
            kinds = view.schema.of_kind(TabularKind)
            place = codes_of(kinds, {name: rows[name] for name in (branch.order, *branch.within)})
            rows[branch.order] = between(self._schema, view, place, place[branch.order])
        rows = {name: rows[name] for name in branch.columns}
        levels[branch.name] = Level(owners, levels[branch.of].owners[owners], self._codes(rows))
        return rows

    def _below(self, view: BranchView, levels: Levels, rng: np.random.Generator) -> Units:
        """Return the rows of a branch below all rows above, in turn where what came before is known of these."""
        part, branch = self._parts[view.branch.name], view.branch
        above, context = levels[branch.of], levels.context(view)
        if not any(feature.form == "earlier mean" for feature in view.features):
            return part.below(context, rng)
        turn = before(np.ones(above.size), above.owners)
        parts: list[Units] = []
        for place in range(int(turn.max(initial=0)) + 1):  # once where there are no rows above
            known = {**context, **earlier(view, above, self._so_far(view, above, parts))}
            mine = np.flatnonzero(turn == place)
            below = part.below({name: codes[mine] for name, codes in known.items()}, rng)
            parts.append(Units(mine[below.owners], {n: below.rows[n] for n in _columns(view)}, below.without))
        return together(parts)

    def _so_far(self, view: BranchView, above: Level, parts: list[Units]) -> Level:
        """Return the rows of a branch that are drawn, in the order of the rows above."""
        if not parts:
            none = np.zeros(0, dtype=np.int64)
            return Level(none, none, {name: np.zeros(0) for name in view.branch.columns})
        units = together(parts)
        present = np.flatnonzero(~units.without)
        rows = taken({name: units.rows[name] for name in view.branch.columns}, present)
        owners = units.owners[present]
        return Level(owners, above.owners[owners], codes_of(view.schema.of_kind(TabularKind), rows))


def _columns(view: BranchView) -> tuple[str, ...]:
    """Return the columns of a branch, and those between which its rows lie."""
    return (*view.branch.columns, *(view.branch.within or ()))
