"""Principal axes of flat vectors, measured with two Gaussian releases.

    centre             G(σ)   Σᵢ clip(xᵢ, C)                     → m̃ = sum ÷ n
    second moment      G(σ)   Σᵢ zᵢzᵢᵀ, zᵢ = clip(xᵢ − m̃, C')    → leading eigenvectors

n is public. Proofs: docs/proofs/gaussian_sum.md, docs/proofs/second_moment.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from sfumato.methods.nets.batches import VectorEncoder
from sfumato.models.nets.flat import ImageVectors, Vectors
from sfumato.plugins import (
    PRODUCT_BITS,
    SAFETY,
    NonNegativeSum,
    OuterProducts,
    Rows,
    clip_rows,
    row_by_row,
    step_of,
    whole_rows,
)

_ROWS_AT_ONCE = 4096
_SLACK = 1.2  # clip norm of projected records ÷ their root mean square by the noisy eigenvalues
_LEAST_RADIUS = 1e-3


def _vectors(encoder: VectorEncoder, rows: Rows) -> np.ndarray:
    return encoder.encode(rows).astype(np.float64, copy=False)


@dataclass(frozen=True)
class VectorSum(NonNegativeSum):
    """Sum of records as vectors with no negative entry, clipped to C; two are at most √2·C apart. Value: shape (d,)."""

    encoder: VectorEncoder
    clip_norm: float
    name: str = "centre"

    @property
    def norm_bound(self) -> float:
        """C."""
        return self.clip_norm

    @property
    def step(self) -> float:
        """C/2^26."""
        return step_of(self.norm_bound)

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(self.encoder.dimension)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records."""
        total += whole_rows(np.maximum(_vectors(self.encoder, rows), 0.0), self.norm_bound).sum(axis=0)


@dataclass(frozen=True)
class CentredSecondMoment(OuterProducts):
    """Sum of zzᵀ for records about a released centre, z clipped to C. Value: shape (d, d), norm at most C²."""

    encoder: VectorEncoder
    centre: np.ndarray
    clip_norm: float
    name: str = "second moment"
    bits: int = PRODUCT_BITS

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros((self.encoder.dimension, self.encoder.dimension))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records."""
        vectors = _vectors(self.encoder, rows)
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            centred = vectors[start : start + _ROWS_AT_ONCE] - self.centre
            inside = whole_rows(centred, self.clip_norm, self.bits)
            total += inside.T @ inside


@dataclass(frozen=True)
class LatentAxes:
    """The linear map to the latent space and back; a function of what was released.

    Attributes:
        centre: m̃, shape (d,).
        axes: orthonormal columns, or zeros in place of noise, shape (d, q).
        radius: C, bound on the norm of a projected record; latents are scaled to the unit ball by it.
    """

    centre: np.ndarray
    axes: np.ndarray
    radius: float

    @classmethod
    def of(
        cls, centre: np.ndarray, moment: np.ndarray, latent_dim: int, n: float, *, noise_edge: float = 0.0
    ) -> LatentAxes:
        """Take the leading eigenvectors of a noisy second moment of n records, and the radius from its eigenvalues.

        Axes whose eigenvalue is below `noise_edge` are noise: they become zero vectors, all but the first.
        """
        d = len(moment)
        values, vectors = linalg.eigh(moment, subset_by_index=[max(d - latent_dim, 0), d - 1])
        values, vectors = values[::-1], vectors[:, ::-1]
        above = values > noise_edge
        above[0] = True
        explained = float(np.maximum(values[above], 0.0).sum()) / n
        return cls(centre, np.ascontiguousarray(vectors * above), max(_SLACK * np.sqrt(explained), _LEAST_RADIUS))

    @property
    def latent_dim(self) -> int:
        """Number of axes q."""
        return self.axes.shape[1]

    @property
    def scale(self) -> float:
        """√q: what brings entries of a latent in the unit ball to order 1, for networks."""
        return float(np.sqrt(self.latent_dim))

    def latents(self, vectors: np.ndarray) -> np.ndarray:
        """Return z = clip(Vᵀ(x − m̃), C)/C, shape (n, q), of norm at most 1."""
        return clip_rows((vectors - self.centre) @ self.axes, self.radius) / self.radius

    def inverse(self, latents: np.ndarray) -> np.ndarray:
        """Return m̃ + C·Vz, shape (n, d)."""
        return self.centre + self.radius * latents @ self.axes.T

    def read(self, encoder: VectorEncoder, rows: Rows) -> np.ndarray:
        """Return the latents of coded rows, shape (n, q)."""
        return row_by_row(self.latents, _vectors(encoder, rows)) * SAFETY


def spread_about(vectors: Vectors, centre: np.ndarray) -> float:
    """Return a clip norm for records about a released centre: what is known of their norms says. Free.

    Of rows of a table, the root mean square distance that released marginals and centre make one expect; of images,
    whose norms nothing was measured about, a third of the largest norm.
    """
    if isinstance(vectors, ImageVectors):
        return vectors.typical_norm
    squares = vectors.typical_norm**2 + float(centre @ centre) - 2 * float(vectors.targets() @ centre)
    return _SLACK * float(np.sqrt(max(squares, _LEAST_RADIUS)))
