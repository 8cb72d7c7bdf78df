"""Where the values of a column end, and what may lie beyond, by noisy counts of cells of which most are empty.

A tail of 30 rows a cell is invisible cell by cell in noise of 32, and stands out in sums of cells. An end is found in
three steps, from inside to outside, each a function of the noisy counts:

    sure      the outermost window of 1, 2, 4, …, 32 cells whose sum noise alone would reach in no cell of any column
    near      of the next 4, 8, 16 cells those that stand out by about two deviations: mass beside mass is likely
    likely    as many cells more as make the error of a mean least: the square of what is expected beyond, and of noise
              as large as the bound

What lies beyond has the level of the last cells and falls as exp(-su - qu²/2), u in octaves, s and q by their
posterior under the counts there; beside that a separate group within two octaves has a small probability. The prior
has tails in which each octave holds less than 41 % of the one before, three octaves out: without some such law nothing
can be said of a mean. Proof and figures: docs/proofs/discovery.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

_FALSE = 1e-3  # expected windows of empty cells, of all columns together, that are taken for mass
_WIDTHS = (1, 2, 4, 8, 16, 32)
_NEAR = ((4, 2.0), (8, 2.3), (16, 2.6))  # cells beside mass, and the deviations by which their sum stands out
_NOTHING = 2.0**-4  # of the largest value: what is smaller is next to 0
_OCTAVE = 4  # cells
_FARTHEST = 40  # cells that an end may lie beyond what is near
_REACH = 80  # cells in which a tail may be
_ENOUGH = 1.25  # times the least squared error at which no more cells are taken in
_WIDER = 1.3  # than the posterior: its laws are few
_GROUPS = ((0, 4), (0, 8), (4, 8))  # cells to skip, and to hold a separate group
_CROSSED = ((4, 16), (0, 20))  # the same where values of the other sign come next
_GROUP, _LARGEST_GROUP = 0.35, 0.1  # how likely one is, and the largest share of the rows
_GRID = (np.arange(64) + 0.5) / 64  # quantiles at which the law of a group is read
_LEAST_Z = -30.0  # deviations that no noise has, but the counts of a stranger's release may
_OUTSIDE, _DEVIATIONS = 0.025, 1.96  # of an interval of 95 %
_SPIKE = 0.7  # of the last octave in its last cell: no tail begins there
_LEAST_SLOPE, _BY = 0.9, 3.0  # logarithm of the fall in an octave, so many octaves out
_SLOPES, _BENDS = np.geomspace(0.35, 80, 24), np.array([0.0, 0.05, 0.15, 0.4, 1.0, 3.0])
_LEVELS = np.array([0.4, 0.6, 0.8, 1.0, 1.25, 1.7, 2.5])
_STRAIGHT, _LEVEL_SPREAD = 5.0, 0.5  # weight of tails of powers, and deviation of a level's logarithm
_CONTINUED, _LEAST_FALL, _SMOOTH = 0.6, 0.5, 0.35  # prior that a tail goes on, from which fall within, and how closely
_ROUGH = 0.2  # share by which the counts of an octave may be off a smooth law

Change = Callable[[np.ndarray], np.ndarray]
"""A function of a value, elementwise."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Cells side by side, in ascending order.

    Attributes:
        lower, upper: edges, shape (c,) each.
        room: share of each cell that can hold values, shape (c,): 0 between two whole numbers.
    """

    lower: np.ndarray
    upper: np.ndarray
    room: np.ndarray

    @classmethod
    def of(cls, lower: np.ndarray, upper: np.ndarray, *, whole: bool = False) -> Axis:
        """Return cells between edges, of whole numbers only if `whole`."""
        width = upper - lower
        inside = np.maximum(np.ceil(upper) - np.ceil(lower), 0.0)
        room = inside / np.where(width > 0, width, 1.0) if whole else np.ones(width.shape)
        return cls(lower, upper, np.where(width > 0, room, 1.0))

    def mirrored(self) -> Axis:
        """Return the cells of the values with the other sign."""
        return Axis(-self.upper[::-1], -self.lower[::-1], self.room[::-1])

    @property
    def middles(self) -> np.ndarray:
        """The middle of each cell, shape (c,)."""
        return (self.lower + self.upper) / 2


@dataclass(frozen=True, slots=True)
class NoisyColumn:
    """Noisy counts of a column's cells.

    Attributes:
        counts: shape (c,).
        std: of their noise; 0 without.
        axis: where the cells lie.
        columns: that are looked at together.
        n: number of rows.
    """

    counts: np.ndarray
    std: float
    axis: Axis
    columns: int
    n: float

    @classmethod
    def counted(
        cls,
        counts: np.ndarray,
        std: float,
        edges: tuple[np.ndarray, np.ndarray],
        *,
        whole: bool,
        columns: int,
        n: float,
    ) -> NoisyColumn:
        """The counts of cells with these edges, of whole numbers or not, of at least one row."""
        return cls(counts, std, Axis.of(*edges, whole=whole), columns, max(n, 1.0))

    def some(self, places: np.ndarray) -> NoisyColumn:
        """Return the counts of some of the cells, in ascending order."""
        axis = Axis(self.axis.lower[places], self.axis.upper[places], self.axis.room[places])
        return replace(self, counts=self.counts[places], axis=axis)

    def mirrored(self) -> NoisyColumn:
        """Return the counts of the values with the other sign."""
        return replace(self, counts=self.counts[::-1], axis=self.axis.mirrored())

    @property
    def sure(self) -> tuple[int, int] | None:
        """A cell at or below which there are values, and one at or above which there are; None without any."""
        if not self.std:
            some = np.flatnonzero(self.counts)
            return (int(some[0]), int(some[-1])) if some.size else None
        sums = np.concatenate([[0.0], np.cumsum(self.counts)])
        ends: list[tuple[int, int]] = []
        for width in _WIDTHS:
            least = -self.std * np.sqrt(width) * ndtri(_FALSE / (len(_WIDTHS) * self.counts.size * self.columns))
            starts = np.flatnonzero(sums[width:] - sums[:-width] > least)
            if starts.size:
                ends.append((int(starts[0]) + width - 1, int(starts[-1])))
        if not ends:
            return None
        return min(first for first, _ in ends), max(last for _, last in ends)


@dataclass(frozen=True, slots=True)
class Beyond:
    """A total over the rows beyond a bound, of which nothing but noisy counts is known.

    Attributes:
        value: expected.
        deviation: of it.
        std_error: what 95 % of it are within 1.96 of: more than the deviation, where a group is there or not.
    """

    value: float
    deviation: float
    std_error: float

    def __add__(self, other: Beyond) -> Beyond:
        """Return the total of two ends, which are independent."""
        errors = np.hypot((self.deviation, self.std_error), (other.deviation, other.std_error))
        return Beyond(self.value + other.value, *map(float, errors))

    def times(self, value: float, error: float) -> Beyond:
        """Return it in other units, and its errors in others."""
        return Beyond(self.value * value, self.deviation * error, self.std_error * error)


class UpperEnd:
    """The upper end of a column with values.

    Args:
        column: its noisy counts.
        sure: a cell at or above which there are values.
        far: the other end of the values that are sure.
    """

    def __init__(self, column: NoisyColumn, sure: int, far: float) -> None:
        axis = column.axis
        # from one sign to the other there are a hundred cells of next to nothing, which no value has to cross
        size = np.maximum(np.abs(axis.lower), np.abs(axis.upper))
        largest = max(float(size[sure]), abs(far))
        near = np.arange(size.size) <= sure + _OCTAVE
        self._places = np.flatnonzero(near | (size >= largest * _NOTHING) | (size == 0))
        self._column = column = column.some(self._places)
        self._near = _with_near(column, sure)
        self._far = far
        self._cells, self._tails, self._likely = _tails(column, self._near)

    @property
    def last(self) -> int:
        """The last cell within the bound."""
        column = self._column
        if not column.std or not self._cells.size:
            return int(self._places[self._near])
        last = min(self._near + _FARTHEST, column.counts.size)
        risks = []
        for cell in range(self._near, last):
            expected = self._tail(cell, lambda values: values)
            noise = column.std * abs(column.axis.upper[cell] - self._far)
            risks.append(expected.value**2 + expected.deviation**2 + noise**2)
        return int(self._places[self._near + int(np.argmax(np.array(risks) <= _ENOUGH * min(risks)))])

    def beyond(self, cell: int, change: Change) -> Beyond:
        """Return the total of the rows beyond a cell if they count as themselves, not as its upper edge.

        Args:
            cell: the last within the bound.
            change: what is totalled, of values.
        """
        if not self._column.std:
            return Beyond(0.0, 0.0, 0.0)
        cell = int(np.searchsorted(self._places, cell, side="right")) - 1
        return self._tail(cell, change).times(1.0, _WIDER) + self._group(cell, change)

    def rows(self, cell: int) -> Beyond:
        """Return how many rows lie beyond a cell."""
        cell = int(np.searchsorted(self._places, cell, side="right")) - 1
        edge = self._column.axis.upper[cell]
        return self.beyond(int(self._places[cell]), lambda values: (values > edge).astype(np.float64))

    def _tail(self, cell: int, change: Change) -> Beyond:
        axis = self._column.axis
        edge = change(axis.upper[[cell]])[0]
        more = np.where(self._cells > cell, change(axis.middles[self._cells]) - edge, 0.0)
        totals = self._tails @ more
        return _mixture(totals, self._likely)

    def _group(self, cell: int, change: Change) -> Beyond:
        """Return the total of a separate group beyond a cell, on average over whether there is one, and where."""
        column = self._column
        edge = change(column.axis.upper[[cell]])[0]
        odds, totals = [1 - _GROUP], [np.zeros(_GRID.size)]
        groups = (*_GROUPS, *(_CROSSED if column.axis.upper[cell] <= 0 else ()))
        for skip, width in groups:
            part = slice(cell + 1 + skip, cell + 1 + skip + width)
            counts = column.counts[part]
            if counts.size < width:
                continue
            std, largest = column.std * np.sqrt(width), max(_LARGEST_GROUP * column.n, 1.0)
            z = max(float(counts.sum()) / std, _LEAST_Z)
            odds.append(
                _GROUP / len(groups) * np.exp(min(z**2 / 2, 50.0)) * np.sqrt(2 * np.pi) * std / largest
                * (ndtr(largest / std - z) - ndtr(-z))
            )  # fmt: skip
            # as many rows as a normal number of mean z has that is positive
            totals.append(std * (z - ndtri(ndtr(z) * _GRID)) * float((change(column.axis.middles[part]) - edge).mean()))
        likely = np.repeat(np.array(odds) / sum(odds) / _GRID.size, _GRID.size)
        return _mixture(np.concatenate(totals), likely)


def ends(column: NoisyColumn) -> tuple[UpperEnd, UpperEnd] | None:
    """Return the lower end, of the mirrored column, and the upper end; None where no value stands out."""
    sure = column.sure
    if sure is None:
        return None
    first, last = min(sure), max(sure)
    axis = column.axis
    lower = UpperEnd(column.mirrored(), column.counts.size - 1 - sure[0], -axis.upper[last])
    return lower, UpperEnd(column, sure[1], axis.lower[first])


def span(column: NoisyColumn) -> tuple[int, int] | None:
    """Return the first and the last cell between the bounds of a column; None where no value stands out."""
    both = ends(column)
    if both is None:
        return None
    first, last = column.counts.size - 1 - both[0].last, both[1].last
    return min(first, last), max(first, last)


def _with_near(column: NoisyColumn, last: int) -> int:
    """Return the last cell of mass beside a cell, outwards; beside that of 0 lies what is next to 0 only."""
    counts, std = column.counts, column.std
    zero = int(np.searchsorted(column.axis.upper, 0.0)) + 1
    while std and column.axis.lower[last] < column.axis.upper[last]:
        for width, deviations in _NEAR:
            # of one sign: noise on the other side is not taken in along with mass on this one
            end = min(last + 1 + width, zero) if last + 1 < zero else last + 1 + width
            near = counts[last + 1 : end]
            if near.size == end - last - 1 and near.sum() > deviations * std * np.sqrt(near.size):
                last += 1 + int(np.argmax(np.cumsum(near)))
                break
        else:
            break
    return last


def _tails(column: NoisyColumn, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return cells beyond a cell, shape (c,), counts there under each law, shape (l, c), and how likely it is, (l,)."""
    counts, room = column.counts, column.axis.room
    own = slice(max(last - _OCTAVE + 1, 0), last + 1)
    spike = column.axis.upper[last] <= column.axis.lower[last] or counts[last] > _SPIKE * counts[own].sum()
    if spike or room[own].sum() <= 0:
        own = slice(last, last + 1)
    level = max(float(counts[own].sum()) / max(float(room[own].sum()), 1e-9), column.std / 2)
    cells = np.arange(last + 1, min(counts.size, last + 1 + _REACH))
    slopes, bends, levels, prior = _laws()
    away = (cells - last) / _OCTAVE
    tails = level * levels[:, None] * np.exp(-slopes[:, None] * away - bends[:, None] * away**2 / 2) * room[cells]
    if not column.std:
        return cells, tails, prior
    log = -(((counts[cells] - tails) / column.std) ** 2).sum(axis=1) / 2
    before = slice(max(own.start - _OCTAVE, 0), own.start)
    if own.stop - own.start == _OCTAVE == before.stop - before.start and room[before].sum() > 0:
        # of what falls ever faster the slope beyond is no less than that within
        ratio = float(counts[before].sum() / room[before].sum()) / level
        error = np.hypot(column.std / 2 / level * np.hypot(1.0, ratio), _ROUGH * ratio)
        log -= np.maximum(ratio - np.exp(np.minimum(slopes, 30.0)), 0.0) ** 2 / error**2 / 2
        prior = _continued(prior, slopes, ratio, error / max(ratio, 1e-9))
    log += np.log(prior)
    likely = np.exp(log - log.max())
    return cells, tails, likely / likely.sum()


