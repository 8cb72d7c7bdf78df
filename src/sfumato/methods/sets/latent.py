"""Latent classes of sets, fitted to noisy counts of items and of pairs. Free: uses released values only.

A class has its own share of each watched item, and its own law of how many of the rest. Given its class, a set's items
are independent (latent class analysis: Lazarsfeld and Henry 1968), but that it holds two at least: shorter sets are
counted one by one. What a class adds to weighted counts, with u the weight of a set of so many watched items and S
their number in the class, S_i without item i:

    pair i, j                n·π_c·E[u(S_ij + 2)]·p_ci·p_cj
    item i, rest b           n·π_c·(E[u(S_i + 1)] − [b = 0]·u(1)·P(S_i = 0))·p_ci·q_cb
    rest b, s watched ones   n·π_c·u(s)·P(S = s)·q_cb, but where b + s is below 2
    item i                   n·π_c·(1 − q_c0·P(S_i = 0))·p_ci

So what long sets lack in weighted counts is put back by the model, and π adds up to more than the share of sets of two
items or more. E[u(S_ij + 2)] is taken for the product of what i and j change alone. Squared differences from noisy
counts, in units of their noise, are made least, with a penalty on how far a class's log-odds are from those of all
sets. A second, independent reading of the same release chooses the penalty.

A number S is a sum of independent items (a Poisson binomial variable). Its law is computed item by item: `prefixes`
from the first, `suffixes` of a function from the last; both together give what one item changes, exactly. Numbers above
the most of a set count as the most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy import optimize, special

from sfumato.maths.streams import public_stream
from sfumato.methods.sets.pairs import CountedPairs

_PENALTIES = (10.0, 3.0, 1.0, 0.3, 0.1)
_THINNED = 0.5
_SEED = 0
_ROUNDS, _STEPS, _TRIAL_ROUNDS, _TRIAL_STEPS = 4, 250, 4, 100
_APART = 0.5  # standard deviation of the log-odds by which classes are parted at first
_ROUNDING = 1.0  # sets: what a count is never known better than, so that no noise is no division by 0


def prefixes(items: np.ndarray, most: int) -> np.ndarray:
    """Return the law of how many of the items before i there are, shape (F + 1, K, most + 1).

    Args:
        items: shares of independent items by class, shape (K, F).
        most: numbers above it count as it.

    Example:
        >>> prefixes(np.array([[0.5, 0.5]]), 2)[-1]
        array([[0.25, 0.5 , 0.25]])
    """
    k, f = items.shape
    laws = np.zeros((f + 1, k, most + 1))
    laws[0, :, 0] = 1.0
    for i in range(f):
        moved = laws[i] * items[:, i, None]
        np.subtract(laws[i], moved, out=laws[i + 1])
        laws[i + 1, :, 1:] += moved[:, :-1]
        laws[i + 1, :, -1] += moved[:, -1]
    return laws


def suffixes(items: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the expected value where s of the items before i are there, shape (F + 1, K, most + 1).

    Args:
        items: shares of independent items by class, shape (K, F).
        values: by number of items, shape (K, most + 1).

    Example:
        >>> suffixes(np.array([[0.5, 0.5]]), np.array([[0.0, 1.0, 2.0]]))[0, 0, 0]
        np.float64(1.0)
    """
    k, f = items.shape
    expected = np.empty((f + 1, k, values.shape[1]))
    expected[f] = values
    for i in range(f - 1, -1, -1):
        after = expected[i + 1]
        np.copyto(expected[i], after)
        expected[i, :, :-1] += items[:, i, None] * (after[:, 1:] - after[:, :-1])
    return expected


