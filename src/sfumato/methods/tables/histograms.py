"""One column's shares from noisy counts at two resolutions: a smooth curve, and spikes that noise cannot hide.

Ordered cells follow exp(f) with f as straight as the counts allow (second differences penalised); ends whose counts
drown go on as `tails.py` says, in place of the noise's own mass. A cell that stands out of
the curve by more than noise does is taken as it was counted: with the noise gone, all cells are.

Everything here is a function of released values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sfumato.maths.gaussian import project_to_simplex
from sfumato.maths.shrinkage import likely_counts
from sfumato.methods.tables.edges import with_edges
from sfumato.methods.tables.tails import Axis, NoisyCounts, with_tails

STANDS_OUT = 3.5
"""Noise deviations from which a cell is a spike."""
_STANDS_ALONE, _DROWNED = 5.0, 3.0
# the same of cells whose counts drown (noise deviations of the curve): there are many, and one far out weighs much
_MANY_LEVELS = 30  # of a label: fewer say too little of how frequent levels are
_STIFFNESS = 8.0 ** np.arange(8, -3, -1)  # weights of the second differences that are tried
_ROUNDS = 4  # steps of Gauss and Newton for each
_SPIKES = 3  # times that cells are set apart
_SUSPECT, _BESIDE = 5.0, 4  # noise deviations from the median of so many cells on either side
_LARGEST_STEP = 2.0  # of f
_HOPELESS = 40.0


def estimated_shares(
    counts: NoisyCounts, total: float, ordered: np.ndarray, widths: np.ndarray, axis: Axis | None = None
) -> np.ndarray:
    """Return P(cell), shape (c,), ≥ 0 and of sum 1.

    Args:
        counts: what was released.
        total: number of records, estimated.
        ordered: which cells lie on the curve, in order, shape (c,) bool; others have counts of their own.
        widths: steps of the column's resolution in each cell, shape (c,).
        axis: where the cells lie; side by side if not given.
    """
    if not counts.fine_std:
        return _normalised(np.maximum(counts.fine, 0.0))
    if ordered.sum() < 4:
        combined = _combined(counts)
        if combined.size >= _MANY_LEVELS:
            combined = likely_counts(combined, _combined_std(counts))
        return _normalised(project_to_simplex(combined, total))
    return _normalised(_curve_and_spikes(counts, ordered, widths, axis or Axis.of_widths(widths)))


def _normalised(values: np.ndarray) -> np.ndarray:
    total = values.sum()
    return values / total if total > 0 else np.full(values.size, 1 / values.size)


def _combined(counts: NoisyCounts) -> np.ndarray:
    """Return the least-squares counts of cells: what a run was counted more is shared out among its cells."""
    sizes = np.bincount(counts.runs, minlength=counts.coarse.size)
    sums = np.bincount(counts.runs, counts.fine, counts.coarse.size)
    variance = sizes * counts.fine_std**2
    gain = variance / (variance + counts.coarse_std**2) / np.maximum(sizes, 1)
    return counts.fine + (gain * (counts.coarse - sums))[counts.runs]


def _combined_std(counts: NoisyCounts) -> float:
    """Return the noise of the combined counts of labels, each of them a run."""
    return counts.fine_std * counts.coarse_std / float(np.hypot(counts.fine_std, counts.coarse_std))


def _curve_and_spikes(counts: NoisyCounts, ordered: np.ndarray, widths: np.ndarray, axis: Axis) -> np.ndarray:
    """Return counts: a curve where cells are ordered, and what was counted where cells stand out of it."""
    combined = _combined(counts)
    apart = ~ordered | _suspects(counts, ordered, widths)
    curve = np.zeros(ordered.size)
    for _ in range(_SPIKES):
        curve, spread = _Curve.of(counts, apart, np.maximum(combined, 0.0), widths).fitted()
        deviation = (counts.fine - curve) / np.hypot(counts.fine_std, spread)
        least = np.where(curve < _DROWNED * counts.fine_std, _STANDS_ALONE, STANDS_OUT)
        found = ~ordered | (np.abs(deviation) > least)
        if np.array_equal(found, apart):
            break
        apart = found
    curve = np.where(apart, 0.0, with_tails(curve, combined, counts, ~apart, axis))
    curve = with_edges(curve, combined, counts, ~apart)
    # beside spikes the curve may be empty, as a cell off the curve may be
    curve *= _not_noise(curve.sum(), _sum_std(counts, ~apart))
    alone = np.maximum(combined, 0.0)
    alone *= _not_noise(alone, counts.fine_std)
    return np.where(apart, np.where(ordered, np.maximum(combined, 0.0), alone), curve)


def _not_noise(count: np.ndarray, noise_std: float) -> np.ndarray:
    """Return which part of a count is kept, near 0 for what its noise may be alone."""
    return count**2 / np.maximum(count**2 + noise_std**2, 1e-300)


def _sum_std(counts: NoisyCounts, free: np.ndarray) -> float:
    """Return the noise of the sum of cells that was counted in cells and in runs."""
    sizes = np.bincount(counts.runs[free], minlength=counts.coarse.size)
    fine, coarse = sizes * counts.fine_std**2, counts.coarse_std**2
    return float(np.sqrt((fine * coarse / np.maximum(fine + coarse, 1e-300)).sum()))


def _suspects(counts: NoisyCounts, ordered: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the ordered cells that stand out of those beside them, shape (c,) bool.

    A spike that is on the curve when it is first fitted bends all of it: here these cells are set apart before.
    """
    places = np.flatnonzero(ordered)
    density = counts.fine[places] / widths[places]
    beside = np.full((2 * _BESIDE, places.size), np.nan)
    for shift in range(1, _BESIDE + 1):
        beside[2 * shift - 2, shift:] = density[:-shift]
        beside[2 * shift - 1, :-shift] = density[shift:]
    expected = np.nanmedian(beside, axis=0) * widths[places]
    found = np.zeros(ordered.size, dtype=bool)
    found[places] = counts.fine[places] - np.maximum(expected, 0.0) > _SUSPECT * counts.fine_std
    return found


