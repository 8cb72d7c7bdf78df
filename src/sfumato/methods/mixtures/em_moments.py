"""What noisy expectation-maximisation releases: moments of all components of a mixture, jointly.

With z a record's vector, clipped to the unit ball here whatever it was before, and γ(z) its responsibilities under the
mixture of the previous iteration, a record adds

    moments          G(σ), J times    (w₀γ, w₁γ⊗z, w₂γ⊗s(z)),   s = svec(zzᵀ), z∘z or ‖z‖²
    pooled moment    G(σ'), once      zzᵀ                        tied covariances only, and then w₂ = 0

Responsibilities sum to 1, so the k components cost as much as one. Proof: docs/proofs/em.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.maths.gaussian import svec
from sfumato.methods.mixtures.steps import MixtureMoments
from sfumato.models.mixtures.covariances import CovarianceForm, DiagonalCovariance, FullCovariance, SphericalCovariance
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.plugins import PRODUCT_BITS, SAFETY, Noisy, OuterProducts, Rows, clip_rows, row_by_row, step_of, whole_rows

Vectors = Callable[[Rows], np.ndarray]
Weights = tuple[float, float, float]

_WORK_BYTES = 1 << 25
_ROWS_AT_ONCE = 4096


def em_replace_distance(weights: Weights, *, n_components: int = 2, form: CovarianceForm | None = None) -> float:
    """Return the largest distance between two records' (w₀γ, w₁γ⊗z, w₂γ⊗s(z)), ‖z‖ ≤ 1. Exact; attained.

    Privacy: the sensitivity of `EmMoments` under replace-one, before the margin for rounding.

    Args:
        weights: (w₀, w₁, w₂), each ≥ 0.
        n_components: with one component γ is 1 for every record, and w₀ drops out.
        form: of the covariances; None is full or diagonal.
    """
    w0, w1, w2 = (weight**2 for weight in weights)
    apart = w0 + w1 + w2 if n_components > 1 else 0.0
    if isinstance(form, SphericalCovariance):
        # vectors of one norm differ by their direction only, which ‖z‖² does not see
        squared = max(2 * apart, 4 * w1, _norms_apart(w1, w2))
    elif w1 <= 2 * w2:
        squared = 2 * max(apart, w1 + w2 + (w1**2 / (4 * w2) if w2 else 0.0))
    else:
        squared = max(2 * apart, 4 * w1)
    return float(np.sqrt(squared))


def _norms_apart(w1: float, w2: float) -> float:
    """Return the largest w₁²(1 + b)² + w₂²(1 − b²)² over b in [0, 1]: opposite vectors of norms 1 and b."""
    if 2 * w1 >= w2:
        return 4 * w1  # grows with b
    b = (1 - np.sqrt(1 - 2 * w1 / w2)) / 2
    return float(max(w1 * (1 + b) ** 2 + w2 * (1 - b**2) ** 2, 4 * w1))


def default_weights(form: CovarianceForm, dimension: int) -> Weights:
    """Return the roots of the shares of an iteration's squared budget: in proportion to √(2, q, coordinates of s(z)).

    These shares minimise the summed squared error of all noisy coordinates, a mass counting twice.
    """
    roots = np.sqrt([2.0, dimension, form.n_seconds(dimension)])
    weights = np.sqrt(roots / roots.sum())
    return float(weights[0]), float(weights[1]), float(weights[2])


@dataclass(frozen=True)
class EmMoments:
    """Responsibility-weighted moments of all components, as one vector.

    A record's contribution (w₀γ, w₁γ⊗z, w₂γ⊗s(z)) has norm at most √(w₀² + w₁² + w₂²), as γ lies in the simplex and
    ‖s(z)‖ ≤ ‖z‖² ≤ 1; two records' are at most `em_replace_distance` apart. A record whose vector is not finite counts
    as the zero vector. Value: shape (k + kq + k·n_seconds,).

    Attributes:
        vectors: records → vectors, shape (n, q). Clipped here again, to norm 1.
        mixture: from public facts or earlier releases.
        weights: (w₀, w₁, w₂), public.
    """

    vectors: Vectors
    mixture: GaussianMixture
    weights: Weights
    name: str = "mixture moments"
    bits: int = PRODUCT_BITS

    @property
    def norm_bound(self) -> float:
        """√(w₀² + w₁² + w₂²)."""
        return float(np.linalg.norm(self.weights))

    @property
    def replace_bound(self) -> float:
        """The exact joint distance, and never below the norm bound."""
        distance = em_replace_distance(self.weights, n_components=self.mixture.n_components, form=self.mixture.form)
        return max(distance, self.norm_bound)

    def split(self, total: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return views of the three blocks: (k,), (k, q), (k, n_seconds)."""
        k, q = self.mixture.n_components, self.mixture.dimension
        return total[:k], total[k : k + k * q].reshape(k, q), total[k + k * q :].reshape(k, -1)

    @property
    def margin(self) -> float:
        """What contributions are multiplied with, so that their rounding stays within norm and distance."""
        return 1 - 2.0 ** (2 - self.bits) * float(np.sqrt(self.mixture.n_components) + np.sqrt(self.mixture.dimension))

    @property
    def step(self) -> np.ndarray:
        """Margin times w₀/2^bits, w₁/4^bits and w₂/4^bits (√2 of it where s is √2 of a product), shape (k + …,)."""
        step = self.zero()
        counts, sums, seconds = self.split(step)
        w0, w1, w2 = (self.margin * weight for weight in self.weights)
        counts[:], sums[:] = step_of(w0, self.bits), step_of(w1, 2 * self.bits)
        seconds[:] = step_of(w2 or 1.0, 2 * self.bits)
        if isinstance(self.mixture.form, FullCovariance):
            seconds *= svec(np.ones((self.mixture.dimension,) * 2))
        return step

    def zero(self) -> np.ndarray:
        """Return zeros."""
        k, q = self.mixture.n_components, self.mixture.dimension
        return np.zeros(k * (1 + q + self.mixture.form.n_seconds(q)))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, a few at a time."""
        vectors = self.vectors(rows)
        for part in self.mixture.blocks(len(vectors)):
            points = in_unit_ball(vectors[part])
            self.add_shared(total, points, row_by_row(self.mixture.responsibilities, points))

    def add_shared(self, total: np.ndarray, points: np.ndarray, shares: np.ndarray) -> None:
        """Add records of the unit ball, shape (n, q), that components share, (n, k): rounded to whole numbers."""
        counts, sums, seconds = self.split(total)
        scale = 2.0**self.bits
        whole = np.rint(scale * shares)
        counts += whole.sum(axis=0)
        sums += whole.T @ whole_rows(points, 1.0, self.bits)
        if not self.weights[2]:
            return
        form = self.mixture.form
        if isinstance(form, FullCovariance):
            upper = np.triu_indices(points.shape[1])
            roots = scale * np.sqrt(shares)
            for start in range(0, len(points), _ROWS_AT_ONCE):  # work arrays stay in the processor's cache
                part = slice(start, start + _ROWS_AT_ONCE)
                for k in range(shares.shape[1]):
                    rooted = points[part] * roots[part, k, None]
                    np.rint(rooted, out=rooted)
                    seconds[k] += (rooted.T @ rooted)[upper]
        else:
            diagonal = isinstance(form, DiagonalCovariance)
            squares = points**2 if diagonal else np.einsum("ij,ij->i", points, points)[:, None]
            seconds += whole.T @ np.rint(scale * squares)

    def moments(self, noisy: Noisy) -> MixtureMoments:
        """Take the weights off a released vector. Free."""
        stds = [noisy.noise_std / (self.margin * w) if w else 0.0 for w in self.weights]
        masses, sums, seconds = (
            block / (self.margin * w) if w else block
            for block, w in zip(self.split(noisy.value), self.weights, strict=True)
        )
        return MixtureMoments(masses, sums, seconds, (stds[0], stds[1], stds[2]))


def in_unit_ball(vectors: np.ndarray) -> np.ndarray:
    """Return clipped vectors with the margin for rounding taken off again: statistics leave it to their weights."""
    return clip_rows(vectors, 1.0) / SAFETY


@dataclass(frozen=True)
class PooledSquares(OuterProducts):
    """Sum over all records of the outer product of u = (z, a): a vector and, if not 0, a constant.

    Norm ‖u‖² ≤ 1 + a², two records at most √2 times that apart. With a constant the products with it are the sum of
    the vectors and their number. Value: shape (q, q), or (q + 1, q + 1) with the constant last.
    """

    vectors: Vectors
    dimension: int
    constant: float = 0.0
    name: str = "pooled second moment"
    bits: int = PRODUCT_BITS

    @property
    def _longest(self) -> float:
        return float(np.sqrt(1 + self.constant**2))

    @property
    def step(self) -> float:
        """(√(1 + a²)/2^bits)²."""
        return step_of(self._longest, self.bits) ** 2

    @property
    def norm_bound(self) -> float:
        """1 + a²."""
        return 1 + self.constant**2

    def zero(self) -> np.ndarray:
        """Return zeros."""
        size = self.dimension + (self.constant != 0)
        return np.zeros((size, size))

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add some records, a few at a time."""
        vectors = self.vectors(rows)
        step = max(64, _WORK_BYTES // (8 * self.dimension))
        for start in range(0, len(vectors), step):
            points = in_unit_ball(vectors[start : start + step])
            if self.constant:
                points = np.column_stack([points, np.full(len(points), self.constant)])
            points = whole_rows(points, self._longest, self.bits)
            total += points.T @ points
