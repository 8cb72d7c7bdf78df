"""How many of the population a row stands for: survey weights, with a public bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.columns.facts import plain_value, shown
from sfumato.errors import SchemaError

LEAST, MOST = 1e-30, 1e30
"""Of bounds and totals: errors are squared and noise has a fine grid, which 64-bit floats hold within these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """The column of survey weights: how many of the population a row stands for.

    Sums are weighted, and samples are rows of the weighted population. A weight above the bound counts as the bound;
    one that is missing, no number or below 0 counts as 0.

    Attributes:
        column: the column of weights; it is never released.
        upper: the largest weight that counts, a public bound between 1e-30 and 1e30; by default the column's own upper
            bound.
        total: the sum of all weights, where it is known publicly and exactly; between 1e-30 and 1e30.

    Example:
        >>> from sfumato import Schema
        >>> from sfumato.columns import Boolean, Continuous
        >>> columns = {"w": Continuous(lower=0, upper=20), "member": Boolean()}
        >>> Schema(columns=columns, weight=Weight(column="w")).released
        ('member',)
    """

    column: str
    upper: float | None = None
    total: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise SchemaError(f"Expected weight to name a column, got column={shown(self.column)}.")
        for name in ("upper", "total"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _positive(getattr(self, name), name))

    def to_entry(self) -> str | dict[str, Any]:
        """Return the weight as plain values: the column alone where nothing else is said."""
        rest = {name: getattr(self, name) for name in ("upper", "total") if getattr(self, name) is not None}
        return {"column": self.column, **rest} if rest else self.column


def _positive(value: object, name: str) -> float:
    number = plain_value(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number) or not number > 0:
        raise SchemaError(f"Expected {name} of weight to be a number above 0, got {shown(value)}.")
    if not LEAST <= number <= MOST:
        raise SchemaError(
            f"Expected {name} of weight between {LEAST:g} and {MOST:g}, got {shown(value)}. State weights in another "
            "unit, such as thousands of people."
        )
    return number


def weight_of(entry: object, faults: list[str]) -> Weight | None:
    """Return the weight that an entry says: a column, or a mapping; or note what is wrong with it."""
    if entry is None or isinstance(entry, Weight):
        return entry
    content: Any = {"column": entry} if isinstance(entry, str) else entry
    if not isinstance(content, Mapping) or "column" not in content or set(content) - {"column", "upper", "total"}:
        faults.append(
            "Expected weight to name a column, or to hold column, upper and perhaps total, such as {column: w, "
            "upper: 20}."
        )
        return None
    try:
        return Weight(**content)
    except SchemaError as error:
        faults.append(str(error))
    return None
