"""Rows of a model, weighted so that they have the totals that were measured: what every estimate is computed on.

The model's rows have totals t(g) = n·E g of the measured functions g; the records had m = t(g) + noise. The weights are
those of the best linear prediction of every total from m, under a law in which the records' totals differ from the
model's with covariance τ·n·Cov(g): they bring the rows to what was measured wherever its noise is below that, and leave
them as the model drew them where nothing was measured. Clipped products are compared with the rows' own clipped
products: clipping, cells and runs need no correction of their own.

Proof of the variances: docs/proofs/inference.md.
Free: uses released values only.
Reference: Deville and Särndal 1992 (calibration); the covariance is that of Goldberger 1962's best linear prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import linalg, sparse

from sfumato.inference.noisy_totals import RowWeights, Totals, UnitSums
from sfumato.maths.arrays import CentredRows, Functions, dense

Target = Literal["population", "table"]
_Product: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]
_Solver: TypeAlias = Callable[[np.ndarray], np.ndarray]

FITTED = 0.15
"""Standard deviations by which a mean of one column under the model may be off, where it is measured."""
TOGETHER = 0.5
"""Likewise of several columns: noise on their products is more than on counts, and a model leaves out what it hides."""
OF_LABELS = 1.0  # likewise of labels: of a cell that noise left empty the model is far off, in its own scale
_OF_NOISE = 8.0
"""As much more, for each variance of measured noise: a model that was fitted to it is off by it."""
_UNMEASURED = 0.03  # and of what no measured function says, which is allowed for in standard errors
_ODD = 0.15  # and where that is much of a function: what nobody measured of the function is the model's word alone
WELL_KNOWN = 0.85
"""Part of a function's variation that measurements have to say, but for noise, for the smaller allowance."""
_CONSTANT = 1e-12
_VARIES = 1e-6  # of a combination of functions, in their variances
_LEAST_LEFT = 0.3
_PASS, _NUMBER = 120, 3  # work of a calibration, and of a number, for each measured function
_AT_ONCE = 64  # functions, of which each row's part is held
_NEIGHBOURS = 1_000  # rows of the model in cells of which one slope is taken
_NEWTON, _LEAST_STEP, _MISSED, _LARGEST_POWER = 12, 0.01, 0.001, 8.0


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the model's rows lie within the cells that a column of numbers was counted in.

    The model draws a value anywhere in its cell, and nothing was measured of that: all records of a cell may have one
    value, as ages in years and rounded amounts do. That value is taken for a draw of the model's law of the cell.

    Attributes:
        cells: of the rows, shape (N,).
        values: of the rows, shape (N,); one value of those that are missing.
    """

    cells: np.ndarray
    values: np.ndarray

    def unsure(self, weights: np.ndarray) -> sparse.csr_array:
        """Return from functions of the rows to what cells' values add to the error of totals, shape (runs, N).

        Of a function φ of the n records of a cell n·b·sd: sd of the values in the cell, and b the slope of φ on them,
        over a run of neighbouring cells that hold a thousand rows, as fewer would show one by chance. Cells of a run
        are one standard deviation: errors of cells are independent, and have one slope.
        """
        weights, rows = np.maximum(weights, 0.0), np.bincount(self.cells)
        n = np.maximum(np.bincount(self.cells, weights), 1e-300)
        centred = self.values - (np.bincount(self.cells, weights * self.values) / n)[self.cells]
        squares = np.bincount(self.cells, weights * centred**2)
        near = (np.cumsum(rows) - rows) // _NEIGHBOURS
        together = np.bincount(near, squares)
        scale = np.sqrt(np.bincount(near, n * squares)) / np.where(together > _CONSTANT, together, np.inf)
        runs, size = near[self.cells], self.cells.size
        return sparse.csr_array((scale[runs] * weights * centred, (runs, np.arange(size))), (together.size, size))


@dataclass(frozen=True, slots=True)
class Variances:
    """Variances of the errors of k estimated totals by cause: covariances, shape (k, k), or of each alone, shape (k,).

    Attributes:
        noise: of the mechanisms' noise.
        sampling: of drawing the records from their population.
        unmeasured: allowed for what the measured functions do not say, or say below their noise, and for the place of
            values within cells.
        known: part of each total's variation that the measured functions say, shape (k,).
    """

    noise: np.ndarray
    sampling: np.ndarray
    unmeasured: np.ndarray
    known: np.ndarray

    def stretch_noise(self, factors: np.ndarray) -> Variances:
        """Return it with the standard errors of what noise made unsure times these, shape (k,)."""
        squares = np.outer(factors, factors)
        return replace(self, noise=self.noise * squares, unmeasured=self.unmeasured * squares)

    def of(self, target: Target) -> np.ndarray:
        """Return the sum over the causes of a target's errors."""
        inside = self.noise + self.unmeasured
        return inside + self.sampling if target == "population" else inside

    def by_cause(self, target: Target) -> dict[str, np.ndarray]:
        """Return the parts by the names of the causes; those of a table have no sampling."""
        sampling = {"sampling": self.sampling} if target == "population" else {}
        return {"noise": self.noise, **sampling, "unmeasured": self.unmeasured}