def slopes(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return the derivatives of expected values by the items' shares, shape (K, F).

    Args:
        before: `prefixes`.
        after: `suffixes` of the same items.
    """
    risen = after[1:, :, 1:] - after[1:, :, :-1]
    return np.einsum("fks,fks->kf", before[:-1, :, :-1], risen)


def without_each(before: np.ndarray, items: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the expected values of how many there are but for one item, for each, shape (K, F).

    Args:
        before: `prefixes` of the items.
        items: their shares by class, shape (K, F).
        values: by number of items, shape (most + 1,).
    """
    after = suffixes(items, np.tile(values, (len(items), 1)))
    return np.einsum("fks,fks->kf", before[:-1], after[1:])


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
    fit = _Fit.of(items, pairs, middles, n_classes, _PENALTIES[-1])
    rng = public_stream(_SEED, 1)
    place = fit.start(rng)
    if pairs.noise_std > 0:
        learnt, judging = pairs.thinned(public_stream(_SEED), _THINNED)
        errors, places = [], []
        for penalty in _PENALTIES:
            trial = _Fit.of(items, learnt, middles, n_classes, penalty)
            place = trial.best(trial.start(rng), _TRIAL_STEPS, rounds=_TRIAL_ROUNDS)
            places.append(place)
            errors.append(_Fit.of(items, judging, middles, n_classes, penalty).misfit(place))
        best = int(np.argmin(errors))
        place, fit = places[best], replace(fit, penalty=_PENALTIES[best])
    return fit.classes(fit.best(place, _STEPS, rounds=_ROUNDS))


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """Expected weights by class, which change slowly with the classes: constants of a round.

    Attributes:
        pair: E[u(S + 2)], shape (K,).
        apart: E[u(S_i + 2)] by that, shape (K, F).
        item: E[u(S_i + 1)], shape (K, F).
        alone: P(S_i = 0), shape (K, F).
        none: P(S = 0), shape (K,).
        first: u(1).
    """

    pair: np.ndarray
    apart: np.ndarray
    item: np.ndarray
    alone: np.ndarray
    none: np.ndarray
    first: float

    @classmethod
    def of(cls, classes: Classes, weights: np.ndarray) -> _Weights:
        """Compute them."""
        most = weights.size - 1
        before = prefixes(classes.items, most)
        by_more = [weights[np.minimum(np.arange(most + 1) + more, most)] for more in (1, 2)]
        pair = before[-1] @ by_more[1]
        apart = without_each(before, classes.items, by_more[1]) / pair[:, None]
        item = without_each(before, classes.items, by_more[0])
        none = before[-1, :, 0]
        alone = np.minimum(none[:, None] / np.maximum(1 - classes.items, 1e-12), 1.0)
        return cls(pair, apart, item, alone, none, float(weights[min(1, most)]))


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Penalised least squares of classes, as a function of (log π, logits of p, log q)."""

    items: CountedItems
    pairs: CountedPairs
    middles: np.ndarray
    n_classes: int
    penalty: float
    overall: tuple[np.ndarray, np.ndarray]  # log-odds of items and logarithms of sizes that classes are drawn to
    first_share: float  # logarithm of a class's first share

    @classmethod
    def of(cls, items: CountedItems, pairs: CountedPairs, middles: np.ndarray, n_classes: int, penalty: float) -> _Fit:
        """Return the fit; what is drawn to is the law of all sets of two items or more."""
        sizes = np.maximum(pairs.sizes.sum(axis=1), 1.0)
        many = float(np.clip(1 - np.maximum(pairs.few, 0.0).sum() / items.n, 1 / items.n, 1.0))
        logits = special.logit(np.clip(items.watched / (many * items.n), 1e-9, 0.99))
        overall = logits, np.log(sizes / sizes.sum())
        return cls(items, pairs, middles, n_classes, penalty, overall, float(np.log(many / n_classes)))

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Return parameters of classes that are much like all sets, of equal shares."""
        logits, sizes = self.overall
        k = self.n_classes
        same = np.concatenate([np.full(k, self.first_share), np.tile(logits, k), np.tile(sizes, k)])
        moved = same + _APART * rng.standard_normal(same.size)  # alike ones would stay alike
        moved[:k] = self.first_share
        return moved

    def best(self, place: np.ndarray, steps: int, *, rounds: int) -> np.ndarray:
        """Return the parameters of the least error near some; weights of sets follow the classes, round by round."""
        for _ in range(rounds):
            weights = _Weights.of(self.classes(place), self.pairs.weights)
            solution = optimize.minimize(
                self.error, place, args=(weights,), jac=True, method="L-BFGS-B", options={"maxiter": steps}
            )
            place = solution.x
        return place

    def classes(self, place: np.ndarray) -> Classes:
        """Return the classes that parameters stand for."""
        shares, logits, sizes = self._apart(place)
        return Classes(np.exp(np.clip(shares, -30, 3)), special.expit(logits), special.softmax(sizes, axis=1))

    def misfit(self, place: np.ndarray) -> float:
        """Return the squared differences from the counts, in units of their noise; without the penalty."""
        classes = self.classes(place)
        return self._differences(classes, _Weights.of(classes, self.pairs.weights))[0]

    def error(self, place: np.ndarray, weights: _Weights) -> tuple[float, np.ndarray]:
        """Return the penalised error and its gradient, weights held."""
        classes = self.classes(place)
        error, by_share, by_item, by_size = self._differences(classes, weights)
        _, logits, sizes = self._apart(place)
        away = logits - self.overall[0], sizes - self.overall[1]
        error += 0.5 * self.penalty * sum(float((a**2).sum()) for a in away)
        to_logits = by_item * classes.items * (1 - classes.items) + self.penalty * away[0]
        inner = (by_size * classes.sizes).sum(axis=1, keepdims=True)
        to_sizes = classes.sizes * (by_size - inner) + self.penalty * away[1]
        return error, np.concatenate([classes.shares * by_share, to_logits.ravel(), to_sizes.ravel()])

    def _apart(self, place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        k, f = self.n_classes, self.overall[0].size
        return place[:k], place[k : k + k * f].reshape(k, f), place[k + k * f :].reshape(k, -1)

    def _differences(self, classes: Classes, weights: _Weights) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Return half of the squared differences, and its derivatives by π, p and q."""
        n, p, q = self.items.n, classes.items, classes.sizes
        pi = n * classes.shares
        lone = p * weights.alone  # P(the item and no other watched one)
        both = p * weights.apart
        off = (both.T * (pi * weights.pair)) @ both - self.pairs.pairs
        np.fill_diagonal(off, 0.0)
        crossed = (p * weights.item).T @ (pi[:, None] * q) - self.pairs.by_size
        crossed[:, 0] -= weights.first * (lone.T @ (pi * q[:, 0]))
        single = p.T @ pi - lone.T @ (pi * q[:, 0]) - self.items.watched
        mean = float(pi @ self._others(q, weights)) / n - self.items.rest

        per_pair = 1 / (self.pairs.noise_std**2 + _ROUNDING)
        per_item = 1 / (self.items.watched_std**2 + _ROUNDING)
        per_mean = 1 / (self.items.rest_std**2 + (_ROUNDING / n) ** 2)
        error = 0.5 * per_pair * (0.5 * float((off**2).sum()) + float((crossed**2).sum()))
        error += 0.5 * per_item * float(single @ single) + 0.5 * per_mean * mean**2
        weighted = (per_pair * off, per_pair * crossed, per_item * single, per_mean * mean / n)
        by_share, by_item, by_size = self._slopes(classes, weights, weighted)
        more, *by_sizes = self._sizes(classes, per_pair)
        return error + more, by_share + by_sizes[0], by_item + by_sizes[1], by_size + by_sizes[2]

    def _sizes(self, classes: Classes, per_size: float) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Return what sizes add to the squared differences, and to their derivatives by π, p and q."""
        p, q, weights = classes.items, classes.sizes, self.pairs.weights
        shares = self.items.n * classes.shares[:, None] * q
        before = prefixes(p, weights.size - 1)
        law = np.add.reduceat(before[-1] * weights, self.pairs.held_bins, axis=1)
        apart = _longer(shares.T @ law) - self.pairs.sizes
        weighted = _longer(per_size * apart)
        by_law = law @ weighted.T
        bins = np.searchsorted(self.pairs.held_bins, np.arange(weights.size), side="right") - 1
        after = suffixes(p, (shares @ weighted)[:, bins] * weights)
        by_share = self.items.n * (by_law * q).sum(axis=1)
        by_size = self.items.n * classes.shares[:, None] * by_law
        return 0.5 * per_size * float((apart**2).sum()), by_share, slopes(before, after), by_size

    def _others(self, sizes: np.ndarray, weights: _Weights) -> np.ndarray:
        """Return the mean number of other items by class, in sets of two items or more, shape (K,)."""
        means = sizes @ self.middles
        return means - sizes[:, 1] * weights.none if sizes.shape[1] > 1 else means

    def _slopes(
        self, classes: Classes, weights: _Weights, weighted: tuple[np.ndarray, np.ndarray, np.ndarray, float]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the derivatives by π, p and q, of differences that are weighted by what they are known by."""
        off, crossed, single, mean = weighted
        n, p, q = self.items.n, classes.items, classes.sizes
        pi = n * classes.shares
        both = p * weights.apart
        by_off, by_crossed = both @ off, q @ crossed.T
        lone = weights.first * crossed[:, 0] + single  # what an item and no other watched one must not count for
        by_lone = (p * weights.alone) @ lone
        by_share = n * (
            0.5 * weights.pair * (by_off * both).sum(axis=1)
            + (by_crossed * p * weights.item).sum(axis=1)
            + p @ single
            - q[:, 0] * by_lone
            + mean * self._others(q, weights)
        )
        by_item = (pi * weights.pair)[:, None] * weights.apart * by_off + pi[:, None] * weights.item * by_crossed
        by_item += pi[:, None] * (single - q[:, :1] * weights.alone * lone)
        by_size = pi[:, None] * ((p * weights.item) @ crossed + mean * self.middles)
        by_size[:, 0] -= pi * by_lone
        if q.shape[1] > 1:
            by_size[:, 1] -= pi * mean * weights.none
        return by_share, by_item, by_size


def _longer(sizes: np.ndarray) -> np.ndarray:
    """Return sizes of the rest by numbers of watched items, without sets of less than two items, shape (B, H)."""
    longer = sizes.copy()
    longer[0, :2] = 0.0
    longer[1:2, 0] = 0.0
    return longer
