"""`DPKMeans` and `DPKernelKMeans`: k-means by noisy sums, of rows and of their random Fourier features.

Both have the interface of scikit-learn's k-means.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin

from sfumato.errors import ConfigError, require_integer, require_positive
from sfumato.estimators.base import PrivateEstimator, Session
from sfumato.estimators.records import NumericRecords
from sfumato.maths.fourier import FourierFeatures
from sfumato.mechanisms.contributions import LINEAR_BITS, product_bits
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.mixtures.centres import CentreGrid, nearest, random_centres, random_directions, squared_distances
from sfumato.methods.mixtures.em_moments import Vectors
from sfumato.methods.mixtures.kmeans import ClusterSums, GridCounts, fit_kmeans, kmeans_stage, kmeans_stages
from sfumato.models.mixtures.mixture import CentrePoints
from sfumato.privacy.plan import Stage
from sfumato.records.engine import Rows

_FEATURE_SEED = 0
_SPREAD = 6.0  # two uniform draws from an interval of width w are w²/6 apart in the square, on the mean


class _NoisyLloyd(TransformerMixin, PrivateEstimator):
    """Noisy Lloyd iterations on vectors of norm at most 1."""

    _isotropic: ClassVar[bool] = True
    _stage: ClassVar[str]
    _starts: ClassVar[Sequence[str]]

    n_clusters: int
    iterations: int
    start: str | np.ndarray
    _centres: np.ndarray

    def _stages(self, records: NumericRecords) -> tuple[Stage, ...]:
        require_integer(at_least=1, n_clusters=self.n_clusters)
        require_integer(at_least=1, iterations=self.iterations)
        shape = (self.n_clusters, records.dimension)
        if isinstance(self.start, str):
            if self.start not in self._starts:
                words = ", ".join(f'"{start}"' for start in self._starts)
                raise ConfigError(f"Expected start to be {words} or public points, got start={self.start!r}.")
        elif np.shape(self.start) != shape or not np.isfinite(self.start).all():
            raise ConfigError(f"Expected finite points of shape {shape} as start, got others.")
        return ()

    def _lloyd(self, session: Session, vectors: Vectors, start: np.ndarray | CentreGrid) -> list[Noisy]:
        clusters = fit_kmeans(
            session.records,
            vectors,
            start,
            n_clusters=self.n_clusters,
            stage=self._stage,
            ledger=session.ledger,
            noise=session.noise,
            rng=session.rng,
            # an entry of so many bits is no larger than a product of two of half as many bits
            bits=min(LINEAR_BITS, 2 * product_bits(session.n_public, session.records.weight_bits)),
        )
        self._ball, self._centres = session.ball, clusters.centres
        self.sizes_ = clusters.counts * session.worth
        return list(clusters.releases)

    def _measured(self, noisy: Noisy) -> str:
        return GridCounts.name if noisy.value.ndim == 1 else ClusterSums.name

    def _vectors(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the caller's own rows as vectors among which centres lie."""
        return self._points(X)

    @abstractmethod
    def transform(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the distance of each row to each centre, shape (n, k)."""

    def predict(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the nearest centre of each row, shape (n,)."""
        vectors = self._vectors(X)
        return nearest(vectors, self._centres)

    def score(self, X: Any, y: object = None) -> float:  # noqa: ANN401
        """Return minus the summed squared distance of rows to their nearest centres, in the units of `transform`."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())


@dataclass(eq=False, repr=False)
class DPKMeans(_NoisyLloyd):
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
        start: "grid": noisy counts of a public grid's cells, up to 3 columns; "random": centres are drawn from the
            ball, and no record is used; "auto": the first where it is possible; or public centres in data units, of
            shape (k, q).
        seed: for tests and papers only: reproducible noise, and a certificate that says it is not private.

    Attributes:
        cluster_centers_: shape (k, q), data units.
        sizes_: noisy numbers of records, or sums of their weights, of the last iteration, shape (k,).
        certificate_: what the fit cost.
        releases_: the noisy statistics, in order.

    There is no `labels_` and no `inertia_`: they would be values of the records.
    """

    method: ClassVar[str] = "dp-kmeans"
    _stage, _starts = "kmeans", ("auto", "grid", "random")

    n_clusters: int = 8
    _: KW_ONLY
    clip_norm: float | None = None
    iterations: int = 7
    start: str | np.ndarray = "auto"

    def _grid(self, dimension: int) -> CentreGrid | None:
        if not isinstance(self.start, str) or self.start == "random":
            return None
        grid = CentreGrid.of(dimension)
        if grid is None and self.start == "grid":
            raise ConfigError(f'Expected at most 3 columns for start="grid", got {dimension}. Use start="random".')
        return grid

    def _stages(self, records: NumericRecords) -> tuple[Stage, ...]:
        super()._stages(records)
        grid = self._grid(records.dimension)
        return kmeans_stages(self._stage, dimension=records.dimension, iterations=self.iterations, grid=grid)

    def _run(self, session: Session) -> list[Noisy]:
        start: np.ndarray | CentreGrid | None = self._grid(session.records.dimension)
        if start is None:
            start = (
                random_centres(self.n_clusters, session.records.dimension, session.rng)
                if isinstance(self.start, str)
                else session.ball.inside(np.asarray(self.start, dtype=np.float64))
            )
        releases = self._lloyd(session, session.ball.vectors, start)
        self.cluster_centers_ = session.ball.outside(self._centres)
        return releases

    def _sampler(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"name": CentrePoints.name}, {"centres": self.cluster_centers_, "sizes": self.sizes_}

    def transform(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the distance of each row to each centre, data units, shape (n, k)."""
        points = self._points(X)
        return np.sqrt(squared_distances(points, self._centres)) * self._ball.scale[0]


@dataclass(eq=False, repr=False)
class DPKernelKMeans(_NoisyLloyd):
    """k-means in the feature space of an RBF kernel, under (ε, δ)-differential privacy.

    The kernel exp(−γ‖x − y‖²) is approximated by random Fourier features of norm exactly 1, so that
    records need no clipping; each iteration is one joint Gaussian release of counts and sums.

    Args:
        n_clusters: k ≥ 1.
        epsilon: ε in nats, or `NonPrivate()` for no noise at all.
        delta: δ; by default min(1e-5, 0.1/n_public).
        n_public: the public number of rows; required.
        bounds: (lower, upper) of the columns, public; required here or in `fit`. Cells outside are clamped.
        gamma: of the kernel, data units to the power −2; by default 6 ÷ Σ(upper − lower)², 1 ÷ the mean squared
            distance of records that are uniform within the bounds. Never the median distance of the records.
        n_features: Fourier features, an even number.
        iterations: J ≥ 1.
        start: "random": centres are random directions in feature space, and no record is used; or *public* records in
            data units, of shape (k, q).
        seed: for tests and papers only: reproducible noise, and a certificate that says it is not private.

    Attributes:
        feature_centers_: centres in feature space, shape (k, n_features).
        sizes_: noisy numbers of records, or sums of their weights, of the last iteration, shape (k,).
        certificate_: what the fit cost.
        releases_: the noisy statistics, in order.

    Example:
        >>> model = DPKernelKMeans(10, epsilon=0.5, n_public=60_000, bounds=(0, 1)).fit(pixels)  # doctest: +SKIP

    Reference: Acs, Melis, Castelluccia and De Cristofaro 2018, arXiv:1709.04514; Rahimi and Recht 2007.
    """

    method: ClassVar[str] = "dp-kernel-kmeans"
    _stage, _starts = "kernel kmeans", ("random",)

    n_clusters: int = 8
    _: KW_ONLY
    gamma: float | None = None
    n_features: int = 200
    iterations: int = 8
    start: str | np.ndarray = "random"

    clip_norm = None  # features have norm 1 whatever the records are

    def _stages(self, records: NumericRecords) -> tuple[Stage, ...]:
        super()._stages(records)
        if require_integer(at_least=2, n_features=self.n_features) % 2:
            raise ConfigError(f"Expected n_features to be even, got n_features={self.n_features!r}.")
        if self.gamma is not None:
            require_positive(gamma=self.gamma)
        return (kmeans_stage(self._stage, dimension=self.n_features, iterations=self.iterations),)

    def _run(self, session: Session) -> list[Noisy]:
        ball = session.ball
        # in units of the ball, whose scale is one for all columns
        gamma = _SPREAD / float(((ball.upper - ball.lower) ** 2).sum()) if self.gamma is None else self.gamma
        gamma *= float(ball.scale[0]) ** 2
        features = FourierFeatures.of(
            session.records.dimension, n_features=self.n_features, gamma=gamma, seed=_FEATURE_SEED
        )

        def vectors(rows: Rows) -> np.ndarray:
            return features.encode(ball.vectors(rows))

        start = (
            random_directions(self.n_clusters, self.n_features, session.rng)
            if isinstance(self.start, str)
            else features.encode(ball.inside(np.asarray(self.start, dtype=np.float64)))
        )
        releases = self._lloyd(session, vectors, start)
        self._features, self.feature_centers_ = features, self._centres
        return releases

    def _sampler(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        raise ConfigError(
            "Expected an estimator whose model draws rows for release(), got one of centres in feature space, which no "
            "row may lie at. Keep feature_centers_ and sizes_, or use DPKMeans."
        )

    def _vectors(self, X: Any) -> np.ndarray:  # noqa: ANN401
        points = self._points(X)  # before features, which only a fitted one has
        return self._features.encode(points)

    def transform(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the distance of each row to each centre in feature space, shape (n, k)."""
        squares = 1 - 2 * self._vectors(X) @ self._centres.T + (self._centres**2).sum(axis=1)
        return np.sqrt(np.maximum(squares, 0.0))
