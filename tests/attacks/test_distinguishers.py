"""The best attacks on worst-case neighbours, on every mechanism: none beats the account; with less noise each does.

Neighbours are a lone record and none, the attacker's likelihood ratio is exact, and its errors are bounded by Clopper
and Pearson (`harness.privacy.compare_samples`). False alarms: at most 1e-6 each.
"""

import math

import numpy as np
import pytest
from scipy import stats

from harness.cases import MECHANISMS
from harness.privacy import (
    STAGE,
    FakeRecords,
    check_distinguisher,
    compare_samples,
    gaussian_delta,
    worst_neighbours,
)
from sfumato.fitting.discovery import DomainCounts
from sfumato.mechanisms import mixing, norms, queries
from sfumato.mechanisms import unlisted_words as thresholds
from sfumato.mechanisms.mixing import MixableRecords, MixtureSettings, PoissonMixing, SubsetMixing, noisy_mixtures
from sfumato.mechanisms.noise import SeededNoise
from sfumato.mechanisms.noise_shares import noise_share
from sfumato.mechanisms.unlisted_words import noisy_words, threshold_of
from sfumato.privacy.accounting import fresh_accountant
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Neighbours, Plan, Stage
from sfumato.records.engine import tally

pytestmark = [pytest.mark.audit, pytest.mark.slow]

ATTACKED_HERE = {"noisy_mixtures", "noisy_words"}
BEYOND = "beyond the account"


def delta_of(plan: Plan):
    """δ(ε) of the plan's events, under its own relation."""
    accountant = fresh_accountant(plan.neighbours, 1e-3)
    for event in plan.events(plan.neighbours):
        accountant.compose(event)
    return lambda epsilon: float(accountant.get_delta(epsilon))


def log_ratio(values, shift, q=1.0):
    """Of N(shift, 1) with probability q against N(0, 1), summed over the last axis."""
    return np.log1p(q * np.expm1(shift * values - shift**2 / 2)).sum(axis=-1)


@pytest.mark.parametrize("name", MECHANISMS)
def test_sums(name):
    case = MECHANISMS[name]
    chunk, neighbour = worst_neighbours(case)
    arguments = {"noise_multiplier": 1.0, "delta_of": gaussian_delta(1.0), "runs": 1_500}
    check_distinguisher(case, chunk, neighbour, **arguments)
    with pytest.raises(AssertionError, match=BEYOND):
        check_distinguisher(case, chunk, neighbour, noise_factor=0.4, **arguments)


def test_every_mechanism_is_attacked():
    homes = (queries, mixing, norms, thresholds)
    public = {name for home in homes for name in vars(home) if name.startswith("noisy_")} | {noise_share.__name__}
    through_sums = {"noisy_norms_and_sum"}  # `noisy_sum` of the joint statistic: "norms and clipped sum"
    assert "noisy_sum, norms and clipped sum" in MECHANISMS
    assert public == ATTACKED_HERE | through_sums | {name.partition(",")[0] for name in MECHANISMS}


def descent_steps(source, q, steps, noise):
    """What a descent releases of one record whose gradient is clipped, or of none: one number per step."""
    torch = pytest.importorskip("torch", reason="networks need the extra nets")
    from sfumato.methods.nets import sgd
    from sfumato.methods.nets.gradients import LossGradients

    class Line:
        dimension = 1

        def encode(self, rows):
            return rows["x"]

    network = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))
    task = LossGradients(network, lambda x, _: 1e3 * network(x).sum(1))
    seen = []
    original = sgd.noisy_sum
    with pytest.MonkeyPatch.context() as patch:

        def watched(exact, **options):
            noisy = original(exact, **options)
            seen.append(float(noisy.value[0]) / noisy.noise_std)
            return noisy

        patch.setattr(sgd, "noisy_sum", watched)
        ledger = Ledger(Plan([Stage(name=STAGE, noise_multiplier=1.0, sampling_probability=q, count=steps)]), None)
        sgd.descend(task, source, Line(), sgd.Descent(), stage=STAGE, ledger=ledger, noise=noise, n_public=10)
        ledger.close()
    return seen


@pytest.mark.parametrize("charged", [0.3, 0.1], ids=["as charged", "three times as often as charged"])
def test_sampled_gradients(charged):
    q, steps, runs = 0.3, 5, 1_200
    lone, none = FakeRecords([{"x": np.ones((1, 1))}]), FakeRecords([{"x": np.zeros((0, 1))}])
    samples = [
        log_ratio(np.array([descent_steps(source, q, steps, SeededNoise(2 * i + side)) for i in range(runs)]), 1.0, q)
        for side, source in enumerate((lone, none))
    ]
    stage = Stage(name=STAGE, noise_multiplier=1.0, sampling_probability=charged, count=steps)
    if charged == q:
        compare_samples(*samples, delta_of(Plan([stage])))
    else:
        with pytest.raises(AssertionError, match=BEYOND):
            compare_samples(*samples, delta_of(Plan([stage])))


