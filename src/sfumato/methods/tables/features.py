"""One column of a table as features: functions of its cells, orthonormal under its released shares.

A number's first feature is its normal score, so that a monotone dependence is one number; then what a missing or a very
frequent value says, then polynomials of its rank, which are bounded. Labels have an indicator each, the rarest first,
what it says of rarer ones taken off; a cell without a label says nothing, and is 0 in all of them. The weight of a
feature is its part of a record's squared norm: noise in units of a feature is inverse to its root.

Everything here is a function of released values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, special

from sfumato.maths.constants import CHAIN, VECTORS
from sfumato.maths.gaussian import normal_scores

SCORE, SHAPE, MARK, LABEL, RUN = range(5)
"""Kinds of features: normal scores, polynomials, indicators of single numbers, of labels, and of runs of numbers."""

N_KINDS = 5
_LEAST_KNOWN = 0.01  # share of rows with a label that features are scaled by


@dataclass(frozen=True, slots=True)
class Features:
    """What a column's runs of cells say.

    Attributes:
        values: of each run, shape (r, q): mean 0, variance 1 and no correlation under the column's shares.
        weights: squared length of each feature in a record's vector, shape (q,).
        kinds: of the features, shape (q,).
    """

    values: np.ndarray
    weights: np.ndarray
    kinds: np.ndarray

    @property
    def size(self) -> int:
        """Number of features q."""
        return self.values.shape[1]

    def with_runs(self, shares: np.ndarray) -> Features:
        """Return these, and after them what is left to tell of runs with these shares: of no weight in a record."""
        n_runs = len(self.values)
        values, new = _orthonormal(np.concatenate([self.values, np.eye(n_runs)], axis=1), shares)
        runs = values[:, new >= self.size]
        weights = np.concatenate([self.weights, np.zeros(runs.shape[1])])
        kinds = np.concatenate([self.kinds, np.full(runs.shape[1], RUN)])
        return Features(np.concatenate([self.values, runs], axis=1), weights, kinds)


def level_features(shares: np.ndarray, weight: float = 1.0, *, hidden: bool = False) -> Features:
    """Return the features of a column of labels whose groups have these shares, where `hidden` that of none last."""
    if hidden:
        known = max(float(shares[:-1].sum()), _LEAST_KNOWN)
        own = level_features(shares[:-1] / known, weight * known)
        values = np.append(own.values, np.zeros((1, own.size)), axis=0) / np.sqrt(known)
        return Features(values, own.weights, own.kinds)
    rare_first = np.argsort(shares, kind="stable")
    indicators = np.eye(shares.size)[:, rare_first[:-1]]
    masses = np.sort(shares)[:-1]
    values, new = _orthonormal(indicators, shares)
    weights = weight * np.maximum(masses * (1 - masses), VECTORS.least_weight)[new]
    return Features(values, weights, np.full(new.size, LABEL))


def number_features(shares: np.ndarray, missing: bool, orders: int, weight: float = 1.0) -> Features:
    """Return the features of a numeric column whose runs have these shares, the missing one last.

    Args:
        shares: of the runs, shape (r,).
        missing: whether the last run is that of missing.
        orders: of polynomials, at least 1, the score among them.
        weight: of the column.
    """
    present = shares[:-1] if missing else shares
    inside = present if present.sum() > 0 else np.ones_like(present)
    scores = normal_scores(inside)
    ends = np.cumsum(inside) / inside.sum()
    ranks = 2 * (ends - inside / inside.sum() / 2) - 1
    columns, weights, kinds = [], [], []
    if missing:
        columns.append(np.append(np.zeros(present.size), 1.0))
        weights.append(max(shares[-1] * (1 - shares[-1]), VECTORS.least_weight))
        kinds.append(MARK)
    powers = [scores, *(special.eval_legendre(order, ranks) for order in range(2, orders + 1))]
    parts = np.array(VECTORS.order_weights[:orders]) if orders > 1 else np.ones(1)
    heavy = np.argsort(-present, kind="stable")[: VECTORS.most_heavy]
    heavy = [run for run in heavy if present[run] > VECTORS.heavy] if orders > 2 and present.size > orders else []
    for order, (power, part) in enumerate(zip(powers, parts, strict=True)):
        columns.append(np.append(power, 0.0) if missing else power)
        weights.append(part)
        kinds.append(SHAPE if order else SCORE)
        if order == 0:
            for run in heavy:
                columns.append(np.eye(shares.size)[run])
                weights.append(max(VECTORS.heavy_weight * shares[run] * (1 - shares[run]), VECTORS.least_weight))
                kinds.append(MARK)
    values, new = _orthonormal(np.array(columns).T, shares)
    return Features(values, weight * np.array(weights)[new], np.array(kinds)[new])


def _orthonormal(columns: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns made orthonormal under the shares, one after the other, and which of them were new."""
    mass = np.maximum(shares, VECTORS.least_mass)
    mass = mass / mass.sum()
    root = np.sqrt(mass)
    basis = [root]
    new = []
    for place, column in enumerate(columns.T):
        vector = column * root
        size = np.linalg.norm(vector - (vector @ root) * root)
        for _ in range(2):
            for other in basis:
                vector = vector - (vector @ other) * other
        norm = np.linalg.norm(vector)
        if norm > VECTORS.new * max(size, 1e-12) and norm > 1e-9:
            basis.append(vector / norm)
            new.append(place)
    values = np.array(basis[1:]).reshape(-1, mass.size).T / root[:, None]
    return values, np.array(new, dtype=np.int64)


