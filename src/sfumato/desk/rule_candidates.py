"""Rules that the records at hand keep, for their holder to judge: whether they are public is not in the data.

Candidates are looked for in the first rows, and kept if no row of the whole source breaks them. A candidate counts
where columns that had nothing to do with each other would have broken it often.

Implications are among events: a label of a column, a missing cell, a number up to some value. Events that are the same
in all rows are one; of those that follow from each other in a row of steps, only the steps are rules, no shortcuts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.columns.bounded import NumericKind, Values
from sfumato.columns.kind import TabularKind
from sfumato.columns.levels import LevelKind
from sfumato.columns.wall_clock import Resolution
from sfumato.desk.rule_breaks import values_of
from sfumato.errors import SchemaError
from sfumato.io.chunks import Source
from sfumato.rules import read_rules
from sfumato.rules.cells import Column, Table, absent, coarsest, in_steps, joined, size
from sfumato.schema.schema import Schema

_ROWS = 20_000  # in which candidates are looked for
_MOST_LEVELS, _MOST_MAPPED = 200, 2_000  # of a label that follows, and of one that it follows from
_LEAST_ROWS = 5  # of a label or span, on the mean; of an event, and without it
_MOST_SPANS = 24
_MOST_NUMBERS = 40  # columns among which sums of two are looked for
_MOST = 100
_LEAST_BREAKS = 20.0  # how often columns that have nothing to do with each other would break what counts as a rule
_MOST_EVENTS = 600

Rule = dict[str, Any]


def rule_candidates(source: Source, schema: Schema, *, labels: bool = True) -> list[Rule]:
    """Return rules that no row of a source breaks, as a schema has them; at most 100.

    Columns that had nothing to do with each other would break each in 20 of the first rows or more, on the mean.

    Privacy: none. That a rule is kept is a fact about the records: it becomes public by the holder's word alone.

    Args:
        source: the records.
        schema: their columns, with bounds and categories that hold them.
        labels: look for maps and implications too, beside order and arithmetic of numbers and dates.

    Raises:
        DataError: the source cannot be read.
    """
    kinds = {
        name: kind
        for name, kind in schema.of_kind(TabularKind).items()
        if name in schema.released and isinstance(kind, LevelKind | NumericKind)
    }
    source = source.under(schema.columns)
    if not kinds:
        return []
    missing = {name: schema.missing_in(source, name) for name in kinds}
    first = _first_rows(source, kinds, missing)
    if not size(first):
        return []
    candidates: list[Rule] = []
    for rule in itertools.islice(_candidates(first, kinds, labels=labels), 4 * _MOST):
        if rule not in candidates:
            candidates.append(rule)
    return _unbroken(source, kinds, missing, candidates)[:_MOST]


def _first_rows(source: Source, kinds: Mapping[str, TabularKind], missing: Mapping[str, tuple[str, ...]]) -> Table:
    parts: list[Table] = []
    for chunk in source.chunks(list(kinds)):
        parts.append({name: values_of(kind, chunk.columns[name], missing[name]) for name, kind in kinds.items()})
        if sum(map(size, parts)) >= _ROWS:
            break
    return {name: column[:_ROWS] for name, column in joined(parts).items()} if parts else {}


def _unbroken(
    source: Source, kinds: Mapping[str, TabularKind], missing: Mapping[str, tuple[str, ...]], candidates: list[Rule]
) -> list[Rule]:
    """Return the rules that no row breaks; those that cannot be read are left out."""
    read = {}
    for number, entry in enumerate(candidates):
        try:
            read[number] = read_rules([entry], kinds)[0]
        except SchemaError:
            continue
    for chunk in source.chunks(list(kinds)):
        if not read:
            break
        table = {name: values_of(kind, chunk.columns[name], missing[name]) for name, kind in kinds.items()}
        read = {n: rules for n, rules in read.items() if not any(rule.broken(table).any() for rule in rules)}
    return [candidates[number] for number in read]


def _candidates(table: Table, kinds: Mapping[str, TabularKind], *, labels: bool) -> Iterator[Rule]:
    computed = list(_computed_rules(table, kinds))
    yield from computed
    yield from _orders(table, kinds, computed)
    if not labels:
        return
    maps = list(_maps(table, kinds))
    yield from maps
    yield from _implications(table, kinds, {(rule["from"], rule["derived"]) for rule in maps})


def _numbers(table: Table, kinds: Mapping[str, TabularKind]) -> dict[str, np.ndarray]:
    """Return the columns of numbers that vary, NaN where missing or infinite, shape (n,) each."""
    columns = {}
    for name, kind in kinds.items():
        column = table[name]
        if isinstance(column, Values) and kind.name != "datetime":
            cells = column.values.astype(np.float64)
            values = np.where(column.absent | ~np.isfinite(cells), np.nan, cells)
            if np.unique(values[~np.isnan(values)]).size > 2:
                columns[name] = values
    return dict(itertools.islice(columns.items(), _MOST_NUMBERS))


def _dates(table: Table, kinds: Mapping[str, TabularKind]) -> dict[str, np.ndarray]:
    """Return the columns of dates in microseconds, NaN where missing, shape (n,) each."""
    columns = {}
    for name, kind in kinds.items():
        column = table[name]
        if isinstance(column, Values) and isinstance(kind, NumericKind) and kind.name == "datetime":
            columns[name] = _in_steps(column, kind, "microsecond")
    return columns


def _in_steps(column: Column, kind: TabularKind, step: Resolution | None) -> np.ndarray:
    """Return dates in whole steps, NaN where missing."""
    assert isinstance(column, Values)
    assert isinstance(kind, NumericKind)
    return np.where(column.absent, np.nan, in_steps(kind, column.values, step).astype(np.float64))


def _same(x: np.ndarray, y: np.ndarray, tolerance: float) -> bool:
    """Whether two columns agree in all rows where both are there, and these are many."""
    both = ~np.isnan(x) & ~np.isnan(y)
    return int(both.sum()) >= _LEAST_BREAKS and bool((np.abs(x - y)[both] <= tolerance).all())


def _tolerance(kind: TabularKind) -> float:
    resolution = getattr(kind, "resolution", None)
    if kind.name == "integer":
        return 0.0
    return 0.51 * resolution if isinstance(resolution, float) else 1e-9


def _computed_rules(table: Table, kinds: Mapping[str, TabularKind]) -> Iterator[Rule]:
    """Sums and products of two columns, sums of more, and days between dates."""
    numbers, dates = _numbers(table, kinds), _dates(table, kinds)
    parts: set[str] = set()
    for name, total in numbers.items():
        others = [other for other in numbers if other != name]
        for a, b in itertools.combinations(others, 2):
            x, y = numbers[a], numbers[b]
            if _same(total, x + y, _tolerance(kinds[name])) and name not in parts:
                parts |= {a, b}
                yield {"sum": {name: [a, b]}}
            elif _same(total, x * y, _tolerance(kinds[name])) and len({kinds[a].name, kinds[b].name}):
                yield {"product": {name: [a, b]}}
        several = _sum_of_several(name, numbers, _tolerance(kinds[name]))
        if several:
            yield {"sum": {name: several}}
        for later, earlier in itertools.permutations(dates, 2):
            step = coarsest(kind for kind in (kinds[later], kinds[earlier]) if isinstance(kind, NumericKind))
            end, start = (_in_steps(table[date], kinds[date], step) for date in (later, earlier))
            if _same(total, end - start, 0.0):
                yield {"difference": {name: [later, earlier]}}


def _sum_of_several(name: str, numbers: Mapping[str, np.ndarray], tolerance: float) -> list[str]:
    """Return three or more columns whose sum a column is: those that least squares gives the weight 1."""
    others = [other for other in numbers if other != name]
    rows = ~np.isnan(numbers[name])
    for other in others:
        rows &= ~np.isnan(numbers[other])
    if len(others) < 3 or rows.sum() < len(others) + _LEAST_BREAKS:
        return []
    x = np.stack([numbers[other][rows] for other in others], axis=1)
    scale = np.maximum(np.abs(x).max(axis=0), 1e-300)
    weights = np.linalg.lstsq(x / scale, numbers[name][rows], rcond=None)[0] / scale
    parts = [other for other, weight in zip(others, weights, strict=True) if abs(weight - 1) < 0.05]
    if len(parts) < 3 or not _same(numbers[name], sum(numbers[p] for p in parts), tolerance):  # type: ignore[arg-type]
        return []
    return parts


def _orders(table: Table, kinds: Mapping[str, TabularKind], computed: list[Rule]) -> Iterator[Rule]:
    """Dates that follow each other, and numbers, where they are equal somewhere: ranges overlap and never swap.

    Those that follow from others by way of a third column are left out.
    """
    pairs = set(_ordered_pairs(table, kinds, computed))
    middles = {name for pair in pairs for name in pair}
    for low, high in sorted(pairs, key=lambda pair: [list(kinds).index(name) for name in pair]):
        if not any((low, middle) in pairs and (middle, high) in pairs for middle in middles):
            yield {"order": [low, high]}


def _ordered_pairs(table: Table, kinds: Mapping[str, TabularKind], computed: list[Rule]) -> Iterator[tuple[str, str]]:
    sums = [{column, *parts} for rule in computed for column, parts in rule.get("sum", {}).items()]
    dates = _dates(table, kinds)
    for columns in (dates, _numbers(table, kinds)):
        for low, high in itertools.permutations(columns, 2):
            x, y = columns[low], columns[high]
            both = ~np.isnan(x) & ~np.isnan(y)
            if not both.any() or any({low, high} <= some for some in sums):
                continue
            x, y = x[both], y[both]
            swapped = np.searchsorted(np.sort(x), y, side="left")  # rows that independent columns would break
            is_sharp = low in dates or (x == y).any()
            if is_sharp and (x <= y).all() and (x < y).any() and np.mean(x.size - swapped) >= _LEAST_BREAKS:
                yield low, high


def _maps(table: Table, kinds: Mapping[str, TabularKind]) -> Iterator[Rule]:
    """Labels that follow from a coarser or finer column of labels, or from a number's span."""
    n = size(table)
    for name, kind in kinds.items():
        if not isinstance(kind, LevelKind) or kind.n_levels > _MOST_LEVELS:
            continue
        column = table[name]
        assert isinstance(column, np.ndarray)
        shares = np.bincount(column, minlength=kind.n_levels) / n
        if n * (1 - shares.max()) < _LEAST_BREAKS:
            continue
        for other, source in kinds.items():
            if other == name or (isinstance(source, LevelKind) and source.n_levels > _MOST_MAPPED):
                continue
            cells = table[other]
            if isinstance(cells, Values):
                mapping = _span_map(cells, column, kind, source)
            else:
                mapping = _level_map(cells, column, kind, source)
            if mapping:
                yield {"derived": name, "from": other, "map": mapping}


