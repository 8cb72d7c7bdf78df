"""Mixtures denoised by what the release itself says of their covariance, and images on the same footing.

    x̂ = S(S + σ²I)⁻¹(x' − x̄),   S = Cov(x') − σ²I, low-passed and shrunk

Regressing on x̂ undoes the attenuation that noise in the inputs causes. All of it is a function of the release.
"""

from __future__ import annotations

import math

import numpy as np
from discriminant import Shrinkage, low_passed, moments


class Denoiser:
    """Args as of `Discriminant`. Pictures come out low-passed, less the mean, times √ℓ."""

    def __init__(
        self, x: np.ndarray, sigma: float, degree: int, *, poisson: bool, shrinkage: Shrinkage | None = None
    ) -> None:
        shrinkage = Shrinkage() if shrinkage is None else shrinkage
        self._shape, self._scale = x.shape[1:], math.sqrt(degree)
        self._mean, inner, _ = moments(x, None, sigma, degree, poisson=poisson)
        d = len(inner)
        filtering = low_passed(np.eye(d), self._shape, shrinkage.cutoff)
        signal = filtering @ inner @ filtering
        values, vectors = np.linalg.eigh((signal + signal.T) / 2)
        values = np.maximum(values, 0)
        least = shrinkage.edge * sigma**2 * math.sqrt(d / len(x)) + 1e-9
        kept = values**2 / (values**2 + least**2)
        signal = (vectors * (values * kept)) @ vectors.T
        noise = sigma**2 * filtering @ filtering + 1e-9 * np.eye(d)
        self._of_images = filtering @ (vectors * kept) @ vectors.T
        self._of_mixtures = filtering @ np.linalg.solve(signal + noise, signal)

    def mixtures(self, x: np.ndarray) -> np.ndarray:
        """Return denoised mixtures, float32, shape of x."""
        return self._mapped(x, self._of_mixtures)

    def images(self, x: np.ndarray) -> np.ndarray:
        """Return single images without noise as the mixtures are, float32, shape of x."""
        return self._mapped(x, self._of_images)

    def _mapped(self, x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        centred = x.reshape(len(x), -1) - self._mean.astype(np.float32)
        return (centred @ (self._scale * matrix).astype(np.float32)).reshape(x.shape)
