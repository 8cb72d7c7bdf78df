"""Steps of values between two bounds: the multiples of a resolution, or listed values, however far apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.columns.facts import as_fraction

_CONTINUUM = 2**40  # steps between bounds without a resolution
_MOST_STEPS = 2**51  # a code times this many steps still rounds to the right one in float64


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps 0 to `last`: step = code · scale − offset.

    Attributes:
        last: the last step, at most 2^51; a finer resolution is coarsened.
        scale: steps between the bounds; more than `last` if the bounds are no multiples of the resolution.
        offset: steps from the lower bound to step 0, in [0, 1).
    """

    last: int
    scale: float
    offset: float

    @classmethod
    def whole(cls, last: int) -> Steps:
        """Return the steps between bounds that are steps themselves."""
        last = min(last, _MOST_STEPS)
        return cls(last, float(last), 0.0)

    @classmethod
    def between(cls, lower: float, upper: float, resolution: float | None) -> Steps:
        """Return the multiples of a resolution between two bounds; without one, very many steps."""
        if resolution is None or lower == upper:
            return cls.whole(_CONTINUUM if upper > lower else 0)
        step = as_fraction(resolution)
        low, high = as_fraction(lower) / step, as_fraction(upper) / step
        first = math.ceil(low)
        last = math.floor(high) - first
        return cls.whole(last) if last > _MOST_STEPS else cls(last, float(high - low), float(first - low))

    def at(self, codes: np.ndarray) -> np.ndarray:
        """Return the step nearest to each code in [0, 1], int64."""
        return np.clip(np.rint(codes * self.scale - self.offset), 0, self.last).astype(np.int64)

    def codes(self, steps: np.ndarray) -> np.ndarray:
        """Return the code of each step."""
        return np.minimum((steps + self.offset) / (self.scale or 1.0), 1.0)


@dataclass(frozen=True, slots=True)
class ListedSteps(Steps):
    """A step for each of some values, however far apart these are.

    Attributes:
        places: their codes, ascending.
    """

    places: tuple[float, ...]

    def at(self, codes: np.ndarray) -> np.ndarray:
        """Return the step nearest to each code in [0, 1], int64."""
        return nearest(np.array(self.places), np.asarray(codes))

    def codes(self, steps: np.ndarray) -> np.ndarray:
        """Return the code of each step, and between two of them what lies between their codes."""
        return np.interp(steps, np.arange(len(self.places)), self.places)


def nearest(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the place of the value nearest to each number, of some in ascending order; of two as near the larger."""
    if values.size == 1:
        return np.zeros(np.shape(numbers), dtype=np.int64)
    above = np.clip(np.searchsorted(values, numbers), 1, values.size - 1)
    return above - (numbers - values[above - 1] < values[above] - numbers)
