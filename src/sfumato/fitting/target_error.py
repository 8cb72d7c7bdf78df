"""The ε that a forecast error needs: the forecast, turned round."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato._lazy import later
from sfumato.errors import ConfigError
from sfumato.privacy.accounting import account
from sfumato.privacy.budget import LARGEST_EPSILON
from sfumato.privacy.plan import Plan

if TYPE_CHECKING:
    from dp_accounting import gaussian_mechanism
else:
    gaussian_mechanism = later("dp_accounting.gaussian_mechanism")

_LEAST_EPSILON = 0.01


def epsilon_for_error(plan: Plan, *, error: float, target_error: float, delta: float) -> float:
    """Return the ε at which a forecast error is `target_error`, rounded up to three digits; at least 0.01.

    Args:
        plan: stages with relative noise multipliers.
        error: forecast error of that plan; it grows in proportion to the noise.
        target_error: the error that is wanted.
        delta: δ.

    Raises:
        ConfigError: even the largest ε does not reach that error.
    """
    needed = plan.scaled(target_error / error)
    merged = sum(stage.count / stage.noise_multiplier**2 for stage in needed.stages) ** -0.5
    # without sampling all stages are one Gaussian mechanism, whose epsilon is quick; sampling only lowers it
    with np.errstate(all="ignore"):
        epsilon = float(gaussian_mechanism.get_epsilon_gaussian(merged, delta))
    if any(stage.inclusion is not None for stage in needed.stages):
        epsilon = account(needed, delta).epsilon
    if epsilon > LARGEST_EPSILON:
        raise ConfigError(
            f"Expected a target error that some epsilon up to {LARGEST_EPSILON:g} reaches, got {target_error=}. "
            "Declare more rows, or a coarser schema."
        )
    return _rounded_up(max(epsilon, _LEAST_EPSILON))


def _rounded_up(epsilon: float) -> float:
    """Return ε with three digits, a little above: calibrated plans have a ten-thousandth more noise than they need."""
    if epsilon <= _LEAST_EPSILON:
        return _LEAST_EPSILON
    digits = 2 - math.floor(math.log10(epsilon))
    return min(math.ceil(epsilon * (1 + 2e-4) * 10**digits) / 10**digits, LARGEST_EPSILON)
