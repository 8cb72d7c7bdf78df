"""k-means of records mapped to vectors of norm at most 1, by noisy sums: one joint Gaussian release per round.

    cells       G(σ'), once      indicator of the cell of a public grid             few dimensions only; the start
    clusters    G(σ), J times    (w₀ e_a, w₁ e_a ⊗ z'),   z' = clip(z − o_a, R)/R,   w₀² + w₁² = 1

a is the centre nearest to z, of centres that earlier releases determine: all records are assigned before any centre
moves. Origins o and the reach R are 0 and 1 in the first round, and functions of earlier releases in later ones. With
the features of `sfumato.maths.fourier`, this is kernel k-means. Proof: docs/proofs/kmeans.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import sparse

from sfumato.errors import ConfigError, require_integer
from sfumato.maths.streams import public_stream
from sfumato.methods.mixtures.centres import CentreGrid, into_ball, nearest, random_centres, random_directions
from sfumato.methods.mixtures.em_moments import Vectors, in_unit_ball
from sfumato.plugins import (
    LINEAR_BITS,
    Account,
    Counts,
    Ledger,
    NoiseSource,
    Noisy,
    Records,
    Rows,
    Stage,
    multiplier_for_share,
    step_of,
    whole_rows,
)

_SQRT2 = math.sqrt(2)
_ROWS_AT_ONCE = 16_384
_GRID_SHARE = 0.2
_LEAST_COUNT = 3.0  # noise standard deviations; a cluster with fewer records is dead
_LEAST_REACH = 0.1
_SPLIT = 0.03  # how far the two halves of a cluster that is split start from its centre


@final
@dataclass(frozen=True, slots=True)
class Weights:
    """How a record's contribution is divided: w₀ for the count, w₁ for the vector."""

    count: float
    sum: float

    @classmethod
    def of(cls, dimension: int) -> Weights:
        """Return weights whose squares are in proportion to √1 and √d, 1 in all: least variance of counts and sums."""
        share = 1 / (1 + math.sqrt(require_integer(at_least=1, dimension=dimension)))
        return cls(math.sqrt(share), math.sqrt(1 - share))

    @property
    def norm(self) -> float:
        """Largest norm of a record's contribution: √(w₀² + w₁²)."""
        return math.hypot(self.count, self.sum)

    @property
    def replace_distance(self) -> float:
        """Largest distance between two records' contributions: √max(2w₀² + 2w₁², 4w₁²)."""
        return math.sqrt(max(2 * self.count**2 + 2 * self.sum**2, 4 * self.sum**2))


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Per cluster, w₀ times the number of records and w₁/R times the sum of their vectors' distances from an origin.

    Distances are clipped to R, so the norm is at most √(w₀² + w₁²); two records of one cluster are at most 2w₁ apart,
    of two clusters √2 times the norm. A record whose vector is not finite counts as the zero vector. Value: shape
    (k, 1 + d).

    Attributes:
        vectors: records → vectors, shape (n, d). Clipped here, to norm 1.
        centres: from public facts or earlier releases, shape (k, d); the nearest is a record's cluster.
        weights: w₀ and w₁, public.
        origins: of distances, shape (k, d), from public facts or earlier releases; by default 0.
        reach: R, from public facts or earlier releases.
        bits: of vectors, such that sums over the public number of rows stay below 2^63.
    """

    vectors: Vectors
    centres: np.ndarray
    weights: Weights
    origins: np.ndarray | None = None
    reach: float = 1.0
    name: str = "cluster sums"
    bits: int = LINEAR_BITS

    @property
    def norm_bound(self) -> float:
        """√(w₀² + w₁²)."""
        return self.weights.norm

    @property
    def replace_bound(self) -> float:
        """√max(2w₀² + 2w₁², 4w₁²)."""
        return self.weights.replace_distance

    @property
    def step(self) -> np.ndarray:
        """w₀ for counts, w₁/2^bits for sums, shape (1 + d,)."""
        return np.r_[self.weights.count, np.full(self.centres.shape[1], step_of(self.weights.sum, self.bits))]

    def zero(self) -> np.ndarray:
        """Return zeros."""
        k, d = self.centres.shape
        return np.zeros((k, 1 + d))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, a few at a time."""
        vectors = self.vectors(rows)
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            points = in_unit_ball(vectors[start : start + _ROWS_AT_ONCE])
            clusters = nearest(points, self.centres)
            total[:, 0] += np.bincount(clusters, minlength=len(total))
            distances = points if self.origins is None else points - self.origins[clusters]
            whole = whole_rows(distances, self.reach, self.bits)
            # sums of whole numbers below 2^53 are exact in any order
            member = sparse.csc_array(
                (np.ones(len(points)), clusters, np.arange(len(points) + 1)), shape=(len(total), len(points))
            )
            total[:, 1:] += member @ whole

    def of(self, noisy: Noisy) -> ReadSums:
        """Take weights, reach and origins off a released value. Free."""
        unit = self.reach / self.weights.sum
        return ReadSums(
            counts=noisy.value[:, 0] / self.weights.count,
            sums=noisy.value[:, 1:] * unit,
            count_std=noisy.noise_std / self.weights.count,
            sum_std=noisy.noise_std * unit,
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class ReadSums:
    """What a release of `ClusterSums` says, in units of records and of the ball.

    Attributes:
        counts: noisy numbers of records, shape (k,).
        sums: noisy sums of distances from the origins, shape (k, d).
        count_std: standard deviation of the noise of a count.
        sum_std: of an entry of a sum.
    """

    counts: np.ndarray
    sums: np.ndarray
    count_std: float
    sum_std: float

    @property
    def least(self) -> float:
        """Count below which a cluster is dead."""
        return max(1.0, _LEAST_COUNT * self.count_std)


@dataclass(frozen=True)
class GridCounts(Counts):
    """Records in each cell of a public grid over the cube [−1, 1]^d: a one-hot vector each. Value: shape (cells,)."""

    vectors: Vectors
    grid: CentreGrid
    name: str = "records by cell"

    @property
    def squares(self) -> float:
        """1."""
        return 1.0

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(self.grid.n_cells)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records."""
        cells = self.grid.cells(in_unit_ball(self.vectors(rows)))
        total += np.bincount(cells, minlength=self.grid.n_cells)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """What was released of the clusters.

    Attributes:
        centres: shape (k, d), of norm at most 1.
        counts: noisy numbers of records that were nearest to the centres before these last moved, shape (k,).
        releases: the noisy statistics that all of it follows from, in order: counts of a grid's cells, if they were
            measured, and one per round.
    """

    centres: np.ndarray
    counts: np.ndarray
    releases: tuple[Noisy, ...]


def kmeans_stage(name: str, *, dimension: int, iterations: int, noise_multiplier: float = 1.0) -> Stage:
    """Return the stage of the plan that the rounds of `fit_kmeans` charge.

    Args:
        name: of the stage.
        dimension: d, length of the vectors.
        iterations: J; the plan's noise is calibrated for all of them.
        noise_multiplier: relative to the other stages of the plan.
    """
    weights = Weights.of(dimension)
    return Stage(
        name=name,
        noise_multiplier=noise_multiplier,
        replace_distance=weights.replace_distance / weights.norm,
        count=require_integer(at_least=1, iterations=iterations),
        measures="per cluster, how many records, and the sum of their vectors",
    )


def kmeans_stages(name: str, *, dimension: int, iterations: int, grid: CentreGrid | None) -> tuple[Stage, ...]:
    """Return the stages of a fit, relative noise multipliers: the counts of a grid if there is one, then J rounds."""
    share = 1.0 if grid is None else 1 - _GRID_SHARE
    require_integer(at_least=1, iterations=iterations)
    multiplier = multiplier_for_share(share / iterations)
    rounds = kmeans_stage(name, dimension=dimension, iterations=iterations, noise_multiplier=multiplier)
    if grid is None:
        return (rounds,)
    cells = Stage(
        name=grid_stage_name(name),
        noise_multiplier=multiplier_for_share(_GRID_SHARE),
        replace_distance=_SQRT2,
        measures=f"records in each of {grid.n_cells} cells",
    )
    return (cells, rounds)


def grid_stage_name(stage: str) -> str:
    """Return the name of the stage that measures the counts of a grid's cells."""
    return f"{stage}, cells of a grid"


def fit_kmeans(
    records: Records,
    vectors: Vectors,
    start: np.ndarray | CentreGrid,
    *,
    stage: str,
    ledger: Ledger,
    noise: NoiseSource,
    rng: np.random.Generator | None = None,
    n_clusters: int | None = None,
    recentred: bool = True,
    bits: int = LINEAR_BITS,
) -> Clusters:
    """Fit clusters: as many rounds of Lloyd's algorithm as the stage has events.

    From the second round on a record adds its distance from its centre, clipped to about what such distances are by
    the releases before: centres that are near their records need less noise.

    A centre is its noisy sum ÷ its noisy count, brought into the unit ball. A cluster whose noisy count is below three
    standard deviations of its noise, or below one, is dead: it becomes one half of the largest cluster, whose
    records are parted by a random plane. That uses released values and public randomness only.

    Privacy: `count` events `Gaussian(σ)` of the stage, and with a grid one more before, of `grid_stage_name(stage)`,
        charged whatever is released. One record adds (w₀ e_a, w₁ e_a ⊗ z') to each, of norm at most
        √(w₀² + w₁²) = 1; replace distance √max(2, 4w₁²). Proof: docs/proofs/kmeans.md.

    Args:
        records: coded records.
        vectors: public map to vectors, shape (n, d), total; those longer than 1 are clipped to it.
        start: centres to start from, shape (k, d), public or released: random ones, or vectors of *public* records. Or
            a grid whose counts are measured: centres then start from k-means++ on the noisy cells.
        stage: name of the stage to charge (`kmeans_stage`, `kmeans_stages`).
        ledger: charged before the noise of each release is drawn.
        noise: the source of randomness.
        rng: public randomness, for starts from a grid and for splitting clusters; by default always the same.
        n_clusters: k, for a start from a grid.
        recentred: whether distances are taken from centres; if not, from 0 in all rounds, as published.
        bits: of vectors, such that sums over the public number of rows stay below 2^63.

    Raises:
        ConfigError: the start is no finite array of shape (k, d), or a grid without k.
        LedgerError: the plan has another stage next.
    Reference: Su et al. 2016 (DPLloyd) with counts and sums as one Gaussian; kernel: Acs et al. 2018.
    """
    rng = public_stream(0) if rng is None else rng
    account = Account(ledger, noise)
    releases: list[Noisy] = []
    if isinstance(start, CentreGrid):
        k = require_integer(at_least=1, n_clusters=n_clusters)
        releases.append(account.measure(grid_stage_name(stage), GridCounts(vectors, start), records))
        centres = start.centres(releases[0].value, releases[0].noise_std, k, rng)
    else:
        centres = np.array(start, dtype=np.float64)
        if centres.ndim != 2 or not centres.size or not np.isfinite(centres).all():
            raise ConfigError(f"Expected finite centres of shape (k, d) to start from, got shape {centres.shape}.")
        centres = into_ball(centres)
    weights = Weights.of(centres.shape[1])
    counts = np.zeros(len(centres))
    origins, reach = np.zeros_like(centres), 1.0
    for _ in range(ledger.plan[stage].count):
        statistic = ClusterSums(vectors, centres, weights, origins, reach, bits=bits)
        releases.append(account.measure(stage, statistic, records))
        read = statistic.of(releases[-1])
        counts = read.counts
        centres = moved(read, origins, rng)
        if recentred:
            origins, reach = centres, reach_of(centres, read)
    return Clusters(centres, counts, tuple(releases))


def moved(read: ReadSums, origins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the next centres, shape (k, d); a function of released values and public randomness.

    Args:
        read: noisy counts and sums of distances.
        origins: of the distances, shape (k, d).
        rng: for the random parts of dead clusters' new centres.
    """
    counts, least = read.counts, read.least
    alive = counts >= least
    if not alive.any():
        return random_centres(len(origins), origins.shape[1], rng)
    means = into_ball(origins + read.sums / np.maximum(counts, least)[:, None])
    left = np.where(alive, counts, 0.0)
    for dead in np.flatnonzero(~alive):
        largest = int(np.argmax(left))
        # on either side of the centre, so that both halves have records however narrow the cluster is
        apart = _SPLIT * random_directions(1, means.shape[1], rng)[0]
        means[[largest, dead]] = into_ball(means[largest] + np.stack([-apart, apart]))
        left[largest] /= 2
        left[dead] = left[largest]
    return means


def reach_of(centres: np.ndarray, read: ReadSums) -> float:
    """Return about how far records of norm 1 are from their centres: √(1 − ‖c‖²), c without its noise. Free.

    Args:
        centres: shape (k, d).
        read: noisy counts, and how much noise is in sums.
    """
    weights = np.where(read.counts >= read.least, read.counts, 0.0)
    noise = centres.shape[1] * (read.sum_std / np.maximum(read.counts, read.least)) ** 2
    squares = 1 - np.einsum("ij,ij->i", centres, centres) + 2 * noise
    mean = float(weights @ squares / weights.sum()) if weights.any() else 1.0
    return float(np.clip(np.sqrt(max(mean, 0.0)), _LEAST_REACH, 1.0))
