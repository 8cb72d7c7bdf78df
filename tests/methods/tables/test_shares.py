"""What the first release says of columns: how many records, shares of cells, and runs that features tell apart."""

import numpy as np
import pytest

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Integer
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import RUN_STEP, CellCounts
from sfumato.methods.tables.features import Waves, hermite_coefficients
from sfumato.methods.tables.shares import Resolution, _runs, column_shares, released_total
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

N = 5_000
SCHEMA = Schema(
    columns={
        "age": Integer(lower=0, upper=99, nullable=True),
        "city": Categorical(categories=tuple("abcdefgh")),
        "paid": Continuous(lower=-100, upper=1000),
        "seen": DateTime(lower="2019-01-01", upper="2022-12-31"),
        "one": Categorical(categories=("only",)),
        "member": Boolean(),
    },
    rows=N,
)
RESOLUTION = Resolution(most_runs=24, waves=Waves(3, 0.83), level_groups=4, weights={"city": 2.0})


def rows(seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(0.5, 0.1, N).clip(0, 1)
    age[rng.random(N) < 0.2] = np.nan
    return {
        "age": age,
        "city": rng.choice(8, N, p=[0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]),
        "paid": np.where(rng.random(N) < 0.5, 100 / 1100, rng.beta(1, 20, N)),
        "seen": rng.random(N),
        "one": np.zeros(N, dtype=int),
        "member": (rng.random(N) < 0.3).astype(int),
    }


def release(std=0.0, seed=0):
    statistic = CellCounts(Grid.of(SCHEMA, numeric_cells=64))
    total = statistic.zero()
    statistic.add(total, rows())
    noise = std * np.random.default_rng(seed).standard_normal(total.shape)
    return Noisy(total * statistic.step + noise, std), statistic


def shares_of(std=0.0, seed=0):
    noisy, statistic = release(std, seed)
    return *column_shares(noisy, statistic, released_total(noisy, statistic), RESOLUTION), statistic


def in_cells(column, cut, shares):
    """Shares of a column's cells, of those of finer ones."""
    if not column.numeric:
        return shares
    places = np.searchsorted(column.edges, cut.edges[:-1], side="right") - 1
    assert np.isin(column.edges, cut.edges).all()
    return np.bincount(np.append(places, np.full(int(column.kind.nullable), column.n_cells - 1)), shares)


def test_the_number_of_records_is_that_of_the_records():
    assert released_total(*release()) == pytest.approx(N)


def test_the_number_of_records_is_as_noisy_as_the_best_average_of_all_columns():
    std = 5.0
    _, statistic = release()
    widths = [runs[-1] + 1 for runs in statistic.runs]
    errors = [released_total(*release(std, seed)) - N for seed in range(300)]
    expected = std / RUN_STEP / np.sqrt(sum(1 / width for width in widths))
    assert np.std(errors) == pytest.approx(expected, rel=0.1)


def test_a_number_of_records_below_its_noise_is_what_noise_could_hide():
    noisy, statistic = release(1e6)
    assert released_total(noisy, statistic) > 1e5
    assert released_total(Noisy(noisy.value * 0, 0.0), statistic) == 1


def test_without_noise_shares_are_those_of_the_records():
    grid, columns, statistic = shares_of()
    data = rows()
    for column, cut, made in zip(statistic.grid.columns, grid.columns, columns, strict=True):
        counts = np.bincount(column.cells(data[column.name]), minlength=column.n_cells)
        np.testing.assert_allclose(in_cells(column, cut, made.shares), counts / N, atol=1e-9)


def test_with_noise_they_are_nearer_than_the_counts():
    grid, exact, statistic = shares_of()
    zipped = zip(statistic.grid.columns, grid.columns, exact, strict=True)
    true = [in_cells(column, cut, made.shares) for column, cut, made in zipped]
    names = [column.name for column in statistic.grid.columns]
    ours, raw = np.zeros(len(names)), np.zeros(len(names))
    for seed in range(20):
        noisy, _ = release(30.0, seed=seed)
        grid, made = column_shares(noisy, statistic, released_total(noisy, statistic), RESOLUTION)
        cells = statistic.split(noisy.value)[1]
        for j, (cut, column) in enumerate(zip(grid.columns, made, strict=True)):
            assert column.shares.sum() == pytest.approx(1)
            assert (column.shares >= 0).all()
            assert column.share_std == pytest.approx(30.0 / RUN_STEP / N, rel=0.1)
            clipped = np.maximum(cells[j], 0)
            ours[j] += np.abs(in_cells(statistic.grid.columns[j], cut, column.shares) - true[j]).sum()
            raw[j] += np.abs(clipped / clipped.sum() - true[j]).sum()
    for name in ("age", "paid", "seen"):
        assert ours[names.index(name)] < 0.5 * raw[names.index(name)], name
    assert (ours <= raw + 1e-9).all()


@pytest.mark.parametrize("std", [0.0, 30.0, 1e5])
def test_runs_and_features_fit_their_cells(std):
    cut, columns, statistic = shares_of(std)
    for public, grid, made in zip(statistic.grid.columns, cut.columns, columns, strict=True):
        assert grid.n_cells >= public.n_cells
        assert made.counted.size == grid.n_cells
        r, q = made.features.values.shape
        np.testing.assert_array_equal(np.unique(made.drawn), np.arange(r))
        assert made.vectors().shape == (grid.n_cells, q)
        assert made.pooled().sum() == pytest.approx(1)
        if grid.numeric:
            n = grid.n_cells - grid.kind.nullable
            assert (np.diff(made.drawn[:n]) >= 0).all()
            assert made.ordered == r - grid.kind.nullable
            assert made.features.size
            assert made.waves
            missing = made.ordered < r
            assert hermite_coefficients(made.pooled(), made.features.values, missing).shape[0] == q
        else:
            assert made.ordered == 0
            assert not made.waves


def test_missing_is_a_run_that_one_feature_tells():
    _, columns, _ = shares_of()
    age = columns[0]
    assert (age.drawn == age.drawn[-1]).sum() == 1
    told = np.abs(age.features.values[-1]) > 1e-6
    assert told.sum() == 1
    assert age.features.values[-1, told][0] ** 2 == pytest.approx(0.8 / 0.2, rel=0.1)
    assert age.pooled()[-1] == pytest.approx(0.2, abs=0.02)


def test_rare_labels_share_a_group_and_weights_are_the_columns():
    _, columns, _ = shares_of()
    city = columns[1]
    assert city.features.values.shape == (5, 3)
    assert np.bincount(city.drawn).tolist() == [1, 1, 1, 5, 1]  # the last one of no label
    plain = Resolution(24, Waves(3, 0.83), 4, {})
    noisy, statistic = release()
    other = column_shares(noisy, statistic, released_total(noisy, statistic), plain)[1][1]
    np.testing.assert_allclose(city.features.weights, 2 * other.features.weights)


def test_runs_are_of_an_even_share_or_of_little_spread():
    shares, middles = np.full(200, 1 / 200), np.arange(200.0)
    runs = _runs(shares, middles, 20)
    assert runs[0] == 0
    assert set(np.diff(runs)) == {0, 1}
    assert np.bincount(runs, shares).max() <= 1 / 20 + 1e-12
    spike = np.full(200, 0.5 / 199)
    spike[77] = 0.5
    runs = _runs(spike, middles, 20)
    assert (runs == runs[77]).sum() == 1
    np.testing.assert_array_equal(_runs(shares[:5], middles[:5], 5), np.arange(5))
    assert np.bincount(_runs(np.zeros(40), np.arange(40.0), 8)).sum() == 40


def test_columns_of_one_kind_are_drawn_together_as_far_as_noise_parts_them():
    """Ten readings of one law, much noise: each is nearer to the law than alone."""
    errors = []
    for alike in (True, False):
        kinds = {f"x{j}": Integer(lower=0, upper=30 + (0 if alike else j)) for j in range(10)}
        statistic = CellCounts(Grid.of(Schema(columns=kinds, rows=N), numeric_cells=64))
        rng, total = np.random.default_rng(0), statistic.zero()
        statistic.add(total, {name: rng.integers(0, 31, N) / kind.upper for name, kind in kinds.items()})
        noisy = Noisy(total * statistic.step + 200.0 * rng.standard_normal(total.shape), 200.0)
        _, made = column_shares(noisy, statistic, float(N), RESOLUTION)
        errors.append(np.mean([np.abs(c.shares[:31] - 1 / 31).sum() for c in made]))
    assert errors[0] < errors[1] / 1.5


def test_columns_drawn_together_are_not_made_wider_by_noise_that_is_gone():
    """A hundred readings of a thousand persons: the mean of all counts is no noisier than it is."""
    n, kinds = 1_000, {f"x{j}": Integer(lower=0, upper=100) for j in range(100)}
    statistic = CellCounts(Grid.of(Schema(columns=kinds, rows=n), numeric_cells=32))
    rng, total = np.random.default_rng(0), statistic.zero()
    statistic.add(total, {name: rng.normal(50, 10, n).clip(0, 100).round() / 100 for name in kinds})
    noisy = Noisy(total * statistic.step + 100.0 * rng.standard_normal(total.shape), 100.0)
    spreads = []
    cut, made = column_shares(noisy, statistic, float(n), RESOLUTION)
    for column, grid in zip(made, cut.columns, strict=True):
        assert grid.edges is not None
        middles = (grid.edges[:-1] + grid.edges[1:] - 1) / 2
        shares = column.shares[: middles.size]
        spreads.append(np.sqrt(shares @ (middles - shares @ middles) ** 2))
    assert 8 < np.mean(spreads) < 12
