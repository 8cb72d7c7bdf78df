"""One column of a table as features: functions of its cells, orthonormal under its released shares.

Of numbers: waves √2 cos(πku) of the rank u, k = 1, 2, …, which are bounded, and what a missing value says. Labels have
an indicator each, the rarest first, what it says of rarer ones taken off; a cell without a label is 0 in all of them.
The weight of a feature is its part of a record's squared norm: noise in units of a feature is inverse to its root.

Everything here is a function of released values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from sfumato.maths.constants import VECTORS


@dataclass(frozen=True, slots=True)
class Features:
    """What a column's runs of cells say.

    Attributes:
        values: of each run, shape (r, q): mean 0, variance 1 and no correlation under the column's shares.
        weights: squared length of each feature in a record's vector, shape (q,).
        leads: of each run, what is told apart by class, mean 0 and variance 1, shape (r, l): a number's value, or what
            labels say.
        groups: of pairs of labels, the first label of each; None of others.
        finer: how many features, the last ones, tell those of a group apart.
    """

    values: np.ndarray
    weights: np.ndarray
    leads: np.ndarray
    groups: np.ndarray | None = None
    finer: int = 0

    @property
    def size(self) -> int:
        """Number of features q."""
        return self.values.shape[1]


def level_features(shares: np.ndarray, weight: float = 1.0, *, hidden: bool = False) -> Features:
    """Return the features of a column of labels whose groups have these shares, where `hidden` that of none last."""
    if hidden:
        known = max(float(shares[:-1].sum()), VECTORS.least_known)
        own = level_features(shares[:-1] / known, weight * known)
        values = np.append(own.values, np.zeros((1, own.size)), axis=0) / np.sqrt(known)
        return Features(values, own.weights, values)
    rare_first = np.argsort(shares, kind="stable")
    indicators = np.eye(shares.size)[:, rare_first[:-1]]
    masses = np.sort(shares)[:-1]
    values, new = orthonormal(indicators, shares)
    return Features(values, weight * np.maximum(masses * (1 - masses), VECTORS.least_weight)[new], values)


@dataclass(frozen=True, slots=True)
class Waves:
    """The functions of a number's rank.

    Attributes:
        most: how many.
        decay: of the squared weight from one to the next.
    """

    most: int
    decay: float


def number_features(
    shares: np.ndarray, missing: bool, waves: Waves, weight: float = 1.0, values: np.ndarray | None = None
) -> Features:
    """Return the features of a numeric column whose runs have these shares, the heaviest first.

    Those that waves √2 cos(πku) and an indicator of missing span: the eigenvectors of the kernel that they make. Waves
    are not brought to variance 1 where ranks are tied: one record of a nearly constant column would be as long as ten
    of another.

    Args:
        shares: of the runs, shape (r,), the missing one last.
        missing: whether there is one.
        waves: how many, and how they weigh.
        weight: of the column.
        values: mean of each run's, that of missing of no meaning, shape (r,); by default the rank.
    """
    ordered = shares.size - missing
    if ordered <= 2:
        return level_features(shares, weight)
    mass = np.maximum(shares, VECTORS.least_mass) / np.maximum(shares, VECTORS.least_mass).sum()
    inside = mass[:ordered] / mass[:ordered].sum()
    ranks = np.cumsum(inside) - inside / 2
    most = min(waves.most, ordered - 1)
    rank_waves = np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(1, most + 1)))
    falling = waves.decay ** np.arange(most)
    functions = np.zeros((shares.size, most + missing))
    functions[:ordered, :most] = (rank_waves - inside @ rank_waves) * np.sqrt(falling / falling.sum())
    if missing:
        functions[:, -1] = np.eye(shares.size)[-1] - mass[-1]
    root = np.sqrt(mass)
    centre = np.eye(shares.size) - np.outer(root, root)
    lengths, vectors = np.linalg.eigh(centre @ (root[:, None] * (functions @ functions.T) * root) @ centre)
    heaviest = np.flatnonzero(lengths > VECTORS.least_length * lengths.max())[::-1]
    own, lead = ranks if values is None else values[:ordered], np.zeros((shares.size, 1))
    lead[:ordered, 0] = own - inside @ own
    lead /= max(float(np.sqrt(mass @ lead[:, 0] ** 2)), 1e-300)
    return Features(vectors[:, heaviest] / root[:, None], weight * lengths[heaviest], lead)


def orthonormal(columns: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
        share_std: of the noise of a public run's share.
        ordered: number of runs that are drawn in order; 0 for labels.
        hidden: whether the last cell is that of no label.
    """

    shares: np.ndarray
    counted: np.ndarray
    drawn: np.ndarray
    features: Features
    share_std: float
    ordered: int
    hidden: bool = False

    @property
    def waves(self) -> bool:
        """Whether the features are of ranks, and not of single runs."""
        return self.ordered > 2

    def pooled(self) -> np.ndarray:
        """Return P(run), shape (r,)."""
        return np.bincount(self.drawn, self.shares, len(self.features.values))

    def law(self) -> np.ndarray:
        """Return P(run), above 0, shape (r,)."""
        law = np.maximum(self.pooled(), VECTORS.least_share)
        return law / law.sum()

    def vectors(self) -> np.ndarray:
        """Return the entries of a record's vector for each cell, shape (c, q)."""
        return (self.features.values * np.sqrt(self.features.weights))[self.drawn]

    def means_in(self, groups: np.ndarray, n: int) -> np.ndarray:
        """Return the means of the features in n groups of cells, that of each cell, shape (n, q)."""
        shares = np.maximum(self.shares, 1e-12)
        sums = [np.bincount(groups, shares * value, n) for value in self.features.values[self.drawn].T]
        of_group = np.maximum(np.bincount(groups, shares, n), 1e-300)
        return np.reshape(sums, (-1, n)).T / of_group[:, None]

    def idle(self) -> ColumnShares:
        """The same without features, missing in every row: of a column whose last cell is that of missing."""
        shares = np.zeros(self.shares.size)
        shares[-1] = 1.0
        none = np.zeros((len(self.features.values), 0))
        nothing = Features(none, np.zeros(0), none)
        return replace(self, shares=shares, features=nothing)


def clip_norm_of(vectors: Sequence[np.ndarray], shares: Sequence[np.ndarray], *, noisy: bool) -> float:
    """Return the clip norm: that of a record of mean squared length, or without noise of the longest.

    What clipping takes off is known of the law that is fitted, and put back (`Evidence.unclipped`): so the norm may be
    short, and noise small.

    Args:
        vectors: per column, the entries of each cell, shape (c, q).
        shares: per column, P(cell), shape (c,).
        noisy: whether there is noise.
    """
    if noisy:
        return float(np.sqrt(max(mean_square(vectors, shares), VECTORS.least_norm**2)))
    most = sum(float((entries**2).sum(axis=1).max(initial=0.0)) for entries in vectors)
    return float(np.sqrt(max(most, VECTORS.least_norm**2)))


def mean_square(vectors: Sequence[np.ndarray], shares: Sequence[np.ndarray]) -> float:
    """Return the mean squared norm of rows as the released shares make them; arguments as `clip_norm_of`.

    Not of simulated rows: a cell of a nearly constant number is so long that one such row would be most of their mean.
    """
    of_columns = zip(vectors, shares, strict=True)
    return sum(float(share @ (entries**2).sum(axis=1) / share.sum()) for entries, share in of_columns)
