"""A coming model of databases, measured by `many.py --kinds rows` before it replaces today's: rows in context.

Every table is a flat table of its rows, each with what is known when it is drawn: its own columns in the row before,
the row above, the person. A mixture of products is fitted to clipped sums of pairs of columns, a person's together, and
rows are drawn from its conditional laws, from the persons down. What is known of a row comes of drawn rows, and is not
measured. `row_tables.py` says which columns a table has, `row_laws.py` what is measured of pairs.

    margins   counts of cells, values and endings of own columns; a person's counts clipped together by their norm
    pairs     sums of products of features of two columns, clipped likewise, in `Pairs`
    draw      a row's component given all that is known, then its columns; twice more with codes made likelier or less
              until own margins are those measured; a date also by the dates that a distance leads to

Sums are floats with numpy's noise here: figures, no guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from row_laws import SETTINGS, Column, Pairs, RowLaw, clipped, gaussian
from row_tables import Dates, Form, State, counted_codes, form_of, frames, states_of

from sfumato import Schema
from sfumato.fitting.synthesizer import open_records
from sfumato.measurements.cells import BaseCells
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import CellCounts
from sfumato.methods.tables.features import ColumnShares, Waves
from sfumato.methods.tables.shares import Resolution, column_shares, released_total
from sfumato.records.database_records import DatabaseData
from sfumato.schema.branch_schemas import branch_views
from sfumato.schema.grid import ColumnGrid, Grid

WAVES, GROUPS = Waves(3, 0.7), 64


def squares_of_counts(statistic: CellCounts, rows: Mapping[str, np.ndarray], owners: np.ndarray, n: int) -> np.ndarray:
    """Return the squared norm of what the rows of each person add to counts together, shape (n,)."""
    base, squares, start = BaseCells(rows), np.zeros(n), 0
    step = statistic.step
    for query in (statistic.run_query, statistic.cell_query, statistic.value_query, statistic.ending_query):
        for (cells,) in query.tables:
            codes = base.of(cells)
            pairs, counts = np.unique(owners * cells.size + codes, return_counts=True)
            squares += np.bincount(pairs // cells.size, (step[start] * counts) ** 2, n)
        start += int(np.prod(query.shape))
    return squares


class FittedTable:
    """A table's margins and its law.

    Attributes:
        form: of the table.
        own: cells and shares of the columns that were counted.
        columns: of rows in context, own ones first.
        laws: shares of their codes.
        tilts: of own columns, how much likelier each code is drawn.
        statistic, clip: of the margins, the norm of a person's counts.
    """

    def __init__(self, form: Form, own: dict[str, tuple[ColumnGrid, ColumnShares]]) -> None:
        self.form, self.own = form, own
        self.columns: list[Column] = []
        self.laws: list[np.ndarray] = []
        self.stds: list[float] = []
        self.tilts: dict[str, np.ndarray] = {}
        self.statistic: CellCounts | None = None
        self.clip = np.inf
        self.rows: RowLaw | None = None
        self.dates = Dates.of(form, own) if form.dates == "gaps" else None

    @property
    def later(self) -> int:
        """How many codes of a date are distances from the row before; others are first dates."""
        return int(self.own[f"since {self.form.order}"][1].drawn.max()) if self._spaced else 0

    @property
    def _spaced(self) -> bool:
        return f"since {self.form.order}" in self.own

    def own_columns(self, state: State) -> None:
        """Note own columns, with codes of the rows."""
        for name, (grid, shares) in self.own.items():
            if name.startswith("pair of "):
                continue
            codes, law = shares.drawn[grid.cells(state.measured[name])], shares.law()
            if name.startswith("since "):  # a distance, or a first date
                first, begin = self.columns.pop(), self.laws.pop()[:-1]
                start = float(np.clip((begin.sum() + law[-1]) / 2, 1e-4, 1 - 1e-4))
                law = np.concatenate([law[:-1] / law[:-1].sum() * (1 - start), begin / begin.sum() * start])
                codes = np.where(codes == self.later, self.later + first.codes, codes)
                name = f"date {self.form.order}"
                self.stds.pop()
            absolute = self.dates is not None and name == self.form.order
            of, mean = "absolute" if absolute else "", name.startswith("mean of ")
            self.columns.append(Column(name, codes, law.size, shares.ordered, of=of, mean=mean))
            self.laws.append(law)
            self.stds.append(shares.share_std)
            state.runs[name] = codes

    def before(self, runs: Mapping[str, np.ndarray], numbers: np.ndarray) -> list[Column]:
        """Return own columns of the row before, of all rows in order, with a code for none."""
        columns, form = list[Column](), self.form
        for own in self.columns if form.max_rows > 1 else ():
            if own.role != "own" or own.name == form.order or own.name.startswith(("first ", "date ")):
                continue
            codes = runs[own.name]
            one, two = (
                np.where(numbers >= k, np.concatenate([np.zeros(k, dtype=int), codes])[: codes.size], own.size)
                for k in (1, 2)
            )
            if own.name in form.nested:
                k = own.size + 1
                pair, groups = one * k + two, np.arange(k * k) // k
                columns.append(Column(f"before {own.name}", pair, k * k, 0, "before", own.name, groups))
            else:
                columns.append(Column(f"before {own.name}", one, own.size + 1, own.ordered, "before", own.name))
        return columns

    def law_before(self, column: Column, start: float, *, exact: bool) -> np.ndarray:
        """Return the shares of a column of the row before, by those of rows and of pairs of rows."""
        if exact:
            law = np.bincount(column.codes, minlength=column.size) + 0.5
        elif column.groups is None:
            place = next(j for j, own in enumerate(self.columns) if own.name == column.of)
            law = np.append(self.laws[place] * (1 - start), start)
        else:
            k = int(np.sqrt(column.size))
            table = self.own[f"pair of {column.of}"][1].shares[: k * k].reshape(k, k).copy()  # a row and that before
            table[-1] = 0
            table[[code for name, code in self.form.end_list if name == column.of]] = 0
            table *= (1 - start) / max(table.sum(), 1e-12)
            table[-1, -1] = start
            law = np.maximum(table, 1e-7).ravel()
        return law / law.sum()

    def codes(self, runs: Mapping[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return codes of values in runs."""
        codes = {}
        for name, (grid, shares) in self.own.items():
            if name not in runs:
                continue
            cells = np.empty(runs[name].size, dtype=np.int64)
            for run in np.unique(runs[name]):
                of, here = np.flatnonzero(shares.drawn == run), np.flatnonzero(runs[name] == run)
                mass = np.cumsum(np.maximum(shares.shares[of], 1e-15))
                u = (rng.permutation(here.size) + rng.random(here.size)) / here.size * mass[-1]
                cells[here] = of[np.minimum(np.searchsorted(mass, u), of.size - 1)]
            codes[name] = grid.codes(cells, rng)
        return codes


