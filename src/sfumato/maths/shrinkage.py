"""Blocks of noisy numbers shrunk by what all blocks of their kind show: empirical Bayes with known noise.

A block's entries are signal N(0, s²) plus noise of known variance. The scale s of a block is one of a grid, with
weights that are learnt from all blocks of its kind together (EM for the mixture, which is convex in its weights). So a
table of few strong pairs keeps these and drops the others, and one where all pairs are weak keeps a little of each.

Everything here is a function of released values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scipy import special

from sfumato.maths.constants import PRIORS
from sfumato.maths.gaussian import shrinkage_weight

_SMALL_SUMS, _PER_STD, _SUM_ROUNDS = 12, 4, 60  # sums below 12 standard deviations are denoised, on steps of a quarter


def shrunk(
    values: np.ndarray, variances: np.ndarray, blocks: np.ndarray, *others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior means and variances of noisy entries in blocks of one kind, shapes (e,).

    Each block lies about 0, or about one of the other centres: whichever makes it likelier, with weights that are
    learnt from all blocks.

    Args:
        values: noisy entries, shape (e,).
        variances: of the noise of each, shape (e,); all 0 for none.
        blocks: block of each, whole numbers, shape (e,).
        others: what entries may be near instead of 0, shape (e,).
    """
    if not values.size or not variances.any():
        return values.copy(), np.zeros_like(values)
    return _posterior(values, variances, blocks, (np.zeros_like(values), *others))


Noisy: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Values, variances of their noise, block of each, and what they lie about, shape (e,) each."""


def toward(
    values: np.ndarray,
    variances: np.ndarray,
    blocks: np.ndarray,
    centres: np.ndarray,
    sums: Noisy | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy entries as if their centres had been measured too, and the variances left, shapes (e,).

    The noise of the centres is what deviations of a block, and of all blocks of its kind, show.

    Args:
        values: noisy entries, shape (e,).
        variances: of the noise of each, shape (e,); all 0 for none.
        blocks: block of each, whole numbers, shape (e,).
        centres: of the entries by another source, shape (e,).
        sums: of entries, with less noise, of the same blocks: these say how far the centres are off, by default the
            entries do. Where it is farther than the noise of the sums, entries stay as they were.
    """
    if not values.size or not variances.any():
        return values.copy(), np.zeros_like(values)
    return _posterior(values, variances, blocks, (centres,), sums)


