"""Distances between dates as a lens: a column more beside two dates, and dates at the distances that are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.columns.kind import ColumnKind
from sfumato.errors import ConfigError
from sfumato.lenses.lens import Sampler
from sfumato.schema.distances import Distance, with_distances


@dataclass(frozen=True, slots=True)
class DistancesLens:
    """Columns of dates.

    Attributes:
        distances: by the name of the later of two columns.
    """

    distances: Mapping[str, Distance]

    def columns(self, columns: Mapping[str, ColumnKind]) -> dict[str, ColumnKind]:
        """Columns with distances."""
        return {**columns} | {distance.column: distance.steps for distance in self.distances.values()}

    def code(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Records with distances."""
        return with_distances(rows, self.distances)

    def rows(self, inner: Sampler) -> Sampler:
        """Rows whose dates have the distances that are drawn beside them."""
        return DistantRows(self.distances, inner)


class DistantRows:
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
        self._distances, self._inner, self._given = distances, inner, dict(given or {})
        self.width, self.class_column = inner.width + 2 * len(distances), inner.class_column

    @property
    def possible(self) -> np.ndarray:
        """Which classes rows can have."""
        return self._inner.possible

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
