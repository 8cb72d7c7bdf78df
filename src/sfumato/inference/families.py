"""Families of regressions: the scores that each solves on weighted rows, and the influence of a row on its solution.

Free: uses released values only.
Reference: Nelder and Wedderburn 1972 (generalised linear models); Huber 1967 (the sandwich).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg, special

from sfumato.errors import ConfigError, EstimateError

_ROUNDS = 50
_CONVERGED = 1e-10
_LARGEST_TERM = 30.0  # of the linear predictor, of a term of a usual row: beyond it chances are 0 and 1
_LARGEST_POWER = 700.0
_LONGEST_STEP = 2.0  # of the linear predictor of a usual row: longer ones overshoot
_LEAST_CURVED = 0.8  # of the curvature of weights above 0, in every direction, for that of all weights to be taken
_LEAST_EIGENVALUE = 1e-6  # of the scaled design: below it, a term is a sum of others


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Coefficients of a regression on weighted rows.

    Attributes:
        params: shape (k,).
        influence: of each row's weight on them, shape (N, k).
        of_record: of one record more on them, shape (N, k): the same where no weight is noise's.
        doubt: by how much they would be others with the curvature of all weights; 0 where that was taken, shape (k,).
    """

    params: np.ndarray
    influence: np.ndarray
    of_record: np.ndarray
    doubt: np.ndarray


@dataclass(frozen=True, eq=False)
class _Rows:
    """Both sides of a regression, shapes (N,) and (N, k), its words and its terms' names."""

    left: np.ndarray
    right: np.ndarray
    what: str
    terms: Sequence[str]

    @cached_property
    def units(self) -> np.ndarray:
        """The size of each term in a usual row: 1 of an indicator, shape (k,)."""
        nonzero = np.abs(self.right).max(axis=1) > 0
        spread = np.sqrt(np.mean(self.right[nonzero] ** 2, axis=0)) if nonzero.any() else np.ones(self.right.shape[1])
        return np.where(np.isin(self.right, (0.0, 1.0)).all(axis=0), 1.0, spread)

    def inverse(self, matrix: np.ndarray) -> np.ndarray:
        """Return the inverse of a sum of products of terms; refuse by name a term that may be a sum of others."""
        sizes = np.diagonal(matrix)
        scale = np.sqrt(np.where(sizes > 0, sizes, 1.0))
        scaled = matrix / np.outer(scale, scale)
        worst = int(np.argmin(np.where(np.isfinite(sizes), sizes, -np.inf)))
        if bool((sizes > 0).all() and np.isfinite(scaled).all()):
            values, vectors = np.linalg.eigh(scaled)
            if values[0] >= _LEAST_EIGENVALUE:
                return np.linalg.inv(scaled) / np.outer(scale, scale)
            worst = int(np.argmax(np.abs(vectors[:, 0])))
        raise EstimateError(
            f"Expected terms that tell rows apart for {self.what}, got {self.terms[worst]}, which is a sum of others, "
            "or which noise hides. Leave it out, put a rare label together with another, or fit with a larger epsilon."
        )


