"""How many records are in each cluster, and what they hold on the mean: the start of generative networks.

    profiles    G(σ)    one-hot(a) ⊗ (w₀, w₁ clip(x, B)/B),   w₀² + w₁² = 1, x ≥ 0

a is a public rule of a record's own vector, such as the nearest of released centres. Proof: docs/proofs/kmeans.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.data.engine import Rows
from sfumato.learners.batches import VectorEncoder
from sfumato.learners.feature_kmeans import Weights
from sfumato.mechanisms.clip import clip_rows
from sfumato.mechanisms.queries import Noisy

_SQRT2 = float(np.sqrt(2))
_ROWS_AT_ONCE = 4096
_OUT_OF_NOISE = 2.0


@dataclass(frozen=True, eq=False)
class ClusterProfiles:
    """Per cluster, w₀ times the number of records and w₁/B times the sum of their clipped vectors.

    Norm at most 1. Entries of vectors are not negative, so two records' contributions have an inner product of at least
    0 and are at most √2 apart. Value: shape (k, 1 + m).

    Attributes:
        encoder: of coded records, to vectors of no negative entry.
        assign: vectors (n, m) → clusters (n,), row by row.
        n_clusters: k.
        clip_norm: B.
    """

    encoder: VectorEncoder
    assign: Callable[[np.ndarray], np.ndarray]
    n_clusters: int
    clip_norm: float
    name: str = "profiles of clusters"

    @property
    def weights(self) -> Weights:
        """w₀ and w₁."""
        return Weights.of(self.encoder.dimension)

    @property
    def norm_bound(self) -> float:
        """1."""
        return 1.0

    @property
    def replace_bound(self) -> float:
        """√2."""
        return _SQRT2

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros((self.n_clusters, 1 + self.encoder.dimension))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, a few at a time."""
        vectors = self.encoder.encode(rows)
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            part = vectors[start : start + _ROWS_AT_ONCE]
            member = np.eye(self.n_clusters)[self.assign(part)]
            clipped = np.maximum(clip_rows(part, self.clip_norm), 0.0)
            total[:, 0] += self.weights.count * member.sum(axis=0)
            total[:, 1:] += self.weights.sum / self.clip_norm * (member.T @ clipped)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Profiles:
    """What noisy profiles say. Free.

    Attributes:
        shares: of the records, per cluster, shape (k,); at least one record's worth each.
        means: mean vectors, shape (k, m), inside (0, 1).
    """

    shares: np.ndarray
    means: np.ndarray

    @classmethod
    def of(cls, noisy: Noisy, weights: Weights, clip_norm: float) -> Profiles:
        """Read them off a release.

        An entry below two standard deviations of its noise is taken for the mean of such entries of its cluster: most
        of the rarest items differ by noise alone. What two standard deviations of a cluster's size swallow is all
        records' mean.
        """
        counts, count_std = noisy.value[:, 0] / weights.count, noisy.noise_std / weights.count
        sums = noisy.value[:, 1:] * (clip_norm / weights.sum)
        noise_std = noisy.noise_std * clip_norm / weights.sum
        sizes = np.maximum(counts, max(1.0, _OUT_OF_NOISE * count_std))
        whole = _means(sums.sum(axis=0), float(sizes.sum()), noise_std * np.sqrt(len(sums)))
        alive = counts >= max(1.0, _OUT_OF_NOISE * count_std)
        means = [_means(s, n, noise_std) if ok else whole for s, n, ok in zip(sums, sizes, alive, strict=True)]
        shares = np.maximum(counts, 1.0)
        return cls(shares / shares.sum(), np.array(means))


def _means(sums: np.ndarray, size: float, noise_std: float) -> np.ndarray:
    low = sums < _OUT_OF_NOISE * noise_std
    pooled = max(float(sums[low].mean()), 0.5) if low.any() else 0.5
    return np.clip(np.where(low, pooled, sums) / size, 0.5 / max(size, 1.0), 1 - 0.5 / max(size, 1.0))
