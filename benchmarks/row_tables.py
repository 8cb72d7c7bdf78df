"""Tables of a database as rows in context, for `row_model.py`: their columns, of records and of drawn rows alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from row_laws import Settings, pick

from sfumato import Schema
from sfumato.columns.kind import TabularKind, nullable_kind
from sfumato.columns.kinds import Categorical, LevelKind
from sfumato.columns.numbers import Continuous, Integer
from sfumato.lenses.chain import plain_records, plain_schema
from sfumato.methods.tables.features import ColumnShares
from sfumato.records.context import Level, Levels, between, place_between
from sfumato.records.database_records import DatabaseData
from sfumato.rules.cells import codes_of
from sfumato.schema.branch_schemas import BranchView, branch_views
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.linked import end_codes, part_schema


@dataclass
class State:
    """Rows of a table, those of a person together and in order.

    Attributes:
        above: the row above of each.
        owners: the person of each.
        plain: coded columns, free of rules.
        runs: codes of the columns that the law is of.
        ends: per table below, which end each row's rows below have, 0 of none.
        measured: coded columns as they are counted.
    """

    above: np.ndarray
    owners: np.ndarray
    plain: dict[str, np.ndarray]
    runs: dict[str, np.ndarray] = field(default_factory=dict)
    ends: dict[str, np.ndarray] = field(default_factory=dict)
    measured: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def numbers(self) -> np.ndarray:
        return np.arange(self.above.size) - np.searchsorted(self.above, self.above)

    @property
    def under(self) -> np.ndarray:
        return np.searchsorted(self.above, self.above, side="right") - np.searchsorted(self.above, self.above)


@dataclass
class Form:
    """A table, and what is measured of its rows.

    Attributes:
        name, parent, root: of tables; no parent of that of persons.
        kinds: of columns that are counted.
        order: the column that rows are ordered by.
        dates: `gaps`: a date is the distance from the row before; `first`: all dates of a row above are drawn before
            other columns; empty without an order.
        ends: per column of labels, codes after which there is no row.
        nested: columns of labels that depend on two rows before.
        below: tables below.
        last_step: of the order.
    """

    name: str
    parent: str | None
    root: str
    kinds: dict[str, Any]
    order: str = ""
    dates: str = ""
    ends: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    nested: tuple[str, ...] = ()
    max_rows: int = 1
    below: tuple[str, ...] = ()
    last_step: int = 1

    @property
    def end_list(self) -> list[tuple[str, int]]:
        return [(name, code) for name, codes in self.ends.items() for code in codes]

    def schema(self, schema: Schema) -> Schema:
        """Return the schema of what is counted."""
        gone = {"rows": None, "unit": None, "sources": {}, "table_source": {}, "accept": (), "questions": ()}
        return part_schema(replace(schema, columns=dict(self.kinds), rules=(), draft=False, **gone))


def form_of(schema: Schema, views: Mapping[str, BranchView], name: str, mean_rows: float, o: Settings) -> Form:
    """Return the form of a table whose row above has so many rows in the mean, if any."""
    assert schema.tree is not None
    assert schema.unit is not None
    root = schema.tree.units
    below = tuple(other for other, view in views.items() if view.branch.of == name)
    if name == root:
        kinds: dict[str, Any] = {column: schema.columns[column] for column in schema.unit.constant}
        form = Form(name, None, root, kinds, below=below)
    else:
        form = _branch_form(views[name], root, below, mean_rows, o)
    for other in below:
        form.kinds[f"number of {other}"] = Integer(lower=0, upper=views[other].branch.max_rows)
        if ends := end_codes(plain_schema(views[other].schema)):
            form.kinds[f"end of {other}"] = Integer(lower=0, upper=sum(map(len, ends.values())))
    for column, kind in numbers_of_rows(views).items() if name == root else ():
        form.kinds[f"mean of {column}"] = Continuous(lower=kind.lower, upper=kind.upper, nullable=True)
    return form


def _branch_form(view: BranchView, root: str, below: tuple[str, ...], mean_rows: float, o: Settings) -> Form:
    plain, branch = plain_schema(view.schema), view.branch
    kinds: dict[str, Any] = {name: plain.columns[name] for name in plain.released if name in branch.columns}
    order = "" if branch.within is not None or branch.order is None else branch.order
    form = Form(
        branch.name, branch.of, root, kinds, order, ends=end_codes(plain), max_rows=branch.max_rows, below=below
    )
    if not order:
        return form
    form.last_step = kinds[order].steps.last
    form.dates = "first" if mean_rows >= o["dates first"] else "gaps"
    if form.dates == "gaps":
        kinds[f"first {order}"] = nullable_kind(kinds[order])
        if branch.max_rows > 1:
            kinds[f"since {order}"] = Integer(lower=0, upper=form.last_step, nullable=True)
    labels = [name for name, kind in kinds.items() if isinstance(kind, LevelKind)]
    if mean_rows >= o["nested rows"]:
        form.nested = tuple(name for name in labels if (kinds[name].n_levels + 1) ** 2 <= o["nested"])[:2]
    for name in form.nested:
        kinds[f"pair of {name}"] = Categorical(categories=[str(k) for k in range((kinds[name].n_levels + 1) ** 2)])
    return form


def numbers_of_rows(views: Mapping[str, BranchView]) -> dict[str, Any]:
    """Return the kinds of the numbers of rows, but for orders."""
    numbers = dict[str, Any]()
    for view in views.values():
        plain = plain_schema(view.schema)
        names = [name for name in view.branch.columns if name in plain.columns and name != view.branch.order]
        numbers |= {
            name: plain.columns[name] for name in names if isinstance(plain.columns[name], Integer | Continuous)
        }
    return numbers


def end_of(form: Form, plain: Mapping[str, np.ndarray], n: int) -> np.ndarray:
    """Return which end each row is, 0 of none, shape (n,)."""
    kind = np.zeros(n, dtype=np.int64)
    for place, (name, code) in enumerate(form.end_list, 1):
        kind[plain[name] == code] = place
    return kind


def counted_codes(
    form: Form, forms: Mapping[str, Form], views: Mapping[str, BranchView], states: Mapping[str, State]
) -> dict[str, np.ndarray]:
    """Return coded columns that are counted of the rows of a table."""
    state, n = states[form.name], states[form.name].above.size
    rows = {name: state.plain[name] for name in form.kinds if name in state.plain}
    first = state.numbers == 0
    if form.dates == "gaps":
        code = state.plain[form.order]
        before = np.concatenate([[0.0], code[:-1]])[:n]
        rows[f"first {form.order}"] = np.where(first, code, np.nan)
        if form.max_rows > 1:
            rows[f"since {form.order}"] = np.where(first, np.nan, np.clip(code - before, 0, 1))
    for name in form.nested:
        levels = form.kinds[name].n_levels
        codes = state.plain[name].astype(np.int64)
        rows[f"pair of {name}"] = codes * (levels + 1) + np.where(first, levels, np.concatenate([[0], codes[:-1]])[:n])
    for other in (other for other in form.below if f"number of {other}" not in rows):  # of drawn rows it is there
        below = states[other]
        rows[f"number of {other}"] = np.bincount(below.above, minlength=n) / views[other].branch.max_rows
        if f"end of {other}" in form.kinds:
            ends = np.zeros(n, dtype=np.int64)
            np.maximum.at(ends, below.above, end_of(forms[other], below.plain, below.above.size))
            rows[f"end of {other}"], state.ends[other] = ends / len(forms[other].end_list), ends
    for name in (name for name in form.kinds if name.startswith("mean of ")):
        column = name.removeprefix("mean of ")
        below = next(states[other] for other, view in views.items() if column in view.branch.columns)
        known = ~np.isnan(below.plain[column])
        counts = np.bincount(below.owners[known], minlength=n)
        sums = np.bincount(below.owners[known], below.plain[column][known], n)
        rows[name] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return rows


@dataclass
class Dates:
    """How runs of distances, or of first dates, become dates.

    Attributes:
        name: of the column whose runs they are.
        first, end, mass, run: of each piece of a run, its first step, one past its last, its mass, and the run.
        absolute: run of the date at each step.
    """

    name: str
    first: np.ndarray
    end: np.ndarray
    mass: np.ndarray
    run: np.ndarray
    absolute: np.ndarray

    @classmethod
    def of(cls, form: Form, own: Mapping[str, tuple[ColumnGrid, ColumnShares]]) -> Dates:
        grid, shares = own[form.order]
        absolute = shares.drawn[grid.cells(np.arange(form.last_step + 1) / max(form.last_step, 1))]
        pieces, start = [], 0
        for name in (f"since {form.order}", f"first {form.order}"):
            if name in own:
                g, s = own[name]
                assert g.edges is not None
                n = g.edges.size - 1
                runs = s.drawn[:n] + start
                pieces.append(np.column_stack([g.edges[:-1], g.edges[1:], np.maximum(s.shares[:n], 1e-12), runs]))
                start = int(s.drawn[:n].max()) + 1
        first, end, mass, run = np.concatenate(pieces).T
        name = f"{'date' if f'since {form.order}' in own else 'first'} {form.order}"
        return cls(name, first.astype(int), end.astype(int), mass, run.astype(int), absolute)

    def steps(self, runs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a step for each run."""
        steps = np.zeros(runs.size, dtype=np.int64)
        for run in np.unique(runs):
            here, pieces = np.flatnonzero(runs == run), np.flatnonzero(self.run == run)
            piece = pieces[pick(np.tile(self.mass[pieces], (here.size, 1)), rng)]
            steps[here] = rng.integers(self.first[piece], self.end[piece])
        return steps

    def tilt(self, before: np.ndarray, tilt: np.ndarray) -> np.ndarray:
        """Return how much likelier each run is by the dates it leads to from a step, shape (n, runs)."""
        last, sums = self.absolute.size - 1, np.append(0.0, np.cumsum(tilt[self.absolute]))
        out = np.zeros((before.size, int(self.run.max()) + 1))
        for first, end, mass, run in zip(self.first, self.end, self.mass, self.run, strict=True):
            start = np.minimum(before + first, last)
            stop = np.maximum(np.minimum(before + end, last + 1), start + 1)
            out[:, run] += mass * (sums[stop] - sums[start]) / (stop - start)
        return out / np.maximum(np.bincount(self.run, self.mass), 1e-300)


