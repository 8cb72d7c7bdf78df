"""What a search costs: the golden value, the theorem by hand, the law of K, and a ledger that is charged first."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import BudgetExceededError, ConfigError, LedgerError, UnsupportedEventError
from sfumato.mechanisms.noise import SeededNoise
from sfumato.mechanisms.sampling import drawn_candidate, drawn_repetitions
from sfumato.privacy.accounting import account, account_curve, account_of_fits, recompute_epsilon, replacing_account
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate_form import event_to_dict, stage_from_dict
from sfumato.privacy.ledger import SearchLedger
from sfumato.privacy.plan import Neighbours, Plan, Stage, Subset
from sfumato.privacy.repetitions import Repetitions

DELTA = 1e-5
GEOMETRIC = Repetitions(10)
# orders of the Rényi accountant, fine and long enough for the bounds below
ORDERS = np.concatenate([np.arange(1.05, 11, 0.05), np.arange(11, 64), [128, 256, 512, 1024]])


def gaussian(multiplier, *, law=None, name="fit", **options):
    return Stage(name=name, noise_multiplier=multiplier, repetitions=law, **options)


def search(multiplier=10.0, law=GEOMETRIC, **options):
    return Plan([gaussian(20.0, name="score"), gaussian(multiplier, law=law, **options)])


def by_hand(rdp, law, delta):
    """Theorem 2 of arXiv:2110.03620 at every order; ε as Canonne, Kamath and Steinke (2020) convert."""
    curve = np.array([rdp(order) for order in ORDERS])
    other = np.min((1 - 1 / ORDERS) * curve + math.log(1 / law.gamma) / ORDERS)
    total = curve + (1 + law.shape) * other + math.log(law.mean) / (ORDERS - 1)
    epsilons = total + np.log1p(-1 / ORDERS) - np.log(delta * ORDERS) / (ORDERS - 1)
    return float(epsilons.min())


def test_the_golden_value():
    """P3GM's events, repeated 10 times on average by the geometric law."""
    stages = (
        gaussian(48.0893, law=GEOMETRIC, name="pca"),
        gaussian(74.7737 / math.sqrt(3), law=GEOMETRIC, name="em", count=20),
        gaussian(1.4, law=GEOMETRIC, name="sgd", sampling_probability=300 / 63_000, count=840),
    )
    assert account(Plan(stages), DELTA).epsilon == pytest.approx(1.41624, rel=1e-5)
    once = Plan(replace(stage, repetitions=None) for stage in stages)
    found = recompute_epsilon(once.events(), DELTA, accountant="RdpAccountant", value_discretization_interval=None)
    assert found == pytest.approx(0.647952, rel=1e-5)


@pytest.mark.parametrize(
    "law", [GEOMETRIC, Repetitions(3), Repetitions(30, 0), Repetitions(10, 0), Repetitions(7, 2.5)]
)
@pytest.mark.parametrize("multiplier", [1.5, 8.0])
def test_the_account_is_the_theorem(law, multiplier):
    found = account(Plan([gaussian(multiplier, law=law)]), DELTA)
    assert found.accountant == "RdpAccountant"
    expected = by_hand(lambda order: order / (2 * multiplier**2), law, DELTA)
    assert found.epsilon == pytest.approx(expected, rel=2e-3)


def test_a_score_that_is_bought_once_composes_with_the_search():
    alone = by_hand(lambda order: order / (2 * 10.0**2), GEOMETRIC, DELTA)
    found = account(search(), DELTA).epsilon
    assert alone < found < alone + account(Plan([gaussian(20.0)]), DELTA).epsilon


def test_the_order_of_costs():
    """A search costs more than one fit of its noise, less than a loop of as many, and more with more repetitions."""
    once = account(Plan([gaussian(10.0)]), DELTA).epsilon
    few, many = (account(Plan([gaussian(10.0, law=Repetitions(mean))]), DELTA).epsilon for mean in (5, 100))
    loop = account(Plan([gaussian(10.0, count=100)]), DELTA).epsilon
    assert once < few < many < loop


@pytest.mark.parametrize("law", [GEOMETRIC, Repetitions(5, 0)])
def test_calibration_meets_the_budget_closely(law):
    budget = PrivacyBudget(1.0, DELTA)
    plan = calibrate(search(law=law), budget)
    assert 0.9995 < account(plan, DELTA).epsilon <= 1
    assert plan.stages[0].noise_multiplier / plan.stages[1].noise_multiplier == pytest.approx(2)


