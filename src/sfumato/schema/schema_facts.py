"""The facts of a schema, and what follows from them one by one: below what checks, derives, reads and writes them.

Areas are columns of labels that everything else is counted by, such as counties, clinics or branches:

    areas: [county]
    areas: [region, county]      # a rule says the region of each county

One column is counted and drawn before all others; those above it follow from it by rules, so that their totals agree.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

from sfumato.columns.bounded import NumericKind
from sfumato.columns.facts import plain_value, shown
from sfumato.columns.kinds import ColumnKind, Continuous, Image, ItemSet
from sfumato.columns.levels import LevelKind
from sfumato.columns.open import Open, OpenKind
from sfumato.columns.text_forms import MISSING_TOKENS
from sfumato.errors import SchemaError
from sfumato.io.chunks import Source
from sfumato.io.csv_form import CsvOutput
from sfumato.privacy.certificate_form import Weighting
from sfumato.schema.accept import Criterion
from sfumato.schema.database import Database
from sfumato.schema.reader import Reader, csv_output
from sfumato.schema.unit import Unit

LEAST, MOST = 1e-30, 1e30
"""Of bounds and totals: errors are squared and noise has a fine grid, which 64-bit floats hold within these."""
FactSource: TypeAlias = str | Mapping[str, str]
"""A word for all facts of a column, or one per fact."""
K = TypeVar("K", bound=ColumnKind)
T = TypeVar("T")


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
        rest = {name: getattr(self, name) for name in ("upper", "total") if getattr(self, name) is not None}
        return {"column": self.column, **rest} if rest else self.column


def _positive(value: object, name: str) -> float:
    number = plain_value(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number) or not number > 0:
        raise SchemaError(f"Expected {name} of weight to be a number above 0, got {shown(value)}.")
    if not LEAST <= number <= MOST:
        raise SchemaError(
            f"Expected {name} of weight between {LEAST:g} and {MOST:g}, got {shown(value)}. State weights in another "
            "unit, such as thousands of people."
        )
    return number


def weight_of(entry: object, faults: list[str]) -> Weight | None:
    """Return the weight that an entry says: a column, or a mapping; or note what is wrong with it."""
    if entry is None or isinstance(entry, Weight):
        return entry
    content: Any = {"column": entry} if isinstance(entry, str) else entry
    if not isinstance(content, Mapping) or "column" not in content or set(content) - {"column", "upper", "total"}:
        faults.append(
            "Expected weight to name a column, or to hold column, upper and perhaps total, such as {column: w, "
            "upper: 20}."
        )
        return None
    try:
        return Weight(**content)
    except SchemaError as error:
        faults.append(str(error))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFacts:
    """The facts of a `Schema`, whose attributes these are, unchecked."""

    columns: Mapping[str, ColumnKind]
    rows: int | None = None
    unit: Unit | None = None
    missing: tuple[str, ...] = field(default=MISSING_TOKENS)
    missing_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    draft: bool = False
    sources: Mapping[str, FactSource] = field(default_factory=dict)
    table_source: Mapping[str, str | bool] = field(default_factory=dict)
    reader: Reader = field(default_factory=Reader)
    rules: tuple[Mapping[str, Any], ...] = ()
    accept: tuple[Criterion, ...] = ()
    weight: Weight | None = None
    areas: tuple[str, ...] = ()
    questions: tuple[Any, ...] = ()

    def missing_in(self, source: Source, column: str) -> tuple[str, ...]:
        """Return the texts that stand for no value in a column: its own, or those declared of the table.

        Where none are declared, the usual ones if only text can say it. Elsewhere there is a null, and a text is what
        it says: of the usual ones only the empty one is no value.
        """
        if column in self.missing_of:
            return self.missing_of[column]
        return self.missing if source.missing_as_text or self.missing != MISSING_TOKENS else ("",)

    def is_exact(self, name: str) -> bool:
        """Whether the names in a column were text from the start, and are compared letter by letter."""
        return getattr(self.columns.get(name), "exact", False)

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
    def rows_are_records(self) -> bool:
        """Whether the holder says so of rows that a query or plan computes."""
        return self.table_source.get("rows_are_records") is True

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
        missing = {name: (*self.missing_of.get(name, self.missing), "")[0] for name in self.columns}
        return csv_output(self.columns, self.reader, missing)

    @property
    def written(self) -> tuple[str, ...]:
        """The columns of samples: the released ones; before them whose a linked row, or an item of a long table, is."""
        return (*self.ids, *self.released)

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that a source has to have: those of samples, the unit's and the weight's."""
        hidden = [part.column for part in (None if self.linked else self.unit, self.weight) if part is not None]
        return (*self.written, *hidden)

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


def unweighted(schema: AnySchema) -> AnySchema:
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
