"""`DPGaussianMixture`: a mixture of Gaussians by noisy EM, with the interface of scikit-learn's."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import ConfigError, require_instance, require_integer
from sfumato.estimators.base import DensityEstimator, Session
from sfumato.estimators.records import NumericRecords
from sfumato.mechanisms.contributions import product_bits
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.mixtures.em import em_stages, fit_mixture
from sfumato.methods.mixtures.em_moments import EmMoments
from sfumato.methods.mixtures.steps import MAP, MLE, MomentStart, MStep, random_start
from sfumato.models.mixtures.covariances import CovarianceForm, FullCovariance, SphericalCovariance
from sfumato.models.mixtures.mixture import GaussianMixture, MixturePoints
from sfumato.privacy.plan import Stage

_RANDOM_SPREAD = 0.5  # of the ball's radius, over all axes


@dataclass(eq=False, repr=False)
class DPGaussianMixture(DensityEstimator[GaussianMixture]):
    """Mixture of Gaussians under (ε, δ)-differential privacy, by noisy EM.

    Args:
        n_components: k ≥ 1.
        covariance: `FullCovariance()`, `DiagonalCovariance()`, `SphericalCovariance()` or `TiedCovariance()`.
        estimate: `MLE()`, or `MAP(...)` with public prior values, in units of the ball.
        epsilon: ε in nats, or `NonPrivate()` for no noise at all.
        delta: δ; by default min(1e-5, 0.1/n_public).
        n_public: the public number of rows; required.
        bounds: (lower, upper) of the columns, public; required here or in `fit`.
        clip_norm: norm beyond which records are shrunk, where half the width of a column's bounds is 1; by default √q.
        iterations: releases J ≥ 1, a measured start included; at least 2 with one. All are charged. A single component
            takes one release, whatever this says: more would measure the same again.
        start: "moments": the first release measures the Gaussian of all records, and means are drawn from it; "random":
            means are drawn from the ball, and no record is used; or a public `GaussianMixture` in data units.
        average_last: how many of the last releases are averaged; by default three in ten.
        seed: for tests and papers only: reproducible noise, and a certificate that says it is not private.

    Attributes:
        weights_, means_, covariances_: of the components, data units; spherical covariances have shape (k,).
        mixture_: the same as a `GaussianMixture`.
        certificate_: what the fit cost.
        releases_: the noisy statistics, in order.

    Reference: Park, Foulds, Chaudhuri and Welling 2017, DP-EM. Deviations: docs/proofs/em.md.

    Example:
        >>> import numpy as np
        >>> from sfumato.estimators import DPGaussianMixture
        >>> rows = np.concatenate([np.zeros((500, 2)), np.ones((500, 2))])
        >>> model = DPGaussianMixture(2, epsilon=1.0, n_public=1000, bounds=(-1, 2)).fit(rows)
        >>> model.means_.shape
        (2, 2)
    """

    method: ClassVar[str] = "dp-em"

    n_components: int = 1
    _: KW_ONLY
    covariance: CovarianceForm = FullCovariance()  # noqa: RUF009 - immutable, and scikit-learn compares defaults
    estimate: MLE | MAP = MLE()  # noqa: RUF009
    clip_norm: float | None = None
    iterations: int = 10
    start: str | GaussianMixture = "moments"
    average_last: int | None = None

    @property
    def _isotropic(self) -> bool:  # type: ignore[override]
        return isinstance(self.covariance, SphericalCovariance)

    def _stages(self, records: NumericRecords) -> tuple[Stage, ...]:
        require_integer(at_least=1, n_components=self.n_components)
        require_instance(CovarianceForm, "FullCovariance() or another form", covariance=self.covariance)
        require_instance((MLE, MAP), "MLE() or MAP(...)", estimate=self.estimate)
        is_measured = isinstance(self.start, str) and self.start == "moments"
        require_integer(at_least=2 if is_measured else 1, iterations=self.iterations)
        if self.average_last is not None:
            require_integer(at_least=1, average_last=self.average_last)
        if isinstance(self.start, GaussianMixture):
            expected = (self.n_components, records.dimension, self.covariance.name)
            if (self.start.n_components, self.start.dimension, self.start.form.name) != expected:
                raise ConfigError(f"Expected start to have components, columns and form {expected!r}, got another one.")
        elif self.start not in ("moments", "random"):
            raise ConfigError(f'Expected start to be "moments", "random" or a mixture, got start={self.start!r}.')
        self._m_step()
        return em_stages(
            "em",
            form=self.covariance,
            n_components=self.n_components,
            dimension=records.dimension,
            iterations=1 if self.n_components == 1 else self.iterations,
        )

    def _m_step(self) -> MStep:
        return MStep(estimate=self.estimate)

    def _start(self, session: Session) -> GaussianMixture | MomentStart:
        k, q, form = self.n_components, session.records.dimension, self.covariance
        start = MomentStart(n_components=k, form=form, dimension=q, rng=session.rng)
        if k == 1:
            return start.single()
        if isinstance(self.start, GaussianMixture):
            return _mapped(self.start, 1 / session.ball.scale, -session.ball.middle / session.ball.scale)
        if self.start == "random":
            return random_start(k, np.full(q, _RANDOM_SPREAD / np.sqrt(q)), form=form, rng=session.rng)
        return start

    def _run(self, session: Session) -> list[Noisy]:
        start = self._start(session)
        inner, released = fit_mixture(
            session.records,
            session.ball.vectors,
            start=start,
            stage="em",
            ledger=session.ledger,
            noise=session.noise,
            step=self._m_step(),
            average_last=self.average_last,
            bits=product_bits(session.n_public, session.records.weight_bits),
        )
        self._ball, self._inner = session.ball, inner
        self.mixture_ = _mapped(inner, session.ball.scale, session.ball.middle)
        self.weights_, self.means_, self.covariances_ = (
            self.mixture_.weights, self.mixture_.means, self.mixture_.covariances,
        )  # fmt: skip
        return released

    def _sampler(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        settings = {"name": MixturePoints.name, "covariance": self.mixture_.form.name}
        return settings, self.mixture_.to_arrays()

    def _measured(self, noisy: Noisy) -> str:
        return "pooled second moment" if noisy.symmetric else EmMoments.name

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return each row's responsibilities, shape (n, k)."""
        points = self._points(X)
        return self._inner.responsibilities(points)

    def predict(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the likeliest component of each row, shape (n,)."""
        points = self._points(X)
        return np.argmax(self._inner.joint_log_densities(points), axis=1)

    def sample(self, n_samples: int = 1, *, seed: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return draws, shape (n_samples, q), data units, and their components, shape (n_samples,).

        Args:
            n_samples: how many.
            seed: of public randomness; sampling costs nothing.
        """
        check_is_fitted(self)
        return self.mixture_.sample(n_samples, self._stream(seed))


def _mapped(mixture: GaussianMixture, scale: np.ndarray, shift: np.ndarray) -> GaussianMixture:
    """Return the mixture of x = shift + scale∘z."""
    form, means = mixture.form, shift + mixture.means * scale
    if form.name in ("full", "tied"):
        covariances = mixture.covariances * scale[:, None] * scale
        covariances = (covariances + np.swapaxes(covariances, -1, -2)) / 2
    elif form.name == "diagonal":
        covariances = mixture.covariances * scale**2
    else:
        covariances = mixture.covariances * scale[0] ** 2
    return GaussianMixture(mixture.weights, means, covariances, form)
