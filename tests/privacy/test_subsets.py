"""Uniform subsets without replacement under replace-one: golden values, and what the account may not do."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import ConfigError, LedgerError, ReleaseError, UnsupportedEventError
from sfumato.privacy.accounting import account, account_curve, rough_epsilon, rough_event
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate import Certificate, describe, issue
from sfumato.privacy.certificate_form import Protected
from sfumato.privacy.ledger import GaussianEvent, Ledger, Noised
from sfumato.privacy.plan import Neighbours, Plan, Stage, Subset
from sfumato.privacy.pld import subset_delta, subset_distribution

MILLION = 10**6


def drawn(size, source_size, z, count, **settings):
    """A release whose replace distance in units of the noise is 1/z."""
    subset = Subset(size, source_size)
    return Stage(name="mixtures", noise_multiplier=z, replace_distance=1.0, subset=subset, count=count, **settings)


def poisson(size, source_size, z, count):
    return Stage(name="mixtures", noise_multiplier=z, sampling_probability=size / source_size, count=count)


def epsilon(stage, delta, interval=1e-4):
    return account(Plan([stage]), delta, interval=interval).epsilon


def close(value):
    return pytest.approx(value, rel=1e-4)


def test_one_step():
    found = subset_delta(0.1, 1.5, np.array([0.05, 0.3, 0.8]))
    assert found == pytest.approx([0.04516436, 0.02210859, 0.00764759], abs=1e-8)


def test_one_step_is_the_curve_of_its_attained_pair():
    """Quadrature of (1 − γ)N(0) + γN(Δ) against N(0), which attains the bound."""
    y = np.linspace(-12, 14, 200_001)
    first = 0.9 * stats.norm.pdf(y) + 0.1 * stats.norm.pdf(y, 1.5)
    for level in (0.05, 0.3, 0.8):
        excess = np.maximum(first - np.exp(level) * stats.norm.pdf(y), 0)
        assert subset_delta(0.1, 1.5, np.array([level]))[0] == pytest.approx(np.trapezoid(excess, y), abs=1e-7)


@pytest.mark.parametrize(
    ("size", "z", "subset", "sampled", "renyi"),
    [
        pytest.param(1, 0.25, 14.3073, 14.2182, 30.2013, marks=pytest.mark.slow),
        (64, 0.5, 3.83314, 3.46502, 5.15997),
        (256, 0.7, 4.36782, 3.14028, 5.31965),
        pytest.param(1024, 1.0, 9.3521, 6.88486, 14.5255, marks=pytest.mark.slow),
    ],
)
def test_a_million_mixtures(size, z, subset, sampled, renyi):
    stage = drawn(size, MILLION, z, MILLION)
    assert epsilon(stage, 1e-6) == close(subset)
    assert epsilon(poisson(size, MILLION, z, MILLION), 1e-6) == close(sampled)
    # by other orders than those of the reference, so no less tight than it
    assert subset < rough_epsilon([rough_event(stage, Neighbours.REPLACE_ONE)], 1e-6) < 1.01 * renyi


@pytest.mark.parametrize(
    ("size", "z", "subset", "sampled"),
    [(64, 0.5, 12.9785, 10.4714), (64, 1, 1.69931, 1.28618), (128, 1, 3.71815, 2.79519)],
)
def test_sixty_thousand_mixtures(size, z, subset, sampled):
    delta = 1 / 60_000
    assert epsilon(drawn(size, 60_000, z, 60_000), delta) == close(subset)
    assert epsilon(poisson(size, 60_000, z, 60_000), delta) == close(sampled)


@pytest.mark.parametrize(("interval", "expected"), [(1e-3, 3.89226), (1e-4, 3.83314), (2e-5, 3.83211)])
def test_finer_grids(interval, expected):
    assert epsilon(drawn(64, MILLION, 0.5, MILLION), 1e-6, interval) == close(expected)


def test_batches_of_fixed_size():
    stage = Stage(name="sgd", noise_multiplier=1.4, subset=Subset(300, 63_000), count=840)
    assert epsilon(stage, 1e-5) == close(2.49178)


@pytest.mark.slow
def test_one_record_without_noise_to_speak_of_is_bracketed():
    """At Δ = 5 the truth lies between the Poisson pair, which attains one step, and the account."""
    assert epsilon(poisson(1, MILLION, 0.2, MILLION), 1e-6) == pytest.approx(35.36, abs=0.01)
    assert epsilon(drawn(1, MILLION, 0.2, MILLION), 1e-6) == pytest.approx(35.73, abs=0.01)


def test_fixed_degree_is_one_gaussian():
    stage = Stage(name="mixtures", noise_multiplier=4 / np.sqrt(64))
    assert epsilon(stage, 1 / 60_000) == close(9.76053)


@pytest.mark.parametrize(("share", "distance"), [(1e-4, 2.0), (0.1, 1.5), (0.5, 0.1), (1.0, 1.0)])
def test_the_distribution_is_one_and_lies_above_the_curve(share, distance):
    found = subset_distribution(share, distance, 1e-3)
    levels = np.array([0.0, 0.00045, 0.1, 0.5123, 0.8])
    deltas = np.array([found.get_delta_for_epsilon(level) for level in levels])
    exact = subset_delta(share, distance, levels)
    assert (deltas >= exact - 1e-12).all()
    on_grid = [0, 2, 4]
    assert deltas[on_grid] == pytest.approx(exact[on_grid], rel=1e-6, abs=1e-12)
    assert found.get_delta_for_epsilon(-0.3) == pytest.approx(
        1 - np.exp(-0.3) + np.exp(-0.3) * subset_delta(share, distance, np.array([0.3]))[0], abs=1e-4
    )


def test_the_whole_is_a_gaussian():
    whole = epsilon(drawn(10, 10, 2.0, 1), 1e-5)
    assert whole == pytest.approx(account(Plan([Stage(name="g", noise_multiplier=2.0)]), 1e-5).epsilon, rel=1e-3)


def test_never_below_the_poisson_sample_and_monotone():
    base = epsilon(drawn(10, 1000, 1.0, 100), 1e-5)
    assert base >= epsilon(poisson(10, 1000, 1.0, 100), 1e-5)
    assert base > epsilon(drawn(10, 1000, 1.1, 100), 1e-5)
    assert base > epsilon(drawn(9, 1000, 1.0, 100), 1e-5)
    assert base > epsilon(drawn(10, 1000, 1.0, 90), 1e-5)


def test_composed_with_other_stages():
    stages = [drawn(10, 1000, 1.0, 100), Stage(name="count", noise_multiplier=20.0)]
    alone = [account(Plan([s]), 1e-5, neighbours=Neighbours.REPLACE_ONE).epsilon for s in stages]
    assert max(alone) < account(Plan(stages), 1e-5).epsilon < sum(alone)


def test_add_remove_is_not_offered():
    plan = Plan([drawn(10, 1000, 1.0, 100)])
    assert plan.neighbours is Neighbours.REPLACE_ONE
    with pytest.raises(UnsupportedEventError, match="replace-one"):
        plan.events()
    with pytest.raises(UnsupportedEventError):
        account(plan, 1e-5, neighbours=Neighbours.ADD_REMOVE)
    with pytest.raises(UnsupportedEventError, match="Expected events"):
        account_curve(plan.events(Neighbours.REPLACE_ONE), [1e-5])


@pytest.mark.parametrize("sizes", [(0, 5), (6, 5), (1.5, 5), (1, 0)])
def test_impossible_subsets(sizes):
    with pytest.raises(ConfigError):
        Subset(*sizes)


def test_a_stage_is_a_sample_or_a_subset():
    with pytest.raises(ConfigError, match="both"):
        drawn(1, 5, 1.0, 1, sampling_probability=0.2)


def test_calibrated():
    budget = PrivacyBudget(3.0, 1e-5)
    plan = calibrate(Plan([drawn(64, 60_000, 1.0, 60_000)]), budget)
    assert account(plan, 1e-5).epsilon <= 3.0
    assert account(plan.scaled(0.998), 1e-5).epsilon > 3.0
    Ledger(plan, budget)


def certificate(plan):
    return issue(
        describe(
            plan=plan, budget=PrivacyBudget(2.0, 1e-5), method="m", unit=Protected(name="row", max_rows=1),
            n_public=1000, n_public_source="declared",
        ),
        private=True,
    )  # fmt: skip


def test_certificate_is_computed_again():
    plan = Plan([drawn(10, 1000, 1.0, 100), Stage(name="count", noise_multiplier=20.0)])
    found = Certificate.from_dict(json.loads(json.dumps(certificate(plan).to_dict())))
    assert found.content["neighbours"] == "replace_one"
    assert found.epsilon == found.content["replace_one"]["epsilon"] == account(plan, 1e-5).epsilon
    assert found.recompute() == pytest.approx(found.epsilon, abs=1e-9)
    assert "replace one row" in repr(found)
    found.verify()
    with pytest.raises(UnsupportedEventError):
        found.recompute(Neighbours.ADD_REMOVE)


@pytest.mark.parametrize(
    "change", [{"subset_size": 0}, {"subset_size": 2000}, {"source_size": "x"}, {"type": "gaussian"}, {"type": "x"}]
)
def test_a_malformed_subset_is_refused(change):
    content = copy.deepcopy(certificate(Plan([drawn(10, 1000, 1.0, 100)])).to_dict())
    content["events"][0].update(change)
    with pytest.raises(ReleaseError):
        Certificate.from_dict(content)


def test_a_certificate_of_subsets_may_not_state_add_remove():
    content = copy.deepcopy(certificate(Plan([drawn(10, 1000, 1.0, 100)])).to_dict())
    content["neighbours"] = "add_remove"
    with pytest.raises(ReleaseError, match="neighbours"):
        Certificate.from_dict(content)


def test_many_events_are_charged_at_once_and_no_more_than_planned():
    plan = Plan([drawn(10, 1000, 1.0, 100)])
    shown: list[str] = []
    ledger = Ledger(plan, None, shown.append)
    event = GaussianEvent((Noised(1.0, 1.0, 1.0),), subset=Subset(10, 1000))
    with pytest.raises(LedgerError, match="so many"):
        ledger.charge("mixtures", replace(event, count=101))
    ledger.charge("mixtures", replace(event, count=60))
    with pytest.raises(LedgerError, match="so many"):
        ledger.charge("mixtures", replace(event, count=41))
    ledger.charge("mixtures", replace(event, count=40))
    ledger.close()
    assert shown == ["mixtures"] * 2
