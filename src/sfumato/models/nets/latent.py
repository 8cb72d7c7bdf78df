"""Decoders of latent vectors: a network of linear layers and what its outputs mean, in numpy alone.

A release samples without the library that trained it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from sfumato.maths.arrays import require_array

_KNOTS = 257
_ROUNDS = 30
_LEAST_SHARE = 1e-6
_UNIFORM_VARIANCE = 1 / 12


class Part(Protocol):
    """Consecutive entries of a vector that belong together."""

    @property
    def entries(self) -> slice:
        """Where they are."""
        ...

    @property
    def levels(self) -> bool:
        """Whether they are one-hot; if not, each is a number in [0, 1]."""
        ...


@dataclass(frozen=True)
class Layers:
    """A network of linear layers with max(0, ·) between them.

    Attributes:
        weights: per layer, shape (outputs, inputs), float32.
        biases: per layer, shape (outputs,), float32.
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]

    def __call__(self, latents: np.ndarray) -> np.ndarray:
        """Return outputs of the last layer, shape (n, d), float32."""
        values = latents.astype(np.float32)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = (values if i == 0 else np.maximum(values, 0.0)) @ weight.T + bias
        return values


def mean_of_heads(outputs: np.ndarray, parts: Sequence[Part]) -> np.ndarray:
    """Return expected vectors of native heads: logistic for numbers, softmax for one-hot entries."""
    result = special.expit(outputs)
    for part in parts:
        if part.levels:
            result[:, part.entries] = special.softmax(outputs[:, part.entries], axis=1)
    return result


def draw_levels(shares: np.ndarray, parts: Sequence[Part], rng: np.random.Generator) -> np.ndarray:
    """Return vectors whose one-hot entries are drawn from shares, shape (n, d); other entries stay."""
    result = shares.copy()
    for part in parts:
        if not part.levels:
            continue
        cumulated = np.cumsum(shares[:, part.entries], axis=1, dtype=np.float64)
        uniform = rng.random((len(shares), 1)) * cumulated[:, -1:]
        chosen = np.minimum((cumulated < uniform).sum(axis=1), cumulated.shape[1] - 1)
        result[:, part.entries] = 0.0
        result[np.arange(len(shares)), part.entries.start + chosen] = 1.0
    return result


@dataclass(frozen=True)
class Calibration:
    """What brings drawn rows to given marginals: shifts of one-hot outputs, and noise and ranks of numbers.

    Attributes:
        shifts: added to outputs, shape (d,); 0 for numbers.
        residual_std: of numbers about their mean by the decoder, shape (d,); 0 for one-hot entries.
        knots: per entry, quantiles of drawn numbers at 0, 1/256, …, 1, shape (d, 257).
    """

    shifts: np.ndarray
    residual_std: np.ndarray
    knots: np.ndarray

    @classmethod
    def of(
        cls, outputs: np.ndarray, parts: Sequence[Part], targets: np.ndarray, rng: np.random.Generator
    ) -> Calibration:
        """Fit it to outputs of synthetic latents. Uses released values alone.

        Args:
            outputs: of the decoder, shape (n, d).
            parts: of a vector.
            targets: mean vector that draws are to have; a number's law is to be uniform.
            rng: public randomness.
        """
        outputs = outputs.astype(np.float64)
        shifts, residual_std = np.zeros(len(targets)), np.zeros(len(targets))
        knots = np.tile(np.linspace(0, 1, _KNOTS), (len(targets), 1))
        for part in parts:
            if part.levels:
                wanted = np.maximum(targets[part.entries], _LEAST_SHARE)
                for _ in range(_ROUNDS):
                    means = special.softmax(outputs[:, part.entries] + shifts[part.entries], axis=1).mean(axis=0)
                    shifts[part.entries] += np.log(wanted / np.maximum(means, _LEAST_SHARE))
                continue
            place = part.entries.start
            means = special.expit(outputs[:, place])
            residual_std[place] = np.sqrt(max(_UNIFORM_VARIANCE - float(means.var()), 0.0))
            drawn = means + residual_std[place] * rng.standard_normal(len(means))
            # strictly increasing, or a rank would not be one number
            knots[place] = np.quantile(drawn, np.linspace(0, 1, _KNOTS)) + 1e-9 * np.arange(_KNOTS)
        return cls(shifts, residual_std, knots)

    def numbers(self, means: np.ndarray, parts: Sequence[Part], rng: np.random.Generator) -> np.ndarray:
        """Return vectors whose numbers are drawn about their means and then ranked; one-hot entries stay."""
        result = means.copy()
        ranks = np.linspace(0, 1, _KNOTS)
        for part in parts:
            if not part.levels:
                place = part.entries.start
                drawn = means[:, place] + self.residual_std[place] * rng.standard_normal(len(means))
                result[:, place] = np.interp(drawn, self.knots[place], ranks)
        return result

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return it as a release holds it."""
        return {"shifts": self.shifts, "number_std": self.residual_std, "knots": self.knots}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], d: int) -> Calibration:
        """Read what `to_arrays` made; a stranger may have written it.

        Raises:
            ReleaseError: an array is missing or malformed.
        """
        return cls(
            require_array(arrays, "shifts", np.float64, (d,)),
            require_array(arrays, "number_std", np.float64, (d,)),
            require_array(arrays, "knots", np.float64, (d, _KNOTS)),
        )
