"""Linked rows: the rows of every unit in their order, as records of units and as records of steps.

What is constant is taken from the first row, or from the table of units, which also has those without rows.

Codes that features sum become whole numbers of 2^-20 before anything is added up. Sums of these are exact in float64,
so that the feature of a unit is a function of its own rows to the last bit. Proof: docs/proofs/questions.md.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import final

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.lenses.chain import plain_schema, read_kinds
from sfumato.records.engine import Rows
from sfumato.records.long_tables import as_records
from sfumato.records.private import PrivateData
from sfumato.records.sequences import RowOrder, Sequences, absent_code, step_records, unit_records
from sfumato.records.table_sources import TableSources
from sfumato.records.units import UnitNumbers
from sfumato.schema.linked import LinkedTables, end_codes, linked_tables
from sfumato.schema.schema import Schema
from sfumato.schema.unit_features import MOMENTS, ONE, UnitFeature


class RecordsOfUnits:
    """Records of which each is a unit with all that it has."""

    max_rows_per_unit = 1
    counts_entries = False  # cells say how many units there are


class LinkedRecords(RecordsOfUnits, ABC):
    """Records of units: their constants, number of rows and first row. `steps` are records of steps.

    Attributes:
        tables: of units and of steps.
        described: the public schema, as it was declared.
    """

    tables: LinkedTables
    described: Schema

    @property
    def schema(self) -> Schema:
        """The public schema of units with their first row."""
        return self.tables.units

    @property
    def steps(self) -> StepRecords:
        """Records of steps, one for each unit of two rows or more."""
        return StepRecords(self)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns, a unit a row."""
        return unit_records(self.tables, self.sequences())

    @abstractmethod
    def sequences(self) -> Sequences:
        """Return the rows that count in their order; read once."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.described.released)})"


@final
class LinkedData(LinkedRecords):
    """Linked rows of one source.

    The source is read once, when records are first asked for. Memory: per unit its name, and of each row that counts 8
    bytes a number and 4 a label; twice that while rows are put in order. Without a column of order all rows are held
    until the last is read.

    Args:
        source: where the rows lie.
        schema: what is public about them; its unit links rows.

    Attributes:
        source: of the records; its metadata are public, its chunks are not.

    Raises:
        SchemaError: as `PrivateData`.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self._rows = PrivateData(source, schema)
        self.source = as_records(source, schema)
        self.described = schema
        self.tables = linked_tables(plain_schema(schema), schema.weight)
        self._sequences: Sequences | None = None

    def sequences(self) -> Sequences:
        """Return the rows that count in their order; read once."""
        if self._sequences is None:
            # of coding and sorting nothing may be said but that it failed
            message = f"Cannot read the units of {self.source.label}. Please report its types: a fit reads any cell."
            schema, unit = self.described, self.described.unit
            assert unit is not None
            sorting = _Sorting(schema, self.source)
            names = dict.fromkeys([*read_kinds(schema), unit.column])
            source = self.source.with_dictionaries()
            is_joined = isinstance(source, TableSources)  # then those units come, too, that have no rows
            chunks = source.joined(tuple(names)) if is_joined else ((c, True) for c in source.chunks(list(names)))
            for chunk, has_rows in chunks:

                def take(chunk: Chunk = chunk, has_rows: bool = has_rows) -> None:
                    sorting.take(chunk.columns[unit.column], self._rows._code(chunk), has_rows=has_rows)

                attempt(take, message)
            self._sequences = attempt(sorting.sequences, message)
        return self._sequences


@final
class StepRecords(RecordsOfUnits):
    """Records of steps: of each unit of two rows or more, coded columns of all its steps side by side.

    Columns have shape (units, steps), of which the first ones of a unit count, as many as `STEPS` says. Units come in
    the order of their numbers of steps; nothing depends on it. Weighted units also have their weight at every step,
    which is no column of the schema.

    Attributes:
        schema: the public one of a step, as it is modelled.
    """

    def __init__(self, data: LinkedRecords) -> None:
        assert data.tables.steps is not None
        self._data, self.schema = data, plain_schema(data.tables.steps)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns, a unit a row."""
        return step_records(self._data.tables, self._data.sequences())


class _Sorting:
    """Takes rows with the names of their units."""

    def __init__(self, schema: Schema, source: Source) -> None:
        plain, unit = plain_schema(schema), schema.unit
        assert unit is not None
        self._constants = tuple(name for name in plain.released if name in unit.constant)
        self._numbers = UnitNumbers((*schema.missing_in(source, unit.column), ""), exact=schema.is_exact(unit.column))
        self._rows = RowOrder(plain.released, unit.order, unit.max_rows, self._numbers.hashes, end_codes(plain))
        self._without: list[np.ndarray] = []

    def take(self, cells: object, rows: Rows, *, has_rows: bool = True) -> None:
        """Take in the rows of a chunk, but for those of no unit; not `has_rows`: a row for each unit without any."""
        units = self._numbers.numbers(cells)  # type: ignore[arg-type]
        if not has_rows:
            self._without.append(units[units >= 0])
        self._rows.take(units, rows)

    def sequences(self) -> Sequences:
        """Return the rows that count."""
        units, codes, _ = self._rows.rows()
        sizes = np.bincount(units, minlength=len(self._numbers))
        for without in self._without:
            sizes[without] = 0
        return Sequences.joined(sizes, codes, self._constants)


def with_features(tables: LinkedTables, features: Sequence[UnitFeature]) -> Schema:
    """The schema of units with features as columns."""
    columns = {**tables.units.columns, **{feature.name: feature.kind for feature in features}}
    return dataclasses.replace(tables.units, columns=columns)


@final
class FeatureRecords(RecordsOfUnits):
    """Records of units: constants, number of rows, first row, and features. One record a unit.

    Args:
        data: linked rows.
        features: of units.

    Attributes:
        schema: the public one of units with features.
    """

    def __init__(self, data: LinkedRecords, features: Sequence[UnitFeature]) -> None:
        self._data, self._features = data, tuple(features)
        self.schema = with_features(data.tables, features)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of coded columns, a unit a row."""
        kinds = plain_schema(self._data.described).of_kind(TabularKind)
        return feature_records(self._data.tables, self._data.sequences(), self._features, kinds)


