"""Rows are taken so that shares are as before, each once."""

import numpy as np
import pytest

from sfumato.columns.bounded import Values
from sfumato.rules.repair import chosen, raked, share_codes


def test_shares_come_back():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 30_000), rng.integers(0, 4, 30_000)
    moved_a = np.where((b == 1) & (rng.random(a.size) < 0.7), 2, a)
    weights = raked([(a, moved_a), (b, b)], np.ones(a.size), most=3.0)
    assert weights.mean() == pytest.approx(1)
    assert weights.max() <= 3.0 * 1.01
    for before, after in ((a, moved_a), (b, b)):
        share = np.bincount(after, weights) / weights.sum()
        np.testing.assert_allclose(share, np.bincount(before) / before.size, atol=2e-3)
    taken = chosen(weights, 10_000, rng)
    np.testing.assert_allclose(np.bincount(moved_a[taken]) / 1e4, np.bincount(a) / a.size, atol=0.02)


def test_what_rules_leave_no_row_of_stays_away():
    before, after = np.array([0, 1, 2, 2]), np.array([0, 1, 1, 1])
    weights = raked([(before, after)], np.ones(4), most=4.0)
    assert np.isfinite(weights).all()
    assert weights.mean() == pytest.approx(1)


@pytest.mark.parametrize("n", [0, 1, 7, 99, 100])
def test_each_place_once_and_in_order(n):
    rng = np.random.default_rng(1)
    for weights in (np.ones(100), rng.random(100) ** 8, np.r_[np.zeros(95), np.ones(5)], np.r_[1e9, np.ones(99)]):
        places = chosen(weights, n, rng)
        assert places.size == n
        assert (np.diff(places) > 0).all()


def test_likelihoods():
    weights = np.array([2.0, 1.0, 1.0, 0.5, 0.5, 1.0])
    rng = np.random.default_rng(2)
    counts = np.zeros(6)
    for _ in range(20_000):
        counts[chosen(weights, 2, rng)] += 1
    np.testing.assert_allclose(counts / 20_000, weights * 2 / weights.sum(), atol=0.015)


def test_numbers_by_bins_and_missing():
    values = np.arange(100.0)
    before = Values(values, np.zeros(100, dtype=bool))
    after = Values(values, values < 10)
    (old, new), *_ = share_codes({"x": before}, {"x": after}, ["x"])
    assert np.unique(old).size == 24
    assert (new[:10] == new.max()).all()
    assert new.max() not in old