@dataclass(frozen=True, slots=True)
class _Curve:
    """Counts exp(f + log widths) of the cells that are not apart, and what is known of them."""

    counts: NoisyCounts
    free: np.ndarray  # (c,)
    weights: np.ndarray  # (c,): inverse variances; cells apart have a place on the curve, but say nothing of it
    members: np.ndarray  # (r, c): which free cells a run has
    targets: np.ndarray  # (r,): its count without the cells apart
    roughness: np.ndarray  # (c, c)
    log_widths: np.ndarray

    @classmethod
    def of(cls, counts: NoisyCounts, apart: np.ndarray, alone: np.ndarray, widths: np.ndarray) -> _Curve:
        free = ~apart
        places = np.flatnonzero(free)
        members = np.zeros((counts.coarse.size, apart.size))
        members[counts.runs[places], places] = 1.0
        beside = np.bincount(counts.runs, np.where(apart, alone, 0.0), counts.coarse.size)
        second = np.diff(np.eye(apart.size), n=2, axis=0)
        weights = np.where(free, counts.fine_std**-2.0, 0.0)
        log_widths = np.log(np.maximum(widths, 1.0))
        return cls(counts, free, weights, members, counts.coarse - beside, second.T @ second, log_widths)

    def fitted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return every cell's count on the curve and its standard error, for the stiffness of least estimated risk.

        Reference: Stein 1981.
        """
        f = _start(self.counts.fine, self.free, self.counts.fine_std, np.exp(self.log_widths))
        best, chosen, errors = np.inf, np.zeros(f.size), np.zeros(f.size)
        for number, stiffness in enumerate(_STIFFNESS):
            for _ in range(_ROUNDS if number else 4 * _ROUNDS):
                gradient, hessian, _ = self._derivatives(f, stiffness)
                f = f + np.clip(linalg.solve(hessian, gradient, assume_a="pos"), -_LARGEST_STEP, _LARGEST_STEP)
            _, hessian, information = self._derivatives(f, stiffness)
            known = linalg.solve(hessian, information, assume_a="pos")
            expected = self._expected(f)
            risk = self._distance(expected) + 2 * float(np.trace(known))
            if risk < best:
                variances = np.einsum("ij,ji->i", known, linalg.inv(hessian)) * expected**2
                best, chosen = risk, expected
                errors = np.sqrt(np.maximum(variances, 0.0))
            elif risk > best + _HOPELESS:
                break
        return chosen, errors

    def _expected(self, f: np.ndarray) -> np.ndarray:
        return np.exp(np.clip(f + self.log_widths, -30.0, 30.0))

    def _distance(self, expected: np.ndarray) -> float:
        runs = ((self.targets - self.members @ expected) ** 2).sum() / self.counts.coarse_std**2
        return float((self.weights * (self.counts.fine - expected) ** 2).sum() + runs)

    def _derivatives(self, f: np.ndarray, stiffness: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the gradient, the penalised information and the information of the counts."""
        expected = self._expected(f)
        slope = self.members * expected
        information = slope.T @ slope / self.counts.coarse_std**2
        information[np.arange(f.size), np.arange(f.size)] += self.weights * expected**2
        gradient = self.weights * expected * (self.counts.fine - expected) - stiffness * (self.roughness @ f)
        gradient += slope.T @ (self.targets - self.members @ expected) / self.counts.coarse_std**2
        hessian = information + stiffness * self.roughness
        hessian[np.arange(f.size), np.arange(f.size)] += 1e-6 + 1e-9 * np.trace(hessian) / f.size
        return gradient, hessian, information


def _start(fine: np.ndarray, free: np.ndarray, noise_std: float, widths: np.ndarray) -> np.ndarray:
    """Return the logarithm of counts per step, averaged over a window of cells, floored below the noise."""
    window = max(3, fine.size // 8)
    kernel = np.ones(window)
    known = (np.where(free, x, 0.0) for x in (fine, widths, np.ones(fine.size)))
    counts, steps, cells = (np.convolve(x, kernel, "same") for x in known)
    # a cell of one step among wide ones is as dense as these, not as high
    density = np.maximum(counts, 0.05 * noise_std * np.maximum(cells, 1.0)) / np.maximum(steps, 1.0)
    return np.log(density)
