"""Short forms of what is public about a column or a unit, as one writes them in Python, written out.

    {"age": (0, 120), "day": ("2024-01-01", "2024-12-31"), "country": ["AT", "DE"], "returned": "boolean"}

Two ends in a tuple are bounds, a list holds labels, a text names a kind, and `range` whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from numbers import Integral, Real
from typing import Any, TypeAlias

from sfumato.columns.facts import shown
from sfumato.columns.kind import ColumnKind
from sfumato.errors import SchemaError

Bound: TypeAlias = float | str | date
ColumnFacts: TypeAlias = str | tuple[Bound, Bound] | range | Sequence[str | int] | Mapping[str, Any] | ColumnKind
"""What is public of one column: bounds, labels, a kind's name, its entry in a schema file, or the kind itself."""


def column_entry(facts: object) -> object:
    """Return the entry of a column in a schema document; what is no short form stays, for its reader.

    Raises:
        SchemaError: a list that may be bounds or labels, or a tuple that is neither.

    Example:
        >>> column_entry((0, 120)), column_entry(["AT", "DE"])
        ({'kind': 'integer', 'lower': 0, 'upper': 120}, {'kind': 'categorical', 'categories': ['AT', 'DE']})
    """
    if isinstance(facts, ColumnKind):
        return facts.to_dict()
    if isinstance(facts, range):
        if len(facts) < 2 or facts.step != 1:
            raise SchemaError(f"expected a range of whole numbers one by one, got {facts!r}. Write (lower, upper).")
        return {"kind": "integer", "lower": facts[0], "upper": facts[-1]}
    if isinstance(facts, tuple):
        return _bounded(facts)
    if isinstance(facts, list):
        if len(facts) == 2 and all(isinstance(end, Real) and not isinstance(end, bool) for end in facts):
            raise SchemaError(
                f"expected bounds or labels, got a list of two numbers, which may be either. Write bounds as a tuple, "
                f"({facts[0]}, {facts[1]}), and labels as {{'kind': 'categorical', 'categories': {facts}}}."
            )
        return {"kind": "categorical", "categories": facts}
    return facts


def _bounded(ends: tuple[Any, ...]) -> dict[str, Any]:
    if len(ends) == 2 and not any(isinstance(end, bool) for end in ends):
        kinds = (("integer", Integral), ("continuous", Real), ("datetime", date), ("datetime", str))
        for kind, type_ in kinds:
            if all(isinstance(end, type_) for end in ends):
                return {"kind": kind, "lower": ends[0], "upper": ends[1]}
    got = f"{len(ends)} values" if len(ends) != 2 else " and ".join(map(shown, ends))
    raise SchemaError(f"expected two bounds in a tuple, numbers or dates, got {got}. Write labels as a list.")


def with_unit(document: Mapping[str, Any], columns: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Return a schema document with its unit written out. Of a name alone, one row of each unit counts.

    Example:
        >>> with_unit({"unit": "customer"}, {})
        {'unit': {'column': 'customer', 'max_rows': 1}, 'columns': {'customer': 'identifier'}}
    """
    unit = document.get("unit")
    if not isinstance(unit, str):
        return document
    columns = {**columns, unit: columns.get(unit, "identifier")}
    return {**document, "unit": {"column": unit, "max_rows": 1}, "columns": columns}