class RowModel:
    """Tables of a schema, fitted and drawn in turn.

    Args:
        schema: of a database.
        data: its tables.
        settings: that differ from `SETTINGS`.
    """

    def __init__(self, schema: Schema, data: Mapping[str, pd.DataFrame], **settings: Any) -> None:
        self.schema, self.views, self.o = schema, branch_views(schema), {**SETTINGS, **settings}
        self.records = states_of(schema, DatabaseData(open_records(dict(data), schema), schema))  # type: ignore[arg-type]
        self.forms: dict[str, Form] = {}
        self.fitted: dict[str, FittedTable] = {}
        self.drawn: dict[str, State] = {}

    def sample(self, epsilon: float, delta: float, rng: np.random.Generator) -> dict[str, pd.DataFrame]:
        """Fit with noise for (ε, δ), none of ε = 0, and return as many persons with their rows."""
        root, o, std = next(iter(self.records)), self.o, gaussian(epsilon, delta)
        parts = dict.fromkeys(self.records, 1.0)
        parts[root] = o["lone root"] if len(parts) == 2 else 1.0
        self.forms = {name: form_of(self.schema, self.views, name, 1.0, o) for name in self.records}
        for name in self.records:
            rows_each = 1.0
            if name != root:
                parent = self.drawn[self.views[name].branch.of]
                numbers = self._numbers(parent, name)
                persons = np.bincount(parent.owners, numbers, self.records[root].owners.size)
                rows_each = float(persons.sum() / max((persons > 0).sum(), 1))
                mean_rows = float(numbers.sum() / max((numbers > 0).sum(), 1))
                self.forms[name] = form_of(self.schema, self.views, name, mean_rows, o)
            noise = std / np.sqrt(parts[name] / sum(parts.values()))
            self._fit(self.forms[name], noise, rows_each, epsilon or 10.0, rng)
        return frames(self.schema, self.drawn)

    def _numbers(self, parent: State, name: str) -> np.ndarray:
        return np.rint(parent.plain[f"number of {name}"] * self.views[name].branch.max_rows).astype(np.int64)

    def _margins(self, form: Form, std: float, rows_each: float, rng: np.random.Generator) -> FittedTable:
        """Return a table with what is counted of its own columns."""
        o, state, root = self.o, self.records[form.name], form.parent is None
        state.measured = counted_codes(form, self.forms, self.views, self.records)
        grid = Grid.of(form.schema(self.schema), numeric_cells=o["cells"], narrow=True)
        statistic, n = CellCounts(grid), self.records[form.root].owners.size
        clip = float(np.sqrt(statistic.squares) * (1.0 if root else o["margin clip"] * np.sqrt(max(rows_each, 1.0))))
        std = std / np.sqrt(o["root margins"] if root else o["margins"])
        counted = np.ones(state.owners.size)
        if std and not root:
            counted = clipped(squares_of_counts(statistic, state.measured, state.owners, n), clip)[state.owners]
        total = statistic.zero()
        statistic.add_weighted(total, state.measured, counted)
        noisy = Noisy(total * statistic.step + std * clip * rng.normal(size=total.size), std * clip)
        size, own = released_total(noisy, statistic), {}
        for runs in (o["runs"], o["mean runs"], o["date runs"]):
            grids, shares = column_shares(noisy, statistic, size, Resolution(runs, WAVES, GROUPS, {}))
            for g, s in zip(grids.columns, shares, strict=True):
                most = (
                    o["mean runs"]
                    if g.name.startswith("mean of ")
                    else o["date runs"]
                    if g.name == form.order
                    else o["runs"]
                )
                if runs == most:
                    own[g.name] = g, s
        fitted = FittedTable(form, {name: own[name] for name in form.kinds})
        fitted.statistic, fitted.clip = statistic, clip if std else np.inf
        return fitted

    def _fit(self, form: Form, std: float, rows_each: float, epsilon: float, rng: np.random.Generator) -> None:
        o, state, root = self.o, self.records[form.name], form.parent is None
        fitted = self.fitted[form.name] = self._margins(form, std, rows_each, rng)
        fitted.own_columns(state)
        known: dict[str, np.ndarray] = {}
        if not root:
            above, numbers, under = self._places(form)
            start = float(np.clip((numbers == 0).mean() if numbers.size else 0.5, 1e-4, 1))
            back = fitted.before(state.runs, state.numbers)
            for column in back:
                place = next(j for j, own in enumerate(fitted.columns) if own.name == column.of)
                fitted.laws.append(fitted.law_before(column, start, exact=not std))
                fitted.stds.append(fitted.stds[place])
            given = self._given(form, state.above, state.owners, state.numbers, state.under, self.records)
            owners = self.drawn[form.parent or ""].owners[above]
            drawn = self._given(form, above, owners, numbers, under, self.drawn)
            known = {column.name: column.codes for column in drawn}
            for column in drawn:
                law = np.bincount(column.codes, minlength=column.size) + 0.5
                fitted.laws.append(law / law.sum())
                fitted.stds.append(0.01 if std else 0.0)
            fitted.columns += [*back, *given]
        pairs = Pairs(
            fitted.columns, fitted.laws, state.owners, o,
            std=std / np.sqrt(1 - (o["root margins"] if root else o["margins"])),
            clip=o["root clip"] if root else o["pair clip"], rows_each=rows_each, rng=rng,
        )  # fmt: skip
        if not root:
            pairs.know(known, o["known"])
        fitted.rows = RowLaw([column.name for column in fitted.columns], pairs.law(fitted.stds, o, epsilon))
        if root:
            self.drawn[form.name] = self._draw_root(fitted, state.owners.size, rng)
            return
        for _ in range(o["tilts"]):
            self.drawn[form.name] = self._draw(fitted, rng)
            self._tilt(fitted, self.drawn[form.name])
        self.drawn[form.name] = self._draw(fitted, rng)

    def _given(
        self, form: Form, above: np.ndarray, owners: np.ndarray, numbers: np.ndarray, under: np.ndarray,
        states: Mapping[str, State],
    ) -> list[Column]:  # fmt: skip
        """Return what rows above say, and how many rows are left, up to how the last one ends."""
        columns = list[Column]()
        for table, place in {form.root: owners, form.parent or "": above}.items():
            own = [c for c in self.fitted[table].columns if c.role == "own" and c.name != f"end of {form.name}"]
            columns += [
                Column(f"{table}: {c.name}", states[table].runs[c.name][place], c.size, c.ordered, "given") for c in own
            ]
        if form.max_rows > 1:
            most, ends = self.o["remaining"], len(form.end_list)
            left = np.minimum(under - numbers - 1, most - 1)
            if ends:
                left = np.where(left == 0, states[form.parent or ""].ends[form.name][above], left + ends)
            columns.append(Column("left", left, most + ends, 0, "given"))
        return columns

    def _places(self, form: Form) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return of the rows to be drawn the row above, its place there, and how many there are."""
        parent = self.drawn[form.parent or ""]
        under = self._numbers(parent, form.name)
        if form.ends:
            ends = np.rint(parent.plain[f"end of {form.name}"] * len(form.end_list)).astype(np.int64)
            parent.ends[form.name] = np.where(under > 0, ends, 0)
        above = np.repeat(np.arange(under.size), under)
        return above, np.arange(above.size) - np.repeat(np.cumsum(under) - under, under), under[above]

    def _draw_root(self, fitted: FittedTable, n: int, rng: np.random.Generator) -> State:
        assert fitted.rows is not None
        codes = fitted.rows.mixture.draw(n, rng)
        runs = {column.name: codes[:, j] for j, column in enumerate(fitted.columns)}
        return State(np.arange(n), np.arange(n), fitted.codes(runs, rng), runs)

    def _draw(self, fitted: FittedTable, rng: np.random.Generator) -> State:
        """Return drawn rows, one of each row above at a time."""
        form, rows, dates = fitted.form, fitted.rows, fitted.dates
        assert rows is not None
        above, numbers, under = self._places(form)
        owners, n = self.drawn[form.parent or ""].owners[above], above.size
        known = {c.name: c.codes for c in self._given(form, above, owners, numbers, under, self.drawn)}
        own = [c for c in fitted.columns if c.role == "own"]
        runs, steps = {c.name: np.zeros(n, dtype=np.int64) for c in own}, np.zeros(n, dtype=np.int64)
        names = [c.name for c in own if c.name != form.order and (dates is None or c.name != dates.name)]
        codes: dict[str, np.ndarray] = {}
        if form.dates == "first":
            even = {form.order: np.tile(self._likelier(fitted, form.order), (n, 1))}
            date = rows.draw({k: v for k, v in known.items() if k != "left"}, even, n, rng)
            codes = fitted.codes(date, rng)
            turn = np.lexsort((codes[form.order], above))
            runs[form.order], codes = date[form.order][turn], {form.order: codes[form.order][turn]}
        for k in range(form.max_rows):
            some = np.flatnonzero(numbers == k)
            if not some.size:
                break
            now = {name: column[some] for name, column in known.items()}
            for column in fitted.before({name: c[: some[-1] + 1] for name, c in runs.items()}, numbers[: some[-1] + 1]):
                now[column.name] = column.codes[some]
            if form.dates == "first":
                now[form.order] = runs[form.order][some]
            elif dates is not None:
                before = steps[some - 1] if k else np.zeros(some.size, dtype=np.int64)
                allowed = (np.arange(fitted.laws[self._place(fitted, dates.name)].size) < fitted.later) == (k > 0)
                tilt = dates.tilt(before, self._likelier(fitted, form.order))
                wide = np.zeros((some.size, allowed.size))
                wide[:, : tilt.shape[1]] = tilt
                runs[dates.name][some] = rows.draw(now, {dates.name: wide * allowed + 1e-9 * allowed}, some.size, rng)[
                    dates.name
                ]
                steps[some] = np.minimum(before + dates.steps(runs[dates.name][some], rng), form.last_step)
                runs[form.order][some] = dates.absolute[steps[some]]
                now[dates.name], now[form.order] = runs[dates.name][some], runs[form.order][some]
            if names:
                for name, drawn in rows.draw(
                    now, self._allowed(fitted, names, some, k, above, under), some.size, rng
                ).items():
                    runs[name][some] = drawn
        return self._state(fitted, above, owners, runs, codes, steps, rng)

    def _state(
        self, fitted: FittedTable, above: np.ndarray, owners: np.ndarray, runs: dict[str, np.ndarray],
        codes: Mapping[str, np.ndarray], steps: np.ndarray, rng: np.random.Generator,
    ) -> State:  # fmt: skip
        form = fitted.form
        if fitted.dates is not None and above.size:
            codes = {form.order: steps / max(form.last_step, 1)}
        measured = {**fitted.codes(runs, rng), **codes}
        state = State(
            above, owners, {k: v for k, v in measured.items() if not k.startswith(("first ", "since "))}, runs
        )
        state.measured = {**measured, **counted_codes(form, self.forms, self.views, {form.name: state})}
        return state

    @staticmethod
    def _place(fitted: FittedTable, name: str) -> int:
        return next(j for j, column in enumerate(fitted.columns) if column.name == name)

    def _likelier(self, fitted: FittedTable, name: str) -> np.ndarray:
        size = fitted.columns[self._place(fitted, name)].size
        return fitted.tilts.get(name, np.ones(size))

    def _allowed(
        self, fitted: FittedTable, names: list[str], some: np.ndarray, k: int, above: np.ndarray, under: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return how much likelier each code of columns is drawn; a label that ends only in a last row of that end."""
        form = fitted.form
        tilts = {name: np.tile(self._likelier(fitted, name), (some.size, 1)) for name in names}
        if not form.ends:
            return tilts
        last = under[some] - 1 == k
        end = np.where(last, self.drawn[form.parent or ""].ends[form.name][above[some]], 0)
        for name in form.ends:
            mine = np.array([place for place, (column, _) in enumerate(form.end_list, 1) if column == name])
            code = np.array([code for column, code in form.end_list if column == name])
            allowed = np.ones(tilts[name].shape, dtype=bool)
            allowed[:, code] = end[:, None] == mine
            ending = np.isin(end, mine)
            allowed[np.ix_(ending, np.setdiff1d(np.arange(allowed.shape[1]), code))] = False
            tilts[name] *= allowed
        return tilts

    def _tilt(self, fitted: FittedTable, drawn: State) -> None:
        """Make codes likelier that were drawn too seldom, of rows that count as those of records did."""
        n, counted = self.records[fitted.form.root].owners.size, np.ones(drawn.owners.size)
        if not drawn.owners.size:
            return
        if np.isfinite(fitted.clip):
            assert fitted.statistic is not None
            squares = squares_of_counts(fitted.statistic, drawn.measured, drawn.owners, n)
            counted = clipped(squares, fitted.clip)[drawn.owners]
        for column, law in zip(fitted.columns, fitted.laws, strict=False):
            if column.role == "own":
                have = np.bincount(drawn.runs[column.name], counted, column.size) + 1.0
                ratio = np.clip(law / (have / have.sum()), 0.5, 2.0)
                fitted.tilts[column.name] = self._likelier(fitted, column.name) * ratio


def sample(
    schema: Schema,
    data: Mapping[str, pd.DataFrame],
    epsilon: float,
    delta: float,
    seed: int | None = None,
    **settings: Any,
) -> dict[str, pd.DataFrame]:
    """Return as many persons as the records have, with their rows, drawn from a fit.

    Args:
        schema: of a database.
        data: its tables.
        epsilon: 0 without noise.
        delta: beside it.
        seed: of the noise and the draws.
        settings: that differ from `SETTINGS`.
    """
    return RowModel(schema, data, **settings).sample(epsilon, delta, np.random.default_rng(seed))
