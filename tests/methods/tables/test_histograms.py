"""Shares from noisy counts: a smooth curve keeps tails, a spike stands, and without noise counts are what they are."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from sfumato.columns.kinds import Continuous
from sfumato.methods.tables.histograms import NoisyCounts, estimated_shares
from sfumato.schema.grid import ColumnGrid

CELLS, RUN = 128, 4
RUNS = np.arange(CELLS) // RUN
EDGES = np.linspace(0, 8, CELLS + 1)
LAWS = {"normal": stats.norm(4, 0.9), "exponential": stats.expon(scale=0.8)}
ORDERED, WIDTHS = np.ones(CELLS, dtype=bool), np.ones(CELLS)
N = 20_000


def counted(shares, fine_std, seed=0, runs=RUNS, n=N, coarse_std=None):
    rng = np.random.default_rng(seed)
    coarse_std = fine_std if coarse_std is None else coarse_std
    coarse = np.bincount(runs, n * shares)
    return NoisyCounts(
        n * shares + fine_std * rng.standard_normal(shares.size),
        fine_std,
        coarse + coarse_std * rng.standard_normal(coarse.size),
        coarse_std,
        runs,
    )


def cells_of(law):
    return np.diff(law.cdf(EDGES)) / (law.cdf(EDGES[-1]) - law.cdf(EDGES[0]))


def spiked():
    shares = 0.85 * cells_of(LAWS["normal"])
    shares[[20, 70]] += [0.05, 0.1]
    return shares


def test_without_noise_shares_are_the_counts():
    for shares in (spiked(), np.eye(CELLS)[3]):
        np.testing.assert_allclose(estimated_shares(counted(shares, 0.0), N, ORDERED, WIDTHS), shares, atol=1e-15)


@pytest.mark.parametrize("make", [spiked, lambda: cells_of(LAWS["exponential"])], ids=["spiked", "exponential"])
def test_less_noise_is_nearer(make):
    shares = make()
    errors = []
    for std in (100.0, 10.0, 1.0, 0.01):
        found = [estimated_shares(counted(shares, std, seed), N, ORDERED, WIDTHS) for seed in range(3)]
        errors.append(np.mean([np.abs(f - shares).sum() / 2 for f in found]))
    assert all(after < before / 2 for before, after in pairwise(errors)), errors
    assert errors[-1] < 5e-5


ENDING = {
    "even": lambda x: (x >= 3) & (x < 9),
    "even from the bound": lambda x: x < 6,
    "even in two places": lambda x: ((x >= 2) & (x < 6)) | ((x >= x.size // 2) & (x < x.size // 2 + 6)),
    "falling from a first value": lambda x: np.where(x >= 5, 0.7 ** (x - 5.0), 0.0),
    "half a normal law": lambda x: np.where(x >= 4, np.exp(-0.5 * ((x - 4) / (x.size / 6)) ** 2), 0.0),
    "rising to a last value": lambda x: np.where(x < x.size // 2, x, 0),
    "two humps": lambda x: stats.norm(x.size / 5, 1.28).pdf(x + 0.5) + stats.norm(4 * x.size / 5, 1.28).pdf(x + 0.5),
}
SPIKED = {
    "most of it 0": lambda x: np.where(x == 0, 2.0, stats.lognorm(1.0, scale=x.size / 20).pdf(x + 0.5) / 2),
    "falling from 0": lambda x: (x + 0.5) ** -2,
    "one value": lambda x: (x == x.size // 3) * 1.0,
}


@pytest.mark.parametrize("law", SPIKED)
def test_a_spike_is_a_share_of_all_records(law):
    """Of their number, known by all columns, and not of the sum of 256 noisy cells, which is off by 60 and more."""
    shares = np.asarray(SPIKED[law](np.arange(256.0)))
    shares, std, n = shares / shares.sum(), 12.8, 20_000
    for seed in range(6):
        counts = counted(shares, std, seed, np.arange(256) // 4, n)
        found = estimated_shares(counts, n, np.ones(256, dtype=bool), np.ones(256), total_std=5.0)
        place = int(np.argmax(shares))
        assert abs(found[place] - shares[place]) * n < 2.5 * std


@pytest.mark.parametrize("law", ENDING)
@pytest.mark.parametrize(("cells", "run", "n"), [(31, 1, 8_000), (64, 1, 20_000), (120, 4, 20_000)])
def test_a_law_that_ends_keeps_its_counts(law, cells, run, n):
    """What a smooth curve and its tails put beyond an end is not shared out among the rest."""
    shares = np.asarray(ENDING[law](np.arange(cells)), dtype=np.float64)
    shares, std = shares / shares.sum(), 12.8
    for seed in range(6):
        counts = counted(shares, std, seed, np.arange(cells) // run, n)
        found = estimated_shares(counts, n, np.ones(cells, dtype=bool), np.ones(cells))
        assert np.abs(found - shares).max() * n < 5 * std


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_tail_that_drowns_keeps_its_mass(law):
    """Beyond the 99.9 % quantile each cell holds 1 record or none, and noise is 40."""
    shares, std = cells_of(law), 40.0
    tail = EDGES[:-1] > law.ppf(0.999)
    found, clipped = [], []
    for seed in range(8):
        counts = counted(shares, std, seed)
        found.append(estimated_shares(counts, N, ORDERED, WIDTHS)[tail].sum())
        clipped.append(np.maximum(counts.fine, 0)[tail].sum() / np.maximum(counts.fine, 0).sum())
    mass = shares[tail].sum()
    assert np.mean(clipped) > 10 * mass
    assert mass / 3 < np.mean(found) < 3 * mass
    assert np.median(found) < 3 * mass


def test_a_smooth_law_is_nearer_than_its_counts():
    shares, std = cells_of(LAWS["normal"]), 60.0
    ours, theirs = [], []
    for seed in range(5):
        counts = counted(shares, std, seed)
        ours.append(np.abs(estimated_shares(counts, N, ORDERED, WIDTHS) - shares).sum() / 2)
        clipped = np.maximum(counts.fine, 0)
        theirs.append(np.abs(clipped / clipped.sum() - shares).sum() / 2)
    assert np.mean(ours) < np.mean(theirs) / 3


def test_a_spike_stands():
    shares = spiked()
    for seed in range(5):
        found = estimated_shares(counted(shares, 40.0, seed), N, ORDERED, WIDTHS)
        np.testing.assert_allclose(found[[20, 70]], shares[[20, 70]], atol=0.01)
        beside = [19, 21, 69, 71]
        np.testing.assert_allclose(found[beside], shares[beside], atol=0.006)


PILE = np.append(np.minimum(np.arange(CELLS - 1) // RUN, (CELLS - 1) // RUN), CELLS // RUN)
"""Runs of which the last is one cell, as a bound is."""


def test_a_bound_that_values_pile_up_at_is_told_by_both_its_counts():
    """Rows that lie beyond bounds are read as these: 4.5 deviations of both counts together, 2.5 of its cell's own."""
    noise, found, shares = (33.0, 21.0), [], 0.9964 * cells_of(LAWS["exponential"])
    shares[-1] += 0.0036
    for seed in range(40):
        counts = counted(shares, noise[0], seed, runs=PILE, coarse_std=noise[1])
        found.append(estimated_shares(counts, N, ORDERED, WIDTHS, total_std=10.0)[-1] * N)
    assert np.mean(np.array(found) > 30) >= 0.85
    assert np.mean(found) == pytest.approx(72, abs=12)


