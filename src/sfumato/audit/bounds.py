"""From how often an attack was right to what ε has to be at least."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from dp_accounting.privacy_accountant import PrivacyAccountant
from scipy import optimize, stats

from sfumato.privacy.accounting import COARSE_INTERVAL, account, fresh_accountant, interval_for
from sfumato.privacy.plan import Plan
from sfumato.privacy.pld import gaussian_delta

_LARGEST_EPSILON = 100.0
_DELTAS, _LARGEST_DELTA = 8, 0.5
_LEAST_NOISE, _MOST_NOISE = 0.25, 16.0
_HALVINGS = 4
_ABOVE = 1e-9


def proportion_above(successes: int, trials: int, failure: float) -> float:
    """Clopper-Pearson: a number that a proportion exceeds but with probability `failure`."""
    return 0.0 if successes == 0 else float(stats.beta.ppf(failure, successes, trials - successes + 1))


def proportion_below(successes: int, trials: int, failure: float) -> float:
    """Clopper-Pearson: a number that a proportion stays below but with probability `failure`."""
    return 1.0 if successes == trials else float(stats.beta.ppf(1 - failure, successes + 1, trials - successes))


def epsilon_above(true_positive: float, false_positive: float, delta: float) -> float:
    """The least ε at δ that allows rates of at least `true_positive` and at most `false_positive`; at least 0.

        ln((TPR − δ)/FPR) and, of the other error, ln((1 − FPR − δ)/(1 − TPR))

    Reference: Kairouz, Oh and Viswanath 2015, Theorem 2.1.
    """
    pairs = ((true_positive - delta, false_positive), (1 - false_positive - delta, 1 - true_positive))
    return max([0.0, *(math.log(a / b) for a, b in pairs if a > 0 and b > 0)])


def shift_above(true_positive: float, false_positive: float) -> float:
    """The least μ of a Gaussian mechanism that allows these rates: Φ⁻¹(TPR) − Φ⁻¹(FPR), at least 0.

    Reference: Dong, Roth and Su 2022, definition 2.6; as an audit: Nasr et al. 2023, https://arxiv.org/abs/2302.07956.
    """
    return max(0.0, float(stats.norm.ppf(true_positive) - stats.norm.ppf(false_positive)))


def gaussian_epsilon(shift: float, delta: float) -> float:
    """ε at δ of a Gaussian mechanism with sensitivity `shift` and noise 1, at most 100."""

    def excess(epsilon: float) -> float:
        return float(gaussian_delta(shift, np.array(epsilon))) - delta

    if shift <= 0 or excess(0.0) <= 0:
        return 0.0
    if excess(_LARGEST_EPSILON) >= 0:
        return _LARGEST_EPSILON
    return float(optimize.brentq(excess, 0.0, _LARGEST_EPSILON))  # type: ignore[arg-type]


def plan_epsilon(plan: Plan, true_positive: float, false_positive: float, delta: float) -> float:
    """About the least ε at δ of a plan with all its noise times one factor that allows these rates; at least 0.

    What `shift_above` is for Gaussian releases: the shape of the trade-off between errors is that of the certificate's
    events, and its scale is found by a few bisections, from a quarter of the noise to sixteen times as much: the result
    is that of a factor which just does not allow the rates. It is above the plan's own ε if and only if the plan as it
    is does not allow them. Accounts are looked at from δ to 1/2, by privacy-loss distributions on a coarse grid that
    allows too much rather than too little.

    Args:
        plan: calibrated; events of any kind.
        true_positive: a rate that right guesses exceed.
        false_positive: a rate that wrong guesses stay below.
        delta: δ.
    """
    deltas = np.geomspace(delta, _LARGEST_DELTA, _DELTAS)
    needed = [epsilon_above(true_positive, false_positive, d) for d in deltas]

    def allows(factor: float) -> bool:
        accountant = _accountant(plan, factor)
        return all(n <= 0 or n <= accountant.get_epsilon(d) for n, d in zip(needed, deltas, strict=True))

    if not any(needed):
        return 0.0
    own = account(plan, delta).epsilon
    refuted = not allows(1.0)
    bad = _least_refuted(allows) if refuted else _most_refuted(allows)
    if bad is None:
        return 0.0
    epsilon = float(_accountant(plan, bad).get_epsilon(delta))
    # what the coarse grid rounds up may not refute a plan that allows the rates, nor clear one that does not
    return max(epsilon, own * (1 + _ABOVE)) if refuted else min(epsilon, own)


def _most_refuted(allows: Callable[[float], bool]) -> float | None:
    """Return a factor above 1 that does not allow the rates, near the largest; None if even the most noise does."""
    good, bad = 1.0, 2.0
    while allows(bad):
        good, bad = bad, 2 * bad
        if bad > _MOST_NOISE:
            return None
    return _bisect(allows, good, bad)


def _least_refuted(allows: Callable[[float], bool]) -> float:
    """Return a factor of at most 1 that does not allow the rates, near the least, or one near a quarter."""
    good, bad = 0.5, 1.0
    while not allows(good):
        bad, good = good, good / 2
        if good < _LEAST_NOISE:
            return bad
    return _bisect(allows, good, bad)


def _bisect(allows: Callable[[float], bool], good: float, bad: float) -> float:
    for _ in range(_HALVINGS):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if allows(middle) else (good, middle)
    return bad


def _accountant(plan: Plan, factor: float) -> PrivacyAccountant:
    scaled = plan.scaled(factor)
    # with less noise ε is larger, and so may the grid's steps be
    accountant = fresh_accountant(
        plan.neighbours, min(COARSE_INTERVAL, 10 * interval_for(plan)) / min(factor, 1.0) ** 2
    )
    for event in scaled.events(plan.neighbours):
        accountant.compose(event)
    return accountant
