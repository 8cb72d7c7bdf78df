"""Golden values: the numbers of the privacy reference that plans of this package can state.

Computed by `dp_accounting` 0.6.0 with a PLD step of 1e-4, δ = 1e-5 unless said; compared to 4 significant digits.
"""

import logging
import math

import numpy as np
import pytest
from dp_accounting import dp_event
from scipy import stats

from sfumato.privacy.accounting import account, account_curve, recompute_epsilon
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.plan import Neighbours, Plan, Stage

DELTA = 1e-5
ROOT2, ROOT3 = math.sqrt(2), math.sqrt(3)
P3GM_Q = 300 / 63_000


def gaussian(multiplier, count=1, name="gaussian", replace_distance=2.0):
    return Stage(name=name, noise_multiplier=multiplier, count=count, replace_distance=replace_distance)


def sampled(q, multiplier, count, name="sgd"):
    return Stage(name=name, noise_multiplier=multiplier, sampling_probability=q, count=count)


def epsilon(*stages, neighbours=Neighbours.ADD_REMOVE, delta=DELTA, interval=1e-4):
    return account(Plan(stages), delta, neighbours=neighbours, interval=interval).epsilon


def rdp(*stages, delta=DELTA):
    return recompute_epsilon(
        Plan(stages).events(), delta, accountant="RdpAccountant", value_discretization_interval=None
    )


def close(value):
    return pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize(("multiplier", "expected"), [(1, 4.37718), (3, 1.27109), (10, 0.340669)])
def test_gaussian(multiplier, expected):
    assert epsilon(gaussian(multiplier)) == close(expected)


@pytest.mark.parametrize(("target", "expected"), [(1.0, 3.73063), (0.1, 30.7496)])
def test_least_multiplier_of_a_budget(target, expected):
    plan = calibrate(Plan([gaussian(1.0)]), PrivacyBudget(target, DELTA))
    assert plan.stages[0].noise_multiplier == close(expected)


def test_gaussian_under_three_accounts():
    assert epsilon(gaussian(5)) == close(0.7255)
    assert epsilon(gaussian(5), neighbours=Neighbours.REPLACE_ONE) == close(1.5550)
    assert rdp(gaussian(5)) == close(0.7945)
    assert rdp(gaussian(3)) == close(1.3863)


def test_replace_one_never_goes_to_rdp():
    """RDP would say 0.7945 for the same event under replace-one, which is the add/remove value."""
    found = account(Plan([gaussian(5)]), DELTA, neighbours=Neighbours.REPLACE_ONE)
    assert found.accountant == "PLDAccountant"
    with pytest.raises(ValueError, match="add_remove"):
        recompute_epsilon(
            Plan([gaussian(5)]).events(), DELTA, accountant="RdpAccountant",
            value_discretization_interval=None, neighbours=Neighbours.REPLACE_ONE,
        )  # fmt: skip


def test_sampled_gaussian():
    stage = sampled(P3GM_Q, 1.4, 840)
    assert rdp(stage) == close(0.536315)
    assert epsilon(stage) == close(0.412779)
    assert epsilon(stage, neighbours=Neighbours.REPLACE_ONE) == close(0.731966)


def test_composition():
    stages = gaussian(20, name="a"), gaussian(40, 20, name="b"), sampled(P3GM_Q, 1.4, 840)
    assert epsilon(*stages) == close(0.605663)
    assert rdp(*stages) == close(0.686315)


def merged(*multipliers):
    return sum(m**-2 for m in multipliers) ** -0.5


def test_merged_multipliers():
    assert merged(4, 1) == close(0.970143)
    assert merged(1, 2 * 5) == close(0.995037)


def test_gradient_with_norm_histogram():
    assert epsilon(sampled(0.0017, merged(4, 1), 11_780)) == close(0.980538)
    assert epsilon(sampled(0.0017, 1.0, 11_780)) == close(0.926323)


def p3gm(em_blocks, scale=1.0):
    return (
        gaussian(48.0893 * scale, name="pca", replace_distance=ROOT2),
        gaussian(74.7737 * scale / math.sqrt(em_blocks), 20, name="em", replace_distance=ROOT2),
        sampled(P3GM_Q, 1.4 * scale, 840),
    )


