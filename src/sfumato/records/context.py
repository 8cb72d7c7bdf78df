"""What is known of a row when rows below it are drawn: the context of a branch, of records and of samples alike.

Each row's context is a function of its own unit's rows alone (`sfumato.schema.branch_schemas`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.lenses.chain import plain_records
from sfumato.records.engine import Rows
from sfumato.records.histories import GRAIN
from sfumato.records.sequences import Sequences, absent_code
from sfumato.rules.cells import as_values, fitted
from sfumato.schema.branch_features import Feature
from sfumato.schema.branch_schemas import BranchView
from sfumato.schema.database import Database
from sfumato.schema.schema import Schema


@final
@dataclass(frozen=True, eq=False)
class Level:
    """The rows of a table of a database, those of a unit together and in order.

    Attributes:
        above: the row above of each, shape (n,), not decreasing; of units their own places.
        owners: the unit of each, shape (n,), not decreasing.
        codes: coded columns.
    """

    above: np.ndarray
    owners: np.ndarray
    codes: Rows

    @property
    def size(self) -> int:
        """How many rows."""
        return self.owners.size

    @property
    def numbers(self) -> np.ndarray:
        """The place of each row among those of the row above, from 0, shape (n,)."""
        return np.arange(self.size) - np.searchsorted(self.above, self.above)


class Levels(dict[str, Level]):
    """The tables of a database from above down, as far as they are known.

    Args:
        schema: of the database.
    """

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        assert schema.tree is not None
        self._database: Database = schema.tree

    def ancestors(self, name: str, above: str) -> np.ndarray:
        """Return the row of a table above that each row of a table lies below, shape (n,)."""
        path = (self._database.units, *self._database.path(name))
        rows = np.arange(self[name].size)
        for step in reversed(path[path.index(above) + 1 :]):
            rows = self[step].above[rows]
        return rows

    def rows(self, name: str) -> dict[str, np.ndarray]:
        """Return the rows of a table with the coded columns of those above."""
        rows: dict[str, np.ndarray] = {}
        for step in (self._database.units, *self._database.path(name)):
            place = self.ancestors(name, step)
            rows |= {column: codes[place] for column, codes in self[step].codes.items()}
        return rows

    def context(self, view: BranchView) -> dict[str, np.ndarray]:
        """Return the constants of a branch: coded columns of the rows above, but for those that rows before say."""
        name = view.branch.of
        rows = self.rows(name)
        for feature in view.features:
            if feature.form != "earlier mean":
                rows[feature.name] = self.said(feature, name)
        return rows

    def said(self, feature: Feature, name: str) -> np.ndarray:
        """Return what a branch says of a row above each row of a table, shape (n,)."""
        return self._said(feature)[self.ancestors(name, feature.above)]

    def _said(self, feature: Feature) -> np.ndarray:
        """Return what a branch says of each row above, shape (rows above,)."""
        level, n = self[feature.branch], self[feature.above].size
        place = self.ancestors(feature.branch, feature.above)
        if feature.form == "number":
            lower, upper = feature.kind.bounds  # type: ignore[attr-defined] - whole numbers
            return np.minimum(np.bincount(place, minlength=n), upper) / max(upper - lower, 1)
        codes = np.asarray(level.codes[feature.column], dtype=np.float64)
        if feature.form in ("latest", "earliest"):
            side = 1 if feature.form == "latest" else -1
            most = np.full(n, -np.inf)
            np.fmax.at(most, place, side * codes)
            return np.where(np.isfinite(most), side * most, np.nan)
        if feature.form == "mean":
            return mean_codes(*sums(place, codes, n))
        if feature.form == "ever":
            return (np.bincount(place, codes == feature.level, minlength=n) > 0).astype(np.int64)
        last = np.full(n, absent_code(feature.kind))
        last[place] = codes  # of several, the last
        return last


def totals(kind: NumericKind, above: np.ndarray, n: int, column: Values) -> Values:
    """Return the totals of a column over the rows below each of n rows; what is missing counts as nothing."""
    whole = np.bincount(above, np.where(column.absent, 0, column.values), minlength=n)
    return Values(fitted(kind, whole), np.zeros(n, dtype=bool))


def sums(place: np.ndarray, codes: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sum of what is not missing, and how many that is, of each of n rows above."""
    valid = ~np.isnan(codes)
    return np.bincount(place[valid], codes[valid], minlength=n), np.bincount(place[valid], minlength=n)


