"""The weights of a schema: their bound, their cells, and their entry in a certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from sfumato.columns.kinds import Continuous
from sfumato.privacy.certificate_form import Weighting
from sfumato.schema.schema_facts import SchemaFacts

_Facts = TypeVar("_Facts", bound=SchemaFacts)


def weight_bound(schema: SchemaFacts) -> float:
    """Return the largest weight that counts."""
    weight = schema.weight
    assert weight is not None
    return float(weight.upper if weight.upper is not None else schema.columns[weight.column].upper)  # type: ignore[attr-defined]


def weight_kind(schema: SchemaFacts) -> Continuous:
    """Return how the weight's cells are read and modelled: numbers from 0 to the bound, written as the column says."""
    assert schema.weight is not None
    name = schema.weight.column
    written = getattr(schema.columns[name], "written", None)
    kind = schema.reader.resolved(Continuous(lower=0, upper=weight_bound(schema), written=written), name)
    assert isinstance(kind, Continuous)
    return kind


def readable_weight_kind(schema: SchemaFacts) -> Continuous:
    """Return `weight_kind` where what is no number is missing, and no number in the middle of the bounds."""
    return replace(weight_kind(schema), nullable=True)


def unweighted(schema: _Facts) -> _Facts:
    """Return the schema of rows of the weighted population, as samples are: without the weight, for rows alone."""
    if schema.weight is None:
        return schema
    unit, column = schema.unit, schema.weight.column
    if unit is not None:
        unit = replace(unit, constant=tuple(name for name in unit.constant if name != column))
    columns = {name: kind for name, kind in schema.columns.items() if name != column}
    sources = {name: source for name, source in schema.sources.items() if name != column}
    return replace(schema, columns=columns, unit=unit, weight=None, sources=sources)


def weighting_of(schema: SchemaFacts) -> Weighting | None:
    """Return the weights' entry in a certificate; None without."""
    if schema.weight is None:
        return None
    total = schema.weight.total
    total = None if total is None else float(total)
    return Weighting(column=schema.weight.column, upper=weight_bound(schema), total=total)