def feature_records(
    tables: LinkedTables, sequences: Sequences, features: Sequence[UnitFeature], kinds: Mapping[str, TabularKind]
) -> Iterator[Rows]:
    """Yield chunks of records of units with features; `kinds` are those of columns of rows."""
    start = 0
    for rows in unit_records(tables, sequences):
        n = next(iter(rows.values())).size
        some = slice(start, start + n)
        places = _Places.of(sequences.starts[some], sequences.sizes[some])
        own = {f.name: places.feature(f, sequences.codes[f.column], kinds[f.column], tables.max_rows) for f in features}
        yield {**rows, **own}
        start += n


@dataclasses.dataclass(frozen=True, slots=True)
class _Places:
    """Where the rows of some units lie.

    Attributes:
        rows: the place of each row, one unit's after the other's, shape (n,).
        owners: its unit, from 0, shape (n,).
        starts: of each unit, its first row among these, shape (units,).
        sizes: of each unit, shape (units,).
    """

    rows: np.ndarray
    owners: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, starts: np.ndarray, sizes: np.ndarray) -> _Places:
        owners = np.repeat(np.arange(sizes.size), sizes)
        own = np.cumsum(sizes) - sizes
        return cls(np.arange(owners.size) - own[owners] + starts[owners], owners, own, sizes)

    def feature(self, feature: UnitFeature, codes: np.ndarray, kind: TabularKind, max_rows: int) -> np.ndarray:
        """Return the code of a feature of each unit, shape (units,)."""
        codes = codes[self.rows]
        if feature.form == "ever":
            return (self._sums(codes == feature.label) > 0).astype(np.int32)
        if feature.form in ("first", "last"):
            return self._row_of(codes, feature.kind, last=feature.form == "last")
        if feature.form in MOMENTS:
            moments = self._moments(feature, codes, max_rows)
            return moments if float(feature.kind.bounds[0]) == 0 else (moments + 1) / 2  # type: ignore[attr-defined]
        present = ~np.isnan(codes)
        whole = np.rint(np.where(present, codes, 0.0) * ONE)
        if feature.form == "mean":
            rows = self._sums(present)
            return np.where(rows > 0, self._sums(whole) / np.maximum(rows, 1) / ONE, np.nan)
        first, last = (
            self._row_of(np.where(present, whole, np.nan), feature.kind, last=last) for last in (False, True)
        )
        return np.where(self.sizes > 1, ((last - first) / ONE + 1) / 2, np.nan)

    def _sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of whole numbers over the rows of each unit, shape (units,)."""
        return np.bincount(self.owners, values, self.sizes.size)

    def _row_of(self, codes: np.ndarray, kind: TabularKind, *, last: bool) -> np.ndarray:
        """The code of the first or the last row of each unit, shape (units,); missing of a unit without rows."""
        if not codes.size:
            return np.full(self.sizes.size, absent_code(kind))
        own = self.starts + np.where(last, self.sizes - 1, 0)
        return np.where(self.sizes > 0, codes[np.clip(own, 0, codes.size - 1)], absent_code(kind))

    def _moments(self, feature: UnitFeature, codes: np.ndarray, max_rows: int) -> np.ndarray:
        """One of the sums over pairs of rows of each unit ÷ the most pairs, in [-1, 1], shape (units,)."""
        n = max(codes.size - feature.lag, 0)
        earlier, later, owners = codes[:n], codes[codes.size - n :], self.owners[:n]
        pairs = (owners == self.owners[codes.size - n :]) & ~np.isnan(earlier) & ~np.isnan(later)
        x, y = (self._standardised(feature, ends[pairs]) for ends in (earlier, later))
        values = {
            "pairs": np.full(x.size, float(ONE**2)), "earlier": x * ONE, "later": y * ONE,
            "earlier squared": x**2, "later squared": y**2, "products": x * y,
        }[feature.form]  # fmt: skip
        sums = np.bincount(owners[pairs], values, self.sizes.size)
        return sums / ((max_rows - feature.lag) * float(ONE**2))

    @staticmethod
    def _standardised(feature: UnitFeature, codes: np.ndarray) -> np.ndarray:
        """Codes about the centre by the scale, whole numbers of 2^-20 from -1 to 1."""
        away = (np.rint(codes * ONE) - feature.centre) / feature.scale
        return np.rint(np.clip(away, -1.0, 1.0) * ONE)
