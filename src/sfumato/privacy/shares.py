"""Relative noise of plans that mix releases of all records with releases of samples.

By the central limit theorem of privacy loss (Dong, Roth and Su 2022, arXiv:1905.02383), T releases of Poisson samples
at rate q and noise multiplier σ are about one Gaussian release of multiplier 1/√(T q² (e^{1/σ²} − 1)). A share of the
squared budget is turned into a noise multiplier by that rule; calibration then scales the whole plan exactly.
"""

from __future__ import annotations

import numpy as np
from dp_accounting import gaussian_mechanism

from sfumato.privacy.budget import PrivacyBudget


def one_shot(share: float, budget: PrivacyBudget, count: int = 1) -> float:
    """Return the multiplier of each of `count` releases of all records that take this share together."""
    return _whole(budget) * float(np.sqrt(count / share))


def sampled(share: float, budget: PrivacyBudget, *, probability: float, count: int) -> float:
    """Return the multiplier of each of `count` releases of Poisson samples that take this share together."""
    squared = share / _whole(budget) ** 2
    return float(1 / np.sqrt(np.log1p(squared / (count * probability**2))))


def _whole(budget: PrivacyBudget) -> float:
    """Return the noise multiplier of one Gaussian release that takes all of the budget."""
    return float(gaussian_mechanism.get_sigma_gaussian(budget.epsilon, budget.delta))