def test_replacing_one_of_unsampled_releases_is_exact_in_renyi_dp():
    plan = Plan([gaussian(10.0, law=GEOMETRIC, replace_distance=math.sqrt(2))])
    distance = math.sqrt(2) / 10
    expected = by_hand(lambda order: order * distance**2 / 2, GEOMETRIC, DELTA)
    assert replacing_account(plan, DELTA).epsilon == pytest.approx(expected, rel=2e-3)


def test_replacing_one_of_samples_is_removing_and_adding():
    plan = Plan([gaussian(1.4, law=GEOMETRIC, sampling_probability=0.005, count=800)])
    found = replacing_account(plan, DELTA).epsilon
    one = account(plan, DELTA).epsilon
    assert 2 * one < found < 3 * one


def test_no_privacy_loss_distribution_of_a_search_is_claimed():
    with pytest.raises(UnsupportedEventError):
        account_curve(search().events(Neighbours.REPLACE_ONE), [DELTA], neighbours=Neighbours.REPLACE_ONE)
    with pytest.raises(UnsupportedEventError):
        account_of_fits([search(), search()], DELTA, Neighbours.REPLACE_ONE)


def test_searches_and_fits_compose():
    fit = Plan([gaussian(5.0)])
    both = account_of_fits([fit, search(), fit], DELTA, Neighbours.ADD_REMOVE)
    merged = Plan([gaussian(5.0, name="a", count=2), gaussian(20.0, name="score"), *search().parts[1]])
    assert both is not None
    assert both.epsilon == pytest.approx(account(merged, DELTA).epsilon, rel=1e-9)
    alone = account_of_fits([search()], DELTA, Neighbours.ADD_REMOVE)
    assert alone is not None
    assert alone.epsilon == pytest.approx(account(search(), DELTA).epsilon, rel=1e-9)


def test_events_survive_writing():
    for stage in search(law=Repetitions(7, 0.5)).stages:
        assert stage_from_dict(event_to_dict(stage)) == stage


def test_what_cannot_be_repeated_is_refused():
    with pytest.raises(ConfigError, match="repeated stage"):
        gaussian(1.0, law=GEOMETRIC, subset=Subset(10, 100))
    with pytest.raises(ConfigError, match="repeated stage"):
        gaussian(1.0, law=GEOMETRIC, extra_delta=1e-9)
    with pytest.raises(ConfigError, match="last stages"):
        Plan([gaussian(1.0, law=GEOMETRIC), gaussian(1.0, name="b")])
    with pytest.raises(ConfigError, match="last stages"):
        Plan([gaussian(1.0, law=GEOMETRIC), gaussian(1.0, name="b", law=Repetitions(5))])
    for mean, shape in ((0.5, 1), (math.inf, 1), (10, -0.5), (10, math.inf), (1e6, 1)):
        with pytest.raises(ConfigError):
            Repetitions(mean, shape)


@pytest.mark.parametrize("law", [GEOMETRIC, Repetitions(1), Repetitions(4, 0), Repetitions(50, 0), Repetitions(6, 3.5)])
def test_the_law_is_that_of_the_paper(law):
    k = np.arange(1, 4000)
    probabilities = np.array([law.probability(int(i)) for i in k[:400]])
    if law.shape == 1:
        assert 1 / law.gamma <= law.mean  # no more repetitions than are charged
        assert law.gamma == pytest.approx(1 / law.mean, rel=2e-9)
        assert probabilities == pytest.approx(stats.geom.pmf(k[:400], law.gamma), abs=1e-12)
    if law.shape == 0:
        assert probabilities == pytest.approx(stats.logser.pmf(k[:400], 1 - law.gamma), rel=1e-6)
    if law.shape == 3.5:
        full = stats.nbinom.pmf(k[:400], law.shape, law.gamma)
        assert probabilities == pytest.approx(full / -np.expm1(law.shape * np.log(law.gamma)), rel=1e-6, abs=1e-15)
    survived = 1.0
    for i, probability in enumerate(probabilities[:50], start=1):
        assert law.last(i) * survived == pytest.approx(probability, rel=1e-7, abs=1e-12)
        survived -= probability


