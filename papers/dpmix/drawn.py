"""Images drawn from what a release says of classes, to train the published network on.

    k ~ shares,   x ~ N(μ_k, Σ_W),   Σ_W = S − Σ_k π_k μ_k μ_kᵀ

μ and S are single images' moments as `Discriminant` has them, low-passed, less the noise's part and shrunk. A network
trained on mixtures has to find a weak signal in noise, epoch after epoch; here the moments have done that, and labels
are hard. All of it is a function of the release.
"""

from __future__ import annotations

import math

import numpy as np
from discriminant import Shrinkage, class_moments, low_passed


class ImageModel:
    """Args as of `Discriminant`. Pictures come out low-passed and less the mean."""

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray,
        sigma: float,
        degree: int,
        *,
        poisson: bool,
        shrinkage: Shrinkage | None = None,
    ) -> None:
        shrinkage = Shrinkage() if shrinkage is None else shrinkage
        self._shape = x.shape[1:]
        self._mean, inner, cross, self._shares = class_moments(x, y, sigma, degree, poisson=poisson)
        d = len(inner)
        filtering = low_passed(np.eye(d), self._shape, shrinkage.cutoff)
        signal = filtering @ inner @ filtering
        values, self._vectors = np.linalg.eigh((signal + signal.T) / 2)
        values = np.maximum(values, 0)
        least = shrinkage.edge * sigma**2 * math.sqrt(d / len(x)) + 1e-9
        kept = values**2 / (values**2 + least**2)
        cross = filtering @ cross
        self._means = degree * kept[:, None] * (self._vectors.T @ cross) / self._shares
        within = degree * np.diag(values * kept) - (self._means * self._shares) @ self._means.T
        values, vectors = np.linalg.eigh(within)
        self._root = vectors * np.sqrt(np.maximum(values, 0))
        self._of_images = filtering @ (self._vectors * kept) @ self._vectors.T

    def draw(self, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return drawn images, float32, and their labels as one-hot rows."""
        rng = np.random.default_rng(seed)
        classes = rng.choice(len(self._shares), count, p=self._shares)
        found = self._means.T[classes] + rng.standard_normal((count, len(self._root))) @ self._root.T
        images = (found @ self._vectors.T).astype(np.float32).reshape(count, *self._shape)
        return images, np.eye(len(self._shares), dtype=np.float32)[classes]

    def images(self, x: np.ndarray) -> np.ndarray:
        """Return single images as the drawn ones are, float32, shape of x."""
        centred = x.reshape(len(x), -1) - self._mean.astype(np.float32)
        return (centred @ self._of_images.astype(np.float32)).reshape(x.shape)