def test_a_bound_without_a_pile_seldom_has_one():
    shares = cells_of(LAWS["normal"])
    false = 0
    for seed in range(200):
        counts = counted(shares, 33.0, seed, runs=PILE, coarse_std=21.0)
        false += estimated_shares(counts, N, ORDERED, WIDTHS, total_std=10.0)[-1] * N > 20
    assert false <= 5  # one in two hundred is accepted


def test_a_cell_off_the_curve_does_not_bend_it():
    shares, ordered = 0.6 * cells_of(LAWS["normal"]), ORDERED.copy()
    shares[0] += 0.4
    ordered[0] = False
    found = estimated_shares(counted(shares, 20.0), N, ordered, WIDTHS)
    assert found[0] == pytest.approx(0.4, abs=0.005)
    assert found[1:10].sum() < 0.005


def test_an_empty_cell_off_the_curve_stays_nearly_empty():
    ordered = ORDERED.copy()
    ordered[-1] = False
    shares = np.append(cells_of(LAWS["normal"])[:-1], 0.0)
    shares /= shares.sum()
    found = [estimated_shares(counted(shares, 40.0, seed), N, ordered, WIDTHS)[-1] for seed in range(20)]
    assert np.mean(found) < 0.2 * 40.0 / N


def test_cells_of_uneven_width_follow_one_density():
    """Half of the cells are three times as wide: counts alternate, their density does not."""
    widths = np.tile([1.0, 3.0], CELLS // 2)
    edges = np.concatenate([[0], np.cumsum(widths)])
    shares = np.diff(stats.norm(edges[-1] / 2, edges[-1] / 8).cdf(edges))
    shares /= shares.sum()
    told, blind = (
        np.mean(
            [np.abs(estimated_shares(counted(shares, 60.0, s), N, ORDERED, w) - shares).sum() / 2 for s in range(5)]
        )
        for w in (widths, WIDTHS)
    )
    assert told < 0.02
    assert told < blind / 1.5


def test_both_resolutions_are_used():
    """Three levels that noise hides, but their runs do not: the runs' counts are kept."""
    runs = np.arange(3)
    shares = np.array([0.7, 0.2, 0.1])
    unordered = np.zeros(3, dtype=bool)
    errors = []
    for coarse_std in (2000.0, 20.0):
        found = [
            estimated_shares(counted(shares, 2000.0, s, runs, coarse_std=coarse_std), N, unordered, np.ones(3))
            for s in range(20)
        ]
        errors.append(np.abs(np.array(found) - shares).mean())
    assert errors[1] < errors[0] / 20


CASES = {
    "one cell": (1, False),
    "one cell of a curve": (1, True),
    "two": (2, True),
    "three": (3, True),
    "four": (4, True),
    "labels": (50, False),
    "numbers": (100, True),
}


@pytest.mark.parametrize("law", ["constant", "even", "no records", "all negative", "absurd"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("std", [0.0, 1e-3, 1.0, 1e3, 1e6])
def test_shares_are_shares_of_any_counts(case, law, std):
    cells, ordered = case
    runs = np.arange(cells) // 3
    rng = np.random.default_rng(cells)
    fine = {
        "constant": 500.0 * np.eye(cells)[cells // 2],
        "even": np.full(cells, 7.0),
        "no records": np.zeros(cells),
        "all negative": np.full(cells, -300.0),
        "absurd": np.where(np.arange(cells) % 2, 1e9, -1e9),
    }[law]
    noisy = fine + std * rng.standard_normal(cells)
    counts = NoisyCounts(noisy, std, np.bincount(runs, fine) + std * rng.standard_normal(runs[-1] + 1), std, runs)
    found = estimated_shares(counts, max(float(fine.sum()), 1.0), np.full(cells, ordered), np.full(cells, 5.0))
    assert found.shape == (cells,)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)


def test_all_of_a_constant_table_is_its_cell():
    found = estimated_shares(counted(np.eye(CELLS)[70], 20.0), N, ORDERED, WIDTHS)
    assert found[70] > 0.98


@pytest.mark.parametrize("place", [0, 60, CELLS - 1])
@pytest.mark.parametrize("mass", [0.1, 0.4, 0.8])
def test_a_great_spike_does_not_bend_the_rest(place, mass):
    """A flat column with one value that many have, at a bound or inside: neither it nor the rest is lost."""
    shares = np.full(CELLS, (1 - mass) / CELLS)
    shares[place] += mass
    errors = []
    for seed in range(6):
        found = estimated_shares(counted(shares, 30.0, seed, n=5_000), 5_000, ORDERED, WIDTHS)
        assert found[place] == pytest.approx(shares[place], abs=0.07)
        rest = np.delete(found, place)
        errors.append(np.abs(np.add.reduceat(rest, np.arange(0, CELLS - 1, 32)) - (1 - mass) / 4).sum() / 2)
    assert np.mean(errors) < 0.06


def test_beside_a_constant_there_is_next_to_nothing():
    """All records have one value; of the other cells' noise little is taken for records."""
    shares = np.eye(CELLS)[70]
    beside = [1 - estimated_shares(counted(shares, 30.0, s, n=4_000), 4_000, ORDERED, WIDTHS)[70] for s in range(20)]
    assert np.mean(beside) < 0.015
    assert max(beside) < 0.09


def test_two_humps_on_cells_that_widen_are_never_lost():
    """An offset of deviation 3.5 between -100 and 100: a curve too stiff for both humps must not lose them."""
    grid = ColumnGrid.numbers("offset", Continuous(lower=-100, upper=100), 116, narrow=True)
    edges = grid.edges / grid.steps.last * 200 - 100
    shares = np.diff(stats.norm.cdf(edges, scale=3.5))
    ordered, widths = np.ones(shares.size, dtype=bool), np.diff(grid.edges).astype(float)
    runs = np.arange(shares.size) // 4
    for seed in range(40):
        counts = counted(shares, 19.0, seed, runs, n=600, coarse_std=12.0)
        law = estimated_shares(counts, 600, ordered, widths)
        assert np.abs(law - shares).sum() / 2 < 0.5, seed
