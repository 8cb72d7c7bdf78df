"""The map between records and flat vectors: public for images, bought marginals for tables.

marginals        G(σ)   one-hot(cell) per column   → ranks of numbers, shares of levels
"""

from __future__ import annotations

import numpy as np

from sfumato.columns.kinds import Image, LevelKind, n_levels
from sfumato.errors import ConfigError
from sfumato.mechanisms.noise import NoiseSource
from sfumato.mechanisms.queries import Noisy, noisy_histogram
from sfumato.methods.marginals import ClassCellCounts, TableLayout, fit_marginals
from sfumato.models.images.coefficients import ImageLayout
from sfumato.models.nets.flat import ImageVectors, RankVectors
from sfumato.privacy.ledger import Ledger
from sfumato.records.engine import Records, reduce
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

_FEWEST_CELLS, _MOST_CELLS = 8, 128
_CELL_COUNT_TO_NOISE = 4.0
MOST_ENTRIES = 5_000


def is_table(schema: Schema) -> bool:
    """Return whether records are rows of a table, so that marginals are bought.

    Raises:
        ConfigError: an image column with other columns than one label, or vectors of too many entries.
    """
    if any(isinstance(schema.columns[name], Image) for name in schema.released):
        ImageLayout.of(schema)
        return False
    kinds = [schema.columns[name] for name in schema.released]
    entries = sum(
        n_levels(kind) if isinstance(kind, LevelKind) else 1 + getattr(kind, "nullable", False) for kind in kinds
    )
    if entries > MOST_ENTRIES:
        raise ConfigError(
            f"Expected at most {MOST_ENTRIES} levels and numbers in all columns together for this method, got "
            f"{entries}. Declare columns as identifier to leave them out, or use the method gaussian."
        )
    return True


def flat_dimension(schema: Schema) -> int:
    """Return the number of entries of a vector, from the schema alone."""
    if not is_table(schema):
        return ImageVectors(ImageLayout.of(schema)).dimension
    grid = rank_grid(schema, 2)  # the number of cells does not matter to it
    return RankVectors(grid, tuple(np.full(c.n_cells, 1 / c.n_cells) for c in grid.columns)).dimension


def cells_of(noise_multiplier: float, n_columns: int, n_public: float) -> int:
    """Return how many cells a number is cut into: as many as an even cell's count is four times its noise."""
    noise_std = noise_multiplier * np.sqrt(n_columns)
    return int(np.clip(n_public / (_CELL_COUNT_TO_NOISE * noise_std), _FEWEST_CELLS, _MOST_CELLS))


def cell_counts(
    schema: Schema, cells: int, records: Records, *, stage: str, ledger: Ledger, noise: NoiseSource
) -> Noisy:
    """Buy how many records lie in each cell of each column of a table.

    Privacy: one `Gaussian(σ)` event of the stage, as `ClassCellCounts` without classes.
    """
    layout = TableLayout(rank_grid(schema, cells), None)
    return noisy_histogram(reduce(ClassCellCounts(layout), records), stage=stage, ledger=ledger, noise=noise)


def rank_grid(schema: Schema, cells: int) -> Grid:
    """Return the cells of a table's columns."""
    return Grid.of(schema, numeric_cells=cells, widening=True)


def rank_vectors(schema: Schema, cells: int, counts: Noisy) -> RankVectors:
    """Return the map to vectors that noisy counts of cells make. Free."""
    grid = rank_grid(schema, cells)
    marginals = fit_marginals(counts, grid.columns)
    shares = (marginals.pooled(j) for j in range(len(grid.columns)))
    return RankVectors(grid, tuple(s / s.sum() for s in shares))
