"""The audit of methods that sample records: the law of its score, correct methods, planted bugs."""

import numpy as np
import pytest
from scipy import sparse, stats

from sfumato import P3GM, DPMix, settings
from sfumato.audit import attack, audit
from sfumato.audit.attack import epsilon_above, plan_epsilon
from sfumato.audit.shadow import Attacker, Shadow, corners
from sfumato.audit.tape import Tape, log_ratios
from sfumato.errors import ConfigError
from sfumato.fitting.purposes import Facts
from sfumato.mechanisms.noise import SeededNoise
from sfumato.privacy.accounting import account, account_curve, interval_for
from sfumato.privacy.plan import Plan, Stage
from sfumato.schema.schema import Schema

PAIR = Schema.from_dict({"rows": 100, "columns": {"a": {"kind": "boolean"}, "b": {"kind": "boolean"}}})
NET = {"hidden": 3, "latent_dim": 2, "draw": False}


def dpmix(epsilon):
    return DPMix(epsilon=epsilon, mixture_degree=10, n_mixtures=20)


def dpvae(epsilon):
    return P3GM(epsilon=epsilon, prior=settings.StandardNormal(), epochs=0.08, batch_size=2, **NET)


def p3gm(epsilon):
    return P3GM(epsilon=epsilon, epochs=1.0, batch_size=50, **NET)


class Other:
    """A seeded door, of which one thing is wrong."""

    private, silent = False, False

    def __init__(self, seed):
        self.inner = SeededNoise(seed)

    def __getattr__(self, name):
        return getattr(self.inner, name)


class LittleNoise(Other):
    """Three tenths of the noise that was charged."""

    def gaussian(self, shape, noise_std):
        return 0.3 * self.inner.gaussian(shape, noise_std)

    def rounded_gaussian(self, shape, noise_std, step):
        return np.rint(0.3 * self.inner.rounded_gaussian(shape, noise_std, step)).astype(np.int64)


class Everybody(Other):
    """Samples that leave nobody out."""

    def bernoulli(self, n, probability):
        return np.ones(n, dtype=bool)

    def poisson_samples(self, n, probability, size):
        return sparse.csr_array(np.ones((size, n)))


def attacker_of(method, target=None):
    """An attacker of a plan that is not calibrated: what the plan costs does not matter here."""
    plan = Plan(method.stages(Facts(PAIR, target, 100)))
    shadow = Shadow(method, plan, Facts(PAIR, target, 100)).counted(corners(PAIR)[0])
    return shadow, Attacker.of(shadow, *corners(PAIR)[::-1])


def test_the_score_is_the_log_ratio_of_a_mixture_and_a_normal():
    """One mixture of records, each in it by a coin of 1/2: the law of what is released, and of the score."""
    shadow, attacker = attacker_of(DPMix(epsilon=4.0, mixture_degree=50, n_mixtures=1), "b")
    released = shadow.measure(attacker.present, SeededNoise(1))
    again = shadow.replay(attacker.present, released)
    inside = outside = 0.0
    for draw, here in zip(released, again, strict=True):
        inside += stats.norm(here.exact * here.unit).logpdf(draw.released * draw.unit).sum()
        outside += stats.norm.logpdf(draw.released * draw.unit).sum()
    score = attacker.scores(released, planted=True)
    assert score[0] == pytest.approx(np.log(0.5 + 0.5 * np.exp(inside - outside)))
    assert score[3] == pytest.approx(inside - outside)

    z = shadow.plan.stages[0].noise_multiplier
    found = [
        np.array([attacker.scores(shadow.measure(rows, SeededNoise(i)), planted=False)[3] for i in range(100)])
        for rows in (attacker.absent, attacker.present)
    ]
    law = stats.norm(-0.5 / z**2, 1 / z)
    member = stats.norm(0.5 / z**2, 1 / z)
    assert stats.kstest(found[0], law.cdf).pvalue > 1e-4
    assert stats.kstest(found[1], lambda x: 0.5 * law.cdf(x) + 0.5 * member.cdf(x)).pvalue > 1e-4


@pytest.mark.parametrize(("method", "target"), [(dpmix(4.0), "b"), (dpvae(4.0), None)])
def test_the_canary_adds_all_that_is_charged_and_nothing_else_differs(method, target):
    shadow, attacker = attacker_of(method, target)
    released = shadow.measure(attacker.present, Everybody(2))
    again = shadow.replay(attacker.present, released)
    added = {}
    for first, second in zip(released, again, strict=True):
        np.testing.assert_array_equal(first.released, second.released)
        np.testing.assert_array_equal(first.exact, second.exact)  # it is in every sample here
        rows = ((second.exact * second.unit).reshape(second.count, -1) ** 2).sum(axis=1)
        for i, row in enumerate(rows):
            added[first.stage, first.first + i] = added.get((first.stage, first.first + i), 0.0) + row
    for stage in shadow.plan.stages:
        norms = [np.sqrt(added[stage.name, i]) * stage.noise_multiplier for i in range(stage.count)]
        np.testing.assert_allclose(norms, 1.0, rtol=1e-3)
    nothing = shadow.measure(attacker.absent, SeededNoise(3))
    assert not any(draw.exact.any() for draw in nothing)


