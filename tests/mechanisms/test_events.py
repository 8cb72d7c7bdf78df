"""A mechanism charges the event of the noise it draws on the bounds of what it has in hand, or is refused."""

from dataclasses import replace

import numpy as np
import pytest

from harness.cases import MECHANISMS, OPEN_KINDS, open_rows
from harness.privacy import FakeRecords, join
from sfumato.errors import LedgerError
from sfumato.fitting.domain_counts import DomainCounts
from sfumato.mechanisms.mixing import (
    FixedDegreeMixing,
    MixableRecords,
    MixtureSettings,
    PoissonMixing,
    SubsetMixing,
    noisy_mixtures,
)
from sfumato.mechanisms.noise import NoiseSource, SeededNoise
from sfumato.mechanisms.norms import noisy_norms_and_sum
from sfumato.mechanisms.queries import Noisy, noisy_second_moment, noisy_sum
from sfumato.mechanisms.unlisted_words import noisy_words
from sfumato.privacy.ledger import GaussianEvent, Ledger, Noised
from sfumato.privacy.plan import Plan, Stage, Subset
from sfumato.records.engine import Exact, reduce, tally

BOUND, MULTIPLIER = 3.0, 0.7
STAGES = (
    Stage(name="first", noise_multiplier=MULTIPLIER, replace_distance=1.5),
    Stage(name="second", noise_multiplier=2.1, replace_distance=1.5),
)


class NoDraw(NoiseSource):
    """A door behind which nothing may be asked for."""

    private, silent = True, False

    def _refuse(self, *_, **__):
        raise AssertionError("noise was drawn before the charge was taken")

    gaussian = rounded_gaussian = normals = bernoulli = poisson_samples = subsets = _refuse


def exact_of(value=(1.0, 2.0), **changed):
    facts = {"name": "s", "norm_bound": BOUND, "replace_distance": 1.5} | changed
    return Exact(np.array(value), **facts)


def a_sum(exact, *, ledger, stage, noise, scale=1.0, bound=None):
    """A mechanism as a stranger could write it: noise of m times a bound of his own, scaled."""
    noise_std = scale * ledger.plan[stage].noise_multiplier * (bound or exact.norm_bound)
    event = GaussianEvent.of(exact, noise_std)
    ledger.charge(stage, event)
    return Noisy(exact.open_in_mechanism() + noise.gaussian(2, event.noise_std), event.noise_std)


def test_a_right_mechanism_is_taken():
    ledger = Ledger(Plan(STAGES), None)
    for stage in STAGES:
        found = a_sum(exact_of(), ledger=ledger, stage=stage.name, noise=SeededNoise(0))
        assert found.noise_std == stage.noise_multiplier * BOUND
    ledger.close()


@pytest.mark.parametrize("wrong", [{"scale": 2 / 3}, {"scale": 3 / 2}, {"scale": 1 - 1e-9}, {"bound": BOUND / 2}])
def test_wrong_noise_is_refused_before_it_is_drawn(wrong):
    ledger = Ledger(Plan(STAGES), None)
    with pytest.raises(LedgerError, match="noise multiplier"):
        a_sum(exact_of(), ledger=ledger, stage="first", noise=NoDraw(), **wrong)
    assert not ledger.charged


def test_the_event_of_another_stage_is_refused():
    ledger = Ledger(Plan(STAGES), None)
    event = GaussianEvent.of(exact_of(), STAGES[1].noise_multiplier * BOUND)
    with pytest.raises(LedgerError, match="noise multiplier"):
        ledger.charge("first", event)
    with pytest.raises(LedgerError, match="next"):
        ledger.charge("second", event)
    assert not ledger.charged


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"parts": (Noised(MULTIPLIER, 1.0, 1.6),)}, "replace distance"),
        ({"parts": (Noised(MULTIPLIER, 1.0, 1.0), Noised(MULTIPLIER, 1.0, 1.0))}, "noise multiplier"),
        ({"sampling_probability": 0.1}, "chosen otherwise"),
        ({"subset": Subset(1, 10)}, "chosen otherwise"),
        ({"count": 2}, "so many"),
        ({"count": 0}, "so many"),
        ({"extra_delta": 1e-7}, "part of delta"),
    ],
)
def test_any_other_event_is_refused(changed, reason):
    ledger = Ledger(Plan(STAGES), None)
    event = GaussianEvent((Noised(MULTIPLIER, 1.0, 1.5),))
    with pytest.raises(LedgerError, match=reason):
        ledger.charge("first", replace(event, **changed))
    assert not ledger.charged
    ledger.charge("first", event)


