"""Factor analysis from a second moment: x = m + Wz + e, z ~ N(0, I), e ~ N(0, diag ψ).

Pure functions of released values; nothing here reads a record or spends budget. No matrix of the size of the second
moment is ever inverted or copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from sfumato.errors import ConfigError

_LOG_2PI = float(np.log(2 * np.pi))
_SMALL = 256  # up to here all eigenvalues are found at once


class Moment(Protocol):
    """A covariance as EM needs it."""

    @property
    def diagonal(self) -> np.ndarray:
        """Return its diagonal, shape (q,)."""
        ...

    def times(self, block: np.ndarray) -> np.ndarray:
        """Return its product with a block of vectors, shape (q, r)."""
        ...


@dataclass(frozen=True)
class CentredMoment:
    """scale·M − m mᵀ, for a sum M of outer products that may be large: it is not copied.

    Attributes:
        matrix: M, symmetric, shape (q, q).
        scale: 1 ÷ the number of records.
        mean: m, shape (q,).
    """

    matrix: np.ndarray
    scale: float
    mean: np.ndarray

    @property
    def diagonal(self) -> np.ndarray:
        """Return its diagonal."""
        return self.scale * np.diagonal(self.matrix) - self.mean**2

    def times(self, block: np.ndarray) -> np.ndarray:
        """Return its product with a block."""
        product = self.matrix @ block
        product *= self.scale
        product -= np.outer(self.mean, self.mean @ block)
        return product


@dataclass(frozen=True)
class LowRankMoment:
    """U diag(a) Uᵀ + diag(d): what is left of a noisy covariance when noise is taken out of its spectrum.

    Attributes:
        vectors: U, orthonormal, shape (q, r).
        values: a ≥ 0, shape (r,).
        rest: d > 0, shape (q,).
    """

    vectors: np.ndarray
    values: np.ndarray
    rest: np.ndarray

    @property
    def diagonal(self) -> np.ndarray:
        """Return its diagonal."""
        return self.vectors**2 @ self.values + self.rest

    def times(self, block: np.ndarray) -> np.ndarray:
        """Return its product with a block."""
        return self.vectors @ (self.values[:, None] * (self.vectors.T @ block)) + self.rest[:, None] * block


def denoised_moment(noisy: Moment, edge: float, least: float, most_rank: int) -> LowRankMoment:
    """Return the low-rank part of a noisy covariance that stands out of the noise, and a diagonal.

    Eigenvalues a beyond the edge of the noise's spectrum become √(a² − edge²) (`shrink_spectrum`), the others 0. The
    diagonal gets what the low-rank part leaves of the noisy one, raised to `least`.

    Args:
        noisy: a covariance with symmetric noise.
        edge: of the noise's spectrum, ≥ 0.
        least: floor of the diagonal, > 0.
        most_rank: most eigenvalues to look at.
    """
    values, vectors = _leading(noisy, min(most_rank, len(noisy.diagonal)))
    above = values > edge
    shrunk, vectors = np.sqrt(np.maximum(values[above] ** 2 - edge**2, 0.0)), vectors[:, above]
    rest = np.maximum(noisy.diagonal - vectors**2 @ shrunk, least)
    return LowRankMoment(vectors, shrunk, rest)


def _leading(moment: Moment, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues, ascending, and their eigenvectors, shape (q, rank)."""
    q = len(moment.diagonal)
    if q <= _SMALL or rank >= q - 1:
        matrix = moment.times(np.eye(q))
        return linalg.eigh((matrix + matrix.T) / 2, subset_by_index=(q - rank, q - 1))
    operator: Any = LinearOperator((q, q), matvec=lambda v: moment.times(v.reshape(-1, 1))[:, 0], dtype=np.float64)  # type: ignore[call-arg]
    # a fixed start: the same release gives the same model
    values, vectors = eigsh(operator, k=rank, which="LA", v0=np.ones(q) / np.sqrt(q))  # type: ignore[misc]
    return np.asarray(values), np.asarray(vectors)


