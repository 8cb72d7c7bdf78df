"""MWEM as the DPGM paper compares with it: a histogram over items, found by multiplicative weights.

Hardt, Ligett and McSherry 2012, with the settings of Acs et al. 2018: baskets cut to 12 items, 50 rounds, queries that
add up the counts of some items. Pure ε-DP under add/remove of a basket, if the number of item occurrences is public.
For figures only: nothing in the package imports this, and its randomness is not secret.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

ROUNDS = 50
LONGEST = 12


def cut(matrix: sparse.csr_array, longest: int, rng: np.random.Generator) -> sparse.csr_array:
    """Return baskets with a random subset of at most `longest` items each: a rule that looks at one basket alone."""
    owners = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((rng.random(owners.size), owners))
    kept = order[np.arange(owners.size) - matrix.indptr[owners] < longest]
    return sparse.csr_array((matrix.data[kept], (owners[kept], matrix.indices[kept])), shape=matrix.shape)


def mwem(
    matrix: sparse.csr_array,
    queries: sparse.csr_array,
    epsilon: float,
    rng: np.random.Generator,
    *,
    rounds: int = ROUNDS,
    longest: int = LONGEST,
) -> np.ndarray:
    """Return the mean over the rounds of the estimated counts of items, shape (m,).

    Each round takes half of its ε/rounds to choose the query that the estimate answers worst, by the exponential
    mechanism, and half to measure it with Laplace noise. A basket moves an answer by at most `longest`.

    Args:
        matrix: 0 or 1 for each basket and item, shape (n, m).
        queries: 0 or 1 for each query and item, shape (q, m): the answer of one is the sum of its items' counts.
        epsilon: of all rounds together.
        rng: of the mechanisms, not secret.
        rounds: how many.
        longest: items that are kept of a basket.
    """
    counts = np.asarray(cut(matrix, longest, rng).sum(axis=0), dtype=np.float64).ravel()
    total = counts.sum()  # taken to be public, as in the paper
    truth = queries @ counts
    half = epsilon / (2 * rounds)
    estimate = np.full(counts.size, total / counts.size)
    mean = np.zeros(counts.size)
    for _ in range(rounds):
        answers = queries @ estimate
        scores = half * np.abs(answers - truth) / (2 * longest)
        query = int(np.argmax(scores + rng.gumbel(size=scores.size)))
        measured = truth[query] + rng.laplace(scale=longest / half)
        asked = queries[[query]].toarray().ravel()
        exponent = np.clip(asked * (measured - answers[query]) / (2 * total), -50, 50)
        estimate = estimate * np.exp(exponent)
        estimate *= total / estimate.sum()
        mean += estimate / rounds
    return mean
