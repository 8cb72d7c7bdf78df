"""Second moments of features from a noisy release: shrunk block by block, with what a Gaussian copula says as prior.

Two numbers' moments of higher order are first what a Gaussian copula with the noisy correlation of their scores says
they are, so that a near-copy is one; blocks of deviations from that are shrunk by empirical Bayes with the known noise.
Where columns are so many that single entries are lost in noise, what all of them share (low rank) is kept before.
Else moments of labels are drawn to it wherever that leaves less noise.
Free: uses released values only.

Pairs of numbers that say much of each other, and labels that are kept from one column to another, are in `pair_laws`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.maths.constants import PAIRS, PRIOR, VECTORS
from sfumato.maths.gaussian import low_rank_variances, noise_reach, shrink_spectrum, shrinkage_weight
from sfumato.maths.shrinkage import shrunk, toward
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.class_means import ClassMeans
from sfumato.methods.tables.features import LABEL, N_KINDS
from sfumato.methods.tables.moment_entries import Entries
from sfumato.methods.tables.pair_laws import Number, feasible_moments, lawful_moments
from sfumato.methods.tables.prior_rows import PriorMoments


@dataclass(frozen=True, slots=True)
class CrossMoments:
    """E[φ φᵀ] of all features, these less their offsets.

    Attributes:
        offsets: E[φ], shape (d,): 0 by the first release, unless the second says that it was wrong.
        noisy: as released, shape (d, d).
        variances: of its noise, shape (d, d); 0 of labels that are kept from one column to the other; ∞ of what was
            not measured.
        means: shrunk, shape (d, d).
        spreads: variances of what noise is left, shape (d, d).
        classes: E[φ | class], as released.
        by_class: as released, shape (k, d, d); (0, d, d) where classes were not told apart.
        class_variances: of their noise.
        groups: block of each entry, shape (d, d).
        kinds: of the features, shape (d,).
        laws: P(a, b) of runs by the places of two columns, shape (r₁, r₂), where their whole table was counted.
    """

    offsets: np.ndarray
    noisy: np.ndarray
    variances: np.ndarray
    means: np.ndarray
    spreads: np.ndarray
    classes: ClassMeans
    by_class: np.ndarray
    class_variances: np.ndarray
    groups: np.ndarray
    kinds: np.ndarray
    laws: Mapping[tuple[int, int], np.ndarray] = field(default_factory=dict)


def cross_moments(
    noisy: Noisy,
    weights: np.ndarray,
    entries: Entries,
    class_counts: np.ndarray,
    class_weight: float,
    *,
    low_rank: bool,
    earlier: PriorMoments | None = None,
) -> CrossMoments:
    """Return the moments of features.

    Args:
        noisy: the release of `TableMoments`: of features, and after them of an indicator for each class.
        weights: its α, and β of each class.
        entries: of the features.
        class_counts: estimated, shape (k,).
        class_weight: squared length of a class's indicator; 0 without a target.
        low_rank: whether what all columns share is kept before blocks are shrunk.
        earlier: what an earlier release says of the features.
    """
    (whole, variance), d, n = _pooled(noisy, weights), entries.owner.size, class_counts.sum()
    scale = np.outer(entries.roots, entries.roots) * _unclipped(whole[:d, :d], variance, entries, n)
    across = entries.owner[:, None] != entries.owner
    classes = ClassMeans.of(whole, variance, entries.roots, class_counts, class_weight)
    offsets = classes.offsets(list(entries.scores.values()) if low_rank else [], class_counts)
    classes = classes.centred(offsets, class_counts)
    released = np.where(across, whole[:d, :d] / n / scale - np.outer(offsets, offsets), 0.0)
    variances = variance / n**2 / scale**2
    noisy_moments, centres = (released, variances), [] if earlier is None else [earlier.pooled]
    if earlier is not None and not low_rank:
        released, variances = _toward(released, variances, earlier.pooled, 0 * released, across, entries)
        classes = classes.toward(earlier.means, entries.groups[0])
    prior, copied = np.zeros_like(released), []
    if low_rank and variance:
        together = shrink_spectrum(released * scale, noise_reach(np.sqrt(2 * variance) / n, d))
        prior = np.where(across, _unscaled(together, variance / n**2, scale, entries.roots), 0.0)
        classes = classes.shifted_together(together, entries.roots)
    if variance:
        prior = _copula_moments(prior if low_rank else released, entries, prior)
        copied = _set_copies(prior, released, variances, entries)
    means, spreads = _shrunk_pairs(
        *noisy_moments, prior, across, entries, *centres, shared=variance > 0 and not low_rank and earlier is None
    )
    if variance and not low_rank:
        _set_strong_pairs(means, spreads, released, variances, entries)
    variances = _set_lawful(means, spreads, variances, entries, copied)
    by_class, class_variances = _by_class(noisy, weights, class_counts, scale)
    if len(by_class):
        by_class -= _moments_of_offsets(offsets, classes)
        by_class, class_variances = _apart(by_class, class_variances, means, scale, across, entries, earlier, low_rank)
    spreads = np.maximum(spreads, PAIRS.least_variance * variances)
    return CrossMoments(
        offsets, released, variances, means, spreads, classes, by_class, class_variances, entries.groups, entries.kinds
    )


def measured_moments(released: np.ndarray, variances: np.ndarray, entries: Entries, n_classes: int = 1) -> CrossMoments:
    """The moments of features of which some were measured, each with noise of its own.

    Args:
        released: E[φ φᵀ] of features of different columns, shape (d, d); 0 where not measured.
        variances: of its noise, shape (d, d); ∞ where not measured.
        entries: of the features.
        n_classes: of a target, whose classes were not told apart.
    """
    d, nothing = entries.owner.size, np.zeros_like(released)
    measured = (entries.owner[:, None] != entries.owner) & np.isfinite(variances)
    noisy = bool(variances[measured].any())
    prior = _copula_moments(released, entries, nothing) if noisy else nothing
    means, spreads = _shrunk_pairs(released, variances, prior, measured, entries)
    if noisy:
        _set_strong_pairs(means, spreads, released, variances, entries)
    left = np.where(measured, np.maximum(spreads, PAIRS.least_variance * variances), np.inf)
    none, of_classes = np.zeros((0, d, d)), np.zeros((n_classes if n_classes > 1 else 0, d))
    classes = ClassMeans(of_classes, of_classes + PAIRS.unmeasured)
    return CrossMoments(
        np.zeros(d), released, variances, means, left, classes, none, none, entries.groups, entries.kinds
    )


def _toward(
    released: np.ndarray,
    variances: np.ndarray,
    centres: np.ndarray,
    default: np.ndarray,
    across: np.ndarray,
    entries: Entries,
) -> tuple[np.ndarray, np.ndarray]:
    """Return moments with what an earlier release says of them, and the variances left: some noise always is."""
    means, left = np.zeros_like(released), np.zeros_like(released)
    for here in _by_kind(across, entries):
        known = (released[here], variances[here], entries.groups[here], centres[here], default[here])
        means[here], left[here] = toward(*known)
    means, left = means + means.T, left + left.T
    return means, np.where(across, np.maximum(left, PRIOR.least_variance * variances), variances)


def _apart(
    by_class: np.ndarray,
    variances: np.ndarray,
    pooled: np.ndarray,
    scale: np.ndarray,
    across: np.ndarray,
    entries: Entries,
    earlier: PriorMoments | None,
    low_rank: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the moments of classes: of low rank about the pooled ones, or with what an earlier release says."""
    if low_rank:
        by_class = _low_rank_classes(by_class - pooled, variances * scale**2, scale, entries.roots, across) + pooled
        return by_class, variances * PAIRS.least_variance
    if earlier is None:
        return by_class, variances
    moments, left = [], []
    for own, variance, centres in zip(by_class, variances, earlier.by_class, strict=True):
        both = _toward(own, np.broadcast_to(variance, own.shape), centres, pooled, across, entries)
        moments.append(both[0])
        left.append(both[1])
    return np.array(moments), np.array(left)


