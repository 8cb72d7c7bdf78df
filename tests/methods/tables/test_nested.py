"""Pairs of a label and the one before it: features, counts that agree with those of a row later, raked shares."""

import numpy as np
import pytest

from sfumato.columns.levels import LabelPair
from sfumato.methods.tables.nested import agreeing, nested_features, raked, sums_of

N = 4
GROUPS = LabelPair.of(N).groups


def law(seed: int = 0) -> np.ndarray:
    """P(label, label before or none); nothing is without a label."""
    return np.append(np.random.default_rng(seed).dirichlet(np.full(N * (N + 1), 0.5)), 0.0)


def test_codes_are_those_of_both_labels_and_groups_the_first():
    kind = LabelPair.of(N)
    labels, before = np.array([0, 1, 3, 3, N]), np.array([2, N, 0, N + 1, 1])
    codes = kind.codes(labels, before)
    assert codes.tolist() == [2, 5 + N, 15, 15 + N, N * (N + 1)]
    assert GROUPS[codes].tolist() == labels.tolist()
    assert kind.n_levels == GROUPS.size == N * (N + 1) + 1


def test_features_are_orthonormal_and_those_of_a_group_come_last():
    shares = law()
    features = nested_features(shares, GROUPS, 1.0)
    assert features.groups is GROUPS
    np.testing.assert_allclose(
        features.values.T @ (shares[:, None] * features.values), np.eye(features.size), atol=1e-6
    )
    np.testing.assert_allclose(shares @ features.values, 0, atol=1e-9)
    finer = features.values[:, features.size - features.finer :]
    # of the label alone they say nothing: shrunk to 0, what follows depends on the label alone
    np.testing.assert_allclose(sums_of(shares[:, None] * finer, GROUPS), 0, atol=1e-6)
    assert features.weights[: -features.finer].min() > 50 * features.weights[-features.finer :].max()


def test_a_label_that_never_was_and_one_group_alone():
    for shares in (np.append(np.eye(N * (N + 1))[3], 0.0), np.append(np.repeat([1.0, 0, 0, 0], N + 1) / (N + 1), 0.0)):
        features = nested_features(shares, GROUPS, 1.0)
        assert np.isfinite(features.values).all()
        assert np.isfinite(features.weights).all()


@pytest.mark.parametrize("std", [0.0, 3.0, 300.0])
def test_counts_agree_with_those_of_a_row_later(std):
    """Of a stationary chain they are nearer than they were; without noise they stay."""
    rng, n = np.random.default_rng(1), 20_000.0
    pairs = rng.dirichlet(np.full(N * N, 0.5)).reshape(N, N)  # P(label, label before)
    counts = np.append(np.column_stack([0.8 * pairs, 0.2 * pairs.sum(axis=1)]).ravel(), 0.0) * n
    later = np.zeros((N + 1, N + 1))
    later[:N, :N] = n * pairs.T
    noisy = counts + rng.normal(0, std, counts.size)
    better, left = agreeing(noisy, std, later + rng.normal(0, std / 3, later.shape), GROUPS)
    if not std:
        np.testing.assert_allclose(better, counts, atol=1e-9)
        return
    assert np.abs(better - counts).sum() < 0.75 * np.abs(noisy - counts).sum()
    assert (left <= std * (1 + 1e-9)).all()


def test_a_row_later_that_is_another_law_moves_little():
    rng, std = np.random.default_rng(2), 2.0
    counts = np.append(law(3)[:-1], 0.0) * 20_000
    noisy = counts + rng.normal(0, std, counts.size)
    better, _ = agreeing(noisy, std, 20_000 * rng.dirichlet(np.ones((N + 1) ** 2)).reshape(N + 1, N + 1), GROUPS)
    assert np.abs(better - noisy).max() < 2 * std


def test_raked_shares_have_the_groups_counts():
    shares, counts = law(4), 1_000 * law(5)
    out = raked(shares, counts, GROUPS)
    assert out.sum() == pytest.approx(1)
    np.testing.assert_allclose(sums_of(out, GROUPS)[:N], sums_of(counts, GROUPS)[:N] / counts.sum(), atol=1e-9)
    within = out[: N + 1] / out[: N + 1].sum()
    np.testing.assert_allclose(within, shares[: N + 1] / shares[: N + 1].sum())
