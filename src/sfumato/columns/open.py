"""Columns of which only the name, or the name and the kind, is public: the rest is bought with budget.

`sfumato.fitting.discovery` buys bounds, categories and whether cells are missing, and replaces them by kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from sfumato.columns.booleans import Boolean
from sfumato.columns.canonical import has_canonical_text
from sfumato.columns.cells import is_scalar, values_of
from sfumato.columns.kind import ColumnKind, refuse, settle
from sfumato.columns.levels import Categorical, LevelKind
from sfumato.columns.numbers import Continuous, Integer
from sfumato.columns.written import Written
from sfumato.errors import SchemaError

OpenKind: TypeAlias = Literal["integer", "continuous", "categorical", "boolean", "unknown"]

_NARROWEST: Mapping[OpenKind, LevelKind | Integer | Continuous] = {
    "integer": Integer(lower=0, upper=1),
    "continuous": Continuous(lower=0, upper=1),
    "categorical": Categorical(categories=("other",)),  # what discovery adds where a rest is
    "boolean": Boolean(),
    "unknown": Categorical(categories=("other",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(ColumnKind):
    """A column whose facts a fit buys: `kind: integer, discover: true` in a schema file.

    Attributes:
        kind: integer, continuous, categorical or boolean; `unknown` is bought too.
        written: how its numbers are written as text, where that is not plain.

    Example:
        >>> from sfumato import Schema
        >>> Schema(columns={"age": Open(kind="integer")}).open
        {'age': 'integer'}
    """

    name: ClassVar[str] = "open"
    holds: ClassVar[str] = "columns to discover"

    kind: OpenKind = "unknown"
    written: Written | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        faults: list[str] = []
        written = Written.of(self.written, faults)
        if self.kind not in get_args(OpenKind):
            faults.append(f"Expected kind to be one of {', '.join(get_args(OpenKind))}, got {self.kind!r}.")
        elif written is not None and not self.may_be_number:
            faults.append(f"Expected written beside kinds of numbers, got it for kind {self.kind}. Leave it out.")
        refuse(faults)
        settle(self, written=written)

    @property
    def may_be_number(self) -> bool:
        """Whether what is found may be numbers."""
        return self.kind in ("integer", "continuous", "unknown")

    @property
    def narrowest(self) -> LevelKind | Integer | Continuous:
        """The least that can be found: what a plan reckons with before more is known."""
        return _NARROWEST[self.kind]

    def code(self, column: pa.Array | pa.ChunkedArray | np.ndarray, *, missing: Sequence[str]) -> NoReturn:
        """Refuse: there are no codes before discovery."""
        raise SchemaError(self._undeclared())

    def decode(self, codes: object, storage: pa.DataType) -> NoReturn:
        """Refuse: there are no values before discovery."""
        raise SchemaError(self._undeclared())

    def storage_fault(self, storage: pa.DataType) -> str | None:
        """Return why whatever is found could not be stored in a type; None if it could."""
        return self.narrowest.storage_fault(storage)

    def reading_fault(self, storage: pa.DataType) -> str | None:
        """Return why no cell of a type can be what is found: labels are found in cells of any type that has text."""
        if self.kind in ("categorical", "unknown") and (is_scalar(storage) or has_canonical_text(values_of(storage))):
            return None
        return self.narrowest.reading_fault(storage)

    def to_dict(self) -> dict[str, Any]:
        """Return the kind as plain values."""
        written = {} if self.written is None else {"written": self.written.to_dict()}
        return {"kind": self.kind, "discover": True, **written}

    def _undeclared(self) -> str:
        return "Expected a column that is declared, got one to discover. Fits buy it; here it has to be declared."
