"""One column of a chain: the cells of a class-conditional table, and the blocks of a vector that stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.maths.arrays import add_to_one, require_array, require_well_formed
from sfumato.maths.gaussian import normal_scores

QUANTILES = np.linspace(0.0, 1.0, 257)


@dataclass(frozen=True, slots=True)
class ColumnModel:
    """One column of the chain. Axis k is the class, c the cell, g the group.

    Attributes:
        probabilities: of the cells in each class, shape (k, c).
        groups: group of each cell, shape (c,), 0 … g−1. A scored column has its ordered cells in group 0.
        scored: whether the column has a normal score for the cells of group 0.
        tilts: factors on the predicted group probabilities, shape (k, g).
        quantiles: of the score as the chain draws it, shape (k, 257); only for scored columns.
    """

    probabilities: np.ndarray
    groups: np.ndarray
    scored: bool
    tilts: np.ndarray
    quantiles: np.ndarray | None

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.tilts.shape[1]

    @property
    def width(self) -> int:
        """Entries of this column's block: its score, and its group indicators if there are at least two."""
        return int(self.scored) + (self.n_groups if self.n_groups > 1 else 0)

    def to_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the column as arrays whose names begin with `name`."""
        arrays = {"probabilities": self.probabilities, "groups": self.groups, "tilts": self.tilts}
        if self.quantiles is not None:
            arrays["quantiles"] = self.quantiles
        return {f"{name}.{part}": array for part, array in arrays.items()}

    def group_probabilities(self) -> np.ndarray:
        """Return P(group | class), shape (k, g)."""
        return self.probabilities @ (self.groups[:, None] == np.arange(self.n_groups))

    def scores(self, k: int) -> np.ndarray | None:
        """Return the normal score of every cell in class k, shape (c,), 0 outside group 0; None if unscored."""
        if not self.scored:
            return None
        scores = np.zeros(self.groups.size)
        ordered = self.groups == 0
        inside = self.probabilities[k, ordered]
        scores[ordered] = normal_scores(inside if inside.sum() > 0 else np.ones_like(inside))
        return scores

    def class_blocks(self, k: int) -> ClassBlocks:
        """Return the map from cells to blocks in class k."""
        indicators = np.zeros((1, 0))
        if self.n_groups > 1:
            shares = np.bincount(self.groups, self.probabilities[k], self.n_groups)
            indicators = np.eye(self.n_groups) - shares
        return ClassBlocks(self.scores(k), indicators, self.groups)

    def second_moments(self) -> np.ndarray:
        """Return the second moment of the block that the probabilities imply, shape (k, width, width)."""
        first = int(self.scored)
        moments = np.zeros((self.tilts.shape[0], self.width, self.width))
        for k, shares in enumerate(self.group_probabilities()):
            if self.n_groups > 1:
                moments[k, first:, first:] = np.diag(shares) - np.outer(shares, shares) * (2 - shares.sum())
            scores = self.scores(k)
            if scores is not None:
                # scores have mean zero within group 0, hence no moment with the indicators
                moments[k, 0, 0] = self.probabilities[k] @ scores**2
        return moments


@dataclass(frozen=True, slots=True)
class ClassBlocks:
    """The map from a column's cells to their blocks in one class.

    Attributes:
        scores: of every cell, shape (c,), or None.
        indicators: centred indicators of every group, shape (g, width less the score).
        groups: group of every cell, shape (c,).
    """

    scores: np.ndarray | None
    indicators: np.ndarray
    groups: np.ndarray

    def of(self, cells: np.ndarray) -> np.ndarray:
        """Return the blocks of some cells, shape (n, width)."""
        blocks = self.indicators[self.groups[cells]]
        return blocks if self.scores is None else np.column_stack([self.scores[cells], blocks])


def uncalibrated_column(probabilities: np.ndarray, groups: np.ndarray, *, scored: bool) -> ColumnModel:
    """Return a column model with neutral tilts."""
    k = probabilities.shape[0]
    quantiles = np.tile(normal_scores(np.ones(QUANTILES.size)), (k, 1)) if scored else None
    tilts = np.ones((k, int(groups.max(initial=0)) + 1))
    return ColumnModel(probabilities, groups.astype(np.int64), scored, tilts, quantiles)


def read_column(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, int]) -> ColumnModel:
    """Build a column from arrays that a stranger may have written.

    Args:
        arrays: as `ColumnModel.to_arrays` gives them.
        name: what their names begin with.
        shape: numbers of classes and cells, from the schema.

    Raises:
        ReleaseError: an array is missing, or has another shape or values than the schema allows.
    """
    k, cells = shape
    probabilities = require_array(arrays, f"{name}.probabilities", np.float64, (k, cells))
    require_well_formed(add_to_one(probabilities), f"{name}.probabilities")
    tilts = require_array(arrays, f"{name}.tilts", np.float64, (k, None))
    groups = require_array(arrays, f"{name}.groups", np.int64, (cells,))
    require_well_formed(bool((tilts >= 0).all()), f"{name}.tilts")
    require_well_formed(np.array_equal(np.unique(groups), np.arange(tilts.shape[1])), f"{name}.groups")
    quantiles = None
    if f"{name}.quantiles" in arrays:
        quantiles = require_array(arrays, f"{name}.quantiles", np.float64, (k, QUANTILES.size))
        require_well_formed(bool((quantiles[:, 1:] >= quantiles[:, :-1]).all()), f"{name}.quantiles")
    return ColumnModel(probabilities, groups, quantiles is not None, tilts, quantiles)
