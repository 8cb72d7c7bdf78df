"""Lenses: public maps from a record of some shape to records of a plain table, and samplers of the shape's rows back.

A lens maps every record by itself, whatever its cells hold (it is total), so neighbouring tables stay neighbours, and
what one record adds to a sum over the plain table is bounded as one plain record's is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from sfumato.columns.kind import ColumnKind, GivenValue


class Sampler(Protocol):
    """Draws coded rows.

    Attributes:
        width: numbers that drawing one row takes, which bounds the rows of a block.
        class_column: name of the column whose classes are modelled apart; None for one class.
    """

    width: int
    class_column: str | None

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have, given what is given, shape (k,)."""
        ...

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return n coded rows: codes per column, images as stored, or `CodedSets`. Classes are drawn if not given."""
        ...

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler of the conditional law, given the codes of some columns.

        Raises:
            ConfigError: the release gives such rows probability 0, or cannot fix these columns.
        """
        ...


class Around:
    """What a sampler of other rows has of the one that it is made of.

    Args:
        inner: the other sampler.
        more: numbers that drawing a row takes beside those of its own.
    """

    def __init__(self, inner: Sampler, more: int = 0) -> None:
        self._inner, self.width, self.class_column = inner, inner.width + more, inner.class_column

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have."""
        return self._inner.possible


class DataSet(ABC):
    """A release that is a data set, not a model: its rows are given back, whole or in part, and no more are drawn.

    Attributes:
        width: numbers of one row.
    """

    width: int

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many there are."""

    @abstractmethod
    def batches(self, n: int, seed: int, size: int) -> Iterator[pa.Table]:
        """Yield n of them, in an order that the seed says, `size` at a time; the first do not depend on n.

        Raises:
            ConfigError: there are not so many.
        """


class Units(NamedTuple):
    """Units and their rows, unit after unit, each unit's in order.

    Attributes:
        owners: the unit of each row, shape (n,).
        rows: coded rows, or tables of values.
        without: the rows that stand for a unit without any, shape (n,): of these the constants alone count.
    """

    owners: np.ndarray
    rows: Mapping[str, Any]
    without: np.ndarray


class UnitSampler(ABC):
    """Draws units with their rows.

    Attributes:
        width: as of a `Sampler`, of a unit with all its rows.
        class_column: as of a `Sampler`.
        possible: which classes units can have, shape (k,).
        ends: per column of labels, the codes after which a unit has no row.
        order: the column by which rows follow each other; None without.
    """

    width: int
    class_column: str | None = None
    possible: np.ndarray
    ends: Mapping[str, tuple[int, ...]]
    order: str | None = None

    @property
    @abstractmethod
    def fixed(self) -> tuple[str, ...]:
        """The columns that no row may have otherwise once a unit is drawn: constants and order."""

    @abstractmethod
    def units(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Units:
        """Return n units, numbered from 0, and coded rows. Classes are drawn if not given."""

    @abstractmethod
    def below(self, context: Mapping[str, np.ndarray], rng: np.random.Generator) -> Units:
        """Return units that have these coded constants, in their order, and coded rows."""

    @abstractmethod
    def given(self, codes: Mapping[str, float]) -> UnitSampler:
        """Return the sampler given the codes of constants."""

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> Mapping[str, Any]:
        """Return the rows of n units, unit after unit."""
        return self.units(n, rng, classes).rows


class UnitsAround(UnitSampler):
    """What a sampler of other units has of the one that it is made of: as `Around`."""

    def __init__(self, inner: UnitSampler, more: int) -> None:
        self._inner, self.width, self.possible = inner, inner.width + more, inner.possible
        self.class_column, self.ends, self.order = inner.class_column, inner.ends, inner.order

    @property
    def fixed(self) -> tuple[str, ...]:
        """The columns that no row may have otherwise once a unit is drawn."""
        return self._inner.fixed


def given_values(sampler: Sampler, values: Mapping[str, GivenValue]) -> Sampler:
    """Sampler of the conditional law given values, by their codes, which round, unless it takes the values."""
    own = getattr(sampler, "given_values", None)
    return sampler.given({name: value.code for name, value in values.items()}) if own is None else own(values)


class Lens(Protocol):
    """One shape of data, seen as a plain table."""

    def columns(self, columns: Mapping[str, ColumnKind]) -> dict[str, ColumnKind]:
        """Columns of the plain table."""
        ...

    def code(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Plain records of coded ones, one of each: a total map of each record by itself."""
        ...

    def rows(self, inner: Sampler) -> Sampler:
        """Sampler of rows of this shape, of one of plain rows."""
        ...
