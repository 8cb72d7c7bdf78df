"""Samples of a decoder: latents from a mixture of Gaussians, through a network, into records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.columns.kinds import Image, LevelKind, n_levels
from sfumato.errors import ConfigError, ReleaseError
from sfumato.maths.arrays import require_array, require_shares, require_well_formed
from sfumato.models.images.coefficients import ImageLayout
from sfumato.models.mixtures.covariances import FullCovariance
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.models.nets.flat import ImageVectors, RankVectors, Vectors
from sfumato.models.nets.latent import Calibration, Layers, draw_levels, mean_of_heads
from sfumato.schema.grid import MOST_NUMERIC_CELLS, Grid
from sfumato.schema.schema import Schema

_LAYERS = 2
_LARGEST = 1e15


class LatentDecoder:
    """Latents from a mixture, decoded (`sfumato.methods.p3gm.recipe`)."""

    name = "latent_decoder"

    def __init__(self, schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> None:
        self._vectors = flat_vectors(schema, settings, parameters)
        self._heads, self._draw = settings.get("heads"), settings.get("draw", False)
        if self._heads not in ("squared", "native") or not isinstance(self._draw, bool):
            raise ReleaseError("Expected heads to be squared or native, and draw true or false, in the release.")
        self._prior = GaussianMixture.from_arrays(parameters, FullCovariance(), prefix="prior_")
        column = settings.get("class")
        if column is not None and (column not in schema.released or not isinstance(schema.columns[column], LevelKind)):
            raise ReleaseError("Expected the release's class to be one of its columns of levels.")
        self.class_column: str | None = column
        k = 1 if column is None else n_levels(schema.columns[column])  # type: ignore[arg-type]
        if column is not None and self._prior.n_components != k:
            raise ReleaseError("Expected one component per class in the release.")
        self._decoder = decoder_of(parameters, self._prior.means.shape[1], self._vectors.dimension)
        self._parts = self._vectors.parts
        self._calibration = (
            Calibration.from_arrays(parameters, self._vectors.dimension) if "knots" in parameters else None
        )
        self.width = self._vectors.dimension + sum(len(bias) for bias in self._decoder.biases)
        self.possible = np.ones(k, dtype=bool)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows."""
        latents, components = self._prior.sample(n, rng, components=classes)
        with np.errstate(all="ignore"):  # a stranger's weights may overflow
            outputs = self._decoder(np.clip(latents, -_LARGEST, _LARGEST)).astype(np.float64)
            vectors = self._drawn(np.clip(np.nan_to_num(outputs), -_LARGEST, _LARGEST), rng)
        rows = self._vectors.decode(vectors, rng)
        if self.class_column is not None:
            rows[self.class_column] = components.astype(np.int32)
        return rows

    def _drawn(self, outputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return vectors for outputs of the decoder."""
        if self._heads == "squared":
            return outputs
        if self._calibration is not None:
            outputs = np.clip(outputs + self._calibration.shifts, -_LARGEST, _LARGEST)
        means = mean_of_heads(outputs, self._parts)
        if self._calibration is not None:
            means = self._calibration.numbers(means, self._parts, rng)
        return draw_levels(means, self._parts, rng) if self._draw else means

    def given(self, codes: Mapping[str, float]) -> LatentDecoder:
        """Refuse: a decoder has no conditional law in closed form."""
        raise ConfigError(
            "Expected no given values for this release, got some: its method cannot fix columns. Sample more rows and "
            "keep those you need, or fit with the method gaussian."
        )


def flat_vectors(schema: Schema, settings: Mapping[str, Any], parameters: Mapping[str, np.ndarray]) -> Vectors:
    """Return the map between records and vectors that a release was made with.

    Raises:
        ReleaseError: its settings or arrays do not fit the schema.
    """
    if any(isinstance(schema.columns[name], Image) for name in schema.released):
        return ImageVectors(ImageLayout.of(schema))
    cells = settings.get("numeric_cells")
    if not isinstance(cells, int) or isinstance(cells, bool) or not 2 <= cells <= MOST_NUMERIC_CELLS:
        raise ReleaseError(f"Expected numeric_cells between 2 and {MOST_NUMERIC_CELLS} in the release.")
    grid = Grid.of(schema, numeric_cells=cells, widening=True)
    shares = tuple(require_shares(parameters, f"shares{j}") for j in range(len(grid.columns)))
    for j, (column, array) in enumerate(zip(grid.columns, shares, strict=True)):
        require_well_formed(array.size == column.n_cells, f"shares{j}")
    return RankVectors(grid, shares)


def decoder_of(parameters: Mapping[str, np.ndarray], inputs: int, outputs: int) -> Layers:
    """Return the decoder that a release holds.

    Raises:
        ReleaseError: arrays are missing or do not fit one another.
    """
    weights, biases = [], []
    width: int | None = inputs
    for i in range(_LAYERS):
        last = i == _LAYERS - 1
        weights.append(require_array(parameters, f"decoder_weight{i}", np.float32, (outputs if last else None, width)))
        width = int(weights[-1].shape[0])
        biases.append(require_array(parameters, f"decoder_bias{i}", np.float32, (width,)))
        require_well_formed(width >= 1, f"decoder_weight{i}")
    return Layers(tuple(weights), tuple(biases))


def decoder_arrays(layers: Layers) -> dict[str, np.ndarray]:
    """Return a decoder as a release holds it."""
    arrays = {}
    for i, (weight, bias) in enumerate(zip(layers.weights, layers.biases, strict=True)):
        arrays[f"decoder_weight{i}"], arrays[f"decoder_bias{i}"] = weight, bias
    return arrays
