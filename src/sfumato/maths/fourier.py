"""Random Fourier features: vectors of norm 1 whose inner products approximate an RBF kernel.

    z(x) = D^(-1/2) [cos w₁·x, …, cos w_D·x, sin w₁·x, …, sin w_D·x],   w ~ N(0, 2γI),
    ⟨z(x), z(y)⟩ ≈ exp(−γ‖x − y‖²)

Cosines and sines of the same frequencies make the norm exactly 1, whatever x is; features √(2/d) cos(w·x + b) have
norms up to √2. Rahimi and Recht 2007; the frequencies are public and need no secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import sparse

from sfumato.errors import ConfigError, require_integer, require_positive
from sfumato.maths.streams import public_stream

_ROWS_AT_ONCE = 512


@final
@dataclass(frozen=True, slots=True, eq=False)
class FourierFeatures:
    """The map from vectors to features; a function of public settings alone.

    Attributes:
        frequencies: shape (m, D).

    Example:
        >>> features = FourierFeatures.of(784, n_features=200, gamma=1 / 150, seed=0)
        >>> features.encode(np.ones((3, 784))).shape
        (3, 200)
    """

    frequencies: np.ndarray

    @classmethod
    def of(cls, dimension: int, *, n_features: int, gamma: float, seed: int) -> FourierFeatures:
        """Draw frequencies.

        Args:
            dimension: m, length of the vectors.
            n_features: 2D, an even number.
            gamma: of the kernel exp(−γ‖x − y‖²): 1 ÷ a typical squared distance, from public facts. Of sets of at most
                L items the largest squared distance is 2L.
            seed: of the public stream of randomness.

        Raises:
            ConfigError: an argument is outside its domain.
        """
        require_integer(at_least=1, dimension=dimension)
        require_positive(gamma=gamma)
        if require_integer(at_least=2, n_features=n_features) % 2:
            raise ConfigError(f"Expected n_features to be even, a cosine and a sine each, got {n_features=}.")
        draws = public_stream(seed).standard_normal((dimension, n_features // 2))
        return cls(np.sqrt(2 * gamma) * draws)

    def stretched(self, entries: slice, factor: float) -> FourierFeatures:
        """Return the features of vectors some of whose entries are multiplied by a factor first.

        Args:
            entries: of the vectors.
            factor: public; 0 leaves these entries out.
        """
        frequencies = self.frequencies.copy()
        frequencies[entries] *= factor
        return FourierFeatures(frequencies)

    @property
    def dimension(self) -> int:
        """Number of features, 2D."""
        return 2 * self.frequencies.shape[1]

    def encode(self, vectors: np.ndarray | sparse.csr_array) -> np.ndarray:
        """Return the features of some vectors, shape (n, 2D), float64.

        Privacy: none (pure function); row i depends on vector i alone, to the last bit: dense vectors are multiplied in
        blocks of one fixed shape, so that the order of summation does not depend on how many there are. A vector that
        is not finite, or too long for its angles to be, has features 0.

        Args:
            vectors: shape (n, m), dense or sparse.

        Raises:
            ConfigError: the shape is another.
        """
        shape = tuple(vectors.shape or ())
        if len(shape) != 2 or shape[1] != self.frequencies.shape[0]:
            raise ConfigError(f"Expected vectors of shape (n, {self.frequencies.shape[0]}), got {shape}.")
        n, half = shape[0], self.frequencies.shape[1]
        features = np.empty((n, 2 * half))
        with np.errstate(all="ignore"):
            for start in range(0, n, _ROWS_AT_ONCE):
                part = slice(start, start + _ROWS_AT_ONCE)
                some, matrix = vectors[part], self.frequencies
                dense = isinstance(some, np.ndarray)
                angles = fixed_product(some, matrix) if dense else np.asarray(some.astype(np.float64) @ matrix)
                np.cos(angles, out=features[part, :half])
                np.sin(angles, out=features[part, half:])
                features[part][~np.isfinite(angles).all(axis=1)] = 0.0
        features /= np.sqrt(half)
        return features


def fixed_product(vectors: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return vectors @ matrix such that a row's result does not depend, to the last bit, on the other rows.

    Linear algebra libraries choose the order of summation by the shape; here it is one shape for all.

    Args:
        vectors: shape (n, m), at most 512 rows are multiplied at a time.
        matrix: shape (m, k).
    """
    result = np.empty((len(vectors), matrix.shape[1]))
    block = np.zeros((_ROWS_AT_ONCE, vectors.shape[1]))
    with np.errstate(all="ignore"):
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            part = vectors[start : start + _ROWS_AT_ONCE]
            block[: len(part)] = part
            result[start : start + len(part)] = (block @ matrix)[: len(part)]
    return result
