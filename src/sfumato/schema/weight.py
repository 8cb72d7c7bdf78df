"""How many of the population a row stands for: survey weights, with a public bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.columns.facts import plain_value, shown
from sfumato.columns.kinds import Continuous, Identifier, Image, Integer, ItemSet
from sfumato.errors import SchemaError
from sfumato.privacy.certificate_form import Weighting

if TYPE_CHECKING:
    from sfumato.schema.schema import Schema


_LEAST, _MOST = 1e-30, 1e30
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
        said = {name: getattr(self, name) for name in ("upper", "total") if getattr(self, name) is not None}
        return {"column": self.column, **said} if said else self.column


def _positive(value: object, name: str) -> float:
    number = plain_value(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number) or not number > 0:
        raise SchemaError(f"Expected {name} of weight to be a number above 0, got {shown(value)}.")
    if not _LEAST <= number <= _MOST:
        raise SchemaError(
            f"Expected {name} of weight between {_LEAST:g} and {_MOST:g}, got {shown(value)}. State weights in another "
            "unit, such as thousands of people."
        )
    return number


def weight_of(entry: object, faults: list[str]) -> Weight | None:
    """Return the weight that an entry says: a column, or a mapping; or note what is wrong with it."""
    if entry is None or isinstance(entry, Weight):
        return entry
    said: Any = {"column": entry} if isinstance(entry, str) else entry
    if not isinstance(said, Mapping) or "column" not in said or set(said) - {"column", "upper", "total"}:
        faults.append(
            "Expected weight to name a column, or to hold column, upper and perhaps total, such as {column: w, "
            "upper: 20}."
        )
        return None
    try:
        return Weight(**said)
    except SchemaError as error:
        faults.append(str(error))
    return None


def weight_faults(schema: Schema, weight: Weight) -> list[str]:
    """Return what is wrong with the weight of a schema."""
    name = weight.column
    if name not in schema.columns:
        return [f"Expected the weight's column among the columns, got {name!r}. Add it."]
    kind = schema.columns[name]
    if not isinstance(kind, Integer | Continuous | Identifier):
        return [f"Expected the weight's column {name!r} to be a declared column of numbers, got {kind.name}."]
    faults = []
    if isinstance(kind, Identifier) and weight.upper is None:
        faults.append(f"Expected a public bound for the weight {name!r}, got none. Say {{column: {name}, upper: 20}}.")
    elif weight.upper is None and not kind.upper > 0:  # type: ignore[union-attr]
        faults.append(f"Expected an upper bound above 0 for the weight {name!r}, got {kind.upper}.")  # type: ignore[union-attr]
    elif weight.upper is None and not _LEAST <= kind.upper <= _MOST:  # type: ignore[union-attr]
        faults.append(
            f"Expected an upper bound between {_LEAST:g} and {_MOST:g} for the weight {name!r}, got {kind.upper}."  # type: ignore[union-attr]
        )
    if schema.unit is not None and schema.unit.column == name:
        faults.append(f"Expected the weight and the unit in two columns, got {name!r} for both.")
    rest = [kind for column, kind in schema.columns.items() if column != name and kind.is_released]
    if any(isinstance(kind, Image) for kind in rest) or (rest and all(isinstance(kind, ItemSet) for kind in rest)):
        faults.append("Expected a weight beside columns of labels, numbers or dates, got images, or sets alone.")
    return faults


def weight_bound(schema: Schema) -> float:
    """Return the largest weight that counts."""
    weight = schema.weight
    assert weight is not None
    return float(weight.upper if weight.upper is not None else schema.columns[weight.column].upper)  # type: ignore[attr-defined]


def weight_kind(schema: Schema) -> Continuous:
    """Return how the weight's cells are read and modelled: numbers from 0 to the bound, written as the column says."""
    assert schema.weight is not None
    name = schema.weight.column
    written = getattr(schema.columns[name], "written", None)
    kind = schema.reader.resolved(Continuous(lower=0, upper=weight_bound(schema), written=written), name)
    assert isinstance(kind, Continuous)
    return kind


def readable_weight_kind(schema: Schema) -> Continuous:
    """Return `weight_kind` where what is no number is missing, and no number in the middle of the bounds."""
    return replace(weight_kind(schema), nullable=True)


def weighting_of(schema: Schema) -> Weighting | None:
    """Return what a certificate says of the weights; None without."""
    if schema.weight is None:
        return None
    total = schema.weight.total
    total = None if total is None else float(total)
    return Weighting(column=schema.weight.column, upper=weight_bound(schema), total=total)
