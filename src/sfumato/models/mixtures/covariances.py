"""The forms a mixture's covariances may take: full, diagonal, spherical, or one full matrix for all components.

A form knows how its covariances are stored, which second moments of the records they follow from, and how to measure
distances. Pure functions: nothing here reads a record or spends budget.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy import linalg

from sfumato.maths.gaussian import smat, svec


class CovarianceForm(ABC):
    """How the covariances of k components in q dimensions are stored and found. Privacy: none (pure functions)."""

    name: ClassVar[str]
    per_component: ClassVar[bool] = True

    @abstractmethod
    def shape(self, k: int, q: int) -> tuple[int, ...]:
        """Return the shape of the stored covariances."""

    def n_seconds(self, q: int) -> int:
        """Return how many coordinates the second moment of one component has; 0 if it is pooled."""
        return self.identity_seconds(q).size if self.per_component else 0

    @abstractmethod
    def of_seconds(self, seconds: np.ndarray, means: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return covariances, not yet projected, from second moments per record, shape (k, n_seconds)."""

    @abstractmethod
    def project(self, covariances: np.ndarray, floor: np.ndarray, ceiling: float) -> np.ndarray:
        """Return the covariances with their eigenvalues clamped to [floor, ceiling], floor of shape (k,)."""

    @abstractmethod
    def whiteners(self, covariances: np.ndarray) -> np.ndarray:
        """Return W with W Wᵀ = Σ⁻¹: a matrix, a vector of its diagonal or a number, per component.

        Raises:
            numpy.linalg.LinAlgError: a covariance is not positive definite.
        """

    @abstractmethod
    def log_determinants(self, whiteners: np.ndarray, q: int) -> np.ndarray:
        """Return ½ log det Σ⁻¹ per component, shape (k,) or (1,)."""

    @abstractmethod
    def squared_distances(self, points: np.ndarray, means: np.ndarray, whiteners: np.ndarray) -> np.ndarray:
        """Return (x − μ)ᵀ Σ⁻¹ (x − μ), shape (n, k)."""

    @abstractmethod
    def dense(self, covariances: np.ndarray, k: int, q: int) -> np.ndarray:
        """Return the covariances as full matrices, shape (k, q, q)."""

    @abstractmethod
    def identity_seconds(self, q: int) -> np.ndarray:
        """Return the second moment of a unit covariance about 0, in this form's coordinates."""

    def noise_reach(self, q: int) -> float:
        """Return how far noise of standard deviation 1 on the second moment moves an eigenvalue, about: √q."""
        return float(np.sqrt(q))