def _by_kind(across: np.ndarray, entries: Entries) -> Iterator[np.ndarray]:
    """Yield where the pairs of features of the same two kinds are, each pair once, shape (d, d) bool."""
    upper, kinds = np.triu(across), entries.kinds
    codes = np.minimum(kinds[:, None], kinds) * N_KINDS + np.maximum(kinds[:, None], kinds)
    for code in np.unique(codes[upper]):
        yield upper & (codes == code)


def _set_shared(
    means: np.ndarray, spreads: np.ndarray, released: np.ndarray, variances: np.ndarray, entries: Entries
) -> None:
    """Put in moments drawn to what all columns share, of each two kinds with labels that are known better so.

    Six services that a household without Internet lacks say the same: of low rank, they are known by all six together.
    What is of low rank holds a part of the noise (`low_rank_variances`), deviations from it the rest. Numbers alone
    have a better prior in the copula.
    """
    across = entries.owner[:, None] != entries.owner
    deviations = np.sqrt(variances)  # the noise of a release, in whose units it is the same everywhere
    noisy = np.where(across, released / deviations, 0.0)
    whole, together, edge = noisy, noisy, noise_reach(np.sqrt(2), len(across))
    for _ in range(PAIRS.shared_rounds):  # what a column says of itself is in no release: it is completed
        together = shrink_spectrum(whole, edge)
        whole = np.where(across, noisy, together)
    part = np.clip(low_rank_variances(together, 1.0), 0.0, PAIRS.most_shared)
    centres = together * deviations
    for here in _by_kind(across, entries):
        rows, columns = np.nonzero(here)
        if LABEL not in (entries.kinds[rows[0]], entries.kinds[columns[0]]):
            continue
        noise = variances[here]
        moved, left = shrunk((released - centres)[here], noise * (1 - part[here]), entries.groups[here])
        left = left + noise * part[here]
        if (left / noise).sum() < (spreads[here] / noise).sum():
            moments = np.clip(centres[here] + moved, -1.0, 1.0)
            means[rows, columns], means[columns, rows] = moments, moments
            spreads[rows, columns], spreads[columns, rows] = left, left


