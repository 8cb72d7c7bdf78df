"""Plans, calibration, ledger."""

import copy
import math

import pytest
from dp_accounting import gaussian_mechanism

from fixtures.costly import slow_after
from sfumato.errors import BudgetExceededError, ConfigError, LedgerError, PrivacyWarning
from sfumato.privacy.accounting import account, interval_for, least_delta
from sfumato.privacy.budget import PrivacyBudget, default_delta
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.ledger import GaussianEvent, Ledger, Noised
from sfumato.privacy.plan import Plan, Stage, Subset, multiplier_for_share


def stage(name="a", multiplier=2.0, **settings):
    return Stage(name=name, noise_multiplier=multiplier, **settings)


@pytest.mark.parametrize(
    "bad",
    [
        {"noise_multiplier": 0.0}, {"noise_multiplier": -1.0}, {"noise_multiplier": float("nan")},
        {"noise_multiplier": float("inf")}, {"noise_multiplier": "2"}, {"noise_multiplier": True},
        {"replace_distance": 0.9}, {"replace_distance": 2.1}, {"sampling_probability": 0.0},
        {"sampling_probability": 1.5}, {"sampling_probability": float("nan")}, {"count": 0}, {"count": 1.5},
    ],
)  # fmt: skip
def test_invalid_stages_are_refused_when_written(bad):
    with pytest.raises(ConfigError):
        Stage(**{"name": "a", "noise_multiplier": 1.0, **bad})


def test_a_plan_is_printed_as_a_table():
    plan = Plan([stage("a", 12.3456789, measures="counts"), stage("second moments", 2.0, count=3)])
    title, head, first, second = str(plan).split("\n")
    assert title == "Plan: stages of a fit, in order"
    assert first.split() == ["a", "Gaussian", "noise,", "all", "records", "12.346", "counts"]
    assert second.startswith("second moments  ")
    assert head.index("what is measured") == first.index("counts")


def test_plan_needs_stages_of_different_names():
    for stages in ([], [stage("a"), stage("a")]):
        with pytest.raises(ConfigError, match="different names"):
            Plan(stages)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), 101, "1", None, True])
def test_impossible_epsilon(epsilon):
    with pytest.raises(ConfigError, match="epsilon"):
        PrivacyBudget(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [0, 1, -1e-5, 2, float("nan"), "x", None])
def test_impossible_delta(delta):
    with pytest.raises(ConfigError, match="delta"):
        PrivacyBudget(1.0, delta)


def test_default_delta_is_well_below_one_over_n():
    assert default_delta(100) == pytest.approx(1e-3 * 0.01)
    assert default_delta(10**7) == pytest.approx(1e-8)
    for n in (1, 10, 10**4, 10**9):
        assert default_delta(n) <= 0.1 / n


def test_large_delta_warns():
    with pytest.warns(PrivacyWarning, match="1/n_public"):
        PrivacyBudget(1.0, 0.01).warn_if_delta_is_large(100)


@pytest.mark.parametrize(
    ("epsilon", "delta", "shares"),
    [
        (0.05, 1e-9, [1.0]),
        (0.3, 1e-3, [0.2, 0.8]),
        (1.0, 1e-5, [0.4, 0.6]),
        (4.0, 1e-6, [0.1, 0.2, 0.7]),
        (20.0, 1e-5, [1.0]),
    ],
)
def test_calibrated_noise_is_enough_and_hardly_more(epsilon, delta, shares):
    plan = Plan(stage(f"s{i}", multiplier_for_share(share)) for i, share in enumerate(shares))
    calibrated = calibrate(plan, PrivacyBudget(epsilon, delta))
    assert account(calibrated, delta).epsilon <= epsilon
    assert account(calibrated.scaled(1 - 2e-3), delta).epsilon > epsilon
    ratios = [c.noise_multiplier / p.noise_multiplier for c, p in zip(calibrated.stages, plan.stages, strict=True)]
    assert max(ratios) == pytest.approx(min(ratios))


@pytest.mark.slow
def test_calibration_of_a_sampled_plan():
    plan = Plan([stage("pca", 20.0), Stage(name="sgd", noise_multiplier=1.0, sampling_probability=0.01, count=100)])
    calibrated = calibrate(plan, PrivacyBudget(1.0, 1e-5))
    assert account(calibrated, 1e-5).epsilon <= 1.0
    assert account(calibrated.scaled(0.998), 1e-5).epsilon > 1.0


def test_interval_follows_the_finest_step():
    assert interval_for(Plan([stage()])) == 1e-4
    rare = Stage(name="rare", noise_multiplier=2.5, sampling_probability=6.4e-5, count=10)
    assert 5e-6 <= interval_for(Plan([rare])) < 1e-5


def ledger(*stages, budget=None):
    return Ledger(Plan(stages), budget)


def charge(book, name, multiplier=2.0, distance=2.0):
    book.charge(name, GaussianEvent((Noised(3 * multiplier, 3.0, 3 * distance),)))