@dataclass(frozen=True, slots=True)
class FullCovariance(CovarianceForm):
    """A matrix per component, stored with shape (k, q, q); its second moment is svec(xxᵀ)."""

    name: ClassVar[str] = "full"

    def shape(self, k: int, q: int) -> tuple[int, ...]:
        """Return (k, q, q)."""
        return (k, q, q)

    def of_seconds(self, seconds: np.ndarray, means: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return E[xxᵀ] − μμᵀ per component."""
        return smat(seconds) - means[:, :, None] * means[:, None, :]

    def project(self, covariances: np.ndarray, floor: np.ndarray, ceiling: float) -> np.ndarray:
        """Clamp eigenvalues."""
        return np.stack([_clamped(matrix, low, ceiling) for matrix, low in zip(covariances, floor, strict=True)])

    def whiteners(self, covariances: np.ndarray) -> np.ndarray:
        """Return L⁻ᵀ per component, Σ = LLᵀ."""
        return np.stack([_whitener(matrix) for matrix in covariances])

    def log_determinants(self, whiteners: np.ndarray, q: int) -> np.ndarray:
        """Return the sum of the logs of the diagonals."""
        return np.log(np.einsum("kii->ki", whiteners)).sum(axis=1)

    def squared_distances(self, points: np.ndarray, means: np.ndarray, whiteners: np.ndarray) -> np.ndarray:
        """Whiten all components in one product per strip: whiteners are upper triangular."""
        (n, q), k = points.shape, len(means)
        shifts = np.einsum("ki,kij->kj", means, whiteners)
        result = np.zeros((n, k))
        edges = np.linspace(0, q, min(4, max(1, q // 12)) + 1).astype(int)  # strips no narrower than twelve columns
        for start, end in pairwise(edges.tolist()):
            wide = whiteners[:, :end, start:end].transpose(1, 0, 2).reshape(end, -1)
            white = points[:, :end] @ wide
            white -= shifts[:, start:end].reshape(-1)
            white = white.reshape(n, k, end - start)
            result += np.einsum("nkj,nkj->nk", white, white)
        return result

    def identity_seconds(self, q: int) -> np.ndarray:
        """Return svec(I)."""
        return svec(np.eye(q))

    def dense(self, covariances: np.ndarray, k: int, q: int) -> np.ndarray:
        """Return them as they are."""
        return covariances


class _Variances(CovarianceForm):
    """What forms without covariances share: their whiteners are inverse standard deviations."""

    __slots__ = ()

    def whiteners(self, covariances: np.ndarray) -> np.ndarray:
        """Return inverse standard deviations."""
        if not (covariances > 0).all():
            raise np.linalg.LinAlgError("Expected variances above 0.")
        return 1 / np.sqrt(covariances)

    def squared_distances(self, points: np.ndarray, means: np.ndarray, whiteners: np.ndarray) -> np.ndarray:
        """Whiten one component at a time."""
        return distances_apart(points, means, whiteners.reshape(len(means), -1))


@dataclass(frozen=True, slots=True)
class DiagonalCovariance(_Variances):
    """Variances per component, stored with shape (k, q); its second moment is x∘x."""

    name: ClassVar[str] = "diagonal"

    def shape(self, k: int, q: int) -> tuple[int, ...]:
        """Return (k, q)."""
        return (k, q)

    def of_seconds(self, seconds: np.ndarray, means: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return E[x∘x] − μ∘μ per component."""
        return seconds - means**2

    def project(self, covariances: np.ndarray, floor: np.ndarray, ceiling: float) -> np.ndarray:
        """Clamp variances."""
        return np.clip(covariances, floor[:, None], ceiling)

    def log_determinants(self, whiteners: np.ndarray, q: int) -> np.ndarray:
        """Return the sum of the logs."""
        return np.log(whiteners).sum(axis=1)

    def identity_seconds(self, q: int) -> np.ndarray:
        """Return ones."""
        return np.ones(q)

    def dense(self, covariances: np.ndarray, k: int, q: int) -> np.ndarray:
        """Return diagonal matrices."""
        return covariances[:, :, None] * np.eye(q)

    def noise_reach(self, q: int) -> float:
        """Return 1: a variance has noise of its own."""
        return 1.0


@dataclass(frozen=True, slots=True)
class SphericalCovariance(_Variances):
    """One variance per component, stored with shape (k,); its second moment is ‖x‖²."""

    name: ClassVar[str] = "spherical"

    def shape(self, k: int, q: int) -> tuple[int, ...]:
        """Return (k,)."""
        return (k,)

    def of_seconds(self, seconds: np.ndarray, means: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return (E‖x‖² − ‖μ‖²)/q per component."""
        return (seconds[:, 0] - np.einsum("ij,ij->i", means, means)) / means.shape[1]

    def project(self, covariances: np.ndarray, floor: np.ndarray, ceiling: float) -> np.ndarray:
        """Clamp variances."""
        return np.clip(covariances, floor, ceiling)

    def log_determinants(self, whiteners: np.ndarray, q: int) -> np.ndarray:
        """Return q times the log."""
        return q * np.log(whiteners)

    def identity_seconds(self, q: int) -> np.ndarray:
        """Return q."""
        return np.full(1, float(q))

    def dense(self, covariances: np.ndarray, k: int, q: int) -> np.ndarray:
        """Return multiples of the identity."""
        return covariances[:, None, None] * np.eye(q)

    def noise_reach(self, q: int) -> float:
        """Return 1/q: the noise of ‖x‖² is shared by q variances."""
        return 1 / q


@dataclass(frozen=True, slots=True)
class TiedCovariance(CovarianceForm):
    """One matrix for all components, shape (q, q).

    Σ = E[xxᵀ] − Σₖ πₖ μₖμₖᵀ: its second moment is that of all records together, which does not change from one
    iteration to the next.
    """

    name: ClassVar[str] = "tied"
    per_component: ClassVar[bool] = False

    def shape(self, k: int, q: int) -> tuple[int, ...]:
        """Return (q, q)."""
        return (q, q)

    def of_seconds(self, seconds: np.ndarray, means: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return E[xxᵀ] − Σₖ πₖ μₖμₖᵀ, given E[xxᵀ] of shape (q, q)."""
        return seconds - (shares * means.T) @ means

    def project(self, covariances: np.ndarray, floor: np.ndarray, ceiling: float) -> np.ndarray:
        """Clamp eigenvalues at the least floor."""
        return _clamped(covariances, float(floor.min()), ceiling)

    def whiteners(self, covariances: np.ndarray) -> np.ndarray:
        """Return L⁻ᵀ, Σ = LLᵀ."""
        return _whitener(covariances)

    def log_determinants(self, whiteners: np.ndarray, q: int) -> np.ndarray:
        """Return the sum of the logs of the diagonal, shape (1,)."""
        return np.log(np.diagonal(whiteners)).sum(keepdims=True)

    def squared_distances(self, points: np.ndarray, means: np.ndarray, whiteners: np.ndarray) -> np.ndarray:
        """Whiten once."""
        return distances_apart(points @ whiteners, means @ whiteners, np.ones((len(means), 1)))

    def identity_seconds(self, q: int) -> np.ndarray:
        """Return I."""
        return np.eye(q)

    def dense(self, covariances: np.ndarray, k: int, q: int) -> np.ndarray:
        """Return the matrix k times."""
        return np.broadcast_to(covariances, (k, q, q))


FORMS: dict[str, CovarianceForm] = {
    form.name: form for form in (FullCovariance(), DiagonalCovariance(), SphericalCovariance(), TiedCovariance())
}


def _clamped(matrix: np.ndarray, floor: float, ceiling: float) -> np.ndarray:
    """Clamp the eigenvalues of a symmetric matrix; leave it to the last bit if they are inside."""
    symmetric = (matrix + matrix.T) / 2
    values, vectors = linalg.eigh(symmetric)
    if floor <= values[0] and values[-1] <= ceiling:
        return symmetric
    clamped = (vectors * np.clip(values, floor, ceiling)) @ vectors.T
    return (clamped + clamped.T) / 2


def _whitener(covariance: np.ndarray) -> np.ndarray:
    lower = np.linalg.cholesky(covariance)
    return linalg.solve_triangular(lower, np.eye(len(lower)), lower=True).T


def distances_apart(points: np.ndarray, means: np.ndarray, whiteners: np.ndarray) -> np.ndarray:
    """Return Σⱼ ((xⱼ − μₖⱼ)·wₖⱼ)², shape (n, k); whiteners of shape (k, q) or (k, 1)."""
    result = np.empty((len(points), len(means)))
    for k, (mean, whitener) in enumerate(zip(means, whiteners, strict=True)):
        white = (points - mean) * whitener
        np.einsum("ij,ij->i", white, white, out=result[:, k])
    return result
