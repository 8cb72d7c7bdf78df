"""What leads each number, by class of a column to predict: which of a record's features are told apart, and how far.

Of a target of few labels, or of a number in quarters, moments by class say what two numbers together say of it beyond
what each says. Of one feature a number noise is small beside it, and clipping, which nothing makes good here, is rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.maths.constants import LEADING
from sfumato.methods.tables.clip_norms import mean_square
from sfumato.methods.tables.features import ColumnShares


@dataclass(frozen=True)
class Leading:
    """The leading feature of each number, by class.

    Attributes:
        target: place of the column to predict.
        classes: class of each of its cells, shape (c,).
        columns: places of the numbers.
        places: of their leading features among all features, shape (l,).
        values: entries of z of each cell of these columns, shape (c,) each.
        scale: what a feature of variance 1 counts for in z.
        part: β², of the release.
    """

    target: int
    classes: np.ndarray
    columns: tuple[int, ...]
    places: np.ndarray
    values: tuple[np.ndarray, ...]
    scale: float
    part: float

    @property
    def n_classes(self) -> int:
        """Classes that are told apart."""
        return int(self.classes.max()) + 1

    @classmethod
    def of(cls, columns: Sequence[ColumnShares], target: int | None, clip_norm: float) -> Leading | None:
        """Return it for a target of few classes beside two numbers at least; else None.

        z is scaled so that records of the mean length have ‖z‖² = C² ÷ 2.5.

        Args:
            columns: shares and features of each.
            target: place of the column to predict; None without.
            clip_norm: C.
        """
        if target is None or (classes := class_of_cells(columns[target])) is None:
            return None
        numbers = tuple(j for j, c in enumerate(columns) if c.waves and c.features.size and j != target)
        if len(numbers) < 2:
            return None
        starts = np.cumsum([0, *(column.features.size for column in columns)])
        values = [columns[j].features.values[columns[j].drawn, 0] for j in numbers]
        mean = mean_square([v[:, None] for v in values], [columns[j].shares for j in numbers])
        scale = float(np.sqrt(clip_norm**2 / LEADING.length / max(mean, 1e-9)))
        scaled = tuple(scale * v for v in values)
        return cls(target, classes, numbers, starts[list(numbers)], scaled, scale, LEADING.part)


def class_of_cells(column: ColumnShares) -> np.ndarray | None:
    """Return the class of each cell of a column, shape (c,): label, or quarter of a number; None of many labels."""
    if not column.waves:
        return np.arange(column.shares.size) if column.shares.size <= LEADING.most_classes else None
    ranks = np.cumsum(column.shares) - column.shares / 2
    place = np.minimum((ranks / column.shares.sum() * LEADING.parts).astype(int), LEADING.parts - 1)
    place[column.drawn >= column.ordered] = LEADING.parts
    return np.unique(place, return_inverse=True)[1]