def _set_strong_pairs(
    means: np.ndarray, spreads: np.ndarray, released: np.ndarray, variances: np.ndarray, entries: Entries
) -> None:
    """Put in the moments of pairs of numbers that say much of each other."""
    scores, groups = list(entries.scores.items()), entries.groups
    strengths = np.abs(np.triu(means[np.ix_([p for _, p in scores], [p for _, p in scores])], 1))
    strongest = np.argsort(-strengths, axis=None, kind="stable")[: PAIRS.most_strong]
    for a, b in zip(*np.unravel_index(strongest, strengths.shape), strict=True):
        if strengths[a, b] >= PAIRS.strong:
            (i, place), (j, other) = scores[a], scores[b]
            rows, columns = entries.block(i), entries.block(j)
            first = Number(entries.shares[i], entries.values[i], place - rows.start)
            second = Number(entries.shares[j], entries.values[j], other - columns.start)
            blocks = np.unique(groups[rows, columns], return_inverse=True)[1].reshape(means[rows, columns].shape)
            rho = float(np.clip(means[place, other], -PAIRS.most_correlation, PAIRS.most_correlation))
            noisy = released[rows, columns], variances[rows, columns]
            feasible = feasible_moments(first, second, *noisy, blocks, rho)
            means[rows, columns], means[columns, rows] = feasible, feasible.T
            spreads[rows, columns] = spreads[columns, rows] = 0.0


