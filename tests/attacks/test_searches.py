"""Attacks on a whole search, `tune`: how often it repeats, what it charges, and what its choice tells.

The searches are real, of candidates made for the attack: one Gaussian release each, and samples by where it lies. Worst
for a search is an order in which outcomes that speak for one neighbour rank just below those that speak for the other.
"""

import math
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from scipy import stats

from fixtures import tables
from harness.coupling import check_same, check_sensitivities, coupled
from harness.privacy import FakeRecords, compare_samples
from sfumato import MaxEntropy, tune
from sfumato.fitting.driver import FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.mechanisms.noise import SeededNoise
from sfumato.privacy.accounting import fresh_accountant
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.ledger import GaussianEvent, Noised, SearchLedger
from sfumato.privacy.plan import Plan, Stage
from sfumato.privacy.repetitions import Repetitions
from sfumato.schema.accept import read_criteria
from sfumato.schema.schema import Schema
from sfumato.search import acceptance, tuning
from sfumato.search.acceptance import judges_of

SCHEMA = Schema.from_dict({"rows": 1000, "columns": {"flag": {"kind": "boolean"}}})
ROWS = 1000
DELTA = 1e-5
BEYOND = "beyond the account"
BEST, SECOND, REST = 1.0, 0.6, 0.0


@dataclass(frozen=True, kw_only=True)
class OneCount(Synthesizer):
    """A number of rows with noise. Samples are of one flag: as `share` says, else by where the number lies."""

    method = "one-count"
    share: float | None = None
    far: float = 1.5

    def stages(self, facts):
        return [Stage(name="count", noise_multiplier=1.0, replace_distance=1.0)]

    def run(self, fit):
        (stage,) = fit.ledger.plan.stages
        fit.ledger.charge(stage.name, GaussianEvent((Noised(stage.noise_multiplier, 1.0, 1.0),)))
        u, v = fit.noise.uniform(2)
        normal = math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)
        x = (fit.data.rows - fit.n_public - 0.5) / stage.noise_multiplier + normal
        share = self.share
        if share is None:
            share = BEST if x < -self.far else SECOND if x > self.far else REST
        return FittedModel({}, {"share": np.array(share), "x": np.array(x)}, ())


@pytest.fixture(autouse=True)
def sampled(monkeypatch):
    """Counts of samples, without samples."""
    inner = tuning.Search._inner
    monkeypatch.setattr(tuning.Search, "_inner", lambda self, of: of if "share" in of.parameters else inner(self, of))
    monkeypatch.setattr(tuning, "sampled_counts", lambda _, schema, of: [_flags(float(of.parameters["share"]))])


def _flags(share):
    return np.diag([1 - share, share, 0]).ravel()  # the last one of no label


class Flags(FakeRecords):
    def __init__(self, no: int, yes: int) -> None:
        super().__init__([{"flag": np.repeat([0, 1], [no, yes])}])
        self.rows = no + yes


def planned(candidates, law, score_noise, fit_noise) -> tuning.Search:
    """A search with this noise, whatever it costs."""
    once = Stage(name=tuning.SCORE_STAGE, noise_multiplier=score_noise, replace_distance=float(np.sqrt(2)))
    fit = Stage(name="count", noise_multiplier=fit_noise, replace_distance=1.0, repetitions=law)
    plans = tuple(Plan([once, fit]) for _ in candidates)
    return tuning.Search(tuple(candidates), plans, PrivacyBudget(100.0, 0.5), Facts(SCHEMA, None, ROWS))


def searched(search, data, noise):
    ledger = SearchLedger(search.plans, search.budget)
    best = search.run(data, ledger, noise)
    ledger.close()
    return best


def delta_of(plan: Plan):
    """δ(ε) of the plan's events: as tight as there is an account."""
    accountant = fresh_accountant(plan.neighbours, 1e-3)
    if not all(accountant.supports(event) for event in plan.events()):
        accountant = RdpAccountant()
    for event in plan.events():
        accountant.compose(event)
    return cache(lambda epsilon: float(accountant.get_delta(epsilon)))


LOGARITHMIC = pytest.param(Repetitions(4, 0), marks=(pytest.mark.audit, pytest.mark.slow), id="logarithmic")