def mixtures(settings, rows, multiplier, noise):
    """The first feature of every mixture in units of its noise."""
    facts = {"degree": settings.degree, "n_mixtures": settings.n_mixtures, "n_public": settings.n_public}
    plan = Plan([settings.mixing.stage(STAGE, **facts)]).scaled(multiplier)
    records = MixableRecords(rows, np.zeros((len(rows), 0)), feature_norm=1.0, label_norm=1.0)
    blocks = noisy_mixtures(records, settings, stage=STAGE, ledger=Ledger(plan, None), noise=noise)
    std = settings.noise_stds(plan[STAGE], 1.0, 1.0)[0]
    return np.concatenate([block.features for block in blocks]) / std, plan


@pytest.mark.parametrize("wrong", [False, True], ids=["as charged", "with half the noise"])
def test_poisson_mixtures(wrong):
    settings = MixtureSettings(mixing=PoissonMixing(), degree=4, n_mixtures=20, n_public=20, label_share=0.0)
    multiplier, runs = 1.0, 20_000
    samples = []
    for side, rows in enumerate((np.array([[5.0]]), np.zeros((0, 1)))):
        noise, found = SeededNoise(side), []
        for _ in range(runs // 10):
            values, plan = mixtures(settings, rows, multiplier / (2 if wrong else 1), noise)
            found.append(values[:, 0])
        samples.append(log_ratio(np.array(found), 2.0 if wrong else 1.0, 4 / 20))
    charged = delta_of(plan.scaled(2.0 if wrong else 1.0))
    if not wrong:
        compare_samples(*samples, charged)
    else:
        with pytest.raises(AssertionError, match=BEYOND):
            compare_samples(*samples, charged)


@pytest.mark.parametrize("wrong", [False, True], ids=["as charged", "charged as Poisson samples under add/remove"])
def test_subsets_of_replaced_records(wrong):
    """Two records, subsets of one: the other record is known, and each mixture shows which one it is of."""
    n, steps, multiplier, runs = 2, 12, 2.0, 4_000
    settings = MixtureSettings(mixing=SubsetMixing(), degree=1, n_mixtures=steps, n_public=n, label_share=0.0)
    samples = []
    for side, mine in enumerate(([9.0, 0.0], [0.0, 9.0])):
        noise, found = SeededNoise(side), []
        rows = np.array([mine, [0.0, 0.0]])
        for _ in range(runs):
            values, plan = mixtures(settings, rows, multiplier, noise)
            found.append(values)
        values = np.array(found)
        shift = 1 / multiplier
        first, second = (np.log1p(0.5 * np.expm1(shift * values[..., j] - shift**2 / 2)) for j in (0, 1))
        samples.append((first - second).sum(axis=-1))
    own = delta_of(plan)
    assert plan.neighbours is Neighbours.REPLACE_ONE
    if not wrong:
        compare_samples(*samples, own)
    else:
        less = Stage(name=STAGE, noise_multiplier=4 * multiplier, sampling_probability=0.5, count=steps)
        with pytest.raises(AssertionError, match=BEYOND):
            compare_samples(*samples, delta_of(Plan([less])))


@pytest.mark.parametrize("wrong", [False, True], ids=["as charged", "with half the threshold"])
def test_words_that_nobody_listed(monkeypatch, wrong):
    """A lone record with a word of its own: shown, it tells; else what it adds to a listed cell may."""
    runs, p, multiplier = 6_000, 0.02, 2.0
    counts = DomainCounts({"age": "integer", "city": "categorical"})
    stage = Stage(name=STAGE, noise_multiplier=multiplier, extra_delta=p)
    if wrong:
        monkeypatch.setattr(thresholds, "threshold_of", lambda *a, **k: threshold_of(*a, **k) / 2)
    lone = {"age": np.array([3.0]), "city": np.array(["Xanthippe"], dtype=object)}
    none = {"age": np.zeros(0), "city": np.zeros(0, dtype=object)}
    exacts = [tally(counts, FakeRecords([rows])) for rows in (lone, none)]
    cell = int(np.argmax(exacts[0].whole_in_mechanism().listed))
    samples = []
    for side, exact in enumerate(exacts):
        noise, found = SeededNoise(side), []
        for _ in range(runs):
            noisy = noisy_words(exact, stage=STAGE, ledger=Ledger(Plan([stage]), None), noise=noise)
            found.append(np.inf if noisy.words["city"] else float(noisy.listed.value[cell]))
        samples.append(np.array(found))
    inner = gaussian_delta(multiplier)

    def charged(epsilon):
        return p + inner(epsilon + math.log1p(-p))

    finite = [np.where(np.isinf(sample), 1e6, sample) for sample in samples]
    if not wrong:
        compare_samples(*finite, charged)
        assert stats.binomtest(int(np.isinf(samples[0]).sum()), runs, p).pvalue > 1e-7
    else:
        with pytest.raises(AssertionError, match=BEYOND):
            compare_samples(*finite, charged)
