"""The interface of every kind of column, and the base of all kinds of a table's columns.

A kind holds the public facts about one column and the total map between its cells and codes. It never comes from the
records: it fixes a bounded domain, so every map from a cell to a code, and every sensitivity that follows from it, is
known before any data are read.

Any cell of any Arrow type gets a code, never an exception: a value outside the domain is clamped or goes to `other`,
text that is no number counts as missing. In a column that is not nullable a missing number gets a public stand-in, and
a cell without a label a level that samples never write.
What a cell becomes depends on that cell and on public facts alone.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import is_scalar, plain, total
from sfumato.columns.written import Written
from sfumato.entry_points import is_ours, package_named
from sfumato.errors import ConfigError, SchemaError

Fault: TypeAlias = Literal["missing", "unknown", "clamped", "unparseable"]
"""A fault of a cell: no value; no label or item; outside the bounds; no number, date or image."""


@dataclasses.dataclass(frozen=True, slots=True)
class GivenValue:
    """One value of a column's domain.

    Attributes:
        code: as the column's kind codes cells.
        stored: the value itself in the column's storage type, shape (1,).
    """

    code: float
    stored: pa.Array


class ColumnKind(ABC):
    """The public facts about one column: a frozen dataclass whose fields are the keys of a schema document.

    Attributes:
        name: what a schema document calls the kind.
        holds: what its cells are, for messages.
        is_released: whether releases hold such a column.
    """

    __slots__ = ()

    name: ClassVar[str]
    holds: ClassVar[str] = "values"
    is_released: ClassVar[bool] = True

    def code(self, column: pa.Array | pa.ChunkedArray | np.ndarray, *, missing: Sequence[str]) -> Any:  # noqa: ANN401
        """Return the codes of n cells, of any type; element i depends on cell i alone.

        Privacy: none (pure function).

        Args:
            column: n cells.
            missing: text that stands for no value where the column is stored as text.

        Raises:
            ConfigError: the kind has no codes; of a column to discover it is a SchemaError.
        """
        raise self._uncoded()

    def decode(self, codes: Any, storage: pa.DataType) -> pa.Array:  # noqa: ANN401
        """Return the values of codes as an array of exactly a storage type without a `storage_fault`.

        The inverse of `code` for values of the domain at the declared resolution.

        Raises:
            ConfigError: as `code`.
        """
        raise self._uncoded()

    @abstractmethod
    def storage_fault(self, storage: pa.DataType) -> str | None:
        """Return why the values cannot be stored in a column's type, and what to declare; None if they can."""

    def reading_fault(self, storage: pa.DataType) -> str | None:
        """Return why no cell of a type can be such a value, and what to declare; None if some can.

        One answer for all types that one cell may turn into another: an answer must not depend on a record.
        """
        return None if is_scalar(storage) else self.storage_fault(storage)

    @property
    def sample_type(self) -> pa.DataType:
        """The type of the values in samples, by public facts alone: text, unless a kind says otherwise."""
        return pa.string()

    @property
    def cell_bytes(self) -> int:
        """Most bytes of one cell of samples, however it is stored: a bound for memory, from public facts alone."""
        return 64

    def problems(
        self, column: pa.ChunkedArray | np.ndarray, missing: Sequence[str]
    ) -> Iterator[tuple[Fault, pa.Array]]:
        """Yield what is wrong with some cells, and these: for the data holder's own screen."""
        del column, missing
        yield from ()

    def becomes(self, fault: Fault) -> str:
        """Say what a fit makes of a cell with a fault."""
        raise self._uncoded()

    def given(self, column: str, value: object, storage: pa.DataType) -> GivenValue:
        """Read strictly a value that a caller gives: unlike a record's cell, a caller's mistake is an error.

        Args:
            column: its name, for messages.
            value: a label, a number, a date, or text that reads as one; None or NaN for missing.
            storage: type of the column in samples.

        Raises:
            ConfigError: the value is not one that the column can have.
        """
        del value, storage
        raise ConfigError(f"Expected given columns of labels, numbers or dates, got {column!r}. Leave it out.")

    def text_or_missing(self, text: str, missing: Sequence[str]) -> str | None:
        """Return text as it is, or None if it stands for no value: as cells of text files are read."""
        return None if text in missing else text

    def corner(self, share: float) -> np.ndarray:
        """Return the codes of one record at the start (0) or the end (1) of the domain, shape (1, ...).

        Raises:
            ConfigError: the domain has no corners.
        """
        raise ConfigError(f"Expected columns of labels, numbers, dates or images to audit, got {self.holds}.")

    def check_storage(self, column: str, storage: pa.DataType) -> None:
        """Refuse a kind whose values cannot be stored in a column's type; reads no cell.

        Raises:
            SchemaError: `decode` could not keep the type; the message says what to declare.
        """
        _refuse_fault(column, self.storage_fault(storage))

    def check_readable(self, column: str, storage: pa.DataType) -> None:
        """Refuse a kind that no cell of a column's type can have; reads no cell.

        Raises:
            SchemaError: says what to declare.
        """
        _refuse_fault(column, self.reading_fault(storage))

    def to_dict(self) -> dict[str, Any]:
        """Return the kind as plain values, a package if it is not ours; what has its default is left out."""
        entry: dict[str, Any] = {"kind": self.name}
        package = None if is_ours(type(self)) else package_named("kind", self.name)
        if package is not None:
            entry["package"] = package
        for fact in dataclasses.fields(self):  # type: ignore[arg-type] - every kind is a dataclass
            value = getattr(self, fact.name)
            if fact.default is dataclasses.MISSING or value != fact.default:
                plain_form = value.to_dict() if isinstance(value, Written) else value
                entry[fact.name] = list(plain_form) if isinstance(plain_form, tuple) else plain_form
        return entry

    def _uncoded(self) -> Exception:
        name = type(self).__name__
        return ConfigError(f"Expected a kind that is coded cell by cell, got {name}. Leave such a column out.")


