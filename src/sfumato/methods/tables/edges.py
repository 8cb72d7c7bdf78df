"""Columns that end: where counts say that nothing lies beyond, a smooth curve that fades does not say otherwise.

Ages of 25 to 64 in bounds of 20 to 70 end at once; a curve that is smooth has records on either side of such an end,
and a law of tails goes on. Two answers, each for the cells from a bound up to some cell:

    nothing     where it makes the counts three times as likely as the curve does, and more; the curve is averaged
                with it
    less        where the counts contradict the curve by more than noise does, they are taken: each cell's own where it
                is sure to hold records, and of the others together what is left, shrunk by its noise

A function of released values.
"""

from __future__ import annotations

import numpy as np

from sfumato.maths.constants import TAILS
from sfumato.methods.tables.tails import NoisyCounts


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
        result[cells] *= 1 - _nothing(result, counts, cells)
        expected, sums = np.cumsum(result[cells]), np.cumsum(combined[cells])
        std = _sum_std(counts, cells)
        inner = max(int(np.searchsorted(expected, TAILS.edge_mass * expected[-1])), 1)
        score = ((expected - np.maximum(sums, 0.0)) / std)[:inner]
        last = int(np.argmax(score))
        if score[last] > TAILS.contradicted:
            left = max(float(sums[last]), 0.0)
            left *= left**2 / (left**2 + std[last] ** 2)
            outer = cells[: last + 1]
            are_seen = _are_seen(counts, outer)
            own = np.maximum(combined[outer[are_seen]], 0.0)  # which a run's count may take below 0
            result[outer[are_seen]] = own
            left = max(left - float(own.sum()), 0.0)
            result[outer[~are_seen]] *= min(1.0, left / max(float(result[outer[~are_seen]].sum()), 1e-12))
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
    sure = np.flatnonzero(_are_seen(counts, cells))  # nothing is no answer where records are
    inner = min(inner, int(sure[0])) if sure.size else inner
    if not inner:
        return np.zeros(cells.size)
    last = int(np.argmax(gains[:inner]))
    likely = max(1 - TAILS.places * float(np.exp(-max(gains[last], 0.0))), 0.0)
    return np.where(np.arange(cells.size) <= last, likely, 0.0)


def _are_seen(counts: NoisyCounts, cells: np.ndarray) -> np.ndarray:
    """Return in which cells there surely are records, shape (cells,)."""
    return counts.fine[cells] > TAILS.sure * counts.stds[cells]


def _sum_std(counts: NoisyCounts, cells: np.ndarray) -> np.ndarray:
    """Return the noise of the sum of the outermost 1, 2, … cells; of whole runs both counts are known."""
    std = np.sqrt(np.cumsum(counts.stds[cells] ** 2))
    runs = counts.runs[cells]
    ends = np.append(np.flatnonzero(np.diff(runs)), cells.size - 1)
    fine = counts.run_variances[runs[ends]]
    whole = np.sqrt(np.cumsum(fine * counts.coarse_std**2 / (fine + counts.coarse_std**2)))
    std[ends] = np.minimum(std[ends], whole)
    return std
