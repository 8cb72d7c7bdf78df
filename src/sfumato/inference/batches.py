"""Many answers about the same columns at once: each is what its question alone would give, at a fraction of the time.

Free: uses released values only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.inference.estimate import deviations
from sfumato.inference.questions import LEAST_KNOWN, LEAST_SEEN, Asked, Questions


@dataclass(frozen=True, slots=True)
class Batch:
    """Estimates of one kind, each array of shape (k,).

    Attributes:
        value: NaN where `seen` is false.
        std_error: likewise.
        seen: whether the whole that a share or mean is of stands out of its noise.
        said: whether the measurements say enough of it.
    """

    value: np.ndarray
    std_error: np.ndarray
    seen: np.ndarray
    said: np.ndarray

    @property
    def answered(self) -> np.ndarray:
        """Which of them the release answers, shape (k,)."""
        return self.seen & self.said

    def ends(self, level: float, lowest: float = -np.inf, highest: float = np.inf) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the intervals within bounds that the target has, NaN where there is no answer.

        Raises:
            ConfigError: the level is not between 0 and 1.
        """
        half = deviations(level) * self.std_error
        low = np.maximum(self.value - half, lowest)
        high = np.minimum(np.maximum(self.value + half, lowest), highest)
        return np.where(self.answered, low, np.nan), np.where(self.answered, high, np.nan)


def ratios(asked: Asked, parts: np.ndarray, wholes: np.ndarray) -> Batch:
    """Return estimates of totals ÷ other totals, of functions of the rows, shape (N, k) each; wholes may be (N, 1)."""
    calibration = asked.calibration
    over = calibration.total(wholes)
    seen = over > LEAST_SEEN * np.sqrt(calibration.each(wholes).of("table"))
    safe = np.where(seen, over, 1.0)
    value = calibration.total(parts) / safe
    found = calibration.each((parts - value * wholes) / safe)
    seen = np.broadcast_to(seen, value.shape)
    return Batch(
        np.where(seen, value, np.nan),
        np.where(seen, np.sqrt(found.of(asked.target)), np.nan),
        seen,
        found.known >= LEAST_KNOWN,
    )


def indicators(codes: np.ndarray, n: int) -> np.ndarray:
    """Return whether each row has each code, shape (N, n), of codes in 0..n-1, shape (N,)."""
    found = np.zeros((codes.size, n))
    found[np.arange(codes.size), codes] = 1.0
    return found


def shares(questions: Questions, name: str, bins: np.ndarray, n: int, *, target: str) -> Batch:
    """Return the shares of rows in the bins of one column.

    Args:
        questions: to a release.
        name: the column.
        bins: the bin of each of the model's rows, in 0..n-1, shape (N,).
        n: how many bins.
        target: "population" or "table".

    Raises:
        ConfigError, EstimateError: the column is not there, or follows from others by a rule.
    """
    asked = questions.asked((name,), target)
    found = ratios(asked, indicators(bins, n), np.ones((bins.size, 1)))
    return Batch(np.clip(found.value, 0.0, 1.0), found.std_error, found.seen, found.said)
