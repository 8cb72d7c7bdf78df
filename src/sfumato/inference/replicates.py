"""Synthetic tables that differ as much as noise and sampling leave open what the records were.

Each replicate takes another draw of the measurements: what was released, plus noise of the same law once more, plus
what another sample of the population would have moved them by. Fresh rows of the model are weighted to that draw, with
positive weights, and the replicate's rows are drawn by these weights. Rules are kept as in samples: rows that break
some are mended.

Free: uses released values only.
Reference: Räisä, Jälkö, Kaski and Honkela 2023 (the parameters' posterior from the noisy measurements, then large
synthetic tables); Hainmueller 2012 (entropy balancing).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sfumato.errors import ConfigError, EstimateError, require_choice, require_integer
from sfumato.inference.functions import all_functions, cell_functions, refuse_many_columns
from sfumato.inference.table_measurements import TableMeasurements
from sfumato.lenses.chain import shaped
from sfumato.maths.streams import fresh_seed, public_stream
from sfumato.release.model import ReleaseValue
from sfumato.release.samplers import Sampler

INDEX = "replicate"
"""The column that tells replicates apart where they are written together."""
MOST_ROWS = 1 << 24
ROWS_EACH = 5
"""Times the public number of rows that a replicate has by default: fewer leave `combine` few degrees of freedom."""
_ROWS_A_DEGREE = 1.5
"""Rows that count, for each total that they follow: with 2 the spread was .83 of noise and sampling, with 5 .94."""
_ROWS_STREAM, _DRAW_STREAM = 1, 2


def replicate_codes(
    release: ReleaseValue, m: int, n: int | None, seed: int | None, target: str
) -> Iterator[Mapping[str, Any]]:
    """Yield m tables of rows as a sampler has them: coded, and where there are rules numbers as they are written.

    Raises:
        ConfigError: an argument is outside its domain.
        EstimateError: the release holds no measurements, or too much noise about too many columns.
    """
    m = require_integer(at_least=2, m=m)
    default = min(ROWS_EACH * release.certificate.n_public, MOST_ROWS)
    n = require_integer(at_least=1, n=default if n is None else n)
    if n > MOST_ROWS:
        raise ConfigError(f"Expected n of at most {MOST_ROWS} rows a replicate, got {n=}.")
    require_choice(("population", "table"), target=target)
    seed = fresh_seed() if seed is None else require_integer(at_least=0, seed=seed)
    refuse_many_columns(TableMeasurements(release))  # before the first replicate is asked for
    return (_codes(release, n, seed, place, target) for place in range(m))


def _codes(release: ReleaseValue, n: int, seed: int, place: int, target: str) -> Mapping[str, Any]:
    measured = TableMeasurements(release, (seed, place, _ROWS_STREAM))
    calibration = measured.calibration(all_functions(measured, cell_functions(measured, measured.names)))
    rng = public_stream(seed, place, _DRAW_STREAM)
    weights = calibration.draw_weights(rng, sampled=target == "population")
    _refuse_few_rows(weights, calibration.degrees, len(measured.names))
    return shaped(release.schema, _WeightedRows(measured, weights)).rows(n, rng)


def _refuse_few_rows(weights: np.ndarray, degrees: float, columns: int) -> None:
    """Refuse a replicate in which noise leaves the model too few rows to follow it.

    Weights that bring rows to many noisy totals differ so much that few rows count; where these are hardly more than
    the totals, the totals cannot all move as their noise does, and replicates would be too sure.
    """
    rows = float(weights.sum() ** 2 / (weights**2).sum())
    if rows < _ROWS_A_DEGREE * degrees:
        raise EstimateError(
            f"Expected noise that rows of a model can follow, got {columns} columns with so much that replicates would "
            "spread less than it, and analyses of them would be too sure. Ask the release, which says its noise; or "
            "fit fewer columns, more rows or with a larger epsilon."
        )


class _WeightedRows:
    """Rows of a model under other weights: a sampler of what rules leave free."""

    def __init__(self, measured: TableMeasurements, weights: np.ndarray) -> None:
        self._measured, self._weights = measured, weights
        self.width, self.class_column = len(measured.columns), measured.class_column
        self.possible = np.ones(measured.n_classes, dtype=bool)

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return n coded rows."""
        assert classes is None  # replicates are asked for no class
        measured, chosen = self._measured, _weighted_places(self._weights, n, rng)
        return {name: column.codes(measured.cells(name)[chosen], rng) for name, column in measured.columns.items()}

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Replicates are drawn whole: nothing of a row is given."""
        raise NotImplementedError


def _weighted_places(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the places of n rows drawn by weights, in random order."""
    ends = np.cumsum(weights)
    return np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], side="right"), weights.size - 1)