def test_p3gm():
    assert rdp(*p3gm(7)) == close(0.791037)
    assert rdp(*p3gm(3)) == close(0.647952)
    assert epsilon(*p3gm(7)) == close(0.716069)
    assert epsilon(*p3gm(3)) == close(0.561134)
    assert epsilon(*p3gm(3, scale=0.686)) == close(0.999858)
    assert epsilon(*p3gm(3), neighbours=Neighbours.REPLACE_ONE) == close(0.929605)


def test_p3gm_with_bought_extras():
    assert epsilon(*p3gm(3), gaussian(50, name="count")) == pytest.approx(0.5659, abs=5e-5)
    extras = gaussian(50, name="count"), gaussian(50, name="labels"), gaussian(48.0893, name="mean")
    assert epsilon(*p3gm(3), *extras) == pytest.approx(0.5757, abs=5e-5)


def test_em_alone():
    assert epsilon(p3gm(3)[1]) == close(0.35402)
    assert epsilon(p3gm(7)[1]) == close(0.561772)


def test_kmeans():
    stage = gaussian(merged(40 * ROOT2, 40 * ROOT2), 20, replace_distance=ROOT2)
    assert stage.noise_multiplier == pytest.approx(40)
    assert epsilon(stage) == close(0.384692)
    assert epsilon(stage, neighbours=Neighbours.REPLACE_ONE) == close(0.561285)


def test_dpgm_redesign():
    stages = gaussian(40, 20, name="kmeans", replace_distance=ROOT2), sampled(0.0017, ROOT2 * merged(4, 1), 11_780)
    assert epsilon(*stages) == close(0.695378)
    assert epsilon(*stages, neighbours=Neighbours.REPLACE_ONE) == close(1.20414)


def test_fixed_size_batches_are_not_offered():
    """A subset sampled without replacement under add/remove has no account here: refused, not approximated."""
    event = dp_event.SampledWithoutReplacementDpEvent(100, 10, dp_event.GaussianDpEvent(1.0))
    with pytest.raises(Exception, match="Expected events"):
        account_curve([event], [DELTA])


def test_composed_inside_poisson_goes_to_rdp_and_never_to_pld():
    event = dp_event.PoissonSampledDpEvent(
        0.01, dp_event.ComposedDpEvent([dp_event.GaussianDpEvent(4.0), dp_event.GaussianDpEvent(1.0)])
    )
    assert account_curve([event], [DELTA])[0].accountant == "RdpAccountant"


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 3.0, 10.0])
def test_gaussian_agrees_with_the_exact_curve(multiplier):
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), μ = 1/multiplier: the account lies above it, and close."""
    mu = 1 / multiplier
    for delta in (1e-3, 1e-6):
        found = account_curve([dp_event.GaussianDpEvent(multiplier)], [delta])[0].epsilon
        exact = stats.norm.cdf(mu / 2 - found / mu) - np.exp(found) * stats.norm.cdf(-mu / 2 - found / mu)
        assert exact <= delta
        assert exact == pytest.approx(delta, rel=2e-3)


def test_more_noise_fewer_steps_and_smaller_samples_cost_less():
    base = epsilon(sampled(0.01, 1.0, 100))
    assert epsilon(sampled(0.01, 1.1, 100)) < base
    assert epsilon(sampled(0.01, 1.0, 90)) < base
    assert epsilon(sampled(0.009, 1.0, 100)) < base


def test_pld_is_not_above_rdp():
    for stages in ((gaussian(2.0),), (sampled(0.01, 1.0, 200),), p3gm(3)):
        assert epsilon(*stages) <= rdp(*stages) + 1e-3


def test_nothing_is_logged_of_orders_that_do_not_converge(caplog):
    """Hundreds of lines of the RDP accountant, in a fit with large samples; its other orders are bounds as well."""
    plan = Plan([Stage(name="s", noise_multiplier=2.0, sampling_probability=0.5, count=20)])
    assert account(plan, 1e-5).epsilon < 6
    assert not caplog.records
    logging.getLogger("absl").warning("anything else")
    assert caplog.records
