"""Many answers about the same columns at once: each is what its question alone would give, at a fraction of the time.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import sparse

from sfumato.errors import EstimateError
from sfumato.inference.calibration import Calibration
from sfumato.inference.estimator import LEAST_KNOWN, Estimator
from sfumato.inference.joint_errors import deviations
from sfumato.inference.noisy_totals import FEWEST_ROWS, LEAST_SEEN
from sfumato.inference.questions import Questions
from sfumato.maths.arrays import Functions, sparse_indicators


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

    def at(self, places: np.ndarray, n: int) -> Batch:
        """Return it as n estimates, of which those at other places are not answered, as what is said is too little."""
        value, error = np.full(n, np.nan), np.full(n, np.nan)
        value[places], error[places] = self.value, self.std_error
        significant, explained = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        significant[places], explained[places] = self.significant, self.explained
        return Batch(value, error, significant, explained)

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
    apart = questions.measured.apart(name)
    batch = totals(calibration, sparse_indicators(cells, apart))
    present = np.bincount(cells, minlength=n)[apart] > 0
    return replace(batch, significant=present).at(apart, n)


def pair_counts(questions: Questions, first: str, second: str) -> tuple[np.ndarray, Batch]:
    """Return the cells of two columns of labels that are answered, and how many records of the table lie in each.

    A cell is i·k + j, of the i-th label of the first column and the j-th of the second one's k; missing labels are in
    none. Cells of which the model has hardly a row are left out: nothing above noise was measured of them.

    Raises:
        ConfigError, EstimateError: as `Questions.estimator`; or no cell is answered.
    """
    calibration = questions.estimator((first, second), "table").calibration
    n, k = (len(questions.measured.column(name).kind.labels) for name in (first, second))  # type: ignore[attr-defined]
    one, other = (questions.measured.codes[name].astype(np.int64) for name in (first, second))
    place = np.where((one < n) & (other < k), one * k + other, n * k)
    cells = np.flatnonzero(np.bincount(place, minlength=n * k)[: n * k] >= FEWEST_ROWS)
    counts = totals(calibration, sparse_indicators(place, cells))
    answered = counts.answered
    if not answered.any():
        raise EstimateError(
            f"Expected a question that the release's measurements answer, got the pairs of {first!r} and {second!r}: "
            "they say too little of them."
        )
    return cells[answered], Batch(*(getattr(counts, entry.name)[answered] for entry in fields(Batch)))


def totals(calibration: Calibration, functions: Functions) -> Batch:
    """Return estimates of totals of a table's records, of functions of the rows, shape (N, k)."""
    variances, value = calibration.each(functions), calibration.total(functions)
    known = variances.known >= LEAST_KNOWN
    return Batch(value, np.sqrt(variances.of("table")), np.ones_like(known), known)


def ratios(estimator: Estimator, parts: Functions, wholes: Functions | None = None) -> Batch:
    """Return estimates of totals ÷ other totals, of functions of the rows, shape (N, k) each; else of all rows."""
    calibration = estimator.calibration
    whole = np.ones((parts.shape[0], 1)) if wholes is None else wholes
    over = calibration.total(whole)
    significant = over > LEAST_SEEN * np.sqrt(calibration.each(whole).of("table"))
    safe = np.where(significant, over, 1.0)
    value = calibration.total(parts) / safe
    inverse = np.broadcast_to(1 / safe, value.shape)
    if wholes is None:
        variances = calibration.each(scaled(parts, inverse), value * inverse)
    else:
        variances = calibration.each(scaled(parts, inverse) - scaled(wholes, value * inverse))
    significant = np.broadcast_to(significant, value.shape)
    return Batch(
        np.where(significant, value, np.nan),
        np.where(significant, np.sqrt(variances.of(estimator.target)), np.nan),
        significant,
        variances.known >= LEAST_KNOWN,
    )


def of_labelled(questions: Questions, names: Sequence[str], k: int) -> np.ndarray | None:
    """Return the rows with a label in each column, as the whole of k shares, shape (N, k); None where all have."""
    rows = questions.labelled(names)
    return None if rows.all() else np.repeat(rows[:, None], k, axis=1)


def scaled(functions: Functions, factors: np.ndarray) -> Functions:
    """Return functions of the rows, each times its factor, shape (k,)."""
    return functions * factors if isinstance(functions, np.ndarray) else functions @ sparse.diags_array(factors)


def shares(questions: Questions, name: str, bins: np.ndarray, n: int, *, target: str) -> Batch:
    """Return the shares of rows in the bins of one column, among those with a label.

    Args:
        questions: to a release.
        name: the column.
        bins: the bin of each of the model's rows, in 0..n-1, or n of one without a label, shape (N,).
        n: how many bins.
        target: "population" or "table".

    Raises:
        ConfigError, EstimateError: the column is not there, or follows from others by a rule.
    """
    estimator = questions.estimator((name,), target)
    # of others the measurements say too little
    frequent = np.flatnonzero(np.bincount(bins, minlength=n)[:n] >= FEWEST_ROWS)
    apart = np.intersect1d(frequent, questions.measured.apart(name))
    batch = ratios(estimator, sparse_indicators(bins, apart), of_labelled(questions, [name], apart.size))
    return replace(batch, value=np.clip(batch.value, 0.0, 1.0)).at(apart, n)


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
    measured, wholes = questions.measured, of_labelled(questions, [name], n)
    places = np.arange(n)
    reach = (first[:, None] <= places) & (places <= last[:, None])
    reach[measured.column(name).shown :] = False
    inside = reach & (first == last)[:, None]
    cells, counts = measured.cells(name), measured.counts(name)
    low = _share_ends(estimator, inside[cells].astype(np.float64), level, wholes)[0]
    high = _share_ends(estimator, reach[cells].astype(np.float64), level, wholes)[1]
    few = np.isnan(high)
    if counts is not None and few.any():
        totals = np.maximum(counts.cells @ reach, 0.0)
        errors = np.sqrt(reach.sum(axis=0) * counts.cell_variance)
        n_rows = estimator.calibration.size * questions.labelled([name]).mean()
        high = np.where(few, np.clip((totals + deviations(level) * errors) / n_rows, 0.0, 1.0), high)
    low = np.where(np.isnan(low), 0.0, low)
    return np.where(np.isnan(high), np.nan, np.minimum(low, high)), high


def _share_ends(
    estimator: Estimator, parts: np.ndarray, level: float, wholes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of shares; NaN where hardly a row is in them."""
    low, high = ratios(estimator, parts, wholes).ends(level, 0.0, 1.0)
    frequent = np.count_nonzero(parts, axis=0) >= FEWEST_ROWS
    return np.where(frequent, low, np.nan), np.where(frequent, high, np.nan)
