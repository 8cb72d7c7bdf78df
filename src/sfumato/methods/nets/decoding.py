"""What methods with a decoder share: the map between records and flat vectors, and what samples are calibrated to.

The map is public for images; a table's follows from one release:

    marginals        G(σ)   one-hot(cell) per column   → ranks of numbers, shares of levels

Proof: docs/proofs/cell_counts.md.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.errors import ConfigError
from sfumato.maths.gaussian import project_to_simplex, shrinkage_weight
from sfumato.maths.shrinkage import shrunk_together
from sfumato.maths.streams import public_stream
from sfumato.models.images.coefficients import ImageLayout
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.models.nets.decoder import Calibration, LatentDecoder, Layers, decoder_arrays
from sfumato.models.nets.flat import ImageVectors, RankVectors, Vectors
from sfumato.plugins import (
    Cells,
    ColumnGrid,
    Fit,
    Grid,
    MarginalQuery,
    Noisy,
    NonPrivate,
    PrivacyBudget,
    QueryCounts,
    Schema,
    Stage,
    TabularKind,
    default_delta,
    without_idle_distances,
)

_FEWEST_CELLS, _MOST_CELLS = 8, 128
_CELL_COUNT_TO_NOISE = 4.0
MOST_ENTRIES = 5_000


def is_table(schema: Schema) -> bool:
    """Return whether records are rows of a table, so that marginals are measured.

    Raises:
        ConfigError: an image column with other columns than one label, or vectors of too many entries.
    """
    if schema.images:
        ImageLayout.of(schema)
        return False
    entries = sum(kind.width for kind in schema.of_kind(TabularKind).values())
    if entries > MOST_ENTRIES:
        raise ConfigError(
            f"Expected at most {MOST_ENTRIES} levels and numbers in all columns together for this method, got "
            f"{entries}. Declare columns as identifier to leave them out, or use the method max-entropy."
        )
    return True


def flat_dimension(schema: Schema) -> int:
    """Return the number of entries of a vector, from the schema alone."""
    if not is_table(schema):
        return ImageVectors(ImageLayout.of(schema)).dimension
    grid = Grid.of(schema, numeric_cells=2)  # the number of cells does not matter to it
    return RankVectors(grid, tuple(np.full(c.n_cells, 1 / c.n_cells) for c in grid.columns)).dimension


def cells_of(noise_multiplier: float, n_columns: int, n_public: float) -> int:
    """Return how many cells a number is cut into: as many as an even cell's count is four times its noise."""
    noise_std = noise_multiplier * np.sqrt(n_columns)
    return int(np.clip(n_public / (_CELL_COUNT_TO_NOISE * noise_std), _FEWEST_CELLS, _MOST_CELLS))


MARGINALS = "marginals"
_SQRT2 = float(np.sqrt(2))
_CALIBRATION_DRAWS, _CALIBRATION_SEED = 20_000, 0


def marginal_stages(schema: Schema, noise_multiplier: float) -> list[Stage]:
    """Return the stage that measures marginals, if records are rows of a table.

    Raises:
        ConfigError: images with other columns than one label, or too many columns and levels.
    """
    if not is_table(schema):
        return []
    return [
        Stage(
            name=MARGINALS,
            noise_multiplier=noise_multiplier,
            replace_distance=_SQRT2,
            measures="how many rows lie in each cell of each column",
        )
    ]


def cell_counts(grid: Grid) -> QueryCounts:
    """For every column, how many records lie in each cell. Value: shape (1, cells), columns side by side."""
    return QueryCounts(MarginalQuery(tuple((Cells.of(column),) for column in grid.columns), (Cells.all_rows(),)))


def cell_shares(noisy: Noisy, columns: Sequence[ColumnGrid]) -> tuple[np.ndarray, ...]:
    """Shares of every column's cells, of noisy counts. Free: uses released values only.

    Every column's table sums to the number of records; the sums are averaged with weights 1/cells, the inverse of their
    variances. Columns of one kind are drawn together as far as their differences are noise. What a table has beside its
    projection to the simplex is shrunk by the share of noise in it, and projected again.
    """
    ends = np.cumsum([column.n_cells for column in columns])
    counts = np.split(noisy.value[0], ends[:-1])
    tables, _ = shrunk_together(counts, float(noisy.noise_std), [column.kind for column in columns])
    weights = np.array([1 / column.n_cells for column in columns])
    total = np.average([table.sum() for table in tables], weights=weights)
    # a number below its own noise is one that the noise could have hidden
    total = max(float(total), 1.0, float(noisy.noise_std / np.sqrt(weights.sum())))
    return tuple(_shares(table, total, noisy.noise_std) for table in tables)


