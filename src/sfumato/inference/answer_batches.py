"""Many answers about the same columns at once: each is what its question alone would give, at a fraction of the time.

Free: uses released values only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.inference.estimator import LEAST_KNOWN, LEAST_SEEN, Estimator
from sfumato.inference.joint_errors import deviations
from sfumato.inference.noisy_totals import FEWEST_ROWS
from sfumato.inference.questions import Questions
from sfumato.maths.arrays import indicators

_TOGETHER = 64  # cells, each a function of all rows


@dataclass(frozen=True, slots=True)
class Batch:
    """Estimates of one kind, each array of shape (k,).

    Attributes:
        value: NaN where `significant` is false.
        std_error: likewise.
        significant: whether the whole that a share or mean is of stands out of its noise.
        explained: whether the measurements say enough of it.
    """

    value: np.ndarray
    std_error: np.ndarray
    significant: np.ndarray
    explained: np.ndarray

    @property
    def answered(self) -> np.ndarray:
        """Which of them the release answers, shape (k,)."""
        return self.significant & self.explained

    def ends(self, level: float, lowest: float = -np.inf, highest: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals within bounds that the target has, NaN where there is no answer.

        Raises:
            ConfigError: the level is not between 0 and 1.
        """
        half = deviations(level) * self.std_error
        low = np.maximum(self.value - half, lowest)
        high = np.minimum(np.maximum(self.value + half, lowest), highest)
        return np.where(self.answered, low, np.nan), np.where(self.answered, high, np.nan)


def cell_counts(questions: Questions, name: str, n: int) -> Batch:
    """Return how many records of the table lie in each of the n cells of a column.

    Raises:
        ConfigError, EstimateError: as `Questions.estimator`.
    """
    calibration, cells = questions.estimator((name,), "table").calibration, questions.measured.cells(name)
    parts = []
    for first in range(0, n, _TOGETHER):
        inside = (cells[:, None] == np.arange(first, min(first + _TOGETHER, n))).astype(np.float64)
        variances, present = calibration.each(inside), inside.any(axis=0)
        parts.append(
            (calibration.total(inside), np.sqrt(variances.of("table")), present, variances.known >= LEAST_KNOWN)
        )
    return Batch(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def ratios(estimator: Estimator, parts: np.ndarray, wholes: np.ndarray) -> Batch:
    """Return estimates of totals ÷ other totals, of functions of the rows, shape (N, k) each; wholes may be (N, 1)."""
    calibration = estimator.calibration
    over = calibration.total(wholes)
    significant = over > LEAST_SEEN * np.sqrt(calibration.each(wholes).of("table"))
    safe = np.where(significant, over, 1.0)
    value = calibration.total(parts) / safe
    variances = calibration.each((parts - value * wholes) / safe)
    significant = np.broadcast_to(significant, value.shape)
    return Batch(
        np.where(significant, value, np.nan),
        np.where(significant, np.sqrt(variances.of(estimator.target)), np.nan),
        significant,
        variances.known >= LEAST_KNOWN,
    )


def shares(questions: Questions, name: str, bins: np.ndarray, n: int, *, target: str) -> Batch:
    """Return the shares of rows in the bins of one column.

    Args:
        questions: to a release.
        name: the column.
        bins: the bin of each of the model's rows, in 0..n-1, shape (N,).
        n: how many bins.
        target: "population" or "table".

    Raises:
        ConfigError, EstimateError: the column is not there, or follows from others by a rule.
    """
    estimator = questions.estimator((name,), target)
    parts = indicators(bins, n)
    batch = ratios(estimator, parts, np.ones((bins.size, 1)))
    explained = batch.explained & (np.count_nonzero(parts, axis=0) >= FEWEST_ROWS)
    return Batch(np.clip(batch.value, 0.0, 1.0), batch.std_error, batch.significant, explained)


def bar_ends(
    questions: Questions, name: str, first: np.ndarray, last: np.ndarray, n: int, *, target: str, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the intervals of the shares of rows in n bars, shape (n,) each; NaN where there is none.

    Where a bar ends inside a cell, nothing says on which side the cell's rows are: the low end is that of the cells
    inside the bar, the high end that of all cells that reach into it. A bar in which the model hardly has a row has the
    interval of its noisy counts.

    Args:
        questions: to a release.
        name: the column.
        first: the first bar that each cell of the column reaches into, shape (cells,).
        last: the last one.
        n: how many bars.
        target: "population" or "table".
        level: of the intervals, in (0, 1).

    Raises:
        ConfigError, EstimateError: as `Questions.estimator`.
    """
    estimator = questions.estimator((name,), target)
    measured = questions.measured
    places = np.arange(n)
    reach = (first[:, None] <= places) & (places <= last[:, None])
    inside = reach & (first == last)[:, None]
    cells, counts = measured.cells(name), measured.counts(name)
    whole = np.ones((cells.size, 1))
    low = _share_ends(estimator, inside[cells].astype(np.float64), whole, level)[0]
    high = _share_ends(estimator, reach[cells].astype(np.float64), whole, level)[1]
    few = np.isnan(high)
    if counts is not None and few.any():
        totals = np.maximum(counts.cells @ reach, 0.0)
        errors = np.sqrt(reach.sum(axis=0) * counts.cell_variance)
        n_rows = estimator.calibration.size
        high = np.where(few, np.clip((totals + deviations(level) * errors) / n_rows, 0.0, 1.0), high)
    low = np.where(np.isnan(low), 0.0, low)
    return np.where(np.isnan(high), np.nan, np.minimum(low, high)), high


def _share_ends(
    estimator: Estimator, parts: np.ndarray, whole: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of shares; NaN where hardly a row is in them."""
    low, high = ratios(estimator, parts, whole).ends(level, 0.0, 1.0)
    frequent = np.count_nonzero(parts, axis=0) >= FEWEST_ROWS
    return np.where(frequent, low, np.nan), np.where(frequent, high, np.nan)