@dataclass(frozen=True, slots=True)
class _Explained:
    """Functions as the measured ones explain them.

    Attributes:
        gains: what each measured total adds, shape (k, p).
        unsaid: covariance, or variances, of what they would not say of the rows without noise.
        hidden: likewise of what they would say, and noise hides: there the estimate is the model's.
        unsure: what the place of values within cells adds, shape (k, runs).
        spread: what they say, about its mean under the weights, shape (N, k).
        mean: that mean, shape (k,).
        missed: of the mean, what an error of the number of records adds, shape (k,).
        known: as in `Variances`.
    """

    gains: np.ndarray
    unsaid: np.ndarray
    hidden: np.ndarray
    unsure: np.ndarray
    spread: np.ndarray
    mean: np.ndarray
    missed: np.ndarray
    known: np.ndarray


class Calibration:
    """Weights of a model's rows, and the variances of totals under them.

    Args:
        measured: noisy totals of functions of the rows.
        n_public: the public number of records, or the sum of their weights.
        rows_variance: of the true number about it.
        weighting: of weighted records.
        rows_of_unit: the most records of one unit: a sum over a unit's records has at most so many times the variance
            that independent records have, and as much is allowed for.
        fitted: standard deviations by which a mean under the model may be off: the more, the more an estimate rests on
            the measurements alone, with their noise.
        parts: where a record is a unit and functions are asked of its rows: how these add up. `weights` are then those
            of rows, and so are the functions of `total`, `variances` and `each`; errors are those of units.
        places: of the rows within the cells of columns that are asked of.
    """

    def __init__(
        self, measured: Totals, n_public: float, rows_variance: float, weighting: RowWeights | None = None,
        rows_of_unit: int = 1, *, fitted: float = FITTED, parts: UnitSums | None = None, places: Sequence[Places] = (),
    ) -> None:  # fmt: skip
        self._weighting, self.rows_of_unit, self._parts, self._places = weighting, rows_of_unit, parts, places
        # Σ w² ÷ Σ w: what a record's part in a total is multiplied by once more in its variance
        self._record = rows_of_unit * (1.0 if weighting is None else float(weighting.each.mean()))
        self._noise = measured.variances
        self._n, self._rows_variance = float(n_public), float(rows_variance)
        self._centred = CentredRows(measured.functions)
        self._means = self._centred.means
        # the variance of the noise of a measured mean, in the variance of the function: of the middle one
        varies = (own := self._centred.variances) > _CONSTANT
        relative = float(np.median(self._noise[varies] / own[varies])) / self._n**2 if varies.any() else 0.0
        self._prior = self._record + (fitted**2 + _OF_NOISE * relative) * self._n
        self._solve = self._centred.solver(self._prior * self._n, self._rows_variance, self._noise)
        self._totals = measured.totals
        self._missed = measured.totals - self._n * self._means
        self._weights = (self._n + self._joint(self._solve(self._missed))) / len(self._centred)

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights of the model's rows, shape (N,)."""
        return self._weights if self._parts is None else self._parts.spread(self._weights)

    @property
    def width(self) -> int:
        """The number of measured functions."""
        return self._noise.size

    def work(self, numbers: int) -> float:
        """Return how much it takes to calibrate the rows and ask for some numbers, in about 0.6 microseconds.

        It is counted by sizes, not by a clock, so that what it limits is a function of the release.
        """
        return self.width * (self.width + _PASS + _NUMBER * numbers)

    @property
    def noisy(self) -> bool:
        """Whether the measured totals have noise."""
        return bool(self._noise.any())

    @cached_property
    def surprise(self) -> float:
        """By how much the measured totals miss the model's, in variances of the law above: about 1 where it holds.

        Combinations of functions that do not vary, as shares that add up to 1, have nothing to say but rounding.
        """
        if not self._missed.size:
            return 0.0
        variances = self._centred.law(self._prior * self._n, self._rows_variance) + np.diag(self._noise)
        scale = np.sqrt(np.maximum(np.diagonal(variances), 1e-300))
        values, vectors = linalg.eigh(variances / np.outer(scale, scale))
        squares = (vectors.T @ (self._missed / scale)) ** 2
        vary = values > _VARIES
        return float((squares[vary] / values[vary]).sum()) / self._missed.size

    @cached_property
    def size(self) -> float:
        """The number of rows, estimated."""
        return float(self.weights.sum())

    def _summed(self, functions: Functions) -> Functions:
        """Functions of the rows as functions of the records."""
        return functions if self._parts is None else self._parts.of(dense(functions))

    @property
    def degrees(self) -> float:
        """How many of the measured totals the weights follow: the trace of what noise leaves of them."""
        return float(np.trace(self._solve(self._centred.law(self._prior * self._n, 0.0))))

    def total(self, functions: Functions) -> np.ndarray:
        """Return the totals of functions of the rows, shape (k,), of shape (N, k)."""
        return np.asarray(functions.T @ self.weights)

    def variance_of_row(self, function: np.ndarray) -> float:
        """Return the variance of a function of a weighted row, shape (N,); without negative weights if these rule."""
        variance = _weighted_variance(function, self.weights)
        without = _weighted_variance(function, np.maximum(self.weights, 0.0))
        return variance if variance >= _LEAST_LEFT * without else without

    def variances(self, functions: np.ndarray, within: np.ndarray | None = None) -> Variances:
        """Return the variances of the errors of totals of functions of the rows, shape (N, k).

        Args:
            functions: of the rows.
            within: the rows without a missing cell, shape (N,), outside which the functions are 0: what is known of
                them is asked of these rows, so that the gap itself is no question about one column more.
        """
        fit = self._explained(functions, _together)
        if within is not None:
            inside = within if self._parts is None else self._parts.of(within[:, None])[:, 0]
            fit = replace(fit, known=self._known_within(dense(self._summed(functions)), inside > 0))
        allowed = np.sqrt(self._allowed(fit.known))
        return self._variances(fit, _together, fit.unsaid * np.outer(allowed, allowed), self._sampling(fit))

    def noise(self, functions: np.ndarray) -> np.ndarray:
        """Return the covariance of the errors of totals that the mechanisms' noise makes, shape (k, k)."""
        functions = dense(self._summed(functions))
        gains = self._gains(self._centred.along(functions) / len(functions), functions.mean(axis=0), self._solve)
        return (gains * self._noise) @ gains.T

    def each(self, functions: Functions, less: np.ndarray | None = None) -> Variances:
        """Return the variances of `variances` for each function as if it were asked alone, shape (N, k), k ≥ 0.

        Args:
            functions: of the rows.
            less: what is taken off each of them in every row, shape (k,).
        """
        less = np.zeros(functions.shape[1]) if less is None else less
        pieces = [slice(first, first + _AT_ONCE) for first in range(0, max(less.size, 1), _AT_ONCE)]
        parts = [self._each(functions[:, piece], less[piece]) for piece in pieces]
        return Variances(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Variances)))

    def _each(self, functions: Functions, less: np.ndarray) -> Variances:
        if self._parts is not None:  # a unit's sum of what is the same in every row is not
            functions, less = dense(functions) - less, np.zeros_like(less)
        fit = self._explained(functions, _alone, less)
        spread, weights, known = self._sampling_rows(fit)
        squares = spread**2
        variance, positive = weights @ squares, np.maximum(weights, 0.0) @ squares
        sampling = np.where(variance >= _LEAST_LEFT * positive, variance, positive) - known * fit.mean**2
        unsaid = self._allowed(fit.known) * fit.unsaid
        return self._variances(fit, _alone, unsaid, self.rows_of_unit * np.maximum(sampling, 0.0))

    def _variances(self, fit: _Explained, product: _Product, unsaid: np.ndarray, sampling: np.ndarray) -> Variances:
        return Variances(
            noise=product(fit.gains * self._noise, fit.gains),
            sampling=sampling,
            unmeasured=unsaid
            + self._prior * self._n * fit.hidden
            + product(fit.unsure, fit.unsure)
            + self._rows_variance * product(fit.missed[:, None], fit.missed[:, None]),
            known=fit.known,
        )

    @cached_property
    def _unsure(self) -> tuple[sparse.csr_array, np.ndarray]:
        """From functions of the rows, shape (runs, N), and from measured ones, shape (runs, p), to what is unsure."""
        runs: Any = sparse.csr_array(sparse.vstack([places.unsure(self.weights) for places in self._places]))
        # of rows of a unit nothing measured says where in its cell one of them lies
        return runs, self._centred.along(runs.T) if self._parts is None else np.zeros((runs.shape[0], len(self._noise)))

    def _explained(self, rows: Functions, product: _Product, less: np.ndarray | float = 0.0) -> _Explained:
        """Explain functions by moments alone: those of a row are made only of what the measured ones say."""
        functions, n = self._summed(rows), len(self._centred)
        middle = np.asarray(functions.mean(axis=0)).reshape(-1)
        own = middle - less
        joint = self._centred.along(functions) / n
        gains, exact = (self._gains(joint, own, solve) for solve in (self._solve, self._solve_without_noise))
        whole = _moments(functions, middle, product)
        unsaid = whole - product(joint, exact) - product(exact, joint) + product(self._centred.moved(exact), exact)
        unsaid = _at_least_none(unsaid)
        hidden = exact - gains
        spread = self._centred @ gains.T
        shift = (self._weights @ spread) / self._weights.sum()
        spread -= shift
        unsure = np.zeros((len(own), 0))
        if self._places:
            of_rows, of_measured = self._unsure
            unsure = np.asarray((of_rows @ rows).T - gains @ of_measured.T)
        variances = [np.diagonal(part) if part.ndim > 1 else part for part in (whole, unsaid)]
        varies = variances[0] > _CONSTANT * own**2
        return _Explained(
            gains=gains,
            unsaid=unsaid,
            hidden=_at_least_none(product(self._centred.moved(hidden), hidden)),
            unsure=unsure,
            spread=spread,
            mean=own + shift,
            missed=own - gains @ self._means,
            known=np.where(varies, 1 - self._spare * variances[1] / np.where(varies, variances[0], 1.0), 1.0),
        )

    def _known_within(self, functions: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """Return the part of the functions' variation among some rows that the measured functions say, shape (k,)."""
        measured, wanted = CentredRows(self._centred.rows[inside]), functions[inside]
        wanted = wanted - wanted.mean(axis=0)
        solve = measured.solver(1.0, 0.0, np.zeros_like(self._noise))
        left = wanted - measured @ solve(measured.along(wanted).T / len(wanted))
        whole = (wanted**2).sum(axis=0)
        spare = len(wanted) / max(len(wanted) - self.width, 1)
        return np.where(whole > 0, 1 - spare * (left**2).sum(axis=0) / np.where(whole > 0, whole, 1.0), 1.0)

    @cached_property
    def _solve_without_noise(self) -> _Solver:
        return self._centred.solver(self._prior * self._n, self._rows_variance, np.zeros_like(self._noise))

    @property
    def _spare(self) -> float:
        n = len(self._centred)
        return n / max(n - len(self._noise), 1)  # coefficients were fitted to these rows

    def _allowed(self, known: np.ndarray) -> np.ndarray:
        """Return the variance of each total for each unit of variance of a row's part that is not said, shape (k,)."""
        return (self._record + np.where(known >= WELL_KNOWN, _UNMEASURED, _ODD) ** 2 * self._n) * self._n * self._spare

    def _sampling(self, fit: _Explained) -> np.ndarray:
        """Return Σ v·uuᵀ over rows u of weights v; where negative weights leave too little, without these."""
        spread, weights, known = self._sampling_rows(fit)
        covariance = positive = (spread * np.maximum(weights, 0.0)[:, None]).T @ spread
        if (weights < 0).any():
            covariance = (spread * weights[:, None]).T @ spread
        if not (np.linalg.eigvalsh(covariance) >= _LEAST_LEFT * np.linalg.eigvalsh(positive)).all():
            covariance = positive
        covariance = covariance - known * np.outer(fit.mean, fit.mean) if known else covariance
        return self.rows_of_unit * covariance

    def _sampling_rows(self, fit: _Explained) -> tuple[np.ndarray, np.ndarray, float]:
        """Return rows and weights whose Σ v·uuᵀ is the variance of drawing the records, and what is to be taken off.

        Of weighted records the variance is Σ w²·uuᵀ − (Σ w·u)(Σ w·u)ᵀ/n, not about the mean: their weights' sum is
        another in another sample, unless it is public.
        """
        weighting = self._weighting
        if weighting is None:
            return fit.spread, self._weights, 0.0
        weights = self._weights * weighting.each
        if weighting.fixed:
            return fit.spread, weights, 0.0
        return fit.spread + fit.mean, weights, float(self._weights.sum()) ** 2 / weighting.records

    def redraw(self, rng: np.random.Generator) -> np.ndarray:
        """Return the weights with noise of the same law once more, shape (N,)."""
        noise = np.sqrt(self._noise) * rng.standard_normal(self._noise.size)
        moved = self._weights + self._joint(self._solve(noise)) / len(self._centred)
        return moved if self._parts is None else self._parts.spread(moved)

    def draw_weights(self, rng: np.random.Generator, *, sampled: bool) -> np.ndarray:
        """Return positive weights of the rows under another draw of what the records may have been, shape (N,).

        The measurements get noise of their law once more and, if `sampled`, what another sample of as many records
        would have moved them by. The weights are n/N·exp(κ) where the best linear prediction is n/N·(1 + κ): to first
        order the same, and none below 0.

        Args:
            rng: source of (public) randomness.
            sampled: whether the records are a sample of what is drawn.
        """
        wanted = self._totals + np.sqrt(self._noise) * rng.standard_normal(self._noise.size)
        if sampled:
            normals = rng.standard_normal(len(self._centred))
            if self._weighting is not None:
                normals = normals * np.sqrt(self._weighting.each)
            moved = self._centred.along(normals[:, None])[0]
            wanted = wanted + np.sqrt(self.rows_of_unit * self._n / len(self._centred)) * moved
        solved = np.zeros_like(wanted)
        weights, missed = self._tilted(solved, wanted)
        for _ in range(_NEWTON):
            direction = linalg.solve(self._slope(weights), missed)
            step = 1.0
            while True:
                trial, left = self._tilted(solved + step * direction, wanted)
                if self._size_of(left) < self._size_of(missed) or step < _LEAST_STEP:
                    break
                step /= 2
            if step < _LEAST_STEP:
                break
            solved, weights, missed = solved + step * direction, trial, left
            if self._size_of(missed) < _MISSED * self._noise.size:
                break
        return weights

    def _slope(self, weights: np.ndarray) -> np.ndarray:
        """Return by how much tilted weights' totals, and the noise's part, move with the solution, shape (p, p)."""
        functions = self._centred.rows
        rooted = (functions * np.sqrt(weights)[:, None]).astype(np.float32)  # a step need not be exact
        totals = weights @ functions
        moved = self._prior * ((rooted.T @ rooted).astype(np.float64) - np.outer(totals, self._means))
        moved += self._rows_variance / self._n * np.outer(totals, self._means)
        floor = self._centred.floor(self._prior * self._n, self._rows_variance)
        return moved + np.diag(self._noise + floor)

    def _tilted(self, solved: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of a solution, and what they still miss."""
        powers = np.clip(self._joint(solved) / self._n, -_LARGEST_POWER, _LARGEST_POWER)
        weights = np.exp(powers) * self._n / len(powers)
        totals = weights @ self._centred.rows
        return weights, wanted - totals - self._noise * solved

    def _size_of(self, missed: np.ndarray) -> float:
        return float(missed @ self._solve(missed))

    def _joint(self, solved: np.ndarray) -> np.ndarray:
        """Return the covariance of each row's part in totals with the measured ones, applied to a vector."""
        return self._prior * self._n * (self._centred @ solved) + self._rows_variance * float(self._means @ solved)

    def _gains(self, joint: np.ndarray, own: np.ndarray, solve: _Solver) -> np.ndarray:
        """Return the part of each measured total in the estimated ones, shape (k, p).

        Args:
            joint: covariance of these functions with the measured ones, over the rows, shape (k, p).
            own: their means, shape (k,).
            solve: the law of the measured totals.
        """
        joint = self._prior * self._n * joint + self._rows_variance * np.outer(own, self._means)
        return solve(joint.T).T


def _weighted_variance(values: np.ndarray, weights: np.ndarray) -> float:
    size = float(weights.sum())
    return float(weights @ (values - float(weights @ values) / size) ** 2) / size


def _together(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the products of each two of k vectors, shape (k, k), of shape (k, q) each."""
    return one @ other.T


def _alone(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the product of each vector with its own other, shape (k,)."""
    return np.einsum("kq,kq->k", one, other)


def _at_least_none(moments: np.ndarray) -> np.ndarray:
    """Return a covariance, or variances, of which rounding makes none less than 0."""
    if moments.ndim == 1:
        return np.maximum(moments, 0.0)
    np.fill_diagonal(moments, np.maximum(np.diagonal(moments), 0.0))
    return moments


def _moments(functions: Functions, own: np.ndarray, product: _Product) -> np.ndarray:
    """Return the covariance of functions over the rows, or their variances."""
    if isinstance(functions, np.ndarray):
        centred = (functions - own).T
        return product(centred, centred) / centred.shape[1]
    squares = functions.T @ functions if product is _together else functions.multiply(functions).sum(axis=0)
    return np.asarray(squares) / functions.shape[0] - product(own[:, None], own[:, None])
