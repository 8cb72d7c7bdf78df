"""Columns that are never released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np
import pyarrow as pa

from sfumato.columns.kind import ColumnKind
from sfumato.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier(ColumnKind):
    """A column that is never released; it is read only where the schema names it as the unit.

    Example:
        >>> from sfumato import Schema
        >>> from sfumato.columns import Integer
        >>> Schema(columns={"name": Identifier(), "age": Integer(lower=0, upper=120)}).released
        ('age',)
    """

    name: ClassVar[str] = "identifier"
    holds: ClassVar[str] = "identifiers"
    is_released: ClassVar[bool] = False

    def code(self, column: pa.Array | pa.ChunkedArray | np.ndarray, *, missing: Sequence[str]) -> NoReturn:
        """Refuse: what is never released has no codes."""
        raise ConfigError(self._not_coded())

    def decode(self, codes: object, storage: pa.DataType) -> NoReturn:
        """Refuse: what is never released has no values."""
        raise ConfigError(self._not_coded())

    def storage_fault(self, storage: pa.DataType) -> str | None:
        """Return None: names may be stored in any type."""
        return None