def _level_map(cells: np.ndarray, column: np.ndarray, kind: LevelKind, source: TabularKind) -> dict[Any, Any] | None:
    assert isinstance(source, LevelKind)
    counts = np.zeros((source.n_levels, kind.n_levels), dtype=np.int64)
    np.add.at(counts, (cells, column), 1)
    counts = counts[: source.width, : kind.width]
    support = counts.sum(axis=1)
    few = support.min() < 1 or support.mean() < _LEAST_ROWS
    if few or (counts.max(axis=1) < support).any() or source.nullable:
        return None
    return {_label_of(source, i): _label_of(kind, int(counts[i].argmax())) for i in range(source.width)}


def _span_map(cells: Values, column: np.ndarray, kind: LevelKind, source: TabularKind) -> dict[Any, Any] | None:
    """Return where a label changes along whole numbers, if it does so few times."""
    if source.name != "integer" or source.nullable or cells.absent.any():
        return None
    order = np.argsort(cells.values, kind="stable")
    values, levels = cells.values[order], column[order]
    starts = np.flatnonzero(np.r_[True, levels[1:] != levels[:-1]])
    if not 1 < starts.size <= _MOST_SPANS or (values[starts[1:]] == values[starts[1:] - 1]).any():
        return None
    if values.size / starts.size < _LEAST_ROWS:
        return None
    lasts = [int(values[after - 1]) for after in (*starts[1:], values.size)]
    firsts = [int(values[start]) for start in starts]
    texts: list[Any] = [low if low == high else f"{low}..{high}" for low, high in zip(firsts, lasts, strict=True)]
    texts[0], texts[-1] = f"..{lasts[0]}", f"{firsts[-1]}.."
    return {text: _label_of(kind, int(levels[start])) for text, start in zip(texts, starts, strict=True)}


