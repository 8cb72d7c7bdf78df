"""Areas: columns of labels that everything else is counted by, such as counties, clinics or branches.

    areas: [county]
    areas: [region, county]      # a rule says the region of each county

One column is counted and drawn before all others; those above it follow from it by rules, so that their totals agree.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sfumato.columns.facts import shown
from sfumato.columns.levels import LevelKind
from sfumato.errors import SchemaError
from sfumato.schema.schema_facts import AnySchema, SchemaFacts


def with_areas(schema: AnySchema, areas: Sequence[str] | None) -> AnySchema:
    """The schema with the areas of a call, where it names some.

    Raises:
        SchemaError: they are no columns of labels, or do not follow from one of them.
    """
    return schema if areas is None else replace(schema, areas=areas)


def read_areas(areas: object, faults: list[str]) -> tuple[str, ...]:
    """Names of the columns, each once, or note what is wrong with them."""
    if isinstance(areas, str) or not isinstance(areas, list | tuple) or not all(isinstance(a, str) for a in areas):
        faults.append(f"Expected areas to be a list of column names, such as [county], got {shown(areas)}.")
        return ()
    if len(set(areas)) < len(areas):
        faults.append("Expected each column of areas once, got one twice.")
    return tuple(areas)


def area_faults(schema: SchemaFacts, areas: Collection[str]) -> list[str]:
    """Columns of areas that are not released, or hold no labels."""
    labels = schema.of_kind(LevelKind)
    return [
        f"Expected areas to name released columns of declared labels, got {shown(name)}. Declare it as categorical, "
        "ordinal or boolean, or take it out."
        for name in areas
        if name not in labels
    ]


def require_one_area(schema: SchemaFacts, follows: Collection[str]) -> None:
    """Refuse areas of which several, or none, are free of rules.

    Args:
        schema: whose areas these are.
        follows: columns that follow from others by rules.

    Raises:
        SchemaError: says which.
    """
    free = [name for name in schema.areas if name not in follows]
    if len(free) == 1 or not schema.areas:
        return
    if free:
        raise SchemaError(
            f"Expected areas of which one says the others by rules, got {free[0]!r} and {free[1]!r} apart. Add a rule "
            f"that maps each label of one to its label of the other (`derived`), or name one of them."
        )
    raise SchemaError(
        f"Expected areas of which one follows from no rule, got {schema.areas[0]!r}, which does. Name the column that "
        "it follows from."
    )
