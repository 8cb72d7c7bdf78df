"""The M-step of a mixture of Gaussians on noisy moments. Pure functions of released values: free.

Noise makes masses small or negative, means leave the ball and covariances indefinite. None of that stops the fit:
masses are raised to a public minimum, means are pulled back into the unit ball, eigenvalues are clamped.

Where the EM of a mixture starts: never at records.

Pure functions of public facts, released values and public randomness.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sfumato.errors import ConfigError, require_integer, require_positive
from sfumato.methods.mixtures.centres import into_ball
from sfumato.models.mixtures.covariances import CovarianceForm, FullCovariance
from sfumato.models.mixtures.mixture import GaussianMixture

LEAST_VARIANCE = 1e-9  # floor of the eigenvalues of covariances, besides the level of the noise


@dataclass(frozen=True, slots=True)
class MixtureMoments:
    """Moments of records in the unit ball, weighted by responsibilities; noisy or not.

    Attributes:
        masses: Σᵢ γᵢₖ, shape (k,).
        sums: Σᵢ γᵢₖ xᵢ, shape (k, q).
        seconds: Σᵢ γᵢₖ s(xᵢ) in the form's coordinates, shape (k, n_seconds); if tied, Σᵢ xᵢxᵢᵀ, shape (q, q).
        noise_stds: standard deviation of the noise of a mass, of a sum's entry, of a second moment's coordinate.
    """

    masses: np.ndarray
    sums: np.ndarray
    seconds: np.ndarray
    noise_stds: tuple[float, float, float]

    def blend(self, newer: MixtureMoments, rate: float) -> MixtureMoments:
        """Return (1 − rate)·these + rate·newer, with the noise that is left if the two are independent."""
        stds = (
            float(np.hypot((1 - rate) * a, rate * b)) for a, b in zip(self.noise_stds, newer.noise_stds, strict=True)
        )
        return MixtureMoments(
            (1 - rate) * self.masses + rate * newer.masses,
            (1 - rate) * self.sums + rate * newer.sums,
            (1 - rate) * self.seconds + rate * newer.seconds,
            tuple(stds),  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class MLE:
    """Maximum likelihood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MAP:
    """The mode of the posterior under a Dirichlet and normal-inverse-Wishart prior about the public centre 0.

    Attributes:
        concentration: α of the weights, ≥ 1.
        mean_strength: κ₀ > 0, records that the prior mean 0 is worth.
        degrees: ν₀ > 0; None is q + 2.
        variance: S₀ is this public number times the identity.

    Reference: Murphy 2012, Machine Learning, section 11.4.2.8, equations 11.43 to 11.47.
    """

    concentration: float = 2.0
    mean_strength: float = 1.0
    degrees: float | None = None
    variance: float = 0.1

    def __post_init__(self) -> None:
        require_positive(mean_strength=self.mean_strength)
        require_positive(variance=self.variance)
        if require_positive(concentration=self.concentration) < 1:
            raise ConfigError(f"Expected concentration to be at least 1, got concentration={self.concentration!r}.")
        if self.degrees is not None:
            require_positive(degrees=self.degrees)