def hermite_coefficients(shares: np.ndarray, values: np.ndarray, missing: bool) -> np.ndarray:
    """Return E[φ(Z) heₜ(Z)] for t = 1 … 40, shape (q, 40): Z standard normal, cut into runs of these shares.

    With the coefficients A and B of two columns, the moments of a Gaussian copula of correlation ρ are Σ ρᵗ Aₜ Bₜᵀ.

    Args:
        shares: of the runs, shape (r,), the missing one last.
        values: features of each run, shape (r, q); their mean over missing rows is left out.
        missing: whether the last run is that of missing.

    Reference: Mehler 1866. heₜ are the orthonormal Hermite polynomials.
    """
    present = np.maximum(shares[:-1] if missing else shares, VECTORS.least_mass)
    edges = special.ndtri(np.concatenate([[0.0], np.cumsum(present) / present.sum()])[1:-1])
    edges = np.clip(edges, -VECTORS.most_edge, VECTORS.most_edge)
    density = np.exp(-(edges**2) / 2) / np.sqrt(2 * np.pi)
    polynomials = [np.ones_like(edges), edges]
    for t in range(1, VECTORS.hermite_terms):
        polynomials.append((edges * polynomials[t] - np.sqrt(t) * polynomials[t - 1]) / np.sqrt(t + 1))
    # the integral of heₜ·density from an edge is heₜ₋₁·density ÷ √t there
    ends = np.array([polynomials[t - 1] * density / np.sqrt(t) for t in range(1, VECTORS.hermite_terms + 1)])
    zeros = np.zeros((VECTORS.hermite_terms, 1))
    inside = np.diff(np.concatenate([zeros, -ends, zeros], axis=1), axis=1)
    return values[: present.size].T @ inside.T * present.sum() / shares.sum()


@dataclass(frozen=True, slots=True)
class ColumnShares:
    """One column, as the first release says it.

    Attributes:
        shares: P(cell), shape (c,).
        counted: public run of each cell, shape (c,).
        drawn: run of each cell in which it is drawn, shape (c,).
        features: of these runs.
        counts: noisy counts of public runs by class, shape (k, runs).
        counts_std: of their noise.
        ordered: number of runs that are drawn in order; 0 for labels.
    """

    shares: np.ndarray
    counted: np.ndarray
    drawn: np.ndarray
    features: Features
    counts: np.ndarray
    counts_std: float
    ordered: int

    def pooled(self) -> np.ndarray:
        """Return P(run), shape (r,)."""
        return np.bincount(self.drawn, self.shares, len(self.features.values))

    def score(self) -> int | None:
        """Return the place of a number's score among its features; None of labels, and without features."""
        return next(iter(np.flatnonzero(self.features.kinds == SCORE).tolist()), None)

    def vectors(self) -> np.ndarray:
        """Return the entries of a record's vector for each cell, shape (c, q)."""
        return (self.features.values * np.sqrt(self.features.weights))[self.drawn]

    def idle(self) -> ColumnShares:
        """The same without features, missing in every row: of a column whose last cell is that of missing."""
        shares, counts = np.zeros(self.shares.size), np.zeros_like(self.counts)
        shares[-1], counts[:, -1] = 1.0, self.counts.sum(axis=1)
        nothing = Features(np.zeros((len(self.features.values), 0)), np.zeros(0), np.zeros(0, dtype=np.int64))
        return replace(self, shares=shares, counts=counts, features=nothing)

    def moved(self, offsets: np.ndarray) -> ColumnShares:
        """Return the same where features have these means, shape (q,), which are taken off them."""
        scores = np.flatnonzero(self.features.kinds == SCORE)
        if not scores.size or not offsets[scores[0]]:
            return self
        values = self.features.values[self.drawn, scores[0]]
        inside = self.drawn < self.ordered
        shares = self.shares.copy()
        mean = float(offsets[scores[0]]) * shares.sum() / max(shares[inside].sum(), 1e-300)
        shares[inside] = tilted(shares[inside], values[inside], mean)
        features = replace(self.features, values=self.features.values - offsets)
        return replace(self, shares=shares, features=features)

    def hermite(self) -> np.ndarray | None:
        """Return the Hermite coefficients of a number's features; None for labels."""
        if not self.ordered:
            return None
        return hermite_coefficients(self.pooled(), self.features.values, self.ordered < len(self.features.values))


def tilted(shares: np.ndarray, values: np.ndarray, mean: float) -> np.ndarray:
    """Return shares of the same sum, exponentially tilted so that the values have this mean, or the nearest there is.

    Args:
        shares: shape (c,), at least 0.
        values: of each, shape (c,).
        mean: Σ shares · values ÷ Σ shares.
    """
    positive = shares > 0
    if not positive.any() or np.ptp(values[positive]) == 0:
        return shares
    logs = np.log(np.maximum(shares, 1e-300))

    def law(t: float) -> np.ndarray:
        powers = np.where(positive, logs + t * values, -np.inf)
        weights = np.exp(powers - powers.max())
        return weights / weights.sum()

    def error(t: float) -> float:
        return float(law(t) @ values) - mean

    if error(-CHAIN.most_tilt) >= 0 or error(CHAIN.most_tilt) <= 0:
        return shares.sum() * law(CHAIN.most_tilt if mean > 0 else -CHAIN.most_tilt)
    return shares.sum() * law(float(optimize.brentq(error, -CHAIN.most_tilt, CHAIN.most_tilt)))  # type: ignore[arg-type]
