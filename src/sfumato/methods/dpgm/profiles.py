"""How many records are in each cluster, and what they hold on the mean: the start of generative networks.

    profiles    G(σ)    (w₀ e_a, w₁ e_a ⊗ x', w₂ x'),   x' = clip(x, B)/B, x ≥ 0, w₀² + w₁² + w₂² = 1

a is a public rule of a record's own vector, such as the nearest of released centres. The sum over all records is
measured beside those of clusters, as the noise of k sums adds up. Proof: docs/proofs/kmeans.md.

How long sets are, on the mean: from it follows how far apart two of them lie.

total length    G(σ)    a set's number of items, at most L
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import special

from sfumato.maths.shrinkage import denoised
from sfumato.maths.streams import public_stream
from sfumato.methods.mixtures.kmeans import Weights
from sfumato.methods.nets.batches import VectorEncoder
from sfumato.models.nets.decoder import Calibration
from sfumato.models.nets.ensemble import Decoders, Machines
from sfumato.models.nets.flat import AnyVectors, RankVectors
from sfumato.plugins import Noisy, NonNegativeSum, Rows, SetEncoder, step_of, whole_rows

_ROWS_AT_ONCE = 4096
_OUT_OF_NOISE = 2.0
_HARDLY = 1e-6  # what the sum over all records weighs beside that of the only cluster, which is the same
_LEAST = 0.5  # records, that an entry stands for at least
_CALIBRATION_SEED = 2
_DRAWS, _TABLE_DRAWS = 8192, 20_000
_ROUNDS, _CLOSE, _LARGEST_SHIFT = 20, 1e-3, 8.0


@dataclass(frozen=True, eq=False)
class ClusterProfiles(NonNegativeSum):
    """Sizes of clusters, and sums of clipped vectors by cluster and over all records.

    Norm at most 1. Entries of vectors are not negative, so two records' contributions have an inner product of at least
    0 and are at most √2 apart. Value: shape (k + 1, 1 + m): a row per cluster, of w₀ times its size and w₁/B times its
    sum; then one for all records, of 0 and w₂/B times theirs.

    Attributes:
        encoder: of coded records, to vectors of no negative entry.
        assign: vectors (n, m) → clusters (n,), row by row.
        n_clusters: k.
        clip_norm: B.
        whole: share of the sums' squared weight that the sum over all records has, in (0, 1).
    """

    encoder: VectorEncoder
    assign: Callable[[np.ndarray], np.ndarray]
    n_clusters: int
    clip_norm: float
    whole: float = 0.5
    name: str = "profiles of clusters"

    @property
    def weights(self) -> tuple[float, float, float]:
        """w₀, w₁ and w₂: as of k-means, the sums' share divided; with one cluster w₂ is next to nothing."""
        both = Weights.of(self.encoder.dimension)
        whole = self.whole if self.n_clusters > 1 else _HARDLY
        return both.count, both.sum * float(np.sqrt(1 - whole)), both.sum * float(np.sqrt(whole))

    @property
    def norm_bound(self) -> float:
        """1."""
        return 1.0

    @property
    def step(self) -> np.ndarray:
        """w₀ for sizes, w₁/2^26 and w₂/2^26 for sums: shape (k + 1, 1 + m)."""
        w0, w1, w2 = self.weights
        step = self.zero() + step_of(w1)
        step[-1], step[:, 0] = step_of(w2), w0
        return step

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros((self.n_clusters + 1, 1 + self.encoder.dimension))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, a few at a time."""
        vectors = self.encoder.encode(rows)
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            part = vectors[start : start + _ROWS_AT_ONCE]
            member = np.eye(self.n_clusters)[self.assign(part)]
            sums = member.T @ whole_rows(np.maximum(part, 0.0), self.clip_norm)
            total[:-1, 0] += member.sum(axis=0)
            total[:-1, 1:] += sums
            total[-1, 1:] += sums.sum(axis=0)

    def read(self, noisy: Noisy) -> Profiles:
        """Return what a release of it says. Free."""
        w0, w1, w2 = self.weights
        sum_unit, whole_unit = self.clip_norm / w1, self.clip_norm / w2
        return Profiles.of(
            noisy.value[:-1, 0] / w0,
            noisy.value[:-1, 1:] * sum_unit,
            noisy.value[-1, 1:] * whole_unit,
            noise_stds=(noisy.noise_std / w0, noisy.noise_std * sum_unit, noisy.noise_std * whole_unit),
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Profiles:
    """What noisy profiles say. Functions of released values.

    Attributes:
        shares: of the records, per cluster, shape (k,); at least one record's worth each.
        means: mean vectors, shape (k, m), inside (0, 1).
    """

    shares: np.ndarray
    means: np.ndarray

    @classmethod
    def of(
        cls, counts: np.ndarray, sums: np.ndarray, whole: np.ndarray, *, noise_stds: tuple[float, float, float]
    ) -> Profiles:
        """Read them off noisy sizes (k,), sums by cluster (k, m) and sums over all records (m,).

        The two kinds of sums are made to agree, by least squares, and those over all records denoised. A cluster's sum
        is drawn to its part of that over all records, by as much as their difference may be noise (James and Stein,
        entry by entry).
        """
        count_std, sum_std, whole_std = noise_stds
        k = len(counts)
        sizes = np.maximum(counts, max(1.0, _OUT_OF_NOISE * count_std))
        apart = whole - sums.sum(axis=0)
        sums = sums + apart * (sum_std**2 / max(k * sum_std**2 + whole_std**2, 1e-300))
        total, n = sums.sum(axis=0), float(sizes.sum())
        total_std = np.sqrt(k) * sum_std * whole_std / np.sqrt(max(k * sum_std**2 + whole_std**2, 1e-300))
        total = np.maximum(denoised(total, float(total_std)), _LEAST)
        expected = np.outer(sizes / n, total)
        away = sums - expected
        with np.errstate(all="ignore"):
            strengths = np.maximum(1 - (_OUT_OF_NOISE * sum_std / away) ** 2, 0.0)
        # a cluster's sum is at most its size: the noise of small clusters would take what belongs to others
        shrunk = np.clip(expected + np.where(away == 0, 0.0, strengths) * away, _LEAST / k, sizes[:, None])
        shrunk *= total / shrunk.sum(axis=0)
        least = _LEAST / n
        shares = np.maximum(counts, 1.0)
        return cls(shares / shares.sum(), np.clip(shrunk / sizes[:, None], least, 1 - least))


@dataclass(frozen=True)
class TotalLength:
    """The number of items in all sets together.

    A record adds its length, between 0 and L = min(max_length, m): norm and distance are at most L. Value: shape ().
    """

    encoder: SetEncoder
    name: str = "items in all sets"
    step: float = 1.0

    @property
    def norm_bound(self) -> float:
        """L."""
        return float(self.encoder.kind.longest)

    @property
    def replace_bound(self) -> float:
        """L."""
        return self.norm_bound

    def zero(self) -> np.ndarray:
        """Return zero."""
        return np.zeros(())

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add the lengths of some sets."""
        total += float(self.encoder.sets(rows).codes.size)


