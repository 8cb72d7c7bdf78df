"""How many records there are: for those who do not declare a public number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.records.engine import Rows


@dataclass(frozen=True)
class RowCount:
    """The number of records. One record adds 1; under replace-one nothing changes. Value: shape ()."""

    name: str = "number of rows"
    norm_bound: float = 1.0
    replace_bound: float = 1.0
    step: float = 1.0

    def zero(self) -> np.ndarray:
        """Return 0."""
        return np.zeros(())

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count some records."""
        total += len(next(iter(rows.values())))