def states_of(schema: Schema, data: DatabaseData) -> dict[str, State]:
    """Return the rows of records, free of rules."""
    assert schema.tree is not None
    levels = Levels(schema)
    for name in schema.tree.names:
        levels[name] = data.level(name)
    top = levels[schema.tree.units]
    states = {schema.tree.units: State(top.above, top.owners, {name: np.asarray(c) for name, c in top.codes.items()})}
    for name, view in branch_views(schema).items():
        level, branch, codes = levels[name], view.branch, dict(levels[name].codes)
        if branch.within is not None and branch.order is not None:
            above = levels.rows(branch.of)
            ends = {column: above[column][level.above] for column in branch.within}
            codes[branch.order] = place_between(schema, view, ends, codes[branch.order])
        rows = plain_records(view.schema, codes)
        states[name] = State(level.above, level.owners, {c: rows[c] for c in rows if c in branch.columns})
    return states


def frames(schema: Schema, drawn: Mapping[str, State]) -> dict[str, pd.DataFrame]:
    """Return drawn rows as tables."""
    assert schema.tree is not None
    assert schema.unit is not None
    kinds, tree, key = schema.of_kind(TabularKind), schema.tree, schema.unit.column
    top = drawn[tree.units]
    levels = Levels(schema)
    levels[tree.units] = Level(top.above, top.owners, {name: top.plain[name] for name in schema.unit.constant})
    tables = {tree.units: _frame({key: top.above}, levels[tree.units].codes, kinds)}
    for name, view in branch_views(schema).items():
        branch, state, plain = view.branch, drawn[name], plain_schema(view.schema)
        above = {column: codes[state.above] for column, codes in levels.rows(branch.of).items()}
        rows: dict[str, Any] = {column: state.plain[column] for column in plain.released if column in state.plain}
        if view.schema.rule_plan is not None and state.above.size:
            rows = dict(view.schema.rule_plan.assembled({**above, **rows}))
        if branch.within is not None and branch.order is not None:
            place = codes_of(
                {branch.order: plain.of_kind(TabularKind)[branch.order]}, {branch.order: rows[branch.order]}
            )
            rows[branch.order] = between(schema, view, {c: above[c] for c in branch.within}, place[branch.order])
        levels[name] = Level(state.above, state.owners, codes_of(kinds, {c: rows[c] for c in branch.columns}))
        of = next((other.key for other in tree.branches if other.name == branch.of), None) or key
        ids = {branch.key: np.arange(state.above.size)} if branch.key else {}
        tables[name] = _frame({**ids, of: state.above}, levels[name].codes, kinds)
    return tables


def _frame(ids: Mapping[str, np.ndarray], codes: Mapping[str, np.ndarray], kinds: Mapping[str, Any]) -> pd.DataFrame:
    columns: dict[str, Any] = dict(ids)
    for name, own in codes.items():
        kind = kinds[name]
        if isinstance(kind, LevelKind):
            columns[name] = np.array([*kind.labels, None], dtype=object)[np.asarray(own).astype(int)]
        elif kind.name == "datetime":
            cells = kind.decode(np.asarray(own, dtype=float), kind.sample_type)
            columns[name] = pd.to_datetime(cells.to_pandas())
        else:
            columns[name] = kind.decoded(np.nan_to_num(np.asarray(own, dtype=float)))[0]
    return pd.DataFrame(columns)