@pytest.mark.parametrize("law", [pytest.param(Repetitions(4), id="geometric"), LOGARITHMIC])
def test_the_law_of_fits_is_that_of_the_plan(monkeypatch, law):
    """How often each candidate is fitted: by the law that is charged, uniformly, each time with noise of its own."""
    candidates = [OneCount(epsilon=1.0, share=share) for share in (0.2, 0.5, 0.8)]
    search = planned(candidates, law, 20.0, 20.0)
    drawn, run = [], OneCount.run

    def watched(self, fit):
        fitted = run(self, fit)
        drawn.append((candidates.index(self), float(fitted.parameters["x"])))
        return fitted

    monkeypatch.setattr(OneCount, "run", watched)
    noise, often, data = SeededNoise(3), [], Flags(500, 500)
    which: Counter[int] = Counter()
    for _ in range(300):
        drawn.clear()
        searched(search, data, noise)
        often.append(len(drawn))
        which.update(candidate for candidate, _ in drawn)
        assert len({x for _, x in drawn}) == len(drawn), "two fits of a search have the same noise"
    top = 10
    expected = np.array([law.probability(k) for k in range(1, top)])
    observed = np.bincount(np.minimum(often, top), minlength=top + 1)[1:]
    assert stats.chisquare(observed, len(often) * np.append(expected, 1 - expected.sum())).pvalue > 1e-6
    assert stats.chisquare([which[j] for j in range(3)]).pvalue > 1e-6


def test_neighbours_release_the_same(monkeypatch):
    """Beyond what mechanisms release, nothing of a record reaches a search; and each is charged as often as it runs."""
    candidates = [
        MaxEntropy(epsilon=2.0, delta=DELTA, marginal_share=share, calibration_rows=200) for share in (0.2, 0.7)
    ]
    turn = iter(range(100))
    monkeypatch.setattr(tuning, "drawn_repetitions", lambda law, noise: 4)
    monkeypatch.setattr(tuning, "drawn_candidate", lambda n, noise: next(turn) % n)
    monkeypatch.setattr(tuning, "sampled_counts", _no_samples)

    def fit(data):
        release = tune(data, method=candidates, schema=tables.schema(), target="income", n_public=60, seed=1)
        found = {f"parameter {name}": array for name, array in release.parameters.items()}
        found |= {f"measurement {i}": m.value for i, m in enumerate(release.measurements)}
        return found | {"certificate": release.certificate.content, "sampler": release.sampler}

    frame = tables.frame(61)
    first, second, tape = coupled(monkeypatch, fit, frame.head(60), frame, more=1)
    check_same(first, second)
    assert check_sensitivities(tape, replaced=False) > 0.9
    released = Counter(found.stage.name for found in tape.releases)
    assert released.pop(tuning.SCORE_STAGE) == 1
    assert set(released.values()) == {4}


CRITERIA = [{"marginal_error": 0.9}, {"pair_error": 0.95}, {"auroc": 0.1, "target": "member"}]


@pytest.mark.parametrize("replaced", [False, True], ids=["one more", "one replaced"])
def test_neighbours_are_judged_the_same(monkeypatch, replaced):
    """Verdicts are functions of what was released with noise, and each of them is charged as often as it is made."""
    turn = iter(range(100))
    candidate = MaxEntropy(epsilon=9.0, delta=DELTA, calibration_rows=200)
    monkeypatch.setattr(tuning, "drawn_repetitions", lambda law, noise: 3)
    monkeypatch.setattr(tuning, "drawn_candidate", lambda n, noise: next(turn) % n)
    monkeypatch.setattr(tuning, "sampled_counts", _no_samples)
    monkeypatch.setattr(acceptance, "_SAMPLES", 4_096)
    monkeypatch.setattr(tuning, "not_accepted", lambda certificate: _Verdicts(certificate))

    def fit(data):
        try:
            release = tune(data, method=[candidate], schema=tables.schema(), n_public=401, accept=CRITERIA, seed=1)
        except _Verdicts as verdicts:
            return {"certificate": verdicts.args[0].content}
        found = {f"parameter {name}": array for name, array in release.parameters.items()}
        return found | {"certificate": release.certificate.content}

    frame = tables.frame(401)
    one, other = (frame, frame.copy()) if replaced else (frame.head(400), frame)
    if replaced:
        other.iloc[-1] = frame.iloc[0]
    first, second, tape = coupled(monkeypatch, fit, one, other, more=0 if replaced else 1)
    check_same(first, second)
    *_, auroc = first["certificate"]["search"]["verdicts"]
    assert auroc["noise_std"] < 0.5, "classes that are lost in noise show no bug"
    assert len(first["certificate"]["search"]["verdicts"]) == len(CRITERIA)
    check_sensitivities(tape, replaced=replaced)
    released = Counter(found.stage.name for found in tape.releases)
    assert {released[f"accept {i}: {next(iter(entry))}"] for i, entry in enumerate(CRITERIA, 1)} == {3}


def _no_samples(scores, schema, sampler):
    """As many samples in every cell."""
    del schema, sampler
    return [score.of_samples.zero() + 1 for score in scores]


class _Verdicts(Exception):  # noqa: N818 - what a search hands back
    """The certificate of a search without a fit that passes."""


EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)