def test_rounding_is_no_other_event():
    """Multipliers of all sizes, taken times a bound and divided by it again."""
    rng = np.random.default_rng(0)
    for multiplier, bound in np.exp(rng.uniform(-20, 20, (500, 2))):
        ledger = Ledger(Plan([Stage(name="s", noise_multiplier=multiplier)]), None)
        w0, w1 = np.sqrt(0.3), np.sqrt(0.7)
        parts = (Noised(multiplier * bound / w0, bound, bound), Noised(multiplier * bound / w1, bound, 2 * bound))
        ledger.charge("s", GaussianEvent(parts))
        ledger.close()


@pytest.mark.parametrize("numbers", [(0.0, 1.0, 1.0), (-1.0, 1.0, 1.0), (1.0, 0.0, 1.0), (float("nan"), 1.0, 1.0)])
def test_no_noise_and_no_bound_make_no_event(numbers):
    with pytest.raises(LedgerError):
        Noised(*numbers)


@pytest.mark.parametrize("probability", [None, 0.2])
def test_a_statistic_of_all_records_is_no_sample(probability):
    """Amplification charged and not done: the sum of all records, under a stage of samples, and the reverse."""
    other = None if probability else 0.2
    plan = Plan([Stage(name="s", noise_multiplier=1.0, sampling_probability=other)])
    sums = exact_of(sampling_probability=probability, step=2.0**-10 if probability is None else None)
    for release in (
        lambda ledger: noisy_sum(sums, stage="s", ledger=ledger, noise=NoDraw()),
        lambda ledger: noisy_norms_and_sum(
            np.zeros((1, 3)), np.zeros(2), share=0.1, stage="s", ledger=ledger, noise=NoDraw(),
            sampling_probability=probability,
        ),
    ):  # fmt: skip
        ledger = Ledger(plan, None)
        with pytest.raises(LedgerError, match="chosen otherwise"):
            release(ledger)
        assert not ledger.charged


def test_second_moments_of_all_records_are_no_sample():
    ledger = Ledger(Plan([Stage(name="s", noise_multiplier=1.0, sampling_probability=0.5)]), None)
    exact = Exact(np.eye(2, dtype=np.int64), name="m", norm_bound=1.0, replace_distance=1.4, step=2.0**-10)
    with pytest.raises(LedgerError, match="chosen otherwise"):
        noisy_second_moment(exact, stage="s", ledger=ledger, noise=NoDraw())


# What follows runs every mechanism under a plan of two stages, of units of three records. Bugs planted in how noise is
# computed have to end in the ledger's refusal: no noise is looked at here.


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_query_charges_the_event_of_its_plan(name):
    case = MECHANISMS[name]
    ledger = Ledger(Plan([Stage(name="a", noise_multiplier=1.3), Stage(name="b", noise_multiplier=0.4)]), None)
    exact = reduce(case.statistic.statistic, FakeRecords([case.statistic.pool[0]], max_rows_per_unit=3))
    for stage in ("a", "b"):
        case.run(exact, stage=stage, ledger=ledger, noise=SeededNoise(0))
    ledger.close()


def test_a_tally_of_words_charges_the_event_of_its_plan():
    counts = DomainCounts(OPEN_KINDS, 3)
    exact = tally(counts, FakeRecords([join(open_rows(20))], max_rows_per_unit=3))
    stage = Stage(name="s", noise_multiplier=1.3, extra_delta=1e-6)
    ledger = Ledger(Plan([stage]), None)
    noisy_words(exact, stage="s", ledger=ledger, noise=SeededNoise(0))
    ledger.close()


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("mixing", [PoissonMixing(), SubsetMixing(), FixedDegreeMixing()])
def test_mixing_charges_the_event_of_its_plan(mixing, share):
    facts = {"degree": 3, "n_mixtures": 40, "n_public": 20}
    ledger = Ledger(Plan([mixing.stage("s", **facts)]).scaled(1.7), None)
    records = MixableRecords(np.eye(20), np.ones((20, 2 if share else 0)), feature_norm=1.5, label_norm=0.6)
    settings = MixtureSettings(mixing=mixing, label_share=share, **facts)
    blocks = noisy_mixtures(records, settings, stage="s", ledger=ledger, noise=SeededNoise(0))
    ledger.close()
    assert sum(len(block.features) for block in blocks) == 40
