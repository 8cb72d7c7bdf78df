"""The facts of a schema, and what follows from them one by one: below what checks, derives, reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from sfumato.columns.bounded import NumericKind
from sfumato.columns.kinds import ColumnKind, Image, ItemSet
from sfumato.columns.open import Open, OpenKind
from sfumato.columns.text_forms import MISSING_TOKENS
from sfumato.io.chunks import Source
from sfumato.io.csv_form import CsvOutput
from sfumato.schema.accept import Criterion
from sfumato.schema.database import Database
from sfumato.schema.reader import Reader, csv_output
from sfumato.schema.unit import Unit
from sfumato.schema.weight import Weight

FactSource: TypeAlias = str | Mapping[str, str]
"""A word for all facts of a column, or one per fact."""
K = TypeVar("K", bound=ColumnKind)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFacts:
    """The facts of a `Schema`, whose attributes these are, unchecked."""

    columns: Mapping[str, ColumnKind]
    rows: int | None = None
    unit: Unit | None = None
    missing: tuple[str, ...] = field(default=MISSING_TOKENS)
    draft: bool = False
    sources: Mapping[str, FactSource] = field(default_factory=dict)
    table_source: Mapping[str, str] = field(default_factory=dict)
    reader: Reader = field(default_factory=Reader)
    rules: tuple[Mapping[str, Any], ...] = ()
    accept: tuple[Criterion, ...] = ()
    weight: Weight | None = None
    areas: tuple[str, ...] = ()
    questions: tuple[Any, ...] = ()

    def missing_in(self, source: Source) -> tuple[str, ...]:
        """Return the texts that stand for no value in a source: the declared, or the usual where only text can say it.

        Elsewhere there is a null, and a text is what it says: of the usual ones only the empty one is no value.
        """
        return self.missing if source.missing_as_text or self.missing != MISSING_TOKENS else ("",)

    @property
    def missing_written(self) -> str:
        """The text that a CSV file has for no value: the first declared that is not a usual one, else the first."""
        if self.missing == MISSING_TOKENS:
            return ""
        return next((token for token in self.missing if token not in MISSING_TOKENS), (*self.missing, "")[0])

    @property
    def released(self) -> tuple[str, ...]:
        """The columns a release holds: all but identifiers, the column of the unit and that of the weight."""
        hidden = {part.column for part in (self.unit, self.weight) if part is not None}
        return tuple(name for name, kind in self.columns.items() if name not in hidden and kind.is_released)

    def of_kind(self, kind: type[K]) -> dict[str, K]:
        """The released columns of a kind, or of a family of kinds, in order."""
        released = {name: self.columns[name] for name in self.released}
        return {name: column for name, column in released.items() if isinstance(column, kind)}

    @property
    def images(self) -> tuple[str, ...]:
        """The released columns that hold images."""
        return tuple(self.of_kind(Image))

    @property
    def open(self) -> dict[str, OpenKind]:
        """The released columns whose facts a fit estimates, and what is declared of their kinds."""
        return {name: kind.kind for name, kind in self.of_kind(Open).items()}

    @property
    def numeric(self) -> frozenset[str]:
        """The released columns of numbers and dates, declared or to discover."""
        opened = {name for name, kind in self.of_kind(Open).items() if isinstance(kind.narrowest, NumericKind)}
        return frozenset(opened | set(self.of_kind(NumericKind)))

    @property
    def csv_output(self) -> CsvOutput:
        """How samples are written as CSV."""
        return csv_output(self.columns, self.reader, self.missing_written)

    @property
    def written(self) -> tuple[str, ...]:
        """The columns of samples: the released ones; before them whose a linked row, or an item of a long table, is."""
        return (*self.ids, *self.released)

    @property
    def linked(self) -> bool:
        """Whether rows of one unit are linked: the unit is the record, and samples have units with their rows."""
        return self.unit is not None and self.unit.linked

    @property
    def database(self) -> Database | None:
        """The tables; None of one table."""
        return None if self.unit is None else self.unit.tables

    @property
    def tree(self) -> Database | None:
        """The tables that are modelled one by one; None of one table, or of one that is joined to that of units."""
        return None if self.database is None or self.database.joined is not None else self.database

    @property
    def table_columns(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table of a database, but for those that name rows; empty of one table."""
        if self.unit is None or self.unit.tables is None:
            return {}
        own, database = self.unit.constant, self.unit.tables
        if database.joined is not None:
            return {database.units: own, database.joined.name: tuple(c for c in self.released if c not in own)}
        return {database.units: own, **{branch.name: branch.columns for branch in database.branches}}

    @property
    def n_records(self) -> int | None:
        """The public number of records: of rows, or of units where rows are linked; None if it is stated elsewhere."""
        return self.unit.units if self.unit is not None and self.unit.linked else self.rows

    @property
    def ids(self) -> list[str]:
        """The columns of samples that number whose a row is: of linked rows and of long tables."""
        return [self.unit.column] if self.unit is not None and self.unit.linked else self._ids

    @property
    def _ids(self) -> list[str]:
        """The columns of long tables that say whose set a row belongs to."""
        return [kind.id for kind in self.of_kind(ItemSet).values() if kind.id is not None]

    @property
    def protects(self) -> dict[str, Any]:
        """Whom the guarantee protects, as certificates and ledgers name it: a row, a unit, or an id of a long table."""
        if self.unit is not None:
            return {"name": self.unit.column, "max_rows": self.unit.max_rows}
        return {"name": next(iter(self._ids), "row"), "max_rows": 1}


AnySchema = TypeVar("AnySchema", bound=SchemaFacts)


class Keyed(Generic[T]):
    """A value to be found again, in a cache, by a key."""

    def __init__(self, value: T, key: object) -> None:
        self.value, self._key = value, key

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keyed) and self._key == other._key
