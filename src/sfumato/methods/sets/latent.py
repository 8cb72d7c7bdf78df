"""Latent classes of sets, fitted to noisy counts of items and of pairs. Free: uses released values only.

A class has its own share of each watched item, and its own law of how many of the rest; given its class, a set's items
are independent (latent class analysis: Lazarsfeld and Henry 1968), but that it holds two at least: shorter sets are
counted one by one. What a class adds to weighted counts, with u the weight of a set of so many watched items and S
their number in the class, S_i without item i:

    pair i, j        n·π_c·E[u(S + 2)]·p_ci·p_cj
    item i, size b   n·π_c·(E[u(S + 1)] − [b = 0]·u(1)·P(S_i = 0))·p_ci·q_cb
    size b           n·π_c·(E[u(S)] − [b ≤ 1]·u(0)·P(S = 0) − [b = 0]·u(1)·P(S = 1))·q_cb
    item i           n·π_c·(1 − q_c0·P(S_i = 0))·p_ci

So what long sets lack in weighted counts is put back by the model, and π adds up to more than the share of sets of two
items or more. Expectations over S leave no item out, which overstates S a little. Squared
differences from the noisy counts, in units of their noise, are made least, with a penalty on how far a class's log-odds
are from those of all sets. The penalty is chosen by a second, independent reading of the same release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import optimize, special

from sfumato.maths.streams import public_stream
from sfumato.methods.sets.pairs import CountedPairs

_PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)
_THINNED = 0.5
_SEED = 0
_ROUNDS, _STEPS, _TRIAL_STEPS = 6, 300, 120
_APART = 0.5  # standard deviation of the log-odds by which classes are parted at first
_ROUNDING = 1.0  # sets: what a count is never known better than, so that no noise is no division by 0


@final
@dataclass(frozen=True, slots=True, eq=False)
class CountedItems:
    """What noisy counts say of single items in sets of two items or more.

    Attributes:
        n: number of all sets.
        watched: numbers of such sets that hold each watched item, shape (F,), above 0.
        watched_std: their standard deviation.
        rest: numbers of other items in such sets, per set of all.
        rest_std: its standard deviation.
    """

    n: float
    watched: np.ndarray
    watched_std: float
    rest: float
    rest_std: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Latent classes.

    Attributes:
        shares: π, shape (K,), of all sets; they count sets of less than two items that are not drawn.
        items: p, shape (K, F).
        sizes: q, shape (K, B), each of sum 1.
    """

    shares: np.ndarray
    items: np.ndarray
    sizes: np.ndarray