def _posterior(
    values: np.ndarray,
    variances: np.ndarray,
    blocks: np.ndarray,
    centres: Sequence[np.ndarray],
    sums: Noisy | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means and variances of blocks about centres."""
    laws = [(scale, centre) for centre in centres for scale in PRIORS.scales]
    most = np.full(values.size, np.inf)
    if sums is None:
        place, posterior = _scale_weights(values, variances, blocks, laws)
    else:
        centre, known = sums[3], sums[:3]
        seen_laws = [(scale, centre) for scale in PRIORS.scales]
        posterior = _scale_weights(*known, seen_laws)[1]
        place = np.unique(blocks, return_inverse=True)[1]
        sum_place = np.unique(known[2], return_inverse=True)[1]
        most = (np.bincount(sum_place) / np.bincount(sum_place, 1 / known[1]))[place]
    moves, squares, spreads = (np.zeros_like(values) for _ in range(3))
    for s, (scale, centre) in enumerate(laws):
        weight = posterior[place, s]
        factor = np.where(scale < most, scale / (scale + variances), 1.0)
        move = (1 - factor) * (centre - values)
        moves += weight * move
        squares += weight * move**2
        spreads += weight * factor * variances
    return values + moves, spreads + np.maximum(squares - moves**2, 0.0)


def _scale_weights(
    values: np.ndarray, variances: np.ndarray, blocks: np.ndarray, laws: Sequence[tuple[float, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each entry's block, and how likely each law is of each block, shape (blocks, laws)."""
    _, place = np.unique(blocks, return_inverse=True)
    n_blocks = int(place.max()) + 1
    log_likelihoods = np.empty((n_blocks, len(laws)))
    for s, (scale, centre) in enumerate(laws):
        total = variances + scale
        log_likelihoods[:, s] = np.bincount(place, -0.5 * (np.log(total) + (values - centre) ** 2 / total), n_blocks)
    return place, special.softmax(log_likelihoods + np.log(_mixture(log_likelihoods)), axis=-1)


def shrunk_together(
    counts: Sequence[np.ndarray], noise_std: float, kinds: Sequence[object]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return every column's counts, shrunk toward the mean of the columns of the same kind, and the noise left of them.

    By the share of noise in all differences of the kind's columns: 178 readings of one instrument share their noise,
    28 components with a shape each are left alone. Where differences are noise for the most part and keep a weight w, a
    count of m columns keeps w + (1 - w)/m of its variance: the mean's, and the posterior one of a difference. A column
    that is far more unlike the middle one than columns of its kind are is no part of it, and is left alone.

    Args:
        counts: noisy, of each column.
        noise_std: of their noise.
        kinds: of the columns.
    """
    alike: dict[object, list[int]] = {}
    for j, kind in enumerate(kinds):
        alike.setdefault(kind, []).append(j)
    shrunk, stds = list(counts), np.full(len(counts), float(noise_std))
    for places in alike.values():
        together = np.stack([counts[j] for j in places])
        apart = ((together - np.median(together, axis=0)) ** 2).sum(axis=1)
        like = apart <= 2 * np.median(apart) + PRIORS.unlike * noise_std**2 * np.sqrt(2.0 * together.shape[1])
        places, together = np.array(places)[like].tolist(), together[like]
        differences = together - together.mean(axis=0)
        noise_terms = (len(places) - 1) * together.shape[1]
        weight = shrinkage_weight(float((differences**2).sum()), noise_terms * noise_std**2)
        for j, difference in zip(places, differences, strict=True):
            shrunk[j] = counts[j] - (1 - weight) * difference
        if weight < PRIORS.mostly_noise:  # others have cells that differ by more than noise, and are off by more
            stds[places] = noise_std * np.sqrt(weight + (1 - weight) / len(places))
    return shrunk, stds


def likely_counts(noisy: np.ndarray, noise_std: float | np.ndarray) -> np.ndarray:
    """Return the posterior means of many noisy counts, at least 0, shape (c,).

    Their prior is the law that makes all of them most likely (nonparametric maximum likelihood), so that hundreds of
    levels of which few are frequent keep these and share out what noise would put on the others.

    Args:
        noisy: counts, shape (c,).
        noise_std: of their noise, of all or of each; 0 for none.

    Reference: Jiang and Zhang 2009, Ann. Statist. 37(4); Efron 2010, Large-Scale Inference, chapter 1.
    """
    stds = np.asarray(noise_std, dtype=np.float64)
    if not stds.any():
        return np.maximum(noisy, 0.0)
    if stds.ndim and np.ptp(stds) > 0:
        places = np.unique(np.quantile(noisy, np.linspace(0, 1, min(noisy.size, PRIORS.counts_seen))))
        likelihood, grid = _likelihood(noisy, stds, places)
        return posteriors(likelihood, PRIORS.rounds, flat=PRIORS.flat_share) @ grid
    # of very many counts, quantiles stand for all: a posterior mean is a smooth function of the noisy count
    distinct, place = np.unique(noisy, return_inverse=True)
    if distinct.size > PRIORS.counts_seen:
        distinct = np.unique(np.quantile(noisy, np.linspace(0, 1, PRIORS.counts_seen)))
        place = np.searchsorted((distinct[1:] + distinct[:-1]) / 2, noisy)
    shares = np.bincount(place, minlength=distinct.size) / noisy.size
    likelihood, grid = _likelihood(distinct, np.full(distinct.size, stds.max()), distinct)
    posterior = posteriors(likelihood, PRIORS.rounds, shares=shares, flat=PRIORS.flat_share)
    return np.interp(noisy, distinct, posterior @ grid)


def _likelihood(noisy: np.ndarray, stds: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the likelihood of noisy counts at points of a grid, shape (c, g), up to a factor of each, and the grid."""
    least, most = PRIORS.count_reach
    top = max(float(places[-1]), float(stds.max()))
    spread = np.geomspace(float(stds.min()) / least, most * top, PRIORS.count_places)
    grid = np.unique(np.concatenate([np.zeros(1), spread, np.maximum(places, 0.0)]))
    logs = -((noisy[:, None] - grid) ** 2) / (2 * stds[:, None] ** 2)
    return np.exp(logs - logs.max(axis=1, keepdims=True)), grid


def posteriors(
    likelihood: np.ndarray, rounds: int, *, shares: np.ndarray | None = None, flat: float = 0.0, least: float = 0.0
) -> np.ndarray:
    """Return the posterior of each observation under the prior that makes all of them likeliest, shape (n, g).

    The prior is a law on g points, by expectation-maximisation (Kiefer and Wolfowitz 1956).

    Args:
        likelihood: of each observation at each point, up to a factor of its own, shape (n, g).
        rounds: of the iteration, from the uniform law.
        shares: weight of each observation, shape (n,), sum 1; by default all count alike.
        flat: share of the uniform law in the prior, so that an observation unlike all others has a posterior.
        least: the least mass of a point.
    """
    n_points = likelihood.shape[1]
    posterior, prior = likelihood, np.full(n_points, 1 / n_points)
    for _ in range(rounds):
        posterior = likelihood * prior
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)
        mean = posterior.mean(axis=0) if shares is None else shares @ posterior
        prior = np.maximum((1 - flat) * mean + flat / n_points, least)
    return posterior


def _mixture(log_likelihoods: np.ndarray) -> np.ndarray:
    """Return the most likely weights of the scales, with a little of each."""
    n_scales = log_likelihoods.shape[1]
    weights = np.full(n_scales, 1 / n_scales)
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max(axis=1, keepdims=True))
    for _ in range(PRIORS.rounds):
        joint = likelihoods * weights
        counts = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + PRIORS.blocks / n_scales
        new = counts / counts.sum()
        if np.abs(new - weights).max() < PRIORS.converged:
            return new
        weights = new
    return weights


def denoised(sums: np.ndarray, noise_std: float) -> np.ndarray:
    """Return the expected values of sums given noisy ones, where noise is not far below them. Free.

    Most items are rare, and rare ones are alike: the law of small sums is read off all of them together, as the mixture
    of points on a grid that makes the noisy ones likeliest, and each is drawn to it (empirical Bayes).

    Args:
        sums: noisy, shape (m,), of what is never below 0.
        noise_std: of each.
    """
    small = sums < _SMALL_SUMS * noise_std
    if not small.any() or noise_std <= 0:
        return sums
    grid = noise_std / _PER_STD * np.arange(_SMALL_SUMS * _PER_STD + 1)
    likelihood = np.exp(-0.5 * ((np.maximum(sums[small], -_SMALL_SUMS * noise_std)[:, None] - grid) / noise_std) ** 2)
    result = sums.copy()
    result[small] = posteriors(likelihood, _SUM_ROUNDS, least=1e-12) @ grid
    return result