def _set_copies(
    prior: np.ndarray, released: np.ndarray, variances: np.ndarray, entries: Entries
) -> list[tuple[int, int]]:
    """Put in the moments of copies in part, as a prior, and return the columns of which labels are kept."""
    copied = []
    for copy in entries.copies:
        i, j = copy.columns
        rows, columns = entries.block(i), entries.block(j)
        rho = copy.kept(released[rows, columns], variances[rows, columns])
        if rho:
            prior[rows, columns] = rho * copy.moments
            prior[columns, rows] = prior[rows, columns].T
            copied.append(copy.columns)
    return copied


def _set_lawful(
    means: np.ndarray, spreads: np.ndarray, variances: np.ndarray, entries: Entries, pairs: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Put in the moments of a law near those of pairs of labels, and return the variances, 0 for them.

    A fit need not allow for noise in them, nor leave a label out because its own moments are noise.
    """
    left = variances.copy()
    for i, j in pairs:
        rows, columns = entries.block(i), entries.block(j)
        shares, values = (entries.shares[i], entries.shares[j]), (entries.values[i], entries.values[j])
        means[rows, columns] = lawful_moments(means[rows, columns], shares, values)
        means[columns, rows] = means[rows, columns].T
        for array in (spreads, left):
            array[rows, columns] = array[columns, rows] = 0.0
    return left


def _by_class(
    noisy: Noisy, weights: np.ndarray, class_counts: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the moments of each class and the variances of their noise, shapes (k, d, d), or (0, d, d)."""
    d = len(scale)
    if weights.size == 1:
        return np.zeros((0, d, d)), np.zeros((0, d, d))
    sizes = weights[1:] * class_counts
    noise = noisy.noise_std / np.sqrt(2) / sizes
    return noisy.value[1:, :d, :d] / sizes[:, None, None] / scale, noise[:, None, None] ** 2 / scale**2


def _moments_of_offsets(offsets: np.ndarray, classes: ClassMeans) -> np.ndarray:
    """Return what offsets o of features of class means m + o add to their moments: oo' + om' + mo', shape (k, d, d)."""
    crossed = offsets[:, None] * classes.means[:, None, :]
    return np.outer(offsets, offsets) + crossed + crossed.transpose(0, 2, 1)


def _low_rank_classes(
    deviations: np.ndarray, variances: np.ndarray, scale: np.ndarray, roots: np.ndarray, across: np.ndarray
) -> np.ndarray:
    """Return what of the classes' deviations stands above the edge of their noise's spectrum.

    Args:
        deviations: shape (k, d, d).
        variances: of the noise of their products with `scale`: of a class, the same everywhere, shape (k, d, d).
        scale: shape (d, d).
        roots: of the features' weights, shape (d,).
        across: whether two entries are of two columns, shape (d, d).
    """
    low_rank = np.zeros_like(deviations)
    if not across.size:  # every column has one value: nothing can deviate
        return low_rank
    for k, variance in enumerate(variances):
        edge = noise_reach(float(np.sqrt(2 * variance[0, 0])), len(across))
        inside = np.where(across, deviations[k] * scale, 0.0)
        together = shrink_spectrum(inside, edge)
        low_rank[k] = np.where(across, _unscaled(together, float(variance[0, 0]), scale, roots), 0.0)
    return low_rank


def _unscaled(together: np.ndarray, variance: float, scale: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Moments of features of variance 1, of those that all columns share in the units of the noise, shape (d, d).

    A feature of next to no weight, as of a level that no record has, has next to no moments in these units; what noise
    has left of them, divided by the weight, would be any number. Each is the posterior mean under N(0, τ²), where τ² is
    at most 1, and of a level of share p about p: the means of others in it are about 1 deviation off, times √p.

    Args:
        together: of low rank, shape (d, d).
        variance: of the noise off the diagonal.
        scale: what moments were multiplied by, shape (d, d).
        roots: of the features' weights, shape (d,).
    """
    most = np.minimum(1.0, PAIRS.most_square * roots**2)
    prior = np.outer(most, most)
    return together / scale * prior / (prior + low_rank_variances(together, variance) / scale**2)


def _unclipped(pooled: np.ndarray, variance: float, entries: Entries, n: float) -> np.ndarray:
    """Return which part of each product clipping has left, from the columns' own squares, shape (d, d).

    Clipping weighs long records down; a column's squares have a known mean. Columns differ as far as noise shows.
    """
    columns = len(entries.hermite)
    sizes = np.bincount(entries.owner, minlength=columns)
    weights = np.maximum(np.bincount(entries.owner, entries.roots**2, columns), 1e-12)
    own = np.bincount(entries.owner, np.diagonal(pooled), columns) / n / weights
    noise = 2 * variance * sizes / (n * weights) ** 2
    precision = weights**2 / np.maximum(sizes, 1)
    together = float((own * precision).sum() / precision.sum())
    present = sizes > 0
    shrink = shrinkage_weight(float(((own - together) ** 2)[present].sum()), float(noise[present].sum()))
    parts = np.clip(together + shrink * (own - together), PAIRS.least_clipped, 1.0)
    roots = np.sqrt(parts)[entries.owner]
    return np.outer(roots, roots)


def _pooled(noisy: Noisy, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the sum over all records from both ways it was released, and the noise variance off its diagonal."""
    noise = noisy.noise_std / np.sqrt(2) / weights
    pooled, variance = noisy.value[0] / weights[0], float(noise[0] ** 2)
    if weights.size == 1:
        return pooled, variance
    summed, summed_variance = noisy.value[1:].sum(axis=0) / weights[1], float((noise[1:] ** 2).sum())
    part = variance / (variance + summed_variance) if variance else 0.0
    return (1 - part) * pooled + part * summed, (1 - part) ** 2 * variance + part**2 * summed_variance


def _copula_moments(correlations: np.ndarray, entries: Entries, prior: np.ndarray) -> np.ndarray:
    """Return the prior with what a Gaussian copula of these correlations says of two numbers' other moments."""
    moments = prior.copy()
    powers, most = np.arange(1, VECTORS.hermite_terms + 1), PAIRS.most_correlation
    scores = list(entries.scores.items())
    for a, (i, place) in enumerate(scores):
        for j, other in scores[a + 1 :]:
            first, second = entries.hermite[i], entries.hermite[j]
            if first is None or second is None or len(first) == 1 == len(second):
                continue  # scores alone have no other moments
            rows, columns = entries.block(i), entries.block(j)
            largest = first[place - rows.start, 0] * second[other - columns.start, 0]
            rho = float(np.clip(correlations[place, other] / largest, -most, most))
            block = (first * rho**powers) @ second.T
            # a correlation that noise has taken beyond 1 is brought back; others are what they were released as
            block[place - rows.start, other - columns.start] = rho * largest
            moments[rows, columns], moments[columns, rows] = block, block.T
    return moments


def _shrunk_pairs(
    released: np.ndarray,
    variances: np.ndarray,
    prior: np.ndarray,
    across: np.ndarray,
    entries: Entries,
    *others: np.ndarray,
    shared: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means and variances: blocks of deviations from the prior, or others, shrunk kind by kind.

    With `shared`, those of labels are then drawn to what all columns share.
    """
    means, spreads, groups = np.zeros_like(released), np.zeros_like(released), entries.groups
    for here in _by_kind(across, entries):
        deviations, left = shrunk(
            (released - prior)[here], variances[here], groups[here], *((other - prior)[here] for other in others)
        )
        means[here], spreads[here] = prior[here] + deviations, left
    # features have variance 1: what noise has taken beyond a copy's moment is brought back
    means, spreads = np.clip(means + means.T, -1.0, 1.0), spreads + spreads.T
    if shared:
        _set_shared(means, spreads, released, variances, entries)
    return means, spreads