def _continued(prior: np.ndarray, slopes: np.ndarray, ratio: float, error: float) -> np.ndarray:
    """Return the prior of laws, of which a part goes on as the counts fall within.

    Where the noise hides a tail is no place where it ends: the bound was put where counts happened to be low.

    Args:
        prior: of the laws, shape (l,).
        slopes: theirs, shape (l,).
        ratio: how much more lies in the octave before the last.
        error: of its logarithm.
    """
    within = np.log(max(ratio, 1e-9))
    if within < _LEAST_FALL:
        return prior
    smooth = prior * np.exp(-np.square(np.log(slopes / within)) / (_SMOOTH**2 + (error / within) ** 2) / 2)
    return (1 - _CONTINUED) * prior + _CONTINUED * smooth / smooth.sum()


def _laws() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return slopes, bends and levels of laws of a tail, and how likely each is before counts are seen."""
    slopes, bends, levels = (grid.ravel() for grid in np.meshgrid(_SLOPES, _BENDS, _LEVELS, indexing="ij"))
    prior = np.where(bends == 0, _STRAIGHT, 1.0) * np.exp(-((np.log(levels) / _LEVEL_SPREAD) ** 2) / 2)
    falls = slopes + _BY * bends >= _LEAST_SLOPE
    return slopes[falls], bends[falls], levels[falls], prior[falls] / prior[falls].sum()


def _mixture(totals: np.ndarray, likely: np.ndarray) -> Beyond:
    """Return mean and error of a total that is one of several, as far out as 95 % of them are.

    A group that is there or not is no normal number: twice its standard deviation ends before the group does.
    """
    value = float(likely @ totals)
    deviation = float(np.sqrt(max(likely @ totals**2 - value**2, 0.0)))
    order = np.argsort(totals)
    low, high = np.interp((_OUTSIDE, 1 - _OUTSIDE), np.cumsum(likely[order]), totals[order])
    return Beyond(value, deviation, max(deviation, float(high - value) / _DEVIATIONS, float(value - low) / _DEVIATIONS))
