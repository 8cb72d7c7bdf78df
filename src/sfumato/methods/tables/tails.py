"""The ends of a column, beyond where its noisy counts show records: the shape of what is seen goes on.

Wide bounds leave many cells that hold noise alone. Taken as counted they would be a long tail of noise; dropped, no
tail at all. Here the outermost tenth of the rows, and the empty cells beyond, are fitted with laws of few parameters:

    linear      density falling as exp(-βx - γx²/2): exponential, normal
    from zero   the same of the logarithm of the distance from 0: Pareto, lognormal
    from within the same of the distance from the median: tails on both sides, as Student's

each with β, γ ≥ 0, by least squares with the known noise of cells and of runs. The laws are averaged by their
likelihoods, and take the place of the curve from where the column's end no longer stands out of its noise. With less
noise that is ever farther out: without any, all is as counted.

Columns that end at once, as ages of 25 to 64 in bounds of 20 to 70, have *edges*: a smooth curve has records on either
side, and a law goes on. Two answers, each for the cells from a bound up to some cell:

    nothing     where it makes the counts three times as likely as the curve does, and more; the curve is averaged
                with it
    less        where the counts contradict the curve by more than noise does, it is brought to their sum, shrunk by
                its noise

A function of released values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from sfumato.maths.constants import TAILS


@dataclass(frozen=True, slots=True)
class NoisyCounts:
    """Noisy counts of a column's cells, and of runs of them.

    Attributes:
        fine: shape (c,).
        fine_std: of their noise, of all or of each, shape (c,); 0 without.
        coarse: of runs of cells, shape (r,).
        coarse_std: of their noise.
        runs: run of each cell, shape (c,).
    """

    fine: np.ndarray
    fine_std: float | np.ndarray
    coarse: np.ndarray
    coarse_std: float
    runs: np.ndarray

    @property
    def stds(self) -> np.ndarray:
        """The noise of each cell's count, shape (c,)."""
        return np.broadcast_to(np.asarray(self.fine_std, dtype=np.float64), self.fine.shape)

    @property
    def run_variances(self) -> np.ndarray:
        """The noise variance of the sum of each run's cells, shape (r,)."""
        return np.bincount(self.runs, self.stds**2, self.coarse.size)


@dataclass(frozen=True, slots=True)
class Axis:
    """Where cells lie.

    Attributes:
        lower, upper: ends of each cell in steps, shape (c,); of cells that are not ordered, anything.
        zero: the step of the value 0, if it is within the bounds.
    """

    lower: np.ndarray
    upper: np.ndarray
    zero: float | None = None

    @classmethod
    def of_widths(cls, widths: np.ndarray) -> Axis:
        """Return cells side by side."""
        ends = np.cumsum(widths)
        return cls(ends - widths, ends)


@dataclass(frozen=True, slots=True)
class _Law:
    """Coordinate of a law, and what its two rates are like before anything is seen: mean and deviation."""

    lower: np.ndarray
    upper: np.ndarray
    slope: tuple[float, float]
    bend: tuple[float, float]
    least_slope: float


def with_tails(
    curve: np.ndarray, combined: np.ndarray, counts: NoisyCounts, free: np.ndarray, axis: Axis
) -> np.ndarray:
    """Return the curve with both ends replaced from where no more records are seen.

    Args:
        curve: counts of cells, as they are smoothed, shape (c,).
        combined: least-squares counts of cells.
        counts: what was released.
        free: which cells lie on the curve.
        axis: where they lie.
    """
    places = np.flatnonzero(free)
    if places.size < TAILS.fewest:
        return curve
    result = curve.copy()
    middles = (axis.lower + axis.upper) / 2
    reached = np.cumsum(curve[places])
    median = float(middles[places[min(int(np.searchsorted(reached, reached[-1] / 2)), places.size - 1)]])
    for side, cells in ((-1, places), (1, places[::-1])):
        tail = _Tail(curve, counts, cells, axis, side, median)
        start = tail.start(combined)
        anchor = tail.anchor(start, float(reached[-1]))
        if start:
            result[cells[:start]] = tail.cut(start) if anchor is None else tail.fitted(start, anchor)
    return result


