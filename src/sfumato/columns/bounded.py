"""Kinds of values between two public bounds: what numbers, dates and other measures share.

A code is (value − lower) / (upper − lower). It is NaN for a missing cell of a nullable column.

The public grids on which numbers and years of open columns are counted have a cell for 0 and, for either sign, the
octaves [2^e, 2^(e+1)) from 2^-20 to 2^53, each cut into four; of dates, years.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.cells import is_text, missing_mask, plain, valid_text, values_of
from sfumato.columns.facts import as_fraction, shown
from sfumato.columns.kind import Fault, GivenValue, TabularKind, refuse, settle
from sfumato.columns.storage import as_dictionary, number_fault, type_words
from sfumato.columns.words_beside import FIRST_WORD, label_kind, listed_atoms, with_words

_FIRST, _LAST = -20, 53  # octaves of the grid: from 2^-20 to 2^53
_LARGEST = 2.0**_LAST
PARTS = 4  # cells of an octave
SIDE = (_LAST - _FIRST) * PARTS
N_CELLS = 2 * SIDE + 1  # negative numbers, 0, positive numbers
BEYOND, MISSING = N_CELLS, N_CELLS + 1
"""The cells behind the grid: values beyond it, and what is no value."""
MIDDLE_YEAR = 2000  # of the grid of years, which has as many cells as that of numbers


OPEN_COUNTS = "counts of the open column "
OPEN_UNITS = "number of units whose open columns were counted"
"""Under which a release holds a noisy number of units, where of each one row was counted."""
_CONTINUUM = 2**40  # steps between bounds without a resolution
_MOST_STEPS = 2**51  # a code times this many steps still rounds to the right one in float64


def counts_name(column: str) -> str:
    """Return the name under which a release holds the noisy counts of an open column's cells."""
    return f"{OPEN_COUNTS}{column!r}"


def cells_of(values: np.ndarray) -> np.ndarray:
    """Return the cell of each number on the public grid, int64; what is no finite number is in cell `MISSING`.

    Cell `SIDE` holds 0. Numbers from 2^53 on, which float64 does not tell apart, are in cell `BEYOND`, and those nearer
    to 0 than 2^-20 in the cells beside that of 0.
    """
    size = np.abs(values)
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, size, 1.0))  # size = mantissa · 2^exponent, mantissa in [0.5, 1)
    place = (exponent - 1 - _FIRST) * PARTS + np.floor((2 * mantissa - 1) * PARTS).astype(np.int64)
    place = np.clip(place, 0, SIDE - 1) + 1
    signed = SIDE + np.where(values < 0, -place, place)
    cells = np.where(size == 0, SIDE, np.where(size >= _LARGEST, BEYOND, signed))
    return np.where(finite, cells, MISSING).astype(np.int64)


def cell_span(cell: int) -> tuple[float, float]:
    """Return the lower and upper edge of a cell of the grid of numbers."""
    if cell == SIDE:
        return 0.0, 0.0
    octave, part = divmod(abs(cell - SIDE) - 1, PARTS)
    near, far = (2.0 ** (octave + _FIRST) * (1 + (part + i) / PARTS) for i in (0, 1))
    near = near if octave or part else 0.0  # the innermost cell also takes what is nearer to 0
    return (near, far) if cell > SIDE else (-far, -near)