def fit_classes(items: CountedItems, pairs: CountedPairs, middles: np.ndarray, *, n_classes: int) -> Classes:
    """Return the classes that explain noisy counts best.

    Args:
        items: of single items.
        pairs: of pairs.
        middles: the mean size of the rest in each bin, shape (B,); the first two bins are 0 and 1.
        n_classes: K.
    """
    penalty = _PENALTIES[0]
    if pairs.noise_std > 0:
        learnt, judging = pairs.thinned(public_stream(_SEED), _THINNED)
        errors = []
        for tried in _PENALTIES:
            trial = _Fit.of(items, learnt, middles, n_classes, tried)
            errors.append(_Fit.of(items, judging, middles, n_classes, tried).misfit(trial.best(_TRIAL_STEPS)))
        penalty = _PENALTIES[int(np.argmin(errors))]
    fit = _Fit.of(items, pairs, middles, n_classes, penalty)
    return fit.classes(fit.best(_STEPS))


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """Expected weights by class, which change slowly with the classes: constants of a round.

    Attributes:
        pair: E[u(S + 2)], shape (K,).
        item: E[u(S + 1)], shape (K,).
        none: P(S = 0), shape (K,).
        alone: P(S_i = 0), shape (K, F).
        size: of a set by size of the rest, shape (K, B).
        first: u(1).
    """

    pair: np.ndarray
    item: np.ndarray
    none: np.ndarray
    alone: np.ndarray
    size: np.ndarray
    first: float

    @classmethod
    def of(cls, classes: Classes, weights: np.ndarray) -> _Weights:
        """Compute them."""
        pair, item, whole = mean_weights(classes.items, weights)
        none, one = _none_and_one(classes.items)
        first = float(weights[min(1, weights.size - 1)])
        size = np.tile(whole[:, None], (1, classes.sizes.shape[1]))
        size[:, :2] -= float(weights[0]) * none[:, None]
        size[:, 0] -= first * one
        alone = none[:, None] / np.maximum(1 - classes.items, 1e-12)
        return cls(pair, item, none, np.minimum(alone, 1.0), np.maximum(size, 0.0), first)


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Penalised least squares of classes, as a function of (log π, logits of p, log q)."""

    items: CountedItems
    pairs: CountedPairs
    middles: np.ndarray
    n_classes: int
    penalty: float
    overall: tuple[np.ndarray, np.ndarray]  # log-odds of items and logarithms of sizes that classes are drawn to
    start: float  # logarithm of a class's first share

    @classmethod
    def of(cls, items: CountedItems, pairs: CountedPairs, middles: np.ndarray, n_classes: int, penalty: float) -> _Fit:
        """Return the fit; what is drawn to is the law of all sets of two items or more."""
        sizes = np.maximum(pairs.sizes, 1.0)
        many = float(np.clip(1 - np.maximum(pairs.few, 0.0).sum() / items.n, 1 / items.n, 1.0))
        logits = special.logit(np.clip(items.watched / (many * items.n), 1e-9, 0.99))
        overall = logits, np.log(sizes / sizes.sum())
        return cls(items, pairs, middles, n_classes, penalty, overall, float(np.log(many / n_classes)))

    def best(self, steps: int) -> np.ndarray:
        """Return the parameters of the least error; weights of sets follow the classes, round by round."""
        rng = public_stream(_SEED, 1)
        logits, sizes = self.overall
        k = self.n_classes
        place = np.concatenate(
            [
                np.full(k, self.start),
                (logits + _APART * rng.standard_normal((k, logits.size))).ravel(),
                (sizes + _APART * rng.standard_normal((k, sizes.size))).ravel(),
            ]
        )
        for _ in range(_ROUNDS):
            weights = _Weights.of(self.classes(place), self.pairs.weights)
            found = optimize.minimize(
                self.error, place, args=(weights,), jac=True, method="L-BFGS-B", options={"maxiter": steps}
            )
            place = found.x
        return place

    def classes(self, place: np.ndarray) -> Classes:
        """Return the classes that parameters stand for."""
        shares, logits, sizes = self._apart(place)
        return Classes(np.exp(np.clip(shares, -30, 3)), special.expit(logits), special.softmax(sizes, axis=1))

    def misfit(self, place: np.ndarray) -> float:
        """Return the squared differences from the counts, in units of their noise; without the penalty."""
        found = self.classes(place)
        return self._differences(found, _Weights.of(found, self.pairs.weights))[0]

    def error(self, place: np.ndarray, weights: _Weights) -> tuple[float, np.ndarray]:
        """Return the penalised error and its gradient, weights held."""
        found = self.classes(place)
        error, by_share, by_item, by_size = self._differences(found, weights)
        _, logits, sizes = self._apart(place)
        away = logits - self.overall[0], sizes - self.overall[1]
        error += 0.5 * self.penalty * sum(float((a**2).sum()) for a in away)
        to_logits = by_item * found.items * (1 - found.items) + self.penalty * away[0]
        inner = (by_size * found.sizes).sum(axis=1, keepdims=True)
        to_sizes = found.sizes * (by_size - inner) + self.penalty * away[1]
        return error, np.concatenate([found.shares * by_share, to_logits.ravel(), to_sizes.ravel()])

    def _apart(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        k, f = self.n_classes, self.overall[0].size
        return place[:k], place[k : k + k * f].reshape(k, f), place[k + k * f :].reshape(k, -1)

    def _differences(self, found: Classes, weights: _Weights) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Return half of the squared differences, and its derivatives by π, p and q."""
        n, p, q = self.items.n, found.items, found.sizes
        pi = n * found.shares
        pair, item, size = pi * weights.pair, pi * weights.item, pi[:, None] * weights.size
        lone = p * weights.alone  # P(the item and no other watched one)
        off = (p.T * pair) @ p - self.pairs.pairs
        np.fill_diagonal(off, 0.0)
        crossed = (p.T * item) @ q - self.pairs.by_size
        crossed[:, 0] -= weights.first * (lone.T @ (pi * q[:, 0]))
        sized = (size * q).sum(axis=0) - self.pairs.sizes
        single = p.T @ pi - lone.T @ (pi * q[:, 0]) - self.items.watched
        mean = float(pi @ self._others(q, weights)) / n - self.items.rest

        per_pair = 1 / (self.pairs.noise_std**2 + _ROUNDING)
        per_item = 1 / (self.items.watched_std**2 + _ROUNDING)
        per_mean = 1 / (self.items.rest_std**2 + (_ROUNDING / n) ** 2)
        error = 0.5 * per_pair * (0.5 * float((off**2).sum()) + float((crossed**2).sum()) + float((sized**2).sum()))
        error += 0.5 * per_item * float(single @ single) + 0.5 * per_mean * mean**2
        weighted = (per_pair * off, per_pair * crossed, per_pair * sized, per_item * single, per_mean * mean / n)
        return error, *self._slopes(found, weights, weighted)

    def _others(self, sizes: np.ndarray, weights: _Weights) -> np.ndarray:
        """Return the mean number of other items by class, in sets of two items or more, shape (K,)."""
        found = sizes @ self.middles
        return found - sizes[:, 1] * weights.none if sizes.shape[1] > 1 else found

    def _slopes(
        self,
        found: Classes,
        weights: _Weights,
        weighted: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the derivatives by π, p and q, of differences that are weighted by what they are known by."""
        off, crossed, sized, single, mean = weighted
        n, p, q = self.items.n, found.items, found.sizes
        pi = n * found.shares
        by_off, by_crossed = p @ off, p @ crossed
        lone = weights.first * crossed[:, 0] + single  # what an item and no other watched one must not count for
        by_lone = (p * weights.alone) @ lone
        by_share = n * (
            0.5 * weights.pair * (by_off * p).sum(axis=1)
            + weights.item * (by_crossed * q).sum(axis=1)
            + (weights.size * q) @ sized
            + p @ single
            - q[:, 0] * by_lone
            + mean * self._others(q, weights)
        )
        by_item = (pi * weights.pair)[:, None] * by_off + (pi * weights.item)[:, None] * (q @ crossed.T)
        by_item += pi[:, None] * (single - q[:, :1] * weights.alone * lone)
        by_size = pi[:, None] * (weights.item[:, None] * by_crossed + weights.size * sized + mean * self.middles)
        by_size[:, 0] -= pi * by_lone
        if q.shape[1] > 1:
            by_size[:, 1] -= pi * mean * weights.none
        return by_share, by_item, by_size


def _none_and_one(items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities that a set of each class holds no watched item, and that it holds one, shapes (K,)."""
    none = np.prod(1 - items, axis=1)
    return none, none * (items / np.maximum(1 - items, 1e-12)).sum(axis=1)


def mean_weights(items: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return E[u(S + 2)], E[u(S + 1)] and E[u(S)] by class, shape (3, K).

    S is a sum of independent items; its law is computed exactly, up to sets longer than any.

    Args:
        items: their shares by class, shape (K, F).
        weights: u(s), shape (most + 1,); longer sets have the last one's.
    """
    most = weights.size - 1
    law = np.zeros((len(items), most + 1))
    law[:, 0] = 1.0
    for share in items.T:
        moved = law * share[:, None]
        law -= moved
        law[:, 1:] += moved[:, :-1]
        law[:, -1] += moved[:, -1]
    places = np.arange(most + 1)
    return np.stack([law @ weights[np.minimum(places + more, most)] for more in (2, 1, 0)])
