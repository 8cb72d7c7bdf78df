"""What an estimator fits: numeric rows in chunks, from arrays, frames or files, and their public place in a ball."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import joined, read_floats
from sfumato.columns.images import image_numbers
from sfumato.columns.kinds import Continuous, Integer
from sfumato.errors import ConfigError, DataError, require_positive
from sfumato.io.chunks import Chunk, Source, attempt
from sfumato.io.sources import open_source
from sfumato.lenses.weights import whole_weights
from sfumato.privacy.certificate_form import Weighting
from sfumato.records.engine import Rows, Statistic
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema
from sfumato.schema.schema_facts import weighting_of
from sfumato.schema.shapes import ESTIMATORS, require_able
from sfumato.schema.unit import Unit

X = "x"
WEIGHT = "weight of the record"
"""The column of rows that count by weights: each weight ÷ the bound."""
WEIGHED_BITS = 12
"""Of a weight ÷ the bound."""
MOST_WEIGHED_ROWS = 1 << 28
"""Most rows that a fit by weights takes: beyond, vectors and weights would share too few bits."""
_CHUNK_BYTES = 1 << 26
_WIDEST_BOUND = 1e150


@final
@dataclass(frozen=True)
class Weighed:
    """Another statistic, each record times its weight ÷ the bound, at most once.

    A record adds k/2^bits of what it adds to the other, exactly: in whole numbers k times that, in steps of 2^-bits,
    where k is the nearest whole number to 2^bits times its column `WEIGHT`, cut to [0, 2^bits]. Bit b of k adds the
    sum over the records that have it, times 2^b, so that no statistic needs a weighted form.

    Privacy: norm and distance of the other. With a, b in [0, 1], ‖av − bv'‖ is convex in each of a and b, hence
        largest where these are 0 or 1: at most the larger of ‖v‖, ‖v'‖ and ‖v − v'‖. One event, the other's. Proof:
        docs/proofs/weights.md.

    Attributes:
        statistic: what to sum, of whole numbers.
        bits: of weights.

    Raises:
        ConfigError: the statistic adds floats.
    """

    statistic: Statistic
    bits: int = WEIGHED_BITS

    def __post_init__(self) -> None:
        if self.statistic.step is None:
            raise ConfigError(f"Expected whole numbers beside weights, got the sum of floats {self.statistic.name!r}.")

    @property
    def name(self) -> str:
        """The other's."""
        return self.statistic.name

    @property
    def norm_bound(self) -> float:
        """B of the other."""
        return self.statistic.norm_bound

    @property
    def replace_bound(self) -> float:
        """The distance of the other, and never below B: an addition may be taken from 0."""
        return max(self.statistic.replace_bound, self.norm_bound)

    @property
    def step(self) -> float | np.ndarray:
        """The other's times 2^-bits."""
        assert self.statistic.step is not None
        return self.statistic.step * 2.0**-self.bits

    def zero(self) -> np.ndarray:
        """Zeros, int64: sums of a piece of rows may pass 2^53."""
        return np.zeros(self.statistic.zero().shape, dtype=np.int64)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, those of one bit of their weights at a time."""
        weights = whole_weights(rows, WEIGHT, self.bits)
        for bit in range(self.bits + 1):
            places = np.flatnonzero(weights >> bit & 1)
            if places.size:
                part = self.statistic.zero()
                self.statistic.add(part, {name: column[places] for name, column in rows.items()})
                total += part.astype(np.int64) << bit


class NumericRecords(ABC):
    """Rows of numbers, in chunks.

    Attributes:
        dimension: numbers of a row.
        names: of the columns; None where they have none.
        unit: whose the rows are, where several may be of one person; None where each row is protected by itself.
        weight: how rows count; None where each counts once.
        source: where they lie; None of arrays.
        rows_are_records: whether a schema says so of rows that a program computes.
    """

    dimension: int
    names: tuple[str, ...] | None
    unit: Unit | None = None
    weight: Weighting | None = None
    source: Source | None = None
    rows_are_records: bool = False

    @abstractmethod
    def coded(self) -> Iterator[Rows]:
        """Yield chunks of rows; a missing cell is NaN. With weights there is a column of them, ÷ their bound."""

    @property
    def max_rows_per_unit(self) -> int:
        """Most rows that one unit contributes."""
        return 1 if self.unit is None else self.unit.max_rows

    @property
    def weight_bits(self) -> int:
        """Bits of a weight; 0 where each row counts once."""
        return 0 if self.weight is None else WEIGHED_BITS

    def weighed(self, statistic: Statistic) -> Statistic:
        """Return the statistic as these records, which may count by weights, add to it."""
        return statistic if self.weight is None else Weighed(statistic)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, else x0, x1, …."""
        return self.names or tuple(f"x{j}" for j in range(self.dimension))