@dataclass(frozen=True, slots=True)
class Family:
    """A family of regressions.

    Attributes:
        name: as it is asked for.
        kind: in words.
        mean: of the left side, from the linear predictor.
        score: from left side and linear predictor to what a row adds to the score, and to its slope, per term.
        two_values: whether the left side has to have two.
        pairs: whether its scores are sums of products of two terms, or of a term and the left side, the right side's
            law apart; else they are functions of all columns together.
    """

    name: str
    kind: str
    mean: Callable[[np.ndarray], np.ndarray]
    score: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    two_values: bool = False
    pairs: bool = True

    @property
    def linear(self) -> bool:
        """Whether it is solved at once."""
        return self is LINEAR

    def phrase(self, formula: str) -> str:
        """Return a regression of a formula in words, for messages."""
        return f"the {'' if self.linear else f'{self.kind} '}regression {formula!r}"

    def require_left(self, left: np.ndarray, formula: str) -> None:
        """Refuse a left side that the family has no law for (`ConfigError`)."""
        if self in (POISSON, GAMMA) and left.min(initial=0.0) < 0:
            raise ConfigError(f"Expected a left side of {formula!r} that is never below 0, got one that may be.")

    def solve(
        self, left: np.ndarray, right: np.ndarray, weights: np.ndarray, what: str, terms: Sequence[str]
    ) -> Solution:
        """Return coefficients, and the influence of each row on them.

        Those at which the scores' weighted sum is 0, unless noise has left weights below 0 that take away most of what
        tells some terms apart. Then a step from those of the weights above 0, to where the scores have the sum that all
        weights say, by the curvature of those above 0.

        Args:
            left: left side of the rows, shape (N,).
            right: terms of the rows, shape (N, k).
            weights: of the rows, shape (N,).
            what: the regression, for messages.
            terms: names of the terms, for messages.

        Raises:
            EstimateError: there are none: a term is a sum of others, or noise hides the solution.
        """
        rows = _Rows(left, right, what, terms)
        positive = np.maximum(weights, 0.0)
        if not (weights < 0).any() or not positive.any():
            return self._at(rows, weights, self._root(rows, weights))
        positive *= max(float(weights.sum()), 0.0) / float(positive.sum())
        start = self._root(rows, positive)
        try:
            both, above = (self._curvature(rows, each, start) for each in (weights, positive))
            if linalg.eigh(both, above, eigvals_only=True)[0] >= _LEAST_CURVED:
                return self._at(rows, weights, self._root(rows, weights, start))
        except (EstimateError, linalg.LinAlgError):
            pass
        return self._corrected(rows, weights, positive, start)

    def _curvature(self, rows: _Rows, weights: np.ndarray, params: np.ndarray) -> np.ndarray:
        """Return minus the derivative of the scores' sum, shape (k, k)."""
        slope = self.score(rows.left, rows.right @ params)[1]
        return (rows.right * (weights * slope)[:, None]).T @ rows.right

    def _at(self, rows: _Rows, weights: np.ndarray, params: np.ndarray) -> Solution:
        """Return coefficients at which the scores have a sum of 0, and the influence on them."""
        score = self.score(rows.left, rows.right @ params)[0]
        inverse = rows.inverse(self._curvature(rows, weights, params))
        influence = (rows.right * score[:, None]) @ inverse
        return Solution(params, influence, influence, np.zeros_like(params))

    def _corrected(self, rows: _Rows, weights: np.ndarray, positive: np.ndarray, start: np.ndarray) -> Solution:
        """Return coefficients by the curvature of the weights above 0, and how far that of all weights would go.

        With b₀ those of the positive weights p, in proportion so that Σ p = Σ w, and s the scores:
        Σ p t (s(b₀) − s(b)) = Σ w t s(b₀). The influence is the derivative in w, of b₀ and of p too.
        """
        at_start = rows.right * self.score(rows.left, rows.right @ start)[0][:, None]
        total = at_start.T @ weights
        params = self._root(rows, positive, start, total - at_start.T @ positive)
        score = rows.right * self.score(rows.left, rows.right @ params)[0][:, None]
        inverse = rows.inverse(self._curvature(rows, positive, params))
        moved, size, above = params - start, float(weights.sum()), weights > 0
        both, alone = (self._curvature(rows, each, start) for each in (weights, positive))
        by_start = at_start @ rows.inverse(alone) @ (alone - both)
        counted = above[:, None] * (size / float(weights[above].sum()))
        proportion = 1 / size - above / float(weights[above].sum())
        influence = at_start + counted * (by_start + score - at_start) - np.outer(proportion, total)
        doubt = moved - inverse @ self._curvature(rows, weights, params) @ moved
        return Solution(params, influence @ inverse, score @ inverse, doubt)

    def _root(
        self, rows: _Rows, weights: np.ndarray, start: np.ndarray | None = None, beside: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """Return the coefficients at which the scores' sum, and a vector `beside` it, are 0."""
        right = rows.right
        params = step = np.zeros(right.shape[1]) if start is None else start
        for _ in range(_ROUNDS):
            score = self.score(rows.left, right @ params)[0]
            step = rows.inverse(self._curvature(rows, weights, params)) @ (right.T @ (weights * score) + beside)
            if self.linear:
                return params + step
            step *= min(1.0, _LONGEST_STEP / max(float(np.sqrt(np.mean((right @ step) ** 2))), 1e-300))
            params = params + step
            moves = np.abs(params) * rows.units
            if not moves.max() < _LARGEST_TERM:
                raise self._no_solution(rows.what, rows.terms[int(np.argmax(np.nan_to_num(moves, nan=np.inf)))])
            if np.abs(step).max() <= _CONVERGED * (1 + np.abs(params).max()):
                return params
        raise self._no_solution(rows.what, rows.terms[int(np.argmax(np.abs(step) * rows.units))])

    def _no_solution(self, what: str, term: str) -> EstimateError:
        overlap = "the left side's two values may not overlap there, or " if self.two_values else ""
        return EstimateError(
            f"Expected {what} to have a solution, got none because of {term}: {overlap}noise hides it. Put a rare "
            "label together with another, or use fewer terms."
        )


def _power(predictor: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(predictor, _LARGEST_POWER))


LINEAR = Family("ols", "least squares", np.asarray, lambda left, predictor: (left - predictor, np.ones_like(left)))
LOGISTIC = Family(
    "logit", "logistic", special.expit, lambda y, x: (y - (p := special.expit(x)), p * (1 - p)), two_values=True
)
POISSON = Family("poisson", "Poisson", _power, lambda y, x: (y - (m := _power(x)), m))
GAMMA = Family("gamma", "gamma", _power, lambda y, x: ((part := y * _power(-x)) - 1.0, part), pairs=False)
FAMILIES = {family.name: family for family in (LINEAR, LOGISTIC, POISSON, GAMMA)}
