"""A public grid: every column of a table cut into cells, by its schema and a setting alone.

A level column has one cell per level. A numeric column has cells of equal width in steps of its resolution, a cell of
its own for the value 0 if 0 is within the bounds (amounts are often exactly 0), and a last cell for missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.data.kinds import (
    Boolean,
    Categorical,
    Continuous,
    DateTime,
    Integer,
    NumericKind,
    Ordinal,
    n_levels,
    tick_range,
)
from sfumato.data.schema import Schema
from sfumato.errors import ConfigError, require_integer

TabularKind: TypeAlias = Categorical | Ordinal | Boolean | Integer | Continuous | DateTime

MOST_NUMERIC_CELLS = 4096

_CONTINUUM = 2**40  # steps of a continuous column that declares no resolution
_MOST_STEPS = 2**52  # a code times the number of steps is then exact in float64


def n_steps(kind: NumericKind) -> int:
    """Return the number of steps of resolution between the bounds of a numeric kind, at most 2^52."""
    if isinstance(kind, Integer):
        steps = kind.upper - kind.lower
    elif isinstance(kind, DateTime):
        first, last = tick_range(kind)
        steps = last - first
    elif kind.resolution is None:
        steps = _CONTINUUM if kind.upper > kind.lower else 0
    else:
        steps = round((kind.upper - kind.lower) / kind.resolution)
    return min(steps, _MOST_STEPS)


def _zero_step(kind: NumericKind, steps: int) -> int | None:
    """Return the step of the value 0, or None if 0 is not within the bounds (a date has none)."""
    if isinstance(kind, DateTime) or not kind.lower <= 0 <= kind.upper or steps == 0:
        return None
    return round(-kind.lower / (kind.upper - kind.lower) * steps)


def _edges(kind: NumericKind, n_cells: int) -> np.ndarray:
    """Return the first step of every cell, and one past the last step: int64, increasing."""
    steps = n_steps(kind)
    width = -(-(steps + 1) // n_cells)
    edges = np.append(np.arange(0, steps + 1, width, dtype=np.int64), steps + 1)
    zero = _zero_step(kind, steps)
    if zero is not None and width > 1:
        edges = np.union1d(edges, [zero, zero + 1])
    return edges


@dataclass(frozen=True, slots=True)
class ColumnGrid:
    """The cells of one column.

    Attributes:
        name: column name.
        kind: its kind.
        n_cells: number of cells, the missing one included; the missing cell of a nullable column is the last.
        edges: for a numeric column, the first step of every cell and one past the last, shape (cells + 1,).
    """

    name: str
    kind: TabularKind
    n_cells: int
    edges: np.ndarray | None

    @property
    def numeric(self) -> bool:
        """Whether the cells are ordered and have a width."""
        return self.edges is not None

    def cells(self, codes: np.ndarray) -> np.ndarray:
        """Return the cell of each code, shape (n,), int64 in [0, n_cells)."""
        if self.edges is None:
            return codes.astype(np.int64)
        missing = np.isnan(codes)
        steps = np.rint(np.where(missing, 0.0, codes) * (self.edges[-1] - 1)).astype(np.int64)
        cells = np.clip(np.searchsorted(self.edges, steps, side="right") - 1, 0, len(self.edges) - 2)
        if self.kind.nullable:
            cells[missing] = self.n_cells - 1
        return cells

    def codes(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a code for each cell: its level, or a step drawn uniformly from the cell."""
        if self.edges is None:
            return cells.astype(np.int32)
        inside = np.minimum(cells, len(self.edges) - 2)
        steps = rng.integers(self.edges[inside], self.edges[inside + 1])
        codes = steps / max(int(self.edges[-1]) - 1, 1)
        if self.kind.nullable:
            codes[cells == self.n_cells - 1] = np.nan
        return codes


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of every column of a table, in schema order."""

    columns: tuple[ColumnGrid, ...]

    @classmethod
    def of(cls, schema: Schema, *, numeric_cells: int) -> Grid:
        """Cut the released columns of a schema.

        Args:
            schema: public description of the table.
            numeric_cells: most cells of equal width of a numeric column, 2 to 4096.

        Raises:
            ConfigError: a column is an image, or `numeric_cells` is out of range.
        """
        if require_integer(at_least=2, numeric_cells=numeric_cells) > MOST_NUMERIC_CELLS:
            raise ConfigError(f"Expected numeric_cells of at most {MOST_NUMERIC_CELLS}, got {numeric_cells=}.")
        columns = []
        for name in schema.released:
            kind = schema.columns[name]
            if isinstance(kind, (Categorical, Ordinal, Boolean)):
                columns.append(ColumnGrid(name, kind, n_levels(kind), None))
            elif isinstance(kind, (Integer, Continuous, DateTime)):
                edges = _edges(kind, numeric_cells)
                columns.append(ColumnGrid(name, kind, len(edges) - 1 + kind.nullable, edges))
            else:
                raise ConfigError(
                    f"Expected columns of a table, got {name!r} of kind {type(kind).__name__.lower()}. "
                    "A stack of images has one image column and at most one label column."
                )
        return cls(tuple(columns))

    def cells(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the cells of coded rows, shape (n, columns), int64."""
        return np.stack([column.cells(rows[column.name]) for column in self.columns], axis=1)

    def rows(self, cells: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return coded rows for cells of shape (n, columns)."""
        return {
            column.name: column.codes(cells[:, index], rng)
            for index, column in enumerate(self.columns)
        }
