"""Implications among what cells of the records at hand are: labels, missing cells, numbers up to some value.

An event is a label of a column, or that a cell is missing. Events that are the same in all rows are one; of those that
follow from each other in a row of steps, only the steps are rules, not the shortcuts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.columns.bounded import Values
from sfumato.columns.kind import TabularKind
from sfumato.columns.levels import LevelKind
from sfumato.rules.cells import Table, absent, size

LEAST_BREAKS = 20.0
"""How often columns that have nothing to do with each other would break what counts as a rule."""
_MOST_EVENTS = 600
_LEAST_ROWS = 5

Rule = dict[str, Any]


@dataclass(frozen=True)
class _Event:
    column: str
    label: Any
    of_number: bool


def implications(table: Table, kinds: Mapping[str, TabularKind], known: set[tuple[str, str]]) -> Iterator[Rule]:
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
    surprising = support[:, None] * (1 - support[None, :] / masks.shape[1]) >= LEAST_BREAKS
    classes = _classes(implied & implied.T)
    leaders = np.array([members[0] for members in classes])
    steps: dict[int, Rule] = {}
    for members in classes:
        if surprising[members[0], members[0]]:
            yield from _equal(events, members)
    yield from _spans(table, kinds, [(events[i], masks[i]) for i in leaders], known)
    for place, _ in enumerate(leaders):
        _steps(place, leaders, implied & surprising, events, steps)
    yield from steps.values()


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
                events.append((_Event(name, label_of(kind, level), False), column == level))
        elif kind.nullable:
            events.append((_Event(name, None, True), absent(kind, column)))
    events = [pair for pair in events if _LEAST_ROWS <= pair[1].sum() <= n - _LEAST_ROWS][:_MOST_EVENTS]
    return [event for event, _ in events], np.array([mask for _, mask in events]).reshape(len(events), n)


def label_of(kind: LevelKind, level: int) -> Any:  # noqa: ANN401 - a label as a schema has it
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


def _steps(place: int, leaders: np.ndarray, implied: np.ndarray, events: list[_Event], steps: dict[int, Rule]) -> None:
    """Note what follows from an event, but for what follows from that again."""
    event = int(leaders[place])
    follows = [int(j) for j in leaders if j != event and implied[event, j] and not implied[j, event]]
    nearest = [j for j in follows if not any(implied[k, j] and not implied[j, k] for k in follows if k != j)]
    if nearest:
        conclusions = {events[j].column: events[j].label for j in nearest}
        steps[event] = {"if": {events[event].column: events[event].label}, "then": conclusions}


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
    if n_inside * (1 - mask.mean()) < LEAST_BREAKS:
        return None, False
    end = int(values[inside].min()) if upwards else int(values[inside].max())
    return (f"{end}.." if upwards else f"..{end}"), n_inside == int(mask.sum())