class TabularKind(ColumnKind):
    """A kind of which every cell has one code: what columns of tables are.

    Attributes:
        nullable: whether a missing cell stays missing.
        is_numeric: whether codes are positions in [0, 1], with a distance; else they are levels 0, 1, …
    """

    __slots__ = ()

    is_numeric: ClassVar[bool]
    nullable: bool

    @property
    @abstractmethod
    def width(self) -> int:
        """Entries of a code as a vector: one per level that samples write; or the code, and whether it is missing."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in code order, without the missing level; none of a number."""
        return ()

    @property
    def n_levels(self) -> int:
        """The number of levels, the blank one included; 0 of a number."""
        return 0

    @property
    def has_blank(self) -> bool:
        """Whether cells without a value have a code of their own: NaN of a number, the last level of labels."""
        return self.nullable

    @property
    def hides_blank(self) -> bool:
        """Whether that code is never written in samples: the column is not nullable."""
        return self.has_blank and not self.nullable

    @property
    def goes_to_other(self) -> bool:
        """Whether undeclared values have a level that was declared for them."""
        return False

    @property
    def is_constant(self) -> bool:
        """Whether a number's bounds leave only one value."""
        return False

    @abstractmethod
    def parts(self, n: int) -> list[str]:
        """Return the labels of n equal parts of the domain, empty for a part without a value; levels are parts."""

    @abstractmethod
    def faults(self, cells: pa.Array, missing: Sequence[str]) -> dict[Fault, np.ndarray]:
        """Return per fault which cells of any type have it, shape (n,). Privacy: none (pure function)."""

    @abstractmethod
    def _code(self, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
        """Return the codes of cells, which may raise where Arrow refuses some."""

    @abstractmethod
    def _missing_codes(self, n: int) -> np.ndarray:
        """Return n times the code of a missing cell."""

    @abstractmethod
    def _read_given(self, column: str, value: object, storage: pa.DataType, faults: list[str]) -> GivenValue:
        """Return a value that is not missing, or note a fault."""

    @final
    def code(self, column: pa.Array | pa.ChunkedArray | np.ndarray, *, missing: Sequence[str]) -> np.ndarray:
        """Return the codes of n cells, shape (n,): levels as int32; numbers as float64 in [0, 1], NaN where missing.

        Of numbers, a code is the position between the bounds after rounding to the resolution. Cells that Arrow refuses
        are missing.
        """
        cells = pa.array(column) if isinstance(column, np.ndarray) else column
        if isinstance(cells, pa.ChunkedArray):
            parts = [self.code(chunk, missing=missing) for chunk in cells.chunks]
            return np.concatenate(parts) if parts else self._missing_codes(0)
        return total(lambda part: self._code(part, missing), cells, self._missing_codes)

    def problems(
        self, column: pa.ChunkedArray | np.ndarray, missing: Sequence[str]
    ) -> Iterator[tuple[Fault, pa.Array]]:
        """Yield what is wrong with some cells, and these."""
        for chunk in () if isinstance(column, np.ndarray) else column.chunks:
            cells = plain(chunk)
            for fault, mask in self.faults(cells, missing).items():
                yield fault, cells.filter(pa.array(mask))

    @final
    def given(self, column: str, value: object, storage: pa.DataType) -> GivenValue:
        """Read strictly a value that a caller gives."""
        if isinstance(value, np.generic):
            value = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value.item()
        # pandas' NA and NaT belong to a library that need not be loaded
        absent = value is None or type(value).__name__ in {"NAType", "NaTType"}
        if absent or (isinstance(value, float) and math.isnan(value)):
            if not self.nullable:
                raise ConfigError(
                    f"Expected a value for {column!r}, got none. The schema's {column!r} is not nullable."
                )
            codes = self._missing_codes(1)
            return GivenValue(float(codes[0]), self.decode(codes, storage))
        faults: list[str] = []
        read = self._read_given(column, value, storage, faults)
        if faults:
            raise ConfigError(faults[0])
        return read


def nullable_kind(kind: ColumnKind) -> TabularKind:
    """Return a kind of which a value may be missing."""
    assert isinstance(kind, TabularKind)
    return kind if kind.nullable else dataclasses.replace(kind, nullable=True)  # type: ignore[type-var] - as checked


def _refuse_fault(column: str, fault: str | None) -> None:
    if fault is not None:
        raise SchemaError(f"Column {column!r}: {fault}")


def refuse(faults: Sequence[str]) -> None:
    """Raise the first faults of a kind, if there are any.

    Raises:
        SchemaError: names them.
    """
    if faults:
        raise SchemaError(" ".join(faults[:5]))


def settle(frozen: object, **facts: object) -> None:
    """Write the checked form of each fact back into a frozen kind, or into a schema."""
    for name, value in facts.items():
        object.__setattr__(frozen, name, value)