def _shares(table: np.ndarray, total: float, noise_std: float) -> np.ndarray:
    projected = project_to_simplex(table, total) / total
    difference = table / total - projected
    weight = shrinkage_weight(float(difference @ difference), table.size * (noise_std / total) ** 2)
    shares = project_to_simplex(projected + weight * difference, 1.0)
    return shares / shares.sum()


@dataclass(frozen=True, slots=True)
class Mapped:
    """The map between records and vectors, and what a release has to hold of it.

    Attributes:
        vectors: the map.
        arrays: of the sampler.
        measured: the noisy statistics that it rests on.
    """

    vectors: Vectors
    arrays: Mapping[str, np.ndarray]
    measured: tuple[tuple[str, Noisy], ...]


def map_records(fit: Fit) -> Mapped:
    """Return the map between records and vectors; measures marginals of a table."""
    schema = fit.data.schema
    if not is_table(schema):
        return Mapped(ImageVectors(ImageLayout.of(schema)), {}, ())
    multiplier = fit.plan[MARGINALS].noise_multiplier
    grid = Grid.of(schema, numeric_cells=cells_of(multiplier, len(schema.released), fit.n_public))
    counts = fit.measure(MARGINALS, cell_counts(grid))
    shares = cell_shares(counts, grid.columns)
    shares = without_idle_distances(
        fit.facts.described, grid.columns, shares, float(counts.noise_std) ** 2, fit.n_public
    )
    vectors = RankVectors(grid, tuple(share / share.sum() for share in shares))
    arrays = {**{f"shares{j}": shares for j, shares in enumerate(vectors.shares)}, **grid.arrays()}
    return Mapped(vectors, arrays, ((MARGINALS, counts),))


def sampler_of(
    mapped: Mapped, prior: GaussianMixture, decoder: Layers, *, heads: str, draw: bool, class_column: str | None
) -> tuple[Mapping[str, Any], Mapping[str, np.ndarray]]:
    """Return settings and arrays of the sampler; drawn rows of tables are calibrated to the released marginals."""
    settings = {"name": LatentDecoder.name, "heads": heads, "draw": draw, "class": class_column}
    arrays = {**decoder_arrays(decoder), **prior.to_arrays(prefix="prior_"), **mapped.arrays}
    if heads == "native" and draw and not isinstance(mapped.vectors, ImageVectors):
        latents, _ = prior.sample(_CALIBRATION_DRAWS, public_stream(_CALIBRATION_SEED))
        rng = public_stream(_CALIBRATION_SEED, 1)
        calibration = Calibration.of(decoder(latents), mapped.vectors.parts, mapped.vectors.targets(), rng)
        arrays |= calibration.to_arrays()
    return settings, arrays


def schedule(n_public: int, batch_size: int, epochs: float) -> tuple[float, int]:
    """Return the sampling probability and the number of steps of so many epochs."""
    probability = min(1.0, batch_size / n_public)
    return probability, max(1, round(epochs / probability))


def require_device(device: str) -> None:
    """Refuse what is no name of a device.

    Raises:
        ConfigError: neither "cpu" nor "cuda", or "cuda:" and a number.
    """
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(?::\d+)?", device):
        raise ConfigError(f"Expected device to be 'cpu' or 'cuda', got device={device!r}.")


def require_networks(device: str) -> None:
    """Refuse to go on without torch or without the device, before any budget is spent.

    Raises:
        ConfigError: torch is not installed, or sees no such device.
    """
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(
            "Expected torch for a method with networks, got none. Install it: pip install 'sfumato[nets]'."
        )
    if device != "cpu":
        import torch

        if int(device.partition(":")[2] or 0) >= torch.cuda.device_count():
            raise ConfigError(f"Expected a device that torch sees here, got device={device!r}. Use 'cpu'.")


def nominal_budget(epsilon: float | NonPrivate, delta: float | None, n_public: int) -> PrivacyBudget:
    """Return the budget that shapes a plan; a plan without noise has the shape of ε = 1."""
    delta = default_delta(n_public) if delta is None else delta
    return PrivacyBudget(1.0 if isinstance(epsilon, NonPrivate) else epsilon, delta)
