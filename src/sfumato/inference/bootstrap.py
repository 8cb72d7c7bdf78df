"""How much farther an estimate spreads under its noise than a straight line through it says: a parametric bootstrap.

Free: uses released values only. Reference: Efron 1982, the parametric bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from sfumato.errors import EstimateError
from sfumato.inference.calibration import Calibration
from sfumato.maths.streams import public_stream

DRAWS = 40
_STREAM = 20_261
_MOST_LOST = 0.25  # of the draws, which have no solution: noise may then hide whether there is one
_MIDDLE = stats.norm.ppf(0.84) - stats.norm.ppf(0.16)


def stretches(
    calibration: Calibration, ask: Callable[[np.ndarray], np.ndarray], linear: np.ndarray, what: str
) -> np.ndarray:
    """Return the factors by which standard errors of noise are too small, at least 1, shape (k,).

    Noise is redrawn about what was measured, and the question asked of the weights that this gives; the spread is that
    of the middle 68 % of the answers, which a few wild ones leave alone. The stream of draws is public and fixed, so
    that an estimate is a function of the release.

    Args:
        calibration: of the columns of the question.
        ask: from weights of the model's rows, shape (N,), to coefficients, shape (k,).
        linear: standard errors by linearisation, shape (k,).
        what: the question, for messages.

    Raises:
        EstimateError: a fourth of the draws have no answer.
    """
    if not linear.any():
        return np.ones_like(linear)
    rng, estimates = public_stream(_STREAM), []
    for _ in range(DRAWS):
        weights = calibration.redraw(rng)
        try:
            estimates.append(ask(weights))
        except EstimateError:
            continue
    if len(estimates) < (1 - _MOST_LOST) * DRAWS:
        raise EstimateError(
            f"Expected {what} to have a solution whatever the noise was, got one that noise decides about. Use fewer "
            "terms, or fit with a larger epsilon."
        )
    low, high = np.quantile(estimates, [0.16, 0.84], axis=0)
    return np.maximum((high - low) / _MIDDLE / np.where(linear > 0, linear, np.inf), 1.0)
