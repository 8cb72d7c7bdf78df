"""Distances between dates, and times of day, as lenses: columns beside those of dates; and whether a distance is idle.

What a smooth model of the two dates says by itself is about a Gaussian copula of theirs, of some correlation that is
not near 1. If one explains the distances up to their noise, a model does well to leave them idle: missing in every row
that is drawn, whose dates then stay as they are.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from sfumato.columns.kind import ColumnKind
from sfumato.errors import ConfigError
from sfumato.lenses.lens import Around, Sampler
from sfumato.maths.constants import DISTANCES
from sfumato.maths.streams import public_stream
from sfumato.schema.distances import Clock, Distance
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
    if not present > 0 or not all(present_shares(c, s).sum() > 0 for c, s in zip(columns[:2], shares[:2], strict=True)):
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


def present_shares(column: ColumnGrid, shares: np.ndarray) -> np.ndarray:
    """P(cell) of cells that hold dates, or numbers."""
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
        ends = np.cumsum(present_shares(column, law))
        cells = np.searchsorted(ends / ends[-1], special.ndtr(scores), side="right")
        codes.append(column.codes(np.minimum(cells, ends.size - 1), rng))
    cells = columns[2].cells(distance.read(*codes))
    return np.bincount(cells, minlength=columns[2].n_cells).astype(np.float64)


@dataclass(frozen=True, slots=True)
class DatesLens:
    """Columns of dates, each of which says one more: its time of day, or its distance from another.

    Attributes:
        dates: by name.
        sampler: of rows whose dates are what is drawn beside them.
    """

    dates: Mapping[str, Clock] | Mapping[str, Distance]
    sampler: Callable[[Any, Sampler], Sampler]

    def columns(self, columns: Mapping[str, ColumnKind]) -> dict[str, ColumnKind]:
        """Columns with those beside."""
        return {**columns} | {own.column: own.beside for own in self.dates.values()}

    def code(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Records with those beside, each from its own cells alone."""
        return rows | {own.column: own.of(rows) for own in self.dates.values()}

    def rows(self, inner: Sampler) -> Sampler:
        """Rows whose dates are what is drawn beside them."""
        return self.sampler(self.dates, inner)


class ClockRows(Around):
    """Rows whose moments have the times of day that a sampler draws beside them.

    Args:
        clocks: the columns of moments.
        inner: a sampler of rows with times of day.
    """

    def __init__(self, clocks: Mapping[str, Clock], inner: Sampler) -> None:
        super().__init__(inner, len(clocks))
        self._clocks = clocks

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded rows."""
        rows = dict(self._inner.rows(n, rng, classes))
        for name, clock in self._clocks.items():
            rows[name] = clock.set(rows[name], rows.pop(clock.column))
        return rows

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes."""
        given = {name: code for name, code in codes.items() if name in self._clocks}
        times = {self._clocks[name].column: self._clocks[name].read(np.array([code])) for name, code in given.items()}
        inner = self._inner.given({**codes, **{name: float(code[0]) for name, code in times.items()}})
        return ClockRows(self._clocks, inner)


class DistantRows(Around):
    """Rows whose dates lie as far apart as a sampler says beside them.

    The date that is listed first is as it is drawn, and others follow from it; of a date that is given, the others do.

    Args:
        distances: by the name of the later of two columns.
        inner: a sampler of rows with distances.
        given: codes of dates that all rows have.
    """

    def __init__(
        self, distances: Mapping[str, Distance], inner: Sampler, given: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(inner, 2 * len(distances))
        self._distances, self._given = distances, dict(given or {})

    def rows(self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None) -> dict[str, Any]:
        """Return n coded rows."""
        rows = dict(self._inner.rows(n, rng, classes))
        apart = {later: rows.pop(distance.column) for later, distance in self._distances.items()}
        rows |= {name: np.full(n, code) for name, code in self._given.items()}
        for distance, back in self._moves():
            start, end = (distance.later, distance.earlier) if back else (distance.earlier, distance.later)
            rows[end] = distance.moved(rows[start], rows[end], apart[distance.later], rng, back=back)
        return rows

    def _moves(self) -> Iterator[tuple[Distance, bool]]:
        """Which distances are kept, in order, and whether the earlier date of one is moved: from what is given on."""
        fixed, left = set(self._given), dict(self._distances)
        while left:
            tied = [later for later, distance in left.items() if fixed & {later, distance.earlier}]
            later = next(iter(tied or left))
            distance = left.pop(later)
            if not {later, distance.earlier} <= fixed:
                yield distance, later in fixed
            fixed |= {later, distance.earlier}

    def given(self, codes: Mapping[str, float]) -> Sampler:
        """Return the sampler given these codes."""
        apart = {
            d.column: float(d.read(np.array([codes[d.earlier]]), np.array([codes[d.later]]))[0])
            for d in self._distances.values()
            if d.earlier in codes and d.later in codes
        }
        names = {name for d in self._distances.values() for name in (d.earlier, d.later)}
        given = {name: code for name, code in codes.items() if name in names}
        try:
            inner = self._inner.given({**codes, **apart})
        except ConfigError:  # rows may have both dates all the same: a distance is idle, or too rare to be drawn
            inner = self._inner.given(codes)
        return DistantRows(self._distances, inner, given)
