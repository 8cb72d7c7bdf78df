"""Values that many rows share: single values that stand out are cells of their own, and endings weigh the others.

Counts of single values are noisier than those of cells, and there are many. One is an *atom* where its count is above
its part of the rest of its cell by more than noise makes the largest of its kind. Within a cell the rest lies as
endings weigh its values, so that prices end in 99 where no single one is seen.

A function of released values. Endings show before any single value is seen. Of numbers the last two digits, in steps,
or of few values the last one; of what has only zeros there how many these are, and whether 5 stands before them; each
by the number of digits. Of dates the day of the month, 1 January apart, and the weekday; of times the hour, the minute
and the second. Each is a list of endings, a function of a column's kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from scipy import special

from sfumato.columns.kinds import DateTime, NumericKind
from sfumato.columns.wall_clock import MICROSECONDS, moments_of
from sfumato.maths.constants import ATOMS
from sfumato.methods.tables.tails import NoisyCounts
from sfumato.schema.grid import ColumnGrid

_DAY = MICROSECONDS["day"]

Smooth: TypeAlias = Callable[[NoisyCounts, float, np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class NoisyValues:
    """Noisy counts of a column's single values, and of their endings.

    Attributes:
        counts: shape (values,).
        std: of their noise.
        endings: counts of each list of endings, shape (endings,).
        endings_std: of their noise.
    """

    counts: np.ndarray
    std: float
    endings: Sequence[np.ndarray]
    endings_std: float


@dataclass(frozen=True, slots=True)
class _Law:
    """A column's cells, what was counted, and what follows: atoms, the rest of each cell, and how endings weigh it.

    Attributes:
        masses: rows in each cell, shape (c,).
        cell: of each value, shape (values,).
        endings: of each value, by list; the first says which values are of a kind.
        stds: noise of a cell's count, shape (c,).
        values: what was counted.
        weights: of values within the rest of their cell, shape (values,).
        places: the atoms, in order, shape (a,).
        sizes: rows at each.
        rest: rows in each cell beside them, shape (c,).
    """

    masses: np.ndarray
    cell: np.ndarray
    endings: Sequence[np.ndarray]
    stds: np.ndarray
    values: NoisyValues
    weights: np.ndarray
    places: np.ndarray
    sizes: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, column: ColumnGrid, masses: np.ndarray, counts: NoisyCounts, values: NoisyValues) -> _Law:
        """Return what counts of cells, estimated, and of single values say together."""
        assert column.edges is not None
        widths, none = np.diff(column.edges), np.zeros(0)
        cell = np.repeat(np.arange(widths.size), widths)
        endings, own = endings_of(column.kind), masses[: widths.size]  # type: ignore[arg-type] - of numbers
        stds, even = counts.stds[: widths.size], np.ones(cell.size)
        law = cls(own, cell, endings, stds, values, even, none.astype(np.int64), none, own)
        law = law.with_atoms(ATOMS.ease).weighed()  # what may be an atom says nothing of its ending
        return law.with_atoms().weighed().with_atoms().shrunk()

    def of_cells(self, values: np.ndarray, places: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return sums of numbers of some values by cell, shape (c,)."""
        return np.bincount(self.cell[places], values, self.masses.size)

    def spread(self, rest: np.ndarray, atoms: np.ndarray | slice = slice(0)) -> np.ndarray:
        """Return the rows at each value but some, where those of a cell lie as endings weigh them."""
        weights = self.weights.copy()
        weights[atoms] = 0.0
        return (rest / np.maximum(self.of_cells(weights), 1e-300))[self.cell] * weights

    def with_atoms(self, ease: float = 0.0) -> _Law:
        """Return the law with the values whose counts are above their part of the cell's rest by more than noise."""
        kinds, wide = np.maximum(np.bincount(self.endings[0]), 1), (np.bincount(self.cell) > 1)[self.cell]
        chance = (ATOMS.false / (kinds.size * kinds))[self.endings[0]] / 2
        chance = np.maximum(chance, self._in_high_cells())
        limits = (special.ndtri(1 - chance) - ease) * self.values.std
        rest, places = self.masses, np.zeros(0, dtype=np.int64)
        for _ in range(ATOMS.rounds):
            above = np.where(wide, self.values.counts - self.spread(rest), -np.inf)
            highest = np.flatnonzero(above > limits)
            highest = np.sort(highest[np.argsort(-above[highest], kind="stable")[: ATOMS.most]])
            if np.array_equal(highest, places):
                break
            places = highest
            rest = np.maximum(self.masses - self.of_cells(above[places], places), 0.0)
        return self._sized(places)

    def _in_high_cells(self) -> np.ndarray:
        """Return how likely noise may make each value an atom, where its cell stands out of those beside.

        Noise of cells says nothing of the noise of values, so it is shared out among the values of these cells alone;
        of a cell that holds most of what lies around it, the largest is likely one.
        """
        widths, near = np.bincount(self.cell), ATOMS.beside
        if widths.size <= near:
            return np.zeros(self.cell.size)
        beside = np.pad(self.masses / widths, near, mode="reflect")
        beside = np.delete(np.lib.stride_tricks.sliding_window_view(beside, 2 * near + 1), near, axis=1)
        beside = np.median(beside, axis=1) * widths
        high = self.masses - beside > special.ndtri(1 - ATOMS.false / widths.size) * self.stds
        alone = (high & (self.masses > ATOMS.alone * beside))[self.cell]
        largest = np.maximum.reduceat(self.values.counts, np.cumsum(widths) - widths)[self.cell]
        shared = ATOMS.false / 2 / max(high.sum(), 1)
        false = np.where(alone & (self.values.counts == largest), ATOMS.false_alone, shared)
        return false * (high / widths)[self.cell]

    def _sized(self, places: np.ndarray) -> _Law:
        """Return the law with these atoms.

        The rest is near what the cells beside say, as far as counts allow: what is missing between an atom's count, the
        cell's and that is shared out by their variances.
        """
        of_cells, atoms = self.of_cells(self.weights), np.bincount(self.cell[places], minlength=self.masses.size)
        left, has, plain = of_cells - self.of_cells(self.weights[places], places), atoms > 0, np.flatnonzero(atoms == 0)
        beside = self.masses.copy()
        if plain.size:
            density = np.log(np.maximum(self.masses[plain], ATOMS.least_rows) / of_cells[plain])
            beside[has] = np.exp(np.interp(np.flatnonzero(has), plain, density)) * left[has]
        own = self.values.counts[places]
        missing = self.masses - self.of_cells(own, places) - beside
        counted = self.stds**2 + atoms * self.values.std**2
        unsure = (ATOMS.uneven * beside) ** 2
        more = (left > 0) & (missing > 0)  # the rest may be more than those beside say, and not less than nothing
        unsure += np.where(more, np.maximum(missing**2 - counted - unsure, 0.0), 0.0)
        part = missing / np.maximum(counted + unsure, 1e-300)
        rest = np.where(has, np.maximum(beside + part * unsure, 0.0), self.masses)
        sizes = np.maximum(own + part[self.cell[places]] * self.values.std**2, 0.0)
        return replace(self, places=places, sizes=sizes, rest=rest)

    def weighed(self) -> _Law:
        """Return the law with values weighed so that the rest has the counts of endings that stand out."""
        law = replace(self, weights=np.ones_like(self.weights))
        wanted = [self._wanted(law, *each) for each in zip(self.endings, self.values.endings, strict=True)]
        factors = [np.ones(rows.size) for rows, _ in wanted]
        for _ in range(ATOMS.rounds if any(out.any() for _, out in wanted) else 0):  # proportional fitting
            for ending, factor, (rows, out) in zip(self.endings, factors, wanted, strict=True):
                even = np.maximum(np.bincount(ending, law.spread(self.rest, self.places), rows.size), 1e-9)
                factor *= np.where(out, rows / even, 1.0)
                np.clip(factor, ATOMS.least_factor, ATOMS.most_factor, out=factor)
                weights = [each[of] for each, of in zip(factors, self.endings, strict=True)]
                law = replace(law, weights=np.prod(weights, axis=0))
        return law

    def _wanted(self, even: _Law, ending: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rows of each ending of a list beside atoms, and which are more or fewer than even cells have of it.

        What they are beyond is shrunk by its noise, that of the cells and of the atoms with it.
        """
        n, own = counts.size, ending[self.places]
        rows = np.bincount(ending, even.spread(self.rest, self.places), n)
        beyond = counts - np.bincount(own, self.values.counts[self.places], n) - rows
        parts = np.bincount(self.cell * n + ending, even.weights, self.masses.size * n).reshape(-1, n)
        parts /= np.maximum(parts.sum(axis=1, keepdims=True), 1.0)
        variance = self.values.endings_std**2 + np.bincount(own, minlength=n) * self.values.std**2
        variance += np.square(parts).T @ np.square(self.stds)
        chance = ATOMS.false_endings / (2 * n * len(self.endings))
        out = np.abs(beyond) > special.ndtri(1 - chance) * np.sqrt(variance)
        part = 1 - variance / np.maximum(beyond**2, 1e-300)
        return np.maximum(np.where(out, rows + part * beyond, rows), ATOMS.least_factor * rows + 1e-9), out

    def shrunk(self) -> _Law:
        """Return the law with every value's count beside endings', as far as those of its ending differ beyond noise.

        Reference: James and Stein 1961, by ending; one is left even where noise alone may make it as uneven.
        """
        even, n = self.spread(self.rest, self.places), np.maximum(np.bincount(self.endings[0]), 1)
        off = self.values.counts - even
        off[self.places] = 0.0
        noise = self.values.std**2 * special.chdtri(n, ATOMS.false_endings / n.size)
        squares = np.maximum(np.bincount(self.endings[0], off**2), noise)
        part = np.divide(squares - noise, squares, out=np.zeros(n.size), where=squares > 0)[self.endings[0]]
        if not part.any():
            return self
        weights = np.maximum(even + part * off, 0.0)
        own = self.of_cells(weights)
        left = self.of_cells(self.weights) - self.of_cells(self.weights[self.places], self.places)
        weights *= (left / np.maximum(own, 1e-300))[self.cell]  # a cell stays as wide as endings leave it
        weights[self.places] = 1.0
        return replace(self, weights=np.where(own[self.cell] > 0, weights, self.weights))


def with_atoms(
    column: ColumnGrid, shares: np.ndarray, counts: NoisyCounts, values: NoisyValues, total: float, smooth: Smooth
) -> tuple[ColumnGrid, np.ndarray, np.ndarray]:
    """Return a numeric column's cells, their shares and their public runs, with atoms as cells.

    Args:
        column: its cells.
        shares: P(cell), shape (c,).
        counts: of them and of their runs.
        values: of single values and of endings.
        total: number of records, estimated.
        smooth: shares of cells by counts, a total and the width of each cell.
    """
    assert column.edges is not None
    law = _Law.of(column, shares * total, counts, values)
    atoms = np.pad(law.of_cells(law.sizes, law.places), (0, shares.size - law.masses.size))
    if atoms.any() or (law.weights != 1).any():  # the curve of what is left, half at the widths that endings leave
        fewer = np.bincount(counts.runs, atoms, counts.coarse.size)
        rest = replace(counts, fine=counts.fine - atoms, coarse=counts.coarse - fewer)
        left, widths = max(total - float(atoms.sum()), 1.0), np.ones(shares.size)
        plain = np.diff(column.edges)
        widths[: plain.size] = np.sqrt(law.of_cells(law.weights) * plain)
        widths *= np.median(plain) / np.median(widths[: plain.size])
        law = _Law.of(column, atoms + left * smooth(rest, left, widths), counts, values)
    edges = np.unique(np.concatenate([column.edges, law.places, law.places + 1]))
    pieces = np.add.reduceat(law.spread(law.rest, law.places), edges[:-1])
    pieces[np.searchsorted(edges, law.places)] += law.sizes
    pieces = np.append(pieces, shares[law.masses.size :] * total)
    of = np.append(law.cell[edges[:-1]], np.arange(law.masses.size, shares.size))  # the cell of each piece
    means = law.of_cells(law.weights) / np.bincount(law.cell)
    weights = np.divide(law.weights, means[law.cell], out=np.ones(law.cell.size), where=means[law.cell] > 0)
    weights = weights.astype(np.float32) if (law.weights != 1).any() else None
    return column.cut(edges, weights), pieces / pieces.sum(), counts.runs[of]


def n_endings(kind: NumericKind) -> int:
    """Return how many lists of endings there are."""
    return len(_of_dates(kind)) if isinstance(kind, DateTime) else 1


def endings_of(kind: NumericKind) -> tuple[np.ndarray, ...]:
    """Return of each list the ending of each value: a number from 0 on, shape (values,)."""
    steps = kind.steps
    numbers = np.asarray(kind.decoded(steps.codes(np.arange(steps.last + 1)))[0])
    if isinstance(kind, DateTime):
        moments = moments_of(numbers.astype(np.int64), kind.resolution)
        return tuple(ending(moments) for ending in _of_dates(kind))
    lower, upper = kind.bounds
    whole = np.abs(np.rint(numbers.astype(np.float64) * (steps.scale / (upper - lower)))).astype(np.int64)
    base = 10 if steps.last < ATOMS.few_values else 100
    zeros = sum((whole % (base * 10**more) == 0).astype(np.int64) for more in range(ATOMS.most_zeros))
    five = whole // (base * 10 ** np.maximum(zeros - 1, 0)) % 10 == 5
    ending = np.where(zeros > 0, base + 2 * zeros + five, whole % base)
    digits = np.searchsorted(10 ** np.arange(1, ATOMS.most_digits), whole, side="right")
    return (np.unique(ending * (digits.max() + 1) + digits, return_inverse=True)[1].reshape(-1),)


def _of_dates(kind: DateTime) -> list[Callable[[np.ndarray], np.ndarray]]:
    """Return what moments of a resolution end in, int64 of microseconds each."""
    step = MICROSECONDS[kind.resolution]
    endings = [] if kind.is_clock else [_day_of_month]
    if step == _DAY or (step < _DAY and not kind.is_clock):
        endings.append(lambda moments: moments // _DAY % 7)
    units = [MICROSECONDS[unit] for unit in ("day", "hour", "minute", "second")]
    for whole, unit in pairwise(units):
        if step <= unit:
            endings.append(lambda moments, whole=whole, unit=unit: moments % whole // unit)
    return endings


def _day_of_month(moments: np.ndarray) -> np.ndarray:
    days = moments.astype("M8[us]").astype("M8[D]")
    return np.where(days == days.astype("M8[Y]"), 0, 1 + (days - days.astype("M8[M]")).astype(np.int64))
