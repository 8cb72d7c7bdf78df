"""What the best attacker finds, held to computations that share no code with it."""

import math

import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from prv_accountant import PRVAccountant
from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from sfumato import Advantage, TruePositiveRate
from sfumato.errors import ConfigError
from sfumato.privacy import risk
from sfumato.privacy.plan import Neighbours, Plan, Stage, Subset
from sfumato.privacy.repetitions import Repetitions
from sfumato.privacy.risk import GaussianTradeOff, GridTradeOff, trade_off, trade_off_of_fits

RATES = (0.001, 0.01, 0.05, 0.3, 0.9)
SAMPLED = Plan([Stage(name="s", noise_multiplier=1.1, sampling_probability=0.01, count=1)])


def test_gaussian_releases_are_one_of_their_distances() -> None:
    plan = Plan([Stage(name="a", noise_multiplier=2.0, count=3), Stage(name="b", noise_multiplier=5.0)])
    mu = math.sqrt(3 / 4 + 1 / 25)
    curve = trade_off(plan)
    outcomes = np.linspace(-12, 12, 2_000_001)
    assert curve.advantage == pytest.approx(
        np.trapezoid(np.maximum(norm.pdf(outcomes, mu) - norm.pdf(outcomes), 0), outcomes), abs=1e-9
    )
    for rate in RATES:
        assert curve.true_positive_rate(rate) == pytest.approx(norm.sf(norm.isf(rate) - mu), abs=1e-12)


def test_replacing_goes_by_the_replace_distance() -> None:
    near = Plan([Stage(name="a", noise_multiplier=2.0, replace_distance=math.sqrt(2))])
    curve = trade_off(near, Neighbours.REPLACE_ONE)
    assert curve.true_positive_rate(0.05) == pytest.approx(norm.sf(norm.isf(0.05) - math.sqrt(2) / 2), abs=1e-12)
    assert curve.advantage > trade_off(near).advantage


def _one_sampled(q: float, sigma: float, fpr: float) -> float:
    """By Neyman and Pearson: reject where the mixture's outcome is largest; the mirrored test; and their hull."""
    thresholds = np.linspace(-10 * sigma, 10 * sigma + 1, 200_001)
    alone = norm.sf(thresholds, scale=sigma)
    mixed = (1 - q) * alone + q * norm.sf(thresholds, 1, sigma)
    lines = np.concatenate([np.stack([alone, mixed]), np.stack([1 - mixed, 1 - alone])], axis=1)
    least = minimize_scalar(lambda s: float((lines[1] - s * lines[0]).max()) + s * fpr, bounds=(0, 5), method="bounded")
    return float(least.fun)


def test_one_sampled_release_is_what_the_best_test_finds() -> None:
    curve = trade_off(SAMPLED)
    sigma, q = 1.1, 0.01
    assert curve.advantage == pytest.approx(q * (2 * norm.cdf(1 / (2 * sigma)) - 1), abs=1e-6)
    for rate in (0.05, 0.3):
        assert curve.true_positive_rate(rate) == pytest.approx(_one_sampled(q, sigma, rate), abs=1e-6)


def test_composed_samples_meet_an_accountant_of_others() -> None:
    """The numerical composition of Gopi, Lee and Wutschitz (2021), which is not that of `dp-accounting`."""
    plan = Plan([Stage(name="s", noise_multiplier=1.1, sampling_probability=0.01, count=300)])
    mechanism = PoissonSubsampledGaussianMechanism(sampling_probability=0.01, noise_multiplier=1.1)
    other = PRVAccountant(prvs=mechanism, eps_error=2e-3, delta_error=1e-10, max_self_compositions=300)
    curve = trade_off(plan)
    assert isinstance(curve, GridTradeOff)
    for delta in (1e-2, 1e-3):
        low, _, high = other.compute_epsilon(delta, [300])
        for epsilon, at_least in ((low, True), (high, False)):
            found = float(np.interp(epsilon, curve.epsilons, curve.deltas))
            assert (found >= delta * (1 - 1e-6)) if at_least else (found <= delta * (1 + 1e-6))


def test_a_grid_is_refined_until_figures_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan([Stage(name="s", noise_multiplier=20.0, sampling_probability=0.01, count=200)])
    settled = trade_off(plan)
    finer = risk._on_grid(plan, Neighbours.ADD_REMOVE, 2e-6)
    assert settled.advantage == pytest.approx(finer.advantage, abs=1e-6)
    assert settled.advantage >= finer.advantage  # rounded upwards


