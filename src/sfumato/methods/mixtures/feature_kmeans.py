"""Private k-means of records mapped to vectors of norm at most 1.

    counts and sums of clusters    G(σ), T times    one-hot(a) ⊗ (w₀, w₁z),   ‖z‖ ≤ 1, w₀² + w₁² = 1

a is the centre nearest to z, of centres that earlier releases determine: all records are assigned before any centre
moves. Counts and sums are one Gaussian event per iteration, with shares w² of its squared budget in proportion to 1 and
√d. With the features of `sfumato.maths.fourier`, this is kernel k-means. Proof: docs/proofs/kmeans.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from sfumato.errors import ConfigError, require_integer
from sfumato.maths.fourier import fixed_product
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.contributions import clip_rows, step_of, whole_rows
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import Noisy, noisy_sum
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Stage
from sfumato.records.engine import Records, Rows, reduce

Vectors = Callable[[Rows], np.ndarray]
"""A public map from n coded records to vectors, shape (n, d); longer ones than 1 are clipped."""

_LEAST_COUNT = 3.0  # noise standard deviations; a cluster with fewer records is dead
_LEAST_REACH = 0.1
_SPLIT = 0.1  # length of the random vectors by which a cluster that is split is parted


@final
@dataclass(frozen=True, slots=True)
class Weights:
    """How a record's contribution is divided: w₀ for the count, w₁ for the vector, w₀² + w₁² = 1."""

    count: float
    sum: float

    @classmethod
    def of(cls, dimension: int) -> Weights:
        """Return weights whose squares are in proportion to √1 and √d: least total variance of counts and sums."""
        share = 1 / (1 + math.sqrt(require_integer(at_least=1, dimension=dimension)))
        return cls(math.sqrt(share), math.sqrt(1 - share))

    @property
    def replace_distance(self) -> float:
        """Largest distance between two records' contributions: √max(2w₀² + 2w₁², 4w₁²)."""
        return math.sqrt(max(2 * self.count**2 + 2 * self.sum**2, 4 * self.sum**2))


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Per cluster, w₀ times the number of records and w₁/R times the sum of their vectors' distances from an origin.

    Distances are clipped to R, so the norm is at most 1; two records of one cluster are at most 2w₁ apart, of two
    clusters √2. Value: shape (k, 1 + d).

    Attributes:
        vectors: the map from records.
        centres: shape (k, d); the nearest is a record's cluster.
        origins: of distances, shape (k, d), from earlier releases; by default 0.
        reach: R, from earlier releases.
    """

    vectors: Vectors
    centres: np.ndarray
    origins: np.ndarray | None = None
    reach: float = 1.0
    name: str = "counts and sums of clusters"

    @property
    def weights(self) -> Weights:
        """w₀ and w₁."""
        return Weights.of(self.centres.shape[1])

    @property
    def norm_bound(self) -> float:
        """1."""
        return 1.0

    @property
    def replace_bound(self) -> float:
        """√max(2, 4w₁²)."""
        return self.weights.replace_distance

    @property
    def step(self) -> np.ndarray:
        """w₀ for counts, w₁/2^26 for sums, shape (1 + d,)."""
        return np.r_[self.weights.count, np.full(self.centres.shape[1], step_of(self.weights.sum))]

    def zero(self) -> np.ndarray:
        """Return zeros."""
        k, d = self.centres.shape
        return np.zeros((k, 1 + d))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records."""
        vectors = clip_rows(self.vectors(rows), 1.0)
        nearest = nearest_centre(vectors, self.centres)
        total[:, 0] += np.bincount(nearest, minlength=len(total))
        distances = vectors if self.origins is None else vectors - self.origins[nearest]
        whole = whole_rows(distances, self.reach)
        for cluster in np.unique(nearest):
            total[cluster, 1:] += whole[nearest == cluster].sum(axis=0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """What was released of the clusters.

    Attributes:
        centres: shape (k, d), of norm at most 1.
        counts: noisy numbers of records that were nearest to the centres before these last moved, shape (k,).
        count_std: standard deviation of the noise of a count.
        releases: the noisy statistics, one per iteration, that all of it follows from.
    """

    centres: np.ndarray
    counts: np.ndarray
    count_std: float
    releases: tuple[Noisy, ...]

    @property
    def shares(self) -> np.ndarray:
        """The clusters' shares of the records, shape (k,): counts from 0 on, normalised; equal if there is none."""
        counts = np.maximum(self.counts, 0.0)
        total = counts.sum()
        return counts / total if total > 0 else np.full(counts.size, 1 / counts.size)


def nearest_centre(vectors: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return which centre is nearest to each vector, the first of equals, shape (n,).

    A row's answer does not depend on the other rows, to the last bit: the rule is a step, and a rounding that changed
    with the neighbours of a record could move many records across it.
    """
    scores = fixed_product(vectors, centres.T) - 0.5 * np.einsum("ij,ij->i", centres, centres)
    return np.argmax(scores, axis=1)


def random_centres(n_clusters: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Return random unit vectors, shape (k, d): a start that needs no data."""
    return _unit(rng.standard_normal((n_clusters, dimension)))


def kmeans_stage(name: str, *, dimension: int, n_iterations: int, noise_multiplier: float = 1.0) -> Stage:
    """Return the stage of the plan that `fit_kmeans` charges.

    Args:
        name: of the stage.
        dimension: d, length of the vectors.
        n_iterations: T; the plan's noise is calibrated for all of them.
        noise_multiplier: relative to the other stages of the plan.
    """
    return Stage(
        name=name,
        noise_multiplier=noise_multiplier,
        replace_distance=Weights.of(dimension).replace_distance,
        count=n_iterations,
        measures="per cluster, how many records, and the sum of their vectors",
    )


def fit_kmeans(
    records: Records,
    vectors: Vectors,
    start: np.ndarray,
    *,
    stage: str,
    ledger: Ledger,
    noise: NoiseSource,
    rng: np.random.Generator | None = None,
    recentred: bool = True,
) -> Clusters:
    """Fit clusters: as many rounds of Lloyd's algorithm as the stage has events.

    From the second round on a record adds its distance from its centre, clipped to about what such distances are by
    the releases before: centres that are near their records need less noise.

    A centre is its noisy sum ÷ its noisy count, brought into the unit ball. A cluster whose noisy count is below three
    standard deviations of its noise, or below one, is dead: it becomes one half of the largest cluster. That uses
    released values and public randomness only.

    Privacy: `count` events `Gaussian(σ)` of the stage. One record adds one-hot(a) ⊗ (w₀, w₁z), of norm at most 1, to
        each release; replace distance √max(2, 4w₁²). Proof: docs/proofs/kmeans.md.

    Args:
        records: coded records.
        vectors: public map to vectors; those longer than 1 are clipped to it.
        start: centres to start from, shape (k, d): `random_centres`, or vectors of *public* records.
        stage: name of the stage to charge.
        ledger: charged before the noise of each iteration is drawn.
        noise: the door of randomness.
        rng: public randomness for splitting clusters; by default always the same.
        recentred: whether distances are taken from centres; if not, from 0 in all rounds, as published.

    Raises:
        ConfigError: the start is no finite array of shape (k, d).
        LedgerError: the plan has another stage next.
    Reference: Su et al. 2016 (DPLloyd) with counts and sums as one Gaussian; kernel: Acs et al. 2018.
    """
    centres = np.array(start, dtype=np.float64)
    if centres.ndim != 2 or not centres.size or not np.isfinite(centres).all():
        raise ConfigError(f"Expected finite centres of shape (k, d) to start from, got shape {centres.shape}.")
    rng = public_stream(0) if rng is None else rng
    weights = Weights.of(centres.shape[1])
    centres = _into_ball(centres)
    releases: list[Noisy] = []
    counts, count_std = np.zeros(len(centres)), 0.0
    origins, reach = np.zeros_like(centres), 1.0
    for _ in range(ledger.plan[stage].count):
        statistic = ClusterSums(vectors, centres, origins, reach)
        released = noisy_sum(reduce(statistic, records), stage=stage, ledger=ledger, noise=noise)
        releases.append(released)
        counts, count_std = released.value[:, 0] / weights.count, released.noise_std / weights.count
        sum_std, least = released.noise_std * reach / weights.sum, max(1.0, _LEAST_COUNT * count_std)
        sums = released.value[:, 1:] * (reach / weights.sum) + np.maximum(counts, least)[:, None] * origins
        centres = moved(counts, sums, centres, least, rng)
        if recentred:
            origins, reach = centres, reach_of(centres, counts, least, sum_std)
    return Clusters(centres, counts, count_std, tuple(releases))


def moved(
    counts: np.ndarray, sums: np.ndarray, centres: np.ndarray, least: float, rng: np.random.Generator
) -> np.ndarray:
    """Return the next centres for noisy counts and sums; a function of released values and public randomness.

    Args:
        counts: shape (k,).
        sums: shape (k, d).
        centres: the centres so far, for when no cluster is alive.
        least: count below which a cluster is dead.
        rng: for the random parts of dead clusters' new centres.
    """
    alive = counts >= least
    means = _into_ball(sums / np.maximum(counts, least)[:, None])
    if not alive.any():
        return random_centres(len(centres), centres.shape[1], rng)
    left = np.where(alive, counts, 0.0)
    for dead in np.flatnonzero(~alive):
        largest = int(np.argmax(left))
        means[dead] = _into_ball(means[[largest]] + _SPLIT * random_centres(1, means.shape[1], rng))[0]
        left[largest] /= 2
        left[dead] = left[largest]
    return means


def reach_of(centres: np.ndarray, counts: np.ndarray, least: float, sum_std: float) -> float:
    """Return about how far records of norm 1 are from their centres: √(1 − ‖c‖²), c without its noise. Free.

    Args:
        centres: shape (k, d).
        counts: noisy, shape (k,).
        least: count below which a cluster is dead.
        sum_std: standard deviation of the noise of an entry of a sum.
    """
    weights = np.where(counts >= least, counts, 0.0)
    noise = centres.shape[1] * (sum_std / np.maximum(counts, least)) ** 2
    squares = 1 - np.einsum("ij,ij->i", centres, centres) + 2 * noise
    mean = float(weights @ squares / weights.sum()) if weights.any() else 1.0
    return float(np.clip(np.sqrt(max(mean, 0.0)), _LEAST_REACH, 1.0))


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _into_ball(vectors: np.ndarray) -> np.ndarray:
    """Return vectors brought to norm at most 1."""
    return vectors / np.maximum(1.0, np.linalg.norm(vectors, axis=1, keepdims=True))
