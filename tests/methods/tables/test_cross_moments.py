"""Moments of features: unbiased and as noisy as they say, told from noise, and those of a copy at most a copy's."""

import numpy as np
import pytest

from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables import cross_moments as cross_moments_module
from sfumato.methods.tables.cross_moments import _pooled, cross_moments
from sfumato.methods.tables.features import ColumnShares, level_features, number_features
from sfumato.methods.tables.moment_entries import Entries

N = 12_000
EVEN = np.full(24, 1 / 24)


def rng(seed=0):
    return np.random.default_rng(seed)


def symmetric(d, std, seed, count=1):
    """Noise as a release of symmetric matrices has it."""
    noise = rng(seed).standard_normal((count, d, d)) * std / np.sqrt(2)
    upper = np.triu(noise)
    return upper + np.swapaxes(upper, 1, 2) - np.einsum("kij,ij->kij", upper, np.eye(d)) * (2 - np.sqrt(2))


def features_of(n_columns, orders=1, n_labels=0):
    numbers = [number_features(EVEN, False, orders)] * n_columns
    return numbers + [level_features(np.array([0.5, 0.3, 0.2]))] * n_labels


def entries_of(features, numbers=None):
    numbers = len(features) if numbers is None else numbers
    shares = [EVEN if j < numbers else np.array([0.5, 0.3, 0.2]) for j in range(len(features))]
    runs = [np.arange(s.size) for s in shares]
    ordered = [len(r) if j < numbers else 0 for j, r in enumerate(runs)]
    columns = zip(shares, runs, features, ordered, strict=True)
    return Entries.of([ColumnShares(s, r, r, f, s[None], 0.0, n) for s, r, f, n in columns])


def gaussian_rows(n_columns, rho, n=N, seed=0):
    """Cells of numbers that all have a correlation with the first."""
    x = rng(seed).standard_normal((n, n_columns))
    x[:, 1:] = rho * x[:, :1] + np.sqrt(1 - rho**2) * x[:, 1:]
    ranks = x.argsort(axis=0).argsort(axis=0)
    return ranks * 24 // n


def records(features, cells):
    return np.concatenate([(f.values * np.sqrt(f.weights))[cells[:, j]] for j, f in enumerate(features)], axis=1)


def pooled_release(features, cells, std, seed=0):
    x = records(features, cells)
    return Noisy((x.T @ x)[None] + symmetric(x.shape[1], std, seed), std, symmetric=True)


def found(features, noisy, *, low_rank=False, n=N):
    return cross_moments(noisy, np.ones(1), entries_of(features), np.array([float(n)]), 0.0, low_rank=low_rank)


def exact(features, cells):
    x = np.concatenate([f.values[cells[:, j]] for j, f in enumerate(features)], axis=1)
    return x.T @ x / len(x)


def off_diagonal(matrix, entries):
    return matrix[entries.owner[:, None] != entries.owner]


class TestPooling:
    WEIGHTS = np.sqrt(np.array([0.75, 0.25, 0.25]))

    def test_both_ways_of_release_are_pooled_without_bias_and_as_noisy_as_told(self):
        """The variance off the diagonal, over 2,000 releases."""
        d, std = 4, 3.0
        truth = rng().standard_normal((2, d, d))
        truth += np.swapaxes(truth, 1, 2)
        value = np.concatenate([truth.sum(axis=0)[None], truth]) * self.WEIGHTS[:, None, None]
        values, told = [], 0.0
        for seed in range(2_000):
            pooled, told = _pooled(Noisy(value + symmetric(d, std, seed, 3), std, symmetric=True), self.WEIGHTS)
            values.append(pooled)
        error = (np.array(values) - truth.sum(axis=0))[:, ~np.eye(d, dtype=bool)]
        assert np.abs(error.mean(axis=0)).max() < 4.5 * np.sqrt(told / 2_000)
        assert error.var() == pytest.approx(told, rel=0.05)
        alone = std**2 / 2 / self.WEIGHTS[0] ** 2
        assert told < 0.9 * alone

    def test_without_noise_it_is_the_pooled_one(self):
        value = np.stack([np.eye(2) * w for w in self.WEIGHTS])
        pooled, variance = _pooled(Noisy(value, 0.0, symmetric=True), self.WEIGHTS)
        np.testing.assert_allclose(pooled, np.eye(2))
        assert variance == 0


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("orders", [1, 3])
def test_without_noise_moments_are_the_records(orders, low_rank):
    features, cells = features_of(4, orders), gaussian_rows(4, 0.7)
    made = found(features, pooled_release(features, cells, 0.0), low_rank=low_rank)
    entries = entries_of(features)
    expected = off_diagonal(exact(features, cells), entries)
    np.testing.assert_allclose(off_diagonal(made.means, entries), expected, atol=1e-9)
    assert not made.spreads.any()