@dataclass(frozen=True)
class _Event:
    column: str
    label: Any
    of_number: bool


def _implications(table: Table, kinds: Mapping[str, TabularKind], known: set[tuple[str, str]]) -> Iterator[Rule]:
    """Yield rules of the forms if/then and null_if that all rows keep.

    Args:
        table: rows.
        kinds: of their columns.
        known: pairs of columns of which one gives the other: their labels are not compared.
    """
    events, masks = _events(table, kinds)
    if len(events) < 2:
        return
    support = masks.sum(axis=1)
    together = masks.astype(np.float32) @ masks.T.astype(np.float32)
    implied = (together == support[:, None]) & _comparable(events, known)
    surprising = support[:, None] * (1 - support[None, :] / masks.shape[1]) >= _LEAST_BREAKS
    classes = _classes(implied & implied.T)
    leaders = np.array([members[0] for members in classes])
    for members in classes:
        if surprising[members[0], members[0]]:
            yield from _equal(events, members)
    yield from _spans(table, kinds, [(events[i], masks[i]) for i in leaders], known)
    yield from _steps(leaders, implied & surprising, events)


def _events(table: Table, kinds: Mapping[str, TabularKind]) -> tuple[list[_Event], np.ndarray]:
    """Return events and in which rows they are, shape (events, n); those of few rows are left out."""
    n = size(table)
    events: list[tuple[_Event, np.ndarray]] = []
    for name, kind in kinds.items():
        column = table[name]
        if isinstance(kind, LevelKind):
            assert isinstance(column, np.ndarray)
            counts = np.bincount(column, minlength=kind.n_levels)[: kind.width]
            for level in np.flatnonzero(counts)[:_MOST_EVENTS]:
                events.append((_Event(name, _label_of(kind, level), False), column == level))
        elif kind.nullable:
            events.append((_Event(name, None, True), absent(kind, column)))
    events = [pair for pair in events if _LEAST_ROWS <= pair[1].sum() <= n - _LEAST_ROWS][:_MOST_EVENTS]
    return [event for event, _ in events], np.array([mask for _, mask in events]).reshape(len(events), n)


