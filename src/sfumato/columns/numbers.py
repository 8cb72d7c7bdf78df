"""Columns of numbers: whole ones, and continuous values."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import types

from sfumato.columns.bounded import ListedSteps, NumericKind, Steps, WholeKind, nearest
from sfumato.columns.cells import read_floats, read_integers
from sfumato.columns.facts import as_fraction, check_order, decimals_of, flag, real_number, shown, whole_number
from sfumato.columns.kind import refuse, settle
from sfumato.columns.storage import store_float, store_integer
from sfumato.columns.written import Written

_WIDEST_INTEGER = 2**62  # a span and its codes then stay inside int64
_FINEST_GRID = 2**53  # beyond it float64 no longer tells neighbouring multiples apart
_ROUNDING = 2.0**-50
_GIVEN_ROUNDING = 1e-3  # of a resolution: float32 numbers are no exact multiples
_INT64_MAX = np.uint64(2**63 - 1)
_MOST_DIGITS = 17
MOST_LISTED = 1024
_LONGEST_NUMBER = 1e9  # larger ones are shown with an exponent


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer(WholeKind):
    """A whole number between two public bounds.

    Attributes:
        lower: smallest value; smaller ones are clamped to it.
        upper: largest value; larger ones are clamped to it.
        nullable: whether a missing cell stays missing, rather than becoming the midpoint.
        written: how it is written as text, where that is not plain.
        atoms: values that many rows share, and words beside all values, such as `<5`: see `docs/schema.md`.

    Example:
        >>> Integer(lower=0, upper=120)
        Integer(lower=0, upper=120, nullable=False)
        >>> Integer(lower=120, upper=0)
        Traceback (most recent call last):
            ...
        sfumato.errors.SchemaError: Expected lower <= upper, got lower=120, upper=0. Swap them.
        >>> Integer(lower=0, upper=10, atoms=("<5", 0)).code(pa.array(["7", "<5"]), missing=())
        array([0.7, 2. ])
    """

    name: ClassVar[str] = "integer"

    lower: int
    upper: int
    nullable: bool = False
    written: Written | None = field(default=None, repr=False)
    atoms: tuple[str | float, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        faults: list[str] = []
        lower = whole_number("lower", self.lower, faults)
        upper = whole_number("upper", self.upper, faults)
        nullable = flag(self.nullable, faults)
        written = Written.of(self.written, faults)
        if not faults:
            check_order(lower, upper, faults)
        if not faults and upper - lower > _WIDEST_INTEGER:
            faults.append("Expected upper - lower of at most 2^62. Narrow the bounds, or declare continuous.")
        refuse(faults)
        settle(self, lower=lower, upper=upper, nullable=nullable, written=written)
        self._settle_atoms(self.atoms)

    @property
    def bounds(self) -> tuple[int, int]:
        """The bounds."""
        return self.lower, self.upper

    @property
    def sample_type(self) -> pa.DataType:
        """Whole numbers of 64 bits; text where words may stand in their place."""
        return pa.string() if self.words else pa.int64()

    def read(self, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return cells as int64, and a mask of those that are numbers."""
        return read_integers(cells, missing, self.written)

    def beyond(self, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return masks of the cells outside the bounds, and of the cells that hold a number."""
        beyond, valid = super(Integer, self).beyond(cells, missing)
        if types.is_uint64(cells.type):  # what int64 cannot hold is above any bound, and is read as its largest number
            beyond |= cells.fill_null(0).to_numpy(zero_copy_only=False) > _INT64_MAX
        return beyond, valid

    def store(self, values: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
        """Return int64 values in a storage type."""
        written = self.written
        as_text = None if written is None else lambda value: written.text(str(value))
        return store_integer(values, absent, storage, as_text)

    def whole_of(self, column: str, value: object, faults: list[str]) -> int | None:
        """Return a whole number, or the one that text reads as."""
        return whole_number(column, _number(value, self.written), faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuous(NumericKind):
    """A real number between two public bounds.

    Attributes:
        lower: smallest value; smaller ones are clamped to it.
        upper: largest value; larger ones are clamped to it.
        resolution: values are rounded to multiples of it; None keeps float64.
        values: all there are, from `lower` to `upper`; others are read as the nearest. None if any is possible.
        nullable: whether a missing cell stays missing, rather than becoming the midpoint.
        written: how it is written as text, where that is not plain.
        atoms: values that many rows share, and words beside all values, such as `<5`: see `docs/schema.md`.

    Example:
        >>> Continuous(lower=0, upper=1, resolution=0.25)  # samples are 0, 0.25, 0.5, 0.75 and 1
        Continuous(lower=0.0, upper=1.0, resolution=0.25, values=None, nullable=False)
        >>> Continuous(lower=1 / 3, upper=1, values=(1 / 3, 2 / 3, 1)).snapped(np.array([0.6, 7.0]))
        array([0.66666667, 1.        ])
    """

    name: ClassVar[str] = "continuous"

    lower: float
    upper: float
    resolution: float | None = None
    values: Sequence[float] | None = None
    nullable: bool = False
    written: Written | None = field(default=None, repr=False)
    atoms: tuple[str | float, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        faults: list[str] = []
        lower = real_number("lower", self.lower, faults)
        upper = real_number("upper", self.upper, faults)
        resolution = None if self.resolution is None else real_number("resolution", self.resolution, faults)
        nullable = flag(self.nullable, faults)
        written = Written.of(self.written, faults)
        if not faults:
            check_order(lower, upper, faults)
        if not faults and not math.isfinite(upper - lower):
            faults.append("Expected a finite upper - lower. Narrow the bounds.")
        if not faults and resolution is not None:
            _check_grid(lower, upper, resolution, faults)
        values = None if self.values is None else _listed(self.values, (lower, upper), resolution, faults)
        refuse(faults)
        facts = {"lower": lower, "upper": upper, "resolution": resolution, "values": values}
        settle(self, **facts, nullable=nullable, written=written)
        self._settle_atoms(self.atoms)

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds."""
        return self.lower, self.upper

    @property
    def sample_type(self) -> pa.DataType:
        """Floats of 64 bits; text where words may stand in their place."""
        return pa.string() if self.words else pa.float64()

    @property
    def steps(self) -> Steps:
        """The multiples of the resolution, or the listed values."""
        if self.values is not None and not self.is_constant:
            places = (np.array(self.values) - self.lower) / (self.upper - self.lower)
            return ListedSteps(places.size - 1, float(places.size - 1), 0.0, tuple(places.tolist()))
        return Steps.between(self.lower, self.upper, self.resolution)

    def read(self, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return cells as float64, NaN where a cell is no number, and a mask of those that are."""
        values = read_floats(cells, missing, self.written)
        return values, ~np.isnan(values)

    def beyond(self, cells: pa.Array, missing: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return masks of the cells outside the bounds, as narrow floats store these, and of those with a number."""
        values, valid = self.read(cells, missing)
        narrow = {"halffloat": np.float16, "float": np.float32}.get(str(cells.type))
        slack = 0.0 if narrow is None else float(np.finfo(narrow).eps) * max(abs(self.lower), abs(self.upper))
        return (values < self.lower - slack) | (values > self.upper + slack), valid

    def _code(self, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
        values, valid = self.read(cells, missing)
        if self.is_constant:
            codes = np.zeros(len(values))
        else:
            codes = (self.snapped(values) - self.lower) / (self.upper - self.lower)
        codes[~valid] = np.nan if self.nullable else self._midpoint_code
        return self._with_words(codes, cells, missing)

    def decoded(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return float64 values of codes, and a mask of the missing ones."""
        absent = np.isnan(codes)
        shares = np.clip(np.where(absent, self._midpoint_code, codes), 0.0, 1.0)
        if self.values is not None:
            return np.array(self.values)[self.steps.at(shares)], absent & self.nullable
        span = self.upper - self.lower
        values = self.lower + shares * span
        # the code of 0 comes back as the rounding error of its product: amounts are often exactly 0
        values[np.abs(values) <= span * _ROUNDING] = 0.0
        return self.snapped(values), absent & self.nullable

    def snapped(self, values: np.ndarray) -> np.ndarray:
        """Return values clamped to the bounds and rounded to the resolution or a listed value, as the nearest float64.

        The resolution is taken as the decimal that was written, p / q, so 3 steps of 0.1 give 0.3
        and not 0.30000000000000004.
        """
        clamped = np.clip(values, self.lower, self.upper)
        if self.values is not None:
            return np.where(np.isnan(clamped), clamped, np.array(self.values)[nearest(np.array(self.values), clamped)])
        if self.resolution is None:
            return clamped
        first, last, numerator, denominator = _grid(self)
        steps = np.clip(np.rint(clamped / self.resolution), first, last)
        return steps * numerator / denominator + 0.0  # + 0.0 turns −0.0 into 0.0

    @property
    def _midpoint_code(self) -> float:
        if self.is_constant:
            return 0.0
        half = (self.upper - self.lower) / 2
        middle = float(self.snapped(np.array([self.lower + half]))[0])
        return (middle - self.lower) / (self.upper - self.lower)

    def store(self, values: np.ndarray, absent: np.ndarray, storage: pa.DataType) -> pa.Array:
        """Return float64 values in a storage type; as text with the decimals of the resolution, else the fewest."""
        written = self.written or Written()
        if self.resolution is None:
            return store_float(values, absent, storage, lambda value: written.text(repr(value)))
        decimals = decimals_of(self.resolution)
        return store_float(values, absent, storage, lambda value: written.text(f"{value:.{decimals}f}"))

    def _given_code(self, column: str, value: object, faults: list[str]) -> tuple[float, np.ndarray]:
        if self.written is not None and isinstance(value, str):
            value = self.written.number(value)
        number = real_number(column, value, faults)
        if not faults and not self.lower <= number <= self.upper:
            faults.append(self._outside(column, value))
        nearest = 0.0 if faults else float(self.snapped(np.array([number]))[0])
        if not faults and abs(nearest - number) > _GIVEN_ROUNDING * (self.resolution or 0.0):
            what = "one of its values" if self.values is not None else f"a multiple of {self.resolution!r}"
            faults.append(f"Expected {column} to be {what}, got {column}={shown(value)}.")
        span = self.upper - self.lower
        return (nearest - self.lower) / span if span > 0 else 0.0, np.array([nearest])

    def parts(self, n: int) -> list[str]:
        """Return the bounds of each part, with as many digits as tell them apart."""
        span = self.upper - self.lower
        apart = max(1.0, max(abs(self.lower), abs(self.upper)) / span) if span > 0 else 1.0
        digits = min(_MOST_DIGITS, 4 + math.ceil(math.log10(min(apart, 10.0**_MOST_DIGITS))))
        shares = [i / n for i in range(n + 1)]
        values = [self.lower * (1 - share) + self.upper * share for share in shares]
        texts = [f"{value:.{digits}g}" for value in values]
        edges = [f"{float(t):.0f}" if "e+" in t and abs(float(t)) < _LONGEST_NUMBER else t for t in texts]
        return [f"{low} to {high}" for low, high in itertools.pairwise(edges)]


def _number(value: object, written: Written | None) -> object:
    """Return the number that text reads as, whole where it can be; anything else as it is."""
    if isinstance(value, str):
        value = value if written is None else written.number(value)
        for read in (int, float):
            with contextlib.suppress(ValueError):
                return read(value)
    return value


@lru_cache(maxsize=1024)
def _grid(kind: Continuous) -> tuple[float, float, float, float]:
    assert kind.resolution is not None
    step = as_fraction(kind.resolution)
    first = math.ceil(as_fraction(kind.lower) / step)
    last = math.floor(as_fraction(kind.upper) / step)
    return float(first), float(last), float(step.numerator), float(step.denominator)


def are_apart(numbers: Sequence[float]) -> bool:
    """Whether numbers in ascending order differ by so much of all they span that their codes do."""
    span = numbers[-1] - numbers[0]
    return math.isfinite(span) and all(b - a > span * _ROUNDING for a, b in itertools.pairwise(numbers))


def _listed(
    values: object, bounds: tuple[float, float], resolution: float | None, faults: list[str]
) -> tuple[float, ...]:
    """Return the numbers of a list, noting what is wrong with it."""
    if isinstance(values, str | bytes | set | frozenset) or not isinstance(values, Iterable):
        faults.append(f"Expected values to be a list of numbers, got {shown(values)}.")
        return ()
    numbers = tuple(real_number("each of values", value, faults) for value in values)
    if faults:
        return ()
    if not numbers or (numbers[0], numbers[-1]) != bounds or any(a >= b for a, b in itertools.pairwise(numbers)):
        faults.append(
            f"Expected values in ascending order, each once, from lower={bounds[0]!r} to upper={bounds[1]!r}."
        )
    elif not are_apart(numbers):
        faults.append("Expected values that differ by more than 2^-50 of upper - lower, got some that do not.")
    if resolution is not None:
        faults.append("Expected values or a resolution, got both. Leave one out.")
    if len(numbers) > MOST_LISTED:
        faults.append(f"Expected at most {MOST_LISTED} values, got {len(numbers)}. Declare a resolution.")
    return numbers


def _check_grid(lower: float, upper: float, resolution: float, faults: list[str]) -> None:
    if not resolution > 0:
        faults.append(f"Expected resolution above 0, got resolution={resolution!r}.")
    elif max(abs(lower), abs(upper), 1e-200) / resolution > _FINEST_GRID:
        faults.append(
            "Expected at most 2^53 steps of resolution between 0 and a bound, "
            f"got resolution={resolution!r}. Make it coarser, or leave it out."
        )
    else:
        step = as_fraction(resolution)
        if math.ceil(as_fraction(lower) / step) > math.floor(as_fraction(upper) / step):
            faults.append(
                f"Expected a multiple of resolution between the bounds, got resolution={resolution!r}. Make it finer."
            )
