"""The ε that a target needs: a forecast error, a risk, or a budget of several releases, each turned round."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sfumato._lazy import later
from sfumato.errors import ConfigError
from sfumato.privacy.accounting import account, account_of_fits
from sfumato.privacy.budget import LARGEST_EPSILON, PrivacyBudget
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

    def excess(epsilon: float) -> float:
        figure = risk.of(trade_off(plan_at(epsilon)))
        excess = math.log(max(risk.mu(min(figure, 1 - 1e-15)), 1e-12) / wanted)
        return min(excess, 0.0) if figure <= risk.most else max(excess, 1e-15)

    best = _largest(float(gaussian_mechanism.get_epsilon_gaussian(1 / wanted, delta)), excess)
    if not best:
        raise ConfigError(
            f"Expected a risk that some epsilon of at least {_LEAST_OF_RISK:g} keeps at delta={delta:g}, got {risk!r}. "
            "Allow more risk, or use a smaller delta."
        )
    return best


def epsilon_of_each(plan_at: Callable[[float], Plan], releases: int, budget: PrivacyBudget) -> float:
    """Return the largest ε, to a thousandth of it, of which so many fits of the same people keep a budget together.

    Args:
        plan_at: the calibrated plan at an ε, at the budget's δ.
        releases: how many.
        budget: of all together.

    Raises:
        ConfigError: even ε = 0.001 each is too much.
    """

    def excess(epsilon: float) -> float:
        plan = plan_at(epsilon)
        together = account_of_fits([plan] * releases, budget.delta, plan.neighbours)
        return math.log((together.epsilon if together is not None else 0.0) / budget.epsilon)

    sigma = float(gaussian_mechanism.get_sigma_gaussian(budget.epsilon, budget.delta))
    alone = float(gaussian_mechanism.get_epsilon_gaussian(sigma * math.sqrt(releases), budget.delta))
    best = _largest(alone, excess)
    if not best:
        raise ConfigError(
            f"Expected a budget that {releases} releases of epsilon {_LEAST_OF_RISK:g} or more keep together, got "
            f"{budget}. Ask for a larger epsilon, or fewer releases."
        )
    return best


def _largest(start: float, excess_at: Callable[[float], float]) -> float:
    """Return about the largest ε whose excess, the logarithm of a figure beyond its limit, is at most 0; 0 of none."""
    epsilon = _rounded_down(min(max(start, _LEAST_OF_RISK), LARGEST_EPSILON))
    points: list[tuple[float, float]] = []
    best = 0.0
    for _ in range(_MOST_STEPS):
        excess = excess_at(epsilon)
        if excess <= 0:
            best = max(best, epsilon)
            if excess >= -_NEAR or epsilon >= LARGEST_EPSILON:
                break
        elif epsilon <= _LEAST_OF_RISK:
            break
        points.append((math.log(epsilon), excess + _NEAR / 2))
        epsilon = _rounded_down(min(max(math.exp(_next(points)), _LEAST_OF_RISK), LARGEST_EPSILON))
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
