"""Records of units with features: what all rows of a unit say together, as columns beside constants and first row.

Codes become whole numbers of 2^-20 before anything is added up. Sums of these are exact in float64, so that the feature
of a unit is a function of its own rows to the last bit. Proof: docs/proofs/questions.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import final

import numpy as np

from sfumato.columns.kind import TabularKind
from sfumato.lenses.chain import plain_schema
from sfumato.records.engine import Rows
from sfumato.records.linked import LinkedData
from sfumato.records.sequences import Sequences, absent_code, unit_records
from sfumato.schema.linked import LinkedTables
from sfumato.schema.schema import Schema
from sfumato.schema.unit_features import MOMENTS, ONE, UnitFeature


def with_features(tables: LinkedTables, features: Sequence[UnitFeature]) -> Schema:
    """The schema of units with features as columns."""
    columns = {**tables.units.columns, **{feature.name: feature.kind for feature in features}}
    return dataclasses.replace(tables.units, columns=columns)


@final
class FeatureRecords:
    """Records of units: constants, number of rows, first row, and features. One record a unit.

    Args:
        data: linked rows.
        features: of units.
    """

    max_rows_per_unit = 1
    counts_entries = False

    def __init__(self, data: LinkedData, features: Sequence[UnitFeature]) -> None:
        self._data, self._features = data, tuple(features)
        self._schema = with_features(data.tables, features)

    @property
    def schema(self) -> Schema:
        """The public schema of units with features."""
        return self._schema

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
