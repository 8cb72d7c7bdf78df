"""k-means by noisy sums: one joint Gaussian release per iteration.

With z a record's vector, clipped to the unit ball here, and a(z) the indicator of its nearest centre, a record adds

    cells           G(σ'), once      indicator of the cell of a public grid           few dimensions only; the start
    clusters        G(σ), J times    (w₀a, w₁a⊗z)

All assignments of an iteration are made before any centre moves. Proof: docs/proofs/em.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.errors import require_integer
from sfumato.mechanisms.contributions import step_of, whole_rows
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import Noisy, noisy_histogram, noisy_sum
from sfumato.methods.mixtures.centres import CentreGrid, nearest
from sfumato.methods.mixtures.em_moments import Vectors, in_unit_ball
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Stage, multiplier_for_share
from sfumato.records.engine import Records, Rows, reduce

_SQRT2 = float(np.sqrt(2))
_ROWS_AT_ONCE = 16_384


def kmeans_replace_distance(count_weight: float, sum_weight: float) -> float:
    """Return the largest distance between two records' (w₀a, w₁a⊗z), ‖z‖ ≤ 1: √max(2w₀² + 2w₁², 4w₁²)."""
    return float(np.sqrt(max(2 * count_weight**2 + 2 * sum_weight**2, 4 * sum_weight**2)))


@dataclass(frozen=True)
class ClusterSums:
    """Sizes and sums of the clusters about given centres.

    A record adds (w₀, w₁z) to its cluster: norm at most √(w₀² + w₁²), two records at most `kmeans_replace_distance`
    apart. A record whose vector is not finite counts as the zero vector. Value: shape (k, 1 + q).

    Attributes:
        vectors: records → vectors, shape (n, q). Clipped here again, to norm 1.
        centres: from public facts or earlier releases, shape (k, q).
        count_weight: w₀, public.
        sum_weight: w₁, public.
    """

    vectors: Vectors
    centres: np.ndarray
    count_weight: float
    sum_weight: float
    name: str = "cluster sums"

    @property
    def norm_bound(self) -> float:
        """√(w₀² + w₁²)."""
        return float(np.hypot(self.count_weight, self.sum_weight))

    @property
    def replace_bound(self) -> float:
        """√max(2w₀² + 2w₁², 4w₁²)."""
        return kmeans_replace_distance(self.count_weight, self.sum_weight)

    @property
    def step(self) -> np.ndarray:
        """w₀ for sizes, w₁/2^26 for sums, shape (1 + q,)."""
        return np.r_[self.count_weight, np.full(self.centres.shape[1], step_of(self.sum_weight))]

    def zero(self) -> np.ndarray:
        """Return zeros."""
        k, q = self.centres.shape
        return np.zeros((k, 1 + q))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, a few at a time."""
        vectors, k = self.vectors(rows), len(self.centres)
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            points = in_unit_ball(vectors[start : start + _ROWS_AT_ONCE])
            clusters = nearest(points, self.centres)
            total[:, 0] += np.bincount(clusters, minlength=k)
            whole = whole_rows(points, 1.0)
            for j in range(points.shape[1]):
                total[:, 1 + j] += np.bincount(clusters, weights=whole[:, j], minlength=k)

    def of(self, noisy: Noisy) -> tuple[np.ndarray, np.ndarray, float]:
        """Return sizes (k,), sums (k, q) and the standard deviation of a size's noise: the weights taken off. Free."""
        sizes = noisy.value[:, 0] / self.count_weight
        sums = noisy.value[:, 1:] / self.sum_weight
        return sizes, sums, noisy.noise_std / self.count_weight