def links(means: np.ndarray, vectors: AnyVectors) -> np.ndarray:
    """Return outputs that stand for a mean vector: logits of numbers, logarithms of shares of levels."""
    outputs = special.logit(means)
    for part in vectors.parts:
        if part.levels:
            outputs[part.entries] = np.log(means[part.entries])
    return outputs


def calibrated(networks: Decoders | Machines, vectors: AnyVectors, profiles: Profiles) -> dict[str, np.ndarray]:
    """Return what brings samples to the released means: shifts per component, or, of a table, its marginals. Free."""
    k, m = profiles.means.shape
    shifts = np.zeros((k, m))
    if isinstance(vectors, RankVectors):
        rng = public_stream(_CALIBRATION_SEED, k)
        chosen = rng.choice(k, size=_TABLE_DRAWS, p=profiles.shares)
        draws = [networks.outputs(c, int((chosen == c).sum()), public_stream(_CALIBRATION_SEED, c)) for c in range(k)]
        fitted = Calibration.of(np.nan_to_num(np.concatenate(draws)), vectors.parts, vectors.targets(), rng)
        return {"component_shifts": shifts, **fitted.to_arrays()}
    for c in range(k):
        outputs = np.nan_to_num(networks.outputs(c, _DRAWS, public_stream(_CALIBRATION_SEED, c)))
        for part in vectors.parts:
            entries = part.entries
            shifts[c, entries] = _shift(outputs[:, entries], profiles.means[c, entries], levels=part.levels)
    return {"component_shifts": shifts}


def _shift(outputs: np.ndarray, means: np.ndarray, *, levels: bool) -> np.ndarray:
    """Return what to add to outputs (n, e) so that their logistic, or softmax, has given means (e,)."""
    shift = np.zeros(means.size)
    wanted = np.log(means) if levels else special.logit(means)
    for _ in range(_ROUNDS):
        moved = outputs + shift.astype(outputs.dtype)
        if levels:
            step = wanted - np.log(np.maximum(special.softmax(moved, axis=1).mean(axis=0), 1e-12))
        else:
            now = special.expit(moved).mean(axis=0, dtype=np.float64)
            step = wanted - special.logit(np.clip(now, 1e-9, 1 - 1e-9))
        shift = np.clip(shift + step, -_LARGEST_SHIFT, _LARGEST_SHIFT)
        if np.abs(step).max() < _CLOSE:
            break
    return shift
