"""Words nobody listed: published where they are many, and a lone one no more often than its part of δ says."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from harness.cases import OPEN_KINDS, open_rows
from harness.privacy import FakeRecords, accept_only_unit_scale, join
from sfumato.errors import ConfigError, LedgerError
from sfumato.fitting.domain_counts import DomainCounts
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.mechanisms.queries import grid_step
from sfumato.mechanisms.unlisted_words import NumberCounts, noisy_words, threshold_of
from sfumato.privacy.accounting import account, account_curve
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.certificate import Certificate, SchemaNotes, describe, issue
from sfumato.privacy.certificate_form import Protected
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Neighbours, Plan, Stage
from sfumato.records.engine import tally

WORDS = DomainCounts({"city": "categorical", "street": "categorical"})


def ledger(noise_multiplier=3.0, extra_delta=1e-3, count=1):
    return Ledger(
        Plan([Stage(name="s", noise_multiplier=noise_multiplier, extra_delta=extra_delta, count=count)]), None
    )


def release(counts, rows, noise, open_ledger=None, unit_rows=1):
    exact = tally(counts, FakeRecords([rows], unit_rows))
    return noisy_words(exact, stage="s", ledger=open_ledger or ledger(), noise=noise)


def people(cities, streets=None):
    return {
        "city": np.array(cities, dtype=object),
        "street": np.array(streets or [None] * len(cities), dtype=object),
    }


def test_the_noise_is_that_of_the_charge():
    counts, rows = DomainCounts(OPEN_KINDS), join(open_rows(30))
    exact = tally(counts, FakeRecords([rows])).whole_in_mechanism()
    noise, listed, words = SeededNoise(0), [], []
    for _ in range(5):
        noisy = release(counts, rows, noise)
        assert noisy.listed.noise_std == 3.0 * 5**0.5  # √ of 5 columns
        listed.append((noisy.listed.value - exact.listed) / noisy.listed.noise_std)
    accept_only_unit_scale(np.concatenate(listed))
    many = people([f"w{i}" for i in range(3_000)] * 200)
    noisy = release(WORDS, many, noise)
    words = (np.array(list(noisy.words["city"].values())) - 200) / noisy.listed.noise_std
    assert len(words) == 3_000
    assert stats.kstest(words, "norm").pvalue > 1e-6
    assert stats.kstest(words * 1.5, "norm").pvalue < 1e-6


def test_single_numbers_are_words_too():
    """As often as a lone word, each by its own noise, with the counts of the records."""
    counts = DomainCounts({"city": "categorical", "share": "continuous"}, single=frozenset({"share"}))
    assert counts.norm_bound == pytest.approx(3**0.5)
    rng, runs, p = np.random.default_rng(0), 20_000, 0.05
    rows = {"city": np.array(["x"] * (runs + 900), dtype=object)}
    rows["share"] = np.concatenate([np.full(500, 1 / 3), np.full(300, -0.0), np.full(100, 0.0), rng.random(runs)])
    noisy = release(counts, rows, SeededNoise(1), ledger(extra_delta=p))
    assert stats.binomtest(len(noisy.words["share"]) - 2, runs, p / 2).pvalue > 1e-6
    for word, count in ((repr(1 / 3), 500), ("0.0", 400)):
        assert abs(noisy.words["share"][word] - count) < 5 * noisy.listed.noise_std


def test_words_beside_numbers_are_words_too():
    """As often as a lone word of a column of labels, in the place of a missing cell; single numbers are beside them."""
    kinds = {"city": "categorical", "share": "continuous"}
    counts = DomainCounts(kinds, single=frozenset({"share"}), beside={"share": "words"})
    assert counts.norm_bound == pytest.approx(3**0.5)
    runs, p = 20_000, 0.05
    rows = {"city": np.array(["x"] * (runs + 900), dtype=object)}
    rows["words"] = np.array(["<5"] * 500 + [" <5"] * 100 + [None] * 300 + [f"w{i}" for i in range(runs)], dtype=object)
    rows["share"] = np.where([word is None for word in rows["words"]], 0.25, np.nan)
    noisy = release(counts, rows, SeededNoise(1), ledger(extra_delta=p))
    assert stats.binomtest(len(noisy.words["share"]) - 2, runs, p / 2).pvalue > 1e-6
    assert stats.binomtest(len(noisy.words["share"]) - 2, runs, p).pvalue < 1e-6
    for word, count in (("<5", 600), ("0.25", 300)):
        assert abs(noisy.words["share"][word] - count) < 5 * noisy.listed.noise_std
    assert abs(noisy.listed.value[-1]) < 5 * noisy.listed.noise_std, "no word is a missing cell"


def test_numbers_are_counted_in_any_pieces():
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 50_000, 300_000) / 7
    counts = NumberCounts()
    for piece in np.split(numbers, [1, 1, 70_000, 200_000]):
        counts.update(piece)
        values = counts.values() if piece.size == 1 else None
        assert values is None or values.tolist() == [1]
    distinct, expected = np.unique(numbers, return_counts=True)
    assert list(counts) == [repr(number) for number in distinct.tolist()]
    np.testing.assert_array_equal(counts.values(), expected)


def test_a_lone_word_is_shown_as_rarely_as_its_part_of_delta_says():
    """p = 0.05 over two columns: each of 40,000 lone words appears with probability p/2, by its own noise."""
    runs, p = 20_000, 0.05
    lone = people([f"w{i}" for i in range(runs)], [f"v{i}" for i in range(runs)])
    noisy = release(WORDS, lone, SeededNoise(1), ledger(extra_delta=p))
    for name in ("city", "street"):
        shown = len(noisy.words[name])
        assert stats.binomtest(shown, runs, p / 2).pvalue > 1e-6
        assert stats.binomtest(shown, runs, p).pvalue < 1e-6  # of a threshold that forgets the second column


@pytest.mark.parametrize("p", [1e-12, 1e-8, 1e-6, 1e-3, 0.2])
@pytest.mark.parametrize("noise_std", [0.3, 1.0, 3.7, 100.0, 12345.6])
def test_a_rounded_count_reaches_it_no_more_often_than_planned(p, noise_std):
    """The law of a noisy count has steps: what counts is the first grid point at or above the threshold."""
    _, grid = grid_step(1.0, noise_std)
    first = np.ceil((threshold_of(p, noise_std=noise_std, columns=1, unit_rows=1) - 1) / grid)
    assert p * (1 - 1e-6) <= stats.norm.sf((first - 0.5) * grid / noise_std) <= p


def test_a_unit_of_many_rows_needs_a_higher_threshold():
    one = threshold_of(1e-7, noise_std=10.0, columns=3, unit_rows=1)
    assert one == pytest.approx(1 + 10 * stats.norm.isf(1e-7 / 3))
    five = threshold_of(1e-7, noise_std=50.0, columns=3, unit_rows=5)
    assert 3 * 5 * stats.norm.sf((five - 5) / 50) == pytest.approx(1e-7)
    counts = DomainCounts({"city": "categorical"}, unit_rows=5)
    noisy = release(counts, people(["a"] * 9), SeededNoise(0), unit_rows=5)
    assert noisy.threshold == pytest.approx(threshold_of(1e-3, noise_std=15.0, columns=1, unit_rows=5))


def test_what_is_published_does_not_tell_the_order_of_the_records():
    rows = ["b", "a", "c"] * 50
    both = [release(WORDS, people(r), NoNoise(0)).words["city"] for r in (rows, rows[::-1])]
    assert list(both[0]) == list(both[1]) == ["a", "b", "c"]


def test_no_words_without_a_part_of_delta_and_nothing_uncharged():
    charged = ledger(extra_delta=0.0)
    with pytest.raises(ConfigError, match="additive part"):
        release(WORDS, people(["a"]), SeededNoise(0), charged)
    assert not charged.charged
    used = ledger()
    release(WORDS, people(["a"]), SeededNoise(0), used)
    with pytest.raises(LedgerError):
        release(WORDS, people(["a"]), SeededNoise(0), used)


def test_the_additive_part_is_composed_as_proven():
    stages = [Stage(name="d", noise_multiplier=14.0, extra_delta=1e-7), Stage(name="m", noise_multiplier=5.0)]
    plan = calibrate(Plan(stages), PrivacyBudget(1.0, 1e-6))
    found = account(plan, 1e-6)
    assert 0.999 <= found.epsilon <= 1
    plain = account_curve(plan.events(), [9e-7])[0].epsilon
    assert found.epsilon == pytest.approx(plain - np.log1p(-1e-7), abs=1e-9)
    facts = {"method": "m", "unit": Protected(name="row", max_rows=1), "n_public": 9, "n_public_source": "declared"}
    content = describe(plan=plan, budget=PrivacyBudget(1.0, 1e-6), schema=SchemaNotes(discovered=["age"]), **facts)
    certificate = Certificate.from_dict(issue(content, private=True).to_dict())
    assert content.extra_delta == pytest.approx(1e-7)
    assert min(point.delta for point in content.curve) > 1e-7
    certificate.verify()
    assert certificate.recompute() == pytest.approx(found.epsilon, abs=1e-9)
    assert certificate.recompute(Neighbours.REPLACE_ONE) > found.epsilon
    with pytest.raises(ConfigError, match="larger delta"):
        calibrate(Plan([Stage(name="d", noise_multiplier=14.0, extra_delta=1e-6)]), PrivacyBudget(1.0, 1e-6))


def test_the_bound_holds_on_the_worst_pair():
    """One record with a word of its own: exact δ of (threshold hit, Gaussian) is within the proven curve."""
    sigma, p = 2.0, 0.02
    threshold = threshold_of(p, noise_std=sigma, columns=1, unit_rows=1)
    hit = stats.norm.sf((threshold - 1) / sigma)
    assert hit == pytest.approx(p)
    for epsilon in (0.1, 0.3, 1.0):
        shift = 1 / sigma  # the record also moves a listed cell of another column
        gaussian = stats.norm.cdf(shift / 2 - epsilon / shift) - np.exp(epsilon) * stats.norm.cdf(
            -shift / 2 - epsilon / shift
        )
        # with the word: p outright; without: the Gaussian pair at weight 1 − p
        inner = epsilon - np.log1p(-hit)
        exact = hit + (1 - hit) * max(
            stats.norm.cdf(shift / 2 - inner / shift) - np.exp(inner) * stats.norm.cdf(-shift / 2 - inner / shift), 0
        )
        lower = epsilon + np.log1p(-p)
        bound = (
            p + stats.norm.cdf(shift / 2 - lower / shift) - np.exp(lower) * stats.norm.cdf(-shift / 2 - lower / shift)
        )
        assert gaussian < exact <= bound


def test_counters_are_hidden():
    exact = tally(WORDS, FakeRecords([people(["secret"])]))
    assert "secret" not in repr(exact) + repr(exact.whole_in_mechanism())
    assert isinstance(exact.whole_in_mechanism().words["city"], Counter)
