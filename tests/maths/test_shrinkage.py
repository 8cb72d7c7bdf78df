"""Shrunk blocks are nearer the truth than the noisy ones and than zeros, and say how far they are."""

import numpy as np
import pytest

from sfumato.maths.gaussian import project_to_simplex
from sfumato.maths.shrinkage import likely_counts, shrunk, shrunk_together

BLOCKS, SIZE = 400, 6
PLACES = np.repeat(np.arange(BLOCKS), SIZE)
SIGNALS = {
    "sparse": lambda rng: rng.normal(0, 0.5, BLOCKS) * (rng.random(BLOCKS) < 0.05),
    "dense and weak": lambda rng: rng.normal(0, 0.05, BLOCKS),
    "dense": lambda rng: rng.normal(0, 0.2, BLOCKS),
    "strong": lambda rng: rng.normal(0, 1.0, BLOCKS),
}


def signal(name, seed):
    rng = np.random.default_rng(seed)
    return (SIGNALS[name](rng)[:, None] * rng.choice([-1.0, 1.0], (BLOCKS, SIZE))).ravel()


def noisy(truth, std, seed):
    return truth + std * np.random.default_rng(seed + 1000).standard_normal(truth.size)


def risks(name, std, seeds=range(3)):
    found = np.zeros(3)
    for seed in seeds:
        truth = signal(name, seed)
        values = noisy(truth, std, seed)
        means, _ = shrunk(values, np.full(values.size, std**2), PLACES)
        found += [np.mean((estimate - truth) ** 2) for estimate in (means, values, np.zeros_like(truth))]
    return found


@pytest.mark.parametrize("name", SIGNALS)
def test_the_mean_beats_the_noisy_values_and_zeros(name):
    ours, raw, zero = risks(name, 0.1)
    assert ours < 0.97 * raw
    assert ours < 0.9 * zero


def test_few_strong_blocks_are_kept_and_the_others_dropped():
    ours, raw, zero = risks("sparse", 0.1)
    assert ours < raw / 8
    assert ours < zero / 8


def test_the_variance_is_the_risk():
    for name in ("sparse", "dense", "dense and weak"):
        said, risk = [], []
        for seed in range(5):
            truth = signal(name, seed)
            means, variances = shrunk(noisy(truth, 0.1, seed), np.full(truth.size, 0.01), PLACES)
            said.append(variances.mean())
            risk.append(np.mean((means - truth) ** 2))
        assert np.mean(said) == pytest.approx(np.mean(risk), rel=0.25)


@pytest.mark.parametrize("name", SIGNALS)
def test_less_noise_gives_the_values(name):
    truth = signal(name, 0)
    worst = [
        np.abs(shrunk(noisy(truth, std, 0), np.full(truth.size, std**2), PLACES)[0] - truth).max()
        for std in (0.1, 1e-3, 1e-5)
    ]
    assert worst[2] < 1e-4 < worst[0]
    # scales begin at 2e-5 squared: below it a value may be taken for 0
    assert worst[1] < 0.02


def test_without_noise_nothing_changes():
    truth = signal("dense", 0)
    means, variances = shrunk(truth, np.zeros(truth.size), PLACES)
    np.testing.assert_array_equal(means, truth)
    assert not variances.any()
    assert means is not truth


def test_noise_alone_is_nearly_nothing():
    for seed in range(5):
        values = noisy(np.zeros(BLOCKS * SIZE), 0.1, seed)
        means, _ = shrunk(values, np.full(values.size, 0.01), PLACES)
        assert np.sqrt(np.mean(means**2)) < 0.1 * 0.1


def test_a_block_is_judged_as_a_whole():
    """An entry of one deviation is kept beside strong ones, and dropped beside weak ones."""
    values = np.full((200, 20), 0.0)
    values[:100] = np.random.default_rng(0).normal(0, 1, (100, 20))
    values[100:] = np.random.default_rng(1).normal(0, 0.1, (100, 20))
    values[[0, 150], 0] = 0.1
    means, _ = shrunk(values.ravel(), np.full(values.size, 0.01), np.repeat(np.arange(200), 20))
    kept = means.reshape(values.shape)[[0, 150], 0] / 0.1
    assert kept[0] > 0.95
    assert kept[1] < 0.2