@pytest.mark.parametrize("law", [Repetitions(4), Repetitions(4, 0), Repetitions(4, 3)])
def test_draws_follow_the_law_and_no_other(law):
    """A test of goodness of fit passes at this mean, and fails at ⅔ and at 3/2 of it."""
    noise = SeededNoise(5)
    draws = np.array([drawn_repetitions(law, noise) for _ in range(1500)])
    top = 15
    observed = np.bincount(np.minimum(draws, top), minlength=top + 1)[1:]

    def p_value(mean):
        other = Repetitions(mean, law.shape)
        shares = np.array([other.probability(k) for k in range(1, top)])
        expected = draws.size * np.append(shares, 1 - shares.sum())
        kept = expected >= 5
        pooled = [np.append(counts[kept], counts[~kept].sum()) for counts in (observed, expected)]
        if pooled[1][-1] == 0:
            pooled = [counts[:-1] for counts in pooled]
        return stats.chisquare(pooled[0], pooled[1]).pvalue

    assert draws.min() == 1
    assert p_value(4.0) > 1e-3
    assert p_value(4.0 * 2 / 3) < 1e-6
    assert p_value(4.0 * 3 / 2) < 1e-6


def test_candidates_are_drawn_uniformly():
    noise = SeededNoise(6)
    draws = np.bincount([drawn_candidate(3, noise) for _ in range(600)], minlength=3)
    assert stats.chisquare(draws).pvalue > 1e-3
    assert drawn_candidate(1, noise) == 0


def test_a_search_is_charged_before_its_first_repetition_and_ends_after_its_last():
    plan = search()
    ledger = SearchLedger([plan, plan], PrivacyBudget(2.0, DELTA))
    with pytest.raises(LedgerError):
        ledger.repetition(0)
    with pytest.raises(LedgerError):
        ledger.once()
    ledger.charge(2)
    with pytest.raises(LedgerError):
        ledger.charge(2)
    assert ledger.once().plan.stages == plan.parts[0]
    with pytest.raises(LedgerError):
        ledger.once()
    for candidate in (0, 1):
        with pytest.raises(LedgerError, match="before its last repetition"):
            ledger.close()
        assert ledger.repetition(candidate).plan.stages[0].noise_multiplier == 10.0
    with pytest.raises(LedgerError):
        ledger.repetition(0)
    ledger.close()


def test_a_search_beyond_its_budget_or_of_unlike_candidates_never_begins():
    with pytest.raises(BudgetExceededError):
        SearchLedger([search()], PrivacyBudget(0.1, DELTA))
    with pytest.raises(LedgerError):
        SearchLedger([search(), search(9.0)], PrivacyBudget(2.0, DELTA))
    with pytest.raises(LedgerError):
        SearchLedger([search(), search(law=Repetitions(5))], PrivacyBudget(2.0, DELTA))
    with pytest.raises(LedgerError):
        SearchLedger([Plan([gaussian(10.0)])], PrivacyBudget(2.0, DELTA))


class TestVerdicts:
    """A repetition is a fit and its verdicts: neither is charged without the other."""

    def ledger(self):
        fit, verdict = gaussian(200.0, law=GEOMETRIC), gaussian(300.0, law=GEOMETRIC, name="verdict")
        plan = Plan([gaussian(200.0, name="score"), fit, verdict])
        ledger = SearchLedger([plan], PrivacyBudget(1.0, DELTA), judged=1)
        ledger.charge(2)
        ledger.once()
        return ledger

    def test_fit_and_verdicts_have_ledgers_of_their_own(self):
        ledger = self.ledger()
        for _ in range(2):
            assert [stage.name for stage in ledger.repetition(0).plan.stages] == ["fit"]
            (stage,) = ledger.verdicts().plan.stages
            assert (stage.name, stage.repetitions) == ("verdict", None)
        ledger.close()

    def test_verdicts_are_handed_out_once_and_after_a_fit(self):
        ledger = self.ledger()
        with pytest.raises(LedgerError, match="no fit is open"):
            ledger.verdicts()
        ledger.repetition(0)
        ledger.verdicts()
        with pytest.raises(LedgerError, match="no fit is open"):
            ledger.verdicts()

    def test_a_fit_that_is_not_judged_ends_the_search(self):
        ledger = self.ledger()
        ledger.repetition(0)
        with pytest.raises(LedgerError, match="has not been judged"):
            ledger.repetition(0)
        ledger.verdicts()
        ledger.repetition(0)
        with pytest.raises(LedgerError, match="before its last fit has been judged"):
            ledger.close()

    def test_a_search_without_criteria_has_no_verdicts(self):
        ledger = SearchLedger([search(200.0)], PrivacyBudget(1.0, DELTA))
        ledger.charge(1)
        ledger.once()
        ledger.repetition(0)
        with pytest.raises(LedgerError, match="no fit is open"):
            ledger.verdicts()
        ledger.close()