@dataclass(frozen=True, slots=True, kw_only=True)
class MStep:
    """How moments become a mixture. All settings are public.

    Attributes:
        estimate: `MLE()` or `MAP(...)`.
        split_dead: a dead component takes half of the heaviest one, to one side along its main axis; if not, it stays.
    """

    estimate: MLE | MAP = MLE()
    split_dead: bool = True

    def __call__(self, moments: MixtureMoments, previous: GaussianMixture) -> GaussianMixture:
        """Return the mixture of these moments.

        A component is dead whose noisy mass is below 4 standard deviations of its noise, or q + 1.

        Args:
            moments: noisy or not.
            previous: gives the form, and what dead components keep.
        """
        form, q = previous.form, previous.dimension
        least = max(4 * moments.noise_stds[0], q + 1.0)
        alive = moments.masses >= least
        masses = np.maximum(moments.masses, least)
        shares, means, covariances = self._estimate(moments, masses, form)
        if form.per_component:
            covariances = np.where(_per_component(alive, covariances), covariances, previous.covariances)
        means = np.where(alive[:, None], means, previous.means)
        if self.split_dead and alive.any():
            shares, means, covariances = _split_heaviest(shares, means, covariances, alive, form)
        return GaussianMixture(shares, means, covariances, form)

    def _estimate(
        self, moments: MixtureMoments, masses: np.ndarray, form: CovarianceForm
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = moments.sums.shape[1]
        extra, strength, scale, degrees = 0.0, 0.0, 0.0, 0.0
        if isinstance(self.estimate, MAP):
            extra, strength, scale = (
                self.estimate.concentration - 1,
                self.estimate.mean_strength,
                self.estimate.variance,
            )
            degrees = (q + 2 if self.estimate.degrees is None else self.estimate.degrees) + q + 2
        shares = (masses + extra) / (masses + extra).sum()
        heavier = masses + strength
        means = moments.sums / heavier[:, None]
        means = into_ball(means)
        seconds = moments.seconds + scale * form.identity_seconds(q)
        if form.per_component:
            weight, divisor = heavier, masses + degrees
            per_component = form.of_seconds(seconds / weight[:, None], means, shares)
            covariances = per_component * _per_component(weight / divisor, per_component)
            floor = moments.noise_stds[2] * form.noise_reach(q) / divisor
        else:
            weight, divisor = heavier.sum(), masses.sum() + degrees
            covariances = form.of_seconds(seconds / weight, means, heavier / weight) * (weight / divisor)
            floor = np.full(len(masses), moments.noise_stds[2] * form.noise_reach(q) / divisor)
        floor = np.clip(floor, LEAST_VARIANCE, 1.0)
        return shares, means, form.project(covariances, floor, 1.0)


def _per_component(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return values of shape (k,) with axes added, so that they multiply an array of k components."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def _split_heaviest(
    shares: np.ndarray, means: np.ndarray, covariances: np.ndarray, alive: np.ndarray, form: CovarianceForm
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give each dead component half of the heaviest live one: its two halves along its main axis."""
    shares, means, covariances = shares.copy(), means.copy(), covariances.copy()
    live = alive.copy()
    for dead in np.flatnonzero(~alive):
        heavy = int(np.argmax(np.where(live, shares, -1.0)))
        matrix = form.dense(covariances, len(means), means.shape[1])[heavy]
        values, vectors = np.linalg.eigh(matrix)
        step = np.sqrt(values[-1]) * vectors[:, -1]
        means[dead], means[heavy] = means[heavy] + step, means[heavy] - step
        shares[[dead, heavy]] = shares[heavy] / 2
        if form.per_component:
            covariances[dead] = covariances[heavy]
        live[dead] = True
    return shares / shares.sum(), into_ball(means), covariances


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentStart:
    """A start that is measured: the first of the J releases is spent on one Gaussian for all records.

    The means are then drawn from that Gaussian, noise and all, and every component gets its covariance.

    Attributes:
        n_components: k ≥ 1.
        form: of the covariances.
        dimension: q, public.
        rng: public randomness.
    """

    n_components: int
    form: CovarianceForm
    dimension: int
    rng: np.random.Generator = field(compare=False, repr=False)

    def single(self) -> GaussianMixture:
        """Return one component, under which every record has responsibility 1."""
        return unit_mixture(1, self.dimension, self.form)

    def spread(self, whole: GaussianMixture) -> GaussianMixture:
        """Return k components about a released Gaussian. Free."""
        k, q = self.n_components, self.dimension
        draws = self.rng.standard_normal((k, q))
        draws -= draws.mean(axis=0)
        factor = np.linalg.cholesky(whole.dense_covariances()[0])
        means = into_ball(whole.means[0] + draws @ factor.T)
        covariances = np.array(np.broadcast_to(whole.covariances, self.form.shape(k, q)))
        return GaussianMixture(np.full(k, 1 / k), means, covariances, self.form)


def unit_mixture(k: int, q: int, form: CovarianceForm | None = None) -> GaussianMixture:
    """Return k even components about 0 with covariances I/q, full unless said otherwise: a start from nothing."""
    form = form or FullCovariance()
    return GaussianMixture(np.full(k, 1 / k), np.zeros((k, q)), unit_covariances(form, k, q) / q, form)


def unit_covariances(form: CovarianceForm, k: int, q: int) -> np.ndarray:
    """Return k unit covariances in this form: eigenvalues of 0, clamped to 1."""
    return form.project(np.zeros(form.shape(k, q)), np.ones(k), 1.0)


def random_start(
    n_components: int, spread: np.ndarray, *, form: CovarianceForm, rng: np.random.Generator
) -> GaussianMixture:
    """Return a start that uses no record: means from N(0, diag spread²), covariances of that size in all directions.

    Args:
        n_components: k ≥ 1.
        spread: standard deviations per axis, public or released, shape (q,).
        form: of the covariances.
        rng: public randomness.
    """
    k, q = require_integer(at_least=1, n_components=n_components), len(spread)
    means = into_ball(rng.standard_normal((k, q)) * spread)
    covariances = unit_covariances(form, k, q) * float(np.mean(spread**2))
    return GaussianMixture(np.full(k, 1 / k), means, covariances, form)
