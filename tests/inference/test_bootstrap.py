"""Standard errors where noise bends an answer: those of redrawn noise."""

import numpy as np
import pytest

from sfumato.errors import EstimateError
from sfumato.inference.calibration import Calibration
from sfumato.inference.noisy_totals import Totals
from sfumato.inference.regression import stretches


@pytest.fixture
def calibration():
    rng = np.random.default_rng(0)
    functions = rng.normal(size=(4_000, 3))
    return Calibration(Totals(functions, np.zeros(3), np.full(3, 200.0**2)), 5_000, 0.0), functions


def spread_of(calibration, functions):
    return np.sqrt(np.diagonal(calibration.variances(functions).noise)) / 5_000


def test_straight_answers_keep_their_errors(calibration):
    """What is linear in the noise spreads as linearisation says, but for the chance of forty draws."""
    calibration, functions = calibration
    found = stretches(calibration, lambda w: w @ functions / 5_000, spread_of(calibration, functions), "a mean")
    assert ((found >= 1) & (found < 1.35)).all()


def test_bent_answers_are_given_the_spread_that_they_have(calibration):
    calibration, functions = calibration
    linear = spread_of(calibration, functions)
    bent = stretches(calibration, lambda w: np.sinh(60 * (w @ functions / 5_000)) / 60, linear, "a bent mean")
    assert (bent > 1.5).all()
    # an error of linearisation that is twice too small is doubled
    halved = stretches(calibration, lambda w: w @ functions / 5_000, linear / 2, "a mean")
    assert ((halved > 1.5) & (halved < 2.7)).all()


def test_answers_that_are_mostly_none_are_refused(calibration):
    calibration, functions = calibration

    def ask(weights):
        if weights @ functions[:, 0] > 0:
            raise EstimateError("none")
        return weights @ functions

    with pytest.raises(EstimateError, match="noise decides about"):
        stretches(calibration, ask, np.ones(3), "a mean")


def test_without_noise_nothing_is_drawn():
    functions = np.random.default_rng(0).normal(size=(500, 1))
    exact = Calibration(Totals(functions, np.zeros(1), np.zeros(1)), 500, 0.0)
    assert stretches(exact, lambda w: np.zeros(0), np.zeros(1), "a mean") == 1


def test_a_logistic_slope_is_the_same_each_time(release):
    first, again = (release.logit("w ~ x + u") for _ in range(2))
    assert (first.bse == again.bse).all()


def test_what_does_not_vary_is_no_surprise_however_it_is_rounded():
    """Shares of three labels add up to 1: that a sum of counts is off by a rounding says nothing of the model."""
    labels = np.random.default_rng(1).integers(0, 3, 4_000)
    functions = np.eye(3)[labels]
    counts = 5_000 * functions.mean(axis=0) + np.array([50.0, -30.0, -20.0])
    exact, rounded, off = (
        Calibration(Totals(functions, totals, np.zeros(3)), 5_000, 0.0).surprise
        for totals in (counts, counts + 1e-7, counts + np.array([2_000.0, -2_000.0, 0.0]))
    )
    assert 0 < exact < 0.1
    assert rounded == pytest.approx(exact, rel=1e-4)
    assert off > 1