def test_noisier_entries_are_shrunk_more():
    rng = np.random.default_rng(0)
    truth = rng.normal(0, 0.3, 2000)
    variances = np.where(np.arange(2000) % 2, 0.01, 1.0)
    means, left = shrunk(truth + np.sqrt(variances) * rng.standard_normal(2000), variances, np.arange(2000) // 2)
    assert np.mean((means - truth)[1::2] ** 2) < 0.011
    assert np.mean((means - truth)[::2] ** 2) < 0.1
    assert (left <= variances + 0.3).all()


def test_any_names_of_blocks_do():
    truth = signal("dense", 0)
    values, variances = noisy(truth, 0.1, 0), np.full(truth.size, 0.01)
    first = shrunk(values, variances, PLACES)
    for names in (10**9 - 7 * PLACES, PLACES * 3 + 1):
        np.testing.assert_allclose(shrunk(values, variances, names), first, atol=1e-12)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_few_entries(size):
    means, variances = shrunk(np.full(size, 0.3), np.full(size, 0.01), np.zeros(size, dtype=int))
    assert means.shape == variances.shape == (size,)
    assert (means >= 0).all()
    assert (means <= 0.3).all()


@pytest.mark.parametrize("scale", [1e-12, 1e6, 1e150])
def test_absurd_values_are_numbers(scale):
    values = scale * np.random.default_rng(0).standard_normal(60)
    means, variances = shrunk(values, np.full(60, 0.01), np.arange(60) // 6)
    assert np.isfinite(means).all()
    assert np.isfinite(variances).all()
    assert (np.abs(means) <= np.abs(values)).all()


def zipf(levels, n=5_000):
    shares = 1 / np.arange(1, levels + 1)
    return n * shares / shares.sum()


class TestLikelyCounts:
    @pytest.mark.parametrize("levels", [40, 250])
    def test_rare_levels_take_less_of_the_noise(self, levels):
        """Beside the usual way, clipping at 0 and subtracting until the sum is right."""
        counts, errors = zipf(levels), []
        for seed in range(10):
            noisy = counts + 40.0 * np.random.default_rng(seed).standard_normal(levels)
            likely = project_to_simplex(likely_counts(noisy, 40.0), counts.sum())
            clipped = project_to_simplex(noisy, counts.sum())
            errors.append([np.abs(found - counts).sum() for found in (likely, clipped)])
        ours, theirs = np.mean(errors, axis=0)
        assert ours < (0.9 if levels > 100 else 1.0) * theirs

    def test_they_are_the_counts_as_noise_vanishes(self):
        counts = zipf(60)
        for std, far in ((10.0, 10.0), (1.0, 1.5), (1e-3, 1e-2)):
            noisy = counts + std * np.random.default_rng(0).standard_normal(60)
            assert np.abs(likely_counts(noisy, std) - counts).mean() < far
        np.testing.assert_array_equal(likely_counts(np.array([-1.0, 3.0]), 0.0), [0.0, 3.0])

    @pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
    def test_any_counts_have_a_posterior(self, scale):
        noisy = scale * np.random.default_rng(1).standard_normal(50)
        found = likely_counts(noisy, 1.0)
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        np.testing.assert_allclose(likely_counts(np.full(30, -5.0), 1.0).max(), 0.0, atol=0.5)

    def test_a_hundred_thousand_levels(self):
        """In bounded memory, and each as it would be among fewer of the same law."""
        rng = np.random.default_rng(2)
        counts = np.where(rng.random(100_000) < 0.01, 400.0, 2.0)
        noisy = counts + 30.0 * rng.standard_normal(counts.size)
        found = likely_counts(noisy, 30.0)
        some = likely_counts(noisy[:400], 30.0)
        assert np.abs(found - counts).mean() < 3.5
        assert np.abs(found[:400] - some).mean() < 2.0
        assert (np.diff(found[np.argsort(noisy)]) >= -1e-9).all()


@pytest.mark.parametrize(
    ("spread", "left"), [(0.0, 40**-0.5), (30.0, 1.0), (0.4, (0.16 / 1.16 + 1 / 1.16 / 40) ** 0.5)]
)
def test_columns_of_a_kind_say_the_noise_that_is_left_of_their_counts(spread: float, left: float) -> None:
    rng = np.random.default_rng(0)
    truth = 100 + spread * rng.standard_normal((40, 50))
    counts = list(truth + rng.standard_normal(truth.shape))
    alone = rng.standard_normal(50)
    shrunk_counts, stds = shrunk_together([*counts, alone], 1.0, [*["alike"] * 40, "alone"])
    error = np.std(np.array(shrunk_counts[:40]) - truth)
    np.testing.assert_allclose(stds[:40], left, rtol=0.1)
    np.testing.assert_allclose(error, left, rtol=0.15)
    np.testing.assert_array_equal(shrunk_counts[40], alone)
    assert stds[40] == 1.0


def test_a_column_unlike_those_of_its_kind_is_left_alone():
    """And does not draw them to itself: 19 with one law, and one that is another by 24 deviations in two cells."""
    rng = np.random.default_rng(0)
    law = np.full(32, 100.0)
    counts = [law + rng.normal(size=32) for _ in range(19)]
    odd = law + 24.0 * (np.arange(32) == 3) - 24.0 * (np.arange(32) == 9) + rng.normal(size=32)
    found, stds = shrunk_together([*counts, odd], 1.0, ["alike"] * 20)
    np.testing.assert_array_equal(found[-1], odd)
    assert stds[-1] == 1.0
    assert max(np.abs(column - law).max() for column in found[:-1]) < 1.5
    assert (stds[:-1] < 0.6).all()
