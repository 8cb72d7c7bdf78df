"""Spans of numbers and dates, as conditions have them: (18, 65), (None, 65), or "18..65" of the command line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.columns.facts import shown
from sfumato.columns.kind import TabularKind
from sfumato.errors import ConfigError
from sfumato.inference.table_measurements import values

_BETWEEN = ".."
_ENDS = 2


@dataclass(frozen=True, slots=True)
class NumberSpan:
    """Numbers between two, both within; infinite where a side is open."""

    low: float
    high: float

    def holds(self, numbers: np.ndarray) -> np.ndarray:
        """Return which numbers lie within, as 0 and 1."""
        return ((numbers >= self.low) & (numbers <= self.high)).astype(np.float64)


def read_span(name: str, kind: TabularKind, value: object) -> NumberSpan:
    """Return the span that a caller gives of a column of numbers or dates: a pair of ends, None where it is open.

    Raises:
        ConfigError: it is none, or an end is no value within the column's bounds.
    """
    ends: tuple[object, ...] = ()
    if isinstance(value, str) and _BETWEEN in value:
        ends = tuple(part.strip() or None for part in value.split(_BETWEEN))
    elif isinstance(value, tuple):
        ends = value
    if len(ends) != _ENDS or all(end is None for end in ends):
        raise ConfigError(
            f"Expected a span of {name!r}, such as (18, 65), (18, None) or '18..65', got {shown(value)}. "
            "A column of labels has shares of each label, one of numbers of spans."
        )
    low, high = (None if end is None else _number(name, kind, end) for end in ends)
    span = NumberSpan(-np.inf if low is None else low, np.inf if high is None else high)
    if span.low > span.high:
        raise ConfigError(f"Expected a span of {name!r} whose first end is not above its second, got {shown(value)}.")
    return span


def _number(name: str, kind: TabularKind, end: object) -> float:
    """Return an end as the model's rows have it: of dates steps since 1970."""
    return float(values(kind, np.array([kind.given(name, end, kind.sample_type).code])).iloc[0])