@dataclass(frozen=True)
class GridCounts:
    """Records in each cell of a public grid over the cube [−1, 1]^q: a one-hot vector each. Value: shape (cells,)."""

    vectors: Vectors
    grid: CentreGrid
    name: str = "records by cell"
    step: float = 1.0

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
        return np.zeros(self.grid.n_cells)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records."""
        cells = self.grid.cells(in_unit_ball(self.vectors(rows)))
        total += np.bincount(cells, minlength=self.grid.n_cells)


def kmeans_stages(
    name: str, *, n_clusters: int, dimension: int, iterations: int, grid: CentreGrid | None, grid_share: float = 0.2
) -> tuple[Stage, ...]:
    """Return the stages of a fit, relative noise multipliers: the counts of a grid if there is one, then J releases."""
    start: tuple[Stage, ...] = ()
    rest = 1.0
    if grid is not None:
        rest -= grid_share
        start = (
            Stage(
                name=grid_stage_name(name),
                noise_multiplier=multiplier_for_share(grid_share),
                replace_distance=_SQRT2,
                measures=f"records in each of {grid.n_cells} cells",
            ),
        )
    weights = cluster_weights(dimension)
    clusters = Stage(
        name=name,
        noise_multiplier=multiplier_for_share(rest / require_integer(at_least=1, iterations=iterations)),
        replace_distance=kmeans_replace_distance(*weights) / float(np.hypot(*weights)),
        count=iterations,
        measures=f"sizes and sums of {n_clusters} clusters",
    )
    return (*start, clusters)


def grid_stage_name(stage: str) -> str:
    """Return the name of the stage that buys the counts of a grid's cells."""
    return f"{stage}, cells of a grid"


def cluster_weights(dimension: int) -> tuple[float, float]:
    """Return (w₀, w₁), the roots of shares in proportion to √(1, q), which minimise the summed squared noise."""
    shares = np.sqrt([1.0, dimension])
    w0, w1 = np.sqrt(shares / shares.sum())
    return float(w0), float(w1)


def fit_kmeans(
    records: Records,
    vectors: Vectors,
    *,
    start: np.ndarray | CentreGrid,
    n_clusters: int,
    stage: str,
    ledger: Ledger,
    noise: NoiseSource,
    rng: np.random.Generator,
    least_size: float | None = None,
) -> tuple[np.ndarray, np.ndarray, list[Noisy]]:
    """Fit k centres by J noisy Lloyd iterations, J the count of the stage.

    Privacy: J `Gaussian(σ)` events of the stage, and with a grid one more before, of `grid_stage_name(stage)`. All are
        charged whatever is released. Proof: docs/proofs/em.md.

    Args:
        records: what `reduce` reads.
        vectors: records → vectors, shape (n, q), total; clipped to the unit ball again.
        start: public or released centres, shape (k, q); or a grid whose counts are bought: centres then start from
            k-means++ on the noisy cells.
        n_clusters: k.
        stage: name of the stage (`kmeans_stages`).
        ledger: charged before noise is drawn.
        noise: the door of randomness.
        rng: public randomness.
        least_size: a cluster of less noisy size keeps its centre; None is 4 standard deviations of a size's noise, at
            least 1.

    Returns:
        Centres, shape (k, q); noisy sizes of the last iteration, shape (k,); and all releases, in order.
    """
    released: list[Noisy] = []
    if isinstance(start, CentreGrid):
        exact = reduce(GridCounts(vectors, start), records)
        cells = noisy_histogram(exact, stage=grid_stage_name(stage), ledger=ledger, noise=noise)
        released.append(cells)
        centres = start.centres(cells.value, cells.noise_std, n_clusters, rng)
    else:
        centres = start
    weights = cluster_weights(centres.shape[1])
    sizes = np.zeros(len(centres))
    for _ in range(ledger.plan[stage].count):
        statistic = ClusterSums(vectors, centres, *weights)
        noisy = noisy_sum(reduce(statistic, records), stage=stage, ledger=ledger, noise=noise)
        released.append(noisy)
        sizes, sums, noise_std = statistic.of(noisy)
        least = max(4 * noise_std, 1.0) if least_size is None else least_size
        moved = sums / np.maximum(sizes, least)[:, None]
        moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1.0)
        centres = np.where((sizes >= least)[:, None], moved, centres)
    return centres, sizes, released