def test_a_subset_of_all_is_the_gaussian_release() -> None:
    whole = Plan([Stage(name="s", noise_multiplier=4.0, subset=Subset(50, 50))])
    curve = trade_off(whole)
    assert curve.advantage == pytest.approx(GaussianTradeOff(0.5).advantage, abs=1e-6)
    assert curve.true_positive_rate(0.05) == pytest.approx(GaussianTradeOff(0.5).true_positive_rate(0.05), abs=1e-6)


def test_an_additive_part_of_delta_is_added() -> None:
    plain, more = GaussianTradeOff(0.5), GaussianTradeOff(0.5, 1e-3)
    epsilons = np.linspace(0, 5, 200_001)
    deltas = norm.cdf(0.25 - 2 * (epsilons + math.log1p(-1e-3))) + 1e-3
    deltas -= np.exp(epsilons + math.log1p(-1e-3)) * norm.cdf(-0.25 - 2 * (epsilons + math.log1p(-1e-3)))
    grid = GridTradeOff(epsilons, deltas)
    assert more.advantage == pytest.approx(grid.advantage, abs=1e-6)
    for rate in RATES:
        assert more.true_positive_rate(rate) == pytest.approx(grid.true_positive_rate(rate), abs=1e-6)
        assert more.true_positive_rate(rate) > plain.true_positive_rate(rate)


def test_a_search_is_bounded_by_its_renyi_curve() -> None:
    plan = Plan(
        [
            Stage(name="a", noise_multiplier=4.0),
            Stage(name="b", noise_multiplier=9.0, repetitions=Repetitions(5.0)),
        ]
    )
    accountant = RdpAccountant()
    for event in plan.events():
        accountant.compose(event)
    epsilons = np.linspace(0, 3, 6001)
    deltas = np.array([accountant.get_delta(epsilon) for epsilon in epsilons])
    curve = trade_off(plan)
    assert curve.advantage == pytest.approx(
        (np.tanh(epsilons / 2) + 2 * deltas / (1 + np.exp(epsilons))).min(), abs=1e-6
    )
    direct = min((np.exp(epsilons) * 0.05 + deltas).min(), (1 - np.exp(-epsilons) * (0.95 - deltas)).min())
    assert curve.true_positive_rate(0.05) == pytest.approx(direct, abs=1e-6)
    assert curve.advantage >= trade_off(Plan(plan.stages[:1])).advantage
    assert trade_off(plan, Neighbours.REPLACE_ONE).advantage > curve.advantage


def test_replacing_in_a_search_of_samples_is_removing_and_adding() -> None:
    law = Repetitions(3.0)
    plan = Plan([Stage(name="b", noise_multiplier=3.0, sampling_probability=0.1, count=5, repetitions=law)])
    accountant = RdpAccountant()
    accountant.compose(plan.events()[0])
    epsilons = np.linspace(0, 3, 3001)
    deltas = np.array([(1 + math.exp(epsilon / 2)) * accountant.get_delta(epsilon / 2) for epsilon in epsilons])
    expected = (np.tanh(epsilons / 2) + 2 * deltas / (1 + np.exp(epsilons))).min()
    assert trade_off(plan, Neighbours.REPLACE_ONE).advantage == pytest.approx(expected, abs=1e-6)


def test_several_fits_compose() -> None:
    plan = Plan([Stage(name="a", noise_multiplier=4.0)])
    both = trade_off_of_fits([plan, plan], Neighbours.ADD_REMOVE)
    assert both.advantage == pytest.approx(GaussianTradeOff(math.sqrt(2) / 4).advantage, abs=1e-12)
    assert trade_off_of_fits([], Neighbours.ADD_REMOVE).advantage == 0


@pytest.mark.parametrize("curve", [GaussianTradeOff(0.7), trade_off(SAMPLED)])
def test_nobody_finds_fewer_than_a_coin(curve: risk.TradeOff) -> None:
    found = [curve.true_positive_rate(rate) for rate in RATES]
    assert found == sorted(found)
    assert all(rate <= share <= rate + curve.advantage + 1e-12 for rate, share in zip(RATES, found, strict=True))


def test_risks_are_checked() -> None:
    with pytest.raises(ConfigError, match="advantage"):
        Advantage(1.0)
    with pytest.raises(ConfigError, match="a coin"):
        TruePositiveRate(0.05, fpr=0.05)
