"""Privacy-loss distributions of a whole grid at once, held to the library's."""

import math

import numpy as np
import pytest
import scipy.stats
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.pld_pmf import DensePLDPmf
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution, from_gaussian_mechanism, identity
from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant
from scipy.special import log_ndtr

from sfumato.privacy.pld import (
    COMPOSITION_ROUNDING,
    STEP_ROUNDING,
    GridPLDAccountant,
    divergences,
    gaussian_distribution,
    merged_gaussians,
    self_composed,
)

RELATIONS = (NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE)
RELEASES = [(1.0, 1.0), (0.3, 1.0), (40.0, 1.0), (1.0, 0.01), (0.4, 0.3), (0.05, 1e-3), (7.0, 1e-4), (3.0, 0.999)]


@pytest.mark.parametrize("adjacency", list(AdjacencyType))
@pytest.mark.parametrize(("z", "q"), RELEASES)
def test_divergences(z, q, adjacency):
    """Also where the record does not tell, at ±log(1 − q), and at losses that no outcome has."""
    loss = GaussianPrivacyLoss(z, sampling_prob=q, adjacency_type=adjacency)
    edge = math.log1p(-q) if q < 1 else -1.0
    epsilons = np.concatenate(
        [
            np.linspace(-20, 20, 4001),
            edge * np.array([-2, -1 - 1e-3, -1 + 1e-3, 0, 1 - 1e-3, 1 + 1e-3]),
            [1e-12, -1e-12],
        ]
    )
    assert divergences(loss, epsilons) == pytest.approx(loss.get_delta_for_epsilon(epsilons), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("z", "q"), RELEASES[:5])
def test_distribution(z, q, relation):
    """The same grid, the same masses."""
    ours = gaussian_distribution(z, q, 1e-3, relation)
    theirs = from_gaussian_mechanism(
        z, sampling_prob=q, value_discretization_interval=1e-3, neighboring_relation=relation
    )
    for a, b in ((ours._pmf_remove, theirs._pmf_remove), (ours._pmf_add, theirs._pmf_add)):
        a, b = a.to_dense_pmf(), b.to_dense_pmf()
        assert a._lower_loss == b._lower_loss
        assert a._infinity_mass == pytest.approx(b._infinity_mass, abs=1e-16)
        np.testing.assert_allclose(a._probs, b._probs, atol=1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
def test_compositions(relation):
    """A plan of all kinds, at large and small δ."""
    events = [
        dp_event.GaussianDpEvent(3.0),
        dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(20.0), 7),
        dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(0.02, dp_event.GaussianDpEvent(1.1)), 300),
        dp_event.PoissonSampledDpEvent(0.0, dp_event.GaussianDpEvent(1.0)),
        dp_event.NoOpDpEvent(),
    ]
    ours, theirs = GridPLDAccountant(relation, 1e-3), PLDAccountant(relation, 1e-3)
    for event in events:
        ours.compose(event)
        theirs.compose(event)
    composed = identity(1e-3)
    for z, q, count in ((3.0, 1.0, 1), (20.0 / math.sqrt(7), 1.0, 1), (1.1, 0.02, 300)):
        step = from_gaussian_mechanism(
            z, sampling_prob=q, value_discretization_interval=1e-3, neighboring_relation=relation
        )
        composed = composed.compose(self_composed(step, count))
    # the library composes equal steps in 64 bits, whose last ones depend on the processor
    for delta, tolerance in ((0.1, 1e-8), (1e-5, 1e-8), (1e-9, 1e-5)):
        found = ours.get_epsilon(delta + 3 * COMPOSITION_ROUNDING)
        assert found == pytest.approx(theirs.get_epsilon(delta), rel=tolerance)
        assert found == pytest.approx(composed.get_epsilon_for_delta(delta), rel=1e-8)


def _gaussian_delta(distance, epsilon):
    """Return δ of N(Δ, 1) against N(0, 1), to ten digits also where it is tiny."""
    above, below = log_ndtr(distance / 2 - epsilon / distance), log_ndtr(-distance / 2 - epsilon / distance)
    return math.exp(above) * -math.expm1(epsilon + below - above)


