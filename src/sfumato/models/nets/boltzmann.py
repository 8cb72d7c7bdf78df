"""Restricted Boltzmann machines in numpy: means of either side given the other, and block Gibbs sampling.

    p(v, h) ∝ exp(hᵀWv + bᵀv + aᵀh),   p(h = 1 | v) = σ(Wv + a),   p(v = 1 | h) = σ(Wᵀh + b)

One-hot entries of v are drawn together, by a softmax of their outputs. A release samples without torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from sfumato.models.nets.latent import Part, draw_levels, mean_of_heads


@dataclass(frozen=True, eq=False)
class Boltzmann:
    """A restricted Boltzmann machine.

    Attributes:
        weight: W, shape (h, m), float32.
        visible: b, shape (m,), float32.
        hidden: a, shape (h,), float32.
        parts: of a visible vector.
    """

    weight: np.ndarray
    visible: np.ndarray
    hidden: np.ndarray
    parts: Sequence[Part]

    def hidden_draws(self, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return hidden units drawn given visible vectors, shape (n, h), float32."""
        means = special.expit(vectors @ self.weight.T + self.hidden)
        return (rng.random(means.shape, dtype=np.float32) < means).astype(np.float32)

    def outputs(self, hidden: np.ndarray) -> np.ndarray:
        """Return what visible means are the logistic or softmax of, shape (n, m), float32."""
        return hidden @ self.weight + self.visible

    def visible_draws(self, outputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return visible vectors drawn given outputs, shape (n, m), float32."""
        means = mean_of_heads(outputs, self.parts)
        drawn = (rng.random(means.shape, dtype=np.float32) < means).astype(np.float32)
        for part, levels in zip(self.parts, draw_levels_of(means, self.parts, rng), strict=True):
            if levels is not None:
                drawn[:, part.entries] = levels
        return drawn

    def gibbs(self, vectors: np.ndarray, steps: int, rng: np.random.Generator) -> np.ndarray:
        """Return visible vectors after so many steps of block Gibbs sampling."""
        for _ in range(steps):
            vectors = self.visible_draws(self.outputs(self.hidden_draws(vectors, rng)), rng)
        return vectors


def draw_levels_of(means: np.ndarray, parts: Sequence[Part], rng: np.random.Generator) -> list[np.ndarray | None]:
    """Return the drawn entries of each one-hot part, and None for parts of numbers."""
    if not any(part.levels for part in parts):
        return [None] * len(parts)
    drawn = draw_levels(means, parts, rng)
    return [drawn[:, part.entries] if part.levels else None for part in parts]
