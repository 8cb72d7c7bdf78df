"""`DPKMeans`: k-means by noisy sums, with the interface of scikit-learn's."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin

from sfumato.errors import ConfigError, require_integer
from sfumato.estimators.base import PrivateEstimator, Session
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.mixtures.centres import CentreGrid, nearest, random_centres, squared_distances
from sfumato.methods.mixtures.kmeans import ClusterSums, GridCounts, fit_kmeans, kmeans_stages
from sfumato.models.mixtures.samplers import CentrePoints
from sfumato.privacy.budget import NonPrivate
from sfumato.privacy.plan import Stage


class DPKMeans(TransformerMixin, PrivateEstimator):
    """k-means under (ε, δ)-differential privacy, by noisy Lloyd iterations.

    From the second iteration on, records add their distances from the centres released before, which need less noise
    than the records themselves; a cluster that the noise swallows becomes one half of the largest one.

    Args:
        n_clusters: k ≥ 1.
        epsilon: ε in nats, or `NonPrivate()` for no noise at all.
        delta: δ; by default min(1e-5, 0.1/n_public).
        n_public: the public number of rows; required.
        bounds: (lower, upper) of the columns, public; required here or in `fit`. All columns share one scale.
        clip_norm: norm beyond which records are shrunk, where half the widest column's bounds is 1; by default √q.
        iterations: J ≥ 1.
        start: "grid": counts of a public grid's cells are bought, up to 3 columns; "random": centres are drawn from the
            ball, and no record is used; "auto": the first where it is possible; or public centres in data units, of
            shape (k, q).
        seed: for tests and papers only: reproducible noise, and a certificate that says it is not private.

    Attributes:
        cluster_centers_: shape (k, q), data units.
        sizes_: noisy numbers of records of the last iteration, shape (k,).
        certificate_: what the fit cost.
        releases_: the noisy statistics, in order.

    There is no `labels_` and no `inertia_`: they would be values of the records.
    """

    method: ClassVar[str] = "dp-kmeans"
    _isotropic: ClassVar[bool] = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float | NonPrivate = 1.0,
        delta: float | None = None,
        n_public: int | None = None,
        bounds: Any = None,  # noqa: ANN401
        clip_norm: float | None = None,
        iterations: int = 7,
        start: str | np.ndarray = "auto",
        seed: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.n_public = n_public
        self.bounds = bounds
        self.clip_norm = clip_norm
        self.iterations = iterations
        self.start = start
        self.seed = seed

    def _grid(self, dimension: int) -> CentreGrid | None:
        if not isinstance(self.start, str) or self.start == "random":
            return None
        grid = CentreGrid.of(dimension)
        if grid is None and self.start == "grid":
            raise ConfigError(f'Expected at most 3 columns for start="grid", got {dimension}. Use start="random".')
        return grid

    def _stages(self, dimension: int) -> tuple[Stage, ...]:
        require_integer(at_least=1, n_clusters=self.n_clusters)
        require_integer(at_least=1, iterations=self.iterations)
        if isinstance(self.start, str):
            if self.start not in ("auto", "grid", "random"):
                raise ConfigError(
                    f'Expected start to be "auto", "grid", "random" or centres, got start={self.start!r}.'
                )
        elif np.shape(self.start) != (self.n_clusters, dimension) or not np.isfinite(self.start).all():
            raise ConfigError(f"Expected finite centres of shape {(self.n_clusters, dimension)} as start, got others.")
        return kmeans_stages(
            "kmeans",
            dimension=dimension,
            iterations=self.iterations,
            grid=self._grid(dimension),
        )

    def _run(self, session: Session) -> list[Noisy]:
        start: np.ndarray | CentreGrid | None = self._grid(session.dimension)
        if start is None:
            start = (
                random_centres(self.n_clusters, session.dimension, session.rng)
                if isinstance(self.start, str)
                else session.ball.inside(np.asarray(self.start, dtype=np.float64))
            )
        found = fit_kmeans(
            session.records,
            session.ball.vectors,
            start,
            n_clusters=self.n_clusters,
            stage="kmeans",
            ledger=session.ledger,
            noise=session.noise,
            rng=session.rng,
        )
        self._ball, self._centres, self.sizes_ = session.ball, found.centres, found.counts
        self.cluster_centers_ = session.ball.outside(found.centres)
        return list(found.releases)

    def _sampler(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"name": CentrePoints.name}, {"centres": self.cluster_centers_, "sizes": self.sizes_}

    def _measured(self, noisy: Noisy) -> str:
        return GridCounts.name if noisy.value.ndim == 1 else ClusterSums.name

    def predict(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the nearest centre of each row, shape (n,)."""
        points = self._points(X)
        return nearest(points, self._centres)

    def transform(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the distance of each row to each centre, data units, shape (n, k)."""
        points = self._points(X)
        return np.sqrt(squared_distances(points, self._centres)) * self._ball.scale[0]

    def score(self, X: Any, y: object = None) -> float:  # noqa: ANN401
        """Return minus the summed squared distance of rows to their nearest centres, data units."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())
