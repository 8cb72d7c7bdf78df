"""Every mechanism and statistic through the privacy harness."""

import pickle

import numpy as np
import pytest

from harness.cases import MECHANISMS, STATISTICS
from harness.privacy import (
    STAGE,
    FakeRecords,
    accept_only_unit_scale,
    check_distinguisher,
    check_empty,
    check_locality,
    check_noise_independent,
    check_noise_law,
    check_norm_property,
    free_coordinates,
    gaussian_delta,
    join,
    ledger_for,
    make_exact,
    search_neighbours,
    worst_neighbours,
)
from sfumato.errors import ConfigError, LedgerError
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.mechanisms.queries import noisy_second_moment, noisy_sum
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.engine import reduce


@pytest.mark.parametrize("name", STATISTICS)
def test_contribution_is_within_its_norm_bound(name):
    case = STATISTICS[name]
    if case.attained:
        check_norm_property(case)


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.parametrize("name", STATISTICS)
def test_adding_a_record_adds_its_contribution_only(name):
    check_locality(STATISTICS[name], np.random.default_rng(3))


@pytest.mark.parametrize("name", STATISTICS)
def test_no_records_give_zero(name):
    check_empty(STATISTICS[name])


@pytest.mark.parametrize("name", STATISTICS)
def test_no_pair_of_records_is_further_apart_than_claimed(name):
    search_neighbours(STATISTICS[name])


@pytest.mark.parametrize("name", STATISTICS)
def test_a_unit_of_m_records_multiplies_the_bound(name):
    case = STATISTICS[name]
    exact = reduce(case.statistic, FakeRecords([join(case.pool[:5])], max_rows_per_unit=5))
    together = np.linalg.norm(exact.open_in_mechanism())
    assert exact.norm_bound == 5 * case.statistic.norm_bound
    assert together <= exact.norm_bound


@pytest.mark.parametrize("name", MECHANISMS)
def test_noise_has_the_stated_law_and_no_other(name):
    check_noise_law(MECHANISMS[name])


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_middle_of_the_law_is_the_exact_value(name):
    """With a millionth of the bound as noise, and with none: a sum in other units than its noise would show."""
    case = MECHANISMS[name]
    exact = reduce(case.statistic.statistic, FakeRecords([join(case.statistic.pool[:20])]))
    true = exact.open_in_mechanism()
    noisy = case.run(exact, stage=STAGE, ledger=ledger_for(1e-6), noise=SeededNoise(2))
    np.testing.assert_allclose(noisy.value, true, rtol=0, atol=9 * noisy.noise_std)
    silent = case.run(exact, stage=STAGE, ledger=ledger_for(1e-6), noise=NoNoise())
    np.testing.assert_array_equal(silent.value, true)


@pytest.mark.parametrize("name", MECHANISMS)
def test_noise_is_independent_between_coordinates_and_releases(name):
    check_noise_independent(MECHANISMS[name])


ATTACKED = [
    "noisy_count",
    "noisy_histogram",
    "noisy_second_moment",
    "noisy_sum, mixture moments",
    "noisy_sum, cluster sums",
    "noise_share, second moments",
]


@pytest.mark.parametrize("name", ATTACKED)
def test_best_attack_on_worst_neighbours_stays_under_the_account(name):
    case = MECHANISMS[name]
    chunk, neighbour = worst_neighbours(case)
    arguments = {"noise_multiplier": 1.0, "delta_of": gaussian_delta(1.0), "runs": 1_000}
    check_distinguisher(case, chunk, neighbour, **arguments)
    with pytest.raises(AssertionError, match="beyond the account"):
        check_distinguisher(case, chunk, neighbour, noise_factor=0.4, **arguments)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKED)
def test_best_attack_with_many_runs(name):
    case = MECHANISMS[name]
    chunk, neighbour = worst_neighbours(case)
    arguments = {"noise_multiplier": 1.0, "delta_of": gaussian_delta(1.0), "runs": 100_000}
    check_distinguisher(case, chunk, neighbour, **arguments)
    with pytest.raises(AssertionError, match="beyond the account"):
        check_distinguisher(case, chunk, neighbour, noise_factor=0.85, **arguments)


class _Tattletale:
    """A noise source that notes whether the ledger had been charged when noise was drawn."""

    private, silent = True, False

    def __init__(self, ledger):
        self.ledger, self.charged_first = ledger, []

    def gaussian(self, shape, noise_std):
        self.charged_first.append(bool(self.ledger.charged))
        return np.zeros(shape)

    def rounded_gaussian(self, shape, noise_std, step):
        return self.gaussian(shape, noise_std).astype(np.int64)


@pytest.mark.parametrize("name", MECHANISMS)
def test_charge_comes_before_noise(name):
    case = MECHANISMS[name]
    ledger = ledger_for(2.0)
    noise = _Tattletale(ledger)
    case.run(
        reduce(case.statistic.statistic, FakeRecords([case.statistic.pool[0]])), stage=STAGE, ledger=ledger, noise=noise
    )
    assert noise.charged_first
    assert all(noise.charged_first)


@pytest.mark.parametrize("name", MECHANISMS)
def test_refused_charge_releases_nothing(name):
    case = MECHANISMS[name]
    ledger = ledger_for(2.0)
    exact = reduce(case.statistic.statistic, FakeRecords([case.statistic.pool[0]]))
    case.run(exact, stage=STAGE, ledger=ledger, noise=SeededNoise(0))
    with pytest.raises(LedgerError):
        case.run(exact, stage=STAGE, ledger=ledger, noise=SeededNoise(0))


def test_statistic_with_a_larger_replace_distance_than_planned_is_refused():
    stage = Stage(name=STAGE, noise_multiplier=1.0, replace_distance=1.4)
    with pytest.raises(LedgerError, match="replace distance"):
        noisy_sum(make_exact(np.zeros(3)), stage=STAGE, ledger=Ledger(Plan([stage]), None), noise=SeededNoise(0))


def test_no_noise_is_exact_and_says_so():
    noisy = noisy_sum(make_exact(np.arange(3.0)), stage=STAGE, ledger=ledger_for(1.0), noise=NoNoise())
    np.testing.assert_array_equal(noisy.value, np.arange(3.0))
    assert noisy.noise_std == 0


def test_second_moment_refuses_what_is_not_square_before_charging():
    ledger = ledger_for(1.0)
    with pytest.raises(ConfigError, match="square"):
        noisy_second_moment(make_exact(np.zeros((2, 3))), stage=STAGE, ledger=ledger, noise=SeededNoise(0))
    assert not ledger.charged


def test_a_large_matrix_gets_noise_of_its_own_in_every_entry():
    """It is made some rows at a time, in place: 300 rows are more than that."""
    exact = make_exact(np.diag(np.arange(300.0)))
    noisy = noisy_second_moment(exact, stage=STAGE, ledger=ledger_for(2.0), noise=SeededNoise(5))
    noise = noisy.value - np.diag(np.arange(300.0))
    drawn = free_coordinates(noise, noisy.noise_std, symmetric=True)
    accept_only_unit_scale(drawn)
    # of 45,150 draws on a grid of 2^-24 of the noise some twenty meet by chance
    assert drawn.size - np.unique(drawn).size < 100


def test_exact_shows_nothing():
    exact = make_exact(np.array([123456789.0]))
    for text in (repr(exact), str(exact), f"{exact}"):
        assert "123456789" not in text
    with pytest.raises(TypeError):
        pickle.dumps(exact)
    with pytest.raises(TypeError):
        np.asarray(exact, dtype=float)
    assert not hasattr(exact, "__dict__")
