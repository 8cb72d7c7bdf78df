"""Public facts of a fit beside the method's own settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from sfumato.columns.sets import ItemSet
from sfumato.lenses.chain import plain_schema
from sfumato.schema.schema import Schema


@final
@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that a plan may depend on: the data's description, and nothing that was read off the records.

    Attributes:
        schema: columns and unit, as they are modelled, of the plain table.
        described: the schema as it was declared.
        target: column whose classes are modelled apart; None for one class.
        n_public: the public number of rows; None where it is going to be measured.

    Example:
        >>> from sfumato import Schema
        >>> from sfumato.columns import Boolean
        >>> from sfumato.plugins import Facts
        >>> Facts(Schema(columns={"member": Boolean()}), None, 1000).rows
        1000
    """

    schema: Schema
    target: str | None
    n_public: int | None

    described: Schema = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "described", self.schema)
        object.__setattr__(self, "schema", plain_schema(self.schema))

    @property
    def class_column(self) -> str | None:
        """The column that all others are counted by: the areas, or else the target."""
        return next(iter(self.schema.areas), self.target)

    @property
    def rows(self) -> int:
        """The public number of rows, where a plan cannot do without: for methods of `needs_declared_rows`."""
        assert self.n_public is not None
        return self.n_public

    @property
    def unit_rows(self) -> int:
        """How many times a record's contribution a unit's may be: its most rows, or 1 where these are one record."""
        unit = self.schema.unit
        return 1 if unit is None or unit.linked else unit.max_rows

    @property
    def sets(self) -> list[str]:
        """Released columns of sets."""
        return list(self.schema.of_kind(ItemSet))
