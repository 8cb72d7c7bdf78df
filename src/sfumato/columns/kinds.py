"""Column kinds: the public facts about one column, checked when they are written down.

A kind never comes from the records. It fixes a bounded domain, so every map from a cell to a code,
and every sensitivity that follows from it, is known before any data are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Literal, TypeAlias, get_args

from sfumato.columns.facts import (
    EPOCH,
    as_fraction,
    check_order,
    flag,
    is_bare_date,
    label_text,
    labels_text,
    microseconds_since_epoch,
    moment_text,
    real_number,
    shown,
    whole_number,
)
from sfumato.columns.set_kind import ItemSet
from sfumato.errors import SchemaError

Resolution: TypeAlias = Literal["day", "hour", "minute", "second", "millisecond", "microsecond"]

MICROSECONDS: dict[str, int] = {
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}
"""Microseconds in one step of each datetime resolution."""

IMAGE_DTYPES = ("uint8", "uint16", "int16", "int32", "float16", "float32", "float64")

_WIDEST_INTEGER = 2**62  # a span and its codes then stay inside int64
_FINEST_GRID = 2**53  # beyond it float64 no longer tells neighbouring multiples apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Categorical:
    """One of a closed list of labels.

    Attributes:
        categories: the labels, as canonical text (numbers and booleans are turned into it).
        other: the label that takes every value outside the list; among `categories` or not.
        nullable: whether a missing cell is a level of its own, rather than `other` or, without
            it, the first category.

    Example:
        >>> Categorical(categories=("red", "blue"), other="another colour").categories
        ('red', 'blue')
        >>> Categorical(categories=(1, True)).categories  # as canonical text
        ('1', 'true')
    """

    categories: tuple[str, ...]
    other: str | None = None
    nullable: bool = False

    def __post_init__(self) -> None:
        _check_levels(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal:
    """One of a closed list of labels whose order means something.

    Attributes:
        categories: the labels from lowest to highest, as canonical text.
        other: the label that takes every value outside the list; comes last if not among them.
        nullable: whether a missing cell is a level of its own, rather than `other` or, without
            it, the middle category.

    Example:
        >>> level_labels(Ordinal(categories=("low", "middle", "high"), nullable=True))
        ('low', 'middle', 'high')
    """

    categories: tuple[str, ...]
    other: str | None = None
    nullable: bool = False

    def __post_init__(self) -> None:
        _check_levels(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boolean:
    """True or false.

    Attributes:
        nullable: whether a missing cell is a level of its own, rather than false.

    Example:
        >>> n_levels(Boolean(nullable=True))  # false, true, missing
        3
    """

    nullable: bool = False

    def __post_init__(self) -> None:
        faults: list[str] = []
        nullable = flag(self.nullable, faults)
        _refuse(faults)
        _settle(self, nullable=nullable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer:
    """A whole number between two public bounds.

    Attributes:
        lower: smallest value; smaller ones are clamped to it.
        upper: largest value; larger ones are clamped to it.
        nullable: whether a missing cell stays missing, rather than becoming the midpoint.

    Example:
        >>> Integer(lower=0, upper=120)
        Integer(lower=0, upper=120, nullable=False)
        >>> Integer(lower=120, upper=0)
        Traceback (most recent call last):
            ...
        sfumato.errors.SchemaError: Expected lower <= upper, got lower=120, upper=0. Swap them.
    """

    lower: int
    upper: int
    nullable: bool = False

    def __post_init__(self) -> None:
        faults: list[str] = []
        lower = whole_number("lower", self.lower, faults)
        upper = whole_number("upper", self.upper, faults)
        nullable = flag(self.nullable, faults)
        if not faults:
            check_order(lower, upper, faults)
        if not faults and upper - lower > _WIDEST_INTEGER:
            faults.append("Expected upper - lower of at most 2^62. Narrow the bounds, or declare continuous.")
        _refuse(faults)
        _settle(self, lower=lower, upper=upper, nullable=nullable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuous:
    """A real number between two public bounds.

    Attributes:
        lower: smallest value; smaller ones are clamped to it.
        upper: largest value; larger ones are clamped to it.
        resolution: values are rounded to multiples of it; None keeps float64.
        nullable: whether a missing cell stays missing, rather than becoming the midpoint.

    Example:
        >>> Continuous(lower=0, upper=1, resolution=0.25)  # samples are 0, 0.25, 0.5, 0.75 and 1
        Continuous(lower=0.0, upper=1.0, resolution=0.25, nullable=False)
    """

    lower: float
    upper: float
    resolution: float | None = None
    nullable: bool = False

    def __post_init__(self) -> None:
        faults: list[str] = []
        lower = real_number("lower", self.lower, faults)
        upper = real_number("upper", self.upper, faults)
        resolution = None
        if self.resolution is not None:
            resolution = real_number("resolution", self.resolution, faults)
        nullable = flag(self.nullable, faults)
        if not faults:
            check_order(lower, upper, faults)
        if not faults and not math.isfinite(upper - lower):
            faults.append("Expected a finite upper - lower. Narrow the bounds.")
        if not faults and resolution is not None:
            _check_grid(lower, upper, resolution, faults)
        _refuse(faults)
        _settle(self, lower=lower, upper=upper, resolution=resolution, nullable=nullable)


@dataclass(frozen=True, slots=True, kw_only=True)
class DateTime:
    """A date or a time of a calendar, without daylight saving: wall-clock time.

    Attributes:
        lower: earliest value, ISO 8601; earlier ones are clamped to it.
        upper: latest value, ISO 8601; later ones are clamped to it. A bare date is a whole day.
        resolution: times are cut down to a whole number of these since 1970-01-01.
        format: strftime format of the column where it is stored as text; None means ISO 8601.
        nullable: whether a missing cell stays missing, rather than becoming the midpoint.

    Example:
        >>> first, last = tick_range(DateTime(lower="2024-01-01", upper="2024-12-31"))
        >>> last - first + 1  # days
        366
    """

    lower: str
    upper: str
    resolution: Resolution = "day"
    format: str | None = None
    nullable: bool = False

    def __post_init__(self) -> None:
        faults: list[str] = []
        lower = moment_text("lower", self.lower, faults)
        upper = moment_text("upper", self.upper, faults)
        if self.resolution not in get_args(Resolution):
            known = ", ".join(get_args(Resolution))
            faults.append(f"Expected resolution to be one of {known}, got {shown(self.resolution)}.")
        if self.format is not None:
            label_text("format", self.format, faults)
        nullable = flag(self.nullable, faults)
        _refuse(faults)
        _settle(self, lower=lower, upper=upper, nullable=nullable)
        first, last = tick_range(self)
        if first > last:
            faults.append(f"Expected lower <= upper, got lower={lower}, upper={upper}. Swap them.")
        elif self.format is not None:
            _check_format(self.format, (first, last), MICROSECONDS[self.resolution], faults)
        _refuse(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture, or any array of one fixed shape.

    Attributes:
        shape: height, width and, if any, channels; or a single length.
        dtype: how pixels are stored.
        lower: smallest pixel; smaller ones are clamped to it.
        upper: largest pixel; larger ones are clamped to it.

    Example:
        >>> Image(shape=(28, 28)).upper
        255.0
    """

    shape: tuple[int, ...]
    dtype: str = "uint8"
    lower: float = 0
    upper: float = 255

    MAX_DIMENSIONS: ClassVar[int] = 4
    MAX_PIXELS: ClassVar[int] = 2**26

    def __post_init__(self) -> None:
        faults: list[str] = []
        lower = real_number("lower", self.lower, faults)
        upper = real_number("upper", self.upper, faults)
        shape = self._checked_shape(faults)
        if self.dtype not in IMAGE_DTYPES:
            known = ", ".join(IMAGE_DTYPES)
            faults.append(f"Expected dtype to be one of {known}, got {shown(self.dtype)}.")
        if not faults and not lower < upper:
            faults.append(f"Expected lower < upper, got lower={lower:g}, upper={upper:g}.")
        _refuse(faults)
        _settle(self, shape=shape, lower=lower, upper=upper)

    def _checked_shape(self, faults: list[str]) -> tuple[int, ...]:
        if isinstance(self.shape, str) or not isinstance(self.shape, Iterable):
            faults.append(f"Expected shape to be a list of sizes, got {shown(self.shape)}.")
            return ()
        shape = tuple(whole_number("shape", size, faults) for size in self.shape)
        fits = 1 <= len(shape) <= self.MAX_DIMENSIONS and all(size >= 1 for size in shape)
        if not faults and not (fits and math.prod(shape) <= self.MAX_PIXELS):
            faults.append(
                f"Expected shape to be 1 to {self.MAX_DIMENSIONS} sizes of at least 1, and at most 2^26 pixels."
            )
        return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """A column that is never released; it is read only where the schema names it as the unit.

    Example:
        >>> from sfumato import Schema
        >>> Schema(columns={"name": Identifier(), "age": Integer(lower=0, upper=120)}).released
        ('age',)
    """