class ArrayRecords(NumericRecords):
    """A two-dimensional array of numbers, possibly mapped from a file, read in chunks."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.dimension = array.shape[1]
        self.names: tuple[str, ...] | None = None

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of rows."""
        step = max(1, _CHUNK_BYTES // (8 * self.dimension))
        for start in range(0, len(self._array), step):
            with np.errstate(all="ignore"):  # a warning of a wide number that overflows would tell of it
                chunk = np.ma.filled(self._array[start : start + step].astype(np.float64), np.nan)  # masked is missing
            yield {X: chunk}


class SourceRecords(NumericRecords):
    """The numeric columns of a source, or its images as rows of numbers, read in chunks."""

    def __init__(self, source: Source) -> None:
        self.source = self._source = source
        types = dict(source.storage)
        first = next(iter(types.values()))
        if isinstance(first, pa.FixedShapeTensorType):
            self._columns, self.names = ("x",), None
            self.dimension = int(np.prod(first.shape))
            return
        known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)  # of batches that are not yet there: null
        other = [n for n, t in types.items() if not any(is_one(t) for is_one in known)]
        if other:
            raise DataError(
                f"Expected {source.label} to have columns of numbers only, got {', '.join(map(repr, other))}. "
                "Drop or encode them; give a CSV file as a data frame."
            )
        self._columns = self.names = tuple(types)
        self.dimension = len(types)

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of rows; a missing cell is NaN."""
        for chunk in self._source.chunks(self._columns):
            yield {X: attempt(lambda chunk=chunk: self._rows(chunk), f"Cannot read numbers from {self._source.label}.")}

    def _rows(self, chunk: Chunk) -> np.ndarray:
        if self.names is None:
            return image_numbers(chunk.columns[self._columns[0]]).reshape(chunk.n_rows, -1)
        return np.column_stack([read_floats(joined(chunk.columns[n]), ()) for n in self._columns])


class SchemaRecords(NumericRecords):
    """The released columns of a source by its schema, all of them numbers, as rows in data units.

    Args:
        source: of the records, of any form that a fit takes, text as well.
        schema: what is publicly known of them: its bounds are the bounds.

    Attributes:
        names: of the columns.
        bounds: (lower, upper), each of shape (q,), data units.

    Raises:
        ConfigError: the schema has a column that is no number, linked rows, rules, or leaves something open.
        DataError, SchemaError: the source does not have the schema's columns.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        kinds = _numbers(schema)
        self.unit, self.weight = schema.unit, weighting_of(schema)
        self.source, self.rows_are_records = source, schema.rows_are_records
        self._data = PrivateData(source, schema)
        self.names: tuple[str, ...] | None = tuple(kinds)
        self.dimension = len(kinds)
        self.bounds = (
            np.array([kind.lower for kind in kinds.values()], dtype=np.float64),
            np.array([kind.upper for kind in kinds.values()], dtype=np.float64),
        )

    def coded(self) -> Iterator[Rows]:
        """Yield chunks of rows; a missing cell is NaN."""
        lower, upper = self.bounds
        for rows in self._data.coded():
            shares = np.column_stack([rows[name] for name in self.columns])
            weights = {} if self.weight is None else {WEIGHT: rows[self.weight.column]}
            yield {X: lower + shares * (upper - lower), **weights}


def _numbers(schema: Schema) -> dict[str, Continuous | Integer]:
    """Return the released columns, all of them numbers; refuse a schema that an estimator cannot keep."""
    require_able(schema, ESTIMATORS)
    columns = {name: schema.columns[name] for name in schema.released}
    kinds = {name: kind for name, kind in columns.items() if isinstance(kind, Continuous | Integer)}
    other = [name for name in columns if name not in kinds]
    if other or not kinds:
        listed = ", ".join(map(repr, other)) or "none"
        raise ConfigError(f"Expected released columns of numbers for an estimator, got {listed}. Leave out all others.")
    return kinds


