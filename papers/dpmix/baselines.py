"""The baselines of Table II: local perturbation and random projection, in their sound forms.

Each record is published once, so the n rows are one Gaussian release of replace distance Δ in units of the noise; they
exist under replace-one alone, where n is public. Images are clipped to a norm, and labels get noise too.
"""

from __future__ import annotations

import math

import numpy as np
from dp_accounting import gaussian_mechanism

_RHO = 2.0  # squared replace distance of non-negative vectors ÷ their squared norm bound; of one-hot labels too


def local_perturbation(
    x: np.ndarray, classes: np.ndarray, *, epsilon: float, delta: float, clip_norm: float, seed: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Every record with noise: Δ² = 2C²/σ_X² + 2/σ_Y², half of it for each. Returns features, labels and σ_X."""
    rng = np.random.default_rng(seed)
    sigma_x, sigma_y = _stds(epsilon, delta, clip_norm)
    made = clip(x, clip_norm) + sigma_x * rng.standard_normal(x.shape)
    return made, _labels(classes, sigma_y, rng), sigma_x


def random_projection(
    x: np.ndarray, classes: np.ndarray, *, width: int, epsilon: float, delta: float, clip_norm: float, seed: int
) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Rx with noise for the distance s₁(R)·√2·C. Returns features, labels, σ_X and R, which is public."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((width, x.shape[1])) / math.sqrt(width)
    sigma_x, sigma_y = _stds(epsilon, delta, clip_norm * float(np.linalg.norm(matrix, 2)))
    made = clip(x, clip_norm) @ matrix.T
    made += sigma_x * rng.standard_normal(made.shape)
    return made, _labels(classes, sigma_y, rng), sigma_x, matrix


def printed_projection(
    x: np.ndarray, *, width: int, epsilon: float, delta: float, seed: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Rx with the printed noise, R, and its standard deviation: NOT PRIVATE.

    That noise is for neighbours that differ in one attribute by at most 1, and a factor √2 short; labels have none.
    """
    rng = np.random.default_rng(seed)
    matrix = (rng.standard_normal((width, x.shape[1])) / math.sqrt(width)).astype(np.float32)
    sigma = float(np.linalg.norm(matrix, 2)) * math.sqrt(math.log(1 / (2 * delta)) + epsilon) / epsilon
    made = x @ matrix.T
    return made + np.float32(sigma) * rng.standard_normal(made.shape, np.float32), matrix, sigma


def clip(x: np.ndarray, norm: float) -> np.ndarray:
    return x * np.minimum(1, norm / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12))


def _stds(epsilon: float, delta: float, norm: float) -> tuple[float, float]:
    sigma = float(gaussian_mechanism.get_sigma_gaussian(epsilon, delta)) * math.sqrt(2)
    return sigma * math.sqrt(_RHO) * norm, sigma * math.sqrt(_RHO)


def _labels(classes: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    return np.eye(10)[classes] + sigma * rng.standard_normal((len(classes), 10))