@pytest.fixture
def quick_candidates(monkeypatch):
    """Candidates drawn without sparse matrices."""
    monkeypatch.setattr(tuning, "drawn_candidate", lambda n, noise: int(noise.uniform(1)[0] * n) % n)


def told_by_the_best_fit(search, runs):
    """Whether the best fit was one of high numbers, of one record more, and of one less."""
    samples = []
    for side, rows in enumerate((ROWS + 1, ROWS)):
        noise, data = SeededNoise(side), Flags(0, rows)
        best = [float(searched(search, data, noise).fitted.parameters["share"]) for _ in range(runs)]
        samples.append(np.equal(best, SECOND).astype(float))
    return samples


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.usefixtures("quick_candidates")
def test_what_the_best_fit_tells():
    """Fits of high numbers speak for one record more, and rank just below those that speak against it."""
    search = planned([OneCount(epsilon=1.0)], Repetitions(10), 30.0, 2.0)
    samples = told_by_the_best_fit(search, 2_000)
    charged = search.plans[0]
    compare_samples(*samples, delta_of(charged), EPSILONS)
    once, repeated = charged.parts
    as_one_fit = Plan([*once, *(replace(stage, repetitions=None) for stage in repeated)])
    with pytest.raises(AssertionError, match=BEYOND):
        compare_samples(*samples, delta_of(as_one_fit), EPSILONS)
    less = planned([OneCount(epsilon=1.0)], Repetitions(10), 30.0, 0.4)
    with pytest.raises(AssertionError, match=BEYOND):
        compare_samples(*told_by_the_best_fit(less, 1_000), delta_of(charged), EPSILONS)


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.usefixtures("quick_candidates")
@pytest.mark.parametrize("wrong", [False, True], ids=["as charged", "with a tenth of the noise"])
def test_what_the_choice_tells(wrong):
    """One record decides which of two candidates is nearer, but for the noise of the score."""
    candidates, law, runs = [OneCount(epsilon=1.0, share=share) for share in (0.3, 0.70025)], Repetitions(30), 300
    charged = planned(candidates, law, 2.0, 50.0).plans[0]
    search = planned(candidates, law, 2.0 / (10 if wrong else 1), 50.0)
    samples = []
    for side, yes in enumerate((1001, 1000)):
        noise, data = SeededNoise(side), Flags(1000, yes)
        samples.append(np.array([searched(search, data, noise).candidate for _ in range(runs)], dtype=float))
    with pytest.raises(AssertionError, match=BEYOND) if wrong else nullcontext():
        compare_samples(*samples, delta_of(charged), EPSILONS)


class _NoFlags:
    """Samples without a flag: every record with one is in another cell."""

    width, class_column = 1, None

    def rows(self, n, rng, classes=None):
        return {"flag": np.zeros(n, dtype=np.int32)}


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.usefixtures("quick_candidates")
@pytest.mark.parametrize("wrong", [False, True], ids=["as charged", "with a tenth of the noise"])
def test_what_verdicts_tell(monkeypatch, wrong):
    """One record more is one more in another cell; of several fits the one whose noise hid it best is released."""
    monkeypatch.setattr(tuning.Search, "_inner", lambda self, fitted: _NoFlags())
    monkeypatch.setattr(acceptance, "_SAMPLES", 8)
    (criterion,) = read_criteria([{"marginal_error": 0.5}])
    judges = judges_of([criterion], SCHEMA, ROWS)
    law, verdict = Repetitions(5), judges[0].stage

    def judged_search(multiplier):
        once = Stage(name=tuning.SCORE_STAGE, noise_multiplier=50.0, replace_distance=float(np.sqrt(2)))
        fit = Stage(name="count", noise_multiplier=50.0, replace_distance=1.0, repetitions=law)
        judging = Stage(name=verdict, noise_multiplier=multiplier, replace_distance=1.0, repetitions=law)
        plan = Plan([once, fit, judging])
        return tuning.Search(
            (OneCount(epsilon=1.0, share=0.5),), (plan,), PrivacyBudget(100.0, 0.5), Facts(SCHEMA, None, ROWS), judges
        )

    charged = judged_search(2.0).plans[0]
    search, samples = judged_search(2.0 / (10 if wrong else 1)), []
    for side, yes in enumerate((501, 500)):
        noise, data, values = SeededNoise(side), Flags(500, yes), []
        for _ in range(1_000):
            ledger = SearchLedger(search.plans, search.budget, judged=1)
            best = search.run(data, ledger, noise)
            ledger.close()
            values.append(best.verdicts[0].value)
        samples.append(np.array(values))
    with pytest.raises(AssertionError, match=BEYOND) if wrong else nullcontext():
        compare_samples(*samples, delta_of(charged), EPSILONS)