ColumnKind: TypeAlias = Categorical | Ordinal | Boolean | Integer | Continuous | DateTime | Image | ItemSet | Identifier
LevelKind: TypeAlias = Categorical | Ordinal | Boolean
NumericKind: TypeAlias = Integer | Continuous | DateTime

KINDS: dict[str, type[ColumnKind]] = {
    "categorical": Categorical,
    "ordinal": Ordinal,
    "boolean": Boolean,
    "integer": Integer,
    "continuous": Continuous,
    "datetime": DateTime,
    "image": Image,
    "set": ItemSet,
    "identifier": Identifier,
}
"""The name of each kind in a schema file."""


def kind_name(kind: ColumnKind) -> str:
    """Return what a schema file calls a kind."""
    return next(name for name, known in KINDS.items() if type(kind) is known)


def level_labels(kind: LevelKind) -> tuple[str, ...]:
    """Return the labels of a kind's levels in code order, without the missing level.

    A declared `other` that is not among the categories is the last label. The missing level of a
    nullable kind comes after all labels, at code `len(level_labels(kind))`.
    """
    if isinstance(kind, Boolean):
        return ("false", "true")
    if kind.other is None or kind.other in kind.categories:
        return kind.categories
    return (*kind.categories, kind.other)


def n_levels(kind: LevelKind) -> int:
    """Return the number of codes of a kind, the missing level included."""
    return len(level_labels(kind)) + kind.nullable


