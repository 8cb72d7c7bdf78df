"""A softmax classifier of images on fixed features, trained by full-batch gradient steps with Gaussian noise.

    gradient at step t    G(σ), T times    Σᵢ clip(pᵢ − e_y, c) ⊗ zᵢ,   ‖zᵢ‖ ≤ 1

z is a record's features (`sfumato.models.images.gradients`), standardised by the mean and covariance of *synthetic*
images and clipped; p the class probabilities of the weights so far, which earlier releases determine. The classifier
starts from one that is trained on synthetic images alone, which costs nothing. Proof: docs/proofs/gaussian_sum.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from sfumato.methods.images.statistics import blocks
from sfumato.models.images.coefficients import ImageEncoder
from sfumato.models.images.gradients import gradient_features
from sfumato.plugins import PRODUCT_BITS, ClippedSum, Rows, clip_rows, row_by_row, step_of, whole_rows

STEPS = 10
CLIP_NORM = 0.5
_RATE = 400.0
_MOMENTUM = 0.9
_WARM_STEPS, _WARM_RATE = 60, 30.0
_RIDGE = 0.1  # of the mean eigenvalue
_TYPICAL_NORM = 0.75  # of standardised features, before the constant; few are clipped
_CONSTANT = 0.3


@dataclass(frozen=True)
class Standardised:
    """Features of images, standardised and clipped to norm 1 with a constant for the offsets.

    Attributes:
        encoder: of the images.
        mean: shape (f,).
        whiten: shape (f, f).
    """

    encoder: ImageEncoder
    mean: np.ndarray
    whiten: np.ndarray

    @classmethod
    def of(cls, encoder: ImageEncoder, features: np.ndarray) -> Standardised:
        """Take mean and covariance from features of synthetic images, shape (n, f)."""
        mean = features.mean(axis=0, dtype=np.float64)
        values, vectors = linalg.eigh(np.cov(features - mean, rowvar=False))
        values = np.maximum(values, 0.0)
        whiten = (vectors / np.sqrt(values + _RIDGE * values.mean() + 1e-12)) @ vectors.T
        typical = np.median(np.linalg.norm((features - mean) @ whiten, axis=1))
        return cls(encoder, mean, whiten * (_TYPICAL_NORM / max(float(typical), 1e-12)))

    def vectors(self, features: np.ndarray) -> np.ndarray:
        """Return z, shape (n, f + 1), of norm at most 1."""
        inside = clip_rows((features - self.mean) @ self.whiten, 1.0)
        constant = np.full((len(inside), 1), _CONSTANT)
        return np.concatenate([inside, constant], axis=1) / np.sqrt(1 + _CONSTANT**2)

    def linear(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return coefficients (f, k) and offsets (k,) that score raw features as `weights` (f + 1, k) score z."""
        coefficients = self.whiten @ weights[:-1]
        return coefficients, _CONSTANT * weights[-1] - self.mean @ coefficients


def _errors(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return p − e_y, shape (n, k)."""
    errors = special.softmax(scores, axis=1)
    errors[np.arange(len(classes)), classes] -= 1
    return errors


@dataclass(frozen=True)
class TeacherGradient(ClippedSum):
    """Sum over images of clip(p − e_y, c) ⊗ z: norm at most c, two images at most 2c apart. Value: shape (f + 1, k)."""

    standardised: Standardised
    weights: np.ndarray
    clip_norm: float = CLIP_NORM
    name: str = "classifier's gradients"
    bits: int = PRODUCT_BITS

    @property
    def step(self) -> float:
        """c/4^bits: errors are whole numbers of c/2^bits, features of 1/2^bits."""
        return step_of(self.clip_norm, 2 * self.bits)

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros_like(self.weights)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some images."""
        encoder = self.standardised.encoder
        for pictures, classes in blocks(encoder.layout, rows):
            features = gradient_features(pictures, encoder)
            vectors = row_by_row(self.standardised.vectors, features)
            scores = row_by_row(lambda some: some @ self.weights, vectors)
            errors = whole_rows(_errors(scores, classes), self.clip_norm, self.bits)
            total += whole_rows(vectors, 1.0, self.bits).T @ errors


def warm_start(vectors: np.ndarray, classes: np.ndarray, n_classes: int) -> np.ndarray:
    """Return weights trained on synthetic images alone, shape (f + 1, k)."""

    def gradient(weights: np.ndarray) -> np.ndarray:
        return vectors.T @ clip_rows(_errors(vectors @ weights, classes), CLIP_NORM) / len(classes)

    return _descend(np.zeros((vectors.shape[1], n_classes)), gradient, _WARM_STEPS, _WARM_RATE)


def train(weights: np.ndarray, gradient: Callable[[np.ndarray], np.ndarray], n: float) -> np.ndarray:
    """Return the mean of the weights after each of the last half of the noisy steps.

    Args:
        weights: to start from, shape (f + 1, k).
        gradient: releases the noisy sum of gradients at some weights; called `STEPS` times.
        n: number of records, public or released.
    """
    return _descend(weights, lambda at: gradient(at) / n, STEPS, _RATE, last=STEPS // 2)


def _descend(
    weights: np.ndarray, gradient: Callable[[np.ndarray], np.ndarray], steps: int, rate: float, last: int = 1
) -> np.ndarray:
    """Descend with momentum; return the mean of the last iterates."""
    velocity, best = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(steps):
        velocity = _MOMENTUM * velocity - rate * gradient(weights)
        weights = weights + velocity
        if step >= steps - last:
            best += weights / last
    return best