@pytest.mark.slow
def test_variances_are_those_of_the_noise():
    features, cells = features_of(3, 3, 1), gaussian_rows(4, 0.5)
    cells[:, 3] %= 3
    entries = entries_of(features, 3)
    x = records(features, cells)
    sums, errors = (x.T @ x)[None], []
    for seed in range(200):
        noisy = Noisy(sums + symmetric(x.shape[1], 50.0, seed), 50.0, symmetric=True)
        made = cross_moments(noisy, np.ones(1), entries, np.array([float(N)]), 0.0, low_rank=False)
        errors.append(made.noisy)
    seen = off_diagonal(np.var(errors, axis=0), entries) / off_diagonal(made.variances, entries)
    # 200 releases: a variance is known to 10 %; squares of columns are noisy themselves
    assert seen.mean() == pytest.approx(1.0, abs=0.03)
    assert 0.6 < seen.min() <= seen.max() < 1.5


@pytest.mark.parametrize("orders", [1, 3])
def test_shrunk_moments_are_nearer_than_noisy_ones(orders):
    features, cells = features_of(8, orders), gaussian_rows(8, 0.3)
    entries, truth, risk = entries_of(features), exact(features, cells), np.zeros(2)
    for seed in range(5):
        made = found(features, pooled_release(features, cells, 1_500.0, seed))
        risk += [np.mean(off_diagonal(m - truth, entries) ** 2) for m in (made.means, made.noisy)]
    assert risk[0] < 0.9 * risk[1]


def test_moments_of_noise_alone_are_nearly_none():
    features, cells = features_of(12, 1), rng().integers(0, 24, (N, 12))
    made = found(features, pooled_release(features, cells, 2_000.0))
    entries = entries_of(features)
    assert np.sqrt(np.mean(off_diagonal(made.means, entries) ** 2)) < 0.2 * np.sqrt(made.variances.mean())


@pytest.mark.parametrize("orders", [1, 3])
@pytest.mark.parametrize("std", [100.0, 1_500.0])
def test_a_near_copy_is_no_more_than_a_copy(std, orders):
    """Noise takes a moment of features of variance 1 beyond 1, which no table has."""
    features, cells = features_of(2, orders), gaussian_rows(2, 0.995)
    beyond, scores = 0, []
    for seed in range(20):
        made = found(features, pooled_release(features, cells, std, seed), low_rank=orders == 1)
        beyond += np.abs(made.noisy).max() > 1
        scores.append(made.means[0, orders])
        assert np.abs(made.means).max() < 1.02  # of 1,024 simulated rows
    assert beyond > 3
    assert np.mean(scores) > (0.98 if std == 100.0 else 0.85)


def test_a_copulas_other_moments_follow_from_its_correlation():
    """Noise drowns the moments of squares; the correlation, which it does not, says what they are."""
    features, cells = features_of(2, 3), gaussian_rows(2, 0.8)
    entries, truth, errors = entries_of(features), exact(features, cells), np.zeros(2)
    for seed in range(10):
        made = found(features, pooled_release(features, cells, 300.0, seed))
        errors += [np.mean(off_diagonal(m - truth, entries) ** 2) for m in (made.means, made.noisy)]
    assert errors[0] < errors[1] / 3
    assert abs(truth[1, 4]) > 0.4


def test_what_clipping_took_is_made_up_for():
    """Records a tenth too long, all clipped by the same factor: squares of the columns tell."""
    features, cells = features_of(4, 1), gaussian_rows(4, 0.6)
    entries, truth = entries_of(features), exact(features, cells)
    noisy = pooled_release(features, cells, 20.0)
    clipped = Noisy(noisy.value * 0.8, noisy.noise_std, symmetric=True)
    for release in (noisy, clipped):
        made = found(features, release)
        assert np.abs(off_diagonal(made.means - truth, entries)).max() < 0.02


def test_few_columns_that_go_together_are_seen_among_many():
    """30 columns that share one number, each pair's moment well below its noise: low rank shows it."""
    d = 30
    features = features_of(d, 1)
    x = rng().standard_normal((N, 1)) * 0.6 + 0.8 * rng(1).standard_normal((N, d))
    cells = x.argsort(axis=0).argsort(axis=0) * 24 // N
    entries, truth = entries_of(features), exact(features, cells)
    std = 5_000.0
    release = pooled_release(features, cells, std)
    errors = [
        np.mean(off_diagonal(found(features, release, low_rank=low_rank).means - truth, entries) ** 2)
        for low_rank in (True, False)
    ]
    assert errors[0] < errors[1] / 1.5
    assert errors[0] < np.mean(off_diagonal(truth, entries) ** 2) / 4


@pytest.mark.parametrize(("tied", "better"), [(True, 0.4), (False, 1.02)])
def test_labels_that_say_the_same_are_known_by_all_together(monkeypatch, tied, better):
    """Twelve columns of three labels that follow one number, or none: beside blocks by themselves."""
    features, errors, stated = features_of(0, n_labels=12), np.zeros(2), np.zeros(2)
    x = tied * rng().standard_normal((N, 1)) + 0.4 * rng(1).standard_normal((N, 12))
    cells = np.digitize(x.argsort(axis=0).argsort(axis=0) / N, [0.5, 0.8])
    entries, truth = entries_of(features, 0), exact(features, cells)
    for seed in range(5):
        release = pooled_release(features, cells, 300.0, seed)
        for place in (0, 1):
            if place:
                monkeypatch.setattr(cross_moments_module, "_set_shared", lambda *_: None)
            moments = cross_moments(release, np.ones(1), entries, np.array([float(N)]), 0.0, low_rank=False)
            errors[place] += np.mean(off_diagonal(moments.means - truth, entries) ** 2)
            stated[place] += np.mean(off_diagonal(moments.spreads, entries))
        monkeypatch.undo()
    assert errors[0] < better * errors[1]
    if tied:
        np.testing.assert_allclose(stated, errors, rtol=0.2)