def test_ledger_takes_the_plan_in_order_and_closes():
    book = ledger(stage("a", count=2), stage("b"))
    for name in ("a", "a", "b"):
        charge(book, name)
    book.close()
    assert book.charged == (("a", 2), ("b", 1))


@pytest.mark.parametrize(
    "sequence", [["b"], ["a", "a", "a"], ["a", "b"], ["c"], ["a", "a", "b", "b"], ["a", "a", "b", "a"]]
)
def test_ledger_refuses_anything_but_the_plan(sequence):
    book = ledger(stage("a", count=2), stage("b"))
    with pytest.raises(LedgerError):
        charge_all(book, sequence)


def charge_all(book, names):
    for name in names:
        charge(book, name)


@pytest.mark.parametrize("sequence", [[], ["a"], ["a", "a"]])
def test_ledger_does_not_close_before_the_plan_is_spent(sequence):
    book = ledger(stage("a", count=2), stage("b"))
    for name in sequence:
        charge(book, name)
    with pytest.raises(LedgerError, match="instead of the planned"):
        book.close()


def test_a_refused_charge_is_not_recorded():
    book = ledger(stage("a"), stage("b"))
    for wrong in ({"name": "b"}, {"name": "a", "multiplier": 1.9}):
        with pytest.raises(LedgerError):
            charge(book, **wrong)
    assert book.charged == ()


def test_a_closed_ledger_takes_nothing():
    book = ledger(stage("a"))
    charge(book, "a")
    book.close()
    with pytest.raises(LedgerError, match="closed"):
        charge(book, "a")


def test_a_plan_beyond_the_budget_is_refused_before_anything():
    with pytest.raises(BudgetExceededError, match="Nothing was released"):
        ledger(stage("a", 1.0), budget=PrivacyBudget(1.0, 1e-5))


def test_repeated_and_looped_events_cost_the_same():
    repeated = Plan([stage("a", 30.0, count=20)])
    looped = Plan([stage(f"a{i}", 30.0) for i in range(20)])
    assert account(repeated, 1e-5).epsilon == pytest.approx(account(looped, 1e-5).epsilon, rel=2e-3)


def test_plans_are_values():
    plan = Plan([stage("a"), stage("b")])
    assert plan == copy.deepcopy(plan)
    assert plan["b"].name == "b"
    with pytest.raises(KeyError):
        plan["c"]


@pytest.mark.parametrize(
    ("epsilon", "extra"), slow_after(4, [(1.0, 0.0), (1.0, 1e-9), (0.01, 0.0), (0.01, 1e-9), (20.0, 0.0), (20.0, 1e-9)])
)
def test_a_delta_that_rounding_hides_is_refused(epsilon, extra):
    """Below it noise was hundreds of times too large, and ε understated; at it, noise is what it should be."""
    plan = Plan([stage("a", 1.0, extra_delta=extra), stage("b", 2.0), stage("c", 7.0)])
    least = least_delta(plan)
    with pytest.raises(ConfigError, match="Use a larger delta"):
        calibrate(plan, PrivacyBudget(epsilon, 0.99 * least))
    assert (least - extra) < 1e-13
    calibrated = calibrate(plan, PrivacyBudget(epsilon, least))
    ratio = calibrated.stages[0].noise_multiplier / plan.stages[0].noise_multiplier
    merged = sum(s.noise_multiplier**-2.0 for s in plan.stages) ** -0.5
    exact = gaussian_mechanism.get_sigma_gaussian(epsilon + math.log1p(-extra), least - extra) / merged
    assert 1 - 1e-9 <= ratio / exact < 1.03


@pytest.mark.parametrize(
    "sampled",
    [
        {"subset": Subset(100, 10_000), "count": 100},
        {"sampling_probability": 0.01, "count": 10_000},
    ],
    ids=["subsets", "Poisson samples"],
)
def test_at_the_least_delta_many_steps_have_the_noise_they_need(sampled):
    """Each step of a subset leaves 1e-15 beyond its grid: with that left out of the account no noise was enough."""
    plan = Plan([Stage(name="steps", noise_multiplier=1.0, **sampled)])
    least = least_delta(plan)
    found = calibrate(plan, PrivacyBudget(1.0, least)).stages[0].noise_multiplier
    smaller = calibrate(plan, PrivacyBudget(1.0, 10 * least)).stages[0].noise_multiplier
    assert smaller < found < 1.2 * smaller
    with pytest.raises(ConfigError, match="Use a larger delta"):
        calibrate(plan, PrivacyBudget(1.0, 0.9 * least))


def test_what_is_spent_outside_the_events_is_named_first():
    with pytest.raises(ConfigError, match="spent outside the events"):
        calibrate(Plan([stage("words", 1.0, extra_delta=1e-6)]), PrivacyBudget(1.0, 1e-7))
