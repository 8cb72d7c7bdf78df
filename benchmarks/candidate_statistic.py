"""What the candidate for the model of tables measures: functions of ranks, and moments by class of what leads them.

    pooled      Σ α·f·xxᵀ of all functions x of a record, clipped to ‖x‖² ≤ C²
    by class    Σ β·g·zzᵀ of the class of the target, z the leading function of each number, clipped to ‖z‖² ≤ C²

α² + β² ≤ 1: a record's two matrices together have a norm of at most C², and no inner product of two records' is
negative, so that two records are at most √2·C² apart. One Gaussian event, as of `TableMoments`. z is scaled so that
records of the mean length have ‖z‖² = C² ÷ 2.5: of one function a number noise is small beside it, and clipping, which
nothing makes good here, rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.mechanisms.contributions import step_of
from sfumato.methods.tables.clip_norms import mean_square
from sfumato.methods.tables.feature_moments import TableMoments
from sfumato.methods.tables.features import SHAPE, ColumnShares, Features, level_features
from sfumato.records.engine import Rows

WAVES = {14: (22, 0.88), 8: (16, 0.83), 6: (12, 0.83), 3: (3, 0.83), 1: (1, 0.83)}
"""Of a number, and what part of a squared weight the next has: by the polynomials of today's rule for that noise."""
BY_CLASS, QUARTERS, MOST_CLASSES, LONGEST = 0.1, 4, 6, 2.5
_FRACTIONS, _LARGEST, _AT_ONCE = 1 << 20, 1 << 20, 2048


def number_features(masses: np.ndarray, missing: bool, orders: int, weight: float = 1.0) -> Features:
    """Return the functions of a number's runs, orthonormal, the heaviest first.

    √2 cos(πku) of the rank u, k = 1, 2, …, have weights that fall by a factor an order. They are not brought to
    variance 1 where ranks are tied: one record of a nearly constant column would be as long as ten of another.

    Args:
        masses: of the runs, shape (r,), the missing one last.
        missing: whether there is one.
        orders: of polynomials, by which the waves are chosen.
        weight: of the column.
    """
    runs, ordered = masses.size, masses.size - missing
    if ordered <= 2:
        return level_features(masses, weight)
    mass = np.maximum(masses, 1e-9) / np.maximum(masses, 1e-9).sum()
    inside = mass[:ordered] / mass[:ordered].sum()
    ranks = np.cumsum(inside) - inside / 2
    most, decay = WAVES[orders]
    waves = np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(1, min(most, ordered - 1) + 1)))
    falling = decay ** np.arange(waves.shape[1])
    functions = np.zeros((runs, waves.shape[1] + missing))
    functions[:ordered, : waves.shape[1]] = (waves - inside @ waves) * np.sqrt(falling / falling.sum())
    if missing:
        functions[:, -1] = np.eye(runs)[-1] - mass[-1]
    root = np.sqrt(mass)
    kernel = root[:, None] * (functions @ functions.T) * root
    centre = np.eye(runs) - np.outer(root, root)
    weights, vectors = np.linalg.eigh(centre @ kernel @ centre)
    kept = np.flatnonzero(weights > 1e-7 * weights.max())[::-1]
    return Features(vectors[:, kept] / root[:, None], weight * weights[kept], np.full(kept.size, SHAPE))


def class_of_cells(column: ColumnShares) -> np.ndarray | None:
    """Return the class of each cell of a target, shape (c,): label, or quarter of a number; None of many labels."""
    if column.ordered <= 2:
        return np.arange(column.shares.size) if column.shares.size <= MOST_CLASSES else None
    ranks = np.cumsum(column.shares) - column.shares / 2
    place = np.minimum((ranks / column.shares.sum() * QUARTERS).astype(int), QUARTERS - 1)
    place[column.drawn >= column.ordered] = QUARTERS
    return np.unique(place, return_inverse=True)[1]


