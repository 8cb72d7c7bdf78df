"""Whether a distance between two dates says more than the two dates do, by released shares of the three columns.

What a smooth model of the two dates says by itself is about a Gaussian copula of theirs, of some correlation that is
not near 1. If one explains the distances up to their noise, a model does well to leave them idle: missing in every row
that is drawn, whose dates then stay as they are.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from sfumato.maths.constants import DISTANCES
from sfumato.maths.streams import public_stream
from sfumato.schema.distances import Distance
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.schema import Schema


def idle_distances(
    distances: Mapping[str, Distance],
    columns: Sequence[ColumnGrid],
    shares: Sequence[np.ndarray],
    variance: float,
    total: float,
) -> frozenset[str]:
    """The columns of distances that say nothing which their dates do not.

    Args:
        distances: by the name of the later of two dates.
        columns: of the table, those of dates and distances among them.
        shares: P(cell) of each, released.
        variance: of the noise of a cell's count, where cells are counted together.
        total: number of records.
    """
    places = {column.name: j for j, column in enumerate(columns)}
    idle = set()
    for distance in distances.values():
        three = [places[name] for name in (distance.earlier, distance.later, distance.column)]
        excess = _excess(distance, [columns[j] for j in three], [shares[j] for j in three], variance, total)
        if excess <= DISTANCES.least_excess:
            idle.add(distance.column)
    return frozenset(idle)


def without_idle_distances(
    schema: Schema, columns: Sequence[ColumnGrid], shares: Sequence[np.ndarray], variance: float, total: float
) -> tuple[np.ndarray, ...]:
    """Shares of a table's cells, by which distances between dates are missing where they say nothing.

    Args:
        schema: as it was declared.
        columns: of the plain table.
        shares: P(cell) of each, released.
        variance: of the noise of a cell's count.
        total: number of records.
    """
    idle = idle_distances(schema.distances, columns, shares, variance, total)
    missing = {column.name: np.arange(column.n_cells) == column.n_cells - 1 for column in columns}
    return tuple(
        missing[column.name].astype(np.float64) if column.name in idle else law
        for column, law in zip(columns, shares, strict=True)
    )


def _excess(
    distance: Distance, columns: Sequence[ColumnGrid], shares: Sequence[np.ndarray], variance: float, total: float
) -> float:
    """The part of the distances that is not where a copula of the dates has it, beyond noise: of several the least."""
    own = shares[2][:-1]
    present = float(own.sum()) * total
    if not present > 0 or not all(_inside(c, s).sum() > 0 for c, s in zip(columns[:2], shares[:2], strict=True)):
        return 0.0
    own, least = own / own.sum(), np.inf
    for correlation in DISTANCES.correlations:
        counts = _copula(distance, columns, shares[:2], correlation)[:-1]
        other = counts / counts.sum()
        # runs of even shares of both: where one of them has nothing, the other's are runs of their own
        middles = np.cumsum(own + other) - (own + other) / 2
        runs = np.minimum((middles / 2 * DISTANCES.runs).astype(np.int64), DISTANCES.runs - 1)
        sums = [np.bincount(runs, law, DISTANCES.runs) for law in (own, other)]
        noise = np.bincount(runs, minlength=DISTANCES.runs) * variance / present**2
        slack = np.sqrt(noise + sums[0] / present + sums[1] / DISTANCES.drawn)
        least = min(least, float(np.maximum(np.abs(sums[0] - sums[1]) - slack, 0.0).sum()) / 2)
    return least


def _inside(column: ColumnGrid, shares: np.ndarray) -> np.ndarray:
    """P(cell) of cells that hold dates."""
    return shares[:-1] if column.kind.nullable else shares


def _copula(
    distance: Distance, columns: Sequence[ColumnGrid], shares: Sequence[np.ndarray], correlation: float
) -> np.ndarray:
    """How many rows of a Gaussian copula of the dates are in each cell of distances."""
    rng = public_stream(DISTANCES.seed)
    normal = rng.standard_normal((2, DISTANCES.drawn))
    normal[1] = correlation * normal[0] + np.sqrt(1 - correlation**2) * normal[1]
    codes = []
    for column, law, scores in zip(columns, shares, normal, strict=False):
        ends = np.cumsum(_inside(column, law))
        cells = np.searchsorted(ends / ends[-1], special.ndtr(scores), side="right")
        codes.append(column.codes(np.minimum(cells, ends.size - 1), rng))
    cells = columns[2].cells(distance.read(*codes))
    return np.bincount(cells, minlength=columns[2].n_cells).astype(np.float64)
