"""DP-EM and DPLloyd as published, for comparison only.

The printed updates divide by exact masses and add noise to the quotient: they are not differentially private as they
stand, whatever ε is on the axis. Nothing here is part of the package.
"""

from __future__ import annotations

import numpy as np

from sfumato.methods.mixtures.centres import nearest
from sfumato.models.mixtures.mixture import GaussianMixture

_LEAST_SHARE = 0.01


def noisy_mixture(
    points: np.ndarray, start: GaussianMixture, *, iterations: int, multiplier: float, rng: np.random.Generator
) -> GaussianMixture:
    """Run DP-EM, scenario GGG, as printed: weights, means and covariances get noise of their printed sensitivities.

    Args:
        points: in the unit ball, shape (n, q).
        start: full covariances.
        iterations: J.
        multiplier: noise standard deviation ÷ printed sensitivity (2/n, 2/Ñₖ, 2/Ñₖ).
        rng: of the noise.
    """
    mixture, (n, q) = start, points.shape
    k = start.n_components
    for _ in range(iterations):
        shares = mixture.responsibilities(points)
        masses = shares.sum(axis=0)
        weights = masses / n + multiplier * 2 / n * rng.standard_normal(k)
        weights = np.maximum(weights, _LEAST_SHARE)
        weights /= weights.sum()
        stds = multiplier * 2 / (n * weights)
        heavy = np.maximum(masses, 1e-9)
        exact = (shares.T @ points) / heavy[:, None]
        means = exact + stds[:, None] * rng.standard_normal((k, q))
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1.0)
        covariances = np.empty((k, q, q))
        for j in range(k):
            scatter = (shares[:, j, None] * points).T @ points / heavy[j] - np.outer(exact[j], exact[j])
            triangle = np.triu(stds[j] * rng.standard_normal((q, q)))
            noisy = scatter + triangle + np.triu(triangle, 1).T
            # the paper sets negative eigenvalues "near zero"; the floor here is the better one of the package
            floor = min(max(stds[j] * np.sqrt(q), 1e-9), 1.0)
            values, vectors = np.linalg.eigh(noisy)
            covariances[j] = (vectors * np.clip(values, floor, 1.0)) @ vectors.T
        mixture = GaussianMixture(weights, means, (covariances + covariances.transpose(0, 2, 1)) / 2)
    return mixture


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
    points: np.ndarray, centres: np.ndarray, *, iterations: int, epsilon_i: float, rng: np.random.Generator
) -> np.ndarray:
    """DP-EM's k-means as printed: Laplace noise of scale 2√d/(Ñₖεᵢ) on exact means, Ñₖ with Laplace noise of 2/εᵢ."""
    for _ in range(iterations):
        clusters = nearest(points, centres)
        moved = np.empty_like(centres)
        for j in range(len(centres)):
            members = points[clusters == j]
            count = max(len(members) + rng.laplace(0, 2 / epsilon_i), 1.0)
            mean = members.mean(axis=0) if len(members) else centres[j]
            moved[j] = mean + rng.laplace(0, 2 * np.sqrt(points.shape[1]) / (count * epsilon_i), points.shape[1])
        centres = np.clip(moved, -1, 1)
    return centres
