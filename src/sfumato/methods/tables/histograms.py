"""One column's shares from noisy counts at two resolutions: a smooth curve, and spikes that noise cannot hide.

Ordered cells follow exp(f) with f as straight as the counts allow (second differences penalised); ends whose counts
are lost in noise go on as `tails.py` says, in place of the noise's own mass. A cell that stands out of
the curve by more than noise does is taken as it was counted: with the noise gone, all cells are.

Everything here is a function of released values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from sfumato.maths.constants import CURVE
from sfumato.maths.gaussian import project_to_simplex
from sfumato.maths.shrinkage import likely_counts
from sfumato.methods.tables.tails import Axis, NoisyCounts, with_edges, with_tails


def estimated_shares(
    counts: NoisyCounts,
    total: float,
    ordered: np.ndarray,
    widths: np.ndarray,
    axis: Axis | None = None,
    *,
    total_std: float = np.inf,
) -> np.ndarray:
    """Return P(cell), shape (c,), ≥ 0 and of sum 1.

    Args:
        counts: what was released.
        total: number of records, estimated.
        ordered: which cells lie on the curve, in order, shape (c,) bool; others have counts of their own.
        widths: steps of the column's resolution in each cell, shape (c,).
        axis: where the cells lie; side by side if not given.
        total_std: of the noise of that number; infinite where it may be off by more than noise.
    """
    if not counts.stds.any():
        return _normalised(np.maximum(counts.fine, 0.0))
    if ordered.sum() < CURVE.fewest_ordered:
        combined = _combined(counts)
        if combined.size >= CURVE.many_levels:
            std = counts.stds * counts.coarse_std / np.hypot(counts.stds, counts.coarse_std)  # each is a run
            combined = likely_counts(combined, std)
        return _normalised(project_to_simplex(combined, total))
    curve, spikes = _curve_and_spikes(counts, ordered, widths, axis or Axis.of_widths(widths))
    curve = _with_rest(curve, spikes, total, total_std, counts)
    return _normalised(_with_runs(curve, spikes, counts, keep=bool(np.isfinite(total_std))))


def _with_runs(curve: np.ndarray, spikes: np.ndarray, counts: NoisyCounts, *, keep: bool) -> np.ndarray:
    """Return counts of cells, beside spikes as counted in the runs that the curve misses by far more than noise does.

    To `keep` the sum, which is better known than that of all cells, the others have what is left of it.
    """

    def of_runs(cells: np.ndarray) -> np.ndarray:
        return np.bincount(counts.runs, cells, counts.coarse.size)

    missed = (np.abs(counts.coarse - of_runs(curve + spikes)) > CURVE.missed * counts.coarse_std)[counts.runs]
    if not missed.any():
        return spikes + curve
    alone = np.where(missed & (spikes <= 0), np.maximum(_combined(counts), 0.0), 0.0)
    alone *= (np.maximum(counts.coarse - of_runs(spikes), 0.0) / np.maximum(of_runs(alone), 1e-300))[counts.runs]
    others = np.where(missed, 0.0, curve)
    if keep:
        others *= max(float(curve.sum() - alone.sum()), 0.0) / max(float(others.sum()), 1e-300)
    return spikes + alone + others


def _normalised(values: np.ndarray) -> np.ndarray:
    total = values.sum()
    return values / total if total > 0 else np.full(values.size, 1 / values.size)


def _combined(counts: NoisyCounts) -> np.ndarray:
    """Return the least-squares counts of cells: what a run was counted more is shared out among its cells."""
    sums = np.bincount(counts.runs, counts.fine, counts.coarse.size)
    missed = (counts.coarse - sums) / (counts.run_variances + counts.coarse_std**2)
    return counts.fine + counts.stds**2 * missed[counts.runs]


def _curve_and_spikes(
    counts: NoisyCounts, ordered: np.ndarray, widths: np.ndarray, axis: Axis
) -> tuple[np.ndarray, np.ndarray]:
    """Return counts: a curve where cells are ordered, and what was counted where cells stand out of it, shape (c,)."""
    combined = _combined(counts)
    apart = ~ordered | _suspects(counts, ordered, widths)
    curve = np.zeros(ordered.size)
    # of a run of one cell, as bounds are, both counts tell; and few cells are looked at
    single = (np.bincount(counts.runs) == 1)[counts.runs]
    own = np.where(single, combined, counts.fine)
    stds = np.where(single, counts.stds * counts.coarse_std / np.hypot(counts.stds, counts.coarse_std), counts.stds)
    among = np.where(single, special.ndtri(1 - CURVE.false / max(single.sum(), 1)), np.inf)
    for _ in range(CURVE.spike_rounds):
        curve, spread = _Curve.of(counts, apart, np.maximum(combined, 0.0), widths).fitted()
        deviation = (own - curve) / np.hypot(stds, spread)
        least = np.where(curve < CURVE.below_noise * counts.stds, CURVE.stands_alone, CURVE.stands_out)
        outside = ~ordered | (np.abs(deviation) > np.minimum(least, among))
        if np.array_equal(outside, apart):
            break
        apart = outside
    else:  # what stands out may not settle: the curve is of the cells that are on it at last
        curve, _ = _Curve.of(counts, apart, np.maximum(combined, 0.0), widths).fitted()
    curve = np.where(apart, 0.0, with_tails(curve, combined, counts, ~apart, axis))
    curve = with_edges(curve, combined, counts, ~apart)
    # beside spikes the curve may be empty, as a cell off the curve may be
    curve *= _not_noise(curve.sum(), _sum_std(counts, ~apart))
    alone = np.maximum(combined, 0.0)
    alone *= _not_noise(alone, counts.stds)
    return curve, np.where(apart, np.where(ordered, np.maximum(combined, 0.0), alone), 0.0)


def _with_rest(
    curve: np.ndarray, spikes: np.ndarray, total: float, total_std: float, counts: NoisyCounts
) -> np.ndarray:
    """Return the curve with what is left of all records beside the spikes, as far as that is known better than its sum.

    A spike of one cell is known to one noise; shares of the sum of all cells would bring in the noise of every cell.
    """
    apart, on_curve = spikes > 0, float(curve.sum())
    if not apart.any() or not on_curve or not np.isfinite(total_std):
        return curve
    own = _sum_std(counts, ~apart) ** 2
    left = total_std**2 + float((counts.stds[apart] ** 2).sum())
    rest = (left * on_curve + own * (total - float(spikes.sum()))) / (own + left)
    return curve * max(rest, 0.0) / on_curve


def _not_noise(count: np.ndarray, noise_std: float | np.ndarray) -> np.ndarray:
    """Return which part of a count is kept, near 0 for what its noise may be alone."""
    return count**2 / np.maximum(count**2 + noise_std**2, 1e-300)


def _sum_std(counts: NoisyCounts, free: np.ndarray) -> float:
    """Return the noise of the sum of cells that was counted in cells and in runs."""
    fine = np.bincount(counts.runs[free], counts.stds[free] ** 2, counts.coarse.size)
    coarse = counts.coarse_std**2
    return float(np.sqrt((fine * coarse / np.maximum(fine + coarse, 1e-300)).sum()))


def _suspects(counts: NoisyCounts, ordered: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return the ordered cells that stand out of those beside them, shape (c,) bool.

    A spike that is on the curve when it is first fitted bends all of it: here these cells are set apart before.
    """
    places = np.flatnonzero(ordered)
    density = counts.fine[places] / widths[places]
    padded = np.pad(density, CURVE.beside, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * CURVE.beside + 1)
    expected = np.nanmedian(np.delete(windows, CURVE.beside, axis=1), axis=1) * widths[places]
    suspects = np.zeros(ordered.size, dtype=bool)
    suspects[places] = counts.fine[places] - np.maximum(expected, 0.0) > CURVE.suspect * counts.stds[places]
    return suspects


