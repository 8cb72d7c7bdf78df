"""The ε that a target needs: a forecast error, or the risk that the best attacker has, each turned round."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sfumato._lazy import later
from sfumato.errors import ConfigError
from sfumato.privacy.accounting import account
from sfumato.privacy.budget import LARGEST_EPSILON
from sfumato.privacy.plan import Plan
from sfumato.privacy.risk import Risk, trade_off

if TYPE_CHECKING:
    from dp_accounting import gaussian_mechanism
else:
    gaussian_mechanism = later("dp_accounting.gaussian_mechanism")

_LEAST_OF_ERROR, _LEAST_OF_RISK = 0.01, 1e-3
_MOST_STEPS = 12
_NEAR = 1e-3


def epsilon_for_error(plan: Plan, *, noise: float, target_error: float, delta: float) -> float:
    """Return the ε at which a forecast error is `target_error`, rounded up to three digits; at least 0.01.

    Args:
        plan: stages with relative noise multipliers.
        noise: so many times that plan's noise make the error that is wanted.
        target_error: the error that is wanted, for messages.
        delta: δ.

    Raises:
        ConfigError: even the largest ε does not reach that error.
    """
    needed = plan.scaled(noise)
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
    return _rounded_up(max(epsilon, _LEAST_OF_ERROR))


def _rounded_up(epsilon: float) -> float:
    """Return ε with three digits, a little above: calibrated plans have a ten-thousandth more noise than they need."""
    if epsilon <= _LEAST_OF_ERROR:
        return _LEAST_OF_ERROR
    digits = 2 - math.floor(math.log10(epsilon))
    return min(math.ceil(epsilon * (1 + 2e-4) * 10**digits) / 10**digits, LARGEST_EPSILON)


def epsilon_for_risk(plan_at: Callable[[float], Plan], risk: Risk, delta: float) -> float:
    """Return the largest ε, to a thousandth of it, whose plan keeps a risk; four digits, rounded down.

    It starts from the Gaussian release that has the risk, and goes on by secants of log ε against log μ.

    Args:
        plan_at: the calibrated plan at an ε.
        risk: what the best attacker may reach.
        delta: δ of the plans.

    Raises:
        ConfigError: even ε = 0.001 does not keep it.
    """
    wanted = risk.mu(risk.most)
    epsilon = float(gaussian_mechanism.get_epsilon_gaussian(1 / wanted, delta))
    epsilon = _rounded_down(min(max(epsilon, _LEAST_OF_RISK), LARGEST_EPSILON))
    points: list[tuple[float, float]] = []
    best = 0.0
    for _ in range(_MOST_STEPS):
        figure = risk.of(trade_off(plan_at(epsilon)))
        mu = risk.mu(min(figure, 1 - 1e-15))
        if figure <= risk.most:
            best = max(best, epsilon)
            if mu >= wanted * (1 - _NEAR) or epsilon >= LARGEST_EPSILON:
                break
        elif epsilon <= _LEAST_OF_RISK:
            break
        points.append((math.log(epsilon), math.log(max(mu, 1e-12) / (wanted * (1 - _NEAR / 2)))))
        epsilon = _rounded_down(min(max(math.exp(_next(points)), _LEAST_OF_RISK), LARGEST_EPSILON))
    if not best:
        raise ConfigError(
            f"Expected a risk that some epsilon of at least {_LEAST_OF_RISK:g} keeps at delta={delta:g}, got {risk!r}. "
            "Allow more risk, or use a smaller delta."
        )
    return best


def _next(points: list[tuple[float, float]]) -> float:
    """Return the next log ε: by a secant of the last two points, or as if μ were proportional to ε."""
    (here, excess) = points[-1]
    slope = 1.0
    if len(points) > 1 and points[-2][0] != here:
        slope = (excess - points[-2][1]) / (here - points[-2][0])
    return here - excess / min(max(slope, 0.3), 3.0)


def _rounded_down(epsilon: float) -> float:
    digits = 4 - math.floor(math.log10(epsilon))
    return math.floor(epsilon * 10**digits * (1 + 1e-12)) / 10**digits
