"""Which columns of a table are modelled, which one is the class, and into which cells all are cut."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.measurements.cells import Cells
from sfumato.records.engine import Rows
from sfumato.schema.grid import ColumnGrid, Grid


@dataclass(frozen=True)
class TableLayout:
    """Which columns of a grid are modelled, and which one is the class.

    Attributes:
        grid: cells of all released columns.
        target: index of the class column; None for one class.
    """

    grid: Grid
    target: int | None

    @cached_property
    def features(self) -> tuple[ColumnGrid, ...]:
        """The columns other than the target."""
        return tuple(c for j, c in enumerate(self.grid.columns) if j != self.target)

    @property
    def n_classes(self) -> int:
        """Number of classes: the target's cells that samples may have, or 1."""
        return 1 if self.target is None else self.grid.columns[self.target].shown

    @cached_property
    def class_cells(self) -> Cells:
        """The target's cells, a hidden one the last, or the one of all rows."""
        return Cells.all_rows() if self.target is None else Cells.of(self.grid.columns[self.target])

    def classes(self, rows: Rows) -> np.ndarray:
        """Return the class of each coded row, shape (n,)."""
        return self.class_cells.base_cells(rows)