@dataclass(frozen=True, slots=True)
class _Curve:
    """Counts exp(f + log widths) of the cells that are not apart, and what is known of them."""

    counts: NoisyCounts
    free: np.ndarray  # (c,)
    weights: np.ndarray  # (c,): inverse variances; cells apart have a place on the curve, but say nothing of it
    targets: np.ndarray  # (r,): a run's count without the cells apart
    roughness: np.ndarray  # (c, c): the sum of squared second differences
    together: np.ndarray  # (c, c): whether two cells are free and of one run
    log_widths: np.ndarray

    @classmethod
    def of(cls, counts: NoisyCounts, apart: np.ndarray, alone: np.ndarray, widths: np.ndarray) -> _Curve:
        free = ~apart
        beside = np.bincount(counts.runs, np.where(apart, alone, 0.0), counts.coarse.size)
        weights = np.where(free, counts.stds**-2.0, 0.0)
        seconds = np.diff(np.eye(apart.size), n=2, axis=0)
        together = np.equal.outer(counts.runs, counts.runs) & np.logical_and.outer(free, free)
        log_widths = np.log(np.maximum(widths, 1.0))
        return cls(counts, free, weights, counts.coarse - beside, seconds.T @ seconds, together, log_widths)

    def fitted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return every cell's count on the curve and its standard error, for the stiffness of least estimated risk.

        A softer curve has to be better by a deviation of what noise alone makes it better.

        Reference: Stein 1981.
        """
        start = _start(self.counts.fine, self.free, float(self.counts.stds.mean()), np.exp(self.log_widths))
        best, chosen, curved, explained = np.inf, np.zeros(start.size), np.zeros((0, 0)), np.zeros((0, 0))
        f = start
        for number, stiffness in enumerate(CURVE.stiffness):
            # a curve too stiff for two humps may lose both, and where it is empty it has no slope to come back by
            f = min(f, start, key=lambda curve: self._loss(curve, stiffness))
            f = self._descended(f, stiffness, CURVE.rounds if number else CURVE.first_rounds)
            _, hessian, information = self._derivatives(f, stiffness)
            known = _solved(hessian, information)
            expected = self._expected(f)
            risk = self._distance(expected) + 2 * float(np.trace(known))
            softer = np.sqrt(2 * max(float(np.trace(known) - np.trace(explained)), 0.0))
            if risk < best - CURVE.tie * softer or not number:
                best, chosen, curved, explained = risk, expected, hessian, known
            elif risk > best + CURVE.hopeless:
                break
        variances = np.einsum("ij,ji->i", explained, _solved(curved, np.eye(f.size))) * chosen**2
        return chosen, np.sqrt(np.maximum(variances, 0.0))

    def _descended(self, f: np.ndarray, stiffness: float, rounds: int) -> np.ndarray:
        """Return the curve after steps of Gauss and Newton, none of which makes it less likely."""
        loss = self._loss(f, stiffness)
        for _ in range(rounds):
            gradient, hessian, _ = self._derivatives(f, stiffness)
            whole = _solved(hessian, gradient)
            step = np.clip(whole, -CURVE.largest_step, CURVE.largest_step)
            if self._loss(f + step, stiffness) > loss:  # cut cell by cell, a step may lead elsewhere
                step = whole * min(1.0, CURVE.largest_step / float(np.abs(whole).max()))
            for _ in range(CURVE.halvings):
                if (ahead := self._loss(f + step, stiffness)) <= loss:
                    break
                step /= 2
            else:
                break
            f, loss = f + step, ahead
            if np.abs(step).max() < CURVE.converged:
                break
        return f

    def _loss(self, f: np.ndarray, stiffness: float) -> float:
        """Return minus the penalised log-likelihood of a curve, up to a constant."""
        return (self._distance(self._expected(f)) + stiffness * float(f @ self.roughness @ f)) / 2

    def _expected(self, f: np.ndarray) -> np.ndarray:
        return np.exp(np.clip(f + self.log_widths, -30.0, 30.0))

    def _of_runs(self, expected: np.ndarray) -> np.ndarray:
        """Return what the free cells of each run come to, shape (r,)."""
        return np.bincount(self.counts.runs, np.where(self.free, expected, 0.0), self.targets.size)

    def _distance(self, expected: np.ndarray) -> float:
        runs = ((self.targets - self._of_runs(expected)) ** 2).sum() / self.counts.coarse_std**2
        return float((self.weights * (self.counts.fine - expected) ** 2).sum() + runs)

    def _derivatives(self, f: np.ndarray, stiffness: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the gradient, the penalised information and the information of the counts."""
        expected, each = self._expected(f), np.diag_indices(f.size)
        information = self.together * np.outer(expected, expected) / self.counts.coarse_std**2
        information[each] += self.weights * expected**2
        excess = self.targets - self._of_runs(expected)
        gradient = self.weights * expected * (self.counts.fine - expected) - stiffness * (self.roughness @ f)
        gradient += np.where(self.free, expected * excess[self.counts.runs], 0.0) / self.counts.coarse_std**2
        hessian = information + stiffness * self.roughness
        hessian[each] += 1e-6 + 1e-9 * hessian.trace() / f.size
        return gradient, hessian, information


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the solution of a symmetric positive definite system."""
    return linalg.cho_solve(linalg.cho_factor(matrix, lower=True, check_finite=False), right, check_finite=False)


def _start(fine: np.ndarray, free: np.ndarray, noise_std: float, widths: np.ndarray) -> np.ndarray:
    """Return the logarithm of counts per step, averaged over a window of cells, floored below the noise."""
    window = max(3, fine.size // CURVE.window)
    kernel = np.ones(window)
    known = (np.where(free, x, 0.0) for x in (fine, widths, np.ones(fine.size)))
    counts, steps, cells = (np.convolve(x, kernel, "same") for x in known)
    # a cell of one step among wide ones is as dense as these, not as high
    density = np.maximum(counts, CURVE.window_floor * noise_std * np.maximum(cells, 1.0)) / np.maximum(steps, 1.0)
    return np.log(density)
