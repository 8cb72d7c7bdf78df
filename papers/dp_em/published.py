"""DP-EM and DPLloyd as published, for comparison only.

The printed updates divide by exact masses and add noise to the quotient: they are not differentially private as they
stand, whatever ε is on the axis. Nothing here is part of the package.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.methods.mixtures.centres import nearest
from sfumato.models.mixtures.covariances import DiagonalCovariance, FullCovariance
from sfumato.models.mixtures.mixture import GaussianMixture

_LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Prior:
    """The public prior of MAP: normal-inverse-Wishart about 0, and Dirichlet; the paper prints no values.

    Attributes:
        shares: α of every weight.
        mean: κ₀.
        scale: S₀ ÷ the identity.
    """

    shares: float = 2.0
    mean: float = 1.0
    scale: float = 0.1


@dataclass(frozen=True)
class Printed:
    """A form of the printed algorithm.

    Attributes:
        scenario: "GGG", all noise Gaussian, or "LLG", weights and means Laplace.
        diagonal: whether covariances are.
        prior: of MAP; None for maximum likelihood.
    """

    scenario: str = "GGG"
    diagonal: bool = False
    prior: Prior | None = None

    def fit(
        self,
        points: np.ndarray,
        start: GaussianMixture,
        *,
        iterations: int,
        multiplier: float,
        epsilon_i: float = np.inf,
        rng: np.random.Generator,
    ) -> GaussianMixture:
        """Run DP-EM as printed: weights, means and covariances get noise of their printed sensitivities.

        Args:
            points: in the unit ball, shape (n, q).
            start: with covariances of this form.
            iterations: J.
            multiplier: noise standard deviation ÷ printed sensitivity (2/n, 2/Ñₖ, 2/Ñₖ), where it is Gaussian.
            epsilon_i: of every Laplace mechanism; GGG has none.
            rng: of the noise.
        """
        mixture, (n, q) = start, points.shape
        k, prior = start.n_components, self.prior or Prior(shares=1.0, mean=0.0, scale=0.0)
        extra = 0.0 if self.prior is None else 2 * q + 4  # ν₀ + d + 2, with ν₀ = d + 2
        for _ in range(iterations):
            shares = mixture.responsibilities(points)
            masses = shares.sum(axis=0)
            weights = (masses + prior.shares - 1) / (n + k * (prior.shares - 1))
            weights = weights + self._first(2 / n, 2 / n, (k,), multiplier, epsilon_i, rng)
            weights = np.maximum(weights, _LEAST_SHARE)
            weights /= weights.sum()
            heavy = np.maximum(masses, 1e-9)
            sums = shares.T @ points
            exact = sums / heavy[:, None]
            below = n * weights[:, None] + prior.mean
            drawn = self._first(2 / below, 2 * np.sqrt(q) / below, (k, q), multiplier, epsilon_i, rng)
            means = sums / (heavy + prior.mean)[:, None] + drawn
            means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1.0)
            stds = multiplier * 2 / (n * weights + extra)
            covariances = [
                self._covariance(points, shares[:, j], exact[j], heavy[j], extra, stds[j], rng) for j in range(k)
            ]
            form = DiagonalCovariance() if self.diagonal else FullCovariance()
            mixture = GaussianMixture(weights, means, np.stack(covariances), form)
        return mixture

    def _first(
        self,
        euclidean: float | np.ndarray,
        absolute: float | np.ndarray,
        shape: tuple[int, ...],
        multiplier: float,
        epsilon_i: float,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw the noise of weights and means, from the printed sensitivities in both norms."""
        if self.scenario == "GGG":
            return multiplier * euclidean * rng.standard_normal(shape)
        return rng.laplace(0, np.broadcast_to(absolute / epsilon_i, shape))

    def _covariance(
        self,
        points: np.ndarray,
        shares: np.ndarray,
        mean: np.ndarray,
        mass: float,
        extra: float,
        std: float,
        rng: np.random.Generator,
    ) -> np.ndarray:
        q = points.shape[1]
        # the paper sets negative eigenvalues "near zero"; the floor here is the better one of the package
        floor = min(max(std * np.sqrt(q), 1e-9), 1.0)
        pull = 0.0 if self.prior is None else self.prior.mean * mass / (self.prior.mean + mass)
        scale = 0.0 if self.prior is None else self.prior.scale
        if self.diagonal:
            scatter = shares @ points**2 - mass * mean**2 + pull * mean**2 + scale
            return np.clip(scatter / (mass + extra) + std * rng.standard_normal(q), floor, 1.0)
        scatter = (shares[:, None] * points).T @ points / mass - np.outer(mean, mean)
        if self.prior is not None:
            scatter = (mass * scatter + pull * np.outer(mean, mean) + scale * np.eye(q)) / (mass + extra)
        triangle = np.triu(std * rng.standard_normal((q, q)))
        values, vectors = np.linalg.eigh(scatter + triangle + np.triu(triangle, 1).T)
        found = (vectors * np.clip(values, floor, 1.0)) @ vectors.T
        return (found + found.T) / 2


def noisy_mixture(
    points: np.ndarray, start: GaussianMixture, *, iterations: int, multiplier: float, rng: np.random.Generator
) -> GaussianMixture:
    """Run GGG with maximum likelihood and full covariances."""
    return Printed().fit(points, start, iterations=iterations, multiplier=multiplier, rng=rng)


def dp_lloyd(
    points: np.ndarray, centres: np.ndarray, *, iterations: int, scale: float, rng: np.random.Generator
) -> np.ndarray:
    """Lloyd's iterations with Laplace noise of one scale on counts and sums (Blum et al. 2005; Su et al. 2016)."""
    for _ in range(iterations):
        clusters = nearest(points, centres)
        moved = np.empty_like(centres)
        for j in range(len(centres)):
            members = points[clusters == j]
            count = len(members) + rng.laplace(0, scale)
            total = members.sum(axis=0) + rng.laplace(0, scale, points.shape[1])
            moved[j] = total / count if count > 1 else centres[j]
        centres = np.clip(moved, -1, 1)
    return centres


def noisy_means(
    points: np.ndarray,
    centres: np.ndarray,
    *,
    iterations: int,
    epsilon_i: float,
    rng: np.random.Generator,
    exact_sizes: bool = False,
) -> np.ndarray:
    """DP-EM's k-means as printed: Laplace noise of scale 2√d/(Ñₖεᵢ) on exact means.

    Ñₖ has Laplace noise of 2/εᵢ, or with `exact_sizes` none.
    """
    for _ in range(iterations):
        clusters = nearest(points, centres)
        moved = np.empty_like(centres)
        for j in range(len(centres)):
            members = points[clusters == j]
            count = max(len(members) + (0 if exact_sizes else rng.laplace(0, 2 / epsilon_i)), 1.0)
            mean = members.mean(axis=0) if len(members) else centres[j]
            moved[j] = mean + rng.laplace(0, 2 * np.sqrt(points.shape[1]) / (count * epsilon_i), points.shape[1])
        centres = np.clip(moved, -1, 1)
    return centres