@dataclass(frozen=True)
class FactorModel:
    """Gaussian of mean m and covariance W Wᵀ + diag ψ.

    Attributes:
        mean: shape (q,).
        loadings: W, shape (q, r).
        variances: ψ > 0, shape (q,).
    """

    mean: np.ndarray
    loadings: np.ndarray
    variances: np.ndarray

    def __post_init__(self) -> None:
        (q, r) = self.loadings.shape if self.loadings.ndim == 2 else (0, 0)
        if q < 1 or r < 1 or self.mean.shape != (q,) or self.variances.shape != (q,):
            raise ConfigError("Expected a mean and variances for every row of the loadings.")
        if not all(np.isfinite(a).all() for a in (self.mean, self.loadings, self.variances)):
            raise ConfigError("Expected finite means, loadings and variances.")
        if not (self.variances > 0).all():
            raise ConfigError("Expected variances above 0.")

    @cached_property
    def posterior(self) -> tuple[np.ndarray, np.ndarray]:
        """Return G = (I + WᵀΨ⁻¹W)⁻¹, shape (r, r), and β = GWᵀΨ⁻¹, shape (r, q), so that E[z | x] = β(x − m)."""
        scaled = self.loadings / self.variances[:, None]
        spread = np.linalg.inv(np.eye(self.loadings.shape[1]) + self.loadings.T @ scaled)
        return (spread + spread.T) / 2, spread @ scaled.T

    @property
    def _log_determinant(self) -> float:
        return float(np.log(self.variances).sum() - np.linalg.slogdet(self.posterior[0])[1])

    def log_densities(self, points: np.ndarray) -> np.ndarray:
        """Return log N(x | m, WWᵀ + Ψ), shape (n,), by the Woodbury identity.

        Args:
            points: shape (n, q).
        """
        centred = points - self.mean
        spread, project = self.posterior
        factor = np.linalg.cholesky(np.linalg.inv(spread))
        explained = (centred @ project.T) @ factor
        squared = centred**2 @ (1 / self.variances) - np.einsum("ij,ij->i", explained, explained)
        return -0.5 * (len(self.mean) * _LOG_2PI + self._log_determinant + squared)

    def log_likelihood(self, moment: Moment) -> float:
        """Return the mean log density of records about the mean m, whose covariance is `moment`."""
        _, project = self.posterior
        explained = np.sum(moment.times(project.T) * (self.loadings / self.variances[:, None]))
        trace = float(moment.diagonal @ (1 / self.variances)) - float(explained)
        return -0.5 * (len(self.mean) * _LOG_2PI + self._log_determinant + trace)

    def step(self, moment: Moment, least: float) -> FactorModel:
        """Return the model of the next EM iteration, with variances of at least `least`."""
        spread, project = self.posterior
        product = moment.times(project.T)
        loadings = np.linalg.solve((spread + project @ product).T, product.T).T
        variances = np.maximum(moment.diagonal - np.einsum("ij,ij->i", loadings, product), least)
        return FactorModel(self.mean, loadings, variances)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n draws, shape (n, q).

        Args:
            n: how many.
            rng: public randomness.
        """
        q, r = self.loadings.shape
        noise = rng.standard_normal((n, q)) * np.sqrt(self.variances)
        return self.mean + rng.standard_normal((n, r)) @ self.loadings.T + noise


def fit_factors(
    mean: np.ndarray, moment: Moment, rank: int, *, least: float, most_iterations: int = 2000, tolerance: float = 1e-9
) -> FactorModel:
    """Fit factor analysis to a covariance by EM. Free: it may run to convergence, as no record is touched.

    Args:
        mean: shape (q,).
        moment: covariance about it.
        rank: columns r of W.
        least: floor of the variances ψ, > 0.
        most_iterations: of EM.
        tolerance: EM stops where the log-likelihood rises by less than this.

    Reference: Rubin and Thayer 1982, EM algorithms for ML factor analysis.
    """
    diagonal = np.maximum(moment.diagonal, least)
    values, vectors = _leading(moment, rank)
    # an eigenvalue of 0 would be a fixed point of EM
    principal = vectors * np.sqrt(np.maximum(values, 1e-3 * max(float(values.max()), 1e-12)))
    model = FactorModel(mean, principal, np.maximum(diagonal / 2, least))
    before = -np.inf
    for _ in range(most_iterations):
        model = model.step(moment, least)
        likelihood = model.log_likelihood(moment)
        if abs(likelihood - before) < tolerance:
            break
        before = likelihood
    return model
