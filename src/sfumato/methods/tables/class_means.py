"""Means of features in each class, from their noisy products with an indicator of the class.

Where columns are many, what the first release says of each is lost in noise: scores then have offsets that all classes
share, and columns that go together shift together from class to class. Both are taken into account here.
Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sfumato.maths.constants import CLASSES, PRIOR
from sfumato.maths.shrinkage import shrunk, toward


@dataclass(frozen=True, slots=True)
class ClassMeans:
    """E[φ | class].

    Attributes:
        means: shape (k, d); (0, d) without a target.
        variances: of their noise, shape (k, d).
    """

    means: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(
        cls, whole: np.ndarray, variance: float, roots: np.ndarray, class_counts: np.ndarray, class_weight: float
    ) -> ClassMeans:
        """Read them off the second moments of features and, after them, of an indicator for each class.

        Args:
            whole: summed over records, shape (d + k, d + k).
            variance: of its noise off the diagonal.
            roots: of the features' weights, shape (d,).
            class_counts: estimated, shape (k,).
            class_weight: squared length of a class's indicator; 0 without a target.
        """
        d = roots.size
        if not class_weight:
            return cls(np.zeros((0, d)), np.zeros((0, d)))
        # clipping weighs long records down; the indicator's own moment says by how much
        counts = np.clip(np.diagonal(whole)[d:] / class_weight, CLASSES.least_count * class_counts, class_counts)
        scale = np.sqrt(class_weight) * counts[:, None] * roots
        return cls(whole[d:, :d] / scale, variance / scale**2)

    def offsets(self, scores: Sequence[int] | np.ndarray, class_counts: np.ndarray) -> np.ndarray:
        """Return the means of scores over all classes, as far as they stand above their noise, shape (d,).

        They are 0 under the shares of the first release. An offset left in would stand in every moment.

        Args:
            scores: places of the features that are scores, shape (s,).
            class_counts: shape (k,).
        """
        offsets = np.zeros(self.means.shape[1])
        if len(self.means) and len(scores):
            scores = np.asarray(scores)
            parts = class_counts / class_counts.sum()
            means, noise = parts @ self.means[:, scores], parts**2 @ self.variances[:, scores]
            offsets[scores] = np.clip(shrunk(means, noise, scores)[0], -CLASSES.most_offset, CLASSES.most_offset)
        return offsets

    def centred(self, offsets: np.ndarray, class_counts: np.ndarray) -> ClassMeans:
        """Return the means less the offsets; these hold a part of each class's noise, where they are not 0."""
        if not offsets.any():
            return self
        parts = (class_counts / class_counts.sum())[:, None]
        shared = (parts**2 * self.variances).sum(axis=0)
        less = np.maximum(shared + (1 - 2 * parts) * self.variances, CLASSES.least_left * self.variances)
        return ClassMeans(self.means - offsets, np.where(offsets != 0, less, self.variances))

    def toward(self, centres: np.ndarray, kinds: np.ndarray) -> ClassMeans:
        """Return the means with what an earlier release says of them.

        Args:
            centres: by that release, shape (k, d).
            kinds: block of each feature, the same for every class, shape (d,).
        """
        if not len(self.means):
            return self
        blocks = kinds + (kinds.max() + 1) * np.arange(len(self.means))[:, None]
        shape, nothing = self.means.shape, np.zeros(self.means.size)
        means, left = toward(self.means.ravel(), self.variances.ravel(), blocks.ravel(), centres.ravel(), nothing)
        left = np.maximum(left.reshape(shape), PRIOR.least_variance * self.variances)
        return ClassMeans(means.reshape(shape), left)

    def shifted_together(self, covariance: np.ndarray, roots: np.ndarray) -> ClassMeans:
        """Return what the means say where columns that go together shift together.

        A class's shift is N(0, a·S + b·I), S the columns' covariance, a and b as likely as can be (empirical Bayes).
        What the other columns say of one is returned as a measurement of it, of known noise, so that a prior of the
        columns by themselves can follow.

        Args:
            covariance: S of features times their roots, shape (d, d); what noise would show is taken off.
            roots: shape (d,).
        """
        values, vectors = linalg.eigh(covariance)
        values = np.maximum(values, 0.0)
        if not len(self.means) or not values.any():
            return self
        squares = vectors**2
        means, variances = [], []
        for mean, variance in zip(self.means * roots, self.variances * roots**2, strict=True):
            noise = float(variance.mean())
            coordinates = vectors.T @ mean
            prior = _most_likely(coordinates**2, values, noise)
            gain = prior / (prior + noise)
            own, left, before = vectors @ (gain * coordinates), squares @ (gain * noise), squares @ prior
            precision = np.maximum(1 / left - 1 / before, 1 / noise)
            means.append(own / left / precision / roots)
            variances.append(1 / precision / roots**2)
        return ClassMeans(np.array(means), np.array(variances))


def _most_likely(squares: np.ndarray, values: np.ndarray, noise: float) -> np.ndarray:
    """Return the prior variance a·s + b of each coordinate under which squares of noisy ones are most likely."""
    best, likeliest = np.inf, values
    for along in CLASSES.along:
        for apart in CLASSES.apart:
            prior = along * values + apart
            total = prior + noise
            cost = float((np.log(total) + squares / total).sum())
            if cost < best:
                best, likeliest = cost, prior
    return likeliest
