"""Members of Poisson samples, drawn sparsely: the law is that of independent coins."""

import numpy as np
import pytest
from scipy import stats

import sfumato.mechanisms.sampling as sampling
from harness.privacy import FALSE_ALARM, STAGE
from sfumato.errors import ConfigError
from sfumato.mechanisms.noise import SecureNoise, SeededNoise
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage


def ledger(probability):
    stage = Stage(name=STAGE, noise_multiplier=1.0, sampling_probability=probability, count=10)
    return Ledger(Plan([stage]), None)


def drawn(n, size, probability, noise=None):
    account = ledger(probability)
    return sampling.poisson_member_sets(n, size, stage=STAGE, ledger=account, noise=noise or SeededNoise(1))


@pytest.mark.slow
@pytest.mark.audit
@pytest.mark.parametrize(("n", "probability"), [(50_000, 1e-4), (2_000, 0.02), (60, 0.3), (60, 0.8), (1, 0.4)])
def test_the_law_is_that_of_independent_coins(n, probability):
    size = 20_000
    samples = drawn(n, size, probability)
    assert len(samples) == size
    sizes = np.array([len(sample) for sample in samples])
    counts = np.bincount(sizes, minlength=n + 1)
    expected = stats.binom.pmf(np.arange(n + 1), n, probability) * size
    likely = expected > 5
    observed = [*counts[likely], counts[~likely].sum()]
    rest = max(expected[~likely].sum(), 1e-9)
    if observed[-1] or rest > 1e-3:
        assert stats.chisquare(observed, [*expected[likely], rest]).pvalue > FALSE_ALARM
    else:
        assert stats.chisquare(observed[:-1], expected[likely] / expected[likely].sum() * size).pvalue > FALSE_ALARM
    # each record alike: in twenty parts of the records as often
    members = np.concatenate(samples)
    parts = min(n, 20)
    edges = np.linspace(0, n, parts + 1).astype(int)
    found, widths = np.histogram(members, edges)[0], np.diff(edges)
    sd = np.sqrt(size * widths * probability * (1 - probability))
    assert (np.abs(found - size * widths * probability) < 6 * sd).all()
    assert (np.abs(found - 1.2 * size * widths * min(probability, 0.8)) > 6 * sd).any() or probability == 0.8
    # two records, and one record in samples that follow each other
    first = np.array([bool(len(s)) and s[0] == 0 for s in samples])
    assert abs((first[1:] & first[:-1]).mean() - probability**2) < 6 * probability / np.sqrt(size)


def test_members_are_distinct_and_ascending():
    for sample in drawn(500, 200, 0.3):
        assert (np.diff(sample) > 0).all()
        assert not len(sample) or 0 <= sample[0] <= sample[-1] < 500


def test_groups_of_samples_are_drawn_anew(monkeypatch):
    """Where samples are drawn a few at a time, none comes twice and none is missing."""
    monkeypatch.setattr(sampling, "_CELLS", 3000)
    samples = drawn(1000, 20, 0.5, SecureNoise())
    assert len(samples) == 20
    assert len({tuple(sample) for sample in samples}) == 20


@pytest.mark.parametrize("n", [0, 7])
def test_all_at_probability_one(n):
    for sample in drawn(n, 3, 1.0):
        np.testing.assert_array_equal(sample, np.arange(n))


def test_one_sample():
    members = sampling.poisson_members(1000, stage=STAGE, ledger=ledger(0.2), noise=SeededNoise(2))
    assert 100 < len(members) < 300
    assert members.ndim == 1


def test_bits_are_as_many_as_members():
    asked = []

    class Counted(SeededNoise.__base__):
        private, silent = False, False

        def bits(self, n):
            asked.append(n)
            return super().bits(n)

    drawn(10**6, 10, 1e-4, Counted(bytes(32)))
    assert sum(asked) < 10 * 10**6 * 1e-4 * 3


def test_a_stage_without_sampling_is_refused():
    plain = Ledger(Plan([Stage(name=STAGE, noise_multiplier=1.0)]), None)
    with pytest.raises(ConfigError, match="Poisson"):
        sampling.poisson_member_sets(10, 3, stage=STAGE, ledger=plain, noise=SeededNoise(1))