def with_normal_tails(
    shares: np.ndarray, counts: NoisyCounts, total: float, free: np.ndarray, axis: Axis
) -> np.ndarray:
    """Return shares whose ends are a normal law's, from where they stand out of their noise by little.

    Of a column that varies far less than its bounds allow, as distances from a line do, noise that is taken for a few
    records at an end would be most of its variance. The mass of an end stays, and where it begins.

    Args:
        shares: P(cell), shape (c,).
        counts: what was released.
        total: number of records, estimated.
        free: which cells lie on the curve.
        axis: where they lie.
    """
    places, result = np.flatnonzero(free), shares.copy()
    middles, whole = (axis.lower + axis.upper) / 2, float(shares[places].sum())
    if places.size < TAILS.fewest or not whole > 0:
        return result
    median = float(middles[places[np.searchsorted(np.cumsum(shares[places]), whole / 2)]])
    for side, cells in ((-1, places), (1, places[::-1])):
        mass = np.cumsum(shares[cells])
        turns = np.cumsum(np.diff(counts.runs[cells], prepend=counts.runs[cells[0]]) != 0)
        sure = mass * total > TAILS.sure_end * counts.coarse_std * np.sqrt(1 + turns)
        outer = cells[: int(np.argmax(sure))]
        left = float(mass[outer.size - 1]) if outer.size else 0.0
        if not 0 < left < whole / 2:
            continue
        away = np.sort(side * (np.stack([axis.lower[outer], axis.upper[outer]]) - median), axis=0)
        if away.min() > 0:
            normal = special.ndtr(away / away.min() * special.ndtri(left / whole))
            result[outer] = left * (normal[0] - normal[1]) / max(float(normal[0].sum() - normal[1].sum()), 1e-300)
    return result


