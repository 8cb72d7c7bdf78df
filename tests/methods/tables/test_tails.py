"""Tails: the shape of what is seen goes on, noise is not taken for rows, and with less noise all is as counted."""

import numpy as np
import pytest
from scipy import stats

from sfumato.columns.kinds import Continuous, Integer
from sfumato.methods.tables.cell_counts import public_runs
from sfumato.methods.tables.histograms import estimated_shares
from sfumato.methods.tables.shares import _axis, _on_curve
from sfumato.methods.tables.tails import NoisyCounts, with_normal_tails
from sfumato.schema.grid import ColumnGrid

LAWS = {
    "lognormal": (stats.lognorm(1.2, scale=500), Continuous(lower=0, upper=1_000_000, resolution=0.01)),
    "pareto": (stats.lomax(2.0, scale=100), Continuous(lower=0, upper=1_000_000, resolution=0.01)),
    "exponential": (stats.expon(scale=30), Continuous(lower=0, upper=1_000, resolution=0.1)),
    "student": (stats.t(3, scale=500), Integer(lower=-1_000_000, upper=1_000_000)),
    "from one": (stats.lognorm(1.0, loc=1, scale=300), Continuous(lower=1, upper=500_000, resolution=0.01)),
}


def column(kind) -> ColumnGrid:
    return ColumnGrid.numbers("x", kind, 256, ends=True, narrow=True)


def masses(law, grid: ColumnGrid) -> np.ndarray:
    """Probabilities of cells under a law, what is beyond the bounds at them."""
    lower, upper = grid.kind.bounds
    ends = grid.steps.codes(grid.edges.astype(float) - 0.5) * (upper - lower) + lower
    ends[0], ends[-1] = -np.inf, np.inf
    return np.diff(law.cdf(ends))


def estimated(law, kind, n: int, noise: tuple[float, float], seed: int) -> tuple[ColumnGrid, np.ndarray]:
    grid = column(kind)
    rng = np.random.default_rng(seed)
    exact = rng.multinomial(n, masses(law, grid)).astype(float)
    runs = public_runs(grid)
    fine = exact + rng.normal(0, noise[0], exact.size)
    coarse = np.bincount(runs, exact) + rng.normal(0, noise[1], runs[-1] + 1)
    counts = NoisyCounts(fine, noise[0], coarse, noise[1], runs)
    return grid, estimated_shares(counts, n, *_on_curve(grid), _axis(grid))


def beyond(law, grid: ColumnGrid, shares: np.ndarray) -> float:
    """Mass above the 99.9 % quantile over a thousandth; of the cell that holds it, a part."""
    lower, upper = grid.kind.bounds
    step = grid.steps.at(np.array((law.ppf(0.999) - lower) / (upper - lower)))
    part = np.clip((grid.edges[1:] - step) / np.diff(grid.edges), 0, 1)
    return float(shares @ part) / 0.001


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_mass_beyond_the_quantile(name):
    """Of 20,000 rows at the noise of ten columns at ε = 1: half of the fits within a factor of 2.5."""
    law, kind = LAWS[name]
    found = np.array([beyond(law, *estimated(law, kind, 20_000, (38, 24), seed)) for seed in range(9)])
    assert 0.4 < np.median(found) < 2.5
    assert found.max() < 8


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_with_less_noise_it_is_the_count(name):
    law, kind = LAWS[name]
    found = np.array([beyond(law, *estimated(law, kind, 1_000_000, (2, 2), seed)) for seed in range(3)])
    np.testing.assert_allclose(found, 1, atol=0.25)  # the cell of the quantile is taken as even
    grid, shares = estimated(law, kind, 1_000_000, (1e-6, 1e-6), 0)
    exact = np.random.default_rng(0).multinomial(1_000_000, masses(law, grid)) / 1e6
    np.testing.assert_allclose(shares, exact, atol=1e-4)


@pytest.mark.slow
def test_noise_far_out_is_no_row():
    """A cell at a million that noise alone fills would be all of the column's spread."""
    law, kind = LAWS["pareto"]
    grid, _ = estimated(law, kind, 5_000, (38, 24), 0)
    middles = grid.steps.codes((grid.edges[:-1] + grid.edges[1:]) / 2) * 1e6
    for seed in range(12):
        _, shares = estimated(law, kind, 5_000, (38, 24), seed)
        assert shares[middles > 100_000].sum() < 2e-3


def test_cells_are_narrow_near_zero_whatever_the_bounds():
    for lower, upper in ((0, 1e6), (-5, 1e6), (1, 1e6), (-1e6, -2), (-1e6, 1e6), (0.5, 20_000)):
        grid = column(Continuous(lower=lower, upper=upper, resolution=0.01))
        values = grid.steps.codes(grid.edges.astype(float)) * (upper - lower) + lower
        for size in (10, 100, 1_000):
            near = values[(np.abs(values) > size) & (np.abs(values) < 2 * size)]
            assert near.size >= 2, (lower, upper, size)
    plain = column(Integer(lower=1900, upper=2100))
    assert (np.diff(plain.edges)[1:-1] == 1).all()
    wide = column(Continuous(lower=1900, upper=2100, resolution=0.01))
    assert len(set(np.diff(wide.edges)[2:-2].tolist())) == 1  # bounds that are not far apart


def test_narrow_cells_are_more():
    kind = LAWS["pareto"][1]
    plain = ColumnGrid.numbers("x", kind, 256, ends=True)
    assert plain.edges.size <= 259
    assert column(kind).edges.size > 270


def spread(law, kind, noise: tuple[float, float], seed: int, n: int = 5_000) -> tuple[float, float]:
    """The deviation of estimated shares, as they are and with normal tails."""
    grid = column(kind)
    exact = np.random.default_rng(seed).multinomial(n, masses(law, grid)).astype(float)
    rng, runs = np.random.default_rng([seed, 1]), public_runs(grid)
    fine = exact + rng.normal(0, noise[0], exact.size)
    counts = NoisyCounts(
        fine, noise[0], np.bincount(runs, exact) + rng.normal(0, noise[1], runs[-1] + 1), noise[1], runs
    )
    (ordered, widths), axis = _on_curve(grid), _axis(grid)
    shares = estimated_shares(counts, n, ordered, widths, axis)
    light = with_normal_tails(shares, counts, n, ordered, axis)
    assert light.sum() == pytest.approx(shares.sum())
    assert (light >= 0).all()
    lower, upper = kind.bounds
    middles = grid.steps.codes((grid.edges[:-1] + grid.edges[1:] - 1) / 2) * (upper - lower) + lower
    return tuple(float(np.sqrt(own[: middles.size] @ middles**2)) for own in (shares, light))  # type: ignore[return-value]


def test_a_narrow_column_in_wide_bounds_has_no_variance_of_noise():
    """An offset of deviation 4 between -100 and 100, at the noise of a small table."""
    kind = Continuous(lower=-100, upper=100)
    before, now = np.array([spread(stats.norm(0, 4), kind, (60, 40), seed) for seed in range(24, 40)]).T
    assert before.max() > 6, "what it is for"
    assert now.min() > 3.3
    assert now.max() < 5


@pytest.mark.parametrize("noise", [1e-3, 1e-9])
def test_tails_that_are_seen_are_not_made_normal(noise):
    kind, law = Continuous(lower=-100, upper=100), stats.t(3, scale=4)
    before, now = spread(law, kind, (noise, noise), 1)
    assert now == pytest.approx(before, rel=1e-3)
