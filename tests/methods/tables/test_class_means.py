"""Class means from noisy products with an indicator: exact without noise, offsets and shared shifts found in it."""

import numpy as np
import pytest

from sfumato.methods.tables.class_means import ClassMeans

COUNTS = np.array([300.0, 700.0])
PARTS = COUNTS / COUNTS.sum()
WEIGHT = 4.0


def rng(seed=0):
    return np.random.default_rng(seed)


def whole_of(features, classes, roots):
    """The second moments of features times their roots, and of indicators."""
    vectors = np.concatenate([features * roots, np.sqrt(WEIGHT) * np.eye(classes.max() + 1)[classes]], axis=1)
    return vectors.T @ vectors


def test_without_noise_they_are_the_rows_own():
    classes = np.repeat([0, 1], COUNTS.astype(int))
    features, roots = rng().standard_normal((1_000, 5)) + classes[:, None], rng(1).random(5) + 0.1
    found = ClassMeans.of(whole_of(features, classes, roots), 0.0, roots, COUNTS, WEIGHT)
    np.testing.assert_allclose(found.means, [features[classes == k].mean(axis=0) for k in (0, 1)])
    assert not found.variances.any()


def test_without_a_target_there_are_none():
    found = ClassMeans.of(np.eye(5), 1.0, np.ones(5), np.array([9.0]), 0.0)
    assert found.means.shape == found.variances.shape == (0, 5)
    assert not found.offsets(np.arange(5), np.array([9.0])).any()


def noisy(means, stds, seed):
    """Means with noise of each class's deviation."""
    deviations = np.repeat(np.array(stds)[:, None], means.shape[1], axis=1)
    return ClassMeans(means + deviations * rng(seed).standard_normal(means.shape), deviations**2)


def test_offsets_are_found_and_noise_is_not():
    scores, true = np.arange(0, 400, 2), 0.4 * rng().standard_normal(400)
    shifts = np.stack([0.7 * np.ones(400), -0.3 * np.ones(400)])
    stds = (0.3, 0.1)
    found = noisy(shifts + true, stds, 1).offsets(scores, COUNTS)
    assert not found[1::2].any()
    noise = np.sqrt(PARTS**2 @ np.array(stds) ** 2)
    assert np.sqrt(np.mean((found - true)[scores] ** 2)) < noise
    none = noisy(shifts, stds, 2).offsets(scores, COUNTS)
    assert np.sqrt(np.mean(none**2)) < noise / 4


def test_the_noise_of_means_less_their_offsets_is_what_it_is_said_to_be():
    """Offsets hold a part of the same noise: of a large class most of it, of a small one less."""
    columns = 4_000
    offsets = 0.5 * rng(3).standard_normal(columns)
    classes = noisy(np.stack([offsets, offsets]), (0.2, 0.1), 4)
    found = classes.centred(PARTS @ classes.means, COUNTS)
    spread = found.means.var(axis=1)
    np.testing.assert_allclose(found.variances.mean(axis=1), spread, rtol=0.1)
    # were a mean's own noise still said to be in it, this would be as far off as the test can see
    assert spread[1] < 0.5 * classes.variances[1].mean()
    assert classes.centred(np.zeros(columns), COUNTS) is classes


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_go_together_shift_together(seed):
    """300 columns driven by three factors, whose shift noise hides in every single one."""
    d, std = 300, 0.3
    loadings = rng(seed).standard_normal((d, 3)) / np.sqrt(3)
    shift = 0.3 * loadings @ rng(seed + 1).standard_normal(3) + 0.02 * rng(seed + 2).standard_normal(d)
    before = noisy(np.stack([shift, -shift]), (std, std / 2), seed + 3)
    after = before.shifted_together(loadings @ loadings.T, np.ones(d))
    assert (after.variances <= before.variances * (1 + 1e-9)).all()
    errors = [np.sqrt(np.mean((found.means[0] - shift) ** 2)) for found in (before, after)]
    assert errors[1] < errors[0] / 3
    # a measurement of known noise: errors are of the size they are said to be
    ratio = np.mean((after.means[0] - shift) ** 2) / after.variances[0].mean()
    assert 0.1 < ratio < 3.0


def test_shifts_of_columns_by_themselves_are_left_alone():
    d = 300
    shift = rng().standard_normal(d)
    before = noisy(np.stack([shift, -shift]), (0.1, 0.1), 1)
    together = np.outer(np.ones(d), np.ones(d))
    after = before.shifted_together(together, np.ones(d))
    np.testing.assert_allclose(after.means[0], before.means[0], atol=0.05)


def test_weights_are_taken_off():
    """Entries of little weight have more noise in units of the feature, and are measured so."""
    d, std = 200, 0.2
    roots = np.where(np.arange(d) % 2, 1.0, 0.5)
    loadings = rng(5).standard_normal((d, 1))
    shift = 0.3 * loadings[:, 0]
    raw = shift + std / roots * rng(6).standard_normal(d)
    before = ClassMeans(raw[None], np.broadcast_to(std**2 / roots**2, (1, d)))
    after = before.shifted_together(np.outer(loadings * roots[:, None], loadings * roots[:, None]), roots)
    assert np.sqrt(np.mean((after.means[0] - shift) ** 2)) < np.sqrt(np.mean((raw - shift) ** 2)) / 2


def test_without_a_common_covariance_nothing_changes():
    classes = noisy(np.zeros((2, 6)), (0.1, 0.1), 0)
    assert classes.shifted_together(np.zeros((6, 6)), np.ones(6)) is classes