@dataclass(frozen=True)
class ContrastMoments(TableMoments):
    """Pooled moments of all functions, and by class of the target of the leading function of each number.

    Value: shape (1 + classes, d, d); by class all but leading functions is noise that nobody reads.

    Attributes:
        target: its place among the columns.
        classes: of its cells, shape (c,).
        columns: shares and features of each.
    """

    target: int = 0
    classes: tuple[int, ...] = ()
    columns: tuple[ColumnShares, ...] = ()

    @property
    def n_told(self) -> int:
        """Classes that are told apart."""
        return max(self.classes) + 1

    @property
    def weights(self) -> np.ndarray:
        """α, then β of each class."""
        squares = np.array([1 - BY_CLASS] + [BY_CLASS] * self.n_told)
        return np.floor(np.sqrt(squares) * _FRACTIONS) / _FRACTIONS

    @cached_property
    def scale(self) -> float:
        """What a leading function of variance 1 counts for in z."""
        mean = mean_square(self._leading, [column.shares for column in self.columns])
        return float(np.sqrt(self.clip_norm**2 / LONGEST / max(mean, 1e-9)))

    @cached_property
    def _leading(self) -> list[np.ndarray]:
        """The leading function of each number but the target in its place among the column's, shapes (c, q)."""
        leading = []
        for j, (column, vectors) in enumerate(zip(self.columns, self.vectors, strict=True)):
            own = np.zeros(vectors.shape)
            if column.ordered > 2 and j != self.target:
                own[:, 0] = column.features.values[column.drawn, 0]
            leading.append(own)
        return leading

    @cached_property
    def told(self) -> tuple[np.ndarray, ...]:
        """The entries of z of each cell as whole numbers, int64, as `whole`."""
        step = step_of(self.clip_norm, self.bits.entries)
        return tuple(
            np.rint(np.clip(self.scale * v / step, -_LARGEST, _LARGEST)).astype(np.int64) for v in self._leading
        )

    @cached_property
    def places(self) -> np.ndarray:
        """Places of the leading functions among all."""
        return np.flatnonzero(np.concatenate([np.abs(v).max(axis=0, initial=0) > 0 for v in self._leading]))

    @cached_property
    def compact(self) -> None:
        """Vectors are multiplied."""
        return

    def zero(self) -> np.ndarray:
        """Return empty moments."""
        return np.zeros((self.weights.size, self.dimension, self.dimension))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records."""
        cells = [column.cells(rows[column.name]) for column in self.layout.features]
        clipping, classes = self.counted(rows, cells), np.array(self.classes)[cells[self.target]]
        most = 2.0**self.bits.weights
        for start in range(0, classes.size, _AT_ONCE):
            block = slice(start, start + _AT_ONCE)
            x, z = (
                np.concatenate([e[c[block]] for e, c in zip(table, cells, strict=True)], axis=1).astype(float)
                for table in (self.whole, self.told)
            )
            total[0] += x.T @ (x * clipping[block, None])
            left = np.minimum(most, np.floor(most * 4.0**self.bits.entries / np.maximum((z**2).sum(axis=1), 1)))
            for k in range(self.n_told):
                mine = classes[block] == k
                total[1 + k] += z[mine].T @ (z[mine] * left[mine, None])


@dataclass(frozen=True)
class Contrasts:
    """What was measured by class of the target.

    Attributes:
        places: of the leading functions among all, shape (l,).
        owner: column of each, shape (l,).
        values: E[1(class) φ φᵀ], shape (k, l, l).
        variances: of their noise, shape (l, l).
        shares: P(class), shape (k,).
        classes: of the target's cells.
        target: its place among the columns.
    """

    places: np.ndarray
    owner: np.ndarray
    values: np.ndarray
    variances: np.ndarray
    shares: np.ndarray
    classes: np.ndarray
    target: int

    @classmethod
    def of(cls, value: np.ndarray, noise_std: float, moments: ContrastMoments, n: float) -> Contrasts:
        """Read them off a release: what clipping took is seen in the squares of the functions themselves."""
        places, beta = moments.places, moments.weights[1]
        factor = beta * n * moments.scale**2
        values = value[1:][:, places[:, None], places] / factor
        squares = np.clip(np.einsum("kii->i", values), 0.3, 1.0)
        left, classes = np.sqrt(np.outer(squares, squares)), np.array(moments.classes)
        column = moments.columns[moments.target]
        owner = np.repeat(np.arange(len(moments.columns)), [c.features.size for c in moments.columns])
        shares = np.bincount(classes, column.shares) / column.shares.sum()
        variances = (noise_std / np.sqrt(2) / factor / left) ** 2
        return cls(places, owner[places], values / left, variances, shares, classes, moments.target)


def contrast_moments(
    plain: TableMoments, columns: Sequence[ColumnShares], target: int | None
) -> TableMoments | ContrastMoments:
    """Return the statistic with moments by class of the target where it has few, and two numbers to say them of."""
    classes = None if target is None else class_of_cells(columns[target])
    numbers = [j for j, column in enumerate(columns) if column.ordered > 2 and j != target]
    if target is None or classes is None or len(numbers) < 2:
        return plain
    known = (plain.layout, plain.vectors, plain.clip_norm)
    told = tuple(classes.tolist())
    return ContrastMoments(*known, bits=plain.bits, target=target, classes=told, columns=tuple(columns))
