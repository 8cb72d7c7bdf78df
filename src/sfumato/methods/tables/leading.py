"""What leads each column, by class of a column to predict: which of a record's features are told apart, and how far.

Of a target of few labels, or of a number in quarters, moments by class say what two columns together say of it beyond
what each says. Of one feature a number noise is small beside it, and clipping, which nothing makes good here, is rare.
Labels have so many features together that they cost more than they say, but where there is next to no noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.maths.constants import LEADING
from sfumato.methods.tables.features import ColumnShares, mean_square


@dataclass(frozen=True)
class Leading:
    """The leading features of other columns, by class.

    Attributes:
        target: place of the column to predict.
        classes: class of each of its cells, shape (c,).
        columns: places of the others.
        functions: what leads each of these, of its runs, shape (r, l_j) each.
        values: entries of z of each cell of these columns, shape (c, l_j) each.
        scale: what a feature of variance 1 counts for in z.
        part: β², of the release.
    """

    target: int
    classes: np.ndarray
    columns: tuple[int, ...]
    functions: tuple[np.ndarray, ...]
    values: tuple[np.ndarray, ...]
    scale: float
    part: float

    @property
    def size(self) -> int:
        """Number l of what leads, of all columns together."""
        return sum(own.shape[1] for own in self.functions)

    @property
    def n_classes(self) -> int:
        """Classes that are told apart."""
        return int(self.classes.max()) + 1

    @classmethod
    def of(
        cls, columns: Sequence[ColumnShares], target: int | None, clip_norm: float, *, noisy: bool = True
    ) -> Leading | None:
        """Return it for a target of few classes beside two columns at least; else None.

        z is scaled so that records of the mean length have ‖z‖² = C² ÷ 2.5; without noise, the longest C².

        Args:
            columns: shares and features of each.
            target: place of the column to predict; None without.
            clip_norm: C.
            noisy: whether there is noise; without, columns of few labels have leading features, too.
        """
        if target is None or (classes := class_of_cells(columns[target])) is None:
            return None
        if classes.max() <= columns[target].hidden:
            return None
        sizes = {j: _n_leading(column, labels=not noisy) for j, column in enumerate(columns) if j != target}
        sizes = {j: size for j, size in sizes.items() if size}
        if len(sizes) < 2:
            return None
        functions = tuple(columns[j].features.leads[:, :size] for j, size in sizes.items())
        values = [own[columns[j].drawn] for j, own in zip(sizes, functions, strict=True)]
        length = sum(float((v**2).sum(axis=1).max()) for v in values)
        if noisy:
            length = LEADING.length * mean_square(values, [columns[j].shares for j in sizes])
        scale = float(clip_norm / np.sqrt(max(length, 1e-9)))
        return cls(target, classes, tuple(sizes), functions, tuple(scale * v for v in values), scale, LEADING.part)


def _n_leading(column: ColumnShares, *, labels: bool) -> int:
    """Return how many features lead a column: one of a number, all of few labels where these count, else none."""
    if column.waves or not labels:
        return int(column.waves and column.features.size > 0)
    return column.features.size if column.features.size < LEADING.most_classes else 0


def class_of_cells(column: ColumnShares) -> np.ndarray | None:
    """Return the class of each cell of a column, shape (c,): label, quarter or none; None of many labels."""
    if not column.waves:
        few = column.shares.size - column.hidden <= LEADING.most_classes
        return np.arange(column.shares.size) if few else None
    inside = np.where(column.drawn < column.ordered, column.shares, 0.0)
    ranks = (np.cumsum(inside) - inside / 2) / max(inside.sum(), 1e-300)
    place = np.minimum((ranks * LEADING.parts).astype(int), LEADING.parts - 1)
    place[column.drawn >= column.ordered] = LEADING.parts
    return np.unique(place, return_inverse=True)[1]
