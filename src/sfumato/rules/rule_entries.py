"""Rules as a schema document writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import yaml

from sfumato.columns.bounded import NumericKind
from sfumato.columns.facts import shown
from sfumato.columns.levels import LevelKind
from sfumato.errors import SchemaError
from sfumato.rules.cells import Kinds
from sfumato.rules.computed import Computed, Derived, Operation, tolerance
from sfumato.rules.ordered import Bound, Order
from sfumato.rules.rule import Implication, Never, NullIf, Rule
from sfumato.rules.terms import kind_of, levels_of, numeric_kind, read_terms, span_of, value_of

_PERCENT = re.compile(r"\s*([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*%\s*")
_FORMS = "if/then, never, order, sum, product, difference, derived, range, null_if"
_ARITHMETIC = ("sum", "product", "difference")
MOST_RULES = 1_000
_MOST_SPANS = 5_000
_LARGEST = 2.0**53


def read_rules(entries: object, kinds: Kinds, waiting: Kinds = MappingProxyType({})) -> tuple[tuple[Rule, ...], ...]:
    """Read the rules of a schema; each entry gives one or, of a range, several; none where it waits for bounds.

    Args:
        entries: a list of mappings, as a schema document has them.
        kinds: the declared released columns of labels, numbers and dates.
        waiting: columns of numbers and dates whose bounds are estimated later, with the narrowest they can have. Rules
            of order and arithmetic may name them.

    Raises:
        SchemaError: names every rule with a fault.
    """
    if not isinstance(entries, Sequence) or isinstance(entries, str | bytes):
        raise SchemaError(f"Expected rules to be a list, got {shown(entries)}.")
    if len(entries) > MOST_RULES:
        raise SchemaError(f"Expected at most {MOST_RULES} rules, got {len(entries)}.")
    per_entry: list[tuple[Rule, ...]] = []
    faults: list[str] = []
    for number, entry in enumerate(entries, 1):
        try:
            waits = any(name in waiting for name in numeric_columns(entry))
            rules = _read(entry, {**kinds, **waiting} if waits else kinds, number)
            per_entry.append(() if waits else tuple(rules))
        except SchemaError as error:
            faults.append(str(error))
    if faults:
        raise SchemaError("\n".join(faults[:20]))
    return tuple(per_entry)


def rule_text(entry: object) -> str:
    """Return a rule as one line of YAML."""
    return yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, default_flow_style=True, width=10**9).strip()


def numeric_columns(entry: object) -> tuple[str, ...]:
    """Return the columns of a rule of order or arithmetic, as a document has it; of any other, none."""
    if not isinstance(entry, Mapping):
        return ()
    if isinstance(names := entry.get("order"), list | tuple):
        return tuple(map(str, names))
    formula = next((entry[form] for form in _ARITHMETIC if form in entry), None)
    if not isinstance(formula, Mapping):
        return ()
    parts = [part for of in formula.values() if isinstance(of, list | tuple) for part in of]
    return tuple(map(str, (*formula, *parts)))


def _read(entry: Any, kinds: Kinds, number: int) -> list[Rule]:  # noqa: ANN401
    forms = [key for key in _READERS if isinstance(entry, Mapping) and key in entry]
    place = f"rule {number} ({forms[0]})" if forms else f"rule {number}"
    if len(forms) != 1:
        raise SchemaError(f"Expected {place} to be one of {_FORMS}, got {shown(entry)}.")
    known, reader = _READERS[forms[0]]
    stray = [key for key in entry if key not in known]
    if stray:
        raise SchemaError(f"Expected {place} to have the keys {', '.join(known)}, got {shown(stray[0])}.")
    return reader(entry, kinds, place)


def _implication(entry: Mapping[str, Any], kinds: Kinds, place: str) -> list[Rule]:
    if "then" not in entry:
        raise SchemaError(f"Expected {place} to have `then`, got none.")
    only_if = entry.get("only_if", False)
    if not isinstance(only_if, bool):
        raise SchemaError(f"Expected only_if of {place} to be true or false, got {shown(only_if)}.")
    conditions, conclusions = (read_terms(entry[key], kinds, place) for key in ("if", "then"))
    both = {term.column for term in conditions} & {term.column for term in conclusions}
    if both:
        raise SchemaError(f"Expected {place} to have other columns in `then` than in `if`, got {shown(min(both))}.")
    return [Implication(place, conditions, conclusions, only_if)]


def _order(entry: Mapping[str, Any], kinds: Kinds, place: str) -> list[Rule]:
    names = entry["order"]
    if not isinstance(names, list | tuple) or len(names) < 2 or len(set(map(str, names))) < len(names):
        raise SchemaError(f"Expected {place} to list at least two different columns, got {shown(names)}.")
    return [_ordered(tuple(names), kinds, place)]


def _ordered(names: tuple[str, ...], kinds: Kinds, place: str) -> Order:
    columns = [numeric_kind(name, kinds, place) for name in names]
    if len({kind.name == "datetime" for kind in columns}) > 1:
        raise SchemaError(f"Expected {place} to compare dates with dates and numbers with numbers, got both.")
    _require_room(place, columns)
    return Order(place, names, kinds)


def _require_room(place: str, kinds: Sequence[NumericKind]) -> None:
    """Refuse to compute with whole numbers that 64 bits, or the codes of columns, cannot tell apart."""
    largest = sum(max(abs(bound) for bound in kind.bounds) for kind in kinds if kind.name != "datetime")
    if largest > _LARGEST:
        raise SchemaError(f"Expected {place} to name columns with bounds below 2^53 in sum, got larger ones.")


def _computed(operation: Operation) -> Callable[[Mapping[str, Any], Kinds, str], list[Rule]]:
    def reader(entry: Mapping[str, Any], kinds: Kinds, place: str) -> list[Rule]:
        formula = entry[operation]
        if not isinstance(formula, Mapping) or len(formula) != 1:
            raise SchemaError(
                f"Expected {place} to be such as {{{operation}: {{total: [a, b]}}}}, got {shown(formula)}."
            )
        ((column, parts),) = formula.items()
        if not isinstance(parts, list | tuple) or len(parts) < 2 or column in parts:
            raise SchemaError(f"Expected {place} to list at least two other columns for {shown(column)}.")
        if len(set(map(str, parts))) < len(parts):
            raise SchemaError(f"Expected {place} to list each column once.")
        kind, of = numeric_kind(column, kinds, place), [numeric_kind(name, kinds, place) for name in parts]
        dates = [part.name == "datetime" for part in of]
        if kind.name == "datetime" or (any(dates) and not (all(dates) and operation == "difference" and len(of) == 2)):
            raise SchemaError(
                f"Expected {place} to compute with numbers, or to have the difference of two dates, got other dates. "
                "Write {difference: {stay: [end, start]}} in place of a date that is a sum."
            )
        _require_room(place, [kind, *of])
        within, share = _within(entry, place, tolerance(kind, of))
        return [Computed(place, operation, str(column), tuple(parts), kinds, within, share)]

    return reader


def _within(entry: Mapping[str, Any], place: str, usual: float) -> tuple[float, float]:
    """Return how far a result may be from its parts: as a number, and as a share of what they give."""
    within = entry.get("within")
    if within is None:
        return usual, 0.0
    percent = _PERCENT.fullmatch(within) if isinstance(within, str) else None
    if percent is not None:
        return usual, float(percent[1]) / 100
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 <= within < math.inf:
        raise SchemaError(
            f"Expected within of {place} to be a number of at least 0, or a share such as `5%`, got {shown(within)}."
        )
    return max(float(within), usual), 0.0


def _range(entry: Mapping[str, Any], kinds: Kinds, place: str) -> list[Rule]:
    ranges, rules = entry["range"], []
    if not isinstance(ranges, Mapping) or not ranges:
        raise SchemaError(f"Expected {place} to be such as {{range: {{days: [0, stay]}}}}, got {shown(ranges)}.")
    for column, ends in ranges.items():
        kind = numeric_kind(column, kinds, place)
        if not isinstance(ends, list | tuple) or len(ends) != 2 or tuple(ends) == (None, None):
            raise SchemaError(f"Expected {place} to have two ends for {shown(column)}, got {shown(ends)}.")
        names = [end if isinstance(end, str) and end in kinds and end != column else None for end in ends]
        low, high = (
            None if name is not None or end is None else value_of(column, kind, end, place)
            for name, end in zip(names, ends, strict=True)
        )
        if low is not None and high is not None and low > high:
            raise SchemaError(f"Expected {place} to have ends that go up for {shown(column)}, got {shown(ends)}.")
        if low is not None or high is not None:
            rules.append(Bound(place, column, kinds, low, high))
        first, last = names
        chain = [*([first] if first else []), column, *([last] if last else [])]
        if len(chain) > 1:
            rules.append(_ordered(tuple(chain), kinds, place))
    return rules


def _null_if(entry: Mapping[str, Any], kinds: Kinds, place: str) -> list[Rule]:
    cases, rules = entry["null_if"], []
    if not isinstance(cases, Mapping) or not cases:
        raise SchemaError(
            f"Expected {place} to be such as {{null_if: {{pregnant: {{sex: male}}}}}}, got {shown(cases)}."
        )
    for column, conditions in cases.items():
        if not kind_of(column, kinds, place).nullable:
            raise SchemaError(f"Expected {place} to name a nullable column, got {shown(column)}. Write nullable: true.")
        terms = read_terms(conditions, kinds, place)
        if any(term.column == column for term in terms):
            raise SchemaError(f"Expected {place} to have conditions on other columns than {shown(column)}.")
        rules.append(NullIf(place, column, terms, kinds))
    return rules


def _derived(entry: Mapping[str, Any], kinds: Kinds, place: str) -> list[Rule]:
    column, source, mapping = entry["derived"], entry.get("from"), entry.get("map")
    kind, of = kind_of(column, kinds, place), kind_of(source, kinds, place)
    if not isinstance(kind, LevelKind) or column == source:
        raise SchemaError(f"Expected {place} to derive a column of labels from another, got {shown(column)}.")
    if not isinstance(mapping, Mapping) or not mapping:
        raise SchemaError(f"Expected {place} to have a map from values of {shown(source)} to labels.")
    others = {key: value for key, value in mapping.items() if key in (None, "missing", "other")}
    levels = levels_of(str(column), kind, list(mapping.values()), place)
    label = dict(zip(mapping, levels.tolist(), strict=True))
    gone = next((label[key] for key in (None, "missing") if key in others), None)
    if gone is None:
        gone = kind.n_levels - 1 if kind.nullable else None
    rest = label.get("other", gone)
    if of.nullable and gone is None:
        raise SchemaError(f"Expected {place} to say what a missing {shown(source)} becomes: `missing: LABEL`.")
    gone = kind.missing_code if gone is None else gone  # of a source that is never missing: no sample has it
    by_value = {key: level for key, level in label.items() if key not in others}
    by_level, starts, by_span = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
    if isinstance(of, LevelKind):
        by_level = _by_level(by_value, str(source), of, rest, gone, place)
    else:
        starts, by_span = _by_span(by_value, str(source), kinds, rest, place)
    return [Derived(place, str(column), str(source), kinds, by_level, starts, by_span, gone)]


def _by_level(
    by_value: Mapping[Any, int], source: str, of: LevelKind, rest: int | None, gone: int, place: str
) -> np.ndarray:
    levels = np.full(of.n_levels, -1 if rest is None else rest, dtype=np.int64)
    if of.has_blank:
        levels[-1] = gone
    levels[levels_of(source, of, list(by_value), place)] = list(by_value.values())
    if (levels < 0).any():
        label = of.labels[int(np.flatnonzero(levels < 0)[0])]
        raise SchemaError(f"Expected {place} to map every label of {shown(source)}, got none for {shown(label)}.")
    return levels


def _by_span(
    by_value: Mapping[Any, int], source: str, kinds: Kinds, rest: int | None, place: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return where spans start, and the level of each; what lies between two spans is of the first, if not whole."""
    kind = numeric_kind(source, kinds, place)
    if len(by_value) > _MOST_SPANS:
        raise SchemaError(
            f"Expected {place} to have at most {_MOST_SPANS} spans of {shown(source)}, got {len(by_value)}."
        )
    spans = sorted((*span_of(source, kind, value, place), level) for value, level in by_value.items())
    lower, upper = kind.bounds
    whole = isinstance(lower, int)
    starts: list[float] = []
    levels: list[int] = []
    reached: float | None = None

    def rest_from(low: float) -> None:
        if rest is None:
            raise SchemaError(
                f"Expected {place} to map every value of {shown(source)}, got none for some between its bounds. Add "
                "spans, leave the last one open as in `65-`, or add `other: LABEL`."
            )
        starts.append(low)
        levels.append(rest)

    for low, high, level in spans:
        if reached is None and low > lower:
            rest_from(lower)
        elif reached is not None and (low < reached or (whole and low == reached)):
            raise SchemaError(f"Expected {place} to have spans of {shown(source)} that do not overlap.")
        elif reached is not None and whole and low > reached + 1:
            rest_from(reached + 1)
        starts.append(low)
        levels.append(level)
        reached = high
    if reached is None:
        rest_from(lower)
    elif reached < upper:
        rest_from(reached + 1 if whole else math.nextafter(reached, math.inf))
    return np.array(starts), np.array(levels, dtype=np.int64)


_READERS: Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any], Kinds, str], list[Rule]]]] = {
    "if": (("if", "then", "only_if"), _implication),
    "never": (("never",), lambda entry, kinds, place: [Never(place, read_terms(entry["never"], kinds, place))]),
    "order": (("order",), _order),
    "sum": (("sum", "within"), _computed("sum")),
    "product": (("product", "within"), _computed("product")),
    "difference": (("difference", "within"), _computed("difference")),
    "derived": (("derived", "from", "map"), _derived),
    "range": (("range",), _range),
    "null_if": (("null_if",), _null_if),
}
