"""Mixtures: who is in them, what noise they carry, what one unit moves, and what is refused."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from harness.privacy import FALSE_ALARM, accept_only_unit_scale
from sfumato.errors import ConfigError, LedgerError
from sfumato.mechanisms.mixing import (
    FixedDegreeMixing,
    MixableRecords,
    MixtureSettings,
    PoissonMixing,
    SubsetMixing,
    label_share,
    noisy_mixtures,
    product_error,
)
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.mechanisms.rounded import binomial_counts, binomial_table
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan

ALL = [PoissonMixing(), SubsetMixing(), FixedDegreeMixing()]
C_X, C_Y = 1.5, 1.0


def settings_of(mixing, degree=3, n_mixtures=40, n_public=20, share=0.3):
    return MixtureSettings(mixing=mixing, degree=degree, n_mixtures=n_mixtures, n_public=n_public, label_share=share)


def ledger_of(settings, multiplier=2.0):
    facts = {"degree": settings.degree, "n_mixtures": settings.n_mixtures, "n_public": settings.n_public}
    return Ledger(Plan([settings.mixing.stage("mixtures", **facts)]).scaled(multiplier), None)


def records(features, labels=None):
    labels = np.eye(2)[np.arange(len(features)) % 2] if labels is None else labels
    return MixableRecords(np.asarray(features, float), labels, feature_norm=C_X, label_norm=C_Y)


def mix(rows, settings, noise, multiplier=2.0):
    ledger = ledger_of(settings, multiplier)
    blocks = list(noisy_mixtures(rows, settings, stage="mixtures", ledger=ledger, noise=noise))
    ledger.close()
    return np.concatenate([b.features for b in blocks]), np.concatenate([b.labels for b in blocks])


def members(mixing, n, settings, seed):
    """Who is in which mixture: features are the units themselves."""
    rows = MixableRecords(np.eye(n), np.zeros((n, 0)), feature_norm=1.0, label_norm=1.0)
    return np.rint(mix(rows, settings_of(mixing, *settings, share=0.0), NoNoise(seed))[0] * settings[0]).astype(int)


@pytest.mark.parametrize("n", [30, 20, 25])  # whatever the true number is, the rate is that of the plan
def test_poisson_membership_is_independent_coins(n):
    found = members(PoissonMixing(), n, (3, 20_000, 20), 1)
    assert set(np.unique(found)) == {0, 1}
    p, cells = 3 / 20, found.size
    assert abs(found.mean() - p) < 6 * math.sqrt(p * (1 - p) / cells)
    rejected = abs(found.mean() - 3 / 23) > 6 * math.sqrt(p * (1 - p) / cells)
    assert rejected
    sizes = np.bincount(found.sum(axis=1), minlength=n + 1)
    expected = stats.binom.pmf(np.arange(n + 1), n, p) * len(found)
    kept = expected > 5
    observed = np.append(sizes[kept], sizes[~kept].sum())
    assert stats.chisquare(observed, np.append(expected[kept], expected[~kept].sum())).pvalue > FALSE_ALARM
    pairs = found.T @ found / len(found)
    off = pairs[~np.eye(n, dtype=bool)]
    assert np.abs(off - p * p).max() < 6 * math.sqrt(p * p / len(found))
    units = found.sum(axis=0)
    assert stats.chisquare(units).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("degree", "n"), [(3, 7), (5, 7), (7, 7), (1, 7)])
def test_subsets_are_uniform(degree, n):
    found = members(SubsetMixing(), n, (degree, 20_000, n), 2)
    assert (found.sum(axis=1) == degree).all()
    assert found.max() == 1
    codes = np.unique(found @ 2 ** np.arange(n), return_counts=True)[1]
    assert len(codes) == math.comb(n, degree)
    if len(codes) > 1:
        assert stats.chisquare(codes).pvalue > FALSE_ALARM


def test_fixed_degree_joins_every_unit_so_often():
    found = members(FixedDegreeMixing(), 11, (3, 40, 20), 3)
    assert (found.sum(axis=0) == 6).all()
    assert found.max() == 1
    assert len(np.unique(found.sum(axis=1))) > 1


def test_the_binomial_table_is_that_law():
    for n, p in ((1, 0.3), (20, 0.15), (60_000, 64 / 60_000), (100, 0.97), (10**6, 1e-6)):
        first, words, ends = binomial_table(n, p)
        cdf = stats.binom.cdf(first + np.arange(len(words)), n, p)
        np.testing.assert_allclose(words / 2.0**64, cdf, atol=1e-9)
        np.testing.assert_allclose([end / 2.0**128 for end in ends], cdf, atol=1e-9)
        assert stats.binom.cdf(first - 1, n, p) < 1e-40


@pytest.mark.parametrize("i", [0, 1, 3])
def test_where_64_bits_leave_a_doubt_64_more_decide(i):
    first, words, ends = binomial_table(20, 0.15)
    low = ends[i] & (2**64 - 1)
    for more, count in ((low - 1, i), (low, i + 1), (low + 1, i + 1)):
        asked = []

        def bits(size, more=more, asked=asked):
            asked.append(size)
            return np.full(size, words[i] if len(asked) == 1 else more, dtype=np.uint64)

        np.testing.assert_array_equal(binomial_counts(bits, 20, 0.15, 1), first + count)
        assert asked == [1, 1]


def test_the_table_is_exact_to_its_last_bits():
    first, _, ends = binomial_table(3, 0.25)
    exact = [27, 27 + 27, 27 + 27 + 9]  # of 64
    assert first == 0
    assert [abs(end - 2**128 * share // 64) <= 1 for end, share in zip(ends, exact, strict=True)] == [True] * 3


@pytest.mark.parametrize("mixing", ALL)
def test_noise_has_the_stated_law_and_no_other(mixing):
    settings = settings_of(mixing, n_mixtures=2000)
    zeros = records(np.zeros((20, 4)), np.zeros((20, 3)))
    features, labels = mix(zeros, settings, SeededNoise(5))
    z = 2.0 * (math.sqrt(300) if isinstance(mixing, FixedDegreeMixing) else 1)
    x, y = z * C_X / (3 * math.sqrt(0.7)), z * C_Y / (3 * math.sqrt(0.3))
    accept_only_unit_scale(features.ravel() / x)
    accept_only_unit_scale(labels.ravel() / y)
    # together the two blocks are the one Gaussian of the plan
    assert 3 / math.sqrt(C_X**2 / x**2 + C_Y**2 / y**2) == pytest.approx(z)


POOL = [
    *np.random.default_rng(0).random((30, 4)) ** 4, *(10.0 * np.eye(4)), *np.eye(4), np.zeros(4), np.full(4, 1e300),
    np.full(4, np.nan), np.array([np.inf, 0, 0, 0]), np.full(4, -5.0), np.full(4, 1e-320),
]  # fmt: skip


def contribution(features, label):
    one = records(np.array([features]), np.array([label], float))
    rows = one.open_in_mechanism()[0].astype(np.float64)
    x, y = rows[:4] * one.steps[0], rows[4:] * one.steps[1]
    return np.concatenate([x / C_X * math.sqrt(0.7), y / C_Y * math.sqrt(0.3)])


def test_contributions_are_within_their_bounds_and_neighbours_within_theirs():
    labels = [[1, 0], [0, 1], [5, 5], [np.nan, 0], [-1, 0]]
    found = np.array([contribution(x, y) for x in POOL for y in labels])
    norms = np.linalg.norm(found, axis=1)
    assert np.isfinite(found).all()
    assert 0.99 < norms.max() <= 1
    distances = np.linalg.norm(found[:, None] - found[None], axis=2)
    assert 0.99 * math.sqrt(2) < distances.max() <= math.sqrt(2)


@pytest.mark.parametrize("mixing", [PoissonMixing(), SubsetMixing()])
def test_a_unit_moves_only_its_own_mixtures_by_its_own_share(mixing):
    """Replacing one unit, all else equal: a mixture moves by 0 or by the difference ÷ ℓ, whatever the others are."""
    base = np.random.default_rng(1).random((20, 4))
    other = base.copy()
    other[7] = [9, 0, 0, 0]
    settings = settings_of(mixing, n_mixtures=500)
    one, two = (mix(records(x), settings, NoNoise(4))[0] for x in (base, other))
    step = (records(other).open_in_mechanism()[7] - records(base).open_in_mechanism()[7])[:4] / 3
    step = step * records(base).steps[0]
    moved = np.abs(two - one).max(axis=1) > 1e-12
    assert 0 < moved.sum() < len(moved)
    np.testing.assert_allclose((two - one)[moved], np.tile(step, (moved.sum(), 1)), atol=1e-12)


def test_the_divisor_is_the_constant_and_not_the_number_of_members():
    ones = records(np.tile([1.0, 0, 0, 0], (50, 1)))
    features, _ = mix(ones, settings_of(PoissonMixing()), NoNoise(1))
    counts = features[:, 0] * 3 / (1 - 1e-6)
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert counts.max() > 4


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_units(n):
    features, labels = mix(records(np.ones((n, 4))), settings_of(PoissonMixing()), SeededNoise(1))
    assert features.shape == (40, 4)
    assert labels.shape == (40, 2)


@pytest.mark.parametrize("degree", [1, 11, 20])
def test_every_degree(degree):
    for mixing in ALL:
        features, _ = mix(records(np.ones((20, 4))), settings_of(mixing, degree=degree), SeededNoise(1))
        assert np.isfinite(features).all()


def test_all_mixtures_are_charged_before_the_first_is_drawn():
    settings = settings_of(PoissonMixing())
    ledger = ledger_of(settings)
    blocks = noisy_mixtures(records(np.ones((9, 4))), settings, stage="mixtures", ledger=ledger, noise=SeededNoise(0))
    assert ledger.charged == (("mixtures", 40),)
    ledger.close()
    assert sum(len(block.features) for block in blocks) == 40
    with pytest.raises(LedgerError):
        noisy_mixtures(records(np.ones((9, 4))), settings, stage="mixtures", ledger=ledger, noise=SeededNoise(0))


@pytest.mark.parametrize("other", [{"degree": 4}, {"n_mixtures": 41}, {"n_public": 21}, {"share": 0.0}])
@pytest.mark.parametrize("mixing", [PoissonMixing(), SubsetMixing()])
def test_settings_that_are_not_the_plans_are_refused_uncharged(mixing, other):
    ledger = ledger_of(settings_of(mixing))
    with pytest.raises(ConfigError if "share" in other else LedgerError):
        noisy_mixtures(
            records(np.ones((20, 4))), settings_of(mixing, **other), stage="mixtures", ledger=ledger,
            noise=SeededNoise(0),
        )  # fmt: skip
    assert not ledger.charged


def test_subsets_of_another_number_of_units_are_refused_uncharged():
    ledger = ledger_of(settings_of(SubsetMixing()))
    with pytest.raises(ConfigError, match="PoissonMixing") as error:
        noisy_mixtures(
            records(np.ones((17, 4))), settings_of(SubsetMixing()), stage="mixtures", ledger=ledger,
            noise=SeededNoise(0),
        )  # fmt: skip
    assert "17" not in str(error.value)
    assert not ledger.charged


@pytest.mark.parametrize(("degree", "n_mixtures"), [(0, 5), (21, 5), (1.5, 5), (3, 0)])
@pytest.mark.parametrize("mixing", ALL)
def test_impossible_settings(mixing, degree, n_mixtures):
    with pytest.raises(ConfigError):
        mixing.stage("mixtures", degree=degree, n_mixtures=n_mixtures, n_public=20)


def test_records_show_nothing():
    found = records(np.full((3, 4), 0.123456))
    assert "123" not in f"{found!r}{found}"
    with pytest.raises(TypeError):
        pickle.dumps(found)
    with pytest.raises(TypeError):
        np.asarray(found, dtype=float)


@pytest.mark.parametrize(
    ("z", "degree", "d_x", "d_y"), [(0.5, 64, 784, 10), (3, 1, 2, 2), (1e-4, 100, 5, 3), (9, 2, 1, 9)]
)
def test_the_label_share_is_the_best(z, degree, d_x, d_y):
    share = label_share(multiplier=z, degree=degree, n_features=d_x, n_labels=d_y)
    a, b = d_x * z * z / degree, d_y * z * z / degree
    grid = np.linspace(1e-4, 1 - 1e-4, 20_001)
    errors = (1 + a / (1 - grid)) * (1 + b / grid)
    assert share == pytest.approx(grid[errors.argmin()], abs=1e-3)
    assert product_error(multiplier=z, degree=degree, n_features=d_x, n_labels=d_y) <= errors.min() * (1 + 1e-9)
    assert label_share(multiplier=z, degree=degree, n_features=d_x, n_labels=0) == 0
