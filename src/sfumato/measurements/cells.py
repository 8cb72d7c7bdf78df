"""The cells of one column that a query tells apart, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.columns.bounded import Steps
from sfumato.columns.kinds import NumericKind, TabularKind
from sfumato.schema.grid import ColumnGrid, cell_of

ALL_ROWS = ""
"""The name, in place of a column's, of the one cell that holds every row."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column.

    Labels have a base cell per level, in the schema's order; numbers have one for each stretch of steps, and a last one
    for missing where the column may be. Groups put base cells together.

    Attributes:
        column: its name, or `ALL_ROWS`.
        base: number of base cells.
        edges: of numbers, the first step of each base cell and one past the last, int64, shape (stretches + 1,).
        steps: of numbers, how codes become steps.
        groups: the cell of each base cell, -1 where it is in none, int64, shape (base,); None where each is by itself.
    """

    column: str
    base: int
    edges: np.ndarray | None = None
    steps: Steps | None = None
    groups: np.ndarray | None = None

    @classmethod
    def all_rows(cls) -> Cells:
        """The one cell that holds every row."""
        return cls(ALL_ROWS, 1)

    @classmethod
    def of(cls, column: ColumnGrid, groups: np.ndarray | None = None) -> Cells:
        """The cells of a column of a grid."""
        return cls(column.name, column.n_cells, column.edges, column.steps, groups)

    @cached_property
    def size(self) -> int:
        """Number of cells that are told apart."""
        return self.base if self.groups is None else int(self.groups.max(initial=-1)) + 1

    @cached_property
    def partial(self) -> bool:
        """Whether some rows are in none of the cells."""
        return self.groups is not None and bool((self.groups < 0).any())

    @property
    def nullable(self) -> bool:
        """Whether the last base cell is that of missing numbers."""
        return self.edges is not None and self.base == self.edges.size

    def grouped(self, base: np.ndarray) -> np.ndarray:
        """The cells of rows with these base cells."""
        return base if self.groups is None else self.groups[base]

    def base_cells(self, rows: Mapping[str, Any]) -> np.ndarray:
        """The base cell of each coded row, int64, shape (n,)."""
        if self.column == ALL_ROWS:
            return np.zeros(len(next(iter(rows.values()))), dtype=np.int64)
        return cell_of(rows[self.column], self.edges, self.steps, self.base)

    def alone(self) -> Cells:
        """The base cells, each by itself."""
        return self if self.groups is None else replace(self, groups=None)

    def same(self, other: Cells) -> bool:
        """Whether two tell the same rows apart."""
        return self.same_base(other) and np.array_equal(self._groups, other._groups)

    def same_base(self, other: Cells) -> bool:
        """Whether two have the same base cells."""
        alike = (self.column, self.base, self.steps) == (other.column, other.base, other.steps)
        return alike and (
            self.edges is other.edges
            or (self.edges is not None and other.edges is not None and np.array_equal(self.edges, other.edges))
        )

    @cached_property
    def _groups(self) -> np.ndarray:
        return np.arange(self.base) if self.groups is None else self.groups

    @property
    def counts_values(self) -> bool:
        """Whether each of the cells is one value of a number."""
        if self.edges is None or self.groups is None:
            return False
        places = np.flatnonzero(self.groups >= 0)
        each = np.array_equal(np.sort(self.groups[places]), np.arange(self.size)) and places.size > 0
        return each and places[-1] < self.edges.size - 1 and bool((np.diff(self.edges)[places] == 1).all())

    def fault(self, kinds: Mapping[str, object]) -> str | None:
        """The fault for columns of these kinds; None without."""
        if self.column == ALL_ROWS:
            return None if self.base == 1 else "cuts all rows into cells without a column"
        kind = kinds.get(self.column)
        if not isinstance(kind, TabularKind):
            return f"asks of {self.column!r}, which is no column of labels, numbers or dates of the schema"
        if isinstance(kind, NumericKind):
            fits = self.edges is not None and self.steps == kind.steps and self.edges[-1] == kind.steps.last + 1
            fits = fits and self.edges is not None and self.base == self.edges.size - 1 + kind.nullable
        else:
            fits = self.edges is None and self.base == kind.n_levels
        return None if fits else f"cuts {self.column!r} into other cells than the schema's column has"


class BaseCells:
    """The base cells of coded rows, looked up once for each cut of a column."""

    def __init__(self, rows: Mapping[str, Any]) -> None:
        self._rows = rows
        self._known: dict[tuple[str, int], np.ndarray] = {}

    def of(self, cells: Cells) -> np.ndarray:
        """The cell of each row, shape (n,)."""
        key = cells.column, id(cells.edges)
        if key not in self._known:
            self._known[key] = cells.base_cells(self._rows)
        return cells.grouped(self._known[key])


def joint_cells(axes: Sequence[Cells], cells: Sequence[np.ndarray]) -> np.ndarray:
    """The place of each row in a table of several axes, the last one fastest, shape (n,)."""
    place = cells[0]
    for axis, own in zip(axes[1:], cells[1:], strict=True):
        place = place * axis.size + own
    return place
