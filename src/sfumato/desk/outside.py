"""Cells for which a schema has no place: what a fit would change.

Elementwise, as coding is: whether a cell is outside depends on that cell and on public facts alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato.columns.cells import total
from sfumato.columns.kind import TabularKind

INSIDE, CLAMPED, NOWHERE = 0, 1, 2
"""Marks of `outside_marks`."""


def outside_marks(kind: TabularKind, column: pa.Array | pa.ChunkedArray, missing: Sequence[str]) -> np.ndarray:
    """Return per cell INSIDE, CLAMPED (a number or date beyond the bounds) or NOWHERE, int8 of shape (n,).

    Inside are a missing cell of a nullable column, and what goes to a declared `other`.

    Privacy: none (pure function).
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    marks = [total(lambda part: _marks(kind, part, missing), chunk, _nowhere) for chunk in chunks]
    return np.concatenate([np.zeros(0, dtype=np.int8), *marks])


def _marks(kind: TabularKind, cells: pa.Array, missing: Sequence[str]) -> np.ndarray:
    marks = np.full(len(cells), INSIDE, dtype=np.int8)
    if not kind.goes_to_other:
        for fault, mask in kind.faults(cells, missing).items():
            if not (fault == "missing" and kind.nullable):
                marks[mask] = CLAMPED if fault == "clamped" else NOWHERE
    return marks


def _nowhere(n: int) -> np.ndarray:
    return np.full(n, NOWHERE, dtype=np.int8)
