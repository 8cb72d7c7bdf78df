"""`DPKernelKMeans`: private k-means on random Fourier features, with the interface of scikit-learn's k-means."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin

from sfumato.errors import ConfigError, require_integer, require_positive
from sfumato.estimators.base import PrivateEstimator, Session
from sfumato.maths.fourier import FourierFeatures
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.mixtures.centres import nearest, random_directions
from sfumato.methods.mixtures.kmeans import ClusterSums, fit_kmeans, kmeans_stage
from sfumato.privacy.budget import NonPrivate
from sfumato.privacy.plan import Stage
from sfumato.records.engine import Rows

_FEATURE_SEED = 0
_SPREAD = 6.0  # two uniform draws from an interval of width w are w²/6 apart in the square, on the mean


class DPKernelKMeans(TransformerMixin, PrivateEstimator):
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
        sizes_: noisy numbers of records of the last iteration, shape (k,).
        certificate_: what the fit cost.
        releases_: the noisy statistics, in order.

    Example:
        >>> found = DPKernelKMeans(10, epsilon=0.5, n_public=60_000, bounds=(0, 1)).fit(pixels)  # doctest: +SKIP

    Reference: Acs, Melis, Castelluccia and De Cristofaro 2018, arXiv:1709.04514; Rahimi and Recht 2007.
    """

    method: ClassVar[str] = "dp-kernel-kmeans"
    _isotropic: ClassVar[bool] = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float | NonPrivate = 1.0,
        delta: float | None = None,
        n_public: int | None = None,
        bounds: Any = None,  # noqa: ANN401
        gamma: float | None = None,
        n_features: int = 200,
        iterations: int = 8,
        start: str | np.ndarray = "random",
        seed: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.n_public = n_public
        self.bounds = bounds
        self.gamma = gamma
        self.n_features = n_features
        self.iterations = iterations
        self.start = start
        self.seed = seed

    clip_norm = None  # features have norm 1 whatever the records are

    def _stages(self, dimension: int) -> tuple[Stage, ...]:
        require_integer(at_least=1, n_clusters=self.n_clusters)
        require_integer(at_least=1, iterations=self.iterations)
        if require_integer(at_least=2, n_features=self.n_features) % 2:
            raise ConfigError(f"Expected n_features to be even, got n_features={self.n_features!r}.")
        if self.gamma is not None:
            require_positive(gamma=self.gamma)
        if isinstance(self.start, str):
            if self.start != "random":
                raise ConfigError(f'Expected start to be "random" or public records, got start={self.start!r}.')
        elif np.shape(self.start) != (self.n_clusters, dimension) or not np.isfinite(self.start).all():
            raise ConfigError(f"Expected finite records of shape {(self.n_clusters, dimension)} as start, got others.")
        return (kmeans_stage("kernel kmeans", dimension=self.n_features, iterations=self.iterations),)

    def _run(self, session: Session) -> list[Noisy]:
        ball = session.ball
        # in units of the ball, whose scale is one for all columns
        gamma = _SPREAD / float(((ball.upper - ball.lower) ** 2).sum()) if self.gamma is None else self.gamma
        gamma *= float(ball.scale[0]) ** 2
        features = FourierFeatures.of(session.dimension, n_features=self.n_features, gamma=gamma, seed=_FEATURE_SEED)

        def vectors(rows: Rows) -> np.ndarray:
            return features.encode(ball.vectors(rows))

        start = (
            random_directions(self.n_clusters, self.n_features, session.rng)
            if isinstance(self.start, str)
            else features.encode(ball.inside(np.asarray(self.start, dtype=np.float64)))
        )
        found = fit_kmeans(
            session.records,
            vectors,
            start,
            stage="kernel kmeans",
            ledger=session.ledger,
            noise=session.noise,
            rng=session.rng,
        )
        self._ball, self._features = ball, features
        self.feature_centers_, self.sizes_ = found.centres, found.counts
        return list(found.releases)

    def _sampler(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        raise ConfigError(
            "Expected an estimator whose model draws rows for release(), got one of centres in feature space, which no "
            "row may lie at. Keep feature_centers_ and sizes_, or use DPKMeans."
        )

    def _measured(self, noisy: Noisy) -> str:
        return ClusterSums.name

    def _encoded(self, X: Any) -> np.ndarray:  # noqa: ANN401
        return self._features.encode(self._points(X))

    def predict(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the nearest centre of each row, shape (n,)."""
        points = self._points(X)
        return nearest(self._features.encode(points), self.feature_centers_)

    def transform(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the distance of each row to each centre in feature space, shape (n, k)."""
        encoded = self._encoded(X)
        squares = 1 - 2 * encoded @ self.feature_centers_.T + (self.feature_centers_**2).sum(axis=1)
        return np.sqrt(np.maximum(squares, 0.0))

    def score(self, X: Any, y: object = None) -> float:  # noqa: ANN401
        """Return minus the summed squared distance of rows to their nearest centres in feature space."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())