def tick_range(kind: DateTime) -> tuple[int, int]:
    """Return the first and last step of a kind, counted in its resolution from 1970-01-01."""
    step = MICROSECONDS[kind.resolution]
    upper = microseconds_since_epoch(datetime.fromisoformat(kind.upper))
    if is_bare_date(kind.upper):
        upper += MICROSECONDS["day"] - 1
    return microseconds_since_epoch(datetime.fromisoformat(kind.lower)) // step, upper // step


def _check_levels(kind: Categorical | Ordinal) -> None:
    faults: list[str] = []
    categories = labels_text("categories", "a category", kind.categories, faults)
    if not (categories or faults):
        faults.append("Expected at least one category, got an empty list.")
    other = None if kind.other is None else label_text("other", kind.other, faults)
    nullable = flag(kind.nullable, faults)
    _refuse(faults)
    _settle(kind, categories=categories, other=other, nullable=nullable)


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


def _check_format(text: str, ticks: tuple[int, int], step: int, faults: list[str]) -> None:
    """Refuse a format that loses part of the resolution, or that Python cannot read back."""
    first, last = ticks
    steps = {first, min(first + 1, last), (first + last) // 2, max(last - 1, first), last}
    for tick in sorted(steps):
        moment = EPOCH + timedelta(microseconds=tick * step)
        try:
            back = datetime.strptime(moment.strftime(text), text).replace(tzinfo=None)
        except (ValueError, OverflowError, re.error):  # a field given twice is an error of `re`
            back = None
        if back is None or microseconds_since_epoch(back) // step != tick:
            faults.append(
                f"Expected a format that keeps every step exactly, got format={text!r}. "
                "Add the missing fields, as in %Y-%m-%d %H:%M:%S, or make the resolution coarser."
            )
            return


def _refuse(faults: list[str]) -> None:
    if faults:
        raise SchemaError(" ".join(faults[:5]))


def _settle(kind: ColumnKind, **fields: object) -> None:
    """Write the checked form of each field back into a frozen kind."""
    for name, value in fields.items():
        object.__setattr__(kind, name, value)