@pytest.mark.parametrize("n_classes", [1, 2])
def test_a_level_that_no_record_has_has_no_moments(n_classes):
    """What noise leaves of it among what columns share, divided by its weight, would be ±1."""
    d, shares = 30, np.array([0.6, 0.4, 1e-7])
    x = rng().standard_normal((N, 1)) * 0.6 + 0.8 * rng(1).standard_normal((N, d + 1))
    cells = x.argsort(axis=0).argsort(axis=0) * 24 // N
    cells[:, d] = cells[:, d] < 10
    features = [*features_of(d, 1), level_features(shares)]
    runs = [np.arange(24)] * d + [np.arange(3)]
    columns = zip([*[EVEN] * d, shares], runs, features, [24] * d + [0], strict=True)
    entries = Entries.of([ColumnShares(s, r, r, f, s[None], 0.0, n) for s, r, f, n in columns])
    y, std = records(features, cells), 2_000.0
    weight = 0.0 if n_classes == 1 else 0.5
    if weight:
        y = np.concatenate([y, np.sqrt(weight) * np.eye(2)[np.arange(N) % 2]], axis=1)
    parts = [y] if n_classes == 1 else [y, y[::2], y[1::2]]
    value = np.stack([part.T @ part for part in parts]) + symmetric(y.shape[1], std, 0, len(parts))
    counts, weights = np.full(n_classes, N / n_classes), np.ones(len(parts))
    moments = cross_moments(Noisy(value, std, symmetric=True), weights, entries, counts, weight, low_rank=True)
    places = np.flatnonzero((entries.roots**2 < 1e-3) & (entries.owner == d))
    assert places.size
    assert np.abs(moments.means[places]).max() < 0.05
    assert np.abs(moments.by_class[:, places]).max(initial=0.0) < 0.05
    shared = off_diagonal(moments.means - exact(features, cells), entries)
    assert np.sqrt(np.mean(shared[np.abs(shared) < 1] ** 2)) < 0.1


class TestClasses:
    """A table of two classes, whose moments are of opposite signs."""

    COUNTS = np.array([0.3, 0.7]) * N
    WEIGHTS = np.sqrt(np.array([0.75, 0.25, 0.25]))
    CLASS_WEIGHT = 0.5

    def made(self, std, *, low_rank=False, clipped=1.0, seed=0):
        features = features_of(2, 1)
        members = [
            gaussian_rows(2, rho, int(n), seed=k)
            for k, (rho, n) in enumerate(zip((0.6, -0.6), self.COUNTS, strict=True))
        ]
        x = [
            np.concatenate([records(features, m), np.tile(np.sqrt(0.5) * np.eye(2)[k], (len(m), 1))], axis=1)
            for k, m in enumerate(members)
        ]
        own = np.array([clipped * part.T @ part for part in x])
        value = np.concatenate([own.sum(axis=0)[None], own]) * self.WEIGHTS[:, None, None]
        noisy = Noisy(value + symmetric(4, std, seed, 3), std, symmetric=True)
        return (
            cross_moments(noisy, self.WEIGHTS, entries_of(features), self.COUNTS, self.CLASS_WEIGHT, low_rank=low_rank),
            [exact(features, m)[0, 1] for m in members],
            [records(features, m).mean(axis=0) for m in members],
        )

    @pytest.mark.parametrize("low_rank", [False, True])
    def test_each_class_has_its_own(self, low_rank):
        made, moments, means = self.made(0.0, low_rank=low_rank)
        np.testing.assert_allclose(made.by_class[:, 0, 1], moments, atol=1e-9)
        np.testing.assert_allclose(made.classes.means, means, atol=1e-9)
        assert made.means[0, 1] == pytest.approx(0.3 * moments[0] + 0.7 * moments[1], abs=1e-6)

    def test_noise_of_each_is_told(self):
        made = [self.made(20.0, seed=seed)[0] for seed in range(150)]
        for k in (0, 1):
            seen = np.var([m.by_class[k, 0, 1] for m in made])
            assert seen == pytest.approx(made[0].class_variances[k, 0, 1], rel=0.35)
            seen = np.var([m.classes.means[k, 0] for m in made])
            assert seen == pytest.approx(np.mean([m.classes.variances[k, 0] for m in made]), rel=0.35)

    def test_means_of_clipped_records_are_those_of_the_class(self):
        whole, short = (self.made(0.0, clipped=clipped)[0].classes.means for clipped in (1.0, 0.8))
        np.testing.assert_allclose(short, whole, atol=1e-9)