def open_rows(data: Any) -> NumericRecords:  # noqa: ANN401 - anything with rows
    """Open data for reading in chunks; no cell is looked at.

    Args:
        data: a two-dimensional array or list of numbers, or whatever `open_source` takes and has numeric columns. The
            form of a list's first row is public, and its length that of all. The index of a frame is no feature.

    Raises:
        ConfigError, DataError: it is none of these. The message shows no cell.
    """
    if isinstance(data, SchemaRecords):
        return data
    if isinstance(data, np.ndarray):
        array = data
    elif isinstance(data, list) or (hasattr(data, "__array__") and not hasattr(data, "columns")):
        message = "Expected rows of numbers, all of one length, got something else."
        array = attempt(lambda: _listed(data) if isinstance(data, list) else np.asarray(data), message)
    else:
        data = data.reset_index(drop=True) if hasattr(data, "reset_index") else data
        source = open_source(data)
        rows = max(1, min(65_536, _CHUNK_BYTES // (8 * max(1, len(source.storage)))))
        return SourceRecords(replace(source, chunk_rows=rows))
    if array.ndim != 2:
        raise ConfigError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data: a row per record, a column per "
            "feature."
        )
    if array.dtype.kind not in "buif":
        hint = "Complex data not supported. " if array.dtype.kind == "c" else ""
        raise DataError(f"{hint}Expected an array of real numbers, got dtype {array.dtype}. Convert it first.")
    if array.shape[1] == 0:
        raise ConfigError(
            "Expected at least one feature, got 0 feature(s) (shape=(n, 0)) while a minimum of 1 is required."
        )
    return ArrayRecords(array)


def _listed(rows: list[Any]) -> np.ndarray:
    """Return a list of rows of one length as an array; a cell that is no number is missing, so that none stops a fit.

    Always cell by cell: numpy reads dates and durations as numbers, but gives up on all rows for one odd cell, and a
    record would change how the others are read.
    """
    if not rows or not _is_row(rows[0]) or (len(rows[0]) and all(map(_is_row, rows[0]))):
        return np.asarray(rows)  # not of two axes; numpy says how many
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one about a complex or a masked cell would tell of it
        return np.array([[_as_number(cell) for cell in row] for row in rows], dtype=np.float64)


def _is_row(cell: object) -> bool:
    if isinstance(cell, str | bytes | Mapping | Set) or (isinstance(cell, np.ndarray) and cell.ndim == 0):
        return False
    return hasattr(cell, "__len__") and hasattr(cell, "__iter__")


def _as_number(cell: Any) -> float:  # noqa: ANN401 - anything
    try:
        try:
            return float(cell)
        except OverflowError:  # a whole number of any length
            return np.inf if cell > 0 else -np.inf
    except Exception:  # noqa: BLE001 - somebody's __float__ may raise anything, with the cell in it
        return np.nan


@dataclass(frozen=True)
class Ball:
    """The public map between data units and the unit ball: z = (clip(x, lower, upper) − middle) ÷ scale.

    Attributes:
        lower: shape (q,), data units.
        upper: shape (q,), data units.
        scale: data units per unit of the ball, shape (q,).
    """

    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, bounds: Any, clip_norm: float | None, dimension: int, *, isotropic: bool) -> Ball:  # noqa: ANN401
        """Make the map from what a caller declares.

        Args:
            bounds: (lower, upper), numbers or one per column.
            clip_norm: norm beyond which records are shrunk, where half the width of a column is 1; None is √q, which
                leaves everything within the bounds as it is.
            dimension: q.
            isotropic: one scale for all columns, half the widest one: for methods that measure Euclidean distances.

        Raises:
            ConfigError: bounds are missing, not finite or not in order, or clip_norm is not above 0.
        """
        lower, upper = _read_bounds(bounds, dimension)
        norm = np.sqrt(dimension) if clip_norm is None else require_positive(clip_norm=clip_norm)
        half = (upper - lower) / 2
        if isotropic:
            half = np.full(dimension, half.max())
        return cls(lower, upper, half * norm)

    @property
    def middle(self) -> np.ndarray:
        """Return the middle of the bounds, data units, shape (q,)."""
        return (self.lower + self.upper) / 2

    def vectors(self, rows: Rows) -> np.ndarray:
        """Return records as vectors, clamped to the bounds, and not yet clipped to the ball; NaN stays NaN."""
        return (np.clip(rows[X], self.lower, self.upper) - self.middle) / self.scale

    def inside(self, points: np.ndarray) -> np.ndarray:
        """Return points, in data units, as vectors, without clamping."""
        return (points - self.middle) / self.scale

    def outside(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors as points, in data units."""
        return self.middle + vectors * self.scale


def _read_bounds(bounds: Any, dimension: int) -> tuple[np.ndarray, np.ndarray]:  # noqa: ANN401
    rule = "Expected bounds=(lower, upper), numbers or one per column, fixed without looking at the records"
    if bounds is None:
        raise ConfigError(f"{rule}, got none. Pass bounds to fit or to the constructor.")
    problem = None
    try:
        lower, upper = (np.broadcast_to(np.asarray(side, dtype=np.float64), (dimension,)) for side in bounds)
        if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
            problem = "a bound that is not finite, or a lower one that is not below the upper"
        elif max(np.abs(lower).max(), np.abs(upper).max()) > _WIDEST_BOUND:
            problem = f"a bound beyond ±{_WIDEST_BOUND:g}, where their width is no number"
    except (TypeError, ValueError):
        problem = f"something that does not fit {dimension} column(s)"
    if problem is not None:
        raise ConfigError(f"{rule}, got {problem}.")
    return lower, upper  # type: ignore[possibly-undefined]
