"""Two-way tables of databases in blocks, for `many.py`: what rows say, and what they say of each other.

Numbers are in 16 equal-width bins of their schema's bounds (whole numbers of at most 16 values one each), dates as days
since a public origin, gaps to the row before in days up to a public most. A missing value is a bin more.

    own         two columns of a row; the gap to the row before and the numbers of rows below are columns, too
    given       a column of a row, and one of the row above it or of the person
    lag         a column of a row, and the same of the row before
    between     two columns of two tables, of which none is above the other, each of a random row of the person; none of
                persons without; numbers of rows of the person are columns, too. Exact: all pairs of rows, by weight
    numbers     rows of each table a person, and a row above
    next, two, five, curves, days   of path: state and next one; and the two before the next; and that five on; states
                by step, `none` of persons without; state and days to the next
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
import pandas as pd
from many_laws import MOST_EVENTS, Law, Rng, Tables

BINS, FIVE = 16, 5


@dataclass(frozen=True)
class Codes:
    """A column in bins."""

    values: np.ndarray
    size: int

    def of(self, rows: np.ndarray) -> Codes:
        return Codes(self.values[rows], self.size)


Columns = dict[str, Codes]


@dataclass
class View:
    """The rows of one table in bins, sorted by person and order.

    Attributes:
        person: The number of the person of each row.
        above: The number of the row above in its table's view; of persons none.
        own: The columns.
        before: The row before, or -1.
    """

    person: np.ndarray
    above: np.ndarray
    own: Columns
    before: np.ndarray
    parent: str | None = None
    ancestors: tuple[str, ...] = ()
    keys: np.ndarray = field(default_factory=lambda: np.empty(0))


def in_bins(values: np.ndarray, lower: float, upper: float, *, whole: bool) -> Codes:
    """Return numbers in equal-width bins; whole ones of few values have one each."""
    if whole and upper - lower < BINS:
        codes, size = values - lower, int(upper - lower) + 1
    else:
        codes, size = np.floor((values - lower) / (upper - lower + whole) * BINS), BINS
    inside = np.clip(np.nan_to_num(codes, nan=0), 0, size - 1).astype(int)
    return Codes(np.where(np.isnan(values), size, inside), size + 1)


def days_of(column: pd.Series, origin: str) -> np.ndarray:
    return ((column - pd.Timestamp(origin)) / pd.Timedelta(days=1)).to_numpy(float)


def coded(column: pd.Series, kind: dict, origin: str) -> Codes:
    """Return a column of a schema in bins."""
    if kind["kind"] == "categorical":
        names = kind["categories"]
        codes = pd.Index(names).get_indexer(column.astype(object).map(str))
        return Codes(np.where(codes < 0, len(names), codes), len(names) + 1)
    if kind["kind"] == "datetime":
        start, end = (float((pd.Timestamp(kind[name]) - pd.Timestamp(origin)).days) for name in ("lower", "upper"))
        return in_bins(days_of(column, origin), start, end, whole=True)
    return in_bins(column.to_numpy(float), kind["lower"], kind["upper"], whole=kind["kind"] == "integer")


def tables_of(document: dict) -> dict[str, dict]:
    """Return the entries of a document's tables; linked rows are two."""
    if "tables" in document:
        return document["tables"]
    unit = document["unit"]
    own = [name for name in document["columns"] if name not in (unit["column"], *unit["constant"])]
    return {
        "persons": {"key": unit["column"], "columns": unit["constant"]},
        "events": {"of": "persons", "max_rows": unit["max_rows"], "order": unit["order"], "columns": own},
    }


def views(law: Law, tables: Tables) -> dict[str, View]:
    """Return each table in bins."""
    document = law.document(len(next(iter(tables.values()))))
    entries = tables_of(document)
    of = dict[str, View]()
    for name, entry in entries.items():
        of[name] = view(law, document["columns"], name, entry, tables[name], of, entries)
    for name, entry in entries.items():
        if "of" in entry:
            counts = np.bincount(of[name].above, minlength=of[entry["of"]].person.size)
            most = entry["max_rows"]
            of[entry["of"]].own[f"number of {name}"] = in_bins(counts.astype(float), 0, most, whole=True)
    return of


def view(
    law: Law, kinds: dict, name: str, entry: dict, frame: pd.DataFrame, of: dict[str, View], entries: dict
) -> View:
    """Return one table in bins, given those above it."""
    parent, order = entry.get("of"), entry.get("order")
    frame = frame.reset_index(drop=True)
    if parent is None:
        above, person = np.full(len(frame), -1), np.arange(len(frame))
    else:
        above = pd.Index(of[parent].keys).get_indexer(frame[entries[parent]["key"]])
        person = of[parent].person[above]
    group = above if name in law.above or parent is None else person
    time = np.zeros(len(frame))
    if order is not None:
        is_date = kinds[order]["kind"] == "datetime"
        time = days_of(frame[order], law.origin) if is_date else frame[order].to_numpy(float)
    turn = np.lexsort((time, group)) if parent else np.arange(len(frame))
    frame, above, person, group, time = frame.iloc[turn], above[turn], person[turn], group[turn], time[turn]
    own = {column: coded(frame[column], kinds[column], law.origin) for column in entry["columns"]}
    before = np.full(len(frame), -1)
    if order is not None and len(frame):
        same = np.concatenate([[False], group[1:] == group[:-1]])
        before = np.where(same, np.arange(len(frame)) - 1, -1)
        gap = np.where(same, time - np.concatenate([[0], time[:-1]]), np.nan)
        own[f"gap of {name}"] = in_bins(gap, 0, law.gaps[name], whole=True)
    keys = frame[entry["key"]].to_numpy() if "key" in entry else np.empty(0)
    ancestors = () if parent is None else (parent, *of[parent].ancestors)
    return View(person, above, own, before, parent, ancestors, keys)


