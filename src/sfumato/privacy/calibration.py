"""The least noise that meets a budget: root finding over a plan's one free factor, always on the safe side."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from sfumato._lazy import later
from sfumato.errors import ConfigError
from sfumato.privacy.accounting import (
    COARSE_INTERVAL,
    account,
    fresh_accountant,
    interval_for,
    least_delta,
    sampled_steps,
)
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.plan import Plan

if TYPE_CHECKING:
    from dp_accounting import dp_event, gaussian_mechanism
    from scipy import optimize

    from sfumato.privacy import pld
else:
    dp_event, gaussian_mechanism = later("dp_accounting.dp_event"), later("dp_accounting.gaussian_mechanism")
    optimize, pld = later("scipy.optimize"), later("sfumato.privacy.pld")

_MOST_DOUBLINGS = 40
_RELATIVE_TOLERANCE = 1e-5
_MANY_STEPS = 100_000
_LARGEST = 1e6  # in place of an infinite ε, which no root finder takes


@lru_cache(maxsize=64)
def calibrate(plan: Plan, budget: PrivacyBudget) -> Plan:
    """Return the plan with all its noise multiplied by the least factor that meets the budget.

    The ratios between the stages' noise multipliers stay. The search starts from the exact root for unsampled
    Gaussians, or, with sampling, from the root on a coarse privacy-loss grid; it ends on the fine grid that the
    certificate uses.

    Args:
        plan: stages with noise multipliers in the wanted ratios.
        budget: (ε, δ) under the plan's own relation.

    Returns:
        The calibrated plan: `account(plan, δ).epsilon ≤ ε`, within one part in 10,000 of the least such noise; of
        100,000 sampled steps or more within some parts in 1,000, as their grid follows the noise.

    Raises:
        ConfigError: no noise level within 2^±40 of the Gaussian mechanism's meets the budget, or δ is too small to be
            told from rounding.
    """
    if plan.repetitions is not None:
        return _calibrated_search(plan, budget)
    whole, budget = budget, _for_events(plan, budget)
    if whole.delta < least_delta(plan):
        raise ConfigError(
            f"Expected delta to be at least {1.1 * least_delta(plan):.1e}, below which rounding hides what this plan "
            f"costs, got delta={whole.delta!r}. Use a larger delta."
        )
    start = _unsampled_root(plan, budget)
    if any(stage.inclusion is not None for stage in plan.stages):
        low, high = _bracket(plan, budget, start)
        start = _root(plan, budget, low, high, COARSE_INTERVAL, tolerance=1e-3)
    fine = interval_for(plan.scaled(start))
    # a large ε needs no finer steps than its own ten-thousandth: the pessimism of a coarser grid is below 1e-4 of it
    interval = max(fine, min(COARSE_INTERVAL, 1e-4 * budget.epsilon))
    if sampled_steps(plan) >= _MANY_STEPS:
        interval = fine  # of so many steps the pessimism adds up
    low, high = _widen(plan, budget, start, interval)
    factor = _root(plan, budget, low, high, interval, tolerance=_RELATIVE_TOLERANCE)
    return _verified(plan, whole, factor)  # the grid step follows the factor


def _calibrated_search(plan: Plan, budget: PrivacyBudget) -> Plan:
    """Calibrate a plan that repeats stages: Rényi DP is the only account of these, so there is no grid to refine."""
    _for_events(plan, budget)  # refuses an additive part of δ that leaves nothing

    def excess(logarithm: float) -> float:
        return account(plan.scaled(math.exp(logarithm)), budget.delta).epsilon - budget.epsilon

    low = high = math.log(_unsampled_root(plan, budget))
    for _ in range(_MOST_DOUBLINGS):
        if excess(high) <= 0:
            break
        high += math.log(2)
    else:
        raise ConfigError(
            f"Expected a budget that some noise level meets, got epsilon={budget.epsilon!r}, delta={budget.delta!r}. "
            "Use a larger epsilon or delta, or fewer repetitions."
        )
    for _ in range(_MOST_DOUBLINGS):
        low = min(low, high) - math.log(2)
        if excess(low) > 0:
            break
    factor = math.exp(float(optimize.root_scalar(excess, bracket=(low, high), method="brentq", xtol=1e-7).root))
    return _verified(plan, budget, factor)


def _verified(plan: Plan, budget: PrivacyBudget, factor: float) -> Plan:
    """Return the plan at a factor, or hardly above it, whose account meets the budget."""
    step = _RELATIVE_TOLERANCE
    for _ in range(_MOST_DOUBLINGS):
        if account(plan.scaled(factor), budget.delta).epsilon <= budget.epsilon:
            return plan.scaled(factor)
        factor, step = factor * (1 + step), min(2 * step, 1.0)
    raise _unmet(budget)


def _for_events(plan: Plan, budget: PrivacyBudget) -> PrivacyBudget:
    """Return the budget of the events once the additive part p of δ is paid: (ε + log(1 − p), δ − p)."""
    extra = plan.extra_delta
    if extra == 0:
        return budget
    epsilon = budget.epsilon + math.log1p(-extra)
    if extra >= budget.delta or epsilon <= 0:
        raise ConfigError(
            f"Expected a budget above what is spent outside the events, got delta={budget.delta!r} for an additive "
            f"{extra!r}. Use a larger delta."
        )
    return PrivacyBudget(epsilon, budget.delta - extra)


@lru_cache(maxsize=256)
def _epsilon(plan: Plan, factor: float, delta: float, interval: float) -> float:
    accountant = fresh_accountant(plan.neighbours, interval)
    event = dp_event.ComposedDpEvent(pld.merged_gaussians(plan.scaled(factor).events(plan.neighbours)))
    return float(accountant.compose(event).get_epsilon(delta))


def _unsampled_root(plan: Plan, budget: PrivacyBudget) -> float:
    """Return the exact factor if no stage were sampled: together the stages are then one Gaussian mechanism."""
    merged = sum(stage.count / stage.noise_multiplier**2 for stage in plan.stages) ** -0.5
    return float(gaussian_mechanism.get_sigma_gaussian(budget.epsilon, budget.delta)) / merged


def _bracket(plan: Plan, budget: PrivacyBudget, start: float) -> tuple[float, float]:
    """Return (low, high) around the root on the coarse grid, searching from `start`."""
    factor = start

    def meets(trial: float) -> bool:
        return _epsilon(plan, trial, budget.delta, COARSE_INTERVAL) <= budget.epsilon

    for _ in range(_MOST_DOUBLINGS):
        if meets(factor):
            break
        factor *= 2
    else:
        raise _unmet(budget)
    low = high = factor
    step = 0.97
    for _ in range(_MOST_DOUBLINGS):
        low = high * step
        if not meets(low):
            return low, high
        high, step = low, max(step**2, 0.5)
    return low, high


def _widen(plan: Plan, budget: PrivacyBudget, factor: float, interval: float) -> tuple[float, float]:
    """Return (low, high) that bracket the root on the fine grid, near the coarse or unsampled root."""
    high, step = factor * (1 + 1e-4), 1.002
    for _ in range(_MOST_DOUBLINGS):
        if _epsilon(plan, high, budget.delta, interval) <= budget.epsilon:
            break
        high, step = high * step, min(step**2, 2.0)
    else:
        raise _unmet(budget)
    low, step = factor * (1 - 1e-4), 0.998
    for _ in range(_MOST_DOUBLINGS):
        if _epsilon(plan, low, budget.delta, interval) > budget.epsilon:
            break
        low, step = low * step, max(step**2, 0.5)
    return low, high


def _unmet(budget: PrivacyBudget) -> ConfigError:
    return ConfigError(
        f"Expected a budget that some noise level meets, got epsilon={budget.epsilon!r}, delta={budget.delta!r}. "
        "Use a larger epsilon or delta."
    )


def _root(plan: Plan, budget: PrivacyBudget, low: float, high: float, interval: float, *, tolerance: float) -> float:
    """Return a factor in [low, high], far closer to the root than `tolerance`; a step of this makes it safe."""

    def excess(factor: float) -> float:
        return min(_epsilon(plan, factor, budget.delta, interval), _LARGEST) - budget.epsilon

    return float(optimize.root_scalar(excess, bracket=(low, high), method="brentq", xtol=tolerance * low * 1e-2).root)