@dataclass(frozen=True, slots=True)
class _Tail:
    """One end of a column: cells on the curve from the end inwards."""

    curve: np.ndarray
    counts: NoisyCounts
    cells: np.ndarray
    axis: Axis
    side: int
    median: float

    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the last cell of each run from the end, and the noise of all counts up to there."""
        ends = np.append(np.flatnonzero(np.diff(self.counts.runs[self.cells])), self.cells.size - 1)
        return ends, self.counts.coarse_std * np.sqrt(np.arange(1, ends.size + 1))

    def start(self, combined: np.ndarray) -> int:
        """Return how many cells lie beyond where the end stands out of its noise; 0 where the column has no tail."""
        ends, noise = self._ends()
        visible = np.flatnonzero(np.cumsum(combined[self.cells])[ends] > TAILS.seen * noise)
        high = int(np.argmax(self.curve[self.cells] >= TAILS.height * self.curve[self.cells].max()))
        # the run that stands out is kept whole
        return min(int(ends[visible[0] - 1]) + 1 if visible.size and visible[0] else 0, high)

    def cut(self, start: int) -> np.ndarray:
        """Return counts that fall on as they fell before: where noise leaves no shape to be seen."""
        reach = max(TAILS.least_cells, self.cells.size // TAILS.cut_part)
        inner = self.cells[min(start + reach, self.cells.size - 1)]
        at = max(self.curve[self.cells[start]], 1e-12)
        fall = np.log(max(self.curve[inner], 1e-12) / at)
        rate = float(np.clip(fall, TAILS.flattest, TAILS.steepest)) / reach
        return np.minimum(self.curve[self.cells[:start]], at * np.exp(-rate * np.arange(start, 0, -1)))

    def anchor(self, start: int, total: float) -> int | None:
        """Return the innermost cell of what is fitted; None where noise leaves too little."""
        ends, noise = self._ends()
        mass = np.cumsum(self.curve[self.cells])
        std = noise[np.searchsorted(ends, np.arange(self.cells.size))]
        enough = np.flatnonzero((mass >= TAILS.mass * total) & (mass >= TAILS.above_noise * std))
        middles = (self.axis.lower + self.axis.upper)[self.cells] / 2
        past = int(np.argmax((middles - self.median) * self.side <= 0))
        if not enough.size or enough[0] >= past or start + TAILS.least_cells >= self.cells.size:
            return None
        return max(int(enough[0]), start + TAILS.least_cells)

    def fitted(self, start: int, anchor: int) -> np.ndarray:
        """Return the counts of the cells beyond `start`, by all laws, each as likely as it makes what was counted."""
        region = self.cells[: anchor + 1]
        costs, counts = zip(*(self._fit(law, region) for law in self._laws(region)), strict=True)
        weights = np.exp(min(costs) - np.array(costs))
        expected = np.average(counts, axis=0, weights=weights)
        overlap = slice(start, anchor + 1)
        ratio = self.curve[region][overlap].sum() / max(expected[overlap].sum(), 1e-12)
        most = TAILS.largest_change
        return expected[:start] * float(np.clip(ratio, 1 / most, most))

    def _laws(self, region: np.ndarray) -> Iterator[_Law]:
        lower, upper = self.axis.lower[region], self.axis.upper[region]
        unit = max(abs(float(lower[-1] + upper[-1]) / 2 - self.median), 1.0)
        yield _Law(lower / unit, upper / unit, *TAILS.linear)
        for origin in {self.axis.zero, self.median} - {None}:
            assert origin is not None
            near, far = np.sort(np.stack([lower - origin, upper - origin]) * self.side, axis=0)
            if near.min() > 0:
                yield _Law(np.log(near), np.log(far), *TAILS.power)
        zero = self.axis.zero
        if zero is not None and self.side < 0 and lower.min() > zero:  # toward 0
            yield _Law(np.log(lower - zero), np.log(upper - zero), *TAILS.toward_zero)

    def _fit(self, law: _Law, region: np.ndarray) -> tuple[float, np.ndarray]:
        """Return half the squared distance of a law from what was counted, and its counts, shape (cells,)."""
        middles = (law.lower + law.upper) / 2
        away, widths = np.abs(middles - middles[-1]), np.abs(law.upper - law.lower)
        counts, runs = self.counts, self.counts.runs[region]
        whole = [run for run in np.unique(runs) if np.sum(runs == run) == np.sum(counts.runs == run)]
        member = (runs[None, :] == np.array(whole, dtype=np.int64)[:, None]).astype(float)
        innermost, reach = TAILS.innermost, TAILS.height_range
        height = np.log(max(self.curve[region][-innermost:].mean(), 1e-3) / widths[-innermost:].mean())

        def expected(theta: np.ndarray) -> np.ndarray:
            return widths * np.exp(np.clip(theta[0] - theta[1] * away - theta[2] * away**2 / 2, -60, 40))

        def residuals(theta: np.ndarray) -> np.ndarray:
            model = expected(theta)
            rates = [(theta[1] - law.slope[0]) / law.slope[1], (theta[2] - law.bend[0]) / law.bend[1]]
            cells = (counts.fine[region] - model) / counts.stds[region]
            return np.concatenate([cells, (counts.coarse[whole] - member @ model) / counts.coarse_std, rates])

        solution = optimize.least_squares(
            residuals,
            [height, law.slope[0], TAILS.first_bend],
            bounds=([height - reach, law.least_slope, 0], [height + reach, *TAILS.most_rates]),
            max_nfev=TAILS.evaluations,
        )
        return float(solution.cost), expected(solution.x)


def with_edges(curve: np.ndarray, combined: np.ndarray, counts: NoisyCounts, free: np.ndarray) -> np.ndarray:
    """Return the curve, cut off at both ends where the counts contradict it, with the counts' sum.

    Not its own sum: the law of a tail puts rows beyond an end that the counts cut off, and these came from nowhere.

    Args:
        curve: counts of cells, as they are smoothed, shape (c,).
        combined: least-squares counts of cells.
        counts: what was released.
        free: which cells lie on the curve.
    """
    places = np.flatnonzero(free)
    total, counted = curve[places].sum(), combined[places].sum()
    if places.size < TAILS.edge_cells or total <= 0:
        return curve
    known = max(counted, 0.0) ** 2 / (counted**2 + _sum_std(counts, places)[-1] ** 2)
    total += known * (counted - total)
    result = curve.copy()
    for cells in (places, places[::-1]):
        nothing, runs = _nothing(result, counts, cells), counts.runs[cells]
        result[cells] *= 1 - nothing
        for run in np.intersect1d(runs[nothing > 0], runs[nothing == 0]):
            members = cells[runs == run]
            if _runs_seen(counts)[run] and (inside := result[members].sum()) > 0:  # which keeps its rows
                result[members] *= max(float(combined[members].sum()), 0.0) / inside
        expected, sums = np.cumsum(result[cells]), np.cumsum(combined[cells])
        std = _sum_std(counts, cells)
        inner = max(int(np.searchsorted(expected, TAILS.edge_mass * expected[-1])), 1)
        score = ((expected - np.maximum(sums, 0.0)) / std)[:inner]
        last = int(np.argmax(score))
        if score[last] > TAILS.contradicted:
            left = max(float(sums[last]), 0.0)
            left *= left**2 / (left**2 + std[last] ** 2)
            outer = cells[: last + 1]
            result[outer] *= min(1.0, left / max(float(result[outer].sum()), 1e-12))
    inside = result[places].sum()
    if inside > 0:
        result[places] *= total / inside
    return result


def _nothing(curve: np.ndarray, counts: NoisyCounts, cells: np.ndarray) -> np.ndarray:
    """Return how likely each cell lies beyond the end, from a bound inwards, shape (cells,)."""
    level, fine = curve[cells], counts.fine[cells]
    gains = np.cumsum(level * (level - 2 * fine) / (2 * counts.stds[cells] ** 2))
    runs = counts.runs[cells]
    ends = np.append(np.flatnonzero(np.diff(runs)), cells.size - 1)
    sums = np.diff(np.cumsum(level)[ends], prepend=0.0)
    whole = np.diff(ends, prepend=-1) == np.bincount(counts.runs)[runs[ends]]
    coarse = np.where(whole, sums * (sums - 2 * counts.coarse[runs[ends]]), 0.0) / (2 * counts.coarse_std**2)
    gains[:] += np.concatenate([[0.0], np.cumsum(coarse)])[np.searchsorted(ends, np.arange(cells.size) + 1)]
    inner = max(int(np.searchsorted(np.cumsum(level), TAILS.edge_mass * level.sum())), 1)
    sure = ends[whole & _runs_seen(counts)[runs[ends]]]  # nothing is no answer where records are
    if sure.size and not (inner := min(inner, int(sure[0]))):
        return np.zeros(cells.size)
    last = int(np.argmax(gains[:inner]))
    likely = max(1 - TAILS.places * float(np.exp(-max(gains[last], 0.0))), 0.0)
    return np.where(np.arange(cells.size) <= last, likely, 0.0)


def _runs_seen(counts: NoisyCounts) -> np.ndarray:
    """Return in which runs there surely are records, shape (runs,)."""
    return counts.coarse > TAILS.sure * counts.coarse_std


def _sum_std(counts: NoisyCounts, cells: np.ndarray) -> np.ndarray:
    """Return the noise of the sum of the outermost 1, 2, … cells; of whole runs both counts are known."""
    std = np.sqrt(np.cumsum(counts.stds[cells] ** 2))
    runs = counts.runs[cells]
    ends = np.append(np.flatnonzero(np.diff(runs)), cells.size - 1)
    fine = counts.run_variances[runs[ends]]
    whole = np.sqrt(np.cumsum(fine * counts.coarse_std**2 / (fine + counts.coarse_std**2)))
    std[ends] = np.minimum(std[ends], whole)
    return std
