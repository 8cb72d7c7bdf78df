"""Values beyond the bounds of a column that a fit estimated: how far a mean of it may be off.

Values beyond a bound were read as the bound. The noisy counts that the bounds were read off say how many there may be,
under a law of tails (`sfumato.maths.outer_mass`): a mean is moved and widened by that, or refused. Quantiles and what
rests on squares are of the column as it was clipped. Free: uses released values only. Proof and figures:
docs/proofs/discovery.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sfumato.columns.bounded import (
    BEYOND,
    MIDDLE_YEAR,
    MISSING,
    N_CELLS,
    OPEN_COUNTS,
    OPEN_UNITS,
    SIDE,
    cells_of,
    counts_name,
    open_edges,
)
from sfumato.columns.kinds import ColumnKind, Continuous, DateTime, Integer
from sfumato.columns.open import OpenKind
from sfumato.errors import EstimateError
from sfumato.maths.arrays import require_well_formed
from sfumato.maths.outer_mass import Beyond, NoisyColumn, UpperEnd, ends
from sfumato.measurements.queries import Measurement
from sfumato.release.model import ReleaseValue

_HIDDEN_CELLS = 16  # a group within four octaves
_SURELY = 2.0  # deviations
_MOST_HIDDEN = 0.1  # share of the rows that noise may hide beyond a bound, at most
_YEAR = 365.2425 * 86_400e6  # microseconds
_OPEN: dict[type, OpenKind] = {Integer: "integer", Continuous: "continuous", DateTime: "datetime"}
_CURE = "Declare lower and upper, or fit with a larger epsilon."


@dataclass(frozen=True, slots=True)
class EstimatedBounds:
    """Bounds that a fit estimated, and the noisy counts that they were read off.

    Attributes:
        name: of the column.
        n: its rows with a value that were counted, about: of a unit one.
        below: the lower end, of the column with the other sign.
        above: the upper end.
        first, last: cells of the bounds.
        unit: steps of a unit of the grid.
        start: step of its 0.
    """

    name: str
    n: float
    below: UpperEnd
    above: UpperEnd
    first: int
    last: int
    unit: float = 1.0
    start: float = 0.0

    @property
    def shares(self) -> tuple[Beyond, Beyond]:
        """The shares of the values that lie below and above the bounds."""
        below, above = self.below.rows(N_CELLS - 1 - self.first), self.above.rows(self.last)
        return below.times(1 / self.n, 1 / self.n), above.times(1 / self.n, 1 / self.n)

    def beyond(self, change: Callable[[np.ndarray], np.ndarray]) -> Beyond:
        """Return the part of the rows beyond both bounds in a total if they count as themselves, not as bounds.

        Args:
            change: what is totalled, of values in the column's steps.
        """
        above = self.above.beyond(self.last, lambda grid: change(self.start + self.unit * grid))
        below = self.below.beyond(N_CELLS - 1 - self.first, lambda grid: change(self.start - self.unit * grid))
        return above + below

    def of_mean(self, share: float = 1.0, *, groups: bool = False) -> Beyond:
        """Return the bias of a mean within the bounds.

        Args:
            share: of the rows that it is of, in (0, 1].
            groups: whether it is of a group, or of weighted rows: which of these lie beyond was not counted.
        """
        total = self.beyond(lambda values: values)
        total = replace(total, std_error=float(np.hypot(total.value, total.std_error))) if groups else total
        return total.times(1 / self.n, 1 / self.n / np.sqrt(share))


def most(share: Beyond) -> float:
    """Return the most that a share may be, within two deviations."""
    return min(share.value + _SURELY * share.std_error, 1.0)


def counted_for_bounds(release: ReleaseValue, name: str) -> Measurement | None:
    """Return the noisy counts that a fit read a column's bounds off; None where they were declared, or are a day's."""
    kind = release.schema.columns.get(name)  # as it was counted, not as a distance from an earlier column
    counted = next((m for m in release.measurements if m.name == counts_name(name)), None)
    known = (
        counted is not None
        and counted.value.ndim == 1
        and counted.value.size > MISSING
        and isinstance(kind, tuple(_OPEN))
    )
    return counted if known and not is_clock(kind) else None


def estimated_bounds(release: ReleaseValue, name: str, *, clipped: bool = False) -> EstimatedBounds | None:
    """Return the estimated bounds of a column of numbers or dates; None where they were declared, or are a whole day.

    Raises:
        EstimateError: nothing but one value stood out of the noise, or the noise may hide more than a tenth of the rows
            beyond them, unless what is asked is of the column as it was `clipped`.
    """
    kind, counted = release.schema.columns.get(name), counted_for_bounds(release, name)
    if counted is None or not isinstance(kind, Integer | Continuous | DateTime):
        return None
    require_well_formed(bool(np.isfinite(counted.value).all()), counts_name(name))
    units = next((m for m in release.measurements if m.name == OPEN_UNITS), None)
    size = release.certificate.n_public if units is None else float(units.value[0])
    n = max(size - float(counted.value[MISSING:].sum()), 1.0)  # words beside numbers come after missing cells
    hidden = _SURELY * counted.noise_std * np.sqrt(_HIDDEN_CELLS) / n
    one_value = not isinstance(kind, DateTime) and not kind.lower < kind.upper
    columns = sum(m.name.startswith(OPEN_COUNTS) for m in release.measurements)
    edges, whole = open_edges(_OPEN[type(kind)]), not isinstance(kind, Continuous)
    cells = counted.value[:BEYOND]
    both = ends(NoisyColumn.counted(cells, counted.noise_std, edges, whole=whole, columns=columns, n=n))
    if both is None or (counted.noise_std and one_value):
        raise EstimateError(
            f"Expected values of {name!r} that stand out of the noise, got estimated bounds of no or one value: "
            f"nothing says what lies beyond. {_CURE}"
        )
    if hidden > _MOST_HIDDEN and not clipped:
        raise EstimateError(
            f"Expected less noise about the estimated bounds of {name!r}, got so much that a tenth of the rows may lie "
            f"beyond them. {_CURE}"
        )
    unit, start = (
        (_YEAR / kind.microseconds, -1970 * _YEAR / kind.microseconds) if isinstance(kind, DateTime) else (1, 0)
    )
    first, last = _cells(kind)
    return EstimatedBounds(name, n, *both, first, last, unit, start)


def is_clock(kind: ColumnKind | None) -> bool:
    """Whether a column holds times of day, whose bounds are the day's."""
    return isinstance(kind, DateTime) and kind.is_clock


def _cells(kind: Integer | Continuous | DateTime) -> tuple[int, int]:
    """Return the cells in which the bounds lie, of an upper one the cell that ends there."""
    if isinstance(kind, DateTime):
        first, last = (int(bound[:4]) - MIDDLE_YEAR + SIDE for bound in (kind.lower, kind.upper))
        return first, last
    lower, upper = float(kind.lower), float(kind.upper)
    if isinstance(kind, Continuous) and kind.values is None:
        lower, upper = np.nextafter(lower, np.inf) if lower else lower, np.nextafter(upper, -np.inf) if upper else upper
    first, last = cells_of(np.array([lower, upper]))
    return int(first), int(last)
