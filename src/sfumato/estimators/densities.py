"""`DPGaussianMixture`, by noisy EM, and `DPFactorAnalysis`, from one noisy second moment, as scikit-learn's."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sfumato.errors import ConfigError, require_instance, require_integer, require_positive
from sfumato.estimators.base import DensityEstimator, Session
from sfumato.estimators.records import NumericRecords
from sfumato.maths.gaussian import noise_reach
from sfumato.mechanisms.contributions import SAFETY, product_bits
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.mixtures.em import em_stages, fit_mixture
from sfumato.methods.mixtures.em_moments import EmMoments, PooledSquares
from sfumato.methods.mixtures.steps import MAP, MLE, MomentStart, MStep, random_start
from sfumato.models.mixtures.covariances import CovarianceForm, FullCovariance, SphericalCovariance
from sfumato.models.mixtures.factors import CentredMoment, FactorModel, Moment, denoised_moment, fit_factors
from sfumato.models.mixtures.mixture import FactorPoints, GaussianMixture, MixturePoints
from sfumato.privacy.plan import Stage

_CONSTANT = 0.5
_EXTRA_RANK = 10  # eigenvalues looked at beyond the latent dimension
_RANDOM_SPREAD = 0.5  # of the ball's radius, over all axes


@dataclass(eq=False, repr=False)
class DPFactorAnalysis(TransformerMixin, DensityEstimator[FactorModel]):
    """Factor analysis under (ε, δ)-differential privacy: x = m + Wz + e, z ~ N(0, I), e ~ N(0, diag ψ).

    One release: the second moment of the records and a constant, so their number and mean too. EM then runs to
    convergence on it, which is free. Where the data are declared centred and the number of rows public, `centred=True`
    saves the constant.

    Args:
        latent_dim: columns r of W.
        epsilon: ε in nats, or `NonPrivate()` for no noise at all.
        delta: δ; by default min(1e-5, 0.1/n_public).
        n_public: the public number of rows; required.
        bounds: (lower, upper) of the columns, public; required here or in `fit`.
        clip_norm: norm beyond which records are shrunk, where half the width of a column's bounds is 1; by default √q.
        centred: declare that the mean is the middle of the bounds: no mean is measured, and `n_public` is the divisor.
        least_variance: floor of ψ, in units of the ball.
        seed: for tests and papers only: reproducible noise, and a certificate that says it is not private.

    Attributes:
        components_: Wᵀ, shape (r, q), data units.
        noise_variance_: ψ, shape (q,), data units squared.
        mean_: shape (q,), data units.
        model_: the same as a `FactorModel`.
        certificate_: what the fit cost.
        releases_: the noisy second moment, shape (q + 1, q + 1), or (q, q) if centred.

    Reference: Park, Foulds, Chaudhuri and Welling 2017, section 4.3, which assumes centred data.
    """

    method: ClassVar[str] = "dp-factor-analysis"

    latent_dim: int = 2
    _: KW_ONLY
    clip_norm: float | None = None
    centred: bool = False
    least_variance: float = 1e-9

    def _stages(self, records: NumericRecords) -> tuple[Stage, ...]:
        require_integer(at_least=1, latent_dim=self.latent_dim)
        require_positive(least_variance=self.least_variance)
        if self.latent_dim > records.dimension:
            raise ConfigError(
                f"Expected latent_dim to be at most the {records.dimension} column(s), got {self.latent_dim}."
            )
        if self.centred and records.weight is not None:
            raise ConfigError(
                "Expected centred=False beside weights, got centred=True, which divides by the public number of rows: "
                "the sum of the weights is not public, and has to be measured."
            )
        measures = "second moments" if self.centred else "number, mean and second moments of the records"
        return (
            Stage(name="second moment", noise_multiplier=1.0, replace_distance=float(np.sqrt(2)), measures=measures),
        )

    def _run(self, session: Session) -> list[Noisy]:
        constant = 0.0 if self.centred else _CONSTANT
        bits = product_bits(session.n_public, session.records.weight_bits)
        statistic = PooledSquares(session.ball.vectors, session.records.dimension, constant, bits=bits)
        noisy = session.account.measure("second moment", statistic, session.records)
        inner = self._fitted(noisy, session, constant)
        ball = session.ball
        self._ball, self._inner = ball, inner
        self.model_ = FactorModel(
            ball.outside(inner.mean), inner.loadings * ball.scale[:, None], inner.variances * ball.scale**2
        )
        self.mean_, self.noise_variance_ = self.model_.mean, self.model_.variances
        self.components_ = self.model_.loadings.T
        return [noisy]

    def _fitted(self, noisy: Noisy, session: Session, constant: float) -> FactorModel:
        """Return the model, in units of the ball. Free."""
        q = session.records.dimension
        mean, count = np.zeros(q), float(session.n_public)
        if constant:
            scale = (SAFETY * constant) ** 2
            count_std = noisy.noise_std / scale
            count = max(float(noisy.value[q, q]) / scale, 4 * count_std, 1.0)
            mean = noisy.value[q, :q] / (SAFETY**2 * constant * count)
            mean /= max(float(np.linalg.norm(mean)), 1.0)
        # a view: the noisy matrix may be large
        moment: Moment = CentredMoment(noisy.value[:q, :q], 1 / (SAFETY**2 * count), mean)
        least = self.least_variance
        if not session.noise.silent:
            noise_std = noisy.noise_std / (SAFETY**2 * count)
            least = max(least, noise_std)
            moment = denoised_moment(moment, noise_reach(noise_std, q), least, self.latent_dim + _EXTRA_RANK)
        return fit_factors(mean, moment, self.latent_dim, least=least)

    def _sampler(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        model = self.model_
        arrays = {"mean": model.mean, "loadings": model.loadings, "variances": model.variances}
        return {"name": FactorPoints.name}, arrays

    def _measured(self, noisy: Noisy) -> str:
        return "second moment"

    def transform(self, X: Any) -> np.ndarray:  # noqa: ANN401
        """Return the posterior mean of z for each row, shape (n, r)."""
        points = self._points(X)
        return (points - self._inner.mean) @ self._inner.posterior[1].T

    def get_covariance(self) -> np.ndarray:
        """Return W Wᵀ + diag ψ, shape (q, q), data units squared."""
        check_is_fitted(self)
        return self.model_.loadings @ self.model_.loadings.T + np.diag(self.model_.variances)

    def sample(self, n_samples: int = 1, *, seed: int | None = None) -> np.ndarray:
        """Return draws, shape (n_samples, q), data units.

        Args:
            n_samples: how many.
            seed: of public randomness; sampling costs nothing.
        """
        check_is_fitted(self)
        require_integer(at_least=1, n_samples=n_samples)
        return self.model_.sample(n_samples, self._stream(seed))


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
        return em_stages(
            "em",
            form=self.covariance,
            n_components=self.n_components,
            dimension=records.dimension,
            iterations=1 if self.n_components == 1 else self.iterations,
        )

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
            step=MStep(estimate=self.estimate),
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