def together(a: Codes, b: Codes) -> np.ndarray:
    """Return the shares of rows with each two values."""
    counts = np.bincount(a.values * b.size + b.values, minlength=a.size * b.size)
    return counts / max(counts.sum(), 1)


def shares(view: View, name: str, n: int) -> np.ndarray:
    """Return by person the share of rows with each value; those without a row have a value more."""
    column = view.own[name]
    size = column.size + 1
    counts = np.bincount(view.person * size + column.values, minlength=n * size).reshape(n, size).astype(float)
    rows = counts.sum(axis=1)
    counts[rows == 0, -1] = 1
    return counts / np.maximum(rows, 1)[:, None]


Block = Iterator[tuple[str, str, np.ndarray]]


def own_blocks(of: dict[str, View], deal: Rng | None) -> Block:
    """Yield pairs of columns of a row: own, with those above, with those before."""
    root = next(iter(of))
    for rows in of.values():
        for a, b in combinations(rows.own, 2):
            yield "own", f"{a}, {b}", together(rows.own[a], rows.own[b])
        if rows.parent is None:
            continue
        turn = np.arange(of[rows.parent].person.size)
        above = rows.above if deal is None else deal.permutation(turn)[rows.above]
        known = {f"{rows.parent}: {key}": column.of(above) for key, column in of[rows.parent].own.items()}
        if rows.parent != root:
            person = of[rows.parent].person[above]
            known |= {f"{root}: {key}": column.of(person) for key, column in of[root].own.items()}
        for a, b in product(rows.own, known):
            yield "given", f"{a}, {b}", together(rows.own[a], known[b])
        later = np.flatnonzero(rows.before >= 0)
        before = rows.before[later] if deal is None else deal.permutation(rows.before[later])
        for key, column in rows.own.items() if later.size else ():
            yield "lag", key, together(column.of(later), column.of(before))


def between_blocks(of: dict[str, View], deal: Rng | None) -> Block:
    """Yield pairs of columns of two tables, by person; and numbers of rows."""
    root, n = next(iter(of)), next(iter(of.values())).person.size
    by_person = dict[str, dict[str, np.ndarray]]()
    for name, rows in of.items():
        if name == root:
            continue
        counts = np.bincount(rows.person, minlength=n)
        number = np.eye(BINS + 1)[np.minimum(counts, BINS)]
        columns = {key: shares(rows, key, n) for key in rows.own}
        by_person[name] = {f"number of {name}": number, **columns}
        yield "numbers", f"{name} a person", number.mean(axis=0)
        if rows.parent != root:
            column = of[rows.parent].own[f"number of {name}"]
            yield (
                "numbers",
                f"{name} of {rows.parent}",
                np.bincount(column.values, minlength=column.size) / max(column.values.size, 1),
            )
    for s, t in combinations(by_person, 2):
        if s in of[t].ancestors:
            continue
        turn = np.arange(n) if deal is None else deal.permutation(n)
        for a, b in product(by_person[s], by_person[t]):
            yield "between", f"{a}, {b}", (by_person[s][a].T @ by_person[t][b][turn] / n).ravel()


def path_blocks(rows: View, n: int, deal: Rng | None) -> Block:
    """Yield chains of states."""
    state, gap = rows.own["state"], rows.own["gap of events"]
    if deal is not None:
        state = state.of(deal.permutation(state.values.size))
    start = np.flatnonzero(rows.before < 0)
    step = np.arange(state.values.size) - np.repeat(start, np.diff([*start, state.values.size]))
    one, two, five = (np.flatnonzero(step >= back) for back in (1, 2, FIVE))
    pair = Codes(state.values * state.size, state.size**2)
    both = Codes(pair.of(one - 1).values + state.of(one).values, pair.size)
    yield "next", "state, next", together(state.of(one - 1), state.of(one))
    yield "two", "two states, next", together(Codes(both.values[np.isin(one, two - 1)], both.size), state.of(two))
    yield "five", "state, five on", together(state.of(five - FIVE), state.of(five))
    yield "days", "state, days to the next", together(state.of(one - 1), gap.of(one))
    counts = np.bincount(
        np.minimum(step, MOST_EVENTS - 1) * state.size + state.values, minlength=MOST_EVENTS * state.size
    )
    steps = counts.reshape(MOST_EVENTS, state.size) / n
    yield "curves", "step, state", np.hstack([steps, 1 - steps.sum(axis=1, keepdims=True)]).ravel() / MOST_EVENTS


def blocks(law: Law, tables: Tables, deal: Rng | None = None) -> dict[str, dict[str, np.ndarray]]:
    """Return the two-way tables by block and pair.

    Args:
        law: Whose tables they are.
        tables: Of any number of persons.
        deal: Deals the rows of each table to others: of `given` to rows above, of `between` to persons, of `lag` and of
            chains to rows.
    """
    of, by_block = views(law, tables), dict[str, dict[str, np.ndarray]]()
    parts = [*own_blocks(of, deal), *between_blocks(of, deal)]
    if "events" in of and "state" in of["events"].own:
        parts += path_blocks(of["events"], of["persons"].person.size, deal)
    for block, pair, table in parts:
        if deal is None or block not in ("own", "numbers", "days"):
            by_block.setdefault(block, {})[pair] = table
    return by_block


def errors(real: dict[str, dict[str, np.ndarray]], other: dict[str, dict[str, np.ndarray]]) -> dict[str, dict]:
    """Return total variations by block and pair."""
    return {
        block: {pair: float(np.abs(real[block][pair] - table).sum() / 2) for pair, table in tables.items()}
        for block, tables in other.items()
    }
