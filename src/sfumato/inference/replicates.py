"""Synthetic tables that differ as much as noise and sampling leave open what the records were.

Each replicate takes another draw of the measurements: what was released, plus noise of the same law once more, plus
what another sample of the population would have moved them by. Fresh rows of the model are weighted to that draw, with
positive weights, and the replicate's rows are drawn by these weights.

Free: uses released values only.
Reference: Räisä, Jälkö, Kaski and Honkela 2023 (the parameters' posterior from the noisy measurements, then large
synthetic tables); Hainmueller 2012 (entropy balancing).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sfumato.errors import ConfigError, EstimateError, require_integer
from sfumato.inference.calibration import Calibration
from sfumato.inference.functions import all_functions
from sfumato.inference.measured import Measured
from sfumato.inference.questions import Questions
from sfumato.maths.streams import fresh_seed, public_stream

if TYPE_CHECKING:
    from sfumato.release.model import Release

INDEX = "replicate"
"""The column that tells replicates apart where they are written together."""
MOST_ROWS = 1 << 24
_ROWS_STREAM, _DRAW_STREAM = 1, 2


def replicate_codes(
    release: Release, m: int, n: int | None, seed: int | None, target: str
) -> Iterator[dict[str, np.ndarray]]:
    """Yield m tables of coded rows.

    Raises:
        ConfigError: an argument is outside its domain.
        EstimateError: the release holds no measurements.
    """
    m = require_integer(at_least=2, m=m)
    n = require_integer(at_least=1, n=release.certificate.n_public if n is None else n)
    if n > MOST_ROWS:
        raise ConfigError(f"Expected n of at most {MOST_ROWS} rows a replicate, got {n=}.")
    if target not in ("population", "table"):
        raise ConfigError(f"Expected target to be 'population' or 'table', got {target=}.")
    seed = fresh_seed() if seed is None else require_integer(at_least=0, seed=seed)
    if release.schema.rules:
        raise EstimateError(
            "Expected a release without rules for replicates, got one with some: a replicate's rows would break them. "
            "Ask for estimates, or for a plain sample."
        )
    Measured(release)  # refuses before the first replicate is asked for
    return (_codes(release, n, seed, place, target) for place in range(m))


def _codes(release: Release, n: int, seed: int, place: int, target: str) -> dict[str, np.ndarray]:
    questions = Questions(release, (seed, place, _ROWS_STREAM))
    measured = questions.measured
    asked = {name: questions.functions(name) for name in measured.names}
    calibration = Calibration(all_functions(measured, asked), measured.size, measured.rows_variance, measured.weighting)
    rng = public_stream(seed, place, _DRAW_STREAM)
    weights = calibration.drawn(rng, sampled=target == "population")
    chosen = _drawn(weights, n, rng)
    grid = measured.layout.grid
    cells = [measured.cells(j)[chosen] for j in range(len(measured.names))]
    if measured.layout.target is not None:
        cells.insert(measured.layout.target, measured.classes[chosen])
    return grid.rows(np.stack(cells, axis=1), rng)


def _drawn(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return the places of n rows drawn by weights, in random order."""
    ends = np.cumsum(weights)
    return np.minimum(np.searchsorted(ends, rng.random(n) * ends[-1], side="right"), weights.size - 1)
