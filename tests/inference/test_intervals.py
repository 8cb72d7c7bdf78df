"""Intervals of correlations: Fisher's where only sampling moves them, of one length where noise does. Of variances."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.inference.estimate import Estimate, Estimates
from sfumato.inference.intervals import of_correlation, of_variance, within_bounds


@pytest.mark.parametrize("value", [-0.9, 0.0, 0.5, 0.998])
def test_without_noise_the_interval_is_fishers(value: float) -> None:
    error = 0.1 * (1 - value**2)
    low, high = of_correlation(value, {"noise": 0.0, "sampling": error, "unmeasured": 0.0})(1.96)
    assert np.allclose(np.arctanh([low, high]), np.arctanh(value) + 0.196 * np.array([-1, 1]))


@pytest.mark.parametrize("value", [0.95, 0.998, 0.9999, -0.9999])
def test_noise_reaches_as_far_near_one_as_anywhere(value: float) -> None:
    low, high = of_correlation(value, {"noise": 0.02, "sampling": 0.005, "unmeasured": 0.01})(2.0)
    assert -1.0 <= low < value < high <= 1.0
    assert high - low < 0.12
    near, far = (high, low) if value > 0 else (low, high)
    assert abs(near) == 1.0 or abs(near) > 0.98
    assert abs(far) > abs(value) - 0.06


@pytest.mark.parametrize("error", [0.0, 0.2])
def test_a_column_that_never_varies_has_an_interval_from_zero(error: float) -> None:
    low, high = of_variance(0.0, {"noise": error})(2.0)
    assert (low, high) == (0.0, 2 * error)


def test_fishers_z_does_not_reach_minus_one_from_beside_one() -> None:
    low, _ = of_correlation(0.9999, {"noise": 0.001, "sampling": 0.05, "unmeasured": 0.001})(1.96)
    assert low > 0.8


@pytest.mark.parametrize(
    ("value", "error", "bounds", "shown", "interval"),
    [
        (-23.0, 70.0, (0.0, 120.0), 0.0, (0.0, 117.0)),
        (155.0, 10.0, (0.0, 120.0), 120.0, (120.0, 120.0)),
        (1.02, 0.02, (0.0, 1.0), 1.0, (0.98, 1.0)),
        (0.5, 0.1, (0.0, np.inf), 0.5, (0.3, 0.7)),
    ],
)
def test_what_cannot_be_is_moved_to_what_can(value, error, bounds, shown, interval) -> None:
    estimate = within_bounds(Estimate(value, error, "table", ""), *bounds)
    assert estimate.value == shown
    assert np.allclose(estimate.ends_at(2.0), interval)
    assert estimate.unbounded == value


def test_differences_and_sums_do_not_take_what_was_moved() -> None:
    """A value that is moved from 0 or below has an error in the mean, and sums of many of them would add it up."""
    low = within_bounds(Estimate(-3.0, 2.0, "table", ""), 0.0, 120.0)
    assert Estimates({"a": Estimate(1.0, 2.0, "table", ""), "b": low}, ("g",), {}).difference("a", "b").value == 4.0
    assert low.unbounded == -3.0
