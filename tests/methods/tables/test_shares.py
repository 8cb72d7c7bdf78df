"""What the first release says of columns: counts of classes, shares of cells, and runs that features tell apart."""

import numpy as np
import pytest

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Integer
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import RUN_STEP, TwoResolutionCounts
from sfumato.methods.tables.features import LABEL, MARK, SCORE
from sfumato.methods.tables.layout import TableLayout
from sfumato.methods.tables.shares import Resolution, _runs, column_shares, released_counts
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
RESOLUTION = Resolution(most_runs=24, orders=3, level_groups=4, weights={"city": 2.0})


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


def release(std=0.0, target: int | None = 5, seed=0):
    statistic = TwoResolutionCounts(TableLayout(Grid.of(SCHEMA, numeric_cells=64), target))
    total = statistic.zero()
    statistic.add(total, rows())
    noise = std * np.random.default_rng(seed).standard_normal(total.shape)
    return Noisy(total * statistic.step + noise, std), statistic


def shares_of(std=0.0, target: int | None = 5, seed=0):
    noisy, statistic = release(std, target, seed)
    return column_shares(noisy, statistic, released_counts(noisy, statistic), RESOLUTION), statistic


def test_counts_of_classes_are_those_of_the_records():
    found = released_counts(*release())
    np.testing.assert_allclose(found, np.bincount(rows()["member"]))
    np.testing.assert_allclose(released_counts(*release(target=None)), [N])


def test_counts_of_classes_are_as_noisy_as_the_best_average_of_all_columns():
    std = 5.0
    _, statistic = release()
    widths = [runs[-1] + 1 for runs in statistic.runs]
    errors = [released_counts(*release(std, seed=seed)) - np.bincount(rows()["member"]) for seed in range(300)]
    expected = std / RUN_STEP / np.sqrt(sum(1 / width for width in widths))
    assert np.std(errors) == pytest.approx(expected, rel=0.1)


def test_a_class_below_its_noise_keeps_what_noise_could_hide():
    noisy, statistic = release(1e6)
    found = released_counts(noisy, statistic)
    assert (found > 1e5).all()
    assert (released_counts(Noisy(noisy.value * 0, 0.0), statistic) == 1).all()


@pytest.mark.parametrize("target", [None, 5])
def test_without_noise_shares_are_those_of_the_records(target):
    columns, statistic = shares_of(target=target)
    data = rows()
    for column, made in zip(statistic.layout.features, columns, strict=True):
        counts = np.bincount(column.cells(data[column.name]), minlength=column.n_cells)
        np.testing.assert_allclose(made.shares, counts / N, atol=1e-9)


def test_with_noise_they_are_nearer_than_the_counts():
    exact, statistic = shares_of()
    names = [column.name for column in statistic.layout.features]
    ours, raw = np.zeros(len(names)), np.zeros(len(names))
    for seed in range(5):
        noisy, _ = release(30.0, seed=seed)
        made = column_shares(noisy, statistic, released_counts(noisy, statistic), RESOLUTION)
        cells = statistic.split(noisy.value)[1]
        for j, column in enumerate(made):
            assert column.shares.sum() == pytest.approx(1)
            assert (column.shares >= 0).all()
            assert column.counts_std == 30.0 / RUN_STEP
            clipped = np.maximum(cells[j], 0)
            ours[j] += np.abs(column.shares - exact[j].shares).sum()
            raw[j] += np.abs(clipped / clipped.sum() - exact[j].shares).sum()
    for name in ("age", "paid", "seen"):
        assert ours[names.index(name)] < 0.5 * raw[names.index(name)], name
    assert (ours <= raw + 1e-9).all()


@pytest.mark.parametrize("std", [0.0, 30.0, 1e5])
def test_runs_and_features_fit_their_cells(std):
    columns, statistic = shares_of(std)
    for grid, made in zip(statistic.layout.features, columns, strict=True):
        r, q = made.features.values.shape
        np.testing.assert_array_equal(np.unique(made.drawn), np.arange(r))
        assert made.vectors().shape == (grid.n_cells, q)
        assert made.pooled().sum() == pytest.approx(1)
        if grid.numeric:
            n = grid.n_cells - grid.kind.nullable
            assert (np.diff(made.drawn[:n]) >= 0).all()
            assert made.ordered == r - grid.kind.nullable
            assert SCORE in made.features.kinds
            assert made.hermite().shape[0] == q
        else:
            assert made.ordered == 0
            assert made.hermite() is None
            assert (made.features.kinds == LABEL).all()


def test_missing_is_a_run_with_a_mark():
    columns, _ = shares_of()
    age = columns[0]
    assert (age.drawn == age.drawn[-1]).sum() == 1
    assert age.features.kinds[0] == MARK
    assert age.pooled()[-1] == pytest.approx(0.2, abs=0.02)


def test_rare_labels_share_a_group_and_weights_are_the_columns():
    columns, _ = shares_of()
    city = columns[1]
    assert city.features.values.shape == (4, 3)
    assert np.bincount(city.drawn).tolist() == [1, 1, 1, 5]
    plain = Resolution(24, 3, 4, {})
    noisy, statistic = release()
    other = column_shares(noisy, statistic, released_counts(noisy, statistic), plain)[1]
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
        statistic = TwoResolutionCounts(TableLayout(Grid.of(Schema(columns=kinds, rows=N), numeric_cells=64), None))
        rng, total = np.random.default_rng(0), statistic.zero()
        statistic.add(total, {name: rng.integers(0, 31, N) / kind.upper for name, kind in kinds.items()})
        noisy = Noisy(total * statistic.step + 200.0 * rng.standard_normal(total.shape), 200.0)
        made = column_shares(noisy, statistic, np.array([float(N)]), RESOLUTION)
        errors.append(np.mean([np.abs(c.shares[:31] - 1 / 31).sum() for c in made]))
    assert errors[0] < errors[1] / 1.5


def test_columns_drawn_together_are_not_made_wider_by_noise_that_is_gone():
    """A hundred readings of a thousand persons: the mean of all counts is no noisier than it is."""
    n, kinds = 1_000, {f"x{j}": Integer(lower=0, upper=100) for j in range(100)}
    statistic = TwoResolutionCounts(TableLayout(Grid.of(Schema(columns=kinds, rows=n), numeric_cells=32), None))
    rng, total = np.random.default_rng(0), statistic.zero()
    statistic.add(total, {name: rng.normal(50, 10, n).clip(0, 100).round() / 100 for name in kinds})
    noisy = Noisy(total * statistic.step + 100.0 * rng.standard_normal(total.shape), 100.0)
    spreads = []
    for column, grid in zip(
        column_shares(noisy, statistic, np.array([float(n)]), RESOLUTION), statistic.layout.features, strict=True
    ):
        assert grid.edges is not None
        middles = (grid.edges[:-1] + grid.edges[1:] - 1) / 2
        shares = column.shares[: middles.size]
        spreads.append(np.sqrt(shares @ (middles - shares @ middles) ** 2))
    assert 8 < np.mean(spreads) < 12
