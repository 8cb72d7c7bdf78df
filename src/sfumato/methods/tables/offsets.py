"""Where numbers lie, seen twice: of many columns and few rows, shares of cells are mostly noise.

There a record's vector has an entry that is the same for all rows, whose products with the leading waves are their
means. They are 0 under the shares of the first release; what stands above its noise moves these.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import optimize

from sfumato.maths.constants import OFFSETS
from sfumato.maths.shrinkage import shrunk
from sfumato.methods.tables.features import ColumnShares


def constant_weight(entry: float, columns: int) -> float:
    """Return the squared length of the entry, by the noise of an entry and the number of columns."""
    return max(OFFSETS.weight, OFFSETS.share * columns * min(1.0, entry / OFFSETS.noise))


def offsets_of(moments: np.ndarray, noise: float, weight: float, columns: Sequence[ColumnShares]) -> np.ndarray:
    """Return the means of the numbers' leading features as far as they stand above their noise, of others 0, (d,).

    Args:
        moments: of all features, and after them of the entry that is the same for all rows, per row, (d + 1, d + 1).
        noise: variance of it off the diagonal.
        weight: squared length of that entry.
        columns: shares and features of each.
    """
    starts = np.cumsum([0, *(column.features.size for column in columns)])
    places = np.array([s for s, c in zip(starts, columns, strict=False) if c.waves and c.features.size], dtype=np.int64)
    offsets, roots = np.zeros(starts[-1]), np.sqrt(np.concatenate([c.features.weights for c in columns]))
    # clipping weighs long records down; the entry's own moment says by how much
    left = np.clip(moments[-1, -1] / weight, OFFSETS.least_left, 1.0)
    scale = np.sqrt(weight) * left * roots[places]
    means = shrunk(moments[-1, places] / scale, noise / scale**2, places)[0]
    offsets[places] = np.clip(means, -OFFSETS.most, OFFSETS.most)
    return offsets


def moved(columns: Sequence[ColumnShares], offsets: np.ndarray) -> list[ColumnShares]:
    """Return the columns where features have these means, shape (d,), which are taken off them."""
    starts = np.cumsum([0, *(column.features.size for column in columns)])
    return [
        _moved(column, offsets[start : start + column.features.size])
        for start, column in zip(starts, columns, strict=False)
    ]


def _moved(column: ColumnShares, offsets: np.ndarray) -> ColumnShares:
    if not offsets.any():
        return column
    values, inside = column.features.values[column.drawn, 0], column.drawn < column.ordered
    shares = column.shares.copy()
    mean = float(offsets[0]) * shares.sum() / max(shares[inside].sum(), 1e-300)
    shares[inside] = tilted(shares[inside], values[inside], mean)
    return replace(column, shares=shares, features=replace(column.features, values=column.features.values - offsets))


def tilted(shares: np.ndarray, values: np.ndarray, mean: float) -> np.ndarray:
    """Return shares of the same sum, exponentially tilted so that the values have this mean, or the nearest there is.

    Args:
        shares: shape (c,), at least 0.
        values: of each, shape (c,).
        mean: Σ shares · values ÷ Σ shares.
    """
    positive = shares > 0
    if not positive.any() or np.ptp(values[positive]) == 0:
        return shares
    logs = np.log(np.maximum(shares, 1e-300))

    def law(t: float) -> np.ndarray:
        powers = np.where(positive, logs + t * values, -np.inf)
        weights = np.exp(powers - powers.max())
        return weights / weights.sum()

    def error(t: float) -> float:
        return float(law(t) @ values) - mean

    if error(-OFFSETS.most_tilt) >= 0 or error(OFFSETS.most_tilt) <= 0:
        return shares.sum() * law(OFFSETS.most_tilt if mean > 0 else -OFFSETS.most_tilt)
    return shares.sum() * law(float(optimize.brentq(error, -OFFSETS.most_tilt, OFFSETS.most_tilt)))  # type: ignore[arg-type]
