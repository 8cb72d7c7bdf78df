"""Columns without codes: those never released, and those of which a fit estimates what is not public.

`sfumato.fitting.discovery` estimates bounds, categories and whether cells are missing, and replaces them by kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from sfumato.columns.booleans import Boolean
from sfumato.columns.date_text import format_dates, has_date, parse_dates
from sfumato.columns.dates import DateTime
from sfumato.columns.facts import flag, microseconds_since_epoch
from sfumato.columns.kind import ColumnKind, refuse, settle
from sfumato.columns.levels import Categorical, LevelKind
from sfumato.columns.numbers import Continuous, Integer
from sfumato.columns.storage import unmodelled
from sfumato.columns.wall_clock import MICROSECONDS, Resolution
from sfumato.columns.written import Written
from sfumato.errors import SchemaError

OpenKind: TypeAlias = Literal["integer", "continuous", "categorical", "boolean", "datetime", "unknown"]
YEARS = (1708, 2261)
"""The first and the last year that can be found: nanoseconds since 1970 hold all of them."""

_NARROWEST: Mapping[OpenKind, LevelKind | Integer | Continuous] = {
    "integer": Integer(lower=0, upper=1),
    "continuous": Continuous(lower=0, upper=1),
    "categorical": Categorical(categories=("other",)),  # what discovery adds where a rest is
    "boolean": Boolean(),
    "unknown": Categorical(categories=("other",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier(ColumnKind):
    """A column that is never released; it is read only where the schema names it as the unit, or as a key of a table.

    Attributes:
        exact: whether the column was text from the start, so that names are compared letter by letter. Whole numbers of
            2^53 and more name nobody without it: as floats they may be any of several.

    Example:
        >>> from sfumato import Schema
        >>> from sfumato.columns import Integer
        >>> Schema(columns={"name": Identifier(), "age": Integer(lower=0, upper=120)}).released
        ('age',)
    """

    name: ClassVar[str] = "identifier"
    holds: ClassVar[str] = "identifiers"
    is_released: ClassVar[bool] = False

    exact: bool = False

    def __post_init__(self) -> None:
        faults: list[str] = []
        exact = flag(self.exact, faults, "exact")
        refuse(faults)
        settle(self, exact=exact)

    def storage_fault(self, storage: pa.DataType) -> str | None:
        """Return None: names may be stored in any type."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(ColumnKind):
    """A column whose facts a fit estimates: `kind: integer, discover: true` in a schema file.

    Attributes:
        kind: integer, continuous, categorical, boolean or datetime; of `unknown` that is estimated too.
        written: how its numbers are written as text, where that is not plain.
        format: of dates, strftime format of the column where it is stored as text; None means ISO 8601.
        resolution: of dates, what they are cut down to: a public fact.
        atoms: of numbers, words beside them, such as `<5`.

    Example:
        >>> from sfumato import Schema
        >>> Schema(columns={"age": Open(kind="integer")}).open
        {'age': 'integer'}
    """

    name: ClassVar[str] = "open"
    holds: ClassVar[str] = "columns to discover"

    kind: OpenKind = "unknown"
    written: Written | None = field(default=None, repr=False)
    format: str | None = None
    resolution: Resolution = "day"
    atoms: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        faults: list[str] = []
        written = Written.of(self.written, faults)
        if self.kind not in get_args(OpenKind):
            faults.append(f"Expected kind to be one of {', '.join(get_args(OpenKind))}, got {self.kind!r}.")
        elif written is not None and not self.may_be_number:
            faults.append(f"Expected written beside kinds of numbers, got it for kind {self.kind}. Leave it out.")
        elif self.kind != "datetime" and (self.format is not None or self.resolution != "day"):
            faults.append(f"Expected format and resolution beside kind datetime, got them for kind {self.kind}.")
        refuse(faults)
        if self.kind == "datetime":
            self.between(2000, 2000)  # a format that loses something is refused
        settle(self, written=written)
        if isinstance(self.atoms, list | tuple) and not self.atoms:
            return
        if self.kind not in ("integer", "continuous"):
            refuse([f"Expected atoms beside kinds of numbers, got some for kind {self.kind}. Leave them out."])
        if isinstance(self.atoms, list | tuple) and not all(isinstance(atom, str) for atom in self.atoms):
            refuse(["Expected words alone as atoms of a column to discover, got numbers. Declare its bounds."])
        # as the kind that is found will have them
        settle(self, atoms=Integer(lower=0, upper=0, written=self.written, atoms=self.atoms).words)

    @property
    def words(self) -> tuple[str, ...]:
        """The words beside numbers."""
        return self.atoms

    @property
    def may_be_number(self) -> bool:
        """Whether the column may turn out to hold numbers."""
        return self.kind in ("integer", "continuous", "unknown")

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as everywhere else."""
        return self.written is None or self.written.is_plain

    @property
    def narrowest(self) -> LevelKind | Integer | Continuous | DateTime:
        """The least that can be found: what a plan reckons with before more is known."""
        if self.kind == "datetime":
            return self.between(2000, 2000)
        return _NARROWEST[self.kind]

    def _uncoded(self) -> Exception:
        return SchemaError(
            "Expected a column that is declared, got one to discover. Fits estimate it; here it has to be declared."
        )

    def storage_fault(self, storage: pa.DataType) -> str | None:
        """Return why whatever is found could not be stored in a type; None if it could."""
        return self.narrowest.storage_fault(storage)

    def reading_fault(self, storage: pa.DataType) -> str | None:
        """Return why no cell of a type can be what is found.

        Labels are looked for in cells of any type but images: one list in an empty column makes it one of lists, and
        says no more than that this cell is missing.
        """
        if self.kind in ("categorical", "unknown"):
            return unmodelled(storage) if isinstance(storage, pa.BaseExtensionType) else None
        return self.narrowest.reading_fault(storage)

    def to_dict(self) -> dict[str, Any]:
        """Return the kind as plain values."""
        written = {} if self.written is None else {"written": self.written.to_dict()}
        dates = {"resolution": self.resolution} if self.kind == "datetime" else {}
        dates |= {} if self.format is None else {"format": self.format}
        atoms = {"atoms": list(self.atoms)} if self.atoms else {}
        return {"kind": self.kind, "discover": True, **written, **dates, **atoms}

    def between(self, first: int, last: int, *, nullable: bool = False) -> DateTime:
        """Return dates from the start of one year to the end of another, of years that the format holds; or of a day.

        Raises:
            SchemaError: the format loses part of the resolution.
        """
        if self.format is not None and not has_date(self.format):
            lower, upper = "00:00", "23:59:59.999999"
        else:
            if self.format is not None and (first, last) != (2000, 2000):
                first, last = (self._nearest(year) for year in (first, last))
            lower, upper = f"{first}-01-01", f"{last}-12-31"
        return DateTime(lower=lower, upper=upper, resolution=self.resolution, format=self.format, nullable=nullable)

    def _nearest(self, year: int) -> int:
        """Return the year nearest to one, towards 2000, that the format gives back: of two digits not all do."""
        form, step = self.format or "", 1 if year < 2000 else -1
        return next(y for y in (*range(year, 2000, step), 2000) if _reads_back(y, form))


def _reads_back(year: int, form: str) -> bool:
    first = np.array([microseconds_since_epoch(datetime(year, 1, 1))])
    back, valid = parse_dates(format_dates(first, np.array([False]), form), form)
    return bool(valid[0]) and abs(int(back[0] - first[0])) < MICROSECONDS["month"]
