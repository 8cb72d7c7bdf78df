"""Columns that end at once: their ends are cut where counts say so, and tails that are there stay."""

import numpy as np
import pytest

from sfumato.methods.tables.histograms import estimated_shares
from sfumato.methods.tables.tails import NoisyCounts

ROWS, FINE, COARSE = 20_000, 27.0, 24.0


def estimated(shares, seed, fine=FINE, coarse=COARSE):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(ROWS, shares)
    runs = np.arange(shares.size) // 4
    noisy = NoisyCounts(
        counts + rng.normal(0, fine, counts.size) * bool(fine),
        fine,
        np.bincount(runs, counts) + rng.normal(0, coarse, runs[-1] + 1),
        coarse,
        runs,
    )
    return estimated_shares(noisy, ROWS, np.ones(counts.size, dtype=bool), np.ones(counts.size))


@pytest.mark.parametrize(("size", "first", "last"), [(51, 5, 45), (121, 18, 95), (80, 0, 40), (101, 60, 101)])
def test_nothing_lies_beyond_an_end(size, first, last):
    """Ages 25 to 64 in bounds of 20 to 70, adults of 18 to 94 in 0 to 120, and others."""
    shares = np.zeros(size)
    shares[first:last] = 1 / (last - first)
    outside = [1 - estimated(shares, seed)[first:last].sum() for seed in range(10)]
    assert np.mean(outside) < 0.003
    assert max(outside) < 0.02


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3])
def test_a_tail_that_is_there_stays(rate):
    shares = np.exp(-rate * np.arange(120.0))
    shares /= shares.sum()
    tail = shares.cumsum() > 0.99
    kept = np.mean([estimated(shares, seed)[tail].sum() for seed in range(10)])
    assert 0.5 < kept / shares[tail].sum() < 2


def test_no_share_is_negative_where_cells_and_runs_disagree():
    """As they do where columns are shrunk together and one is unlike the others: such a release could not be loaded."""
    runs, rows = np.arange(80) // 10, np.where(np.arange(80) < 10, 0.0, 300.0)
    for seed in range(20, 30):
        rng = np.random.default_rng(seed)
        fine, coarse = rows + rng.normal(0, 29, 80), np.bincount(runs, rows)
        fine[10:30] -= 150
        coarse[1:3] = 100
        noisy = NoisyCounts(fine, 29.0, coarse + rng.normal(0, 46, 8), 46.0, runs)
        assert estimated_shares(noisy, 18_000, np.ones(80, dtype=bool), np.ones(80)).min() >= 0


def test_a_run_that_holds_records_is_no_end():
    """Few rows before a step that is steep, as where a border cuts a town off: no cell of theirs stands out alone."""
    shares = np.concatenate([np.zeros(8), np.full(4, 130 / 4), np.full(40, 450.0), np.zeros(12)])
    shares /= shares.sum()
    kept = [estimated(shares, seed, fine=40.0, coarse=25.0)[8:12].sum() / shares[8:12].sum() for seed in range(10)]
    assert np.mean(np.array(kept) > 0.5) >= 0.9, "a run's count is below four deviations of its noise in some"
    assert np.mean(kept) == pytest.approx(1, abs=0.35)