@pytest.mark.parametrize("interval", [1e-4, 1e-3])
def test_no_small_delta_is_understated(interval):
    """Composing a few points in 64 bits missed δ by 2e-18: at δ = 1e-20 by two hundred times δ."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        noise = np.exp(rng.uniform(np.log(300), np.log(20_000), rng.integers(2, 5)))
        accountant = GridPLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, interval)
        for z in noise:
            accountant.compose(dp_event.GaussianDpEvent(float(z)))
        distance = float(np.sqrt(np.sum(noise**-2.0)))
        for delta in 10.0 ** np.array([-9, -12, -13, -14, -15, -17, -20, -30, -40]):
            epsilon = accountant.get_epsilon(delta)
            assert epsilon == math.inf or _gaussian_delta(distance, epsilon) <= delta


@pytest.mark.parametrize("count", [1, 2, 300, 30_000, 1_000_000])
@pytest.mark.parametrize("share", [2**-2, 2**-10])
def test_many_steps_are_composed_exactly(count, share):
    """Of losses −h and 2h the sum is binomial: never below it, nor above it by much more than rounding."""
    interval, delta = 1e-3, 1e-9
    step = DensePLDPmf(interval, -1, np.array([1 - share, 0.0, 0.0, share]), 0.0, pessimistic_estimate=True)
    found = self_composed(PrivacyLossDistribution(step), count)
    hits = np.arange(count + 1)
    losses = interval * (3 * hits - count)
    masses = scipy.stats.binom.pmf(hits, count, share)
    for epsilon in np.linspace(*np.interp([1e-3, delta], np.cumsum(masses[::-1]), losses[::-1]), 5):
        above = losses > epsilon
        exact = float(-np.expm1(epsilon - losses[above]) @ masses[above])
        excess = found.get_delta_for_epsilon(epsilon) - exact
        assert -1e-9 * exact <= excess <= 1e-9 * exact + 3e-15 + 2 * count * STEP_ROUNDING


@pytest.mark.parametrize("relation", RELATIONS)
def test_nothing_is_understated_by_rounding(relation):
    """A release in T parts is T Gaussian releases of √T times the noise."""
    count, interval = 100_000, 1e-4
    parts = gaussian_distribution(2.0 * math.sqrt(count), 1.0, interval, relation)
    for delta in (1e-6, 1e-10):
        whole = gaussian_distribution(2.0, 1.0, interval, relation).get_epsilon_for_delta(delta)
        assert whole <= self_composed(parts, count).get_epsilon_for_delta(delta)


def test_many_steps_of_small_samples():
    """Three hundred thousand steps add up what rounding does to one."""
    z, q, interval, count, delta = 0.6440574096322967, 8.063844317275808e-08, 1.1e-3, 294_001, 2.9e-10
    ours = gaussian_distribution(z, q, interval, NeighboringRelation.ADD_OR_REMOVE_ONE)
    theirs = from_gaussian_mechanism(z, sampling_prob=q, value_discretization_interval=interval)
    found, expected = (d.self_compose(count).get_epsilon_for_delta(delta) for d in (ours, theirs))
    assert found == pytest.approx(expected, rel=1e-10)


def test_ten_million_steps_take_no_longer():
    """The library raises the number of points to the power of the number of steps: minutes."""
    step = dp_event.PoissonSampledDpEvent(1e-6, dp_event.GaussianDpEvent(2.0))
    accountant = GridPLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-4)
    accountant.compose(dp_event.SelfComposedDpEvent(step, 10**7))
    renyi = RdpAccountant()
    renyi.compose(dp_event.SelfComposedDpEvent(step, 10**7))
    assert 0 < accountant.get_epsilon(1e-6) <= 1.02 * renyi.get_epsilon(1e-6)


def test_another_relation():
    with pytest.raises(ValueError, match="add/remove or replace-one"):
        gaussian_distribution(1.0, 1.0, 1e-3, "REPLACE_ONE")


@pytest.mark.parametrize(
    "event",
    [
        dp_event.GaussianDpEvent(0.0),
        dp_event.PoissonSampledDpEvent(0.5, dp_event.GaussianDpEvent(0.0)),
        dp_event.NonPrivateDpEvent(),
    ],
)
def test_no_noise_is_no_privacy(event):
    accountant = GridPLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(event)
    assert accountant.get_epsilon(1e-5) == math.inf


@pytest.mark.parametrize("relation", RELATIONS)
def test_unsampled_gaussians_are_one(relation):
    """Events with counts, among others, cost what the library says of them one after the other, and no more."""
    sampled = dp_event.SelfComposedDpEvent(dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(2.0)), 5)
    events = [
        dp_event.GaussianDpEvent(3.0), sampled, dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(9.0), 7),
        dp_event.GaussianDpEvent(4.0),
    ]  # fmt: skip
    merged = merged_gaussians(events)
    assert merged[0] == sampled
    assert merged[1].noise_multiplier == pytest.approx((1 / 9 + 7 / 81 + 1 / 16) ** -0.5, rel=1e-12)
    assert len(merged) == 2
    accountants = [PLDAccountant(relation, 1e-3), PLDAccountant(relation, 1e-3)]
    for accountant, composed in zip(accountants, (events, merged), strict=True):
        accountant.compose(dp_event.ComposedDpEvent(composed))
    apart, together = (accountant.get_epsilon(1e-6) for accountant in accountants)
    assert together == pytest.approx(apart, rel=1e-3)
    assert merged_gaussians([sampled]) == [sampled]
    assert merged_gaussians([dp_event.GaussianDpEvent(0.0)]) == [dp_event.GaussianDpEvent(0.0)]
