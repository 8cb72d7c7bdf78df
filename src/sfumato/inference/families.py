"""Families of regressions: the scores that each solves on weighted rows, and the influence of a row on its solution.

Free: uses released values only.
Reference: Nelder and Wedderburn 1972 (generalised linear models); Huber 1967 (the sandwich).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from sfumato.errors import ConfigError, EstimateError

_ROUNDS = 50
_CONVERGED = 1e-10
_LARGEST_TERM = 30.0  # of the linear predictor, of a term of a usual row: beyond it chances are 0 and 1
_LARGEST_POWER = 700.0
_LONGEST_STEP = 2.0  # of the linear predictor of a usual row: longer ones overshoot
_LEAST_EIGENVALUE = 1e-6  # of the scaled design: below it, a term is a sum of others

Solution = tuple[np.ndarray, np.ndarray]
"""Coefficients, shape (k,), and the influence of each row on them, shape (N, k)."""


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

        Args:
            left: left side of the rows, shape (N,).
            right: terms of the rows, shape (N, k).
            weights: of the rows, shape (N,).
            what: the regression, for messages.
            terms: names of the terms, for messages.

        Raises:
            EstimateError: there are none: a term is a sum of others, or noise hides the solution.
        """
        if self.linear:
            return least_squares(left, right, weights, what, terms)
        return self._by_newton(left, right, weights, what, terms)

    def _by_newton(
        self, left: np.ndarray, right: np.ndarray, weights: np.ndarray, what: str, terms: Sequence[str]
    ) -> Solution:
        params = step = np.zeros(right.shape[1])
        nonzero = np.abs(right).max(axis=1) > 0
        spread = np.sqrt(np.mean(right[nonzero] ** 2, axis=0)) if nonzero.any() else np.ones(right.shape[1])
        binary = np.isin(right, (0.0, 1.0)).all(axis=0)
        unit = np.where(binary, 1.0, spread)
        for _ in range(_ROUNDS):
            score, slope = self.score(left, right @ params)
            inverse = _inverse((right * (weights * slope)[:, None]).T @ right, what, terms)
            step = inverse @ (right.T @ (weights * score))
            step *= min(1.0, _LONGEST_STEP / max(float(np.sqrt(np.mean((right @ step) ** 2))), 1e-300))
            params = params + step
            moves = np.abs(params) * unit
            if not moves.max() < _LARGEST_TERM:
                raise self._no_solution(what, terms[int(np.argmax(np.nan_to_num(moves, nan=np.inf)))])
            if np.abs(step).max() <= _CONVERGED * (1 + np.abs(params).max()):
                return params, (right * score[:, None]) @ inverse
        raise self._no_solution(what, terms[int(np.argmax(np.abs(step) * unit))])

    def _no_solution(self, what: str, term: str) -> EstimateError:
        overlap = "the left side's two values may not overlap there, or " if self.two_values else ""
        return EstimateError(
            f"Expected {what} to have a solution, got none because of {term}: {overlap}noise hides it. Put a rare "
            "label together with another, or use fewer terms."
        )


def least_squares(
    left: np.ndarray, right: np.ndarray, weights: np.ndarray, what: str, terms: Sequence[str]
) -> Solution:
    """Return the coefficients of least squares, and the influence of each row; arguments as `Family.solve`."""
    inverse = _inverse((right * weights[:, None]).T @ right, what, terms)
    params = inverse @ (right.T @ (weights * left))
    return params, (right * (left - right @ params)[:, None]) @ inverse


def _inverse(matrix: np.ndarray, what: str, terms: Sequence[str]) -> np.ndarray:
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
        f"Expected terms that tell rows apart for {what}, got {terms[worst]}, which is a sum of others, or which noise "
        "hides. Leave it out, put a rare label together with another, or fit with a larger epsilon."
    )


def _itself(predictor: np.ndarray) -> np.ndarray:
    return predictor


def _power(predictor: np.ndarray) -> np.ndarray:
    return np.exp(np.minimum(predictor, _LARGEST_POWER))


def _of_squares(left: np.ndarray, predictor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return left - predictor, np.ones_like(left)


def _of_chances(left: np.ndarray, predictor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    chances = special.expit(predictor)
    return left - chances, chances * (1 - chances)


def _of_counts(left: np.ndarray, predictor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    means = _power(predictor)
    return left - means, means


def _of_sizes(left: np.ndarray, predictor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    relative = left * _power(-predictor)
    return relative - 1.0, relative


LINEAR = Family("ols", "least squares", _itself, _of_squares)
LOGISTIC = Family("logit", "logistic", special.expit, _of_chances, two_values=True)
POISSON = Family("poisson", "Poisson", _power, _of_counts)
GAMMA = Family("gamma", "gamma", _power, _of_sizes, pairs=False)
FAMILIES = {family.name: family for family in (LINEAR, LOGISTIC, POISSON, GAMMA)}
