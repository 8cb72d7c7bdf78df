"""Functions of parts' answers: values, errors by cause."""

import math

import pytest

from sfumato.errors import ConfigError
from sfumato.inference.estimate import Estimate
from sfumato.inference.parts import number, pooled_variance, times, weighted_mean


def estimate(value, noise=0.0, unmeasured=0.0):
    parts = {"noise": noise, "unmeasured": unmeasured}
    return Estimate(value, math.hypot(noise, unmeasured), "table", "Measured: counts.", parts)


def test_noise_of_parts_is_independent_and_what_was_not_measured_adds_up():
    mean = weighted_mean([estimate(1.0, 0.3, 0.1), estimate(3.0, 0.4, 0.1)], [100, 300])
    assert mean.value == 2.5
    assert mean.parts["noise"] == pytest.approx(math.hypot(0.25 * 0.3, 0.75 * 0.4))
    assert mean.parts["unmeasured"] == pytest.approx(0.1)
    assert mean.std_error == pytest.approx(math.hypot(*mean.parts.values()))


def test_sizes_that_are_estimated_have_their_errors():
    sizes = [times(estimate(0.5, 0.1), 200), times(estimate(0.5, 0.1), 600)]
    mean = weighted_mean([estimate(1.0), estimate(3.0)], sizes)
    assert mean.value == 2.5
    assert mean.std_error == pytest.approx(math.hypot(1.5 / 400 * 20, 0.5 / 400 * 60))


def test_a_variance_is_within_parts_and_between_them():
    pooled = pooled_variance([estimate(1.0, 0.1), estimate(1.0)], [estimate(0.0), estimate(2.0)], [50, 50])
    assert pooled.value == 2.0
    assert pooled.std_error == pytest.approx(0.05)


def test_moments_are_refused():
    with pytest.raises(ConfigError, match="of dates"):
        number(Estimate("2020-01-01", 0.0, "table", ""))
