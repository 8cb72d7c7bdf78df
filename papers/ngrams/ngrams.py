"""Sequences by differentially private n-grams: a published baseline for rows of the same person.

Chen, Acs and Castelluccia, "Differentially private sequential data publication via variable-length n-grams" (CCS
2012). Counts of n-grams are a tree: below a gram stand all that go on with it by one symbol. Level by level all
nodes of the tree so far get noise; a gram whose noisy count reaches a threshold is gone on with, others are leaves.
Sequences are then drawn symbol by symbol, each given the longest gram before it that was gone on with.

**What is counted.** A person's first M symbols, after a start symbol, and before an end symbol if there are fewer
than M of them: at most M + 1 symbols. The start alone is not counted: the number of persons is public.

**Sensitivity.** Level i counts grams of i symbols. Adding or removing a person changes them by at most M in the ℓ1
norm for i = 1 and 2, and by M + 2 − i beyond: one gram of a length begins at a place, and ends within the M + 1
symbols. Attained by everybody with M symbols or M − 1. Which nodes a level has depends on released counts alone.

**Noise, event.** Two-sided geometric noise on whole numbers, P(z) ∝ exp(−|z| ε_i/sensitivity), for every node of
level i, is ε_i-DP (Ghosh, Roughgarden and Sundararajan 2009). The levels of all trees are composed by dp-accounting,
called directly, as mechanisms of which no more is known than their ε_i (`spent`). The unit is the person, the
relation add/remove.

**Where it differs from the paper.** The levels share ε equally, where the paper spends by an estimate of the path's
length. A start symbol is counted, so that first rows have a law of their own. Counts of one symbol are projected to
the simplex. Noise is of whole numbers in place of Laplace's.

For figures only: nothing in the package imports this, and its randomness is not secret.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from dp_accounting.pld import privacy_loss_distribution

NONE = -1  # beyond the end of a sequence
_INTERVAL = 1e-5  # of the privacy loss: far below what ε is told to


@dataclass(frozen=True)
class Sequences:
    """Sequences over 0 … m − 1 as they are counted: m is the start, m + 1 the end, `NONE` follows it.

    Attributes:
        symbols: shape (persons, longest + 2).
        n_symbols: m.
        longest: M, symbols of a person that count.
    """

    symbols: np.ndarray
    n_symbols: int
    longest: int

    @classmethod
    def of(cls, persons: np.ndarray, symbols: np.ndarray, n_symbols: int, longest: int) -> Sequences:
        """Return the sequences of rows that stand person by person, in order.

        Args:
            persons: whose a row is, shape (rows,); equal ones side by side.
            symbols: 0 … m − 1, shape (rows,).
            n_symbols: m, public.
            longest: M: of a person the first so many count.
        """
        starts = np.flatnonzero(np.r_[True, persons[1:] != persons[:-1]]) if persons.size else np.zeros(0, int)
        sizes = np.diff(np.r_[starts, persons.size])
        place = np.arange(persons.size) - np.repeat(starts, sizes)
        who = np.repeat(np.arange(sizes.size), sizes)
        table = np.full((sizes.size, longest + 2), NONE)
        table[:, 0] = n_symbols
        kept = place < longest
        table[who[kept], place[kept] + 1] = symbols[kept]
        short = np.flatnonzero(sizes < longest)
        table[short, sizes[short] + 1] = n_symbols + 1
        return cls(table, n_symbols, longest)


def sensitivity(longest: int, level: int) -> int:
    """Return the largest change of the counts of grams of `level` symbols by a person, in the ℓ1 norm."""
    return max(1, longest - max(0, level - 2))


def level_counts(sequences: Sequences, contexts: list[tuple[int, ...]]) -> np.ndarray:
    """Return how often each symbol follows each gram, shape (grams, m + 2); grams have one length."""
    table, width = sequences.symbols, sequences.n_symbols + 2
    counts = np.zeros((len(contexts), width), dtype=np.int64)
    if not contexts:
        return counts
    length = len(contexts[0])
    base = width + 1
    keys = np.array([_key(gram, base) for gram in contexts])
    order = np.argsort(keys)
    before = np.zeros((table.shape[0], table.shape[1] - length), dtype=np.int64)
    for lag in range(length):
        before = before * base + table[:, lag : lag + before.shape[1]] + 1
    after = np.where(table[:, length:] == sequences.n_symbols, NONE, table[:, length:])  # the start is not counted
    found = np.minimum(np.searchsorted(keys[order], before), keys.size - 1)
    counted = (keys[order][found] == before) & (after != NONE)
    np.add.at(counts, (order[found[counted]], after[counted]), 1)
    return counts


def _key(gram: tuple[int, ...], base: int) -> int:
    key = 0
    for symbol in gram:
        key = key * base + symbol + 1
    return key


def geometric_noise(shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> np.ndarray:
    """Return whole numbers z with P(z) ∝ exp(−|z|/scale)."""
    p = -math.expm1(-1 / scale)
    return rng.geometric(p, shape) - rng.geometric(p, shape)


def spent(epsilons: Iterable[float], delta: float) -> float:
    """Return ε at δ of mechanisms run one after the other, each of a pure ε, by dp-accounting."""
    whole = privacy_loss_distribution.identity(_INTERVAL)
    for epsilon in epsilons:
        parameters = privacy_loss_distribution.common.DifferentialPrivacyParameters(epsilon, 0.0)
        whole = whole.compose(
            privacy_loss_distribution.from_privacy_parameters(parameters, value_discretization_interval=_INTERVAL)
        )
    return float(whole.get_epsilon_for_delta(delta))


@dataclass(frozen=True)
class NGrams:
    """Noisy n-grams, and sequences drawn by them.

    Attributes:
        laws: a gram that was gone on with → P(next symbol), shape (m + 2,).
        n_symbols: m.
        longest: M.
        epsilons: ε_i of each level.
    """

    laws: dict[tuple[int, ...], np.ndarray]
    n_symbols: int
    longest: int
    epsilons: tuple[float, ...]

    @classmethod
    def fit(cls, sequences: Sequences, epsilon: float, n: int, units: int, rng: np.random.Generator) -> NGrams:
        """Return grams of up to n symbols, ε/n for each level.

        Args:
            sequences: of persons.
            epsilon: of all levels together; inf is without noise.
            n: at least 2.
            units: the public number of persons.
            rng: of the noise, not secret.
        """
        m = sequences.n_symbols
        laws: dict[tuple[int, ...], np.ndarray] = {}
        contexts: dict[tuple[int, ...], float] = {(): 0.0}  # grams to go on with, their noisy counts
        for level in range(1, n + 1):
            scale = n * sensitivity(sequences.longest, level) / epsilon
            threshold = max(1.0, scale * math.log((m + 1) / 2))  # one node without a count is expected beyond it
            noisy = level_counts(sequences, list(contexts)).astype(np.float64)
            if scale:
                noisy += geometric_noise(noisy.shape, scale, rng)
            noisy[:, m] = 0.0  # nothing leads to the start
            following: dict[tuple[int, ...], float] = {(m,): float(units)} if level == 1 else {}
            for (gram, count), counts in zip(contexts.items(), noisy, strict=True):
                large = np.where(counts >= threshold, counts, 0.0)
                laws[gram] = _after(gram, count, large, laws) if gram else _first(counts, m)
                following |= {(*gram, int(x)): float(counts[x]) for x in np.flatnonzero(large) if x != m + 1}
            contexts = following
        return cls(laws, m, sequences.longest, (epsilon / n,) * n)

    def sample(
        self, n: int, rng: np.random.Generator, lengths: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return persons and symbols of n sequences, row by row; of given lengths if there are any, shape (n,)."""
        m, depth = self.n_symbols, len(self.epsilons)
        table = np.full((n, self.longest + 1), NONE)
        table[:, 0] = m
        going = np.arange(n)
        for place in range(1, self.longest + 1):
            if lengths is not None:
                going = going[lengths[going] >= place]
            drawn = np.empty(going.size, dtype=int)
            last = table[going, max(0, place - depth + 1) : place]
            grams, which = np.unique(last, axis=0, return_inverse=True)
            for index, gram in enumerate(grams):
                law = self._given(tuple(gram.tolist()))
                here = np.flatnonzero(which.ravel() == index)
                law = _without_end(law, m) if lengths is not None or place == 1 else law
                drawn[here] = rng.choice(m + 2, here.size, p=law)
            going, drawn = going[drawn < m], drawn[drawn < m]
            table[going, place] = drawn
        who, place = np.nonzero(table[:, 1:] != NONE)
        return who, table[who, place + 1]

    def _given(self, gram: tuple[int, ...]) -> np.ndarray:
        while gram not in self.laws:
            gram = gram[1:]
        return self.laws[gram]


