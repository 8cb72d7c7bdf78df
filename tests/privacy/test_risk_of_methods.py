"""Risk of every method's plan beside a computation of its own: masses of losses, a Fourier transform, the best test."""

import contextlib
import time

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from fixtures import tables
from sfumato.errors import SfumatoError
from sfumato.methods.registry import METHODS
from sfumato.privacy.plan import Plan, Stage
from sfumato.privacy.risk import trade_off

STEP, POINTS = 1e-5, 2**20
LONG = Plan([Stage(name="s", noise_multiplier=1.0, sampling_probability=0.001, count=30_000)])


def _cells(q, sigma):
    """Masses of cells of the loss, with the record and without, as they come: neither rounded up nor down."""
    edges = (np.arange(-POINTS // 2, POINTS // 2 + 1) - 0.5) * STEP
    with np.errstate(divide="ignore", invalid="ignore"):
        outcomes = sigma**2 * np.log(np.expm1(edges) / q + 1) + 0.5
    outcomes = np.where(np.isnan(outcomes), -np.inf, outcomes)
    without = -np.diff(norm.sf(outcomes, scale=sigma))
    return (1 - q) * without - q * np.diff(norm.sf(outcomes, 1, sigma)), without


def _independent(plan, fpr):
    powers = [1, 1]
    for stage in plan.stages:
        cells = _cells(stage.sampling_probability or 1.0, stage.noise_multiplier)
        transforms = (np.fft.rfft(np.roll(masses, -(POINTS // 2))) for masses in cells)
        powers = [p * t**stage.count for p, t in zip(powers, transforms, strict=True)]
    inside, outside = (np.cumsum(np.roll(np.fft.irfft(p, POINTS), POINTS // 2)[::-1]) for p in powers)
    alarms = np.concatenate([[0], outside, 1 - inside])  # the test, and the opposite one the other way round
    hits = np.concatenate([[0], inside, 1 - outside])
    line = minimize_scalar(lambda s: (hits - s * alarms).max() + s * fpr, bounds=(0.2, 60), method="bounded")
    return (hits - alarms).max(), line.fun


def _plan(name):
    if name == "long":
        return LONG
    for schema in (tables.schema(), tables.image_schema()):
        with contextlib.suppress(SfumatoError):
            return METHODS[name].make(epsilon=2.0, delta=1e-6).plan(schema, n_public=20_000)
    pytest.skip("a method of sets: Gaussian releases of all records")


@pytest.mark.parametrize(
    "name",
    [
        *(name for name, method in METHODS.items() if method.private and name not in ("dpmix", "dpgm")),
        "long",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("dpmix", "dpgm")),
    ],
)
def test_every_plan_is_as_risky_as_an_independent_computation_says(name):
    plan = _plan(name)
    curve = trade_off(plan)
    advantage, found = _independent(plan, 0.05)
    assert curve.advantage == pytest.approx(advantage, abs=1e-6)
    assert curve.true_positive_rate(0.05) == pytest.approx(found, abs=1e-6)


@pytest.mark.slow
def test_thousands_of_steps_take_seconds():
    began = time.process_time()
    trade_off(Plan([Stage(name="s", noise_multiplier=0.5, sampling_probability=0.01, count=20_000)]))
    assert time.process_time() - began < 30
