"""The strongest model here: a linear discriminant on the moments of mixtures, less the noise's part, low-passed.

A mixture's moments are those of single images divided by ℓ, so classes' means and the covariance follow from them; the
noise adds σ² to the diagonal and nothing else. That pictures are smooth is known without reading any: weights are
shrunk by a filter over their spatial frequencies, which is what denoising the mixtures would do, without its bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import dctn, idctn

_WIDE = 2_000  # features


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinkage:
    """Chosen on the held-out tenth of MNIST's training images at the published noise, before a test image was read.

    Attributes:
        cutoff: spatial frequency, in half-waves across the picture, at which the filter's power is ½; 0 for no filter.
        edge: eigenvalues below this many times what the noise moves them by are shrunk.
        offset: how much of ½μᵀΣ⁻¹μ is taken from a class's score: ½ is Fisher's rule, but noise makes the term
            too large.
    """

    cutoff: float = 8.0
    edge: float = 0.8
    offset: float = 0.25


class Discriminant:
    """Scores (x − x̄)ᵀΣ⁻¹μ_k − offset·μ_kᵀΣ⁻¹μ_k, from mixtures, σ and ℓ alone.

    Args:
        x: mixtures of images, shape (T, h, w) or (T, channels, h, w).
        y: soft labels, shape (T, classes).
        sigma: standard deviation of a pixel's noise.
        degree: ℓ.
        poisson: whether mixtures are Poisson samples, whose covariance is the second moment about 0 ÷ ℓ.
        shrinkage: settings.
    """

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
        self._mean, inner, cross, shares = class_moments(x, y, sigma, degree, poisson=poisson)
        self._weights = _inverse(inner, cross, x.shape[1:], sigma, len(x), shrinkage) / shares
        self._offsets = shrinkage.offset * degree * np.einsum("dk,dk->k", cross / shares, self._weights)

    def predict(self, x: np.ndarray) -> np.ndarray:
        return ((x.reshape(len(x), -1) - self._mean) @ self._weights - self._offsets).argmax(1)


def class_moments(
    x: np.ndarray, y: np.ndarray, sigma: float, degree: int, *, poisson: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return `moments`, the covariance with labels less its mean over classes, and the classes' shares."""
    mean, inner, cross = moments(x, y, sigma, degree, poisson=poisson)
    cross -= cross.mean(1, keepdims=True)  # of labels that sum to 1 it is noise alone
    shares = np.clip(y.mean(0).astype(np.float64), 0.2 / y.shape[1], None)
    return mean, inner, cross, shares / shares.sum()


def moments(
    x: np.ndarray, y: np.ndarray | None, sigma: float, degree: int, *, poisson: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, the covariance less the noise's part, and the covariance with labels, all of mixtures."""
    rows = x.reshape(len(x), -1)
    mean = rows.mean(0).astype(np.float64)
    centred = rows - mean.astype(np.float32)
    inner = (centred.T @ centred / len(rows)).astype(np.float64) - sigma**2 * np.eye(rows.shape[1])
    labels = np.empty((len(rows), 0), np.float32) if y is None else y
    cross = (centred.T @ (labels - labels.mean(0)) / len(rows)).astype(np.float64)
    if poisson:
        inner -= np.outer(mean, mean) / degree
        cross -= np.outer(mean, labels.mean(0)) / degree
    return mean, inner, cross


def _inverse(
    inner: np.ndarray, cross: np.ndarray, shape: tuple[int, ...], sigma: float, count: int, shrinkage: Shrinkage
) -> np.ndarray:
    """Return L(LᵀSL)⁺Lᵀ C, with L the filter and small eigenvalues shrunk."""
    filtered = low_passed(low_passed(inner, shape, shrinkage.cutoff).T, shape, shrinkage.cutoff)
    # in single precision where the double takes most of a minute
    values, vectors = np.linalg.eigh(((filtered + filtered.T) / 2).astype(np.float32 if len(inner) > _WIDE else float))
    values = np.maximum(values, 0)
    least = shrinkage.edge * sigma**2 * math.sqrt(len(inner) / count) + 1e-5
    inverse = values / (values**2 + least**2)
    return low_passed(vectors @ (inverse[:, None] * (vectors.T @ low_passed(cross, shape, shrinkage.cutoff))), shape,
                       shrinkage.cutoff)  # fmt: skip


def low_passed(columns: np.ndarray, shape: tuple[int, ...], cutoff: float) -> np.ndarray:
    """Return columns, each a picture or one a channel, with amplitudes ÷ √(1 + (frequency ÷ cutoff)²)."""
    if not cutoff:
        return columns
    squared = sum(f.astype(np.float64) ** 2 for f in np.indices(shape[-2:]))
    waves = dctn(columns.reshape(-1, *shape[-2:], columns.shape[1]), axes=(1, 2), norm="ortho")
    waves /= np.sqrt(1 + squared / cutoff**2)[..., None]
    return np.asarray(idctn(waves, axes=(1, 2), norm="ortho")).reshape(columns.shape)
