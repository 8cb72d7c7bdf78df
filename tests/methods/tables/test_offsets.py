"""Columns that lie elsewhere than the first release said."""

import numpy as np
import pytest

from sfumato.methods.tables.features import ColumnShares, Waves, level_features, number_features
from sfumato.methods.tables.offsets import constant_weight, moved, offsets_of, tilted


def rng(seed=0):
    return np.random.default_rng(seed)


def a_number(n=12, *, missing=False, seed=0):
    """A column of n cells, one run each, and perhaps one of missing."""
    shares = rng(seed).dirichlet(np.full(n + missing, 3.0))
    cells = np.arange(n + missing)
    return ColumnShares(shares, cells, cells, number_features(shares, missing, Waves(1, 0.8)), 0.0, n)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("offset", [-0.6, 0.2])
def test_leading_features_have_the_offset_as_their_mean(missing, offset):
    column = a_number(missing=missing)
    offsets = np.zeros(column.features.size)
    offsets[0] = offset
    (found,) = moved([column], offsets)
    assert found.shares.sum() == pytest.approx(column.shares.sum())
    assert found.shares @ column.features.values[:, 0] == pytest.approx(offset, abs=0.02 if missing else 1e-6)
    np.testing.assert_allclose(found.features.values, column.features.values - offsets)
    if missing:
        assert found.shares[-1] == column.shares[-1]


def test_no_offset_changes_nothing_and_labels_stay_where_they_are():
    column, shares = a_number(), np.array([0.5, 0.3, 0.2])
    labels = ColumnShares(shares, np.arange(3), np.arange(3), level_features(shares), 0.0, 0)
    first, second = moved([column, labels], np.zeros(3))
    assert first is column
    assert second is labels


def test_offsets_are_read_off_the_entry_of_all_rows():
    columns, weight = [a_number(seed=j) for j in range(40)], 2.0
    true = 0.5 * rng(1).standard_normal(40)
    roots, left = np.sqrt(np.concatenate([c.features.weights for c in columns])), 0.8
    moments = np.zeros((41, 41))
    moments[-1, :-1] = np.sqrt(weight) * left * roots * true
    moments[-1, -1] = left * weight
    np.testing.assert_allclose(offsets_of(moments, 0.0, weight, columns), np.clip(true, -1.5, 1.5))
    noisy = moments + 0.1 * rng(2).standard_normal(moments.shape)
    found = offsets_of(noisy, 0.01, weight, columns)
    assert ((found - true) ** 2).mean() < 0.03
    assert not offsets_of(np.diag(np.ones(41)), 1e6, weight, columns).round(3).any()


def test_the_entry_is_longer_where_columns_are_many_and_noise_is_great():
    assert constant_weight(0.001, 10) < constant_weight(0.01, 100) < constant_weight(0.1, 100)


class TestTilted:
    values = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])

    @pytest.mark.parametrize("mean", [-1.5, 0.0, 0.3, 1.9])
    def test_the_mean_is_met(self, mean):
        shares = np.array([0.2, 0.0, 0.5, 0.2, 0.3])
        found = tilted(shares, self.values, mean)
        assert found.sum() == pytest.approx(shares.sum())
        assert found @ self.values / found.sum() == pytest.approx(mean)
        assert found[1] == 0

    @pytest.mark.parametrize("mean", [-9.0, 9.0])
    def test_beyond_all_values_it_is_at_the_last(self, mean):
        found = tilted(np.full(5, 0.2), self.values, mean)
        assert np.sign(mean) * (found @ self.values) > 1.99

    @pytest.mark.parametrize("shares", [np.zeros(5), np.eye(5)[2]])
    def test_shares_of_one_value_or_none_stay(self, shares):
        np.testing.assert_array_equal(tilted(shares, self.values, 0.7), shares)
