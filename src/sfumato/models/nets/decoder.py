"""Samples of a decoder: latents from a mixture of Gaussians, through a network, into records.

Decoders of latent vectors: a network of linear layers and what its outputs mean, in numpy alone.

A release samples without the library that trained it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special

from sfumato.columns.kinds import LevelKind
from sfumato.errors import ConfigError, ReleaseError
from sfumato.maths.arrays import require_array, require_shares, require_well_formed
from sfumato.models.images.coefficients import ImageLayout
from sfumato.models.mixtures.covariances import FullCovariance
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.models.nets.flat import AnyVectors, ImageVectors, Part, RankVectors, Vectors
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

_KNOTS = 257
_ROUNDS = 30
_LEAST_SHARE = 1e-6
_UNIFORM_VARIANCE = 1 / 12


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
            targets: mean vector that draws are to have; a number's law is to be uniform, and an indicator of missing
                is to be above 1/2 as often as its target says.
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
            levels = np.linspace(0, 1, _KNOTS)
            if part.missing:
                share = float(np.clip(targets[place], _LEAST_SHARE, 1 - _LEAST_SHARE))
                levels = np.interp(levels, [0, 0.5, 1], [0, 1 - share, 1])
                # the density at the threshold: so the chance to pass it rises as fast as the mean does
                residual_std[place] = np.exp(-(special.ndtri(share) ** 2) / 2) / np.sqrt(2 * np.pi)
            else:
                residual_std[place] = np.sqrt(max(_UNIFORM_VARIANCE - float(means.var()), 0.0))
            draws = means + residual_std[place] * rng.standard_normal(len(means))
            # strictly increasing, or a rank would not be one number
            knots[place] = np.quantile(draws, levels) + 1e-9 * np.arange(_KNOTS)
        return cls(shifts, residual_std, knots)

    def numbers(self, means: np.ndarray, parts: Sequence[Part], rng: np.random.Generator) -> np.ndarray:
        """Return vectors whose numbers are drawn about their means and then ranked; one-hot entries stay."""
        result = means.copy()
        ranks = np.linspace(0, 1, _KNOTS)
        for part in parts:
            if not part.levels:
                place = part.entries.start
                draws = means[:, place] + self.residual_std[place] * rng.standard_normal(len(means))
                result[:, place] = np.interp(draws, self.knots[place], ranks)
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


_LAYERS = 2
LARGEST = 1e15
"""Of a latent, and of an output, either way."""


class NetworkSampler:
    """What samplers by networks share: vectors of records, what brings draws to marginals, and no given values."""

    def __init__(self, vectors: AnyVectors, parameters: Mapping[str, np.ndarray]) -> None:
        self._vectors, self._parts = vectors, vectors.parts
        calibrated = "knots" in parameters
        self._calibration = Calibration.from_arrays(parameters, vectors.dimension) if calibrated else None

    def _means(self, outputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Expected vectors of native heads, with numbers drawn about their means where they are calibrated."""
        if self._calibration is None:
            return mean_of_heads(outputs, self._parts)
        means = mean_of_heads(np.clip(outputs + self._calibration.shifts, -LARGEST, LARGEST), self._parts)
        return self._calibration.numbers(means, self._parts, rng)

    def given(self, codes: Mapping[str, float]) -> Self:
        """Refuse: a network has no conditional law in closed form."""
        raise ConfigError(
            "Expected no given values for this release, got some: its method cannot fix columns. Sample more rows and "
            "keep those you need, or fit with the method max-entropy."
        )


class LatentDecoder(NetworkSampler):
    """Latents from a mixture, decoded (`sfumato.methods.p3gm.recipe`)."""

    name = "latent_decoder"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        super().__init__(flat_vectors(schema, parameters), parameters)
        self._heads, self._draw = settings.get("heads"), settings.get("draw")
        if self._heads not in ("squared", "native") or not isinstance(self._draw, bool):
            raise ReleaseError("Expected heads to be squared or native, and draw true or false, in the release.")
        self._prior = GaussianMixture.from_arrays(parameters, FullCovariance(), prefix="prior_")
        column = settings.get("class")
        if column is not None and column not in schema.of_kind(LevelKind):
            raise ReleaseError("Expected the release's class to be one of its columns of levels.")
        self.class_column: str | None = column
        k = 1 if column is None else schema.of_kind(LevelKind)[column].width
        if column is not None and self._prior.n_components != k:
            raise ReleaseError("Expected one component per class in the release.")
        weights, biases = read_layers(parameters, _LAYERS, self._prior.means.shape[1], self._vectors.dimension)
        self._decoder = Layers(weights, biases)
        self.width = self._vectors.dimension + sum(len(bias) for bias in self._decoder.biases)
        self.possible = np.ones(k, dtype=bool)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows."""
        latents, components = self._prior.sample(n, rng, components=classes)
        with np.errstate(all="ignore"):  # a stranger's weights may overflow
            outputs = self._decoder(np.clip(latents, -LARGEST, LARGEST)).astype(np.float64)
            vectors = self._drawn(np.clip(np.nan_to_num(outputs), -LARGEST, LARGEST), rng)
        rows = self._vectors.decode(vectors, rng)
        if self.class_column is not None:
            rows[self.class_column] = components.astype(np.int32)
        return rows

    def _drawn(self, outputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return vectors for outputs of the decoder."""
        if self._heads == "squared":
            return outputs
        means = self._means(outputs, rng)
        return draw_levels(means, self._parts, rng) if self._draw else means


def flat_vectors(schema: Schema, parameters: Mapping[str, np.ndarray]) -> Vectors:
    """The map between records and vectors that a release was made with.

    Raises:
        ReleaseError: its arrays do not fit the schema.
    """
    if schema.images:
        return ImageVectors(ImageLayout.of(schema))
    grid = Grid.stored(schema, parameters)
    shares = tuple(require_shares(parameters, f"shares{j}") for j in range(len(grid.columns)))
    for j, (column, array) in enumerate(zip(grid.columns, shares, strict=True)):
        require_well_formed(array.size == column.n_cells, f"shares{j}")
    return RankVectors(grid, shares)


def read_layers(
    arrays: Mapping[str, np.ndarray], n_layers: int, inputs: int | None, outputs: int, stack: tuple[int, ...] = ()
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return weights and biases of a decoder's layers as a release holds them; of k side by side, stacked.

    Args:
        arrays: a stranger may have written them.
        n_layers: how many.
        inputs: of the first; None where any number will do.
        outputs: of the last.
        stack: (k,) for k decoders.

    Raises:
        ReleaseError: arrays are missing or do not fit one another.
    """
    weights, biases, width = [], [], inputs
    for i in range(n_layers):
        shape = (*stack, outputs if i == n_layers - 1 else None, width)
        weights.append(require_array(arrays, f"decoder_weight{i}", np.float32, shape))
        width = int(weights[-1].shape[-2])
        biases.append(require_array(arrays, f"decoder_bias{i}", np.float32, (*stack, width)))
        require_well_formed(min(weights[-1].shape[-2:]) >= 1, f"decoder_weight{i}")
    return tuple(weights), tuple(biases)


def decoder_arrays(layers: Layers) -> dict[str, np.ndarray]:
    """Return a decoder as a release holds it."""
    arrays = {}
    for i, (weight, bias) in enumerate(zip(layers.weights, layers.biases, strict=True)):
        arrays[f"decoder_weight{i}"], arrays[f"decoder_bias{i}"] = weight, bias
    return arrays