def mean_codes(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return means; missing of nothing."""
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def before(values: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Return the sum of the whole numbers before each row, of the same unit, int64: exact, whatever others have."""
    values = np.rint(values).astype(np.int64)
    total = np.cumsum(values) - values
    return total - total[np.searchsorted(owners, owners)]


def earlier(view: BranchView, above: Level, level: Level) -> dict[str, np.ndarray]:
    """Return means of a branch's rows so far under earlier rows above of the same unit, for each row above."""
    rows = {}
    for feature in view.features:
        if feature.form != "earlier mean":
            continue
        codes = np.asarray(level.codes[feature.column], dtype=np.float64)
        # of whole numbers, so that no rounding carries from one unit to the next
        total, count = sums(level.above, np.rint(codes * GRAIN), above.size)
        counts = before(count, above.owners)
        rows[feature.name] = mean_codes(before(total, above.owners) / GRAIN, counts)
    return rows


def sequences_of(schema: Schema, view: BranchView, levels: Levels) -> Sequences:
    """Return the rows of a branch as plain linked rows of the rows above, whose constants are their context.

    Args:
        schema: of the database.
        view: of the branch.
        levels: its rows, and those of all tables before it.
    """
    branch, plan = view.branch, view.schema.rule_plan
    level, above = levels[branch.name], levels[branch.of]
    context, codes = {**levels.context(view), **earlier(view, above, level)}, dict(level.codes)
    if branch.within is not None and branch.order is not None:
        ends = {name: context[name][level.above] for name in branch.within}
        codes[branch.order] = place_between(schema, view, ends, codes[branch.order])
    beside = () if plan is None else context.keys() & {*plan.gaps.values()}  # of what a row is at a distance from
    rows = plain_records(view.schema, {**codes, **{name: context[name][level.above] for name in beside}})
    codes = {name: column for name, column in rows.items() if name not in beside}
    sizes = np.bincount(level.above, minlength=above.size)
    owners = above.owners if view.is_nested else None
    return Sequences(sizes, np.cumsum(sizes) - sizes, codes, context, owners)


def place_between(schema: Schema, view: BranchView, context: Rows, codes: np.ndarray) -> np.ndarray:
    """Return where the order of rows lies between two columns of rows above, in [0, 1]; outside is at an end."""
    start, end, kind = _ends(schema, view, context)
    order = as_values(kind, codes)
    span = (end - start).astype(np.float64)
    place = (order.values - start).astype(np.float64) / np.where(span > 0, span, 1.0)
    return np.where(span > 0, np.clip(place, 0.0, 1.0), 0.0)


def between(schema: Schema, view: BranchView, context: Rows, place: np.ndarray) -> Values:
    """Return the order of rows from its place between two columns of rows above; where these are turned, the start."""
    start, end, kind = _ends(schema, view, context)
    lower, upper = kind.bounds
    wanted = start + place * np.maximum(end - start, 0).astype(np.float64)
    values, absent = kind.decoded(np.clip((wanted - lower) / (max(float(upper - lower), 0) or 1.0), 0.0, 1.0))
    return Values(np.maximum(np.minimum(values, end), start).astype(values.dtype), absent)


def _ends(schema: Schema, view: BranchView, context: Rows) -> tuple[np.ndarray, np.ndarray, NumericKind]:
    assert view.branch.within is not None
    assert view.branch.order is not None
    kinds = schema.of_kind(NumericKind)
    start, end = (as_values(kinds[name], context[name]) for name in view.branch.within)
    return start.values, end.values, kinds[view.branch.order]
