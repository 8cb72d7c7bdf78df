"""Gaussian mathematics on released moments and tables. Pure functions; nothing here reads a record or spends budget."""

from __future__ import annotations

import numpy as np


def project_to_simplex(values: np.ndarray, total: float) -> np.ndarray:
    """Return the nearest (Euclidean) vector with entries ≥ 0 that sum to `total`.

    Args:
        values: noisy counts, shape (d,).
        total: their sum, > 0.

    Reference: Held, Wolfe and Crowder 1974; sorting form of Duchi et al. 2008, Figure 1.
    """
    descending = np.sort(values)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, values.size + 1)
    last = np.flatnonzero(descending > excess)[-1]
    return np.maximum(values - excess[last], 0.0)


def shrinkage_weight(difference_energy: float, noise_energy: float) -> float:
    """Return the weight in [0, 1] of a noisy difference: signal energy ÷ whole energy.

    The positive-part James-Stein rule.

    Args:
        difference_energy: squared norm of the noisy difference.
        noise_energy: expected squared norm of its noise alone, known from the noise standard deviations.
    """
    if difference_energy <= noise_energy:
        return 0.0
    return 1.0 - noise_energy / difference_energy


def svec(matrices: np.ndarray) -> np.ndarray:
    """Return symmetric matrices as vectors: diagonal entries, and √2 times those above it. Keeps norms.

    Args:
        matrices: shape (..., d, d); only what is on and above the diagonal is read.

    Returns:
        Shape (..., d(d + 1)/2), row by row.
    """
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2))


def smat(vectors: np.ndarray) -> np.ndarray:
    """Return the symmetric matrices of which `svec` makes these vectors, shape (..., d, d)."""
    d = int(np.sqrt(2 * vectors.shape[-1]))
    rows, columns = np.triu_indices(d)
    matrices = np.empty((*vectors.shape[:-1], d, d))
    matrices[..., rows, columns] = vectors / np.where(rows == columns, 1.0, np.sqrt(2))
    matrices[..., columns, rows] = matrices[..., rows, columns]
    return matrices


def nearest_positive(matrix: np.ndarray, floor: float) -> np.ndarray:
    """Return the symmetric matrix with eigenvalues below `floor` raised to it."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, floor)) @ vectors.T


def symmetric_noise_edge(noise_std: float, dimension: int) -> float:
    """Return the spectral edge σ√(2d) of symmetric noise with standard deviation σ on, and σ/√2 off, the diagonal."""
    return noise_std * np.sqrt(2 * dimension)


def noise_reach(noise_std: float, dimension: int) -> float:
    """Return how far the spectrum of that noise reaches in 98 of 100 draws: edge · (1 + d^(−2/3)).

    Its largest eigenvalue lies about edge · TW / (2 d^(2/3)) past the edge. Where noise is far above the signal, what
    lies past the edge is no small thing: a class of a few records would get strong correlations that are noise.

    Reference: Tracy and Widom 1996: TW's 99 % quantile (β = 1) is 2.02.
    """
    return symmetric_noise_edge(noise_std, dimension) * (1 + max(dimension, 1) ** (-2 / 3))


def shrink_spectrum(matrix: np.ndarray, edge: float) -> np.ndarray:
    """Return the symmetric matrix with each eigenvalue a replaced by sign(a)·√(a² − edge²), 0 within the edge.

    The best such map in Frobenius norm for low-rank signal plus symmetric Gaussian noise whose spectrum fills
    [−edge, edge]; with edge 0 the matrix itself.

    Args:
        matrix: symmetric, shape (d, d).
        edge: spectral edge of the noise, ≥ 0.

    Reference: Gavish and Donoho 2017, IEEE Trans. Inf. Theory 63(4), for square noise; symmetric noise has the same
        displacement a = θ + (edge/2)²/θ and angle cos² = 1 − (edge/2)²/θ².
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    shrunken = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    return (vectors * shrunken) @ vectors.T
