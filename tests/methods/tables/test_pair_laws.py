"""Labels that are kept: seen in all labels together, single moments win as noise goes, moments are those of a law."""

import numpy as np
import pytest

from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cross_moments import cross_moments
from sfumato.methods.tables.features import ColumnShares, level_features
from sfumato.methods.tables.moment_entries import Entries
from sfumato.methods.tables.pair_laws import Copy, lawful_moments

N, LABELS = 12_000, 40
DROWNING = 160.0  # noise in which each single moment is lost


def rng(seed):
    return np.random.default_rng(seed)


def labels(kept, shifted, seed):
    """Two columns, the second with these chances the first, or the label after it."""
    draws = rng(seed)
    shares = np.arange(LABELS, 0, -1) / (LABELS * (LABELS + 1) / 2)
    first, apart = draws.choice(LABELS, (2, N), p=shares)
    u = draws.random(N)
    second = np.where(u < kept, first, np.where(u < kept + shifted, (first + 1) % LABELS, apart))
    return np.stack([first, second], axis=1)


def symmetric(d, std, draws):
    upper = np.triu(draws.standard_normal((d, d)) * std / np.sqrt(2))
    return upper + upper.T - np.diag(np.diagonal(upper)) * (2 - np.sqrt(2))


class Made:
    """Moments of both columns from a noisy release, with a copy as prior and without."""

    def __init__(self, kept, shifted, std, seed):
        cells = labels(kept, shifted, seed)
        self.shares = [np.bincount(column, minlength=LABELS) / N for column in cells.T]
        features = [level_features(shares) for shares in self.shares]
        self.values = [f.values for f in features]
        vectors = np.concatenate([f.values[column] for f, column in zip(features, cells.T, strict=True)], axis=1)
        roots = np.sqrt(np.concatenate([f.weights for f in features]))
        scaled = vectors * roots
        value = scaled.T @ scaled + (symmetric(scaled.shape[1], std, rng(seed + 100)) if std else 0.0)
        self.noisy = Noisy(value[None], std, symmetric=True)
        self.features = features
        q = LABELS - 1
        self.truth = (vectors.T @ vectors / N)[:q, q:]
        self.worth = np.outer(roots[:q], roots[q:]) ** 2  # so that rare labels do not decide

    @property
    def copy(self):
        return Copy.of((0, 1), (self.shares[0] + self.shares[1]) / 2, *self.values)

    def moments(self, copies=True):
        levels = np.arange(LABELS)
        columns = zip(self.shares, self.features, strict=True)
        columns = [ColumnShares(s, levels, levels, f, s[None], 0.0, 0) for s, f in columns]
        entries = Entries.of(columns, [self.copy] * copies)
        return cross_moments(self.noisy, np.ones(1), entries, np.array([float(N)]), 0.0, low_rank=False)

    def error(self, copies=True):
        """Squared error as a part of the squared truth."""
        q = LABELS - 1
        missed = (self.moments(copies).means[:q, q:] - self.truth) ** 2
        return float((missed * self.worth).sum() / (self.truth**2 * self.worth).sum())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_all_labels_share_stands_out_of_the_noise_of_each(seed):
    made = Made(0.4, 0.0, DROWNING, seed)
    assert made.error() < 0.15
    assert made.error(copies=False) > 0.7


def test_single_moments_win_over_the_law_of_a_copy_as_noise_goes():
    """Of labels that often go on to the next one, which is no copy."""
    found = [np.mean([Made(0.3, 0.4, std, seed).error() for seed in (1, 2)]) for std in (DROWNING, 10.0, 1.0, 0.01)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 1e-6


@pytest.mark.parametrize("std", [1.0, 10.0, DROWNING])
def test_the_prior_of_a_copy_costs_little_where_it_is_wrong(std):
    made = [Made(0.3, 0.4, std, seed) for seed in (1, 2, 3)]
    assert np.mean([m.error() for m in made]) < 1.6 * np.mean([m.error(copies=False) for m in made]) + 1e-3


def test_without_noise_moments_are_the_records():
    made = Made(0.4, 0.1, 0.0, 1)
    np.testing.assert_array_equal(made.moments().means, made.moments(copies=False).means)
    np.testing.assert_allclose(made.moments().means[: LABELS - 1, LABELS - 1 :], made.truth, atol=1e-9)


def test_labels_that_are_not_kept_are_as_without():
    """Nineteen of twenty releases of independent columns change in no bit."""
    changed = 0
    for seed in range(1, 21):
        made = Made(0.0, 0.0, DROWNING, seed)
        changed += not np.array_equal(made.moments().means, made.moments(copies=False).means)
    assert changed <= 3


def test_a_fit_allows_for_no_noise_in_labels_that_are_kept_and_in_all_others():
    made = Made(0.4, 0.0, DROWNING, 1)
    q = LABELS - 1
    with_copy, without = made.moments(), made.moments(copies=False)
    assert not with_copy.spreads[:q, q:].any()
    assert not with_copy.variances[q:, :q].any()
    assert (without.spreads[:q, q:] > 0).all()
    np.testing.assert_array_equal(with_copy.spreads[:q, :q], without.spreads[:q, :q])


class TestKept:
    def test_its_noise_is_what_the_rule_thinks(self):
        """ρ is unbiased where it is far from 0, with the variance 1 ÷ Σ T²/v."""
        copy = Copy((0, 1), np.eye(30))
        variances = np.full((30, 30), 0.3)
        draws = rng(0)
        found = [
            copy.kept(0.6 * np.eye(30) + np.sqrt(0.3) * draws.standard_normal((30, 30)), variances) for _ in range(400)
        ]
        assert np.mean(found) == pytest.approx(0.6 - 0.01 / 0.6, abs=0.02)
        assert np.std(found) == pytest.approx(0.1, rel=0.15)

    def test_opposites_and_columns_of_one_label_are_none(self):
        assert Copy((0, 1), np.eye(3)).kept(-np.eye(3), np.full((3, 3), 1e-3)) == 0
        assert Copy((0, 1), np.zeros((0, 0))).kept(np.zeros((0, 0)), np.zeros((0, 0))) == 0


class TestLawfulMoments:
    def test_moments_of_a_law_come_back(self):
        made = Made(0.3, 0.3, 0.0, 1)
        found = lawful_moments(made.truth, (made.shares[0], made.shares[1]), (made.values[0], made.values[1]))
        np.testing.assert_allclose(found, made.truth, atol=1e-9)

    def test_others_become_moments_of_a_law(self):
        """The law that has them has no chance below 0."""
        made = Made(0.3, 0.3, 0.0, 1)
        shares, values = (made.shares[0], made.shares[1]), (made.values[0], made.values[1])
        asked = np.clip(made.truth + 0.5 * rng(0).standard_normal(made.truth.shape), -1, 1)

        def least(moments):
            return float((1 + values[0] @ moments @ values[1].T).min())

        found = lawful_moments(asked, shares, values)
        assert least(asked) < -1
        assert least(found) > -0.01
