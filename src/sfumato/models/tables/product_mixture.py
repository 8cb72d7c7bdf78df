"""A law of a table's columns: a mixture of products, P(x) = Σ_k π_k Π_j Q_j(x_j | k).

Whatever its parameters are, it is a law: its moments contradict nothing.

Reference: Lazarsfeld and Henry 1968 (latent classes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class ProductMixture:
    """A law of p columns of codes.

    Attributes:
        weights: of the components, shape (R,), sum 1.
        tables: P(code | component) of each column, shape (r_j, R): each component's sum is 1.

    Examples:
        >>> import numpy as np
        >>> same = np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> law = ProductMixture(np.array([0.5, 0.5]), (same, same))
        >>> law.moments([np.eye(2), np.eye(2)])[:2, 2:].round(2)  # P(code, other code)
        array([[0.41, 0.09],
               [0.09, 0.41]])
    """

    weights: np.ndarray
    tables: tuple[np.ndarray, ...]

    def moments(self, functions: Sequence[np.ndarray]) -> np.ndarray:
        """Return E[f f'ᵀ] of functions of all columns, shape (d, d); within a column they mean nothing.

        Args:
            functions: of each column's codes, shape (r_j, q_j) each; d is the sum of the q_j.
        """
        means = np.concatenate([f.T @ table for f, table in zip(functions, self.tables, strict=True)])
        return (means * self.weights) @ means.T

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return codes of n rows, shape (n, p), in random order: components and codes in proportion, up to one row."""
        numbers = (np.arange(n) + rng.random()) / max(n, 1)
        component = np.minimum(np.searchsorted(np.cumsum(self.weights), numbers, side="right"), self.weights.size - 1)
        component = np.minimum(component, np.flatnonzero(self.weights > 0).max())
        counts = np.bincount(component, minlength=self.weights.size)
        starts = np.concatenate([[0], np.cumsum(counts)])
        codes = np.empty((n, len(self.tables)), dtype=np.int64)
        for j, table in enumerate(self.tables):
            ends = np.cumsum(table, axis=0)
            for k in np.flatnonzero(counts):
                # systematic within the component, in an order of its own: columns stay independent there
                u = (rng.permutation(int(counts[k])) + rng.random(int(counts[k]))) / counts[k] * ends[-1, k]
                codes[starts[k] : starts[k + 1], j] = np.searchsorted(ends[:, k], u, side="right")
            codes[:, j] = np.minimum(codes[:, j], len(table) - 1)
        return codes[rng.permutation(n)]