def _label_of(kind: LevelKind, level: int) -> Any:  # noqa: ANN401 - a label as a schema has it
    """The label of a level; None of the level of missing cells."""
    return kind.labels[level] if level < len(kind.labels) else None


def _comparable(events: list[_Event], known: set[tuple[str, str]]) -> np.ndarray:
    """Return which pairs of events are of columns that are compared, shape (events, events)."""
    columns = [event.column for event in events]
    apart = {(a, b): a != b and (a, b) not in known and (b, a) not in known for a in set(columns) for b in set(columns)}
    return np.array([[apart[a, b] for b in columns] for a in columns])


def _classes(same: np.ndarray) -> list[list[int]]:
    """Return events that are the same in all rows together, each class in the order of columns."""
    classes: list[list[int]] = []
    taken: set[int] = set()
    for i in range(len(same)):
        if i not in taken:
            members = [i, *(int(j) for j in np.flatnonzero(same[i]) if j not in taken and j != i)]
            taken.update(members)
            classes.append(members)
    return classes


def _equal(events: list[_Event], members: list[int]) -> Iterator[Rule]:
    """Yield the rules of one class: numbers are missing if and only if; labels follow from each other."""
    of_labels = [events[i] for i in members if not events[i].of_number]
    if not of_labels:
        return
    first, *others = of_labels
    for i in members:
        if events[i].of_number:
            yield {"null_if": {events[i].column: {first.column: first.label}}}
    if others:
        yield {"if": {first.column: first.label}, "then": {e.column: e.label for e in others}, "only_if": True}


def _steps(leaders: np.ndarray, implied: np.ndarray, events: list[_Event]) -> Iterator[Rule]:
    """Yield what follows from each event, but for what follows from that again."""
    for event in leaders.tolist():
        follows = [int(j) for j in leaders if j != event and implied[event, j] and not implied[j, event]]
        nearest = [j for j in follows if not any(implied[k, j] and not implied[j, k] for k in follows if k != j)]
        if nearest:
            conclusions = {events[j].column: events[j].label for j in nearest}
            yield {"if": {events[event].column: events[event].label}, "then": conclusions}


def _spans(
    table: Table, kinds: Mapping[str, TabularKind], events: list[tuple[_Event, np.ndarray]], known: set[tuple[str, str]]
) -> Iterator[Rule]:
    """Yield what all rows are whose whole number is up to, or from, some value."""
    for name, kind in kinds.items():
        column = table[name]
        if not isinstance(column, Values) or kind.name != "integer" or column.absent.any():
            continue
        for upwards in (False, True):
            exact: dict[str, dict[str, Any]] = {}
            for event, mask in events:
                if event.column == name or (name, event.column) in known:
                    continue
                span, only = _span(column.values, mask, upwards=upwards)
                if span is None:
                    continue
                if only and event.of_number:
                    yield {"null_if": {event.column: {name: span}}}
                elif only:
                    exact.setdefault(span, {})[event.column] = event.label
                else:
                    yield {"if": {name: span}, "then": {event.column: event.label}}
            for span, conclusions in exact.items():
                yield {"if": {name: span}, "then": conclusions, "only_if": True}


def _span(values: np.ndarray, mask: np.ndarray, *, upwards: bool) -> tuple[str | None, bool]:
    """Return the longest span from an end in which all rows are of an event, if no luck; and whether no others are."""
    others = values[~mask]
    end = int(others.max()) + 1 if upwards else int(others.min()) - 1
    inside = values >= end if upwards else values <= end
    n_inside = int(inside.sum())
    if n_inside * (1 - mask.mean()) < _LEAST_BREAKS:
        return None, False
    end = int(values[inside].min()) if upwards else int(values[inside].max())
    return (f"{end}.." if upwards else f"..{end}"), n_inside == int(mask.sum())