def _first(noisy: np.ndarray, m: int) -> np.ndarray:
    """Return P(symbol) by noisy counts; of no symbol is the start next."""
    shares = simplex(noisy / max(noisy.sum(), 1.0))
    shares[m] = 0.0
    return _normal(shares, m)


def _after(gram: tuple[int, ...], count: float, large: np.ndarray, laws: dict) -> np.ndarray:
    """Return P(next symbol | gram): the large counts ÷ the gram's; others share the rest as after the shorter gram."""
    shorter = gram[1:]
    while shorter not in laws:
        shorter = shorter[1:]
    shares = large / max(count, large.sum(), 1.0)
    rest = np.where(large > 0, 0.0, laws[shorter])
    if rest.sum() > 0:
        shares = shares + max(0.0, 1 - float(shares.sum())) * rest / rest.sum()
    return _normal(shares, large.size - 2)


def _normal(shares: np.ndarray, m: int) -> np.ndarray:
    if shares.sum() <= 0:
        shares = np.ones(m + 2)
        shares[m] = 0.0
    return shares / shares.sum()


def _without_end(law: np.ndarray, m: int) -> np.ndarray:
    law = law.copy()
    law[m + 1] = 0.0
    return _normal(law, m) if law.sum() > 0 else np.r_[np.full(m, 1 / m), 0.0, 0.0]


def simplex(values: np.ndarray) -> np.ndarray:
    """Return the nearest point without negative entries whose sum is 1."""
    ordered = np.sort(values)[::-1]
    above = (np.cumsum(ordered) - 1) / np.arange(1, values.size + 1)
    last = np.flatnonzero(ordered > above)[-1]
    return np.maximum(values - above[last], 0.0)