def test_events_of_one_stage_are_mixed_each_for_itself():
    shadow, attacker = attacker_of(dpmix(4.0), "b")
    released = shadow.measure(attacker.present, SeededNoise(4))
    again = shadow.replay(attacker.present, released)
    shifts = sum(
        ((h.exact * h.unit) * ((r.released - h.exact / 2) * h.unit)).sum(axis=1)
        for r, h in zip(released, again, strict=True)
    )
    expected = np.log(0.9 + 0.1 * np.exp(shifts)).sum()
    assert log_ratios(released, again, None, {"mixtures": 0.1})[0] == pytest.approx(expected)


def test_a_sampled_plan_bounds_its_own_rates():
    """Rates that the plan just allows give an ε just below its own; a little more is above it."""
    plan = Plan([Stage(name="s", noise_multiplier=1.0, sampling_probability=0.1, count=10)])
    epsilon = account(plan, 1e-5).epsilon
    below = plan_epsilon(plan, 0.3, 0.2, 1e-5)
    above = plan_epsilon(plan, 0.8, 0.2, 1e-5)
    assert 0 < below < epsilon < above
    assert epsilon_above(0.3, 0.2, 1e-5) <= below
    assert plan_epsilon(plan, 0.2, 0.3, 1e-5) == 0


def test_only_rates_that_the_plan_forbids_refute_it():
    """Where the coarse grid is far above the plan's own account, rates are still told apart by the latter."""
    plan = Plan([Stage(name="s", noise_multiplier=2.0, sampling_probability=2e-4, count=20_000)])
    own = account(plan, 1e-5).epsilon
    deltas = [float(delta) for delta in np.geomspace(1e-5, 0.5, 30)]
    curve = [found.epsilon for found in account_curve(plan.events(), deltas, interval=interval_for(plan))]
    gaps = (5e-4, 1e-3, 2e-3, 3e-3, 4e-3, 6e-3, 0.03)
    found = [plan_epsilon(plan, 0.1 + gap, 0.1, 1e-5) for gap in gaps]
    assert found == sorted(found)
    assert found[-1] > own
    for gap, bound in zip(gaps, found, strict=True):
        forbidden = any(epsilon_above(0.1 + gap, 0.1, d) > e for d, e in zip(deltas, curve, strict=True))
        assert forbidden or bound <= own


@pytest.mark.parametrize("seen", [3, 2])
def test_a_fit_of_which_a_later_step_left_without_noise_is_refused(seen):
    """Nobody would have looked at what that step released."""
    plan = Plan([Stage(name="steps", noise_multiplier=2.0, count=3)])
    tape = Tape(SeededNoise(0))
    for step in range(3):
        tape.charged("steps", step + 1)
        if step < seen:
            noise = tape.gaussian(2, 2.0)
            noise += np.ones(2)
    shadow = Shadow(dpmix(4.0), plan, Facts(PAIR, "b", 100))
    if seen == 3:
        shadow._check(tape)
    else:
        with pytest.raises(ConfigError, match="steps"):
            shadow._check(tape)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "target", "fits"), [(dpmix(4.0), "b", 60), (dpvae(4.0), None, 20)])
def test_a_correct_method_holds(method, target, fits):
    found = audit(method, PAIR, target=target, fits=fits, confidence=0.95, seed=0)
    assert found["holds"]
    assert found["epsilon_certified"] == pytest.approx(4, abs=2e-3)


@pytest.mark.parametrize("bug", [LittleNoise, Everybody])
def test_a_bug_is_caught(bug, monkeypatch):
    monkeypatch.setattr(attack, "SeededNoise", bug)
    found = audit(dpmix(4.0), PAIR, target="b", fits=120, confidence=0.95, seed=0)
    assert not found["holds"]


@pytest.mark.slow
def test_gradients_of_everybody_are_caught(monkeypatch):
    monkeypatch.setattr(attack, "SeededNoise", Everybody)
    assert not audit(dpvae(4.0), PAIR, fits=40, confidence=0.95, seed=0)["holds"]


BOTH = (LittleNoise, Everybody)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "target", "fits", "bugs"),
    [
        (dpmix(1.0), "b", 1_600, BOTH),
        (dpmix(4.0), "b", 1_600, BOTH),
        (p3gm(1.0), None, 2_000, (LittleNoise,)),
        (p3gm(4.0), None, 400, (LittleNoise,)),
    ],
)
def test_twenty_audits(method, target, fits, bugs, monkeypatch):
    """No lower bound above the certified ε in 20 audits at 0.999; a bug is caught in at least 19 of 20."""
    for seed in range(20):
        assert audit(method, PAIR, target=target, fits=fits, seed=seed)["holds"]
    for bug in bugs:
        monkeypatch.setattr(attack, "SeededNoise", bug)
        found = [not audit(method, PAIR, target=target, fits=fits, seed=seed)["holds"] for seed in range(20)]
        assert sum(found) >= 19
