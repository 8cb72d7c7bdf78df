"""Marginals by class for methods with a decoder: what the decoder says of a class, corrected by what was counted. Free.

A decoder learns how a class differs from the others along its axes alone, and through their noise. The marginals'
release counts cells by class at the same price. So each class's law of a column is what the decoder has it be, moved
toward the counts by the share of signal in their difference (James and Stein), where that difference is beyond noise:
of hundreds of columns, small false differences would add up to a false class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from sfumato.maths.gaussian import project_to_simplex, shrinkage_weight
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.marginals import Marginals, TableLayout, fit_marginals
from sfumato.models.nets.class_laws import ClassLaws
from sfumato.models.nets.decoder import Calibration, mean_of_heads
from sfumato.models.nets.flat import RankVectors

_DRAWS = 20_000
_BEYOND_NOISE = 4.0  # standard deviations of the energy of noise
_ROUNDS = 30
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class ClassTables:
    """Noisy counts of cells by class.

    Attributes:
        layout: the columns; its target is the class.
        counts: by class and cell, columns side by side.
        marginals: what they say, consistently.
    """

    layout: TableLayout
    counts: Noisy
    marginals: Marginals

    @classmethod
    def of(cls, layout: TableLayout, counts: Noisy) -> ClassTables:
        """Read them."""
        return cls(layout, counts, fit_marginals(counts, layout.features))

    def vectors(self) -> RankVectors:
        """Return the map to vectors under the marginals of all rows."""
        pooled = [self.marginals.pooled(j) for j in range(len(self.layout.features))]
        if self.layout.target is not None:
            pooled.insert(self.layout.target, self.marginals.class_shares)
        return RankVectors(self.layout.grid, tuple(shares / shares.sum() for shares in pooled))

    def table(self, j: int) -> np.ndarray:
        """Return the counts of column j of the grid, shape (k, cells)."""
        sizes = [column.n_cells for column in self.layout.features]
        place = j - (self.layout.target is not None and j > self.layout.target)
        return np.split(self.counts.value, np.cumsum(sizes)[:-1], axis=1)[place]


def class_laws(
    tables: ClassTables,
    vectors: RankVectors,
    outputs: Callable[[int, int], np.ndarray],
    calibration: Calibration,
    rng: np.random.Generator,
) -> ClassLaws:
    """Return what brings rows of each class to the class's marginals. Free: uses released values only.

    Args:
        tables: what was counted.
        vectors: the map between records and vectors.
        outputs: of the decoder, of a class and so many draws, shape (n, d).
        calibration: of all rows.
        rng: public randomness.
    """
    shifts, before, after = [], [], []
    for c in range(tables.layout.n_classes):
        drawn = outputs(c, _DRAWS).astype(np.float64) + calibration.shifts
        ranks = calibration.numbers(mean_of_heads(drawn, vectors.parts), vectors.parts, rng)
        shifts.append(_level_shifts(drawn, tables, c, vectors))
        laws = _number_laws(ranks, tables, c, vectors)
        before.append(laws[0])
        after.append(laws[1])
    return ClassLaws(np.stack(shifts), np.stack(before), np.stack(after))


def _level_shifts(outputs: np.ndarray, tables: ClassTables, c: int, vectors: RankVectors) -> np.ndarray:
    """Return what to add to outputs of a class, shape (d,)."""
    shifts = np.zeros(vectors.dimension)
    for j, column in enumerate(vectors.grid.columns):
        entries = vectors.levels_of(column.name)
        if entries is not None and j != tables.layout.target:
            law = special.softmax(outputs[:, entries], axis=1).mean(axis=0)
            shifts[entries] = _shift(outputs[:, entries], _corrected(law, tables, c, j, 1.0))
    return shifts


def _number_laws(ranks: np.ndarray, tables: ClassTables, c: int, vectors: RankVectors) -> tuple[np.ndarray, np.ndarray]:
    """Return the laws of numbers in a class, as drawn and as they are to be, columns side by side."""
    before, after = [np.zeros(0)], [np.zeros(0)]
    numbers = [j for j, column in enumerate(vectors.grid.columns) if column.numeric]
    for j, (place, ends) in zip(numbers, vectors.ends, strict=True):
        chosen = np.minimum(np.searchsorted(ends, ranks[:, place], side="right"), ends.size - 1)
        before.append(np.bincount(chosen, minlength=ends.size) / len(ranks))
        after.append(_corrected(before[-1], tables, c, j, float(vectors.shares[j][: ends.size].sum())))
    return np.concatenate(before), np.concatenate(after)


def _corrected(law: np.ndarray, tables: ClassTables, c: int, j: int, present: float) -> np.ndarray:
    """Return the law of column j in a class: the decoder's, moved toward the counts where they differ beyond noise."""
    total = max(float(tables.marginals.class_counts[c]) * present, 1.0)
    difference = tables.table(j)[c, : law.size] / total - law
    energy, noise = float(difference @ difference), law.size * (tables.counts.noise_std / total) ** 2
    if energy <= noise * (1 + _BEYOND_NOISE * np.sqrt(2 / law.size)):
        return law
    found = project_to_simplex(law + shrinkage_weight(energy, noise) * difference, 1.0)
    return found / found.sum()


def _shift(outputs: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return what to add to outputs so that their softmax has these means on average."""
    shift = np.zeros(wanted.size)
    for _ in range(_ROUNDS):
        means = special.softmax(outputs + shift, axis=1).mean(axis=0)
        shift += np.log(np.maximum(wanted, _LEAST_SHARE) / np.maximum(means, _LEAST_SHARE))
    return shift