def open_edges(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper edges of the cells that an open column is counted in, shape (N_CELLS,) each.

    Of dates the first day of the cells' years, in years, and of the years after; else of the cells of numbers.
    """
    if kind == "datetime":
        years = np.arange(N_CELLS) - SIDE + float(MIDDLE_YEAR)
        return years, years + 1
    edges = np.array([cell_span(cell) for cell in range(N_CELLS)])
    return edges[:, 0], edges[:, 1]


def year_cells(years: np.ndarray) -> np.ndarray:
    """Return the cell of each year on the public grid of years, int64; NaN is in cell `MISSING`.

    Years beyond the grid, as of 9999-12-31, are in cell `BEYOND`.
    """
    known = ~np.isnan(years)
    place = np.where(known, years, 0) - MIDDLE_YEAR + SIDE
    place = np.where((place < 0) | (place >= N_CELLS), BEYOND, place)
    return np.where(known, place, MISSING).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps 0 to `last`: step = code · scale − offset.

    Attributes:
        last: the last step, at most 2^51; a finer resolution is coarsened.
        scale: steps between the bounds; more than `last` if the bounds are no multiples of the resolution.
        offset: steps from the lower bound to step 0, in [0, 1).
    """

    last: int
    scale: float
    offset: float

    @classmethod
    def whole(cls, last: int) -> Steps:
        """Return the steps between bounds that are steps themselves."""
        last = min(last, _MOST_STEPS)
        return cls(last, float(last), 0.0)

    @classmethod
    def between(cls, lower: float, upper: float, resolution: float | None) -> Steps:
        """Return the multiples of a resolution between two bounds; without one, very many steps."""
        if resolution is None or lower == upper:
            return cls.whole(_CONTINUUM if upper > lower else 0)
        step = as_fraction(resolution)
        low, high = as_fraction(lower) / step, as_fraction(upper) / step
        first = math.ceil(low)
        last = math.floor(high) - first
        return cls.whole(last) if last > _MOST_STEPS else cls(last, float(high - low), float(first - low))

    def at(self, codes: np.ndarray) -> np.ndarray:
        """Return the step nearest to each code in [0, 1], int64."""
        return np.clip(np.rint(codes * self.scale - self.offset), 0, self.last).astype(np.int64)

    def codes(self, steps: np.ndarray) -> np.ndarray:
        """Return the code of each step."""
        return np.minimum((steps + self.offset) / (self.scale or 1.0), 1.0)


@dataclass(frozen=True, slots=True)
class ListedSteps(Steps):
    """A step for each of some values, however far apart these are.

    Attributes:
        places: their codes, ascending.
    """

    places: tuple[float, ...]

    def at(self, codes: np.ndarray) -> np.ndarray:
        """Return the step nearest to each code in [0, 1], int64."""
        return nearest(np.array(self.places), np.asarray(codes))

    def codes(self, steps: np.ndarray) -> np.ndarray:
        """Return the code of each step, and between two of them what lies between their codes."""
        return np.interp(steps, np.arange(len(self.places)), self.places)


def nearest(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the place of the value nearest to each number, of some in ascending order; of two as near the larger."""
    if values.size == 1:
        return np.zeros(np.shape(numbers), dtype=np.int64)
    above = np.clip(np.searchsorted(values, numbers), 1, values.size - 1)
    return above - (numbers - values[above - 1] < values[above] - numbers)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Numbers or dates as they are written, in place of codes: these are exact.

    Attributes:
        values: in the unit that a kind reads them in, shape (n,).
        absent: which are missing, or words, shape (n,).
        words: the place of each word among those of the column, -1 of none, shape (n,); None without any.
    """

    values: np.ndarray
    absent: np.ndarray
    words: np.ndarray | None = None

    def __getitem__(self, some: Any) -> Values:  # noqa: ANN401 - what numpy takes
        return Values(self.values[some], self.absent[some], None if self.words is None else self.words[some])

    def __len__(self) -> int:
        return len(self.values)


class NumericKind(TabularKind):
    """A kind whose cells are values between two bounds; a code is the position between them, float64 in [0, 1].

    A kind with `atoms` may have words beside these: their codes are from `FIRST_WORD` on.

    Attributes:
        lower: the smallest value, as it was declared; smaller ones are clamped to it.
        upper: the largest.
    """

    __slots__ = ()

    is_numeric: ClassVar[bool] = True
    lower: Any
    upper: Any

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """The bounds in the unit that values are read in."""

    @property
    @abstractmethod
    def steps(self) -> Steps:
        """The steps of the resolution between the bounds."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words that cells may hold in place of a value, in the order of their codes."""
        return tuple(atom for atom in getattr(self, "atoms", ()) if isinstance(atom, str))

    @property
    def single_values(self) -> tuple[float, ...]:
        """The values that many rows share, as they are read; in bounds, and of the resolution."""
        return tuple(atom for atom in getattr(self, "atoms", ()) if not isinstance(atom, str))

    @property
    def wordless(self) -> NumericKind:
        """The kind of the values alone, missing where a word is; the kind itself without words."""
        if not self.words:
            return self
        return replace(self, atoms=self.single_values, nullable=True)  # type: ignore[type-var] - as every kind is

    def _settle_atoms(self, atoms: object) -> None:
        """Check what is declared of single values and words, once all other facts are settled."""
        faults: list[str] = []
        settle(self, atoms=())  # a kind has to have a hash
        values = listed_atoms(
            atoms,
            lambda words: self.read(pa.array(words, pa.string()), ())[1],
            lambda value: self._given_code("each of atoms", value, faults)[1][0].item(),
            faults,
        )
        refuse(faults)
        settle(self, atoms=values)

    @property
    def zero_code(self) -> float | None:
        """The code of the value 0; None if it is not within the bounds, or not a value to speak of."""
        lower, upper = self.bounds
        if not lower <= 0 <= upper or lower == upper:
            return None
        return (0.0 - lower) / float(upper - lower)

    @property
    def is_constant(self) -> bool:
        """Whether the bounds leave only one value."""
        lower, upper = self.bounds
        return lower == upper

    @property
    def width(self) -> int:
        """The code, and for a nullable column whether it is missing."""
        return 1 + self.nullable

    @abstractmethod
    def read(self, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return n cells of any type as values, and a mask of those that are values; each from its own cell alone."""

    @abstractmethod
    def store(self, values: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
        """Return values as an array of a storage type that is no dictionary, null where absent."""

    @abstractmethod
    def decoded(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of codes, and a mask of the missing ones."""

    @abstractmethod
    def _given_code(self, column: str, value: object, faults: list[str]) -> tuple[float, np.ndarray]:
        """Return a value's code and the value itself, shape (1,), or note a fault."""

    def _missing_codes(self, n: int) -> np.ndarray:
        return self._code(pa.nulls(n), ())

    def decode(self, codes: np.ndarray | Values, storage: pa.DataType) -> pa.Array:
        """Return the values of codes in exactly the storage type; codes outside the domain are clamped.

        `Values` are stored as they are.

        Text storage gets integers as `17`, continuous values with the decimals of their resolution, and dates by their
        `format` or ISO 8601.
        """
        if isinstance(codes, Values):
            return self.to_storage(codes.values, codes.absent, storage, codes.words)
        codes = np.asarray(codes, dtype=np.float64)
        words = np.where(codes >= FIRST_WORD, codes - FIRST_WORD, -1).astype(np.int64) if self.words else None
        return self.to_storage(*self.decoded(codes), storage, words)

    @final
    def to_storage(
        self, values: np.ndarray, absent: np.ndarray, storage: pa.DataType, words: np.ndarray | None = None
    ) -> pa.Array:
        """Return values, and words by their places, in exactly a storage type without a fault, null where absent."""
        if types.is_dictionary(storage):
            return as_dictionary(self.to_storage(values, absent, storage.value_type, words), storage)
        cells = self.store(values, absent, storage)
        return cells if words is None else with_words(cells, words, self.words)

    def word_places(self, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
        """Return the place of the word that each cell holds, -1 where none, shape (n,): of its own text alone."""
        places = np.full(len(cells), -1, dtype=np.int64)
        if self.words and is_text(values_of(cells.type)):
            places = label_kind(self.words).find(cells, missing).astype(np.int64)
        return np.maximum(places, -1)

    def _with_words(self, codes: np.ndarray, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
        """Return the codes of cells, those of words in the place of what a cell without a value has."""
        places = self.word_places(cells, missing)
        return np.where(places >= 0, FIRST_WORD + places, codes)

    @final
    def as_text(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return cells of samples as they are written as text; what is no value is null."""
        chunks = []
        for chunk in cells.chunks:
            cells = plain(chunk)
            values, valid = self.read(cells, ())
            chunks.append(self.to_storage(values, ~valid, pa.string(), self.word_places(cells, ())))
        return pa.chunked_array(chunks, pa.string())

    def storage_fault(self, storage: pa.DataType) -> str | None:
        """Return why the values cannot be stored in a type, or None if they can."""
        values = storage
        if types.is_dictionary(storage):
            values = storage.value_type
            if storage.index_type.bit_width < 32:
                return f"Expected a plain column, got type {storage}. Store it without a dictionary."
        if is_text(values) and not types.is_fixed_size_binary(values):
            return None
        if self.words:
            return f"Expected text for words beside values ({self.words[0]!r}), got {type_words(values)}. Store text."
        return self._value_fault(values)

    def _value_fault(self, storage: pa.DataType) -> str | None:
        """Return why the values cannot be stored in a type that is not text, or None if they can."""
        return number_fault(self.name, *self.bounds, storage)

    def beyond(self, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return masks of the cells outside the bounds, and of the cells that hold a value."""
        values, valid = self.read(cells, missing)
        lower, upper = self.bounds
        return (values < lower) | (values > upper), valid

    def faults(self, cells: pa.Array, missing: Sequence[str]) -> dict[Fault, np.ndarray]:
        """Return which cells have no value, which one outside the bounds, and which are no number or date."""
        cells = plain(cells)
        beyond, valid = self.beyond(cells, missing)
        absent = missing_mask(cells, missing) | (self.read(cells, ())[1] & ~valid)
        no_value = ~valid & ~absent & (self.word_places(cells, missing) < 0)
        return {"missing": absent, "clamped": beyond & valid, "unparseable": no_value}

    def becomes(self, fault: Fault) -> str:
        """Say what a fit makes of a cell with a fault."""
        if fault == "clamped":
            return "the nearest bound"
        return "missing" if self.nullable else "the midpoint of the bounds"

    def _read_given(self, column: str, value: object, storage: pa.DataType, faults: list[str]) -> GivenValue:
        word = self.word_places(pa.array([valid_text(value)]), ()) if isinstance(value, str) else np.array([-1])
        if word[0] >= 0:
            return GivenValue(FIRST_WORD + int(word[0]), self.decode(FIRST_WORD + word, storage))
        code, values = self._given_code(column, value, faults)
        if faults:
            return GivenValue(0.0, pa.nulls(1))
        return GivenValue(code, self.to_storage(values, np.array([False]), storage))

    def _outside(self, column: str, value: object) -> str:
        return f"Expected {self.lower} <= {column} <= {self.upper}, got {column}={shown(value)}."

    def corner(self, share: float) -> np.ndarray:
        """Return the lower bound or the upper."""
        return np.array([float(share)])


class WholeKind(NumericKind):
    """A numeric kind whose values are whole numbers of steps: integers, dates, durations."""

    __slots__ = ()

    @property
    @abstractmethod
    def bounds(self) -> tuple[int, int]:
        """The first and the last value."""

    @abstractmethod
    def whole_of(self, column: str, value: object, faults: list[str]) -> int | None:
        """Return the value that a caller gives, or note why it is none; its bounds are checked afterwards."""

    def text_of(self, value: int) -> str:
        """Return how a value is shown."""
        return str(value)

    @property
    def steps(self) -> Steps:
        """A step for every value, or fewer."""
        lower, upper = self.bounds
        return Steps.whole(upper - lower)

    def _code(self, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
        values, valid = self.read(cells, missing)
        return self._with_words(self._codes(np.asarray(values, dtype=np.int64), valid), cells, missing)

    def _codes(self, values: np.ndarray, valid: np.ndarray) -> np.ndarray:
        """Return codes of int64 values; the subtraction is exact before anything becomes a float."""
        lower, upper = self.bounds
        span = upper - lower
        codes = (np.clip(values, lower, upper) - lower) / float(max(span, 1))
        codes[~valid] = np.nan if self.nullable else (span // 2) / max(span, 1)
        return codes

    def decoded(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return int64 values of codes, and a mask of the missing ones."""
        lower, upper = self.bounds
        span = upper - lower
        absent = np.isnan(codes)
        steps = np.rint(np.clip(np.where(absent, 0.0, codes), 0.0, 1.0) * float(span)).astype(np.int64)
        steps[absent] = span // 2
        return np.minimum(steps, span) + lower, absent & self.nullable

    def _given_code(self, column: str, value: object, faults: list[str]) -> tuple[float, np.ndarray]:
        number, (lower, upper) = self.whole_of(column, value, faults), self.bounds
        if number is None or (not faults and not lower <= number <= upper):
            faults += [] if faults else [self._outside(column, value)]
        if faults:
            return 0.0, np.zeros(1)
        values = np.array([number])
        return float(self._codes(values, np.array([True]))[0]), values

    def parts(self, n: int) -> list[str]:
        """Return the first and the last value of each part."""
        lower, upper = self.bounds
        span = upper - lower
        if span == 0:
            return [self.text_of(lower), *[""] * (n - 1)]
        starts = [lower - (-span * i // n) for i in range(n)]
        pairs = zip(starts, [*(start - 1 for start in starts[1:]), upper], strict=True)
        return ["" if first > last else " to ".join(map(self.text_of, sorted({first, last}))) for first, last in pairs]
